"""Does a function give the same on every backend, and the right thing? Values, shapes, dtypes, gradients and errors.

The judge is the plain backend in float64, or NumPy's result where the caller has one. Nothing here knows how a backend
works.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..backends.base import Operand
from ..backends.registry import backends, get_backend, use_backend
from ..core.dtypes import BY_NUMPY, DType, as_dtype
from ..core.errors import DTypeError
from ..tensors.tensor import Tensor
from .tolerances import Tolerance, tolerance_for

Array = npt.NDArray[Any]


class Deviation(NamedTuple):
    """How far one backend lay from the judge, at most: |got - expected| of the values, and of the gradients."""

    backend: str
    dtypes: tuple[str, ...]  # of the inputs
    value: float
    gradient: float


@dataclass(frozen=True)
class Agreement:
    """What `assert_backends_agree` found: a deviation for each backend and choice of dtypes."""

    rows: tuple[Deviation, ...]

    def __str__(self) -> str:
        lines = [f"{'backend':<12}{'inputs':<24}{'values':>10}{'gradients':>12}"]
        lines += [
            f"{b:<12}{', '.join(dtypes):<24}{value:>10.1e}{gradient:>12.1e}" for b, dtypes, value, gradient in self.rows
        ]
        return "\n".join(lines)


@dataclass
class Run:
    """One call of the function on one backend, and what came back."""

    backend: str
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list)
    gradients: list[Array | None] = field(default_factory=list)
    error: Exception | None = None


def assert_backends_agree(
    fn: Callable[..., Any],
    *arrays: Any,
    backends: Sequence[str] | None = None,
    dtypes: Sequence[DType | str] | None = None,
    gradients: bool = True,
    expected: Any = None,
    kind: str = "program",
    rtol: float | None = None,
    atol: float | None = None,
) -> Agreement:
    """Call a function on every backend and compare all that can be seen.

    Parameters
    ----------
    fn
        Takes tensors, gives a tensor or a tuple of tensors. New tensors in it are made on the backend under test.
    arrays : array_like
        The inputs. Tensors are made of copies that keep the layout: strides of any sign, 0 included.
    backends : sequence of str, optional
        Those to compare; all of `mf.backends()` if left out.
    dtypes : sequence of dtypes, optional
        Floating inputs are converted to each of them, one after the other; left as they are if not given.
    gradients : bool
        Whether to compare the gradients of floating inputs too: of the sum of all outputs times fixed random weights.
    expected : array or tuple of arrays, optional
        The right values, for instance NumPy's; those of the "python" backend in float64 if left out.
    kind : str
        The kind of tolerance, a key of `TOLERANCES`.
    rtol, atol : float, optional
        Tolerances in its place: |got - expected| <= atol + rtol * |expected|.

    Returns
    -------
    Agreement
        The largest deviation of each backend; printed, a small table.

    Raises
    ------
    AssertionError
        A value, shape, dtype or gradient differs, or one backend raises another error than the others. The message shows
        the backend, the inputs with their layouts, the first index that differs, both values, the tolerance and its reason.
    Exception
        What the function raises, where it raises the same on every backend: expect it with `pytest.raises`.

    Notes
    -----
    The plain backend costs some 2 us an element and operation: keep inputs below some thousand elements. Where a function
    jumps (a comparison, a floor), inputs of float32 may land on the other side of the step than the judge.

    Examples
    --------
    >>> import minifuse as mf
    >>> agreement = assert_backends_agree(lambda x, y: (x * y).sum(0), np.ones((3, 4)), np.arange(4.0))
    >>> [row.backend for row in agreement.rows][:2]
    ['python', 'parallel']
    >>> max(row.value for row in agreement.rows)
    0.0
    """

    def allowed(got: Array, right: Array) -> Tolerance:
        if rtol is not None or atol is not None:
            return Tolerance(rtol or 0.0, atol or 0.0, "as the caller asked")
        n = max((a.size for a in given), default=1)  # any element of the inputs may meet any other
        return tolerance_for(kind, BY_NUMPY[got.dtype], n, magnitude(right, *given))

    rows = []
    for wanted in dtypes or (None,):
        given = [converted(whole(np.asarray(a)), wanted) for a in arrays]
        judge = run(fn, [converted(a, "float64") for a in given], "python", gradients)
        runs = [run(fn, given, name, gradients) for name in names_of(backends)]
        compare_errors(runs)
        if runs[0].error:
            raise runs[0].error
        if judge.error:
            raise AssertionError(
                f"the judge, python in float64, raised {told(judge.error)}; no backend did"
            ) from judge.error
        values = [y.numpy() for y in judge.outputs] if expected is None else as_arrays(expected)
        for r in runs:
            compare_kinds(runs[0], r)
            rows.append(deviation(r, values, judge.gradients, allowed))
    return Agreement(tuple(rows))


def assert_close(
    got: Any, expected: Any, kind: str = "program", *, n: int = 1, scale: float | None = None, what: str = "the result"
) -> None:
    """Compare a tensor with the right values, under the tolerance of a kind of operation.

    Parameters
    ----------
    got : Tensor
        The result. Its dtype decides the tolerance.
    expected : array_like
        The right values, best in float64. They are rounded to the dtype of the result.
    kind, n, scale
        As `tolerance_for` takes them; the scale is the largest expected magnitude if left out.
    what : str
        What the message calls the result.

    Raises
    ------
    AssertionError
        The shapes differ, or a value does; NaN equals NaN.

    Examples
    --------
    >>> import minifuse as mf
    >>> assert_close(mf.exp(mf.tensor([0.0, 1.0])), [1.0, np.e], "transcendental")
    """
    right = np.asarray(expected)
    scale = magnitude(right) if scale is None else scale
    compare(np.asarray(got), right, tolerance_for(kind, got.dtype, n, scale), what)


def names_of(chosen: Sequence[str] | None) -> tuple[str, ...]:
    """The backends that were asked for; a BackendError for one that does not exist."""
    return tuple(get_backend(name).name for name in (backends() if chosen is None else chosen))


def whole(array: Array) -> Array:
    """An array whose strides are whole elements: itself, or a copy."""
    return array.copy() if any(stride % array.itemsize for stride in array.strides) else array


def converted(array: Array, dtype: DType | str | None) -> Array:
    """A floating array as another dtype, in the same layout."""
    if dtype is None or array.dtype.kind != "f":
        return array
    flat, layout = Operand.from_array(array)
    return Operand(flat.astype(as_dtype(dtype).numpy), layout).array()


def run(fn: Callable[..., Any], arrays: Sequence[Array], backend: str, wants_gradients: bool) -> Run:
    """Call the function on copies of the arrays, and differentiate."""
    found = Run(backend, [over(array, backend, wants_gradients) for array in arrays])
    with use_backend(backend):
        try:
            found.outputs = tensors_in(fn(*found.inputs))
            if wants_gradients:
                for y, weight in weighted(found.outputs):
                    if y.requires_grad:
                        y.backward(weight, retain_graph=True)
        except Exception as error:  # whatever it is, all backends must raise it
            found.error = error
    found.gradients = [None if x.grad is None else x.grad.numpy() for x in found.inputs]
    return found


def over(array: Array, backend: str, requires_grad: bool) -> Tensor:
    """A tensor over a copy of an array, in the same layout."""
    flat, layout = Operand.from_array(array)
    x = Tensor.from_numpy(Operand(flat.copy(), layout).array(), get_backend(backend))
    x.requires_grad = requires_grad and x.dtype.is_float
    return x


def tensors_in(result: Any) -> list[Tensor]:
    """What a function gave, as a list."""
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    for y in outputs:
        if not isinstance(y, Tensor):
            raise DTypeError(f"the function gave {type(y).__name__}, expected a tensor or a tuple of tensors")
    return outputs


def weighted(outputs: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Each floating output, and what it receives: fixed random numbers, the same in float32 and float64."""
    for k, y in enumerate(outputs):
        if y.dtype.is_float:
            weights = np.random.default_rng(k).uniform(0.5, 1.5, y.shape).astype(np.float32)
            yield y, y.asarray_like(weights.astype(y.dtype.numpy))


def as_arrays(expected: Any) -> list[Array]:
    """One expected array, or a tuple of them."""
    return [np.asarray(x) for x in (expected if isinstance(expected, tuple) else (expected,))]


def magnitude(*arrays: Array) -> float:
    """The largest finite magnitude in arrays."""
    finite = [np.abs(a[np.isfinite(a)], dtype=np.float64) for a in arrays if a.size and a.dtype.kind != "b"]
    return max((float(a.max()) for a in finite if a.size), default=0.0)


def compare_errors(runs: Sequence[Run]) -> None:
    """All backends raise the same error, or none does."""
    for r in runs[1:]:
        a, b = runs[0].error, r.error
        if type(a) is not type(b) or str(a) != str(b):
            lines = [f"{x.backend}: {told(x.error)}" for x in (runs[0], r)]
            raise AssertionError("\n".join(["backends raise different errors", *lines, shown(r)])) from a or b


def told(error: Exception | None) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}" if error else "no error"


def compare_kinds(first: Run, r: Run) -> None:
    """The outputs are as many, of the same shapes and dtypes."""
    kinds = [[(y.dtype.name, y.shape) for y in x.outputs] for x in (first, r)]
    if kinds[0] != kinds[1]:
        raise AssertionError(f"{first.backend} gave {kinds[0]}, {r.backend} gave {kinds[1]}\n{shown(r)}")


def deviation(
    r: Run, values: Sequence[Array], gradients: Sequence[Array | None], allowed: Callable[[Array, Array], Tolerance]
) -> Deviation:
    """Hold the values and gradients of a run against those of the judge."""
    if len(values) != len(r.outputs):
        raise AssertionError(f"{r.backend}: the function gave {len(r.outputs)} outputs, expected {len(values)}\n{shown(r)}")
    value = gradient = 0.0
    for k, (y, right) in enumerate(zip([y.numpy() for y in r.outputs], values, strict=True)):
        value = max(value, compare(y, right, allowed(y, right), f"output {k}", r))
    for k, (got, wanted) in enumerate(zip(r.gradients, gradients, strict=True)):
        if (got is None) is not (wanted is None):
            what = "no gradient" if got is None else "a gradient"
            raise AssertionError(f"{r.backend}: input {k} got {what}, unlike the judge\n{shown(r)}")
        if got is not None and wanted is not None:
            gradient = max(gradient, compare(got, wanted, allowed(got, wanted), f"the gradient of input {k}", r))
    return Deviation(r.backend, tuple(x.dtype.name for x in r.inputs), value, gradient)


def compare(got: Array, expected: Array, allowed: Tolerance, what: str, r: Run | None = None) -> float:
    """The largest difference; an AssertionError that tells all about the first that is too large."""
    where = f"{r.backend}: {what}" if r else what
    if got.shape != expected.shape:
        raise AssertionError("\n".join([f"{where} has shape {got.shape}, expected {expected.shape}", *[shown(r)] * bool(r)]))
    with np.errstate(all="ignore"):
        right = expected.astype(got.dtype)
        if got.dtype.kind == "f":
            is_finite = np.isfinite(got) & np.isfinite(right)
            distance = np.where(is_finite, np.abs(got.astype(np.float64) - right), 0.0)
            is_same = (got == right) | (np.isnan(got) & np.isnan(right))
            is_same |= is_finite & (distance <= allowed.atol + allowed.rtol * np.abs(right, dtype=np.float64))
        else:
            is_same, distance = got == right, np.abs(got.astype(np.float64) - right.astype(np.float64))
    if is_same.all():
        return float(distance.max(initial=0.0))
    first = tuple(int(i) for i in np.argwhere(~is_same)[0])
    raise AssertionError(
        "\n".join(
            [
                f"{where} is wrong at {np.count_nonzero(~is_same)} of {got.size} elements, {got.dtype} {got.shape}",
                f"first at    {first}: expected {right[first]!s}, got {got[first]!s}",
                f"allowed     rtol {allowed.rtol:.2g}, atol {allowed.atol:.2g}: {allowed.reason}",
                *[shown(r)] * bool(r),
            ]
        )
    )


def shown(r: Run | None) -> str:
    """The inputs of a run, a line each."""
    xs = r.inputs if r else []
    return "\n".join(f"input {k:<6}{x.dtype} {x.shape}, strides {x.strides}, offset {x.offset}" for k, x in enumerate(xs))

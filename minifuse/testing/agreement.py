"""Compare a function across backends: values, shapes, dtypes, gradients and errors.

The reference is the python backend in float64, or expected values that the caller passes, for instance from NumPy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from ..backends.base import Operand
from ..backends.registry import backends, get_backend, use_backend
from ..core.dtypes import BY_NUMPY, DType, as_dtype
from ..core.errors import DTypeError
from ..tensors.tensor import Tensor
from .tolerances import Tolerance, tolerance_for

__tracebackhide__ = True  # pytest shows the test that failed and the message, and not these functions


@dataclass(frozen=True)
class Difference:
    """An element that differs from the expected one. Values are text, since JSON has no NaN."""

    what: str  # "output 0", "the gradient of input 1"
    index: tuple[int, ...]
    expected: str
    got: str


class Deviation(NamedTuple):
    """The largest deviation |got - expected| of one backend, for values and for gradients."""

    backend: str
    dtypes: tuple[str, ...]  # the dtypes of the inputs
    value: float
    gradient: float
    first: Difference | None = None  # the first element of the outputs, then of the gradients, that differs at all


class DisagreementError(AssertionError):
    """An element differs by more than the tolerance."""

    def __init__(self, message: str, first: Difference) -> None:
        super().__init__(message)
        self.first = first


@dataclass(frozen=True)
class Agreement:
    """The result of `assert_backends_agree`: a deviation for each backend and choice of dtypes."""

    rows: tuple[Deviation, ...]

    def __str__(self) -> str:
        lines = [f"{'backend':<12}{'inputs':<24}{'values':>10}{'gradients':>12}"]
        lines += [
            f"{b:<12}{', '.join(dtypes):<24}{value:>10.1e}{gradient:>12.1e}" for b, dtypes, value, gradient, _ in self.rows
        ]
        return "\n".join(lines)


@dataclass
class BackendRun:
    """One call of the function on one backend, with its results."""

    backend: str
    inputs: list[Tensor]
    outputs: list[Tensor] = field(default_factory=list)
    gradients: list[ndarray | None] = field(default_factory=list)
    error: Exception | None = None


def assert_backends_agree(
    fn: Callable[..., object],
    *arrays: ArrayLike,
    backends: Sequence[str] | None = None,
    dtypes: Sequence[DType | str] | None = None,
    gradients: bool = True,
    expected: ArrayLike | tuple[ArrayLike, ...] | None = None,
    kind: str = "program",
    rtol: float | None = None,
    atol: float | None = None,
) -> Agreement:
    """Call a function on every backend, and compare values, shapes, dtypes, gradients and errors.

    Parameters
    ----------
    fn
        Takes tensors and returns a tensor or a tuple of tensors. Tensors created in it are on the tested backend.
    arrays : array_like
        The inputs. They are copied to tensors with the same strides, including 0 and negative ones.
    backends : sequence of str, optional
        The backends to compare. Default: all of `mf.backends()`.
    dtypes : sequence of dtypes, optional
        Convert float inputs to each of these dtypes in turn. Default: no conversion.
    gradients : bool
        If True, compare the gradients of float inputs, too: of the sum of all outputs times fixed random weights.
    expected : array or tuple of arrays, optional
        The expected values, for instance from NumPy. Default: those of the "python" backend in float64.
    kind : str
        The kind of tolerance, a key of `TOLERANCES`.
    rtol, atol : float, optional
        Tolerances to use instead: |got - expected| <= atol + rtol * |expected|.

    Returns
    -------
    Agreement
        The largest deviation of each backend. Its str is a small table.

    Raises
    ------
    AssertionError
        A value, shape, dtype or gradient differs, or one backend raises another error than the others. The message contains
        the backend, the inputs with their layouts, the first index that differs, both values, the tolerance and its reason.
    Exception
        The error of the function, if it raises the same one on every backend: test it with `pytest.raises`.

    Notes
    -----
    The python backend takes about 2 us for each element and operation: keep inputs below some thousand elements. At a
    discontinuity (a comparison, a floor), float32 inputs may be on another side of the step than the float64 reference.

    Examples
    --------
    >>> import minifuse as mf
    >>> agreement = assert_backends_agree(lambda x, y: (x * y).sum(0), np.ones((3, 4)), np.arange(4.0))
    >>> [row.backend for row in agreement.rows][:2]
    ['python', 'parallel']
    >>> max(row.value for row in agreement.rows)
    0.0
    """

    def choose_tolerance(got: ndarray, expected_values: ndarray) -> Tolerance:
        if rtol is not None or atol is not None:
            return Tolerance(rtol or 0.0, atol or 0.0, "given by the caller")
        n = max((a.size for a in inputs), default=1)  # a result may combine all elements of the inputs
        return tolerance_for(kind, BY_NUMPY[got.dtype], n, max_magnitude(expected_values, *inputs))

    rows = []
    for dtype in dtypes or (None,):
        inputs = [as_float_dtype(with_element_strides(np.asarray(a)), dtype) for a in arrays]
        reference = run_on_backend(fn, [as_float_dtype(a, "float64") for a in inputs], "python", gradients)
        runs = [run_on_backend(fn, inputs, name, gradients) for name in backend_names(backends)]
        compare_errors(runs)
        if runs[0].error:
            raise runs[0].error
        if reference.error:
            raise AssertionError(
                f"the reference, python in float64, raised {format_error(reference.error)}; no backend did"
            ) from reference.error
        values = [y.numpy() for y in reference.outputs] if expected is None else as_arrays(expected)
        for r in runs:
            compare_shapes_and_dtypes(runs[0], r)
            rows.append(compare_with_expected(r, values, reference.gradients, choose_tolerance))
    return Agreement(tuple(rows))


def assert_close(
    got: Tensor,
    expected: ArrayLike,
    kind: str = "program",
    *,
    n: int = 1,
    scale: float | None = None,
    what: str = "the result",
) -> None:
    """Compare a tensor with expected values, with the tolerance for a kind of operation.

    Parameters
    ----------
    got : Tensor
        The result. Its dtype determines the tolerance.
    expected : array_like
        The expected values, preferably in float64. They are rounded to the dtype of the result.
    kind, n, scale
        As in `tolerance_for`. Default of the scale: the largest expected magnitude.
    what : str
        The name of the result in the message.

    Raises
    ------
    AssertionError
        The shapes or values differ. NaN equals NaN.

    Examples
    --------
    >>> import minifuse as mf
    >>> assert_close(mf.exp(mf.tensor([0.0, 1.0])), [1.0, np.e], "transcendental")
    """
    expected_values = np.asarray(expected)
    scale = max_magnitude(expected_values) if scale is None else scale
    compare_arrays(np.asarray(got), expected_values, tolerance_for(kind, got.dtype, n, scale), what)


def backend_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the requested backends, or of all; raise BackendError for an unknown one."""
    return tuple(get_backend(name).name for name in (backends() if names is None else names))


def with_element_strides(array: ndarray) -> ndarray:
    """Return an array whose strides are multiples of its itemsize: itself, or a copy."""
    return array.copy() if any(stride % array.itemsize for stride in array.strides) else array


def as_float_dtype(array: ndarray, dtype: DType | str | None) -> ndarray:
    """Convert a float array to another dtype, in the same layout."""
    if dtype is None or array.dtype.kind != "f":
        return array
    flat, layout = Operand.from_array(array)
    return Operand(flat.astype(as_dtype(dtype).numpy), layout).array()


def run_on_backend(fn: Callable[..., object], arrays: Sequence[ndarray], backend: str, wants_gradients: bool) -> BackendRun:
    """Call the function with copies of the arrays, and compute gradients if requested."""
    run = BackendRun(backend, [copy_to_tensor(array, backend, wants_gradients) for array in arrays])
    with use_backend(backend):
        try:
            run.outputs = as_tensor_list(fn(*run.inputs))
            if wants_gradients:
                for y, weight in weighted_outputs(run.outputs):
                    if y.requires_grad:
                        y.backward(weight, retain_graph=True)
        except Exception as error:  # any error: all backends must raise the same one
            run.error = error
    run.gradients = [None if x.grad is None else x.grad.numpy() for x in run.inputs]
    return run


def copy_to_tensor(array: ndarray, backend: str, requires_grad: bool) -> Tensor:
    """Create a tensor from a copy of an array, in the same layout."""
    flat, layout = Operand.from_array(array)
    x = Tensor.from_numpy(Operand(flat.copy(), layout).array(), get_backend(backend))
    x.requires_grad = requires_grad and x.dtype.is_float
    return x


def as_tensor_list(result: Any) -> list[Tensor]:
    """Return the result of a function as a list of tensors."""
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    for y in outputs:
        if not isinstance(y, Tensor):
            raise DTypeError(f"the function returned {type(y).__name__}, expected a tensor or a tuple of tensors")
    return outputs


def weighted_outputs(outputs: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Iterate over float outputs and their gradients: fixed random weights, equal in float32 and float64."""
    for k, y in enumerate(outputs):
        if y.dtype.is_float:
            weights = np.random.default_rng(k).uniform(0.5, 1.5, y.shape).astype(np.float32)
            yield y, y.asarray_like(weights.astype(y.dtype.numpy))


def as_arrays(expected: ArrayLike | tuple[ArrayLike, ...]) -> list[ndarray]:
    """Return one expected array, or a tuple of them, as a list."""
    return [np.asarray(x) for x in (expected if isinstance(expected, tuple) else (expected,))]


def max_magnitude(*arrays: ndarray) -> float:
    """Return the largest finite magnitude in the arrays."""
    finite_magnitudes = [np.abs(a[np.isfinite(a)], dtype=np.float64) for a in arrays if a.size and a.dtype.kind != "b"]
    return max((float(a.max()) for a in finite_magnitudes if a.size), default=0.0)


def compare_errors(runs: Sequence[BackendRun]) -> None:
    """Raise AssertionError unless all backends raise the same error, or none."""
    for r in runs[1:]:
        a, b = runs[0].error, r.error
        if type(a) is not type(b) or str(a) != str(b):
            lines = [f"{x.backend}: {format_error(x.error)}" for x in (runs[0], r)]
            raise AssertionError("\n".join(["backends raise different errors", *lines, format_inputs(r)])) from a or b


def format_error(error: Exception | None) -> str:
    """Format an error as one line."""
    return f"{type(error).__name__}: {error}" if error else "no error"


def compare_shapes_and_dtypes(first: BackendRun, r: BackendRun) -> None:
    """Raise AssertionError unless number, shapes and dtypes of the outputs are equal."""
    signatures = [[(y.dtype.name, y.shape) for y in x.outputs] for x in (first, r)]
    if signatures[0] != signatures[1]:
        raise AssertionError(
            f"{first.backend} returned {signatures[0]}, {r.backend} returned {signatures[1]}\n{format_inputs(r)}"
        )


def compare_with_expected(
    r: BackendRun,
    values: Sequence[ndarray],
    gradients: Sequence[ndarray | None],
    choose_tolerance: Callable[[ndarray, ndarray], Tolerance],
) -> Deviation:
    """Compare the values and gradients of a run with the expected ones."""
    if len(values) != len(r.outputs):
        raise AssertionError(
            f"{r.backend}: the function returned {len(r.outputs)} outputs, expected {len(values)}\n{format_inputs(r)}"
        )
    value = gradient = 0.0
    found = list[Difference | None]()
    for k, (y, expected_values) in enumerate(zip([y.numpy() for y in r.outputs], values, strict=True)):
        most, first = compare_arrays(y, expected_values, choose_tolerance(y, expected_values), f"output {k}", r)
        value, found = max(value, most), [*found, first]
    for k, (got, reference_gradient) in enumerate(zip(r.gradients, gradients, strict=True)):
        if (got is None) is not (reference_gradient is None):
            what = "no gradient" if got is None else "a gradient"
            raise AssertionError(f"{r.backend}: input {k} got {what}, unlike the reference\n{format_inputs(r)}")
        if got is not None and reference_gradient is not None:
            most, first = compare_arrays(
                got, reference_gradient, choose_tolerance(got, reference_gradient), f"the gradient of input {k}", r
            )
            gradient, found = max(gradient, most), [*found, first]
    return Deviation(r.backend, tuple(x.dtype.name for x in r.inputs), value, gradient, next(filter(None, found), None))


def compare_arrays(
    got: ndarray, expected: ndarray, tolerance: Tolerance, what: str, r: BackendRun | None = None
) -> tuple[float, Difference | None]:
    """Return the largest difference and the first; raise AssertionError with details on the first one that is too large."""
    label = f"{r.backend}: {what}" if r else what
    if got.shape != expected.shape:
        raise AssertionError(
            "\n".join([f"{label} has shape {got.shape}, expected {expected.shape}", *[format_inputs(r)] * bool(r)])
        )
    with np.errstate(all="ignore"):
        expected_values = expected.astype(got.dtype)
        if got.dtype.kind == "f":
            is_finite = np.isfinite(got) & np.isfinite(expected_values)
            distance = np.where(is_finite, np.abs(got.astype(np.float64) - expected_values), 0.0)
            is_same = (got == expected_values) | (np.isnan(got) & np.isnan(expected_values))
            limit = tolerance.atol + tolerance.rtol * np.abs(expected_values, dtype=np.float64)
            is_close = is_same | (is_finite & (distance <= limit))
        else:
            is_close = is_same = got == expected_values
            distance = np.abs(got.astype(np.float64) - expected_values.astype(np.float64))

    def first_of(differs: ndarray) -> Difference:
        index = tuple(int(i) for i in np.argwhere(differs)[0])
        return Difference(what, index, str(expected_values[index]), str(got[index]))

    if is_close.all():
        return float(distance.max(initial=0.0)), None if is_same.all() else first_of(~is_same)
    first = first_of(~is_close)
    raise DisagreementError(
        "\n".join(
            [
                f"{label} is wrong at {np.count_nonzero(~is_close)} of {got.size} elements, {got.dtype} {got.shape}",
                f"first at    {first.index}: expected {first.expected}, got {first.got}",
                f"allowed     rtol {tolerance.rtol:.2g}, atol {tolerance.atol:.2g}: {tolerance.reason}",
                *[format_inputs(r)] * bool(r),
            ]
        ),
        first,
    )


def format_inputs(r: BackendRun | None) -> str:
    """Format the inputs of a run, one in each line."""
    xs = r.inputs if r else []
    return "\n".join(f"input {k:<6}{x.dtype} {x.shape}, strides {x.strides}, offset {x.offset}" for k, x in enumerate(xs))

"""Strategies for Hypothesis: shapes, dtypes, layouts, arrays, tensors and random programs. Needs Hypothesis."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..creation import from_numpy
from ..dtypes import DTYPES, DType, as_dtype, float32
from ..errors import MissingPartError
from ..tensor import Tensor
from . import programs
from .programs import Operation, Program, Step
from .views import Recipe

try:
    from hypothesis import strategies as st
except ModuleNotFoundError:
    raise MissingPartError(
        'the strategies of mf.testing need Hypothesis, which is not installed; run: pip install "minifuse[test]"'
    ) from None

Shape = tuple[int, ...]
Draw = Callable[[st.SearchStrategy[Any]], Any]
MOST_VIEWS = 4
SIDES = (3, 2, 5, 1, 7, 4, 6)  # of the inputs of programs; the first are the simplest
LARGE = 10  # values above this are brought back


def shapes(min_dims: int = 0, max_dims: int = 4, max_side: int = 5, min_side: int = 0) -> st.SearchStrategy[Shape]:
    """Shapes of up to `max_dims` dims.

    Parameters
    ----------
    min_dims, max_dims : int
        How many dims, ends included.
    max_side, min_side : int
        How large each dim, ends included; 0 gives arrays without elements too.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(shapes(min_dims=2, min_side=1), lambda shape: True)
    (1, 1)
    """
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes(kinds: str = "fib") -> st.SearchStrategy[DType]:
    """Element types of the kinds that are named by letters: floats, integers, bool.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(dtypes("i"), lambda dtype: dtype.itemsize == 8)
    int64
    """
    return st.sampled_from([dtype for dtype in DTYPES if dtype.numpy.kind in kinds])


@st.composite
def layouts(draw: Draw, shape: Shape) -> Recipe:
    """Ways to see an array of a shape in another: permuted, sliced with steps, flipped, cut out, expanded, with new dims.

    Returns
    -------
    strategy of Recipe
        Called with an array, tensor or node of shape `recipe.base`, it gives a view of shape `shape`. It shrinks to no view.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(layouts((2, 3)), lambda recipe: len(recipe.steps) > 0 and recipe.base == (3, 2))
    x.permute(1, 0) of (3, 2)
    """
    steps: list[tuple[str, tuple[Any, ...]]] = []
    for _ in range(draw(st.integers(0, MOST_VIEWS))):  # from the last view back to the first
        method, argument, shape = draw(st.sampled_from([_permuted, _sliced, _chosen, _expanded, _without_new]))(draw, shape)
        if argument:
            steps.insert(0, (method, argument))
    return Recipe(shape, steps)


View = tuple[str, tuple[Any, ...], Shape]  # method, argument, and the shape before


def _permuted(draw: Draw, shape: Shape) -> View:
    order = tuple(draw(st.permutations(range(len(shape)))))
    before = dict(zip(order, shape, strict=True))
    return "permute", order, tuple(before[d] for d in range(len(shape)))


def _sliced(draw: Draw, shape: Shape) -> View:
    """Every dim as a slice of a longer one: with a step, backwards, away from the ends."""
    entries, before = [], []
    for n in shape:
        step, start, rest = draw(st.sampled_from([1, -1, 2, -2, 3])), draw(st.integers(0, 2)), draw(st.integers(0, 2))
        span = abs(step) * (n - 1) + 1 if n else 0
        size = start + span + rest
        last = start + span  # one after the highest place that is taken
        entries.append(slice(start, last, step) if step > 0 else slice(last - 1, start - 1 if start else None, step))
        before.append(size)
        if not n:
            entries[-1] = slice(start, start)
    return "index", tuple(entries), tuple(before)


def _chosen(draw: Draw, shape: Shape) -> View:
    """A place in one more dim."""
    dim, size = draw(st.integers(0, len(shape))), draw(st.integers(2, 3))
    place = draw(st.integers(-size, size - 1))
    return "index", (*[slice(None)] * dim, place), (*shape[:dim], size, *shape[dim:])


def _expanded(draw: Draw, shape: Shape) -> View:
    """Some dims repeated, some of the first ones new."""
    new = draw(st.integers(0, len(shape)))
    before = tuple(1 if draw(st.booleans()) else n for n in shape[new:])
    return "expand", shape, before


def _without_new(draw: Draw, shape: Shape) -> View:
    """Dims of size 1 that were not there before."""
    is_new = [n == 1 and draw(st.booleans()) for n in shape]
    entries = tuple(None if new else slice(None) for new in is_new)
    return "index", entries if any(is_new) else (), tuple(n for n, new in zip(shape, is_new, strict=True) if not new)


def arrays(
    shape: Shape, dtype: DType | str = float32, domain: tuple[float, float] = (-2.0, 2.0)
) -> st.SearchStrategy[npt.NDArray[Any]]:
    """NumPy arrays of random numbers between the ends of a domain; of integers both ends, of bools the domain means nothing.

    Only the seed is drawn: a new array costs as much whatever its size, and does not shrink.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(arrays((2, 3), "int32", (5, 5)), lambda array: True)
    array([[5, 5, 5],
           [5, 5, 5]], dtype=int32)
    """
    kind, (low, high) = as_dtype(dtype).numpy, domain

    def filled(seed: int) -> npt.NDArray[Any]:
        random = np.random.default_rng(seed)
        if kind.kind == "b":
            return random.random(shape) < 0.5
        if kind.kind == "i":
            return random.integers(int(low), int(high), shape, kind, endpoint=True)
        return np.asarray(random.uniform(low, high, shape), kind)

    return st.integers(0, 2**32 - 1).map(filled)


@st.composite
def tensors(
    draw: Draw,
    shape: Shape,
    dtype: DType | str = float32,
    domain: tuple[float, float] = (-2.0, 2.0),
    backend: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Tensors of a shape in any layout: views of a larger tensor, whose elements lie in a domain.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(tensors((2, 3)), lambda x: not x.is_contiguous()).shape
    (2, 3)
    """
    recipe = draw(layouts(shape))
    x: Tensor = recipe(from_numpy(draw(arrays(recipe.base, dtype, domain)), backend))
    return x.requires_grad_() if requires_grad else x


@st.composite
def expressions(
    draw: Draw,
    depth: int = 6,
    inputs: int = 2,
    max_dims: int = 3,
    max_side: int = 5,
    rounding: bool = False,
) -> Program:
    """Random programs over several inputs that broadcast: arithmetic, choices, folds, views, products and casts.

    Parameters
    ----------
    depth : int
        The most steps; a value that grows large costs one more.
    inputs : int
        How many.
    max_dims, max_side : int
        Of the inputs; at most 7.
    rounding : bool
        Whether values may be cast to float32 on the way.

    Returns
    -------
    strategy of Program
        Its outputs are all values that no step uses. They stay moderate for inputs between -1.5 and 1.5; no dim is empty.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(expressions(), lambda program: True)
    def program(x0, x1):  # (3,), (3,)
        t0 = -x1
        return t0
    """
    whole = tuple(
        draw(st.lists(st.sampled_from([n for n in SIDES if n <= max_side]), min_size=1, max_size=max_dims, unique=True))
    )
    sizes = [whole] + [draw(_broadcasting(whole)) for _ in range(inputs - 1)]
    random = np.random.default_rng(0)
    samples: list[Any] = [np.asarray(random.uniform(-1.5, 1.5, shape)) for shape in sizes]
    steps: list[Step] = []

    def add(operation: Operation, *operands: int) -> None:
        samples.append(np.asarray(operation.run(programs.NUMPY, *[samples[k] for k in operands])))
        steps.append(Step(operation, operands))

    makers = [_unary, _binary, _binary, _fold, _view, _product] + [_cast] * rounding
    for _ in range(draw(st.integers(1, depth))):
        add(*draw(st.sampled_from(makers))(draw, samples))
        if np.abs(samples[-1]).max() > LARGE:
            add(programs.SQUASH, len(samples) - 1)
    used = {k for step in steps for k in step.operands}
    return Program(sizes, steps, [k for k in range(inputs, len(samples)) if k not in used])


def _broadcasting(shape: Shape) -> st.SearchStrategy[Shape]:
    """Shapes that expand to a shape."""
    ones = st.tuples(*[st.sampled_from([n, n, 1]) for n in shape])
    return st.sampled_from([0, 0, 1]).flatmap(lambda k: ones.map(lambda sizes: sizes[k:]))


def _place(draw: Draw, samples: Sequence[Any], fits: Callable[[Any], bool] = lambda x: True) -> int:
    """A value that fits, every other time the newest."""
    found = [k for k in reversed(range(len(samples))) if fits(samples[k])]
    return int(draw(st.sampled_from(found[:1] * len(found) + found)))


def _unary(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    return programs.UNARY[draw(st.sampled_from(list(programs.UNARY)))], _place(draw, samples)


def _binary(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    k = _place(draw, samples)
    fitting = [j for j, x in enumerate(samples) if j != k and _broadcasts(x.shape, samples[k].shape)]
    j = draw(st.sampled_from(fitting or [k]))
    return programs.BINARY[draw(st.sampled_from(list(programs.BINARY)))], k, j


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def _fold(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    k = _place(draw, samples)
    if not samples[k].ndim:
        return _unary(draw, samples)
    dim = draw(st.integers(-samples[k].ndim, samples[k].ndim - 1))
    return programs.folding(draw(st.sampled_from(list(programs.FOLDS))), dim, draw(st.booleans())), k


def _view(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    k = _place(draw, samples)
    shape = samples[k].shape
    makers = [_slices, _repeats, _flat] + [_permutation] * (len(shape) > 1)
    return programs.viewing(*draw(st.sampled_from(makers))(draw, shape)), k


def _permutation(draw: Draw, shape: Shape) -> tuple[str, tuple[Any, ...]]:
    return "permute", tuple(draw(st.permutations(range(len(shape)))))


def _slices(draw: Draw, shape: Shape) -> tuple[str, tuple[Any, ...]]:
    entries: list[Any] = []
    for n in shape:
        few = slice(1, None) if n > 1 else slice(None)
        entries.append(draw(st.sampled_from([slice(None), slice(None, None, -1), slice(None, None, 2), few, n - 1])))
    entries.insert(draw(st.integers(0, len(shape))), None)
    return "index", tuple(entries)


def _repeats(draw: Draw, shape: Shape) -> tuple[str, tuple[Any, ...]]:
    return "expand", (draw(st.integers(1, 3)), *shape)


def _flat(draw: Draw, shape: Shape) -> tuple[str, tuple[Any, ...]]:
    return "reshape", (-1,) if draw(st.booleans()) or not shape else (shape[0], -1)


def _product(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    """Of two values whose inner sizes agree; else of a matrix and its transpose."""
    k = _place(draw, samples, lambda x: x.ndim > 1 or x is samples[0])
    a = samples[k]

    def fits(b: Any) -> bool:
        inner = b.shape[-2:-1] if b.ndim > 1 else b.shape
        return inner == a.shape[-1:] and _broadcasts(a.shape[:-2], b.shape[:-2])

    if not any(map(fits, samples)):
        return programs.multiplying(a.shape[-1], transposed=True), k
    return programs.multiplying(a.shape[-1]), k, _place(draw, samples, fits)


def _cast(draw: Draw, samples: Sequence[Any]) -> tuple[Any, ...]:
    return programs.ROUNDING, _place(draw, samples)

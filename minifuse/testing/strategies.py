"""Strategies for Hypothesis: shapes, dtypes, layouts, arrays, tensors and random programs. Needs Hypothesis."""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np

from ..core.dtypes import DTYPES, DType, as_dtype, float32
from ..core.errors import MissingPartError
from ..core.indexing import Entry, Shape
from ..tensors.creation import from_numpy
from ..tensors.tensor import Tensor
from . import programs
from .programs import Operation, Program, ProgramStep
from .views import Recipe, ViewArguments

try:
    from hypothesis import strategies as st
except ModuleNotFoundError:
    raise MissingPartError(
        'the strategies of mf.testing need Hypothesis, which is not installed; run: pip install "minifuse[test]"'
    ) from None

StepChoice = tuple[Operation, *tuple[int, ...]]  # an operation and its operands
MAX_VIEWS = 4
DIM_SIZES = (3, 2, 5, 1, 7, 4, 6)  # sizes of the dims of program inputs; the first are the simplest
MAX_MAGNITUDE = 10  # tanh reduces values that are larger


def shapes(min_dims: int = 0, max_dims: int = 4, max_side: int = 5, min_side: int = 0) -> st.SearchStrategy[Shape]:
    """Strategy for shapes of up to `max_dims` dims.

    Parameters
    ----------
    min_dims, max_dims : int
        Numbers of dims, ends included.
    max_side, min_side : int
        Sizes of dims, ends included; 0 allows arrays without elements.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(shapes(min_dims=2, min_side=1), lambda shape: True)
    (1, 1)
    """
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes(kinds: str = "fib") -> st.SearchStrategy[DType]:
    """Strategy for dtypes of the given kinds: "f" for floats, "i" for signed integers, "u" for uint8, "b" for bool.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(dtypes("i"), lambda dtype: dtype.itemsize == 8)
    int64
    """
    return st.sampled_from([dtype for dtype in DTYPES if dtype.numpy.kind in kinds])


@st.composite
def layouts(draw: st.DrawFn, shape: Shape) -> Recipe:
    """Strategy for views with a given shape: permuted, sliced with steps, flipped, indexed, expanded, with new dims.

    Returns
    -------
    strategy of Recipe
        Called with an array, tensor or node of shape `recipe.base`, it returns a view of shape `shape`. Shrinks to no view.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(layouts((2, 3)), lambda recipe: len(recipe.steps) > 0 and recipe.base == (3, 2))
    x.permute(1, 0) of (3, 2)
    """
    steps: list[tuple[str, ViewArguments]] = []
    for _ in range(draw(st.integers(0, MAX_VIEWS))):  # from the last view back to the first
        method, argument, shape = draw(st.sampled_from([_permuted, _sliced, _indexed, _expanded, _with_new_dims]))(
            draw, shape
        )
        if argument:
            steps.insert(0, (method, argument))
    return Recipe(shape, steps)


View = tuple[str, ViewArguments, Shape]  # method, argument, and the shape to which the view is applied


def _permuted(draw: st.DrawFn, shape: Shape) -> View:
    order = tuple(draw(st.permutations(range(len(shape)))))
    base_sizes = dict(zip(order, shape, strict=True))
    return "permute", order, tuple(base_sizes[d] for d in range(len(shape)))


def _sliced(draw: st.DrawFn, shape: Shape) -> View:
    """Slice each dim from a longer one: with a step, reversed, or away from the ends."""
    entries, base_sizes = [], []
    for n in shape:
        step, start, remaining = draw(st.sampled_from([1, -1, 2, -2, 3])), draw(st.integers(0, 2)), draw(st.integers(0, 2))
        span = abs(step) * (n - 1) + 1 if n else 0
        size = start + span + remaining
        stop = start + span  # one after the highest selected index
        entries.append(slice(start, stop, step) if step > 0 else slice(stop - 1, start - 1 if start else None, step))
        base_sizes.append(size)
        if not n:
            entries[-1] = slice(start, start)
    return "index", tuple(entries), tuple(base_sizes)


def _indexed(draw: st.DrawFn, shape: Shape) -> View:
    """Select an index of an additional dim."""
    dim, size = draw(st.integers(0, len(shape))), draw(st.integers(2, 3))
    i = draw(st.integers(-size, size - 1))
    return "index", (*[slice(None)] * dim, i), (*shape[:dim], size, *shape[dim:])


def _expanded(draw: st.DrawFn, shape: Shape) -> View:
    """Expand some dims, and add new ones in front."""
    new_dims = draw(st.integers(0, len(shape)))
    base_sizes = tuple(1 if draw(st.booleans()) else n for n in shape[new_dims:])
    return "expand", shape, base_sizes


def _with_new_dims(draw: st.DrawFn, shape: Shape) -> View:
    """Add new dims of size 1."""
    is_new = [n == 1 and draw(st.booleans()) for n in shape]
    entries = tuple(None if new else slice(None) for new in is_new)
    return "index", entries if any(is_new) else (), tuple(n for n, new in zip(shape, is_new, strict=True) if not new)


def arrays(
    shape: Shape, dtype: DType | str = float32, domain: tuple[float, float] = (-2.0, 2.0)
) -> st.SearchStrategy[np.ndarray]:
    """Strategy for NumPy arrays of random numbers in a domain (ignored for bools; of integers both ends included).

    Only the seed is drawn: arrays of any size cost the same, and do not shrink.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(arrays((2, 3), "int32", (5, 5)), lambda array: True)
    array([[5, 5, 5],
           [5, 5, 5]], dtype=int32)
    """
    element_type, (low, high) = as_dtype(dtype).numpy, domain
    if element_type.kind in "iu":
        low, high = max(low, np.iinfo(element_type).min), min(high, np.iinfo(element_type).max)

    def fill(seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        if element_type.kind == "b":
            return random.random(shape) < 0.5
        if element_type.kind in "iu":
            return random.integers(int(low), int(high), shape, element_type, endpoint=True)
        return np.asarray(random.uniform(low, high, shape), element_type)

    return st.integers(0, 2**32 - 1).map(fill)


@st.composite
def tensors(
    draw: st.DrawFn,
    shape: Shape,
    dtype: DType | str = float32,
    domain: tuple[float, float] = (-2.0, 2.0),
    backend: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Strategy for tensors of a shape in any layout: views of a larger tensor, with elements in a domain.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(tensors((2, 3)), lambda x: not x.is_contiguous()).shape
    (2, 3)
    """
    recipe = draw(layouts(shape))
    x = recipe(from_numpy(draw(arrays(recipe.base, dtype, domain)), backend))
    return x.requires_grad_() if requires_grad else x


def expressions(
    depth: int = 8, inputs: int = 2, max_dims: int = 3, max_side: int = 7, rounding: bool = False
) -> st.SearchStrategy[Program]:
    """Strategy for random programs with several broadcasting inputs: arithmetic, reductions, views, matmuls and casts.

    Parameters
    ----------
    depth : int
        The largest number of steps. One more step is added for each large value, to reduce its magnitude.
    inputs : int
        Number of inputs.
    max_dims, max_side : int
        Limits of the input shapes; sizes are at most 7. In most programs all sizes differ, in some all are equal.
    rounding : bool
        If True, values may be cast to float32.

    Returns
    -------
    strategy of Program
        Its outputs are all values that no step uses. They stay moderate for inputs between -1.5 and 1.5; no dim is empty.
        Only a seed and the number of steps are drawn, so it shrinks to the first steps of a program.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(expressions(inputs=1), lambda program: len(program.steps) == 1)  # doctest: +ELLIPSIS
    def program(x0):  # ...
        t0 = ...
        return t0
    """
    sides = [n for n in DIM_SIZES if n <= max_side]

    def build(seed: int, count: int) -> Program:
        random = Random(seed)
        full_shape = tuple(random.sample(sides, random.randint(1, min(max_dims, len(sides)))))
        # with equal sizes, exchanged dims do not change a shape, so only the values are wrong
        full_shape = full_shape if random.random() < 0.8 else full_shape[:1] * len(full_shape)
        shapes = [full_shape] + [_broadcasting(random, full_shape) for _ in range(inputs - 1)]
        return _ProgramBuilder(random, shapes, rounding).program(count)

    return st.builds(build, st.integers(0, 2**32 - 1), st.integers(1, depth))


def _broadcasting(random: Random, shape: Shape) -> Shape:
    """Return a shape that broadcasts to the given shape; half of the time that shape itself."""
    if random.random() < 0.5:
        return shape
    return tuple(random.choice([n, 1]) for n in shape)[random.randint(0, 1) :]


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


class _ProgramBuilder:
    """A program under construction, with a sample of each value, from which its shape and magnitude are read."""

    def __init__(self, random: Random, shapes: Sequence[Shape], rounding: bool) -> None:
        self.random, self.shapes, self.steps = random, shapes, list[ProgramStep]()
        numbers = np.random.default_rng(0)
        self.samples = [np.asarray(numbers.uniform(-1.5, 1.5, shape)) for shape in shapes]
        kinds = [self.unary, self.binary, self.binary, self.reduce, self.reduce, self.view, self.product]
        self.kinds = [*kinds, self.cast] if rounding else kinds

    def program(self, count: int) -> Program:
        """Add some steps; values that no step uses are the outputs."""
        for _ in range(count):
            self.add(*self.random.choice(self.kinds)())
            if np.abs(self.samples[-1]).max() > MAX_MAGNITUDE:
                self.add(programs.SQUASH, len(self.samples) - 1)
        used_values = {k for step in self.steps for k in step.operands}
        return Program(
            self.shapes, self.steps, [k for k in range(len(self.shapes), len(self.samples)) if k not in used_values]
        )

    def add(self, operation: Operation, *operands: int) -> None:
        """Append a step."""
        self.samples.append(np.asarray(operation.run(programs.NUMPY, *[self.samples[k] for k in operands])))
        self.steps.append(ProgramStep(operation, operands))

    def choose(self, fits: Callable[[np.ndarray], bool] = lambda x: True) -> int:
        """Return the index of a value that fits, half of the time the newest, or -1 if none fits."""
        fitting = [k for k, x in enumerate(self.samples) if fits(x)]
        return -1 if not fitting else fitting[-1] if self.random.random() < 0.5 else self.random.choice(fitting)

    def unary(self) -> StepChoice:
        return self.random.choice(list(programs.UNARY.values())), self.choose()

    def binary(self) -> StepChoice:
        k = self.choose()
        others = [j for j, x in enumerate(self.samples) if j != k and _broadcasts(x.shape, self.samples[k].shape)]
        operands = [k, self.random.choice(others or [k])]
        self.random.shuffle(operands)
        return self.random.choice(list(programs.BINARY.values())), *operands

    def reduce(self) -> StepChoice:
        k = self.choose(lambda x: x.ndim > 0)
        dim = self.random.choice(range(-self.samples[k].ndim, self.samples[k].ndim))
        return programs.reduce_operation(self.random.choice(list(programs.REDUCTIONS)), dim, self.random.random() < 0.6), k

    def view(self) -> StepChoice:
        k = self.choose()
        shape = self.samples[k].shape
        kinds = [self.slices, self.repeats, self.flat] + [self.permutation] * (len(shape) > 1)
        return programs.view_operation(*self.random.choice(kinds)(shape)), k

    def permutation(self, shape: Shape) -> tuple[str, ViewArguments]:
        return "permute", tuple(self.random.sample(range(len(shape)), len(shape)))

    def slices(self, shape: Shape) -> tuple[str, ViewArguments]:
        slices: list[Entry] = [slice(None), slice(None), slice(None, None, -1), slice(None, None, 2), slice(-2, None)]
        entries = [self.random.choice([*slices, n - 1]) for n in shape]
        if not shape or self.random.random() < 0.3:
            entries.insert(self.random.randint(0, len(shape)), None)
        return "index", tuple(entries)

    def repeats(self, shape: Shape) -> tuple[str, ViewArguments]:
        return "expand", (self.random.randint(2, 3), *shape)

    def flat(self, shape: Shape) -> tuple[str, ViewArguments]:
        return "reshape", self.random.choice([(-1,), (shape[0], -1)]) if shape else (1,)

    def product(self) -> StepChoice:
        """Multiply two values whose inner sizes match, or a matrix and its transpose."""
        k = self.choose(lambda x: x.ndim > 1)
        if k < 0:
            return self.binary()
        a = self.samples[k]
        j = self.choose(lambda b: b.ndim > 0 and b.shape[-2:][0] == a.shape[-1] and _broadcasts(a.shape[:-2], b.shape[:-2]))
        if j < 0:
            return programs.matmul_operation(a.shape[-1], transposed=True), k
        return programs.matmul_operation(a.shape[-1]), k, j

    def cast(self) -> StepChoice:
        return programs.ROUNDING, self.choose()

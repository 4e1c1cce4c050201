"""Every fold on every backend: all choices of dims, layouts, dtypes, long rows and none at all. NumPy is the judge."""

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import pytest

import minifuse as mf
from minifuse.testing import assert_close, gradcheck

from .meanings import ALL, LANES, SHAPE, affordable, view


def count(a, axis):
    return a.size if axis is None else int(np.prod([a.shape[d] for d in np.atleast_1d(np.array(axis, int))]))


def mean(a, axis, keepdims):
    return np.divide(np.sum(a, axis=axis, keepdims=keepdims), count(a, axis))


def var(a, axis, keepdims):
    return np.sum((a - mean(a, axis, True)) ** 2, axis=axis, keepdims=keepdims) / np.float64(max(0, count(a, axis) - 1))


def shifted(a, axis):
    return a - np.max(a, axis=axis, keepdims=True, initial=-np.inf)


def log_softmax(a, axis, keepdims):
    return shifted(a, axis) - np.log(np.exp(shifted(a, axis)).sum(axis, keepdims=True))


class Fold(NamedTuple):
    """A fold: what NumPy says, for dims as a tuple; the kind of its tolerance; and what it takes."""

    numpy: object
    kind: str = "fold"
    takes: str = "dims"  # or "dim": exactly one, or "position": one or all
    keeps: bool = False  # the shape, so that there is no keepdim
    needs: int = 0  # elements along the dims


FOLDS = {
    "sum": Fold(np.sum),
    "prod": Fold(np.prod),
    "max": Fold(np.max, "exact", needs=1),
    "min": Fold(np.min, "exact", needs=1),
    "any": Fold(np.any, "exact"),
    "all": Fold(np.all, "exact"),
    "mean": Fold(mean),
    "var": Fold(var, needs=2),
    "std": Fold(lambda a, axis, keepdims: np.sqrt(var(a, axis, keepdims)), needs=2),
    "argmax": Fold(np.argmax, "exact", "position", needs=1),
    "argmin": Fold(np.argmin, "exact", "position", needs=1),
    "softmax": Fold(lambda a, axis, keepdims: np.exp(log_softmax(a, axis, True)), takes="dim", keeps=True),
    "log_softmax": Fold(log_softmax, takes="dim", keeps=True),
    "logsumexp": Fold(lambda a, axis, keepdims: np.log(np.exp(a).sum(axis, keepdims=keepdims))),
}
FLOATS = {"mean", "var", "std", "softmax", "log_softmax", "logsumexp"}  # what is no float becomes float64
SUBSETS = list(chain.from_iterable(combinations(range(3), k) for k in range(4)))
LAYOUTS = {
    "plain": view(SHAPE),
    "permuted": view((6, 5, 4), permute=(1, 2, 0)),
    "strided": view((11, 4, 12), index=(slice(None, 1, -2), ALL, slice(1, None, 2))),
    "expanded": view((5, 1, 6), expand=SHAPE),
}
MODELS = ("sum", "max", "softmax")  # all others walk memory as one of these does
LENGTHS = [1, 31, 32, 33, 1023, 1025, 65537, 4 * 2**14 + 5, 2**20]

every_fold = pytest.mark.parametrize("name", FOLDS)


def call(name, x, dims, keepdim=False):
    """A fold of a tensor."""
    entry = FOLDS[name]
    if entry.takes != "dims":
        dims = None if entry.takes == "position" and len(dims) != 1 else dims[0]
    return getattr(x, name)(dims) if entry.keeps else getattr(x, name)(dims, keepdim=keepdim)


def judge(name, a, dims, keepdim=False):
    """The same with NumPy in float64."""
    entry = FOLDS[name]
    if entry.takes != "dims":
        dims = None if entry.takes == "position" and len(dims) != 1 else dims[0]
    with np.errstate(all="ignore"):
        wide = a if a.dtype.kind != "f" and name not in FLOATS else a.astype(float)
        return np.asarray(entry.numpy(wide, axis=dims, keepdims=keepdim))


def choices(name):
    """The dims that a fold can be asked for, of three."""
    takes = FOLDS[name].takes
    return [dims for dims in SUBSETS if takes == "dims" or len(dims) == 1 or (takes == "position" and len(dims) == 3)]


def check(name, got, a, dims, keepdim=False):
    """Hold a result against NumPy's."""
    expected = judge(name, a, dims, keepdim)
    n = int(np.prod([a.shape[d] for d in dims]))
    # What is added up: of a product each factor errs, of a mean the sum is divided, of others it is about the values.
    scale = np.abs(expected).max(initial=0) if name == "prod" else n * 2.0 if name == "sum" else 4.0
    assert_close(got, expected, FOLDS[name].kind, n=n, scale=scale, what=f"{name} over {dims} of {a.dtype} on {got.backend}")


def sample(recipe, dtype="float32", seed=0):
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    values = random.uniform(-2, 2, recipe.base) if kind == "f" else random.integers(-3 if kind == "i" else 0, 4, recipe.base)
    return values.astype(dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("layout", "name"), [(a, b) for a in LAYOUTS for b in FOLDS if a in ("plain", "strided") or b in MODELS]
)
def test_every_choice_of_dims_in_every_layout(layout, name, backend):
    recipe = LAYOUTS[layout]
    a = sample(recipe)
    x = recipe(mf.tensor(a))
    for dims in choices(name) if layout == "plain" or name in MODELS else [(0,), (2,)]:
        for keepdim in (False, True):
            check(name, call(name, x, dims, keepdim), recipe(a), dims, keepdim)


@pytest.mark.sampled(2, each="name")
@every_fold
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "bool"])
def test_every_dtype(name, dtype, backend):
    a = sample(view((3, 7)), dtype)
    if dtype == "bool":
        a[1] = [True, False, True, True, False, True, True]
    if dtype == "bool" and FOLDS[name].keeps:  # they subtract, and bools do not, as NumPy's
        with pytest.raises(mf.DTypeError, match="convert bools first"):
            call(name, mf.tensor(a), (1,))
    else:
        got = call(name, mf.tensor(a), (1,))
        assert got.dtype.numpy == judge(name, a, (1,)).dtype
        check(name, got, a, (1,))


@pytest.mark.sampled(4)
@every_fold
@pytest.mark.parametrize(
    ("length", "backend"),
    [(n, backend) for n in LENGTHS for backend in ("parallel", "stranger", "cuda") if affordable(backend, (n,))],
)
def test_reductions_of_any_length(name, length, backend):
    """All of a vector, which goes in pieces where it is long, and the rows of a matrix."""
    a = sample(view((length,)))
    if name == "prod":  # so near 1 that none overflows, in any order
        a = np.exp(a / np.sqrt(length)).astype(np.float32)
    if name in ("any", "all"):
        a = (a * 0 + (name == "all")).astype(np.float32)
        a[-1] = name == "any"
    if length >= FOLDS[name].needs:
        x = mf.tensor(a, backend=backend)
        check(name, call(name, x, (0,)), a, (0,))
        if length <= LANES:
            rows = np.stack([a, a[::-1], a + a])
            check(name, call(name, mf.tensor(rows, backend=backend), (1,)), rows, (1,))


@pytest.mark.sampled(2, each="name")
@every_fold
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)], ids=str)
def test_reductions_of_empty_arrays(name, shape, backend):
    """The identity where there is one, nothing where there are no rows, else an error as NumPy has one."""
    a, dim = np.zeros(shape, np.float32), len(shape) - 1
    x = mf.tensor(a)
    if FOLDS[name].needs == 1 and shape[dim] == 0:
        with pytest.raises(ValueError, match="no elements"):
            call(name, x, (dim,))
        with pytest.raises(ValueError, match=r"identity|empty"):
            judge(name, a, (dim,))
    else:
        check(name, call(name, x, (dim,)), a, (dim,))


@pytest.mark.sampled(2, each="name")
@every_fold
def test_special_values(name, backend):
    """NaN, infinities, ties and zeros of both signs, a row each."""
    a = np.array(
        [
            [1.0, np.nan, 2.0],
            [np.inf, 1.0, -1.0],
            [-np.inf, 2.0, 0.5],
            [np.inf, -np.inf, 1.0],
            [0.0, -0.0, 0.0],
            [2.0, 2.0, -3.0],
            [-np.inf, -np.inf, -np.inf],
            [np.nan, np.inf, np.nan],
        ],
        np.float32,
    )
    if name == "logsumexp":  # infinities are no surprise to it
        expected = [
            np.nan,
            np.inf,
            np.log(np.exp(2.0) + np.exp(0.5)),
            np.inf,
            np.log(3),
            np.log(2 * np.exp(2.0) + np.exp(-3.0)),
        ]
        assert_close(mf.tensor(a).logsumexp(1), [*expected, -np.inf, np.nan], "fold", n=3)
    else:
        check(name, call(name, mf.tensor(a), (1,)), a, (1,))


DIFFERENTIABLE = [name for name in FOLDS if name not in ("any", "all", "argmax", "argmin")]


STEP = 1e-6
# Small ones, since every element is moved by itself; where each fact about a layout shows with one or two choices of dims.
SMALL = [
    (view((3, 2, 4)), (0,)),
    (view((3, 2, 4)), (2,)),
    (view((3, 2, 4)), (0, 1, 2)),
    (view((4, 3, 2), permute=(1, 2, 0)), (0, 2)),
    (view((7, 2, 8), index=(slice(None, 1, -2), ALL, slice(1, None, 2))), (2,)),
    (view((3, 1, 4), expand=(3, 2, 4)), (2, 1)),
]
ALIKE = {"min": "max", "mean": "sum", "std": "var", "log_softmax": "softmax"}  # nearly the same kernels
GRADIENTS = [(name, *place) for name in DIFFERENTIABLE for place in SMALL[: 2 if name in ALIKE else None]]


def differences(name, recipe, a, dims, weights):
    """What each element of the base receives, as NumPy has it."""
    found = np.empty_like(a)
    for index in np.ndindex(a.shape):
        up, down = a.copy(), a.copy()
        up[index] += STEP
        down[index] -= STEP
        found[index] = ((judge(name, recipe(up), dims) - judge(name, recipe(down), dims)) * weights).sum() / (2 * STEP)
    return found


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "recipe", "dims"), GRADIENTS, ids=str)
def test_gradients(name, recipe, dims, backend):
    """Of the base that the views see: so those of the views are in it."""
    dims = dims if FOLDS[name].takes == "dims" else dims[:1]
    random = np.random.default_rng(2)
    a = random.uniform(-1.5, 1.5, recipe.base)
    x = mf.tensor(a, requires_grad=True)
    y = call(name, recipe(x), dims)
    weights = random.uniform(0.5, 1.5, y.shape)
    y.backward(mf.tensor(weights))
    expected = differences(name, recipe, a, dims, weights)
    assert_close(x.grad, expected, "difference", scale=4.0, what=f"the gradient of {name} over {dims}")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_derivatives(name):
    a = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 4))
    assert gradcheck(lambda x: call(name, x, (1,)), mf.tensor(a, requires_grad=True), second=True)


def test_a_product_with_zeros_has_gradients_of_every_order(backend):
    """One zero: only that factor receives something; two: none does."""
    a = np.array([[1.5, 0.0, -2.0, 3.0], [0.0, 2.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    x = mf.tensor(a, requires_grad=True)
    x.prod(1).backward(mf.ones(3, dtype="float64"))
    assert_close(x.grad, [[0, -9, 0, 0], [0, 0, 0, 0], [24, 12, 8, 6]], "fold", n=4)
    assert gradcheck(lambda x: x.prod(1), x.detach().requires_grad_(), second=True)

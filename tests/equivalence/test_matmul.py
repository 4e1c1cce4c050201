"""Products of all ranks, layouts, sizes and dtypes on every backend. NumPy is the judge, differences of the gradients."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.testing import assert_close, gradcheck

from .meanings import ALL, BACKENDS, view

RANKS = [
    ((3,), (3,)),
    ((3,), (3, 5)),
    ((4, 3), (3,)),
    ((4, 3), (3, 5)),
    ((3,), (2, 3, 5)),
    ((2, 4, 3), (3,)),
    ((2, 4, 3), (3, 5)),
    ((4, 3), (2, 3, 5)),
    ((2, 4, 3), (2, 3, 5)),
    ((1, 4, 3), (2, 3, 5)),
    ((6, 1, 4, 3), (2, 3, 5)),
    ((6, 2, 4, 3), (6, 2, 3, 5)),
    ((6, 1, 4, 3), (1, 2, 3, 5)),
]
EMPTY = [((4, 0), (0, 5)), ((0,), (0,)), ((0, 3), (3, 5)), ((4, 3), (3, 0)), ((2, 0, 4, 3), (3, 5)), ((2, 4, 0), (2, 0, 5))]
LARGE = [
    ((33, 65), (65, 17)),
    ((1, 1025), (1025, 1)),
    ((129, 7), (7, 130)),
    ((31, 1023), (1023, 2)),
    ((5, 33, 31), (31, 65)),
]
LEFT = {
    "plain": view((2, 4, 3)),
    "permuted": view((3, 2, 4), permute=(1, 2, 0)),
    "sliced": view((2, 9, 7), index=(ALL, slice(1, None, 2), slice(1, None, 2))),
    "flipped": view((2, 4, 3), index=(slice(None, None, -1), slice(None, None, -1), slice(None, None, -1))),
    "expanded": view((4, 3), expand=(2, 4, 3)),
    "one row repeated": view((2, 1, 3), expand=(2, 4, 3)),
    "one column repeated": view((2, 4, 1), expand=(2, 4, 3)),
    "offset": view((3, 4, 3), index=(slice(1, None),)),
}
RIGHT = {
    "plain": view((2, 3, 5)),
    "permuted": view((2, 5, 3), permute=(0, 2, 1)),
    "sliced": view((2, 6, 11), index=(ALL, slice(None, None, 2), slice(None, 10, 2))),
    "flipped": view((2, 3, 5), index=(ALL, slice(None, None, -1), slice(None, None, -1))),
    "expanded": view((1, 3, 1), expand=(2, 3, 5)),
}


def sample(shape, dtype="float32", seed=0):
    random = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    values = (
        random.uniform(-2, 2, shape)
        if kind == "f"
        else random.integers(-9 if kind == "i" else 0, 10, shape) > (8 * (kind == "b"))
    )
    return (values if kind != "i" else random.integers(-9, 10, shape)).astype(dtype)


def check(got, a, b):
    """Hold a product against NumPy's: in float64, or of integers and bools as they are."""
    wide = [x.astype(float) if x.dtype.kind == "f" else x for x in (a, b)]
    k = a.shape[-1]
    assert got.dtype.numpy == (a[..., :0] @ b[..., :0, :] if b.ndim > 1 else a[..., :0] @ b[:0]).dtype
    assert_close(
        got, wide[0] @ wide[1], "product", n=k, scale=4.0 * max(k, 1), what=f"{a.shape} @ {b.shape} on {got.backend}"
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("left", "right"), RANKS + EMPTY, ids=str)
def test_every_rank_and_none_at_all(left, right, backend):
    a, b = sample(left), sample(right, seed=1)
    check(mf.tensor(a) @ mf.tensor(b), a, b)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("right", RIGHT)
def test_every_layout(left, right, backend):
    a, b = sample(LEFT[left].base), sample(RIGHT[right].base, seed=1)
    check(LEFT[left](mf.tensor(a)) @ RIGHT[right](mf.tensor(b)), LEFT[left](a), RIGHT[right](b))


@pytest.mark.sampled(5, each="dtype")
@pytest.mark.parametrize(("left", "right"), LARGE, ids=str)
@pytest.mark.parametrize("backend", ["parallel", "stranger"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sizes_past_the_edges_of_vectors_and_tiles(left, right, backend, dtype):
    a, b = sample(left, dtype), sample(right, dtype, seed=1)
    x, y = mf.tensor(a, backend=backend), mf.tensor(b, backend=backend)
    check(x @ y, a, b)
    check(y.mT @ x.mT, np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("a", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("b", ["float32", "float64", "int32", "int64", "bool"])
def test_dtypes_promote_as_numpy(a, b, backend):
    x, y = sample((4, 3), a), sample((3, 5), b, seed=1)
    check(mf.tensor(x) @ mf.tensor(y), x, y)


def test_nan_and_infinity_reach_only_their_row_and_column(backend):
    a = np.array([[1.0, np.nan, 2.0], [np.inf, 0.0, 1.0], [1.0, 2.0, 3.0]], np.float32)
    b = np.array([[0.0, 1.0], [1.0, 2.0], [-1.0, 0.5]], np.float32)
    with np.errstate(invalid="ignore"):
        check(mf.tensor(a) @ mf.tensor(b), a, b)


def check_gradients(function, a, b):
    """By differences; where each of so many launches goes lane by lane, against those of a backend that has passed."""
    if a.backend != "cuda":
        assert gradcheck(function, a, b)
        return
    found = []
    for backend in ("cuda", "parallel"):
        xs = [x.detach().to(backend).requires_grad_() for x in (a, b)]
        y = function(*xs)
        y.backward(mf.tensor(np.random.default_rng(2).uniform(0.5, 1.5, y.shape), backend=backend))
        found.append([x.grad.numpy() for x in xs])
    for got, expected in zip(*found, strict=True):
        assert_close(got, expected, "product", n=a.size + b.size, scale=16.0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("left", "right", "backend"),
    [
        (*shapes, backend)
        for shapes in RANKS
        for backend in BACKENDS
        if backend != "cuda" or len(shapes[0]) + len(shapes[1]) <= 5
    ],
    ids=str,
)
def test_gradients_of_every_rank(left, right, backend):
    a, b = [mf.tensor(sample(s, "float64"), requires_grad=True, backend=backend) for s in (left, right)]
    check_gradients(lambda a, b: a @ b, a, b)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("left", "right"), [("sliced", "permuted"), ("flipped", "expanded"), ("one row repeated", "flipped")]
)
def test_gradients_in_other_layouts(left, right, backend):
    a, b = [mf.tensor(sample(r.base, "float64"), requires_grad=True) for r in (LEFT[left], RIGHT[right])]
    check_gradients(lambda a, b: LEFT[left](a) @ RIGHT[right](b), a, b)


@pytest.mark.parametrize("backend", [backend for backend in BACKENDS if backend != "cuda"])
def test_second_derivatives(backend):
    a, b = [mf.tensor(sample(s, "float64"), requires_grad=True) for s in ((2, 3), (3, 2))]
    assert gradcheck(lambda a, b: (a @ b) * (a @ b), a, b, second=True)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4, 3), (4, 5), "rows of a have 3 elements.*columns of b have 4"),
        ((3,), (4,), "rows of a have 3 elements.*columns of b have 4"),
        ((), (3,), "at least 1 dim"),
        ((2, 4, 3), (5, 3, 5), "broadcast"),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit(left, right, message, backend):
    with pytest.raises(mf.ShapeError, match=message):
        mf.zeros(left) @ mf.zeros(right)

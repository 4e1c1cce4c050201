"""ir.array_functions: shapes and dtypes of results, gradients, and interning of equal functions."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core import operators as op
from minifuse.core.dtypes import bool_, float32, float64, int64
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.ir.array_functions import BoundFunction, Cast, Copy, Full, Function, Matmul, PadSlice, Reduce, View, matmul
from minifuse.ir.graph import Argument, Node


def array(*shape, dtype=float32, index=0):
    return Node(Argument(index), (), shape, dtype)


def test_equal_functions_are_one_object():
    assert Reduce(op.add, (0, 1)) is Reduce(op.add, (0, 1))
    assert Reduce(op.add, (0,)) is not Reduce(op.mul, (0,))
    assert View("permute", (1, 0)) is View("permute", (1, 0))
    assert BoundFunction(len, (1, True)) is BoundFunction(len, (1, True))
    assert Matmul() is Matmul()
    assert Cast(float32) is Cast(float32)


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    [
        (View("permute", (1, 0)), [array(2, 3)], ((3, 2), float32)),
        (View("reshape", (6,)), [array(2, 3)], ((6,), float32)),
        (View("slice", ((1, 1, 1), (0, 2, 2))), [array(2, 3)], ((1, 2), float32)),
        (View("expand", (4, 2, 3)), [array(2, 3)], ((4, 2, 3), float32)),
        (PadSlice((5, 6), ((1, 1, 2), (0, 2, 3))), [array(2, 3)], ((5, 6), float32)),
        (Reduce(op.add, (1,)), [array(2, 3)], ((2, 1), float32)),
        (Reduce(op.maximum, (0, 1)), [array(2, 3, dtype=int64)], ((1, 1), int64)),
        (Matmul(), [array(7, 2, 3), array(7, 3, 5)], ((7, 2, 5), float32)),
        (Cast(bool_), [array(2, 3)], ((2, 3), bool_)),
        (Copy(), [array(2, 3)], ((2, 3), float32)),
        (Full((4, 5), float64), [2.5], ((4, 5), float64)),
    ],
    ids=lambda x: repr(x) if isinstance(x, Function) else "",
)
def test_shapes_and_dtypes(function, inputs, expected):
    assert function.infer(*inputs) == expected


def test_only_operators_with_an_identity_reduce():
    with pytest.raises(DTypeError, match="sub has no identity"):
        Reduce(op.sub, (0,)).infer(array(2, 3))


def test_repr_names_the_function():
    assert [
        repr(f)
        for f in (View("permute", (1, 0)), Reduce(op.add, (0,)), Matmul(), Cast(float64), Copy(), Full((2,), float32))
    ] == [
        "permute(1, 0)",
        "reduce add over dims (0,)",
        "matmul",
        "to float64",
        "copy",
        "full (2,)",
    ]
    assert repr(PadSlice((4,), ((0, 1, 2),))) == "pad_slice in (4,)"
    assert repr(BoundFunction(test_repr_names_the_function, (1,))) == "test_repr_names_the_function(1,)"


# Gradients: <function(x), g> differentiated by x, for a linear function, is its transpose applied to g


LINEAR = {
    "permute": (View("permute", (2, 0, 1)), (3, 4, 5)),
    "slice": (View("slice", ((2, -1, 3), (0, 2, 2), (1, 1, 3))), (3, 4, 5)),
    "flip": (View("slice", ((2, -1, 3), (0, 1, 4))), (3, 4)),
    "slice of nothing": (View("slice", ((0, 1, 0), (0, 1, 4))), (3, 4)),
    "expand": (View("expand", (2, 3, 6, 5)), (3, 1, 5)),
    "reshape": (View("reshape", (5, 12)), (3, 4, 5)),
    "embed": (PadSlice((5, 9), ((4, -2, 2), (1, 2, 4))), (2, 4)),
    "sum": (Reduce(op.add, (0, 2)), (3, 4, 5)),
    "cast": (Cast(float64), (3, 4)),
    "copy": (Copy(), (3, 4)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_gradient_of_a_linear_function_is_its_transpose(name):
    function, shape = LINEAR[name]
    rng = np.random.default_rng(0)
    x = mf.tensor(rng.integers(-4, 5, shape).astype("f8"), requires_grad=True)
    y = function(x)
    g = mf.tensor(rng.integers(-4, 5, y.shape).astype("f8"))
    y.backward(g)
    assert x.grad.shape == shape
    basis = np.zeros(shape)
    for i in np.ndindex(shape):
        basis[i] = 1
        column = function(mf.tensor(basis)).numpy()
        basis[i] = 0
        assert x.grad.numpy()[i] == (column * g.numpy()).sum()


def test_embedding_undoes_slicing():
    x = mf.arange(24, dtype="float32").reshape(4, 6)
    ranges = ((3, -1, 2), (0, 2, 3))
    part = View("slice", ranges)(x)
    whole = PadSlice((4, 6), ranges)(part)
    expected = np.zeros((4, 6))
    expected[3:1:-1, ::2] = x.numpy()[3:1:-1, ::2]
    assert whole.tolist() == expected.tolist()
    assert View("slice", ranges)(whole).tolist() == part.tolist()


def test_casts_to_and_from_integers_stop_gradients():
    x = mf.tensor([1.5, 2.5], requires_grad=True)
    assert not x.to(int64).requires_grad
    y = (x.to(int64).to(float32) * x).sum()
    y.backward()
    assert x.grad.tolist() == [1, 2]


# Matmul by NumPy's rule

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((1, 3), (3, 1)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((0, 2, 3), (3, 4)),
    ((33, 31), (31, 65)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_is_numpys(a, b):
    rng = np.random.default_rng(0)
    p, q = rng.integers(-5, 6, a).astype("f8"), rng.integers(-5, 6, b).astype("f8")
    x, y = mf.tensor(p, requires_grad=True), mf.tensor(q, requires_grad=True)
    z = x @ y
    expected = p @ q
    assert z.shape == expected.shape
    np.testing.assert_array_equal(z.detach(), expected)
    z.backward(mf.ones(*z.shape, dtype="float64"))
    assert (x.grad.shape, y.grad.shape) == (a, b)
    g = np.ones_like(expected)
    left = p if p.ndim > 1 else p[None]
    right = q if q.ndim > 1 else q[:, None]
    g = g.reshape(*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    for grad, whole, shape in (
        (x.grad, g @ np.swapaxes(right, -1, -2), left.shape),
        (y.grad, np.swapaxes(left, -1, -2) @ g, right.shape),
    ):
        extra = whole.ndim - len(shape)
        dims = (*range(extra), *(extra + d for d, n in enumerate(shape) if n == 1 and whole.shape[extra + d] != 1))
        np.testing.assert_array_equal(grad, whole.sum(dims).reshape(grad.shape))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "bool"])
def test_matmul_of_every_dtype(dtype):
    p, q = np.arange(6).reshape(2, 3).astype(dtype), np.arange(12).reshape(3, 4).astype(dtype)
    z = mf.tensor(p) @ mf.tensor(q)
    assert z.dtype.name == dtype
    np.testing.assert_array_equal(z, p @ q)
    np.testing.assert_array_equal(mf.tensor(p, backend="python") @ mf.tensor(q, backend="python"), p @ q)


def test_matmul_promotes():
    assert (mf.ones(2, 3, dtype=int) @ mf.ones(3, 2)).dtype is float64
    assert (mf.ones(2, 3) @ mf.ones(3, 2, dtype="float64")).dtype is float64
    assert (mf.ones(2, 3, dtype="int32") @ mf.ones(3, 2, dtype=int)).dtype is int64


def test_matmul_needs_dims():
    with pytest.raises(ShapeError, match="expected at least 1 dim each"):
        matmul(array(), array(3))
    with pytest.raises(ShapeError, match="inner sizes differ"):
        matmul(array(2, 3), array(2, 3))

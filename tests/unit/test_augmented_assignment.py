"""Augmented assignments change the memory of their tensor; an alias sees it."""

import operator

import numpy as np
import pytest

import minifuse as mf

OPERATORS = {
    "iadd": 3, "isub": 3, "imul": 3, "itruediv": 4.0, "ifloordiv": 3, "imod": 3, "ipow": 2,
    "iand": 3, "ior": 8, "ixor": 3, "ilshift": 2, "irshift": 1,
}  # fmt: skip
SYMBOLS = {"iand": "bitwise_and", "ior": "bitwise_or", "ixor": "bitwise_xor"}
SYMBOLS |= {"ilshift": "left_shift", "irshift": "right_shift", "iadd": "add", "imul": "multiply"}


def operands_of(other):
    """A number as what may stand on the right."""
    kind = np.array(other)
    return [other, kind[()], kind, np.array([other] * 3), mf.tensor(np.array([other] * 3))]


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_an_alias_sees_the_change(name, dtype):
    if (dtype == "float32") != (name == "itruediv"):
        return
    function = getattr(operator, name)
    for other in operands_of(OPERATORS[name]):
        x = mf.tensor([5, 6, 7], dtype=dtype)
        alias, expected = x, function(np.array([5, 6, 7], dtype), OPERATORS[name])
        x = function(x, other)
        assert x is alias
        assert (alias.dtype.numpy, alias.tolist()) == (expected.dtype, expected.tolist()), type(other)


def test_a_view_that_changes_changes_its_base():
    x = mf.tensor([1, 2, 3, 4])
    x[1:3] ^= np.int64(3)
    x[0] <<= 2
    assert x.tolist() == [4, 1, 0, 4]


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_ufunc_stores_in_its_first_operand(name):
    x = mf.tensor([5, 6, 7])
    expected = getattr(operator, name)(np.array([5, 6, 7]), 2)
    assert getattr(np, SYMBOLS[name])(x, 2, out=x) is x
    assert x.tolist() == expected.tolist()


def test_bits_of_floats_do_not_change_in_place():
    for name in ("ixor", "ilshift", "irshift", "iand", "ior"):
        x = mf.ones(2)
        with pytest.raises(mf.DTypeError, match="got float32, expected integers"):
            getattr(operator, name)(x, 1)
        assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("fuse", [False, True])
def test_changes_are_captured(fuse):
    def change(x, n):
        x ^= 3
        x <<= n
        x >>= np.int64(1)
        return x + 0

    x = mf.tensor([1, 2, 3])
    y = (mf.fuse(change) if fuse else change)(x, 2)
    assert x.tolist() == y.tolist() == [4, 2, 0]


@pytest.mark.parametrize("fuse", [False, True])
def test_a_product_is_stored_in_place(fuse):
    def change(x, y):
        x @= y
        return x + 0

    a, b = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([[0.0, 1.0], [2.0, 3.0]], np.float32)
    x = alias = mf.tensor(a)
    (mf.fuse(change) if fuse else change)(x, mf.tensor(b))
    assert alias.tolist() == (a @ b).tolist()
    x @= x
    assert alias.tolist() == (a @ b @ a @ b).tolist()


@pytest.mark.parametrize("shape", [(2,), (2, 3)])
def test_a_product_of_another_shape_is_refused(shape):
    x = mf.ones(2, 2)
    with pytest.raises(
        mf.ShapeError, match=r"@=: the product has shape .*, expected \(2, 2\), the shape of x; write x = x @ y"
    ):
        x @= mf.ones(*shape)
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


# Assignments to an index.

VALUES = {
    "tensor": lambda a: mf.tensor(a),
    "array": lambda a: a,
    "lists": lambda a: a.tolist(),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(
    ("index", "shape"), [(..., (1, 2, 3)), (..., (1, 1, 3)), (0, (1, 3)), (0, (1, 1, 1)), ((1, 2), (1,)), ((1, 2), (1, 1))]
)
def test_leading_dims_of_size_1_of_a_value_are_dropped(kind, index, shape):
    value = np.arange(10.0, 10 + np.prod(shape)).reshape(shape).astype(np.float32)
    expected, x = np.zeros((2, 3), np.float32), mf.zeros(2, 3)
    expected[index if index is ... else (*np.atleast_1d(index), ...)] = value
    x[index] = VALUES[kind](value)
    assert x.tolist() == expected.tolist()


def test_leading_dims_are_dropped_in_a_fused_function():
    def change(x, y):
        x[...] = y[None, None]

    x = mf.zeros(3)
    mf.fuse(change)(x, mf.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3), (1, 2)])
def test_other_dims_of_a_value_are_not_dropped(shape):
    x = mf.zeros(3)
    with pytest.raises(mf.ShapeError, match="must broadcast to that shape"):
        x[...] = mf.ones(*shape)


def test_copy_takes_no_more_dims_than_there_are():
    with pytest.raises(mf.ShapeError, match="must broadcast to that shape"):
        mf.zeros(3).copy_(mf.ones(1, 3))

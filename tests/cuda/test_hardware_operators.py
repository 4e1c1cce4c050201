"""Every operator on a GPU: all element types, layouts and sizes. NumPy is the judge; the interpreter gives the same."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.dtypes import DTYPES
from minifuse.core.operators import TABLE
from minifuse.testing import assert_close

from ..equivalence.meanings import (
    OPERATORS,
    PLACES,
    accepted,
    is_condition,
    judge,
    kind_of,
    operands,
    refuses,
    view,
)
from ..equivalence.test_operators import LARGEST_CANCELLED, specials
from .conftest import bits
from .simulated import simulated

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SIZES = [1, 31, 32, 33, 1023, 1025]
LARGE = [65537, (1 << 20) + 3]
# The same bits in the interpreter: IEEE arithmetic rounds alike everywhere, and these have no a * b + c.
EXACT = ["add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "sqrt", "where", "lt", "eq", "mod", "floordiv"]
SOME = ["add", "div", "exp", "where", "mod"]

every_operator = pytest.mark.parametrize("entry", OPERATORS, ids=repr)


def check(entry, arrays, tensors):
    """Apply an operator on the GPU; NumPy says what comes out."""
    y = entry(*tensors)
    assert_close(y, judge(entry.name, *arrays), kind_of(entry.name), scale=LARGEST_CANCELLED, what=f"{entry.name} on a GPU")
    return y


@every_operator
@pytest.mark.parametrize("dtype", [dtype.name for dtype in DTYPES])
def test_every_dtype_at_its_extremes(entry, dtype):
    """And the interpreter gives the same, to the bit where nothing but IEEE arithmetic is used."""
    if refuses(entry, dtype):
        return
    few = slice(None, None, 2 if entry.arity == 3 else 1)
    values = [specials("bool" if is_condition(entry.name, k) else dtype)[few] for k in range(entry.arity)]
    arrays = [np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(*values)]
    y = check(entry, arrays, [mf.tensor(a) for a in arrays])
    same = entry(*[mf.tensor(a, backend=simulated()) for a in arrays])
    if entry.name in EXACT:
        np.testing.assert_array_equal(y.numpy(), same.numpy())
    else:
        assert_close(
            y, same.numpy(), kind_of(entry.name), scale=LARGEST_CANCELLED, what=f"{entry.name} on a GPU and in lanes"
        )


@every_operator
def test_every_size(entry):
    for n in (*SIZES, *LARGE):
        arrays = operands(entry.name, accepted(entry), [view((n,))] * entry.arity)
        check(entry, arrays, [mf.tensor(a) for a in arrays])


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("place", PLACES)
def test_every_layout(name, place):
    entry = TABLE[name]
    recipes = PLACES[place][: entry.arity]
    arrays = operands(name, accepted(entry), recipes)
    shown = [[recipe(x) for recipe, x in zip(recipes, xs, strict=True)] for xs in (arrays, [mf.tensor(a) for a in arrays])]
    y = check(entry, *shown)
    lanes = [recipe(mf.tensor(a, backend=simulated())) for recipe, a in zip(recipes, arrays, strict=True)]
    assert_close(y, entry(*lanes).numpy(), kind_of(name))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("start", [0, 1, 2, 3, 5])
def test_slices_that_begin_anywhere(dtype, start):
    """Addresses that are, and are not, multiples of 16 bytes."""
    for n in (7, 64, 1031):
        a = (np.arange(n + start) % 2).astype(dtype)
        x, y = mf.tensor(a)[start:], mf.tensor(a[::-1].copy())[:n]
        np.testing.assert_array_equal((x | y if dtype == "bool" else x + y).numpy(), a[start:] + a[::-1][:n])
        z = mf.zeros(n + start, dtype=dtype)
        z[start:] = x
        np.testing.assert_array_equal(z.numpy(), np.concatenate([np.zeros(start, dtype), a[start:]]))


@pytest.mark.parametrize("shape", [(3, 1031), (1031, 3), (129, 257), (2, 3, 4, 5), (7, 1, 33)], ids=str)
def test_matrices_by_rows_columns_and_turned_over(shape):
    a = np.random.default_rng(0).uniform(-2, 2, shape).astype("f4")
    row, column = a[..., :1, :], a[..., :1]
    x, r, c = mf.tensor(a), mf.tensor(row), mf.tensor(column)
    for got, right in [
        (x + r, a + row),
        (x * c, a * column),
        (x.mT + x.mT, np.swapaxes(a, -1, -2) * 2),
        (x.mT.contiguous(), np.swapaxes(a, -1, -2)),
        (x.flip(0) - x, np.flip(a, 0) - a),
        (x[..., ::2] + x[..., ::2], a[..., ::2] * 2),
    ]:
        np.testing.assert_array_equal(got.numpy(), right)


def across(x, y):
    """Two operands that lie across each other."""
    return x | y.swapaxes(-1, -2) if isinstance(x, np.ndarray) and x.dtype == bool else x + y.swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", [dtype.name for dtype in DTYPES])
@pytest.mark.parametrize(
    "shape", [(16, 16), (64, 64), (63, 65), (129, 1000), (1031, 257), (3, 70, 40), (2, 3, 64, 33)], ids=str
)
def test_transposed_operands_go_through_tiles(shape, dtype):
    """To the bit: both NumPy and the kernel do nothing but one addition."""
    random = np.random.default_rng(0)
    a, b = (
        random.integers(0, 2 if dtype == "bool" else 1000, s).astype(dtype) for s in (shape, (*shape[:-2], *shape[:-3:-1]))
    )
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    x, y = mf.tensor(a), mf.tensor(b)
    got = x | y.permute(*order) if dtype == "bool" else x + y.permute(*order)
    np.testing.assert_array_equal(got.numpy(), across(a, b))
    np.testing.assert_array_equal(y.permute(*order).contiguous().numpy(), b.transpose(order))


@pytest.mark.parametrize("start", [0, 1, 4])
def test_tiles_that_begin_anywhere(start):
    a, b = np.random.default_rng(start).uniform(-2, 2, (2, 200, 204)).astype("f4")
    for n in (196, 130):
        x, y = mf.tensor(a)[:n, start : start + n], mf.tensor(b)[:n, start : start + n]
        np.testing.assert_array_equal((x - y.T).numpy(), a[:n, start : start + n] - b[:n, start : start + n].T)
        z = mf.tensor(a)
        z[:n, start : start + n] = y.T
        right = a.copy()
        right[:n, start : start + n] = b[:n, start : start + n].T
        np.testing.assert_array_equal(z.numpy(), right)


def test_more_tiles_and_more_rows_than_blocks_along_y():
    a = np.random.default_rng(0).integers(0, 2, (16, 4_200_000)).astype(bool)
    np.testing.assert_array_equal(mf.tensor(a).T.contiguous().numpy(), a.T)
    b = a.reshape(-1, 4)
    np.testing.assert_array_equal((mf.tensor(b)[:, :3] | mf.tensor(b)[:, 1:]).numpy(), b[:, :3] | b[:, 1:])


@pytest.mark.parametrize("n", [2047, 2048, 2049, 2052, 4096, 65536 + 4])
def test_two_groups_of_four(n):
    a = np.random.default_rng(n).uniform(-2, 2, (3, n)).astype("f4")
    x = mf.tensor(a)
    np.testing.assert_array_equal((x[0] * 2.5).numpy(), a[0] * np.float32(2.5))
    np.testing.assert_array_equal((x + x[1]).numpy(), a + a[1])
    np.testing.assert_array_equal((x[:, : n // 2] * 2.5).numpy(), a[:, : n // 2] * np.float32(2.5))


def test_in_place():
    a = np.random.default_rng(0).uniform(-2, 2, (65, 131)).astype("f4")
    x, b = mf.tensor(a), a.copy()
    x += 1.5
    b += np.float32(1.5)
    x[1:, 1:] *= x[0, 1:]
    b[1:, 1:] *= b[0, 1:]
    x[::2] = x[::2].flip(1)
    b[::2] = b[::2, ::-1].copy()
    np.testing.assert_array_equal(x.numpy(), b)


@pytest.mark.parametrize("n", [1, 33, 1025])
def test_the_same_bits_in_two_runs_and_in_the_interpreter(n):
    a, b = np.random.default_rng(n).uniform(-2, 2, (2, n)).astype("f4")

    def program(x, y):
        return mf.maximum(x + y, x) - y, x / y

    first = program(mf.tensor(a), mf.tensor(b))
    again = program(mf.tensor(a), mf.tensor(b))
    lanes = program(mf.tensor(a, backend=simulated()), mf.tensor(b, backend=simulated()))
    for x, y, z in zip(first, again, lanes, strict=True):
        assert bits(x) == bits(y) == bits(z)

"""ir.inline_slices: the slices of a scatter as expressions of their position, computed in its kernel on a GPU."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler import rules
from minifuse.core.dtypes import float32
from minifuse.ir.array_functions import Full
from minifuse.ir.graph import Argument, Node
from minifuse.ir.inline_slices import MAX_OPS, inline_slices
from minifuse.ir.kernel_ir import IndexedLoad, Kernel, Load, Op

COUNT, SIZE, COLUMNS = 12, 5, 6
RNG = np.random.default_rng(4)
X, Y, INDEX = RNG.standard_normal((COUNT, COLUMNS)), RNG.standard_normal((SIZE, COLUMNS)), RNG.integers(-1, SIZE, COUNT)
SLICES = {  # the slices of x (count, columns), y (size, columns), i (count,) and a number
    "gathered and scaled": lambda x, y, i, n: y[i] * x[:, :1] * (y[i, 0] * 2).exp()[:, None],
    "of repeated rows": lambda x, y, i, n: (x[:4] + n)[:, None].expand(4, 3, COLUMNS).reshape(COUNT, COLUMNS),
    "of repeated columns": lambda x, y, i, n: x[:, :2, None].expand(COUNT, 2, 3).reshape(COUNT, COLUMNS) * 3,
    "permuted": lambda x, y, i, n: x.reshape(3, 4, COLUMNS).permute(2, 1, 0).reshape(COUNT, COLUMNS) - 1,
    "sliced and flipped": lambda x, y, i, n: mf.where(x.flip(0) > 0, x[:, 2:3], -x.flip(1)),
    "of positions": lambda x, y, i, n: x * (i[:, None] < mf.arange(COLUMNS, device=x.device)).to(x.dtype),
    "constant": lambda x, y, i, n: mf.ones(COUNT, COLUMNS, dtype=x.dtype, device=x.device) * 3,
    "reduced": lambda x, y, i, n: x - x.mean(1, keepdim=True) + x.sum(0),
    "of a number of the call": lambda x, y, i, n: x * n + n,
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_are_computed_in_the_kernel(monkeypatch, name):
    monkeypatch.setattr(rules, "MIN_COMPARISONS", 0)
    slices, found = SLICES[name], {}

    def add_slices(x, y, i, n):
        return (y * 1).index_add(0, i, slices(x, y, i, n))

    for backend in ("python", "cuda"):
        operands = [mf.tensor(a, backend=backend) for a in (X, Y, INDEX)]
        found[backend] = mf.fuse(add_slices)(*operands, 0.5).numpy()
    np.testing.assert_allclose(found["cuda"], found["python"], rtol=1e-12)


def node(k, *shape, dtype=float32):
    return Node(Argument(k), (), shape, dtype)


def count(e, kind):
    return len(Kernel((e,), ()).find_all(kind))


@pytest.mark.parametrize(("scaled", "ops"), [(lambda s: s + 1, 2), (lambda s: s.exp().log().sin().cos().tanh(), 1)])
def test_a_costly_value_of_many_columns_is_stored(scaled, ops):
    x, scale = node(0, 1, 20, 8), node(1, 20)
    value, leaves = inline_slices(x * scaled(scale).reshape(1, 20, 1))
    assert count(value, Op) == ops
    assert [leaf.shape for leaf in leaves] == [(1, 20, 8)] * 2


def test_an_array_that_no_strides_describe_is_read_at_computed_indices():
    x = node(0, 5, 8)
    e, leaves = inline_slices(x.reshape(5, 1, 8).expand(5, 4, 8).reshape(1, 20, 8))
    assert len(leaves) == 1
    assert leaves[0].inputs == (x,)
    assert count(e, IndexedLoad) == 1


def test_long_expressions_and_constants():
    x = node(0, 1, 20, 8)
    y = x
    for _ in range(MAX_OPS + 1):
        y = y.sin()
    value, (leaf,) = inline_slices(y)
    assert leaf is y
    assert value is Load(0, float32)
    assert inline_slices(x.apply(Full((1, 20, 8), float32), 1))[1] == ()

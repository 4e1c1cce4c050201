"""backends.parallel.split_launches: long kernels are launched in pieces, and signals are handled in between."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.base import Operand
from minifuse.backends.parallel import numba_fallback, split_launches
from minifuse.backends.registry import get_backend

pytestmark = pytest.mark.usefixtures("_short_pieces")


@pytest.fixture
def _short_pieces(monkeypatch):
    """Cut after the least work; count the launches in pieces."""
    monkeypatch.setattr(split_launches, "MAX_CHUNKS_PER_ROW", 1e-6)
    monkeypatch.setattr(numba_fallback, "ELEMENTS_PER_CALL", 4)


@pytest.fixture
def bound(monkeypatch):
    """How many pieces each kernel was cut into."""
    counts, load = [], split_launches.load_pieces
    monkeypatch.setattr(split_launches, "load_pieces", lambda *args: counts.append(args[-1]) or load(*args))
    return counts


X = np.arange(3 * 101, dtype=np.float64).reshape(3, 101)
COLUMN = np.array([[1.0], [2.0], [3.0]])


def test_few_long_rows_are_computed_in_pieces(bound):
    f = mf.fuse(lambda x, b: (mf.sin(x * 2) + b, x > b))
    y, z = f(mf.tensor(X, backend="parallel"), mf.tensor(COLUMN, backend="parallel"))
    assert bound
    assert max(bound) > 1
    np.testing.assert_allclose(y.numpy(), np.sin(X * 2) + COLUMN, rtol=1e-12)
    assert np.array_equal(z.numpy(), X > COLUMN)


def test_pieces_know_their_positions_and_raw_arguments(bound):
    @mf.elementwise(raw=("table", "out"))
    def gather(x, table, out):
        i, j = mf.index(0), mf.index(1)
        out[j, i] = x + table[j] * 1000

    x, table = mf.tensor(X[:, ::2].copy()), mf.tensor(np.arange(51.0))
    out = mf.zeros(51, 3, dtype=mf.float64)
    gather(x, table, out)
    assert max(bound) > 1
    assert np.array_equal(out.numpy(), (X[:, ::2] + np.arange(51) * 1000).T)


def test_a_change_in_place_is_made_in_pieces(bound):
    x = mf.tensor(X.copy())
    x *= mf.tensor(COLUMN)
    assert max(bound) > 1
    assert np.array_equal(x.numpy(), X * COLUMN)


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 < 1 else 3 * n + 1
        steps += 1
    return steps


def larger(a, b):
    if a > b:
        return a
    return b


@pytest.mark.parametrize("length", [1, 3, 4, 5, 9])
def test_functions_that_branch_run_in_pieces(length):
    backend, n = get_backend("parallel"), np.arange(1, length + 1)
    out = Operand.from_array(np.empty(length, np.int64))
    backend.map(collatz, Operand.from_array(n), out)
    assert out.array().tolist() == [collatz(k) for k in n.tolist()]
    backend.zip(larger, Operand.from_array(n), Operand.from_array(n[::-1].copy()), out)
    assert out.array().tolist() == np.maximum(n, n[::-1]).tolist()


@pytest.mark.parametrize("shape", [(1, 9), (5, 2), (3, 4), (2, 5), (7, 1)])
def test_reductions_with_branches_run_in_pieces(shape):
    rows = np.random.default_rng(0).permutation(shape[0] * shape[1]).reshape(shape)
    out = Operand.from_array(np.empty((shape[0], 1), np.int64))
    get_backend("parallel").reduce(larger, Operand.from_array(rows), out, [1])
    assert out.array()[:, 0].tolist() == rows.max(1).tolist()

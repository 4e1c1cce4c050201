"""compiler.materialize: which pointwise intermediates are stored, and which are recomputed."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.materialize import MAX_ARRAYS, find_materialized
from minifuse.core.dtypes import float32
from minifuse.core.interning import toposort
from minifuse.core.operators import add
from minifuse.ir.array_functions import Matmul, Reduce
from minifuse.ir.graph import Argument, Node, inputs_of

SHAPE = (16, 16)
A, B, C, W = (Node(Argument(k), (), SHAPE, float32) for k in range(4))


def materialized(*outputs):
    return set(find_materialized(toposort(outputs, inputs_of), set(outputs)))


def matmul(x, y=W):
    return Matmul()(x, y)


def total(x, dim=1):
    return Reduce(add, (dim,))(x)


def test_sum_of_three_arrays_read_by_three_matmuls_is_stored():
    s = A + B + C
    assert materialized(matmul(s * 2), matmul(s * 3), matmul(s * 4)) == {s}


@pytest.mark.parametrize(
    "outputs",
    [
        pytest.param(lambda s: [matmul(s * 2)], id="one consumer"),
        pytest.param(lambda s: [s * 2, total(s), total(s * s)], id="all consumers share one kernel"),
        pytest.param(lambda s: [total(s.exp())], id="one reduction"),
    ],
)
def test_value_read_by_one_kernel_is_recomputed(outputs):
    assert materialized(*outputs(A + B + C)) == set()


def test_value_of_one_array_is_recomputed():
    s = A + 1
    assert materialized(matmul(s * 2), matmul(s * 3), matmul(s * 4)) == set()


def test_broadcast_row_does_not_count_as_a_loaded_array():
    row = Node(Argument(4), (), (1, 16), float32)
    s = A + row.expand(SHAPE)
    assert materialized(matmul(s * 2), matmul(s * 3), matmul(s * 4)) == set()


@pytest.mark.parametrize(("count", "is_stored"), [(MAX_ARRAYS - 1, False), (MAX_ARRAYS, True)])
def test_value_of_many_small_arrays_is_stored(count, is_stored):
    s = A
    for k in range(count):
        s = s + Node(Argument(4 + k), (), (1, 16), float32).expand(SHAPE)
    assert materialized(matmul(s * 2), matmul(s * 3)) == ({s} if is_stored else set())
    assert materialized(matmul(s * 2)) == set()


def test_output_is_not_stored_again():
    s = A + B + C
    assert materialized(s, matmul(s * 2), matmul(s * 3), matmul(s * 4)) == set()


def test_value_computed_from_a_stored_value_is_recomputed():
    s = A + B + C
    t = s * 2
    assert materialized(*[matmul(s * k) for k in (2.5, 3.5, 4.5)], *[matmul(t * k) for k in (5.5, 6.5, 7.5)]) == {s}


def test_each_sum_of_a_residual_chain_is_stored():
    x, sums = A, []
    for _ in range(20):
        x = x + matmul((x - total(x).expand(SHAPE)).relu())
        sums.append(x)
    found = materialized(total(x))
    assert found >= set(sums[:-2])
    assert len(found) <= 20


def test_results_of_a_residual_network_agree_with_numpy():
    random = np.random.default_rng(0)
    x, w = random.normal(size=SHAPE), random.normal(size=SHAPE) / 4

    def f(x, w):
        for _ in range(5):
            h = x - x.mean(1, keepdim=True)
            x = x + (h / (h * h).mean(1, keepdim=True).sqrt() @ w).relu()
        return x.sum(0), x.max(1)

    expected = x
    for _ in range(5):
        h = expected - expected.mean(1, keepdims=True)
        expected = expected + np.maximum(h / np.sqrt((h * h).mean(1, keepdims=True)) @ w, 0)
    found = mf.fuse(f)(mf.tensor(x, dtype="float64"), mf.tensor(w, dtype="float64"))
    np.testing.assert_allclose(found[0].numpy(), expected.sum(0), rtol=1e-12)
    np.testing.assert_allclose(found[1].numpy(), expected.max(1), rtol=1e-12)

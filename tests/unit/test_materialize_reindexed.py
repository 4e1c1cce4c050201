"""compiler.materialize_reindexed: which values are stored because kernels would compute them at many reindexings."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.fusibility import GATHER_NEEDS_MEMORY
from minifuse.compiler.graph import Graph
from minifuse.compiler.kernel_depths import Depth
from minifuse.compiler.materialize import find_materialized
from minifuse.compiler.materialize_reindexed import (
    FREE_COPIES,
    MAX_RECOMPUTED,
    TOO_MANY_REINDEXINGS,
    find_too_often_reindexed,
)
from minifuse.compiler.reindexing import RESHAPE_NEEDS_COPY
from minifuse.compiler.rules import lower_gather
from minifuse.core.dtypes import float32, int64
from minifuse.core.interning import toposort
from minifuse.core.operators import detach
from minifuse.ir.array_functions import View
from minifuse.ir.graph import Argument, Node, inputs_of

SIZE = 40
X = Node(Argument(0), (), (SIZE, SIZE), float32)


def stored(*outputs):
    return find_materialized(toposort(outputs, inputs_of), set(outputs))


def steps(function, count, x=X):
    found = []
    for k in range(count):
        x = function(x, k) * 0.5
        found.append(x)
    return found


def test_without_views_nothing_is_stored():
    assert stored(steps(lambda x, k: x * x + x, 60)[-1]) == {}


@pytest.mark.parametrize("step", [lambda x, k: x + x.T, lambda x, k: x + x[::-1], lambda x, k: x.T + 1])
def test_two_copies_of_a_value_cost_less_than_storing_it(step):
    assert FREE_COPIES == 2
    assert stored(steps(step, 200)[-1]) == {}


def test_with_more_copies_some_values_are_stored():
    found = stored(steps(lambda x, k: x + x[k % SIZE], 40)[-1])
    assert set(found.values()) == {TOO_MANY_REINDEXINGS}
    assert 1 <= len(found) <= 10


def test_a_cheap_value_is_recomputed_at_many_indices():
    x = X.relu()
    parts = [x[i : i + 30, j : j + 30] for i in range(7) for j in range(7)]
    assert stored(sum(parts[1:], parts[0])) == {}


def test_the_end_of_a_long_computation_is_stored():
    x = X
    for _ in range(MAX_RECOMPUTED // 4):
        x = x * 0.5
    parts = [x[i : i + 30] for i in range(8)]
    assert stored(sum(parts[1:], parts[0])) == {x: TOO_MANY_REINDEXINGS}


def test_the_source_of_a_gather_is_stored():
    index = Node(Argument(1), (), (SIZE,), int64)
    x = X + 1
    graph = lower_gather(Graph((x + x.index_select(0, index),)), PythonBackend())
    assert stored(*graph.outputs) == {x: GATHER_NEEDS_MEMORY}


def test_an_empty_source_of_a_gather_is_not_stored():
    empty = Node(Argument(0), (), (0, SIZE), float32) + 1
    index = Node(Argument(1), (), (3,), int64)
    graph = lower_gather(Graph((empty.relu().sum(), empty.index_select(1, index) * 2)), PythonBackend())
    assert stored(*graph.outputs) == {}


def test_a_value_with_a_copying_reshape_is_stored():
    x = X + 1
    assert stored(x + x.T.reshape(SIZE * SIZE).reshape(SIZE, SIZE)) == {x: RESHAPE_NEEDS_COPY}


def test_outputs_are_stored_before_others_read_them():
    found = steps(lambda x, k: x[1:] + x[:-1], 30)
    assert 1 <= len(stored(*found).keys() & found) <= 10
    assert stored(*steps(lambda x, k: x[1:] + x[:-1], 3)) == {}


def test_an_identity_is_never_stored():
    x = X
    for k in range(60):
        x = (x + x[k % SIZE]).detach() * 0.5
    assert all(node.function is not detach for node in stored(x))


def test_numbers_and_constants_do_not_count():
    y = X * 0 + 1
    order = [x for x in toposort([y], inputs_of) if not x.is_number and not isinstance(x.function, View)]
    assert find_too_often_reindexed(order, {y}, set(), dict.fromkeys(order, Depth(0, None))) == {}


def test_a_stored_value_and_readers_of_its_views_may_both_be_outputs():
    def f(p):
        found = []
        for k in range(24):
            p = (p + p[k]) * 0.5
            found.append(p)
        return tuple(found)

    array = np.random.default_rng(0).normal(size=(30, 30))
    for x, y in zip(mf.fuse(f)(mf.tensor(array)), f(array), strict=True):
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-12)

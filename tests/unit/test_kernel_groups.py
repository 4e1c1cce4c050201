"""compiler.kernel_groups: a long kernel is split into short parts that store as little as possible."""

from itertools import pairwise

import pytest

import minifuse as mf
from minifuse.compiler.kernel_groups import MAX_OPS, MAX_PASSES, TOO_MANY_OPS, TOO_MANY_PASSES, split_into_parts
from minifuse.core.dtypes import float32
from minifuse.core.interning import toposort
from minifuse.core.operators import add
from minifuse.ir.array_functions import Reduce
from minifuse.ir.graph import Argument, Node, inputs_of


def order_of(*outputs):
    return [x for x in toposort(outputs, inputs_of) if not x.is_number]


X = Node(Argument(0), (), (4, 4), float32)


@pytest.mark.parametrize("count", [1, MAX_OPS - 1])
def test_a_short_kernel_is_not_split(count):
    y = X
    for _ in range(count):
        y = y + 1
    assert split_into_parts(order_of(y), inputs_of) == []


def test_each_part_of_a_chain_is_short_and_stores_one_value():
    y = X
    for _ in range(3 * MAX_OPS):
        y = y + 1
    order = order_of(y)
    found = split_into_parts(order, inputs_of)
    index = {node: k for k, node in enumerate(order)}
    places = [0, *[index[node] + 1 for cut in found for node in cut.stored], len(order)]
    assert all(len(cut.stored) == 1 for cut in found)
    assert {cut.reason for cut in found} == {TOO_MANY_OPS}
    assert all(0 < b - a <= MAX_OPS for a, b in pairwise(places))


def test_a_kernel_is_split_where_the_least_is_stored():
    y = X
    for _ in range(MAX_OPS):  # up to three values are live inside of each iteration, one between two
        y = mf.maximum(mf.maximum(y + 1, y * 2), y * 3) - 3
    found = split_into_parts(order_of(y), inputs_of)
    assert found
    assert all(len(cut.stored) == 1 for cut in found)


def test_the_number_of_passes_over_rows_is_limited():
    y = X
    for _ in range(2 * MAX_PASSES + 1):
        y = y - Reduce(add, (1,))(y).expand(4, 4)
    found = split_into_parts(order_of(y), inputs_of)
    assert len(found) >= 2
    assert {cut.reason for cut in found} == {TOO_MANY_PASSES}

"""Task 5.6: no partition of the nodes into kernels has fewer launches, or moves fewer bytes with as many."""

import pytest

from minifuse.course import oracle
from minifuse.course.drawn_plans import draw_plan
from minifuse.course.fusion import Graph, Kernel, Node, can_share
from minifuse.course.kernel_groups import count_bytes, nodes_to_compute, order_kernels
from minifuse.course.plans import PLANS
from minifuse.course.programs import sample_arrays
from minifuse.course.scheduled import run_schedule
from minifuse.course.verdicts import Wrong


def ways(graph: Graph, left: list[int], groups: list[list[int]], most: int):
    """Yield all partitions of the nodes into at most `most` kernels that their shapes allow."""
    if not left:
        yield groups
        return
    first, *rest = left
    for at, group in enumerate(groups):
        if can_share(graph, [*group, first]):
            yield from ways(graph, rest, [*groups[:at], [*group, first], *groups[at + 1 :]], most)
    if len(groups) < most:
        yield from ways(graph, rest, [*groups, [first]], most)


@pytest.mark.parametrize("plan", [pytest.param(plan, id=plan.name) for plan in PLANS])
def test_no_schedule_costs_less(plan):
    graph = plan.graph()
    costs = set()
    for groups in ways(graph, nodes_to_compute(graph), [], plan.launches + 1):
        kernels = [frozenset(group) for group in groups]
        if order_kernels(graph, kernels) is not None:
            costs.add((len(groups), count_bytes(graph, kernels)))
    assert min(costs) == (plan.launches, plan.nbytes)


@pytest.mark.parametrize("plan", [pytest.param(plan, id=plan.name) for plan in PLANS])
def test_the_oracles_schedule_is_optimal(plan):
    graph = plan.graph()
    found = run_schedule(graph, oracle.function("schedule")(graph), sample_arrays(plan.shapes))
    assert (found.launches, found.nbytes) == (plan.launches, plan.nbytes)


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_of_a_small_drawn_plan_costs_less(seed):
    plan = draw_plan(seed, 1)
    graph = plan.graph()
    if len(nodes_to_compute(graph)) > 9:
        pytest.skip("too many partitions")
    costs = set()
    for groups in ways(graph, nodes_to_compute(graph), [], plan.launches):
        kernels = [frozenset(group) for group in groups]
        if order_kernels(graph, kernels) is not None:
            costs.add((len(groups), count_bytes(graph, kernels)))
    assert min(costs) == (plan.launches, plan.nbytes)


def test_unused_values_are_not_computed():
    graph = PLANS[0].graph()
    unused = graph._replace(nodes=(*graph.nodes, Node("neg", (0,), shape=graph.nodes[0].shape)))
    kernels = oracle.function("schedule")(unused)
    run_schedule(unused, kernels, sample_arrays(PLANS[0].shapes))
    with pytest.raises(Wrong, match="no output of the graph depends on it") as caught:
        run_schedule(unused, (*kernels, Kernel((len(graph.nodes),), (0,), ())), sample_arrays(PLANS[0].shapes))
    assert caught.value.kind == "nobody needs"

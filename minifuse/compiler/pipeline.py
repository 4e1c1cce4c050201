"""The steps of a plan, in order: what is given, what a backward pass needs, and what is stored where arguments lie.

The schedule makes kernels of values. Here is said which values, and when: a value that reads what lay in an argument comes
before that is changed, and one that reads what is stored there comes after.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ..backends.base import Backend
from ..core.interning import toposort
from ..core.layout import Layout
from ..ir.array_functions import Identity, SliceUpdate
from ..ir.graph import Node, strip_views
from ..ir.steps import BufferView, may_overlap
from .batch_launches import batch_steps
from .decompositions import decompose_composites
from .form_kernels import KernelScheduler
from .merge_slice_gradients import merge_slice_gradients
from .output_aliasing import InPlaceStores
from .reorder import reorder_for_memory
from .split_reductions import split_reductions


class ScheduledPlan(NamedTuple):
    """What was found."""

    schedule: KernelScheduler
    outputs_and_saved: list[Node]
    """What the plan gives, then what it saves: the nodes that were computed for them."""
    places: list[BufferView]
    """Where each of those lies."""


def rewrite_graph(nodes: list[Node], backend: Backend) -> list[Node]:
    """The same values as the steps of a backend compute them: what it does not know, parts of an array, and long folds."""
    return split_reductions(merge_slice_gradients(decompose_composites(nodes, backend)))


def schedule_plan(plan: Any, layouts: Sequence[Layout | None]) -> ScheduledPlan:
    """The steps of a plan whose arguments lie in these layouts; None of a number."""
    program, saved = plan.graph, plan.backward.saved if plan.backward else []
    stores = [(target, *part) for target, node in program.stores for part in split_stores(node, target)]
    values = [node for _, node in program.stores]
    nodes = [*plan.outputs, *saved, *[node for _, _, node in stores], *values]
    nodes = rewrite_graph(nodes, plan.backend)
    end = len(plan.outputs) + len(saved)
    given, parts, values = nodes[:end], nodes[end : end + len(stores)], nodes[end + len(stores) :]
    kept_for_backward = given[len(plan.outputs) :]
    schedule = KernelScheduler(plan.arguments, layouts, plan.backend, [*given, *parts], kept_for_backward)
    schedule.buffers |= program.aliases
    lie = zip(plan.outputs, given, strict=False)
    schedule.layouts = {strip_views(y): found for x, y in lie if (found := program.layouts.get(strip_views(x))) is not None}
    old = aliasing_nodes(schedule, [schedule.buffers[target] for target, _ in program.stores])
    parts = [node.clone() if strip_views(node) in old else node for node in parts]  # read before anything is stored
    replaced = [k for k, (target, _, _) in enumerate(stores[1:]) if target is stores[k][0]]  # by the next part, perhaps
    occurrences = Counter(strip_views(node) for node in parts)
    for k in replaced:
        if (
            occurrences[strip_views(parts[k])] > 1
        ):  # a value of its own, since others read it when this one is no longer there
            parts[k] = Identity(("stored", k))(parts[k])
    if plan.backward:
        selected = plan.backward.selection_inputs
        schedule.compute([y for x, y in zip(saved, kept_for_backward, strict=True) if x in selected])
    around = {node for node in values if isinstance(node.function, SliceUpdate)}  # which would be copied to be read
    late = depends_on_stores(given, around, old | {strip_views(parts[k]) for k in replaced})
    schedule.compute([*[node for node in given if node not in late], *parts])  # folds that select read what is saved
    for node in (*given, *parts):
        if node not in late:
            schedule.locate(node)
    put = InPlaceStores(schedule, {schedule.locate(node)[0] for node in given if node not in late})
    for (target, insert, _), node in zip(stores, parts, strict=True):
        slot, layout = schedule.buffers[target]
        put.store(schedule.locate(node), (slot, insert.region_layout(layout)), node)
    before = {node: schedule.locate(node) for node in given if node not in late}
    for (target, _), value in zip(program.stores, values, strict=True):
        schedule.buffers[value] = schedule.buffers[target]
    schedule.compute(late)
    places = [before[node] if node in before else schedule.locate(node) for node in given]
    finalize(schedule, places)
    return ScheduledPlan(schedule, given, places)


def finalize(schedule: KernelScheduler, places: Sequence[BufferView]) -> None:
    """The steps of a schedule as they run: what lets go of memory comes early, and launches that may be one are one."""
    order = reorder_for_memory(
        schedule.steps, dict(enumerate(schedule.buffer_nbytes, schedule.first_buffer)), {slot for slot, _ in places}
    )
    schedule.steps, came = [schedule.steps[k] for k in order], [*range(len(order))]
    if schedule.backend.has_multi_tensor:
        schedule.steps, came = batch_steps(schedule.steps)
    if schedule.log:
        schedule.log.order = [place for _, place in sorted(zip(order, came, strict=True))]


def split_stores(node: Node, argument: Node) -> list[tuple[SliceUpdate, Node]]:
    """What is stored in an argument, place by place, in order: of changes of some views of it, only those."""
    found: list[tuple[SliceUpdate, Node]] = []
    while isinstance(node.function, SliceUpdate):
        old, new = node.inputs
        found.append((node.function, new))
        node = old
    if node is not argument:
        found.append((SliceUpdate(()), node))
    return found[::-1]


def aliasing_nodes(schedule: KernelScheduler, targets: Iterable[BufferView]) -> set[Node]:
    """What lies where something will be stored."""
    slots: dict[int, list[BufferView]] = {}
    for target in targets:
        slots.setdefault(target[0], []).append(target)
    places = schedule.buffers.items()
    return {node for node, place in places if any(may_overlap(place, target) for target in slots.get(place[0], ()))}


def depends_on_stores(nodes: Iterable[Node], values: Collection[Node], targets: Collection[Node]) -> dict[Node, None]:
    """Return the nodes that are computed from what is stored in arguments in the end, and from nothing that is there before.

    `targets` is what is there before: what the arguments held, and parts that another part of the same argument may replace.
    """
    late: dict[Node, bool] = {}  # whether a node reads what is stored; those that read what lay there are not in it
    for node in toposort(nodes if values else (), lambda x: () if x in values else x.inputs):
        if node not in targets and all(x in late for x in node.inputs if node not in values):
            late[node] = node in values or any(late[x] for x in node.inputs)
    return {node: None for node in nodes if late.get(node) and strip_views(node) not in values}

"""The steps of a plan, in order: what is given, what a backward pass needs, and what is stored where arguments lie.

The schedule makes kernels of values. Here is said which values, and when: a value that reads what lay in an argument comes
before that is changed, and one that reads what is stored there comes after.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ..backends.base import Backend
from ..core.interning import topological
from ..core.layout import Layout
from ..ir.array_functions import Insert, Same
from ..ir.graph import Node, base
from ..ir.steps import Place, meet
from .batch_launches import joined
from .decompositions import with_definitions
from .form_kernels import Schedule
from .merge_slice_gradients import side_by_side
from .output_aliasing import Stores
from .reorder import early
from .split_reductions import in_pieces


class Arranged(NamedTuple):
    """What was found."""

    schedule: Schedule
    given: list[Node]
    """What the plan gives, then what it saves: the nodes that were computed for them."""
    places: list[Place]
    """Where each of those lies."""


def rewritten(nodes: list[Node], backend: Backend) -> list[Node]:
    """The same values as the steps of a backend compute them: what it does not know, parts of an array, and long folds."""
    return in_pieces(side_by_side(with_definitions(nodes, backend)))


def arranged(plan: Any, layouts: Sequence[Layout | None]) -> Arranged:
    """The steps of a plan whose arguments lie in these layouts; None of a number."""
    program, saved = plan.program, plan.backward.saved if plan.backward else []
    stores = [(target, *part) for target, node in program.stores for part in parts_of(node, target)]
    values = [node for _, node in program.stores]
    nodes = [*plan.outputs, *saved, *[node for _, _, node in stores], *values]
    nodes = rewritten(nodes, plan.backend)
    end = len(plan.outputs) + len(saved)
    given, parts, values = nodes[:end], nodes[end : end + len(stores)], nodes[end + len(stores) :]
    kept_for_backward = given[len(plan.outputs) :]
    schedule = Schedule(plan.arguments, layouts, plan.backend, [*given, *parts], kept_for_backward)
    schedule.place |= program.windows
    lie = zip(plan.outputs, given, strict=False)
    schedule.layouts = {base(y): found for x, y in lie if (found := program.layouts.get(base(x))) is not None}
    old = lying_in(schedule, [schedule.place[target] for target, _ in program.stores])
    parts = [node.clone() if base(node) in old else node for node in parts]  # read before anything is stored
    replaced = [k for k, (target, _, _) in enumerate(stores[1:]) if target is stores[k][0]]  # by the next part, perhaps
    occurrences = Counter(base(node) for node in parts)
    for k in replaced:
        if occurrences[base(parts[k])] > 1:  # a value of its own, since others read it when this one is no longer there
            parts[k] = Same(("stored", k))(parts[k])
    if plan.backward:
        selected = plan.backward.selected
        schedule.compute([y for x, y in zip(saved, kept_for_backward, strict=True) if x in selected])
    around = {node for node in values if isinstance(node.function, Insert)}  # which would be copied to be read
    late = after(given, around, old | {base(parts[k]) for k in replaced})
    schedule.compute([*[node for node in given if node not in late], *parts])  # folds that select read what is saved
    for node in (*given, *parts):
        if node not in late:
            schedule.locate(node)
    put = Stores(schedule, {schedule.locate(node)[0] for node in given if node not in late})
    for (target, insert, _), node in zip(stores, parts, strict=True):
        slot, layout = schedule.place[target]
        put.store(schedule.locate(node), (slot, insert.part(layout)), node)
    before = {node: schedule.locate(node) for node in given if node not in late}
    for (target, _), value in zip(program.stores, values, strict=True):
        schedule.place[value] = schedule.place[target]
    schedule.compute(late)
    places = [before[node] if node in before else schedule.locate(node) for node in given]
    put_in_order(schedule, places)
    return Arranged(schedule, given, places)


def put_in_order(schedule: Schedule, places: Sequence[Place]) -> None:
    """The steps of a schedule as they run: what lets go of memory comes early, and launches that may be one are one."""
    order = early(schedule.steps, dict(enumerate(schedule.sizes, schedule.first)), {slot for slot, _ in places})
    schedule.steps, came = [schedule.steps[k] for k in order], [*range(len(order))]
    if schedule.backend.has_tables:
        schedule.steps, came = joined(schedule.steps)
    if schedule.record:
        schedule.record.order = [place for _, place in sorted(zip(order, came, strict=True))]


def parts_of(node: Node, argument: Node) -> list[tuple[Insert, Node]]:
    """What is stored in an argument, place by place, in order: of changes of some views of it, only those."""
    found: list[tuple[Insert, Node]] = []
    while isinstance(node.function, Insert):
        old, new = node.inputs
        found.append((node.function, new))
        node = old
    if node is not argument:
        found.append((Insert(()), node))
    return found[::-1]


def lying_in(schedule: Schedule, targets: Iterable[Place]) -> set[Node]:
    """What lies where something will be stored."""
    slots: dict[int, list[Place]] = {}
    for target in targets:
        slots.setdefault(target[0], []).append(target)
    places = schedule.place.items()
    return {node for node, place in places if any(meet(place, target) for target in slots.get(place[0], ()))}


def after(nodes: Iterable[Node], values: Collection[Node], targets: Collection[Node]) -> dict[Node, None]:
    """Return the nodes that are computed from what is stored in arguments in the end, and from nothing that is there before.

    `targets` is what is there before: what the arguments held, and parts that another part of the same argument may replace.
    """
    late: dict[Node, bool] = {}  # whether a node reads what is stored; those that read what lay there are not in it
    for node in topological(nodes if values else (), lambda x: () if x in values else x.inputs):
        if node not in targets and all(x in late for x in node.inputs if node not in values):
            late[node] = node in values or any(late[x] for x in node.inputs)
    return {node: None for node in nodes if late.get(node) and base(node) not in values}

"""Compile a traced graph to the steps of a plan, in the order in which they run.

The passes, in order: rewrite the graph, form kernels, store results in arguments, reorder the steps. `form_kernels` decides
how values are computed; this module decides which values are needed, and when. A value that reads the old contents of an
argument is computed before the argument is changed; a value that reads the new contents is computed afterwards.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ..backends.base import Backend
from ..core.interning import toposort
from ..core.layout import Layout
from ..ir.array_functions import Identity, SliceUpdate
from ..ir.graph import Node, strip_views
from ..ir.steps import BufferView, may_overlap
from ..ir.vjp import Backward
from .batch_launches import batch_steps
from .decompositions import decompose_composites
from .form_kernels import KernelScheduler
from .merge_slice_gradients import merge_slice_gradients
from .output_aliasing import InPlaceStores
from .reorder import reorder_for_memory
from .split_reductions import split_reductions
from .trace_result import TracedGraph


class ScheduledPlan(NamedTuple):
    """The steps of a plan, and where its results are stored."""

    scheduler: KernelScheduler
    results: list[Node]
    """The rewritten nodes of the plan's outputs, then those of the values that it saves for the backward pass."""
    buffers: list[BufferView]
    """Where each of the results is stored."""


def rewrite_graph(nodes: list[Node], backend: Backend) -> list[Node]:
    """Rewrite a graph: decompose composite ops, merge slice gradients, split long reductions."""
    return split_reductions(merge_slice_gradients(decompose_composites(nodes, backend)))


def schedule_plan(
    graph: TracedGraph, backward: Backward | None, layouts: Sequence[Layout | None], backend: Backend
) -> ScheduledPlan:
    """Return the steps of a plan, and where its results are stored.

    Parameters
    ----------
    graph : TracedGraph
    backward : Backward, optional
        The backward pass: the values that it saves are results, too.
    layouts : sequence of Layout or None
        The layout of each argument; None for a number.
    backend : Backend
    """
    outputs, saved = graph.outputs, backward.saved if backward else []
    stores = [(target, *part) for target, node in graph.stores for part in split_stores(node, target)]
    values = [node for _, node in graph.stores]
    nodes = rewrite_graph([*outputs, *saved, *[node for _, _, node in stores], *values], backend)
    end = len(outputs) + len(saved)
    results, parts, values = nodes[:end], nodes[end : end + len(stores)], nodes[end + len(stores) :]
    saved_results = results[len(outputs) :]
    scheduler = KernelScheduler(graph.arguments, layouts, backend, [*results, *parts], saved_results)
    scheduler.buffers |= graph.aliases
    for output, result in zip(outputs, results, strict=False):
        if (layout := graph.layouts.get(strip_views(output))) is not None:
            scheduler.required_layouts[strip_views(result)] = layout
    overwritten = find_aliasing_nodes(scheduler, [scheduler.buffers[target] for target, _ in graph.stores])
    parts = [node.clone() if strip_views(node) in overwritten else node for node in parts]  # copied before any store
    # Parts that the next part of the same argument may overwrite:
    replaced = [k for k, (target, _, _) in enumerate(stores[1:]) if target is stores[k][0]]
    occurrences = Counter(strip_views(node) for node in parts)
    for k in replaced:
        if occurrences[strip_views(parts[k])] > 1:  # others read this node later, so the part stores a distinct node
            parts[k] = Identity(("stored", k))(parts[k])
    if backward:
        selected = backward.selection_inputs
        scheduler.compute([y for x, y in zip(saved, saved_results, strict=True) if x in selected])
    updates = {node for node in values if isinstance(node.function, SliceUpdate)}  # read after the stores, without a copy
    late = find_store_dependents(results, updates, overwritten | {strip_views(parts[k]) for k in replaced})
    early = [node for node in results if node not in late]
    scheduler.compute([*early, *parts])  # selections such as max read their inputs, which are saved by now
    for node in (*early, *(node for node in parts if node not in late)):
        scheduler.locate(node)
    in_place = InPlaceStores(scheduler, {scheduler.locate(node)[0] for node in early})
    for (target, update, _), node in zip(stores, parts, strict=True):
        slot, layout = scheduler.buffers[target]
        in_place.store(scheduler.locate(node), (slot, update.region_layout(layout)), node)
    buffers = {node: scheduler.locate(node) for node in early}
    for (target, _), value in zip(graph.stores, values, strict=True):
        scheduler.buffers[value] = scheduler.buffers[target]
    scheduler.compute(late)
    result_buffers = [buffers[node] if node in buffers else scheduler.locate(node) for node in results]
    finalize(scheduler, result_buffers)
    return ScheduledPlan(scheduler, results, result_buffers)


def finalize(scheduler: KernelScheduler, results: Sequence[BufferView]) -> None:
    """Put the steps in the order in which they run, and batch launches if the backend can."""
    nbytes = dict(enumerate(scheduler.buffer_nbytes, scheduler.first_buffer))
    order = reorder_for_memory(scheduler.steps, nbytes, {slot for slot, _ in results})
    scheduler.steps, positions = [scheduler.steps[k] for k in order], [*range(len(order))]
    if scheduler.backend.has_multi_tensor:
        scheduler.steps, positions = batch_steps(scheduler.steps)
    if scheduler.log:
        scheduler.log.order = [position for _, position in sorted(zip(order, positions, strict=True))]


def split_stores(node: Node, argument: Node) -> list[tuple[SliceUpdate, Node]]:
    """Return the updates that store a node in an argument, in order. A chain of slice updates stores only these slices."""
    updates: list[tuple[SliceUpdate, Node]] = []
    while isinstance(node.function, SliceUpdate):
        old, new = node.inputs
        updates.append((node.function, new))
        node = old
    if node is not argument:
        updates.append((SliceUpdate(()), node))
    return updates[::-1]


def find_aliasing_nodes(scheduler: KernelScheduler, targets: Iterable[BufferView]) -> set[Node]:
    """Return the nodes whose memory overlaps one of the targets of stores."""
    targets_by_slot: dict[int, list[BufferView]] = {}
    for target in targets:
        targets_by_slot.setdefault(target[0], []).append(target)
    buffers = scheduler.buffers.items()
    return {node for node, x in buffers if any(may_overlap(x, target) for target in targets_by_slot.get(x[0], ()))}


def find_store_dependents(nodes: Iterable[Node], final: Collection[Node], earlier: Collection[Node]) -> dict[Node, None]:
    """Return the nodes that are computed from final contents of arguments, and from no earlier contents.

    Parameters
    ----------
    nodes : iterable of Node
        The nodes to choose from.
    final : collection of Node
        The final contents of arguments.
    earlier : collection of Node
        Earlier contents: those before the call, and slices that a later slice of the same argument may overwrite.
    """
    late: dict[Node, bool] = {}  # node -> whether it reads final contents; nodes that read old contents are not in it
    for node in toposort(nodes if final else (), lambda x: () if x in final else x.inputs):
        if node not in earlier and all(x in late for x in node.inputs if node not in final):
            late[node] = node in final or any(late[x] for x in node.inputs)
    return {node: None for node in nodes if late.get(node) and strip_views(node) not in final}

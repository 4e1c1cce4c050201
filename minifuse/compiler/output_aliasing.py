"""Store values in arguments. To save a copy, the step that computes a value writes it directly to the argument's memory."""

from collections.abc import Collection

from ..backends.base import Backend
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, ReadOutput, copy_kernel
from ..ir.steps import BufferView, Step, can_store_in, may_overlap, move_operands, relocate
from .fusion_log import IN_PLACE, FusionLog, active_log
from .graph import Graph, Store, locate_view, needs


@needs(Store)
def assign_outputs(graph: Graph, _target: Backend) -> Graph:
    """Store values in the arguments that the call changes: by the steps that compute them where possible, else by copies.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> before, after = run_pass(assign_outputs, trace(lambda x: x * 2, (4,), stored_in=0))
    >>> before.steps[0].outputs[0][0], after.steps[0].outputs[0][0]  # the slots
    (1, 0)
    """
    memory = graph.memory
    needed = {graph.locate(node)[0] for node in graph.results if node not in graph.late}
    in_place = InPlaceStores(graph, needed)
    for argument, update, node in graph.stores:
        slot, layout = memory[argument]
        in_place.store(in_place.locate(node), (slot, update.region_layout(layout)), node)
    return in_place.result()


class InPlaceStores:
    """Stores values in arguments, between the steps that run before the changes and those that run after them.

    Parameters
    ----------
    graph : Graph
    needed : collection of int
        Slots of buffers that the call returns or saves: their values cannot be stored elsewhere.
    """

    def __init__(self, graph: Graph, needed: Collection[int]) -> None:
        self.graph, self.needed = graph, needed
        self.early, self.late = [*graph.steps[: graph.late_step]], [*graph.steps[graph.late_step :]]
        self.buffers, self.copies = dict(graph.buffers), dict(graph.copies)
        self.log: FusionLog | None = active_log.log
        self.steps: dict[int, set[int]] = {}  # slot -> the early steps that read or write it
        self.nodes: dict[int, list[Node]] = {}  # slot -> the nodes that are stored in it
        for k, step in enumerate(self.early):
            self.index_step(k, step)
        for node, (slot, _) in self.buffers.items():
            self.nodes.setdefault(slot, []).append(node)

    def result(self) -> Graph:
        """Return the graph with the stores."""
        steps = (*self.early, *self.late)
        return self.graph.decide(steps=steps, late_step=len(self.early), buffers=self.buffers, copies=self.copies)

    def locate(self, node: Node) -> BufferView:
        """Return where a node is in memory by now."""
        return locate_view(node, self.buffers, self.copies)

    def index_step(self, k: int, step: Step) -> None:
        """Add step k to the steps of the slots that it reads and writes."""
        for slot, _ in step.buffer_views():
            self.steps.setdefault(slot, set()).add(k)

    def store(self, source: BufferView, target: BufferView, node: Node) -> None:
        """Store a node in an argument: by the step that computes it, or by a copy if later steps read the old contents."""
        slots = source[0], target[0]
        related = set[int]().union(*(self.steps.get(slot, ()) for slot in slots)) if source[0] not in self.needed else ()
        for k in sorted(related, reverse=True):
            step = self.early[k]
            source_view, target_view = step.as_output_view(source), step.as_output_view(target)
            if source_view in step.outputs and target_view[1].shape == step.shape:
                if can_store_in(step, target_view, target) and self.redirect(source, target, k):
                    if self.log:
                        argument = self.nodes[target[0]][0]
                        self.log.note(IN_PLACE, step.kernel_numbers[0], (node, argument))
                    self.early[k] = step.alias_outputs({step.outputs.index(source_view): target_view})
                    self.index_step(k, self.early[k])
                    return
                break
            if any(may_overlap(x, target) for x in step.buffer_views()):
                break
        self.early.append(Step(copy_kernel(node.dtype), node.shape, (), [target], [source]))
        if self.log:
            self.early[-1].kernel_numbers = (self.log.copy(node, "a copy into the argument"),)
        self.index_step(len(self.early) - 1, self.early[-1])

    def redirect(self, source: BufferView, target: BufferView, first: int) -> bool:
        """Let step `first` write to a target instead of a buffer, and later steps read it. Return False if they cannot."""
        slot, first_slot = source[0], len(self.graph.arguments)
        if slot < first_slot:  # another argument is stored there
            return False
        step = self.early[first]
        written = [k for k, x in enumerate(step.outputs) if x[0] == slot]
        is_entire = (
            source[1].size * step.kernel.outputs[written[0]].dtype.itemsize == self.graph.buffer_nbytes[slot - first_slot]
        )
        is_updated = any(e.index in written for e in Kernel(step.kernel.outputs, ()).find_all(ReadOutput))
        if not is_entire or is_updated:  # an earlier step has stored other slices, or the old elements, in the buffer
            return False
        early = [k for k in self.steps[slot] if k > first]
        late = [k for k, step in enumerate(self.late) if any(x == slot for x, _ in step.buffer_views())]
        nodes = self.nodes.get(slot, [])
        readers = [*[self.early[k] for k in early], *[self.late[k] for k in late]]
        old_views = [x for step in readers for x in step.buffer_views()] + [self.buffers[node] for node in nodes]
        new_view = {x: relocate(x, source, target) for x in old_views}
        if None in new_view.values():
            return False
        for node in nodes:
            self.buffers[node] = new_view[self.buffers[node]] or self.buffers[node]
        for steps, indices in ((self.early, early), (self.late, late)):
            for k in indices:
                steps[k] = move_operands(steps[k], {old: new for old, new in new_view.items() if new is not None})
        for k in early:
            self.index_step(k, self.early[k])
        self.nodes.setdefault(target[0], []).extend(self.nodes.pop(slot, []))
        return True

"""Store values in arguments. To save a copy, the step that computes a value writes it directly to the argument's memory."""

from collections.abc import Collection

from ..ir.graph import Node
from ..ir.steps import BufferView, KernelLaunch, Step, may_overlap, relocate
from .fusion_log import IN_PLACE
from .scheduler import Scheduler, copy_kernel


class InPlaceStores:
    """Stores values in arguments, after the other steps of a scheduler.

    Parameters
    ----------
    scheduler : Scheduler
    needed : collection of int
        Slots of buffers that the call returns or saves: their values cannot be stored elsewhere.
    """

    def __init__(self, scheduler: Scheduler, needed: Collection[int]) -> None:
        self.scheduler, self.needed = scheduler, needed
        self.steps: dict[int, set[int]] = {}  # slot -> the steps that read or write it
        self.nodes: dict[int, list[Node]] = {}  # slot -> the nodes that are stored in it
        for k, step in enumerate(scheduler.steps):
            self.index_step(k, step)
        for node, (slot, _) in scheduler.buffers.items():
            self.nodes.setdefault(slot, []).append(node)

    def index_step(self, k: int, step: Step) -> None:
        """Add step k to the steps of the slots that it reads and writes."""
        for slot, _ in step.buffer_views():
            self.steps.setdefault(slot, set()).add(k)

    def store(self, source: BufferView, target: BufferView, node: Node) -> None:
        """Store a node in an argument: by the step that computes it, or by a copy if later steps read the old contents."""
        scheduler, slots = self.scheduler, (source[0], target[0])
        related = set[int]().union(*(self.steps.get(slot, ()) for slot in slots)) if source[0] not in self.needed else ()
        for k in sorted(related, reverse=True):
            step = scheduler.steps[k]
            source_view, target_view = step.as_output_view(source), step.as_output_view(target)
            if source_view in step.outputs and target_view[1].shape == step.shape:
                if can_store_in(step, target_view, target) and self.redirect(source, target, k):
                    if scheduler.log:
                        argument = self.nodes[target[0]][0]
                        scheduler.log.note(IN_PLACE, scheduler.log.emitted[k], (node, argument))
                    scheduler.steps[k] = step.alias_output(step.outputs.index(source_view), target_view)
                    self.index_step(k, scheduler.steps[k])
                    return
                break
            if any(may_overlap(x, target) for x in step.buffer_views()):
                break
        copy = KernelLaunch(copy_kernel(node), node.shape, (), [target], [source])
        scheduler.add_unfused_step(copy, node, "a copy into the argument")
        self.index_step(len(scheduler.steps) - 1, scheduler.steps[-1])

    def redirect(self, source: BufferView, target: BufferView, first: int) -> bool:
        """Let step `first` write to a target instead of a buffer, and later steps read it. Return False if they cannot."""
        scheduler, slot = self.scheduler, source[0]
        if slot < scheduler.first_buffer:  # another argument is stored there
            return False
        later = [k for k in self.steps[slot] if k > first]
        nodes = self.nodes.get(slot, [])
        old_views = [x for k in later for x in scheduler.steps[k].buffer_views()] + [
            scheduler.buffers[node] for node in nodes
        ]
        new_view = {x: relocate(x, source, target) for x in old_views}
        if None in new_view.values():
            return False
        for node in nodes:
            scheduler.buffers[node] = new_view[scheduler.buffers[node]] or scheduler.buffers[node]
        for k in later:
            step = scheduler.steps[k]
            step.outputs = [new_view[x] or x for x in step.outputs]
            step.inputs = [new_view[x] or x for x in step.inputs]
            step.indexed_operands = [new_view[x] or x for x in step.indexed_operands]
            self.index_step(k, step)
        self.nodes.setdefault(target[0], []).extend(self.nodes.pop(slot, []))
        return True


def can_store_in(step: Step, view: BufferView, target: BufferView) -> bool:
    """Return whether a step may store an output in a target that its inputs or other outputs may overlap.

    An overlapping input must have the same elements, each read only by the thread that overwrites it. A gather may read an
    element after it is overwritten, and two outputs cannot share memory.
    """
    overlapping = [k for k, x in enumerate(step.inputs) if may_overlap(x, target)]
    is_elementwise = all(step.inputs[k] == view and step.can_alias(k) for k in overlapping)
    return is_elementwise and not any(may_overlap(x, target) for x in (*step.indexed_operands, *step.outputs))

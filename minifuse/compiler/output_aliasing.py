"""Changes in place: values are put where arguments lie, by the steps that compute them wherever that is possible."""

from collections.abc import Collection

from ..ir.graph import Node
from ..ir.steps import BufferView, KernelLaunch, Step, may_overlap, relocate
from .form_kernels import KernelScheduler
from .fusion_log import IN_PLACE
from .kernel_builder import copy_kernel


class InPlaceStores:
    """Puts values in their places, after the steps of a schedule. `kept` are buffers that are needed for themselves."""

    def __init__(self, schedule: KernelScheduler, kept: Collection[int]) -> None:
        self.schedule, self.kept = schedule, kept
        self.steps: dict[int, set[int]] = {}  # slot -> the steps that read or write there
        self.nodes: dict[int, list[Node]] = {}  # slot -> what lies there
        for k, step in enumerate(schedule.steps):
            self.note(k, step)
        for node, (slot, _) in schedule.buffers.items():
            self.nodes.setdefault(slot, []).append(node)

    def note(self, k: int, step: Step) -> None:
        """Remember what a step reads and writes."""
        for slot, _ in step.buffer_views():
            self.steps.setdefault(slot, set()).add(k)

    def store(self, source: BufferView, target: BufferView, node: Node) -> None:
        """Put a node where an argument lies: by the step that computes it, unless what lay there is read after it."""
        schedule = self.schedule
        near = self.steps.get(source[0], set()) | self.steps.get(target[0], set()) if source[0] not in self.kept else ()
        for k in sorted(near, reverse=True):
            step = schedule.steps[k]
            seen, wanted = step.as_output_view(source), step.as_output_view(target)
            if seen in step.outputs and wanted[1].shape == step.shape:
                reads = [n for n, place in enumerate(step.inputs) if may_overlap(place, target)]
                is_own = all(step.inputs[n] == wanted and step.can_alias(n) for n in reads)
                is_own = is_own and not any(
                    may_overlap(place, target) for place in step.indexed_operands
                )  # read at any time
                is_own = is_own and not any(
                    may_overlap(place, target) for place in step.outputs
                )  # one launch, one store a place
                if is_own and self.rename(source, target, k):
                    if schedule.log:
                        argument = self.nodes[target[0]][0]
                        schedule.log.note(IN_PLACE, schedule.log.emitted[k], (node, argument))
                    schedule.steps[k] = step.alias_output(step.outputs.index(seen), wanted)
                    self.note(k, schedule.steps[k])
                    return
                break
            if any(may_overlap(place, target) for place in step.buffer_views()):
                break
        schedule.add(
            KernelLaunch(copy_kernel(node), node.shape, (), [target], [source]), node, "a copy to where an argument lies"
        )
        self.note(len(schedule.steps) - 1, schedule.steps[-1])

    def rename(self, source: BufferView, target: BufferView, first: int) -> bool:
        """Let what was to lie in a buffer lie in a target, from step `first` on, which makes it; False if it cannot."""
        schedule, slot = self.schedule, source[0]
        if slot < schedule.first_buffer:  # it is what another argument becomes
            return False
        later = [k for k in self.steps[slot] if k > first]
        places = [place for k in later for place in schedule.steps[k].buffer_views()]
        nodes = self.nodes.get(slot, [])
        known = {place: relocate(place, source, target) for place in [*places, *[schedule.buffers[node] for node in nodes]]}
        if None in known.values():
            return False
        for node in nodes:
            schedule.buffers[node] = known[schedule.buffers[node]] or schedule.buffers[node]
        for k in later:
            step = schedule.steps[k]
            step.outputs = [known[place] or place for place in step.outputs]
            step.inputs = [known[place] or place for place in step.inputs]
            step.indexed_operands = [known[place] or place for place in step.indexed_operands]
            self.note(k, step)
        self.nodes.setdefault(target[0], []).extend(self.nodes.pop(slot, []))
        return True

"""Changes in place: values are put where arguments lie, by the steps that compute them wherever that is possible."""

from collections.abc import Collection

from ..ir.graph import Node
from ..ir.steps import Launch, Place, Step, meet, moved
from .form_kernels import Schedule
from .fusion_log import IN_PLACE
from .kernel_builder import copy_of


class Stores:
    """Puts values in their places, after the steps of a schedule. `kept` are buffers that are needed for themselves."""

    def __init__(self, schedule: Schedule, kept: Collection[int]) -> None:
        self.schedule, self.kept = schedule, kept
        self.steps: dict[int, set[int]] = {}  # slot -> the steps that read or write there
        self.nodes: dict[int, list[Node]] = {}  # slot -> what lies there
        for k, step in enumerate(schedule.steps):
            self.note(k, step)
        for node, (slot, _) in schedule.place.items():
            self.nodes.setdefault(slot, []).append(node)

    def note(self, k: int, step: Step) -> None:
        """Remember what a step reads and writes."""
        for slot, _ in step.places():
            self.steps.setdefault(slot, set()).add(k)

    def store(self, source: Place, target: Place, node: Node) -> None:
        """Put a node where an argument lies: by the step that computes it, unless what lay there is read after it."""
        schedule = self.schedule
        near = self.steps.get(source[0], set()) | self.steps.get(target[0], set()) if source[0] not in self.kept else ()
        for k in sorted(near, reverse=True):
            step = schedule.steps[k]
            seen, wanted = step.sees(source), step.sees(target)
            if seen in step.outputs and wanted[1].shape == step.shape:
                reads = [n for n, place in enumerate(step.inputs) if meet(place, target)]
                is_own = all(step.inputs[n] == wanted and step.may_replace(n) for n in reads)
                is_own = is_own and not any(meet(place, target) for place in step.raws)  # read at any time
                is_own = is_own and not any(meet(place, target) for place in step.outputs)  # one launch, one store a place
                if is_own and self.rename(source, target, k):
                    if schedule.record:
                        argument = self.nodes[target[0]][0]
                        schedule.record.note(IN_PLACE, schedule.record.made[k], (node, argument))
                    schedule.steps[k] = step.in_place(step.outputs.index(seen), wanted)
                    self.note(k, schedule.steps[k])
                    return
                break
            if any(meet(place, target) for place in step.places()):
                break
        schedule.add(Launch(copy_of(node), node.shape, (), [target], [source]), node, "a copy to where an argument lies")
        self.note(len(schedule.steps) - 1, schedule.steps[-1])

    def rename(self, source: Place, target: Place, first: int) -> bool:
        """Let what was to lie in a buffer lie in a target, from step `first` on, which makes it; False if it cannot."""
        schedule, slot = self.schedule, source[0]
        if slot < schedule.first:  # it is what another argument becomes
            return False
        later = [k for k in self.steps[slot] if k > first]
        places = [place for k in later for place in schedule.steps[k].places()]
        nodes = self.nodes.get(slot, [])
        known = {place: moved(place, source, target) for place in [*places, *[schedule.place[node] for node in nodes]]}
        if None in known.values():
            return False
        for node in nodes:
            schedule.place[node] = known[schedule.place[node]] or schedule.place[node]
        for k in later:
            step = schedule.steps[k]
            step.outputs = [known[place] or place for place in step.outputs]
            step.inputs = [known[place] or place for place in step.inputs]
            step.raws = [known[place] or place for place in step.raws]
            self.note(k, step)
        self.nodes.setdefault(target[0], []).extend(self.nodes.pop(slot, []))
        return True

"""Elide copies: update an array in its own buffer if nothing reads the old elements afterwards.

A slice update is emitted as a copy of the old array to a new buffer, and launches that store slices there. The copy is
needed only if some launch reads an element of the old array after it is overwritten. A launch may read the elements that it
stores, since it reads each of them before it stores it. It may also read neighbors in slices that do not overlap the stored
one: the black cells of a checkerboard are updated from the red ones in place.

Only buffers of the call are merged. The pass compares regions of memory exactly, by `may_overlap`.
"""

from bisect import bisect_left
from collections.abc import Collection

from ..backends.base import Backend
from ..ir.array_functions import SliceUpdate
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, Load
from ..ir.steps import Step, can_store_in, may_overlap, move_operands
from .graph import Graph, needs

MAX_COMPARED_VIEWS = 1 << 10  # pairs of a stored region and a region that is read later; with more, the copy is kept


@needs(SliceUpdate, steps=2)
def elide_copies(graph: Graph, _target: Backend) -> Graph:
    """Remove the copy of an array before its slices are updated, if nothing reads the old elements afterwards.

    The second launch copies the array, and the third adds to a slice of the copy. Without the copy, it adds in place.

    >>> from minifuse.ir.array_functions import View
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> part = View("slice", ((0, 1, 2), (0, 1, 4)))
    >>> graph = trace(lambda x: SliceUpdate((part,))(x.exp(), part(x.exp()) + 1), (8, 4))
    >>> before, after = run_pass(elide_copies, graph)
    >>> print(*before.format_launches(graph.names()), sep="\\n")
    launch(x0 -> exp0)
    launch(exp0 -> add0)
    launch(exp0 -> add0)
    >>> print(*after.format_launches(graph.names()), sep="\\n")
    launch(x0 -> exp0)
    launch(exp0 -> exp0)
    """
    merger = BufferMerger(graph)
    for k in range(len(graph.steps)):
        merger.elide(k)
    return merger.result()


class BufferMerger:
    """The steps of a graph, while buffers are merged.

    Attributes
    ----------
    steps : list of Step or None
        None for a copy that was removed.
    kept : set of int
        The slots whose contents the call returns, saves or stores in arguments.
    users : dict of int to list of int
        Slot -> the steps that read or write it, in order.
    nodes : dict of int to list of Node
        Slot -> the nodes that are stored in it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.steps = graph, list[Step | None](graph.steps)
        self.buffers, self.copies = dict(graph.buffers), dict(graph.copies)
        self.nbytes = dict(enumerate(graph.buffer_nbytes, len(graph.arguments)))
        self.kept = {graph.locate(node)[0] for node in graph.roots}
        self.users: dict[int, list[int]] = {}
        self.nodes: dict[int, list[Node]] = {}
        for k, step in enumerate(graph.steps):
            for slot in {slot for slot, _ in step.buffer_views()}:
                self.users.setdefault(slot, []).append(k)
        for node, (slot, _) in (*self.buffers.items(), *self.copies.items()):
            self.nodes.setdefault(slot, []).append(node)

    def result(self) -> Graph:
        """Return the graph without the copies that were removed."""
        steps = tuple(x for x in self.steps if x is not None)
        if len(steps) == len(self.steps):
            return self.graph
        late_step = self.graph.late_step - self.steps[: self.graph.late_step].count(None)
        return self.graph.decide(steps=steps, late_step=late_step, buffers=self.buffers, copies=self.copies)

    def elide(self, k: int) -> None:
        """Remove step k if it only copies a buffer that may be updated in place."""
        slots = self.copied_slots(k)
        if slots is None:
            return
        old, new = slots
        later = [*self.users[new]]
        later.remove(k)
        readers = self.users[old][bisect_left(self.users[old], k + 1) :]
        changed = self.steps_in_place(old, new, later, readers)
        if changed is None:
            return
        for j, step in changed.items():
            self.steps[j] = step
        self.steps[k] = None
        self.users[old][bisect_left(self.users[old], k) :] = sorted({*readers, *later})
        self.rename(new, old)

    def copied_slots(self, k: int) -> tuple[int, int] | None:
        """Return the buffers that step k copies from and to; None if it does anything else, or if the first one is kept."""
        step = self.steps[k]
        if step is None or not isinstance(step.kernel, Kernel) or len(step.inputs) != 1 or len(step.outputs) != 1:
            return None
        (old, layout), (new, new_layout) = step.inputs[0], step.outputs[0]
        is_copy = not step.dims and all(type(e) is Load for e in step.kernel.outputs) and layout is new_layout
        if not is_copy or old == new or old in self.kept or not {old, new} <= self.nbytes.keys():
            return None
        nbytes = layout.size * step.kernel.outputs[0].dtype.itemsize
        is_entire = layout.is_dense and nbytes == self.nbytes[old] == self.nbytes[new]
        return (old, new) if is_entire and self.users[new][0] == k else None

    def steps_in_place(self, old: int, new: int, later: Collection[int], readers: Collection[int]) -> dict[int, Step] | None:
        """Return the steps that use the new buffer, changed to use the old one; None if one of them would be wrong.

        `readers` are the later steps that use the old buffer.
        """
        changed: dict[int, Step] = {}
        compared = 0
        for j in readers:
            if any(slot == old for slot, _ in self.step(j).outputs):
                return None
        for j in later:
            step = self.step(j)
            stored = [(n, layout) for n, (slot, layout) in enumerate(step.outputs) if slot == new]
            after = [i for i in readers if i >= j] if stored else []
            compared += len(stored) * len(after)
            if compared > MAX_COMPARED_VIEWS:
                return None
            targets = {n: (old, layout) for n, layout in stored}
            for target in targets.values():
                if any(may_overlap(x, target) for i in after if i != j for x in self.step(i).buffer_views()):
                    return None
                if not can_store_in(step, target, target):
                    return None
            moved = {(slot, layout): (old, layout) for slot, layout in step.buffer_views() if slot == new}
            changed[j] = move_operands(step.alias_outputs(targets), moved)
        return changed

    def step(self, k: int) -> Step:
        """Return a step that was not removed."""
        step = self.steps[k]
        assert step is not None
        return step

    def rename(self, new: int, old: int) -> None:
        """Note that the contents of the new buffer are in the old one."""
        for node in self.nodes.pop(new, ()):
            for views in (self.buffers, self.copies):
                if node in views and views[node][0] == new:
                    views[node] = old, views[node][1]
            self.nodes.setdefault(old, []).append(node)
        if new in self.kept:
            self.kept.add(old)
        del self.users[new]

"""Elide copies: update an array in its own buffer, and compute a value in the argument that it is stored in.

A slice update is emitted as a copy of the old array to a new buffer, and launches that store slices there. The copy is
needed only if some launch reads an element of the old array after it is overwritten. A launch may read the elements that it
stores, since it reads each of them before it stores it. It may also read neighbors in slices that do not overlap the stored
one: the black cells of a checkerboard are updated from the red ones in place.

The new value of an argument is emitted as a copy, too, from the buffer in which it is computed. The step that computes the
value stores it in the argument instead, if no later step reads old contents of the argument.

The pass compares regions of memory exactly, by `may_overlap`.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ..backends.base import Backend
from ..ir.array_functions import SliceUpdate
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, Load, ReadOutput
from ..ir.steps import BufferView, Step, can_store_in, may_overlap, move_operands, relocate
from .fusion_log import IN_PLACE, active_log
from .graph import Graph, Store, locate_view, needs

MAX_COMPARED_VIEWS = 1 << 10  # pairs of a stored region and a region that is read later; with more, the copy is kept


@needs(SliceUpdate, Store, steps=2)
def elide_copies(graph: Graph, _target: Backend) -> Graph:
    """Remove copies of arrays before an update, and of new values into arguments, if nothing reads the old elements later.

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

    A new value of an argument:

    >>> graph = trace(lambda x: x * 2, (4,), stored_in=0)
    >>> before, after = run_pass(elide_copies, graph)
    >>> print(*before.format_launches(graph.names()), sep="\\n")
    launch(x0 -> mul0)
    launch(mul0 -> x0)
    >>> print(*after.format_launches(graph.names()), sep="\\n")
    launch(x0 -> x0)
    """
    elision = CopyElision(graph)
    for k in range(len(graph.steps)):
        elision.merge_buffers(k)
    results = {elision.locate(node)[0] for node in graph.results if node not in graph.late}
    for k, store in enumerate(graph.stores, elision.first_store):
        elision.store(k, store.value, results)
    return elision.result()


class CopyElision:
    """The steps of a graph, while copies are elided.

    Attributes
    ----------
    steps : list of Step or None
        None for a copy that was removed.
    first_store : int
        The index of the first copy of a new value into an argument. These are the last steps before the late ones.
    kept : set of int
        The slots whose contents the call returns, saves or stores in arguments.
    users : dict of int to list of int
        Slot -> the steps that read or write it, in order, without the copies into arguments that may still be removed.
    nodes : dict of int to list of Node
        Slot -> the nodes that are stored in it.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.steps = graph, list[Step | None](graph.steps)
        self.first_store = graph.late_step - len(graph.stores)
        self.buffers, self.copies = dict(graph.buffers), dict(graph.copies)
        self.nbytes = dict(enumerate(graph.buffer_nbytes, len(graph.arguments)))
        self.kept = {graph.locate(node)[0] for node in graph.roots}
        self.users: dict[int, list[int]] = {}
        self.nodes: dict[int, list[Node]] = {}
        for k in (*range(self.first_store), *range(graph.late_step, len(graph.steps))):
            self.add_user(k)
        for node, (slot, _) in (*self.buffers.items(), *self.copies.items()):
            self.nodes.setdefault(slot, []).append(node)

    def result(self) -> Graph:
        """Return the graph without the copies that were removed."""
        late_step = self.graph.late_step - self.steps[: self.graph.late_step].count(None)
        steps = tuple(x for x in self.steps if x is not None)
        return self.graph.decide(steps=steps, late_step=late_step, buffers=self.buffers, copies=self.copies)

    def step(self, k: int) -> Step:
        """Return a step that was not removed."""
        step = self.steps[k]
        assert step is not None
        return step

    def add_user(self, k: int) -> None:
        """Add step k to the users of the slots that it reads and writes."""
        for slot, _ in self.step(k).buffer_views():
            self.add_users(slot, [k])

    def add_users(self, slot: int, steps: Sequence[int]) -> None:
        """Add steps, which are in order, to the users of a slot."""
        users = self.users.setdefault(slot, [])
        start = bisect_left(users, steps[0]) if steps else len(users)
        users[start:] = sorted({*users[start:], *steps})

    def locate(self, node: Node) -> BufferView:
        """Return where a node is in memory by now."""
        return locate_view(node, self.buffers, self.copies)

    def views(self, slot: int, users: Collection[int]) -> set[BufferView]:
        """Return the views of a slot: those of some of its users, and those of the nodes that are stored in it."""
        found = [x for k in users for x in self.step(k).buffer_views()]
        found += [views[x] for x in self.nodes.get(slot, ()) for views in (self.buffers, self.copies) if x in views]
        return {x for x in found if x[0] == slot}

    def move(self, slot: int, new_slot: int, new_view: Mapping[BufferView, BufferView], users: Sequence[int]) -> None:
        """Note that the contents of a slot are in another one: in its users, and in the nodes that are stored in it."""
        for k in users:
            self.steps[k] = move_operands(self.step(k), new_view)
        for views in (self.buffers, self.copies):
            views |= {x: new_view[views[x]] for x in self.nodes.get(slot, ()) if views.get(x) in new_view}
        self.nodes.setdefault(new_slot, []).extend(self.nodes.pop(slot, ()))
        self.users.pop(slot, None)
        self.add_users(new_slot, users)

    # A copy of an array, whose slices are updated: the array and its copy become one buffer.

    def merge_buffers(self, k: int) -> None:
        """Remove step k if it only copies a buffer that may be updated in place."""
        slots = self.copied_slots(k)
        if slots is None:
            return
        old, new = slots
        later = self.users[new][1:]
        readers = self.users[old][bisect_left(self.users[old], k + 1) :]
        changed = self.steps_in_place(old, new, later, readers)
        if changed is None:
            return
        for j, step in changed.items():
            self.steps[j] = step
        del self.users[old][bisect_left(self.users[old], k)]
        self.steps[k] = None
        self.move(new, old, {view: (old, view[1]) for view in self.views(new, later)}, later)
        self.kept |= {old} if new in self.kept else set()

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
        """Return the steps that store in the new buffer, changed to store in the old one; None if one would be wrong.

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
            changed[j] = step.alias_outputs(targets)
        return changed

    # The new value of an argument: the step that computes the value stores it there.

    def store(self, k: int, node: Node, results: Collection[int]) -> None:
        """Remove step k, which copies a node into an argument, if the step that computes the node can store it there.

        `results` are the slots that the call returns or saves: their values cannot be stored elsewhere.
        """
        source, target = self.locate(node), self.step(k).outputs[0]
        related = (
            {*self.users.get(source[0], ()), *self.users.get(target[0], ())} if source[0] not in results else set[int]()
        )
        for j in sorted((x for x in related if x < k), reverse=True):
            step = self.step(j)
            source_view, target_view = step.as_output_view(source), step.as_output_view(target)
            if source_view in step.outputs and target_view[1].shape == step.shape:
                if can_store_in(step, target_view, target) and self.redirect(source, target, j):
                    if active_log.log:
                        active_log.log.note(IN_PLACE, step.kernel_numbers[0], (node, self.nodes[target[0]][0]))
                    self.steps[j] = step.alias_outputs({step.outputs.index(source_view): target_view})
                    self.add_user(j)
                    self.steps[k] = None
                    return
                break
            if any(may_overlap(x, target) for x in step.buffer_views()):
                break
        self.steps[k] = replace(self.step(k), inputs=[source])
        self.add_user(k)

    def redirect(self, source: BufferView, target: BufferView, first: int) -> bool:
        """Let later steps read what step `first` stores in a target instead of a buffer. Return False if they cannot."""
        slot, step = source[0], self.step(first)
        if slot not in self.nbytes:  # another argument is stored there
            return False
        written = [k for k, x in enumerate(step.outputs) if x[0] == slot]
        is_entire = source[1].size * step.kernel.outputs[written[0]].dtype.itemsize == self.nbytes[slot]
        is_updated = any(e.index in written for e in Kernel(step.kernel.outputs, ()).find_all(ReadOutput))
        if not is_entire or is_updated:  # an earlier step has stored other slices, or the old elements, in the buffer
            return False
        readers = [k for k in self.users[slot] if k > first]
        views = self.views(slot, readers)
        new_view = {x: new for x in views if (new := relocate(x, source, target)) is not None}
        if len(new_view) < len(views):
            return False
        self.move(slot, target[0], new_view, readers)
        return True

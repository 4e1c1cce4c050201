"""Reorder steps to free buffers early and reuse cached data.

Kernels are formed in the order of the graph. A training step requests the gradients of all weights at its end, so each may
be computed long after its inputs. Until then these would occupy memory, and they would no longer be in the caches. So a step
runs as early as possible if it is the last one that needs some buffers, and they are larger than the buffers that it fills.
All other steps keep their order. Stores into the call's arguments also keep their order, since
adjacent stores may become one launch.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence

from ..backends.base import Backend
from ..ir.steps import NO_BUFFER, Step
from .graph import Graph, needs


@needs(steps=2)
def reorder(graph: Graph, _target: Backend) -> Graph:
    """Run each step that frees more memory than it fills as early as possible.

    Two layers, and a sum of the first one, which is requested last: it frees the first layer, so it runs as soon as the
    second layer is computed.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, v, w, u: ((x @ v @ w @ u).sum(0), (x @ v).sum(0)), *[(64, 64)] * 4)
    >>> before, after = run_pass(reorder, graph)
    >>> [step.outputs[0][0] for step in before.steps]  # the slots that are written
    [4, 5, 6, 7, 8]
    >>> [step.outputs[0][0] for step in after.steps]
    [4, 5, 8, 6, 7]
    """
    nbytes = dict(enumerate(graph.buffer_nbytes, len(graph.arguments)))
    order = reorder_for_memory(graph.steps, nbytes, {graph.locate(node)[0] for node in graph.results})
    return graph.decide(steps=tuple(graph.steps[k] for k in order))


def reorder_for_memory(steps: Sequence[Step], nbytes: Mapping[int, int], results: Container[int]) -> list[int]:
    """Return the order in which steps run, as indices.

    Parameters
    ----------
    steps : sequence of Step
    nbytes : mapping
        The size in bytes of each slot that is a buffer. All other slots are arguments of the call.
    results : container of int
        The slots of the buffers that are never freed.
    """
    slots = [{slot for slot, _ in step.buffer_views() if slot != NO_BUFFER} for step in steps]
    dependents = find_dependents(steps, slots)
    predecessor_counts = Counter(later for later_steps in dependents for later in later_steps)
    uses = Counter[int]()  # slot -> the number of remaining steps that use it
    user_index_sums = Counter[int]()  # slot -> the sum of the indices of these steps
    for k, step_slots in enumerate(slots):
        uses.update(step_slots)
        for slot in step_slots:
            user_index_sums[slot] += k
    allocated, order, done = set[int](), list[int](), [False] * len(steps)

    def frees_memory(k: int) -> bool:
        """Return whether less memory is allocated after a step than before it."""
        stored = {slot for slot, _ in steps[k].outputs}
        if not all(slot in nbytes for slot in stored):
            return False
        freed = sum(nbytes.get(slot, 0) for slot in slots[k] if uses[slot] == 1 and slot not in results)
        return freed > sum(nbytes[slot] for slot in stored - allocated)

    for first in range(len(steps)):
        ready = [first]
        while ready:
            k = ready.pop()
            if done[k]:
                continue
            done[k] = True
            order.append(k)
            allocated.update(slot for slot, _ in steps[k].outputs)
            candidates = set(dependents[k])
            predecessor_counts.subtract(candidates)
            for slot in slots[k]:
                uses[slot] -= 1
                user_index_sums[slot] -= k
                if uses[slot] == 1:  # the sum of the indices is the index of its last user
                    candidates.add(user_index_sums[slot])
            runnable = (n for n in candidates if not predecessor_counts[n] and not done[n] and frees_memory(n))
            ready += sorted(runnable, reverse=True)
    return order


def find_dependents(steps: Sequence[Step], slots: Sequence[set[int]]) -> list[set[int]]:
    """Return for each step the steps that must run after it: one of the two writes a slot that the other reads or writes."""
    dependents: list[set[int]] = [set() for _ in steps]
    last_writer = dict[int, int]()  # slot -> the last step that wrote it
    readers = defaultdict[int, list[int]](list)  # slot -> the steps that have read it since it was last written
    for k, step in enumerate(steps):
        written = {slot for slot, _ in step.outputs}
        for slot in slots[k]:
            if slot in last_writer:
                dependents[last_writer[slot]].add(k)
            if slot in written:
                for reader in readers.pop(slot, ()):
                    dependents[reader].add(k)
                last_writer[slot] = k
            else:
                readers[slot].append(k)
    return dependents

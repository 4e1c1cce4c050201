"""Steps in an order that lets go of memory early, and finds in caches what was just computed.

A schedule makes kernels in the order in which values are asked for. A training step asks for the gradients of all weights at
its end, so each would be computed long after what it is computed from, which would have to be held, and would come from
memory again. So a step comes as soon as it may if it is the last one that needs some buffers, larger than those that it
fills. All others stay in their order, and so do changes of arguments, which may be one launch if they are neighbours.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence

from ..ir.steps import NO_BUFFER, Step


def reorder_for_memory(steps: Sequence[Step], sizes: Mapping[int, int], results: Container[int]) -> list[int]:
    """The order in which steps run, as indices.

    Parameters
    ----------
    steps : sequence of Step
    sizes : mapping
        The bytes of each slot that is a buffer; all others are arguments of the call.
    results : container of int
        The buffers that are not let go of.
    """
    if len(steps) < 2:
        return [*range(len(steps))]
    slots = [{slot for slot, _ in step.buffer_views() if slot != NO_BUFFER} for step in steps]
    links = dependencies(steps, slots)
    waits = Counter(later for found in links for later in found)
    uses, users = Counter[int](), Counter[int]()  # of each slot by what is left: how many, and the sum of their indices
    for k, found in enumerate(slots):
        uses.update(found)
        for slot in found:
            users[slot] += k
    held, order, done = set[int](), list[int](), [False] * len(steps)

    def frees(k: int) -> bool:
        """Whether less is held after a step than before it."""
        stored = {slot for slot, _ in steps[k].outputs}
        if not all(slot in sizes for slot in stored):
            return False
        freed = sum(sizes.get(slot, 0) for slot in slots[k] if uses[slot] == 1 and slot not in results)
        return freed > sum(sizes[slot] for slot in stored - held)

    for first in range(len(steps)):
        ready = [first]
        while ready:
            k = ready.pop()
            if done[k]:
                continue
            done[k] = True
            order.append(k)
            held.update(slot for slot, _ in steps[k].outputs)
            near = set(links[k])
            waits.subtract(near)
            for slot in slots[k]:
                uses[slot] -= 1
                users[slot] -= k
                if uses[slot] == 1:
                    near.add(users[slot])
            ready += sorted((n for n in near if not waits[n] and not done[n] and frees(n)), reverse=True)
    return order


def dependencies(steps: Sequence[Step], slots: Sequence[set[int]]) -> list[set[int]]:
    """For each step those that must come after it: one of the two stores where the other reads or stores."""
    found: list[set[int]] = [set() for _ in steps]
    writer, readers = dict[int, int](), defaultdict[int, list[int]](list)  # of each slot: the last one, and those since
    for k, step in enumerate(steps):
        written = {slot for slot, _ in step.outputs}
        for slot in slots[k]:
            if slot in writer:
                found[writer[slot]].add(k)
            if slot in written:
                for reader in readers.pop(slot, ()):
                    found[reader].add(k)
                writer[slot] = k
            else:
                readers[slot].append(k)
    return found

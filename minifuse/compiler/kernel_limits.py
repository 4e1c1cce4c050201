"""Split a kernel that would be too long, or would make too many passes over its rows.

A kernel is cut where the fewest elements must be stored: each part stores the values that later parts load. The time to
compile a kernel grows with its length. With parts of limited length the total time stays linear, and equal parts are
compiled once.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..ir.array_functions import Reduce
from ..ir.graph import Node

MAX_OPS = 1000  # ops in one kernel; beyond that, compiling takes longer than fusion saves
MAX_PASSES = 6  # passes of a kernel over each row; each pass recomputes the pointwise values that it needs
TOO_MANY_OPS = f"a kernel computes at most {MAX_OPS} ops"
TOO_MANY_PASSES = f"a kernel makes at most {MAX_PASSES} passes over each row"


class KernelPart(NamedTuple):
    """A part of a split kernel: the nodes that it stores, and why it is a separate kernel."""

    stored: list[Node]
    reason: str


def split_into_parts(
    order: Sequence[Node], inputs_of: Callable[[Node], Sequence[Node]], required: Collection[Node]
) -> list[KernelPart]:
    """Split a kernel into parts that run one after the other, each with at most MAX_OPS ops and MAX_PASSES passes.

    Parameters
    ----------
    order : sequence of Node
        The nodes that the kernel would compute and load, inputs first.
    inputs_of : function
        Returns the nodes that a node is computed from; none for a node that is loaded.
    required : collection of Node
        The nodes of `order` that the kernel must store.

    Returns
    -------
    list of KernelPart
        All parts but the last. Each stores the nodes that later parts need, and those in `required`. The
        list is empty if the kernel need not be split.
    """
    inputs = [inputs_of(node) for node in order]
    reduction_count = sum(isinstance(node.function, Reduce) for node in order)
    if len(order) <= MAX_OPS and reduction_count <= MAX_PASSES:
        return []
    index = {node: k for k, node in enumerate(order)}
    last_use = list(range(len(order)))
    for k, xs in enumerate(inputs):
        for x in xs:
            if x in index and inputs[index[x]]:
                last_use[index[x]] = k
    size_changes = [0] * (len(order) + 1)
    for k, end in enumerate(last_use):
        size_changes[k + 1] += order[k].size
        size_changes[min(end, len(order) - 1) + 1] -= order[k].size
    cut_sizes = list(accumulate(size_changes))  # elements that a cut before each node would store
    required_indices = sorted(index[node] for node in required)
    parts, start = list[KernelPart](), 0
    while (stop := find_limit(order, inputs, index, start)) < len(order):
        cut = min(range((start + stop) // 2 + 1, stop + 1), key=lambda k: (cut_sizes[k], -k))
        stored = {k for k in range(start, cut) if last_use[k] >= cut}
        stored.update(required_indices[bisect_left(required_indices, start) : bisect_left(required_indices, cut)])
        reason = TOO_MANY_OPS if stop - start == MAX_OPS else TOO_MANY_PASSES
        parts.append(KernelPart([order[k] for k in sorted(stored) if inputs[k]], reason))
        start = cut
    return [part for part in parts if part.stored]


def find_limit(order: Sequence[Node], inputs: Sequence[Sequence[Node]], index: dict[Node, int], start: int) -> int:
    """Return the index at which a kernel that begins at `start` must end. All nodes before `start` are in memory."""
    stop = min(start + MAX_OPS, len(order))
    passes: dict[int, int] = {}  # node -> length of the longest chain of reductions that it depends on
    for k in range(start, stop):
        before = max((passes.get(index[x], 0) for x in inputs[k] if x in index), default=0)
        passes[k] = before + (isinstance(order[k].function, Reduce) and bool(inputs[k]))
        if passes[k] > MAX_PASSES:
            return k
    return stop

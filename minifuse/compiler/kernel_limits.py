"""Where a kernel that would be too long, or walk its rows too often, is cut: where the least must be stored.

What a compiler takes for a kernel grows with its length, so pieces of limited length keep the whole linear; and pieces that
compute the same are compiled once. A piece stores what later ones read, and they load it.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..ir.array_functions import Reduce
from ..ir.graph import Node

MAX_OPS = 1000  # functions in one kernel: beyond that, a compiler takes longer than it gains
MAX_PASSES = 6  # walks along a row: with each, all that later ones need is computed again
TOO_MANY_OPS = f"a kernel holds at most {MAX_OPS} functions"
TOO_MANY_PASSES = f"a row would be walked more than {MAX_PASSES} times"


class KernelPart(NamedTuple):
    """What a piece of a kernel stores, and why it is a kernel of its own."""

    stored: list[Node]
    reason: str


def split_points(
    order: Sequence[Node], inputs_of: Callable[[Node], Sequence[Node]], asked: Collection[Node]
) -> list[KernelPart]:
    """The kernels that come before another one, so that none of them is too long, one after the other.

    Parameters
    ----------
    order
        All that a kernel would compute and load, inputs first.
    inputs_of
        What a node is computed from; nothing of what is loaded.
    asked
        The nodes of `order` that the kernel is for.

    Returns
    -------
    list of Cut
        Of each piece but the last, what it stores: all that later ones need of it, and what is asked for. Empty where one
        kernel is enough.
    """
    inputs = [inputs_of(node) for node in order]
    folds = sum(isinstance(node.function, Reduce) for node in order)
    if len(order) <= MAX_OPS and folds <= MAX_PASSES:
        return []
    index = {node: k for k, node in enumerate(order)}
    ends = list(range(len(order)))  # who needs each node last
    for k, xs in enumerate(inputs):
        for x in xs:
            if x in index and inputs[index[x]]:
                ends[index[x]] = k
    dear = [0] * (len(order) + 1)  # elements that a cut before each place would store
    for k, end in enumerate(ends):
        dear[k + 1] += order[k].size
        dear[min(end, len(order) - 1) + 1] -= order[k].size
    dear = list(accumulate(dear))
    wanted = sorted(index[node] for node in asked)
    found, start = list[KernelPart](), 0
    while (stop := find_limit(order, inputs, index, start)) < len(order):
        cut = min(range((start + stop) // 2 + 1, stop + 1), key=lambda k: (dear[k], -k))
        stored = {k for k in range(start, cut) if ends[k] >= cut}
        stored.update(wanted[bisect_left(wanted, start) : bisect_left(wanted, cut)])
        reason = TOO_MANY_OPS if stop - start == MAX_OPS else TOO_MANY_PASSES
        found.append(KernelPart([order[k] for k in sorted(stored) if inputs[k]], reason))
        start = cut
    return [cut for cut in found if cut.stored]


def find_limit(order: Sequence[Node], inputs: Sequence[Sequence[Node]], index: dict[Node, int], start: int) -> int:
    """How far a kernel may go that begins at a place, all before which lies in memory."""
    stop = min(start + MAX_OPS, len(order))
    sweeps: dict[int, int] = {}  # folds, each inside the next, that a node waits for
    for k in range(start, stop):
        below = max((sweeps.get(index[x], 0) for x in inputs[k] if x in index), default=0)
        sweeps[k] = below + (isinstance(order[k].function, Reduce) and bool(inputs[k]))
        if sweeps[k] > MAX_PASSES:
            return k
    return stop

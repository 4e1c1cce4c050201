"""Choose values to store because kernels would otherwise compute them at many reindexings.

A kernel computes a view of a value as that value of views of its inputs. In `p = p + p[k]`, repeated, each step reads the
previous one at one more reindexing, or at twice as many. Inlined, the text of the kernel would grow with the square of the
number of steps, or double with each. Stored every few steps, it grows linearly.

The pass runs before kernels exist, so it estimates. It changes what is stored, never what is computed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ..core.operators import detach
from ..ir.array_functions import Identity, Reduce, View
from ..ir.gather import Gather
from ..ir.graph import Node, strip_views
from .kernel_depths import Consumer, Depths, pointwise_kernel, reducing_kernel
from .lower_gather import GATHER_NEEDS_MEMORY, lower_gather
from .reindexing import RESHAPE_NEEDS_COPY, ViewChains, Views, is_computable

FREE_COPIES = 2  # copies of a value that are never charged: storing it would cost more than recomputing one more copy
MAX_COPIES = 256  # copies counted per value; a higher count would not change a choice
MAX_RECOMPUTED = 128  # ops on one path through a kernel that are computed for copies beyond the free ones

TOO_MANY_REINDEXINGS = "kernels read it through many different views, and would compute it again for each"


class ViewedRead(NamedTuple):
    """One read of a value: by which node, and through which views."""

    user: Node
    views: Views


class ReindexedCopy(NamedTuple):
    """A value at one reindexing in one kernel."""

    kernel: Consumer
    views: Views


class InlinedCopies(NamedTuple):
    """How kernels compute a value that is not stored."""

    copies: dict[ReindexedCopy, None]
    recomputed: int
    """Ops that are computed for surplus copies, on the path from the output of a kernel to this value."""


def find_too_often_reindexed(
    nodes: Sequence[Node], roots: Collection[Node], stored: Collection[Node], depths: Depths
) -> dict[Node, str]:
    """Find the pointwise values that must be stored so that kernels stay short, each with the reason.

    Parameters
    ----------
    nodes : sequence of Node
        A graph without its views and numbers, inputs before users.
    roots : collection of Node
        Outputs of the graph.
    stored : collection of Node
        Values that are stored for other reasons.
    depths : mapping
        How many kernels run before the kernel of a node.

    Notes
    -----
    One pass from the outputs to the inputs. A value is charged for its surplus copies, each with the length of the
    pointwise computation that ends in it. Charges add up along the path from the output of a kernel. Beyond a limit, the
    value is stored, and the count starts again. So the number of copies of a value is bounded, and the pass is linear in the
    length of the graph.
    """
    reads, reasons = collect_reads(nodes)
    views = {node: {read.views for read in reads[node]} for node in nodes if node.is_pointwise}
    if not any(len(chains) > 1 for chains in views.values()):
        return reasons
    in_memory = {*stored, *reasons}
    ends = {node for node, chains in views.items() if any(chains)}  # values that are read through views: each is charged
    lengths, chains = chain_lengths(nodes, in_memory | ends), ViewChains()
    inlined: dict[Node, InlinedCopies] = {}
    for node in reversed(nodes):
        if not node.is_pointwise:
            continue
        stored_copy = {ReindexedCopy(pointwise_kernel(node, depths), ()): None}
        if node in in_memory:
            inlined[node] = InlinedCopies(stored_copy, 0)
            continue
        copies = dict.fromkeys(islice(iter_copies(node, reads[node], inlined, depths, chains), MAX_COPIES))
        if node in roots:
            copies |= stored_copy
        users = [inlined[user] for user, _ in reads[node] if user in inlined]
        # If a node is no end, its users are charged for its ops, once for each of their copies.
        charged = 0 if node in ends else max((len(user.copies) for user in users), default=0)
        recomputed = max((user.recomputed for user in users), default=0)
        recomputed += max(len(copies) - max(charged, FREE_COPIES), 0) * lengths[node]
        if recomputed > MAX_RECOMPUTED and not is_identity(node):
            reasons[node], copies, recomputed = TOO_MANY_REINDEXINGS, stored_copy, 0
        inlined[node] = InlinedCopies(copies, recomputed)
    return reasons


def collect_reads(nodes: Sequence[Node]) -> tuple[dict[Node, list[ViewedRead]], dict[Node, str]]:
    """Return all reads of each node, and the pointwise nodes that some reader needs in memory, with the reason."""
    reads: dict[Node, list[ViewedRead]] = {node: [] for node in nodes}
    needed: dict[Node, str] = {}

    def need(node: Node, reason: str) -> None:
        while is_identity(node):
            node = strip_views(node.inputs[0])
        if node.is_pointwise:
            needed[node] = reason

    for user in nodes:
        inputs: Sequence[Node] = user.inputs
        if isinstance(user.function, Gather):
            if inputs[0].size:  # from an empty array, nothing is read
                need(strip_views(inputs[0]), GATHER_NEEDS_MEMORY)
            inputs = lower_gather(user).inputs[1:]
        for x in inputs:
            views = list[View]()
            while x not in reads and x.inputs:
                if isinstance(x.function, View):
                    views.append(x.function)
                (x,) = x.inputs
            order = tuple(views[::-1])
            if x not in reads:
                continue
            if is_computable(x.shape, order):
                reads[x].append(ViewedRead(user, order))
            else:
                need(x, RESHAPE_NEEDS_COPY)
    return reads, needed


def iter_copies(
    node: Node, reads: Sequence[ViewedRead], inlined: Mapping[Node, InlinedCopies], depths: Depths, chains: ViewChains
) -> Iterator[ReindexedCopy]:
    """Yield the copies of a node that its readers need; some more than once."""
    for user, views in reads:
        if user in inlined:
            for kernel, after in inlined[user].copies:
                yield ReindexedCopy(kernel, chains.join(node.shape, views, after))
        else:
            consumer = reducing_kernel(user, depths) if isinstance(user.function, Reduce) else user
            yield ReindexedCopy(consumer, chains.join(node.shape, views, ()))


def chain_lengths(nodes: Sequence[Node], ends: Collection[Node]) -> dict[Node, int]:
    """Return for each node the length of the longest chain of pointwise ops from the nearest of `ends` to it."""
    lengths: dict[Node, int] = {}
    for node in nodes:
        is_computed = node.is_pointwise and any(not x.is_number for x in node.inputs)
        lengths[node] = 1 + max((lengths.get(x, 0) for x in node.inputs if x not in ends), default=0) if is_computed else 0
    return lengths


def is_identity(node: Node) -> bool:
    """Return whether a node has the elements of its input, and is distinct only for gradients or for memory."""
    return isinstance(node.function, Identity) or node.function is detach

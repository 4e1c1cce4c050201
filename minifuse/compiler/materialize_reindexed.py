"""Choose values to store because kernels would otherwise compute them once for each of many views.

To compute a view of f(x), a kernel applies f to the same view of x: f(x)[k] = f(x[k]). In n steps of `p = p + p[k]`, the
first p is read through n + 1 views if all steps use the same k, and through up to 2 ** n views if k differs. If a kernel
inlined every p, its length would grow with the square of the number of steps, or double with each step. If p is stored every
few steps, the length grows linearly.

The pass runs before kernels exist, so it estimates their length. It changes which values are stored, not their elements.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from ..ir.array_functions import Reduce, View
from ..ir.gather import GatherND
from ..ir.graph import Node, is_identity, strip_views
from .fusibility import GATHER_NEEDS_MEMORY
from .fusible_region import is_inlinable
from .kernel_depths import Consumer, Depths, pointwise_kernel, reducing_kernel
from .reindexing import RESHAPE_NEEDS_COPY, ViewChains, Views, is_computable

FREE_COPIES = 2  # copies of a value that are not counted: to store the value takes longer than to compute a second copy
MAX_COPIES = 256  # copies that are counted per value; a higher count would not change a choice
MAX_RECOMPUTED = 128  # ops that one path through a kernel may compute for copies beyond FREE_COPIES

TOO_MANY_REINDEXINGS = "kernels read it through many different views, and would compute it again for each"


class ViewedRead(NamedTuple):
    """One read of a value: by which node, and through which views."""

    user: Node
    views: Views


class ReindexedCopy(NamedTuple):
    """A value that one kernel computes through one chain of views."""

    kernel: Consumer
    views: Views


class InlinedCopies(NamedTuple):
    """The copies of a value that kernels compute, and the cost of recomputing it."""

    copies: dict[ReindexedCopy, None]
    recomputed: int
    """Ops for copies beyond FREE_COPIES on the path from the output of a kernel to this value; 0 if it is stored."""


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
    Nodes are visited once, from the outputs to the inputs. The cost of a value is the number of its copies beyond
    FREE_COPIES, times the number of ops in the longest pointwise chain that computes one copy. Costs add up along the path
    from the output of a kernel. If the sum exceeds MAX_RECOMPUTED, the value is stored, and the sum restarts at 0. So the
    number of copies of a value is bounded, and the pass is linear in the length of the graph.
    """
    reads, reasons = collect_reads(nodes)
    view_sets = {node: {read.views for read in reads[node]} for node in nodes if node.is_pointwise}
    if not any(len(views) > 1 for views in view_sets.values()):
        return reasons
    in_memory = {*stored, *reasons}
    viewed = {node for node, views in view_sets.items() if any(views)}  # values that are read through views
    lengths, view_chains = op_chain_lengths(nodes, in_memory | viewed), ViewChains()
    inlined: dict[Node, InlinedCopies] = {}
    for node in reversed(nodes):
        if not node.is_pointwise:
            continue
        stored_copy = {ReindexedCopy(pointwise_kernel(node, depths), ()): None}
        if node in in_memory:
            inlined[node] = InlinedCopies(stored_copy, 0)
            continue
        copies = dict.fromkeys(islice(iter_copies(node, reads[node], inlined, depths, view_chains), MAX_COPIES))
        if node in roots:
            copies |= stored_copy
        users = [inlined[user] for user, _ in reads[node] if user in inlined]
        # A node that is read without views is inlined into its users: its ops are counted there, once per copy of a user.
        counted_copies = 0 if node in viewed else max((len(user.copies) for user in users), default=0)
        recomputed = max((user.recomputed for user in users), default=0)
        recomputed += max(len(copies) - max(counted_copies, FREE_COPIES), 0) * lengths[node]
        if recomputed > MAX_RECOMPUTED and not is_identity(node):
            reasons[node], copies, recomputed = TOO_MANY_REINDEXINGS, stored_copy, 0
        inlined[node] = InlinedCopies(copies, recomputed)
    return reasons


def collect_reads(nodes: Sequence[Node]) -> tuple[dict[Node, list[ViewedRead]], dict[Node, str]]:
    """Return all reads of each node, and the pointwise nodes that some reader needs in memory, with the reason."""
    reads: dict[Node, list[ViewedRead]] = {node: [] for node in nodes}
    needed: dict[Node, str] = {}

    def require_stored(node: Node, reason: str) -> None:
        if is_inlinable(node):
            needed[node] = reason

    for user in nodes:
        if isinstance(user.function, GatherND):
            source = strip_views(user.inputs[0])
            while is_identity(source):  # which a gather reads through
                source = strip_views(source.inputs[0])
            require_stored(source, GATHER_NEEDS_MEMORY)
        for x in user.inputs[isinstance(user.function, GatherND) :]:
            views = list[View]()
            while x not in reads and x.inputs:
                if isinstance(x.function, View):
                    views.append(x.function)
                (x,) = x.inputs
            chain = tuple(views[::-1])
            if x not in reads:
                continue
            if is_computable(x.shape, chain):
                reads[x].append(ViewedRead(user, chain))
            else:
                require_stored(x, RESHAPE_NEEDS_COPY)
    return reads, needed


def iter_copies(
    node: Node, reads: Sequence[ViewedRead], inlined: Mapping[Node, InlinedCopies], depths: Depths, view_chains: ViewChains
) -> Iterator[ReindexedCopy]:
    """Yield the copies of a node that its readers need, some of them more than once."""
    for user, views in reads:
        if user in inlined:
            for kernel, user_views in inlined[user].copies:
                yield ReindexedCopy(kernel, view_chains.join(node.shape, views, user_views))
        else:
            consumer = reducing_kernel(user, depths) if isinstance(user.function, Reduce) else user
            yield ReindexedCopy(consumer, view_chains.join(node.shape, views, ()))


def op_chain_lengths(nodes: Sequence[Node], sources: Collection[Node]) -> dict[Node, int]:
    """Return for each node the number of ops in the longest pointwise chain that leads to it and starts after `sources`."""
    lengths: dict[Node, int] = {}
    for node in nodes:
        is_computed = node.is_pointwise and any(not x.is_number for x in node.inputs)
        lengths[node] = (
            1 + max((lengths.get(x, 0) for x in node.inputs if x not in sources), default=0) if is_computed else 0
        )
    return lengths

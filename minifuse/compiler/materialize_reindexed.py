"""Choose values to store because kernels would compute them at many reindexings.

A kernel computes a view of a value as that value of views of its inputs. In `p = p + p[k]`, repeated, each step reads the
one before it at one more reindexing, or at twice as many. Inlined, the text of the kernel would grow with the square of the
number of steps, or double with each. Stored every few steps, it grows linearly.

The pass runs before kernels exist, so it estimates. It changes what is stored, never what is computed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..core.operators import detach
from ..ir.array_functions import Fold, Same, View
from ..ir.gather import Take
from ..ir.graph import Node, base
from .lower_gather import FROM_MEMORY, as_at
from .reindexing import RESHAPED, Chains, Shape, Views, is_computable

FREE_COPIES = 2  # of a value, that are always computed: one more store costs more than one more copy saves
MAX_COPIES = 256  # that are told apart; one more would not change an answer
MAX_RECOMPUTED = 128  # functions on one path through a kernel that are computed for copies beyond those

AT_MANY_INDICES = "kernels need it at many indices, and would grow with each that they compute it at"

Stages = Mapping[Node, tuple[int, Any]]


class Loops(NamedTuple):
    """A kernel that the estimate expects: equal loops after as many other kernels are one kernel."""

    shape: Shape
    dims: tuple[int, ...]
    stage: int


Kernel = Loops | Node  # a node stands for a kernel of its own


class Read(NamedTuple):
    """One read of a value: by which node, and through which views."""

    user: Node
    views: Views


class Copy(NamedTuple):
    """A value at one reindexing in one kernel."""

    kernel: Kernel
    views: Views


class Inlined(NamedTuple):
    """How kernels compute a value that is not stored."""

    copies: dict[Copy, None]
    recomputed: int  # functions that are computed for surplus copies, on the path from the output of a kernel to here


def duplicated(nodes: Sequence[Node], roots: Collection[Node], stored: Collection[Node], stages: Stages) -> dict[Node, str]:
    """Find the pointwise values that must be stored so that kernels stay short, each with the reason.

    Parameters
    ----------
    nodes : sequence of Node
        A graph without its views and numbers, inputs before users.
    roots : collection of Node
        Outputs of the graph.
    stored : collection of Node
        Values that are stored for other reasons.
    stages : mapping
        How many kernels run before the one that computes a node.

    Notes
    -----
    One walk from the outputs to the inputs. A value is charged for its surplus copies, each with the length of the
    elementwise computation that ends in it. Charges add up along the path from the output of a kernel. Beyond a limit, the
    value is stored, and the count starts again. So the number of copies of a value is bounded, and the walk is linear in the
    length of the graph.
    """
    reads, found = reads_of(nodes)
    views = {node: {read.views for read in reads[node]} for node in nodes if node.is_pointwise}
    if not any(len(chains) > 1 for chains in views.values()):
        return found
    memory = {*stored, *found}
    ends = {node for node, chains in views.items() if any(chains)}  # each is charged itself
    lengths, chains = lengths_of(nodes, memory | ends), Chains()
    inlined: dict[Node, Inlined] = {}
    for node in reversed(nodes):
        if not node.is_pointwise:
            continue
        own = {Copy(Loops(node.shape, (), stages[node][0]), ()): None}
        if node in memory:
            inlined[node] = Inlined(own, 0)
            continue
        copies = dict.fromkeys(islice(copies_of(node, reads[node], inlined, stages, chains), MAX_COPIES))
        if node in roots:
            copies |= own
        users = [inlined[user] for user, _ in reads[node] if user in inlined]
        # The functions of a node that is no end are in the charge of its users, for each copy of those.
        charged = 0 if node in ends else max((len(user.copies) for user in users), default=0)
        recomputed = max((user.recomputed for user in users), default=0)
        recomputed += max(len(copies) - max(charged, FREE_COPIES), 0) * lengths[node]
        if recomputed > MAX_RECOMPUTED and not is_mark(node):
            found[node], copies, recomputed = AT_MANY_INDICES, own, 0
        inlined[node] = Inlined(copies, recomputed)
    return found


def reads_of(nodes: Sequence[Node]) -> tuple[dict[Node, list[Read]], dict[Node, str]]:
    """Return all reads of each node, and the pointwise nodes that some reader needs in memory, with the reason."""
    reads: dict[Node, list[Read]] = {node: [] for node in nodes}
    needed: dict[Node, str] = {}

    def need(node: Node, reason: str) -> None:
        while is_mark(node):
            node = base(node.inputs[0])
        if node.is_pointwise:
            needed[node] = reason

    for user in nodes:
        inputs: Sequence[Node] = user.inputs
        if isinstance(user.function, Take):
            if inputs[0].size:  # otherwise there is nothing to pick from
                need(base(inputs[0]), FROM_MEMORY)
            inputs = as_at(user).inputs[1:]
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
                reads[x].append(Read(user, order))
            else:
                need(x, RESHAPED)
    return reads, needed


def copies_of(
    node: Node, reads: Sequence[Read], inlined: Mapping[Node, Inlined], stages: Stages, chains: Chains
) -> Iterator[Copy]:
    """Yield the copies of a node that its readers need; some more than once."""
    for user, views in reads:
        if user in inlined:
            for kernel, after in inlined[user].copies:
                yield Copy(kernel, chains.joined(node.shape, views, after))
        elif isinstance(user.function, Fold):
            yield Copy(
                Loops(user.inputs[0].shape, user.function.dims, stages[user][0]), chains.joined(node.shape, views, ())
            )
        else:
            yield Copy(user, chains.joined(node.shape, views, ()))


def lengths_of(nodes: Sequence[Node], ends: Collection[Node]) -> dict[Node, int]:
    """Return for each node the length of the longest chain of elementwise functions from the next of some `ends` to it."""
    found: dict[Node, int] = {}
    for node in nodes:
        is_computed = node.is_pointwise and any(not x.is_number for x in node.inputs)
        found[node] = 1 + max((found.get(x, 0) for x in node.inputs if x not in ends), default=0) if is_computed else 0
    return found


def is_mark(node: Node) -> bool:
    """Return whether a node is the same array as its input, told apart for gradients or for memory."""
    return isinstance(node.function, Same) or node.function is detach

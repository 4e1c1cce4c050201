"""Which values of single elements are stored though nobody asked for them: those that many kernels would compute again.

A kernel computes elementwise values on the way to its own, which costs nothing where what they read is read anyway. But in
`x1 = x0 + f(x0); x2 = x1 + f(x1); ...`, where each f is a kernel or two, every kernel would add up all that came before it:
time, text and compilation would grow with the square of the length. Stored, each x is one array to read.

What is said here is an estimate, before any kernel is made; it decides what lies in memory, never what is computed.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from ..ir.array_functions import Matmul, Reduce, View
from ..ir.graph import Node, strip_views
from .materialize_reindexed import Depths, reindexed_too_often

MAX_COUNTED = 8  # readers, or arrays, that are told apart
RECOMPUTING_READS_MORE = "several kernels need it, and would read more to compute it again than it has elements"

Edges = Mapping[Node, Collection[Node]]


def choose_materialized(order: Sequence[Node], roots: Collection[Node]) -> dict[Node, str]:
    """Find the values that kernels store for others to read, each with the reason.

    Parameters
    ----------
    order : sequence of Node
        The graph, inputs before users.
    roots : collection of Node
        Outputs of the graph. They are stored in any case; those in the result are stored before another kernel reads them.

    Notes
    -----
    A value that reads A arrays of its own size and is needed in K kernels is read A K times over if each computes it, and
    A + 1 + (K - 1) times if it is stored; so storing pays where (A - 1) (K - 1) > 1.
    """
    nodes = [node for node in order if not node.is_number and not isinstance(node.function, View)]
    below = {node: [x for i in node.inputs if not (x := strip_views(i)).is_number] for node in nodes}
    users: dict[Node, dict[Node, None]] = {node: {} for node in nodes}
    for node in nodes:
        for x in below[node]:
            users[x][node] = None
    stages = kernel_depths(nodes, below)
    shared = profitable_nodes(nodes, roots, below, users, stages)
    return dict.fromkeys(shared, RECOMPUTING_READS_MORE) | reindexed_too_often(nodes, roots, shared, stages)


def profitable_nodes(
    nodes: Sequence[Node], roots: Collection[Node], below: Edges, users: Edges, stages: Depths
) -> set[Node]:
    """Find the values that many kernels read, and that are computed from several arrays."""
    candidates = {node for node in nodes if node.is_pointwise and len(users[node]) > 1 and node not in roots}
    if not candidates:
        return candidates
    arrays = arrays_loaded(nodes, below, {})
    found, ends = dict[Node, int](), dict[Node, dict[Any, None]]()  # with how many kernels read it
    for node in reversed(nodes):
        readers = dict[Any, None]()
        for user in users[node]:
            if not user.is_pointwise:
                readers[(user.inputs[0].shape, user.function.dims, stages[user][0]) if is_reduction(user) else user] = None
            elif user in found:
                readers[user] = None
            elif user in roots:
                readers[user.shape, None, stages[user][0]] = None
            else:
                readers |= ends[user]
        ends[node] = dict.fromkeys(islice(readers, MAX_COUNTED))
        if node in candidates and is_profitable(arrays[node], kernels := count_kernels(readers)):
            found[node] = kernels
    arrays = arrays_loaded(nodes, below, found)  # fewer, since some of what they read is stored
    return {node for node in found if node in arrays[node]}


def is_profitable(arrays: Collection[Node], kernels: int) -> bool:
    """Whether it pays to store what is computed from some arrays, and read by some kernels."""
    return (len(arrays) - 1) * (kernels - 1) > 1


def is_reduction(node: Node) -> bool:
    """Whether a node is a fold."""
    return isinstance(node.function, Reduce)


def count_kernels(readers: Collection[Any]) -> int:
    """How many kernels read a value. A kernel that folds a space stores points of it, too."""
    folding = {(key[0], key[2]) for key in readers if isinstance(key, tuple) and key[1] is not None}
    joined = [key for key in readers if isinstance(key, tuple) and key[1] is None and (key[0], key[2]) in folding]
    return len(readers) - len(joined)


def kernel_depths(nodes: Sequence[Node], below: Edges) -> dict[Node, tuple[int, Any]]:
    """How many kernels come before the one that computes a node, and the rows that this one has folded by then."""
    found: dict[Node, tuple[int, Any]] = {}
    for node in nodes:
        stage, space = max((found[x] for x in below[node]), key=lambda known: known[0], default=(0, None))
        if is_reduction(node):
            own = node.inputs[0].shape, node.function.dims
            found[node] = stage + (space is not None and space != own), own
        elif node.is_pointwise or not node.inputs:
            found[node] = stage, space
        else:
            found[node] = stage + isinstance(node.function, Matmul) + 1, None
    return found


def arrays_loaded(nodes: Sequence[Node], below: Edges, stored: dict[Node, int]) -> dict[Node, dict[Node, None]]:
    """Which arrays of about its size a kernel would read to compute a node: of many, some.

    Of what may be `stored`, for so many kernels, it is the value itself where that pays.
    """
    found: dict[Node, dict[Node, None]] = {}
    for node in nodes:
        if not node.is_pointwise:
            found[node] = {node: None}
            continue
        read = dict.fromkeys(x for y in below[node] for x in found[y] if 2 * x.size > node.size)
        found[node] = dict.fromkeys(islice(read, MAX_COUNTED))
        if node in stored and is_profitable(found[node], stored[node]):
            found[node] = {node: None}
    return found

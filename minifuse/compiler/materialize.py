"""Choose which pointwise intermediates to materialize instead of recomputing them in every consumer.

A kernel inlines the pointwise ops before it, which is free as long as they read arrays that the kernel reads anyway.
Recomputing stops being free in a residual chain `x1 = x0 + f(x0); x2 = x1 + f(x1); ...` where each f is a kernel or two:
every kernel would add up the chain from its beginning, so code size, compile time and memory reads would grow with the
square of its length. If each x is stored, a kernel loads one array.

The pass runs before kernels exist, so it estimates. It changes what is stored, never what is computed.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from ..backends.base import Backend
from ..ir.array_functions import Reduce, View
from ..ir.composite_op import CompositeOutput
from ..ir.gather import GatherND
from ..ir.graph import Node, strip_views
from .graph import Graph, needs
from .kernel_depths import Consumer, Depths, Inputs, count_kernels, kernel_depths, pointwise_kernel, reducing_kernel
from .materialize_reindexed import find_too_often_reindexed

MAX_COUNTED = 8  # consumers or loads counted per node: keeps the pass linear, and a higher count would not change a choice
MAX_ARRAYS = 24  # arrays of any size that several kernels load for one value

RECOMPUTING_READS_MORE = "recomputing it in each consumer would read more memory than storing it"
TOO_MANY_ARRAYS = f"to recompute it, each consumer would load more than {MAX_ARRAYS} arrays"

Arrays = dict[Node, None]  # an ordered set


@needs(ops=2)
def choose_materialized(graph: Graph, _target: Backend) -> Graph:
    """Choose pointwise nodes that a kernel stores for others to read, because recomputing them would cost more.

    The sum reads three arrays and two matmuls need it, so it is stored; `exp` and `sin` are inlined.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda a, b, c, w: ((a + b + c).exp() @ w, (a + b + c).sin() @ w), *[(64, 64)] * 4)
    >>> print(run_pass(choose_materialized, graph)[1])
    add0 = x0 + x1
    add1 = add0 + x2  # stored
    exp0 = exp(add1)
    matmul0 = exp0 @ x3
    sin0 = sin(add1)
    matmul1 = sin0 @ x3
    """
    reads = [x for node in graph.ops for x in node.inputs if x.inputs]
    if len({*reads}) == len(reads) and not graph.has(View, GatherND):
        return graph  # each value is read once, by a kernel that inlines it
    return graph.decide(materialized=find_materialized(graph.nodes, graph.stored_roots))


def find_materialized(order: Sequence[Node], roots: Collection[Node]) -> dict[Node, str]:
    """Find the pointwise values that a kernel stores for others to read, each with the reason.

    Parameters
    ----------
    order : sequence of Node
        The graph, inputs before users.
    roots : collection of Node
        Outputs of the graph. They are stored in any case. An output that is in the result is stored before another kernel
        reads it.
    """
    nodes = [node for node in order if not node.is_number and not isinstance(node.function, View)]
    inputs = {node: [x for i in node.inputs if not (x := strip_views(i)).is_number] for node in nodes}
    depths = kernel_depths(nodes, inputs)
    profitable = profitable_nodes(nodes, roots, inputs, depths)
    reindexed = find_too_often_reindexed(nodes, roots, profitable, depths)
    return profitable | reindexed


def profitable_nodes(nodes: Sequence[Node], roots: Collection[Node], inputs: Inputs, depths: Depths) -> dict[Node, str]:
    """Find the pointwise nodes whose storing saves memory traffic or many arguments of kernels, each with the reason.

    Parameters
    ----------
    nodes : sequence of Node
        A graph without its views and numbers, inputs before users.
    roots : collection of Node
        Outputs of the graph. They are in memory in any case, and are never in the result.
    inputs : mapping
        The nodes that each node reads, through views.
    depths : mapping
        How many kernels run before the kernel of a node.

    Notes
    -----
    One pass from the outputs to the inputs, then one back: linear in the length of the graph.
    """
    users: dict[Node, dict[Node, None]] = {node: {} for node in nodes}  # dicts as ordered sets
    for node in nodes:
        for x in inputs[node]:
            users[x][node] = None
    candidates = {node for node in nodes if node.is_pointwise and len(users[node]) > 1 and node not in roots}
    if not candidates:
        return {}
    loads = list_loaded_arrays(nodes, inputs, {})
    chosen: dict[Node, int] = {}  # node -> number of kernels that read it
    consumers_of: dict[Node, dict[Consumer, None]] = {}
    for node in reversed(nodes):
        consumers: dict[Consumer, None] = {}
        for user in users[node]:
            if isinstance(user.function, Reduce):
                consumers[reducing_kernel(user, depths)] = None
            elif isinstance(user.function, CompositeOutput):
                consumers[CompositeOutput(user.function.op, 0)(*user.inputs)] = None  # one kernel has all outputs
            elif not user.is_pointwise or user in chosen:
                consumers[user] = None
            elif user in roots:
                consumers[pointwise_kernel(user, depths)] = None
            else:  # inlined: a kernel that reads the user computes this node, too
                consumers |= consumers_of[user]
        consumers_of[node] = dict.fromkeys(islice(consumers, MAX_COUNTED))
        if node in candidates and why_stored(node, loads[node], kernel_count := count_kernels(consumers)):
            chosen[node] = kernel_count
    # Count again, now that a chosen node counts as one array: some chosen nodes read others, and so fewer arrays.
    loads = list_loaded_arrays(nodes, inputs, chosen)
    return {node: reason for node in chosen if (reason := why_stored(node, loads[node], chosen[node])) is not None}


def why_stored(node: Node, arrays: Arrays, kernel_count: int) -> str | None:
    """Return why a value that several kernels would compute from some arrays is stored instead; None if it is not."""
    large = [x for x in arrays if 2 * x.size > node.size]
    if is_profitable(min(len(large), MAX_COUNTED), kernel_count):
        return RECOMPUTING_READS_MORE
    return TOO_MANY_ARRAYS if len(arrays) > MAX_ARRAYS and kernel_count > 1 else None


def is_profitable(array_count: int, kernel_count: int) -> bool:
    """Compare recomputing a value with storing it, in passes over memory.

    Recomputing in each of K kernels loads its A arrays K times: A * K. Storing loads them once, stores the value, and
    loads it in the other K - 1 kernels: A + 1 + (K - 1). The difference A * K - A - K is positive if
    (A - 1) * (K - 1) > 1.

    >>> is_profitable(1, kernel_count=9), is_profitable(2, kernel_count=2), is_profitable(2, kernel_count=3)
    (False, False, True)
    """
    return (array_count - 1) * (kernel_count - 1) > 1


def list_loaded_arrays(nodes: Sequence[Node], inputs: Inputs, chosen: Mapping[Node, int]) -> dict[Node, Arrays]:
    """List for each node the arrays that a kernel loads to compute it: at most MAX_ARRAYS + 1.

    For its users, a node that is `chosen` (with its number of kernels), and still needs to be stored, is one array.
    """
    loads: dict[Node, Arrays] = {}
    found: dict[Node, Arrays] = {}  # what its users load
    for node in nodes:
        loads[node] = found[node] = {node: None}
        if node.is_pointwise:
            arrays = dict.fromkeys(x for y in inputs[node] for x in found[y])
            loads[node] = dict.fromkeys(islice(arrays, MAX_ARRAYS + 1))
            if node not in chosen or why_stored(node, loads[node], chosen[node]) is None:
                found[node] = loads[node]
    return loads

"""Choose reductions that are computed inside the kernels of other reductions, instead of being stored for them.

A kernel loops over one set of rows. A reduction of other dims can be computed there, too: at each point, by a loop of its
own. Whether that pays is a matter of cost: the ops that are computed again, against the bytes that need not be stored and
loaded. `fusibility` has the limits.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from ..backends.base import Backend
from ..core.layout import row_major
from ..core.operators import Operator
from ..ir.array_functions import Reduce, View
from ..ir.graph import Node, strip_views
from ..ir.kernel_ir import Kernel, Load, cast, reduce_expr
from ..ir.nested_reduce import LIFTABLE_VIEWS, NestedReduce
from ..ir.steps import Step
from .fusibility import MAX_CACHED_ROW, MAX_SHARED_AXIS, NESTED_HAS_STATES, NESTED_NEEDS_VIEWS, why_not_nested
from .fusible_region import iter_inlined
from .graph import Graph, needs
from .iteration_space import IterationSpace, reduction_space
from .reindexing import Views, is_computable, layout_of_views

MAX_READS = 64  # reads of a reduction that are followed: keeps the pass linear
MAX_INLINED = 64  # nodes that a nested reduction is computed from

Users = Mapping[Node, Iterable[Node]]


class NestedCost(NamedTuple):
    """What it costs to compute a reduction where it is needed, instead of storing it."""

    row_size: int
    """Elements that it reduces for each result."""
    rows: int
    """Rows of the kernel that would compute it; the fewest, if several would."""
    points: int
    """Points at which it would be computed, over all kernels and passes."""
    ops: int
    """Ops that are computed again, all in all."""
    saved_nbytes: int
    """Bytes that are neither stored nor loaded, less those of arrays that are loaded again; negative if these are more."""


def find_reductions(graph: Graph) -> list[Node]:
    """Return the reductions of a graph, inputs first."""
    return [x for x in graph.nodes if isinstance(x.function, Reduce)]


@needs(Reduce)
def nest_reductions(graph: Graph, target: Backend) -> Graph:
    """Compute short reductions inside the kernels of the reductions that need them, if that costs less than storing them.

    The sum over three dims is computed again for each point of the sum over 4,096 distances:

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(lambda x, y: ((x[:, None] - y) ** 2).sum(2).sqrt().sum(1), (4096, 3), (4096, 3))
    >>> print(run_pass(nest_reductions, graph)[1])
    reshape0 = reshape(x0, 4096, 1, 3)
    expand0 = expand(reshape0, 4096, 4096, 3)
    expand1 = expand(x1, 4096, 4096, 3)
    sub0 = expand0 - expand1
    mul0 = sub0 * sub0
    reshape1 = reshape(mul0, 4096, 4096, 1, 3)
    nested_sum0 = nested_sum(reshape1, dim=3)
    reshape2 = reshape(nested_sum0, 4096, 4096)
    sqrt0 = sqrt(reshape2)
    sum0 = sum(sqrt0, dim=1)
    reshape3 = reshape(sum0, 4096)
    """
    reductions = find_reductions(graph)
    if len(reductions) < 2:
        return graph
    points, reasons = choose_nested(graph, target, reductions)
    graph = graph.decide(not_nested=reasons) if reasons else graph
    return graph.substitute({node: nested(node) for node in points}) if points else graph


def choose_nested(graph: Graph, target: Backend, reductions: Sequence[Node]) -> tuple[dict[Node, int], dict[Node, str]]:
    """Return the reductions to nest, with the points at which each is computed; and why others are not.

    Consumers are visited first, because a reduction in a nested one is computed at all of its points.
    """
    roots = graph.stored_roots | {strip_views(node) for _, node in graph.contents}
    points, reasons = dict[Node, int](), dict[Node, str]()
    for node in reversed(reductions):
        readers = find_readers(node, graph.users, roots, points)
        if readers is None:
            continue
        reason = None if readers.has_liftable_views else NESTED_NEEDS_VIEWS
        reason = NESTED_HAS_STATES if len(node.inputs) > 1 else reason
        if reason is None and (cost := estimate_cost(node, readers, points)) is not None:
            times = -(-cost.points // node.size)
            reason = why_not_nested(cost.row_size, cost.rows, times, cost.ops, cost.saved_nbytes)
            if reason is None and (reason := target.supports(probe(node, next(iter(readers.chains))))) is None:
                points[node] = cost.points
        if reason is not None:
            reasons[node] = reason
    return points, reasons


class Readers(NamedTuple):
    """The reductions that read a reduction through views and pointwise nodes."""

    chains: dict[Node, list[Views]]
    """Each of them, with the chains of views through which it reads."""
    outputs: list[Node]
    """Outputs of the graph that the kernels of these reductions store, and that are computed from the reduction again."""
    has_liftable_views: bool
    """Whether a kernel can compute all views of the reduction that are read."""


def find_readers(node: Node, users: Users, roots: Container[Node], nested: Container[Node]) -> Readers | None:
    """Return the reductions that read a node; None if it must be stored in any case.

    That is so if something else reads it, or a kernel of its own rows, or too many nodes to follow.
    """
    found, outputs, is_liftable = dict[Node, list[Views]](), dict[Node, None](), True
    reads: list[tuple[Node, Views]] = [(node, ())]
    visited = {*reads}
    for x, views in reads:
        if (x is node and x in roots) or len(reads) > MAX_READS:
            return None
        outputs |= {x: None} if x in roots else {}
        for user in users.get(x, ()):
            function, chain = user.function, views
            if isinstance(function, Reduce):
                if user not in nested and has_rows_of(user, node):
                    return None
                found.setdefault(user, []).append(views)
                continue
            if isinstance(function, View):
                chain = (*views, function)
                is_liftable = is_liftable and function.method in LIFTABLE_VIEWS and is_computable(node.shape, chain)
            elif not user.is_pointwise:
                return None
            if (user, chain) not in visited:
                visited.add((user, chain))
                reads.append((user, chain))
    if not found or not all(is_stored_by_reader(x, found, nested) for x in outputs):
        return None
    return Readers(found, [*outputs], is_liftable)


def is_stored_by_reader(output: Node, readers: Container[Node], nested: Container[Node]) -> bool:
    """Return whether an output is computed from one of some reductions, and has the shape that this reduction loops over."""
    inner = [x for x in iter_inlined(output) if x in readers and x not in nested]
    return output.is_pointwise and any(x.inputs[0].shape == output.shape for x in inner)


def has_rows_of(reader: Node, node: Node) -> bool:
    """Return whether two reductions reduce the same rows, so that one kernel computes both."""
    return reduction_space(reader) == reduction_space(node)


def shared_points(node: Node, reader: Node, chains: Sequence[Views]) -> int:
    """Return for how many points of another reduction a kernel computes a reduction once: the indices of a short row axis.

    A kernel keeps one result of the other reduction for each index of its last row axis, if that is short.
    """
    shape = reader.inputs[0].shape
    rows = [d for d, n in enumerate(shape) if n > 1 and d not in reader.function.dims]
    if len(rows) < 2 or shape[rows[-1]] > MAX_SHARED_AXIS:
        return 1
    layouts = [layout_of_views(node.shape, chain) for chain in chains]
    is_constant = all(layout is not None and not layout.strides[rows[-1]] for layout in layouts)
    return shape[rows[-1]] if is_constant else 1


def estimate_cost(node: Node, readers: Readers, points: Mapping[Node, int]) -> NestedCost | None:
    """Estimate the cost of computing a reduction where others read it; None if it is computed from too many nodes.

    `points` are those of nested reductions: all that these read is computed there again.
    """
    order = inlined_nodes(node)
    if order is None or not node.size:
        return None
    size, rows = row_size(node), [x.size for x in readers.chains if x not in points]
    passes: dict[IterationSpace, list[int]] = {}  # the points of each pass of the kernels that read it
    for reader, chains in readers.chains.items():
        per_result = 1 if has_rows_of(reader, node) else row_size(reader)
        count = reader.inputs[0].size // shared_points(node, reader, chains)
        count = points[reader] * per_result if reader in points else count
        passes.setdefault(reduction_space(reader), []).append(count)
    is_kept = max(map(row_size, readers.chains)) <= MAX_CACHED_ROW
    evaluations = sum(max(counts) if is_kept else sum(counts) for counts in passes.values())
    evaluations += 0 if is_kept else sum(x.size for x in readers.outputs)
    ops = count_ops(order)
    repeated = max(evaluations - node.size, 0)
    arrays = {strip_views(x) for x in order} - {x for x in order if x.is_pointwise}
    large = sum(x.size * x.dtype.itemsize for x in arrays if not x.is_number and x.size >= node.size)
    saved = (
        1 + len(readers.chains) + len(readers.outputs)
    ) * node.size * node.dtype.itemsize - large * repeated // node.size
    return NestedCost(size, min(rows, default=node.size), evaluations, repeated * size * ops, saved)


def count_ops(order: Sequence[Node]) -> int:
    """Return the ops of a reduction for each element that it reduces, if it is computed from some nodes."""
    return 1 + sum(x.function.cost if isinstance(x.function, Operator) else 1 for x in order if x.is_pointwise)


def inlined_nodes(node: Node) -> list[Node] | None:
    """Return the nodes that a kernel of a reduction computes or loads; None if there are too many."""
    order: dict[Node, None] = {}
    for x in iter_inlined(node):
        order[x] = None
        if len(order) > MAX_INLINED:
            return None
    return [*order]


def row_size(node: Node) -> int:
    """Return the number of elements that a reduction reduces for each result."""
    shape: tuple[int, ...] = node.inputs[0].shape
    return prod(shape[d] for d in node.function.dims)


def probe(node: Node, reader: Node) -> Step:
    """Return a step that reduces like a reduction inside another one, to ask a backend about."""
    shape = (*reader.inputs[0].shape, row_size(node))
    inner = reduce_expr(node.function.operator, Load(0, node.inputs[0].dtype), (len(shape) - 1,))
    dims = reader.function.dims
    outer = reduce_expr(reader.function.operator, tuple(cast(inner, x.dtype) for x in reader.inputs), dims)
    rows = tuple(1 if d in (*dims, len(shape) - 1) else n for d, n in enumerate(shape))
    layouts = [row_major(rows).expand(*shape)], [row_major(shape)]
    return Step.of_layouts(Kernel((), (outer,)), shape, (*dims, len(shape) - 1), *layouts)


def nested(node: Node) -> Node:
    """Return a reduction as one of the last dims, which is computed inside other kernels."""
    (x,), dims = node.inputs, node.function.dims
    kept = [d for d in range(x.ndim) if d not in dims]
    last = x.permute(*kept, *dims).reshape(*node.shape, *[x.shape[d] for d in dims])
    return Node(NestedReduce(node.function.operator, len(dims)), (last,), node.shape, node.dtype)

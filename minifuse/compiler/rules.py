"""Local rewrites of the graph: each rule matches one node and its inputs, and returns the node that replaces it.

A rule that matches nothing returns its node. The driver is `Graph.rewrite`: it visits the nodes, inputs first. The functions
that a rule matches are named by `needs`: its pass does not run on a graph without them.
"""

from bisect import bisect, insort
from collections.abc import Mapping
from typing import NamedTuple

from ..backends.base import Backend
from ..core.dtypes import int64
from ..core.layout import row_major
from ..core.operators import Operator, add, pow, sub, where  # noqa: A004
from ..core.overlap import Interval, are_disjoint_slices, intersects, range_interval
from ..ir.array_functions import Cast, CustomVJP, Full, PadSlice, SliceUpdate, View
from ..ir.composite_op import CompositeOp, CompositeOutput
from ..ir.gather import BatchedUpdate, Gather, GatherND, Scatter, ScatterReduce, fill_value
from ..ir.graph import Literal, Node, literal
from ..ir.indexing import combine
from ..ir.scan import Scan
from ..ir.sorted_scatter import DTYPES as SORTED_DTYPES
from ..ir.sorted_scatter import MIN_COMPARISONS, MIN_SELECTIONS, scatter_by_sort, update_by_sort
from ..ir.sorted_scatter import OPERATORS as SORTED_OPERATORS
from ..ir.step_kernels import CompositeKernel, ScanKernel, plain_scan
from ..ir.steps import Step
from .graph import Graph, needs


@needs(CompositeOutput, CustomVJP)
def decompose(graph: Graph, target: Backend) -> Graph:
    """Replace composite ops that the target has no kernel for by their definitions.

        attention(q, k, v)         ->  softmax(q @ k.T / sqrt(d)) @ v
        custom_vjp(value, *inputs) ->  value, because the gradients are already derived

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> before, after = run_pass(decompose, trace(lambda x: CustomVJP()(x * x, x) + x, (4,)))
    >>> print(before)
    mul0 = x0 * x0
    custom_vjp0 = mul0
    add0 = custom_vjp0 + x0
    >>> print(after)
    mul0 = x0 * x0
    add0 = mul0 + x0
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(CustomVJP(), (value, *_)):
                return value
            case Node(CompositeOutput(op, index), inputs) if target.supports(composite_step(node, op)) is not None:
                body = op.sorted_body if target.sorts_scatters else op.fused_body if target.inlines_padding else op.body
                definition: Node = body(*inputs)[index]
                definitions.append(definition)
                return definition
        return node

    definitions = list[Node]()
    graph = graph.rewrite(rule)
    has_composites = any(isinstance(x.function, CompositeOutput) for x in Graph(tuple(definitions)).nodes)
    return decompose(graph, target) if has_composites else graph  # a definition may contain other composite ops


def composite_step(node: Node, op: CompositeOp) -> Step:
    """Return the step of a composite op, of which a node is an output, for operands in row-major order."""
    outputs = [row_major(shape) for shape, _ in op.infer(*node.inputs)]
    inputs = [row_major(x.shape) for x in node.inputs]
    return Step.of_layouts(composite_kernel(node, op), outputs[0].shape, (), outputs, inputs)


def composite_kernel(node: Node, op: CompositeOp) -> CompositeKernel | ScanKernel:
    """Return the kernel of a composite op, of which a node is an output; of a scan, without prologue and epilogue."""
    dtypes = tuple(x.dtype for x in node.inputs)
    if isinstance(op, Scan):
        return plain_scan(op, dtypes)
    return CompositeKernel(op, dtypes, tuple(dtype for _, dtype in op.infer(*node.inputs)))


@needs(pow)
def expand_powers(graph: Graph, _target: Backend) -> Graph:
    """Replace powers with a constant exponent of 2, 3 or 4 by products.

    The gradient of a power contains one with an exponent that is computed from constants.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> before, after = run_pass(expand_powers, trace(lambda x: x**3 + x**0.3, (4,)))
    >>> print(before)
    pow0 = pow(x0, 3)
    pow1 = pow(x0, 0.3)
    add0 = pow0 + pow1
    >>> print(after)
    mul0 = x0 * x0
    mul1 = mul0 * x0
    pow0 = pow(x0, 0.3)
    add0 = mul1 + pow0
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(function, (x, exponent)) if function is pow and not x.is_number:
                count = literal_value(exponent)
                if count in (2, 3, 4):
                    square: Node = x * x
                    return square if count == 2 else square * x if count == 3 else square * square
        return node

    return graph.rewrite(rule)


def literal_value(node: Node) -> float | None:
    """Return the value of a literal, or of a literal minus others; None for any other node."""
    subtracted = list[str]()
    while isinstance(node.function, View | Cast) or (node.function is sub and isinstance(node.inputs[1].function, Literal)):
        node, *others = node.inputs
        subtracted += [x.function.text for x in others]
    if not isinstance(node.function, Literal) or {"True", "False"} & {node.function.text, *subtracted}:
        return None
    value = float(node.function.text)
    for text in reversed(subtracted):
        value -= float(text)
    return value


# Gradients of slices. The gradient of a slice is the gradient of its result, padded with zeros (`PadSlice`). If an array is
# used in slices, such as the weight of queries, keys and values, its gradient is a sum of padded gradients: one for each
# slice, each as large as the whole array. If the slices are disjoint, they are stored in one array instead.


MAX_PADDED = 16  # padded slices of a sum that are compared with each other


class NonzeroRanges(NamedTuple):
    """Where an array may be nonzero along one dim: disjoint ranges, in order."""

    dim: int
    ranges: list[Interval]


@needs(PadSlice)
def merge_slice_gradients(graph: Graph, _target: Backend) -> Graph:
    """Replace sums of disjoint padded slices by updates of one array.

    Slices that leave no gap are one array, too, if they are added to another array one after the other: x + pad(g) + pad(h).

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> low, high = PadSlice((4,), ((0, 1, 2),)), PadSlice((4,), ((2, 1, 2),))
    >>> before, after = run_pass(merge_slice_gradients, trace(lambda a, b: low(a) + high(b), (2,), (2,)))
    >>> print(before)
    pad_slice0 = pad_slice(x0)
    pad_slice1 = pad_slice(x1)
    add0 = pad_slice0 + pad_slice1
    >>> print(after)
    pad_slice0 = pad_slice(x0)
    slice_update0 = slice_update(pad_slice0, x1)
    """
    ranges_of: dict[Node, NonzeroRanges | None] = {}  # None for a PadSlice: it has one range along each dim
    sums: dict[Node, PaddedSum] = {}

    def rule(node: Node) -> Node:
        result = merge_pair(node)
        if isinstance(node.function, PadSlice):
            sums[node] = PaddedSum(None, (node,))
        elif node.function is add and (found := add_sums(node, sums)) is not None:
            joined = found.join()
            if joined is not None:
                return joined
            sums[result] = found
        return result

    def merge_pair(node: Node) -> Node:
        match node:
            case Node(PadSlice()):
                ranges_of[node] = None
            case Node(function, inputs) if function is add and ranges_of.keys() >= set(inputs):
                base, padded = sorted(inputs, key=lambda x: isinstance(x.function, PadSlice))
                if isinstance(padded.function, PadSlice) and (nonzero := add_range(base, ranges_of[base], padded)):
                    node = SliceUpdate((View("slice", padded.function.ranges),))(base, *padded.inputs)
                    ranges_of[node] = nonzero
        return node

    return graph.rewrite(rule)


class PaddedSum(NamedTuple):
    """A sum of padded slices, and of at most one other array."""

    rest: Node | None
    padded: tuple[Node, ...]

    def join(self) -> Node | None:
        """Return the sum with the padded slices as one array, if they are disjoint and leave no gap; or None."""
        y, *others = self.padded
        is_whole = sum(x.inputs[0].size for x in self.padded) == y.size and y.size
        if not (others and is_whole and are_disjoint_slices([x.function.ranges for x in self.padded])):
            return None
        for x in others:
            y = SliceUpdate((View("slice", x.function.ranges),))(y, *x.inputs)
        return y if self.rest is None else self.rest + y


def add_sums(node: Node, sums: Mapping[Node, PaddedSum]) -> PaddedSum | None:
    """Return a sum of two arrays as a sum of padded slices; None if it is none, or a sum of too many."""
    rest, padded = [], tuple[Node, ...]()
    for x in node.inputs:
        found = sums.get(x, PaddedSum(x, ()))
        rest += [found.rest] * (found.rest is not None)
        padded += found.padded
    return PaddedSum(rest[0] if rest else None, padded) if padded and len(rest) < 2 and len(padded) <= MAX_PADDED else None


def add_range(base: Node, nonzero: NonzeroRanges | None, padded: Node) -> NonzeroRanges | None:
    """Return the nonzero ranges of the sum of an array and a padded slice, or None if they may overlap."""
    new_ranges = padded.function.ranges
    if 0 in (*padded.inputs[0].shape, *base.shape):
        return None
    if nonzero is None:
        for dim, pair in enumerate(zip(base.function.ranges, new_ranges, strict=True)):
            a, b = (range_interval(*x) for x in pair)
            if not intersects(a, b):
                return NonzeroRanges(dim, sorted([a, b]))
        return None
    ranges, new_interval = [*nonzero.ranges], range_interval(*new_ranges[nonzero.dim])
    k = bisect(ranges, new_interval)
    if any(intersects(new_interval, neighbor) for neighbor in ranges[max(k - 1, 0) : k + 1]):
        return None
    insort(ranges, new_interval)
    return NonzeroRanges(nonzero.dim, ranges)


# Gathers and scatters. In a kernel, a gather is pointwise in its indices, and a scatter is a reduction. So both fuse
# with the ops around them like any other op.


@needs(Gather, Scatter, BatchedUpdate)
def lower_gather(graph: Graph, target: Backend) -> Graph:
    """Replace gathers by selections with an index along each dim, and scatters by reductions of the values with an index.

    If a scatter has too many comparisons, a target with a kernel for it sorts the index instead (`ir.sorted_scatter`).

        gather(x, index)[i, j]      = x[index[i], j]
        scatter_add(g, index)[v, j] = sum over i of (g[i, j] where index[i] == v, else 0)

    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> graph = trace(Gather(0), (9, 2), (4,), dtypes=(float32, int64))
    >>> print(run_pass(lower_gather, graph)[1])
    reshape0 = reshape(x1, 4, 1)
    expand0 = expand(reshape0, 4, 2)
    expand1 = expand(iota0, 4, 2)
    gather_nd0 = gather_nd(x0, expand0, expand1)
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(Gather(dim), (x, index)):
                return select_elements(node, x, dim, index)
            case Node(Scatter(operator, dim, size), (values, index)) if sorts_scatter(target, operator, values, size, index):
                sorted_result: Node = scatter_by_sort(operator, values, dim, size, index)
                return sorted_result
            case Node(Scatter(operator, dim, size), (values, index)):
                return reduce_by_index(operator, values, dim, size, index)
            case Node(BatchedUpdate(operator), (x, index, values)):
                updated: Node = update_rows(target, operator, x, index, values)
                return updated
        return node

    return graph.rewrite(rule)


def sorts_scatter(target: Backend, operator: Operator, values: Node, size: int, index: Node) -> bool:
    """Return whether a scatter has too many comparisons, so that a target that sorts by itself should sort the index."""
    is_slow = index.size * size >= MIN_COMPARISONS or values.size * size >= MIN_SELECTIONS
    return is_slow and is_sortable(target, operator, values)


def is_sortable(target: Backend, operator: Operator, values: Node) -> bool:
    """Return whether a target has kernels for a scatter of these values by a sorted index."""
    return target.sorts_scatters and operator in SORTED_OPERATORS and values.dtype in SORTED_DTYPES


def select_elements(gather: Node, x: Node, dim: int, index: Node) -> Node:
    """Return a gather as a selection of elements of x by an index along each dim."""
    added_dims = index.ndim - 1  # how many more dims the result has than x
    if not x.size:  # there is nothing to read, not even for an index that is out of range
        return Node(Full(gather.shape, x.dtype), (literal(fill_value(x.dtype), x.dtype),), gather.shape, x.dtype)
    expanded_index = index.to(int64).reshape(*index.shape, *[1] * (x.ndim - dim - 1)).expand(*gather.shape)
    indices = [
        expanded_index if d == dim else index_along(gather, n, d + added_dims * (d > dim)) for d, n in enumerate(x.shape)
    ]
    return Node(GatherND(dim), (x, *indices), gather.shape, gather.dtype)


def reduce_by_index(operator: Operator, values: Node, dim: int, size: int, index: Node) -> Node:
    """Return a scatter as a reduction: each element of the result combines the values whose index is its position."""
    before, after = values.shape[:dim], values.shape[dim + index.ndim :]
    index_shape = index.shape or (1,)
    shape = *before, size, *index_shape, *after
    expanded = values.reshape(*before, 1, *index_shape, *after).expand(*shape)
    keys = index.to(int64).reshape(*index_shape, *[1] * len(after)).expand(*shape)
    selected = where(keys == index_along(keys, size, dim), expanded, operator.identity_for(values.dtype))
    result: Node = ScatterReduce(operator, tuple(range(dim + 1, dim + 1 + len(index_shape))))(selected)
    return result


def update_rows(target: Backend, operator: Operator, x: Node, index: Node, values: Node) -> Node:
    """Return an update within each batch: by a sort, or as a reduction of the values with an index for each position."""
    batch, size, columns = x.shape
    if sorts_scatter(target, operator, values, size, index) or (index.ndim > 1 and is_sortable(target, operator, values)):
        updated: Node = update_by_sort(operator, x, values, index)
        return updated
    if index.ndim == 1:
        combined: Node = combine(x, reduce_by_index(operator, values, 1, size, index), operator)
        return combined
    shape = batch, size, index.shape[1], columns
    keys = index.to(int64).reshape(batch, 1, -1, 1).expand(*shape)
    selected = where(
        keys == index_along(keys, size, 1),
        values.reshape(batch, 1, -1, columns).expand(*shape),
        operator.identity_for(x.dtype),
    )
    reduced: Node = combine(x, ScatterReduce(operator, (2,))(selected), operator)
    return reduced


def index_along(node: Node, size: int, dim: int) -> Node:
    """Return 0, 1, ..., size - 1 along a dim of a node, expanded to the node's shape."""
    positions: Node = node.positions(size).reshape(size, *[1] * (node.ndim - dim - 1)).expand(*node.shape)
    return positions

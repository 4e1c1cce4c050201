"""Local rewrites of the graph: each rule matches one node and its inputs, and returns the node that replaces it.

A rule that matches nothing returns its node. The driver is `Graph.rewrite`: it visits the nodes, inputs first. The functions
that a rule matches are named by `needs`: its pass does not run on a graph without them.
"""

from bisect import bisect, insort
from itertools import islice
from math import prod
from typing import NamedTuple

from ..backends.base import Backend
from ..core.dtypes import int64
from ..core.layout import row_major
from ..core.operators import add, pow, sub, where  # noqa: A004
from ..core.overlap import Interval, intersects, range_interval
from ..ir.array_functions import Cast, CompositeOp, CompositeOutput, CustomVJP, Full, PadSlice, Reduce, SliceUpdate, View
from ..ir.gather import Gather, GatherND, ScatterAdd, ScatterReduce, fill_value
from ..ir.graph import Literal, Node, literal
from ..ir.kernel_ir import Kernel, Load, reduce_expr
from ..ir.monoid import MonoidState, combine_states, reduce_states
from ..ir.nested_reduce import NestedReduce
from ..ir.step_kernels import CompositeKernel
from ..ir.steps import Step
from .fusible_region import iter_inlined
from .graph import Graph, needs


@needs(CompositeOutput, CustomVJP)
def decompose(graph: Graph, target: Backend) -> Graph:
    """Replace composite ops that the target has no kernel for by their definitions.

        attention(q, k, v)         ->  softmax(q @ k.T / sqrt(d)) @ v
        custom_vjp(value, *inputs) ->  value, because the gradients are already derived

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x = Node(Argument(0), (), (4,), float32)
    >>> graph = Graph((CustomVJP()(x * x, x) + x,))
    >>> print(graph)
    mul0 = x0 * x0
    custom_vjp0 = mul0
    add0 = custom_vjp0 + x0
    >>> print(decompose(graph, PythonBackend()))
    mul0 = x0 * x0
    add0 = mul0 + x0
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(CustomVJP(), (value, *_)):
                return value
            case Node(CompositeOutput(op, index), inputs) if target.supports(composite_step(node, op)) is not None:
                body = op.fused_body if target.inlines_padding else op.body
                definition: Node = body(*inputs)[index]
                return definition
        return node

    return graph.rewrite(rule)


def composite_step(node: Node, op: CompositeOp) -> Step:
    """Return the step of a composite op, of which a node is an output, for operands in row-major order."""
    outputs = [row_major(shape) for shape, _ in op.infer(*node.inputs)]
    inputs = [row_major(x.shape) for x in node.inputs]
    return Step.of_layouts(composite_kernel(node, op), outputs[0].shape, (), outputs, inputs)


def composite_kernel(node: Node, op: CompositeOp) -> CompositeKernel:
    """Return the kernel of a composite op, of which a node is an output."""
    return CompositeKernel(op, tuple(x.dtype for x in node.inputs), tuple(dtype for _, dtype in op.infer(*node.inputs)))


@needs(pow)
def expand_powers(graph: Graph, _target: Backend) -> Graph:
    """Replace powers with a constant exponent of 2, 3 or 4 by products.

    The gradient of a power contains one with an exponent that is computed from constants.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x = Node(Argument(0), (), (4,), float32)
    >>> graph = Graph((x**3 + x**0.3,))
    >>> print(graph)
    pow0 = pow(x0, 3)
    pow1 = pow(x0, 0.3)
    add0 = pow0 + pow1
    >>> print(expand_powers(graph, PythonBackend()))
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


class NonzeroRanges(NamedTuple):
    """Where an array may be nonzero along one dim: disjoint ranges, in order."""

    dim: int
    ranges: list[Interval]


@needs(PadSlice)
def merge_slice_gradients(graph: Graph, _target: Backend) -> Graph:
    """Replace sums of disjoint padded slices by updates of one array.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> a, b = (Node(Argument(k), (), (2,), float32) for k in range(2))
    >>> graph = Graph((PadSlice((4,), ((0, 1, 2),))(a) + PadSlice((4,), ((2, 1, 2),))(b),))
    >>> print(graph)
    pad_slice0 = pad_slice(x0)
    pad_slice1 = pad_slice(x1)
    add0 = pad_slice0 + pad_slice1
    >>> print(merge_slice_gradients(graph, PythonBackend()))
    pad_slice0 = pad_slice(x0)
    slice_update0 = slice_update(pad_slice0, x1)
    """
    ranges_of: dict[Node, NonzeroRanges | None] = {}  # None for a PadSlice: it has one range along each dim

    def rule(node: Node) -> Node:
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


# Reductions with several states. They read their elements once. A definition by reductions with one state reads them several
# times, but with fewer accumulators and simpler arithmetic, so it is faster if a row stays in registers or in a cache.


@needs(Reduce)
def lower_monoids(graph: Graph, target: Backend) -> Graph:
    """Replace reductions with several states by their definitions, where a row is short or the target has no kernel.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import maximum
    >>> from minifuse.ir.graph import Argument
    >>> from minifuse.ir.monoids import FIRST_EXTREME
    >>> class KeepsRows(PythonBackend):
    ...     kept_nbytes = 512
    >>> x, index = Node(Argument(0), (), (9, 5), float32), Node(Argument(1), (), (9, 5), int64)
    >>> graph = Graph((Reduce(FIRST_EXTREME[maximum].states[1], (1,))(x, index),))
    >>> print(graph)
    argmax0 = argmax(x0, x1, dim=1)
    >>> print(lower_monoids(graph, KeepsRows()))
    max0 = max(x0, dim=1)
    expand0 = expand(max0, 9, 5)
    eq0 = x0 == expand0
    ne0 = x0 != x0
    or_0 = eq0 | ne0
    where0 = where(or_0, x1, 9.223e+18)
    min0 = min(where0, dim=1)
    """

    def rule(node: Node) -> Node:
        operator, dims = node.function.operator, node.function.dims
        if not isinstance(operator, MonoidState) or operator.monoid.definition is None or len(node.inputs) == 1:
            return node
        if kept_between_sweeps(node, target) > target.kept_nbytes and target.supports(reduction_step(node)) is None:
            return node
        states = operator.monoid.definition(lambda one, x: Reduce(one, dims)(x), *node.inputs)
        found: Node = states[operator.states.index(operator)]
        return found

    return graph.rewrite(lambda node: rule(node) if isinstance(node.function, Reduce) else node)


def kept_between_sweeps(node: Node, target: Backend) -> int:
    """Return the bytes that a kernel reads between two reads of the same element, if it needs two sweeps.

    This is a row, or some adjacent columns.
    """
    x, dims = node.inputs[0], node.function.dims
    columns = prod(x.shape[max(dims) + 1 :])
    nbytes: int = x.size // max(node.size, 1) * min(columns, target.columns_per_block) * x.dtype.itemsize
    return nbytes


def reduction_step(node: Node) -> Step:
    """Return the step of a reduction, for operands in row-major order."""
    shape = node.inputs[0].shape
    loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
    kernel = Kernel((), (reduce_expr(node.function.operator, loads),))
    outputs = [row_major(node.shape).expand(*shape)]
    return Step.of_layouts(kernel, shape, node.function.dims, outputs, [row_major(shape)] * len(loads))


# Long reductions. Their chunks can be computed in parallel, rounding errors stay small, and the order of summation does not
# depend on the number of threads.

CHUNK_SIZE = 1 << 14  # elements of a long row that are reduced in one chunk
MAX_ROWS_TO_SPLIT_EARLY = 64  # with at most this many rows, shorter ones are split, too, so that all threads have work
MIN_SIZE_TO_SPLIT_COLUMNS = 1 << 18  # elements of an array whose columns are split
MIN_CHUNKS_PER_COLUMN = 16  # chunks into which a column is split, at least
MIN_CHUNKS_IN_ALL_COLUMNS = 1 << 14  # chunks that keep a GPU busy: fewer columns are split into more chunks
MAX_ROW_NODES = 64  # nodes in which a reduction of rows is looked for: keeps the pass linear
MIN_COLUMN_CHUNK = 64  # elements of a chunk of a column, if it is split to keep a GPU busy
MAX_COLUMN_CHUNK = 1 << 10  # elements of a chunk of a column: they are added one after the other


@needs(Reduce, ops=2)
def reduce_rows_first(graph: Graph, _target: Backend) -> Graph:
    """Reduce rows before the other dims, where values depend on a reduction of their row: one kernel does both.

    The mean of each row and the sum of squared distances are reduced by one kernel, which reads each row once:

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x = Node(Argument(0), (), (64, 1000), float32)
    >>> distance = x - Reduce(add, (1,))(x).expand(64, 1000) / 1000
    >>> print(reduce_rows_first(Graph((Reduce(add, (0, 1))(distance * distance),)), PythonBackend()))
    sum0 = sum(x0, dim=1)
    expand0 = expand(sum0, 64, 1000)
    div0 = expand0 / 1000
    sub0 = x0 - div0
    mul0 = sub0 * sub0
    sum1 = sum(mul0, dim=1)
    sum2 = sum(sum1, dim=0)
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(Reduce(dims=dims, operator=operator), (x,)) if len(dims) > 1:
                for found in islice(iter_inlined(node), MAX_ROW_NODES):
                    if isinstance(found.function, Reduce) and found.inputs[0].shape == x.shape:
                        row = found.function.dims
                        if x.ndim - 1 in row and set(row) < set(dims):
                            result: Node = Reduce(operator, tuple(d for d in dims if d not in row))(Reduce(operator, row)(x))
                            return result
        return node

    return graph.rewrite(rule)


@needs(Reduce)
def split_reductions(graph: Graph, target: Backend) -> Graph:
    """Replace long reductions by reductions of chunks, and a reduction of their results.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x = Node(Argument(0), (), (1 << 20,), float32)
    >>> print(split_reductions(Graph((Reduce(add, (0,))(x),)), PythonBackend()))
    unflatten0 = unflatten(x0, 0, 64)
    sum0 = sum(unflatten0, dim=1)
    sum1 = sum(sum0, dim=0, 1)
    reshape0 = reshape(sum1, 1)
    """

    has_nested = graph.has(NestedReduce)

    def rule(node: Node) -> Node:
        match node:
            case Node(Reduce()):
                is_nesting = has_nested and any(isinstance(x.function, NestedReduce) for x in iter_inlined(node))
                return split_reduction(node, splits_columns=not is_nesting)
        return node

    return graph if target.splits_reductions else graph.rewrite(rule)


def split_reduction(reduction: Node, splits_columns: bool = True) -> Node:
    """Split a reduction into chunks if it is large enough.

    Long rows are split, and shorter ones, too, if they are few. Long columns are split as well: the elements of a column
    are far apart in memory, but those of one chunk of all columns are close together. Columns that a kernel computes by
    nested reductions are not in memory.
    """
    inputs, operator = reduction.inputs, reduction.function.operator
    x = inputs[0]
    dims = [d for d in reduction.function.dims if x.shape[d] > 1]
    row_size = x.size // max(reduction.size, 1)
    has_few_rows = reduction.size <= MAX_ROWS_TO_SPLIT_EARLY
    has_long_rows = row_size >= (4 if has_few_rows else 16) * CHUNK_SIZE
    is_strided = bool(dims) and prod(x.shape[dims[-1] + 1 :]) > 1
    has_columns = splits_columns and is_strided and not has_few_rows and x.size >= MIN_SIZE_TO_SPLIT_COLUMNS
    if has_long_rows and len(dims) > 1:
        inner = [split_reduction(y) for y in reduce_states(operator, tuple(dims[1:]), inputs)]
        return split_reduction(Reduce(operator, (dims[0],))(*inner))
    if has_long_rows:
        return split_along(reduction, dims, dims[0], CHUNK_SIZE)
    if has_columns and row_size >= MIN_CHUNKS_PER_COLUMN * MIN_CHUNKS_PER_COLUMN:
        chunks_for_gpu = min(MIN_CHUNKS_IN_ALL_COLUMNS // reduction.size, row_size // MIN_COLUMN_CHUNK)
        return split_columns(reduction, dims, max(MIN_CHUNKS_PER_COLUMN, chunks_for_gpu, -(-row_size // MAX_COLUMN_CHUNK)))
    return reduction


def split_columns(reduction: Node, dims: list[int], min_chunks: int) -> Node:
    """Split a reduction of columns into at least `min_chunks` chunks. Outer dims are split first, so a chunk is compact."""
    inputs, operator, outer = reduction.inputs, reduction.function.operator, 0
    x = inputs[0]
    while min_chunks > x.shape[dims[outer]] and outer < len(dims) - 1:
        min_chunks = -(-min_chunks // x.shape[dims[outer]])
        outer += 1
    n = x.shape[dims[outer]]
    length = max(n // min_chunks, 1)
    length = next((k for k in range(length, length // 2, -1) if n % k == 0), length)  # a divisor leaves no remainder
    if length == 1 and dims[outer + 1 :]:
        inner = reduce_states(operator, tuple(dims[outer + 1 :]), inputs)
        y: Node = Reduce(operator, tuple(dims[: outer + 1]))(*inner)
        return y
    return split_along(reduction, dims, dims[outer], length)


def split_along(reduction: Node, dims: list[int], dim: int, length: int) -> Node:
    """Split a reduction into chunks that have `length` elements along `dim`, and one element along the dims before it."""
    inputs, operator = reduction.inputs, reduction.function.operator
    n = inputs[0].shape[dim]
    count = n // length
    inner = tuple(d + 1 for d in dims if d >= dim)  # after unflatten, which puts the number of the chunk at `dim`
    outer = [d for d in dims if d < dim]
    chunked = [View("unflatten", (dim, count))(slice_dim(x, dim, 0, count * length)) for x in inputs]
    partial = reduce_states(operator, inner, chunked)
    if count * length == n:
        y: Node = Reduce(operator, (*outer, dim, *inner))(*partial).reshape(reduction.shape)
        return y
    states = [y.reshape(reduction.shape) for y in reduce_states(operator, (*outer, dim, *inner), partial)]
    remainder = [slice_dim(x, dim, count * length, n) for x in inputs]
    combined: Node = combine_states(operator, states, reduce_states(operator, tuple(dims), remainder))[
        operator.states.index(operator)
    ]
    return combined


def slice_dim(x: Node, dim: int, start: int, stop: int) -> Node:
    """Return the elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y


# Gathers and scatter-adds. In a kernel, a gather is pointwise in its indices, and a scatter-add is a reduction. So both fuse
# with the ops around them like any other op.


@needs(Gather, ScatterAdd)
def lower_gather(graph: Graph, _target: Backend) -> Graph:
    """Replace gathers by selections with an index along each dim, and scatter-adds by sums of the values with an index.

        gather(x, index)[i, j]      = x[index[i], j]
        scatter_add(g, index)[v, j] = sum over i of (g[i, j] where index[i] == v, else 0)

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.ir.graph import Argument
    >>> x, index = Node(Argument(0), (), (9, 2), float32), Node(Argument(1), (), (4,), int64)
    >>> print(lower_gather(Graph((Gather(0)(x, index),)), PythonBackend()))
    reshape0 = reshape(x1, 4, 1)
    expand0 = expand(reshape0, 4, 2)
    expand1 = expand(iota0, 4, 2)
    gather_nd0 = gather_nd(x0, expand0, expand1)
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(Gather(dim), (x, index)):
                return select_elements(node, x, dim, index)
            case Node(ScatterAdd(dim, size), (values, index)):
                return sum_by_index(values, dim, size, index)
        return node

    return graph.rewrite(rule)


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


def sum_by_index(values: Node, dim: int, size: int, index: Node) -> Node:
    """Return a scatter-add as a reduction: each element of the result sums the values whose index is its position."""
    before, after = values.shape[:dim], values.shape[dim + index.ndim :]
    index_shape = index.shape or (1,)
    shape = *before, size, *index_shape, *after
    expanded = values.reshape(*before, 1, *index_shape, *after).expand(*shape)
    keys = index.to(int64).reshape(*index_shape, *[1] * len(after)).expand(*shape)
    selected = where(keys == index_along(keys, size, dim), expanded, 0)
    sums: Node = ScatterReduce(tuple(range(dim + 1, dim + 1 + len(index_shape))))(selected)
    return sums


def index_along(node: Node, size: int, dim: int) -> Node:
    """Return 0, 1, ..., size - 1 along a dim of a node, expanded to the node's shape."""
    positions: Node = node.positions(size).reshape(size, *[1] * (node.ndim - dim - 1)).expand(*node.shape)
    return positions

"""Rewrites of reductions: those with several states, of which a slice is read, of rows and then of all, and long ones."""

from collections import Counter
from itertools import islice
from math import prod

from ..backends.base import Backend
from ..core.layout import row_major
from ..ir.array_functions import Reduce, View
from ..ir.graph import Node
from ..ir.kernel_ir import Kernel, Load, reduce_expr
from ..ir.monoid import MonoidState, combine_states, reduce_states
from ..ir.nested_reduce import NestedReduce
from ..ir.steps import Step
from .fusible_region import iter_inlined
from .graph import Graph, needs
from .reindexing import drop_ones

# Reductions with several states. They read their elements once. A definition by reductions with one state reads them several
# times, but with fewer accumulators and simpler arithmetic, so it is faster if a row stays in registers or in a cache.


@needs(Reduce)
def lower_monoids(graph: Graph, target: Backend) -> Graph:
    """Replace reductions with several states by their definitions, where a row is short or the target has no kernel.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32, int64
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
        if not isinstance(node.function, Reduce):
            return node
        operator, dims = node.function.operator, node.function.dims
        if not isinstance(operator, MonoidState) or operator.monoid.definition is None or len(node.inputs) == 1:
            return node
        if kept_between_sweeps(node, target) > target.kept_nbytes and target.supports(reduction_step(node)) is None:
            return node
        states = operator.monoid.definition(lambda one, x: Reduce(one, dims)(x), *node.inputs)
        found: Node = states[operator.states.index(operator)]
        return found

    return graph.rewrite(rule)


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


# Slices. A gradient of padding reads a slice of a sum over windows.


@needs(Reduce)
def slice_before_reduction(graph: Graph, _target: Backend) -> Graph:
    """Reduce only the elements of a slice, where nothing reads the other results of a reduction.

    >>> from minifuse.backends.python import PythonBackend
    >>> from minifuse.core.dtypes import float32
    >>> from minifuse.core.operators import add
    >>> from minifuse.ir.graph import Argument
    >>> x = Node(Argument(0), (), (5, 9, 3), float32)
    >>> graph = Graph((Reduce(add, (0,))(x * x).reshape(9, 3)[1:8],))
    >>> print(graph)
    mul0 = x0 * x0
    sum0 = sum(mul0, dim=0)
    reshape0 = reshape(sum0, 9, 3)
    slice0 = slice(reshape0, 1:8, 0:3)
    >>> print(slice_before_reduction(graph, PythonBackend()))
    mul0 = x0 * x0
    slice0 = slice(mul0, 0:5, 1:8, 0:3)
    sum0 = sum(slice0, dim=0)
    reshape0 = reshape(sum0, 7, 3)
    """
    reads = Counter([*graph.roots, *[x for node in graph.nodes for x in node.inputs]])

    def is_read_once(x: Node) -> bool:
        return reads[x] == 1

    def rule(old: Node, node: Node) -> Node:
        match node:
            case Node(View(method="slice", parameters=ranges), (sliced,)) if node.size:
                source, read = old.inputs[0], sliced
                while is_reshape_of_ones(read) and is_read_once(source):
                    source, read = source.inputs[0], read.inputs[0]
                if type(read.function) is Reduce and all(map(is_read_once, (source, *source.inputs))):
                    varying = iter([x for n, x in zip(sliced.shape, ranges, strict=True) if n != 1])
                    kept = [
                        (0, 1, n) if size == 1 else next(varying)
                        for n, size in zip(read.inputs[0].shape, read.shape, strict=True)
                    ]
                    y: Node = read.function(*[View("slice", tuple(kept))(x) for x in read.inputs])
                    return y.reshape(node.shape)
        return node

    return graph.rebuild(rule)


def is_reshape_of_ones(node: Node) -> bool:
    """Return whether a node is a reshape that only adds or drops dims of size 1."""
    is_reshape = isinstance(node.function, View) and node.function.method == "reshape"
    return is_reshape and drop_ones(node.shape) == drop_ones(node.inputs[0].shape)


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
    >>> from minifuse.core.operators import add
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
    >>> from minifuse.core.operators import add
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

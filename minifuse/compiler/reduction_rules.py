"""Rewrites of reductions: of those with several states, of two sweeps to one, of rows first, and of long ones to chunks."""

from collections.abc import Container, Sequence
from functools import cache, partial
from itertools import islice
from math import prod
from typing import NamedTuple

from ..backends.base import Backend
from ..core.dtypes import DType, float32, float64, int64
from ..core.indexing import Shape
from ..core.layout import row_major
from ..core.operators import Operator, add, div, eq, maximum, mul, sub, where
from ..ir.array_functions import Full, Iota, Reduce, ReduceFirst, View
from ..ir.graph import Node, literal
from ..ir.kernel_ir import Kernel, Load, reduce_expr
from ..ir.monoid import MonoidState, combine_states, reduce_states
from ..ir.monoids import ONLINE_EXP_SUM
from ..ir.nested_reduce import NestedReduce
from ..ir.steps import Step
from .fusible_region import iter_inlined
from .graph import Graph, needs
from .reindexing import layout_of_views
from .rules import literal_value

# Reductions with several states. They read their elements once. A definition by reductions with one state reads them several
# times, but with fewer accumulators and simpler arithmetic, so it is faster if a row stays in registers or in a cache.


@needs(Reduce)
def lower_monoids(graph: Graph, target: Backend) -> Graph:
    """Replace reductions with several states by their definitions, where a row is short or the target has no kernel.

    >>> from minifuse.ir.monoids import FIRST_EXTREME
    >>> from minifuse.testing.graphs import run_pass, trace
    >>> argmax = Reduce(FIRST_EXTREME[maximum].states[1], (1,))
    >>> graph = trace(argmax, (9, 5), (9, 5), dtypes=(float32, int64))
    >>> before, after = run_pass(lower_monoids, graph, keeps_rows=lambda self, step: True)
    >>> print(before)
    argmax0 = argmax(x0, x1, dim=1)
    >>> print(after)
    max0 = max(x0, dim=1)
    expand0 = expand(max0, 9, 5)
    eq0 = x0 == expand0
    ne0 = x0 != x0
    or_0 = eq0 | ne0
    where0 = where(or_0, x1, 9.223e+18)
    min0 = min(where0, dim=1)
    """

    def rule(node: Node) -> Node:
        match node:
            case Node(Reduce(operator=MonoidState() as operator, dims=dims), (x, _, *_)) if (
                definition := operator.monoid.definition
            ):
                if not loads_rows_twice(target, x.shape, dims, x.dtype) or target.supports(reduction_step(node)) is not None:
                    states = definition(lambda one, x: Reduce(one, dims)(x), *node.inputs)
                    found: Node = states[operator.states.index(operator)]
                    return found
        return node

    return graph.rewrite(rule)


def loads_rows_twice(
    target: Backend, shape: Shape, dims: tuple[int, ...], dtype: DType, is_read_later: bool = False
) -> bool:
    """Return whether a kernel would load an array that it reduces in each of two sweeps, in row-major order.

    A kernel whose points depend on the result reads the row later, once more.
    """
    load = Load(0, dtype)
    total = reduce_expr(add, load - reduce_expr(add, load))
    kernel = Kernel((load - total,), ()) if is_read_later else Kernel((), (total,))
    rows = shape if is_read_later else tuple(1 if d in dims else n for d, n in enumerate(shape))
    step = Step.of_layouts(kernel, shape, dims, [row_major(rows).expand(*shape)], [row_major(shape)])
    return 0 not in shape and not target.keeps_rows(step)


def reduction_step(node: Node) -> Step:
    """Return the step of a reduction, for operands in row-major order."""
    shape = node.inputs[0].shape
    loads = tuple(Load(k, x.dtype) for k, x in enumerate(node.inputs))
    kernel = Kernel((), (reduce_expr(node.function.operator, loads),))
    outputs = [row_major(node.shape).expand(*shape)]
    return Step.of_layouts(kernel, shape, node.function.dims, outputs, [row_major(shape)] * len(loads))


# A maximum and a sum of exponentials, or a mean and a variance. The definition of the second one contains the first one, so
# it needs a sweep of its own. Other formulas need one sweep, but more arithmetic. That pays if a row would be loaded twice.

MAX_ROW_NODES = 64  # nodes in which a reduction of rows is looked for: keeps the pass linear


class Distance(NamedTuple):
    """The value x - base, where the base has one element for each row, in row-major order."""

    x: Node
    base: Node


@needs(Reduce, ops=4)
def merge_sweeps(graph: Graph, target: Backend) -> Graph:
    """Reduce exponentials with their maximum, and squares with their mean, in one sweep, where rows would be loaded twice.

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> exp_sum = trace(lambda x: Reduce(add, (1,))((x - Reduce(maximum, (1,))(x).expand(9, 5)).exp()), (9, 5))
    >>> print(run_pass(merge_sweeps, exp_sum, merges_sweeps=True)[1])
    full0 = full(1)
    online_exp_sum0 = online_exp_sum(x0, full0, dim=1)
    online_max0 = online_max(x0, full0, dim=1)
    sub0 = online_max0 - online_max0
    exp0 = exp(sub0)
    mul0 = online_exp_sum0 * exp0
    >>> square_sum = trace(lambda x: Reduce(add, (1,))((x - (Reduce(add, (1,))(x) / 5).expand(9, 5)) ** 2), (9, 5))
    >>> print(run_pass(merge_sweeps, square_sum, merges_sweeps=True)[1])
    float640 = float64(x0)
    mul0 = float640 * float640
    sum0 = sum(mul0, dim=1)
    sum1 = sum(float640, dim=1)
    mul1 = sum1 * sum1
    div0 = mul1 / 5
    sub0 = sum0 - div0
    maximum0 = maximum(sub0, 0)
    float320 = float32(maximum0)
    """
    if not target.merges_sweeps:
        return graph
    merged: dict[Node, Node] = {}
    sums = [x for x in graph.nodes if isinstance(x.function, Reduce) and x.function.operator is add]
    nodes = set(graph.nodes) - graph.exact  # kernels of exact values run before all others
    loads_twice = cache(partial(loads_rows_twice, target))  # asked once for all rows of one shape
    read_later = rows_read_later(graph, sums)
    for rule, candidates in ((merge_exp_sum, nodes), (merge_square_sum, nodes), (subtract_after_selection, merged)):
        for total in sums:
            found, (x,) = rule(total, candidates), total.inputs
            if found and loads_twice(x.shape, total.function.dims, x.dtype, total in read_later):
                merged |= found
    return graph.substitute(merged) if merged else graph


def rows_read_later(graph: Graph, sums: Sequence[Node]) -> set[Node]:
    """Return the sums of rows whose points depend on the sum: their kernel reads the row after it."""
    candidates, behind, found = {*sums}, dict[Node, set[Node]](), set[Node]()
    for node in graph.nodes:
        is_reduction = isinstance(node.function, Reduce)
        behind[node] = set() if is_reduction else set[Node]().union(*[behind[x] for x in node.inputs])
        found.update(x for x in behind[node] if node.shape == x.inputs[0].shape)
        if node in candidates:
            behind[node] = {node}
    return found


def merge_exp_sum(total: Node, nodes: Container[Node]) -> dict[Node, Node]:
    """Replace a sum of exp(x - base), and the maximum of x if the base depends on it: online softmax.

    The sum of exp(x - maximum) is corrected for the base, which is often the maximum itself. In logsumexp, it is 0 where the
    maximum is infinite. A row with an infinite maximum gives NaN, as by the definition, since inf - inf is NaN.
    """
    dims, (terms,) = total.function.dims, total.inputs
    monoid = ONLINE_EXP_SUM.get(terms.function)
    distance = match_distance(terms.inputs[0], total.shape) if monoid else None
    if monoid is None or distance is None:
        return {}
    x, base = distance
    tops = {top for kind in (Reduce, ReduceFirst) if (top := kind(maximum, dims)(x)) in nodes}
    if not depends_on(base, tops):
        return {}

    top, exp_sum = reduce_states(monoid.states[0], dims, (x, Full(x.shape, x.dtype)(literal(1, x.dtype))))
    return {total: exp_sum * terms.function(top - base.reshape(*top.shape)), **dict.fromkeys(tops, top)}


def merge_square_sum(total: Node, _nodes: Container[Node]) -> dict[Node, Node]:
    """Replace a sum of (x - mean)**2 in float32, and the sum of x, by sums of x and of x**2 in float64.

    The difference of the squares loses twice as many digits as the mean has more than the deviation. But float64 has more
    than twice as many digits, and the mean is not rounded to float32 before it is subtracted.
    """
    dims, (square,) = total.function.dims, total.inputs
    is_square = square.function is mul and square.inputs[0] is square.inputs[1] and total.dtype is float32
    distance = match_distance(square.inputs[0], total.shape) if is_square else None
    if distance is None:
        return {}
    x, mean = distance
    count, first = x.size // max(total.size, 1), Reduce(add, dims)(x)
    is_division = isinstance(mean.function, Operator) and mean.function.exact is div
    if not is_division or literal_value(mean.inputs[1]) != count:
        return {}
    if broadcast_source(mean.inputs[0], mean.shape) is not first:
        return {}

    wide = x.to(float64)
    one, squares = Reduce(add, dims)(wide), Reduce(add, dims)(wide * wide)
    return {total: maximum(squares - one * one / count, 0).to(float32), first: one.to(float32)}


def subtract_after_selection(total: Node, merged: Container[Node]) -> dict[Node, Node]:
    """Replace the sum of where(key == index, x - base, 0): select x first, since the base is known after the sweep only."""
    dims, (terms,) = total.function.dims, total.inputs
    if terms.function is not where or terms.inputs[0].function is not eq or len(dims) > 1:
        return {}
    (key, index), (selected, value, other) = terms.inputs[0].inputs, terms.inputs
    distance = match_distance(value, total.shape)
    if distance is None or not depends_on(distance.base, merged) or literal_value(other) != 0:
        return {}
    x, base = distance
    count, keys = x.shape[dims[0]], broadcast_source(key, total.shape)
    along = tuple(n if d in dims else 1 for d, n in enumerate(x.shape))
    if keys is None or broadcast_source(index, along) is not Node(Iota(count), (), (count,), int64):
        return {}

    chosen, k = Reduce(add, dims)(where(selected, x, 0)), keys.reshape(*total.shape)
    return {total: where((k >= 0) & (k < count), chosen - base.reshape(*total.shape), 0)}


def match_distance(node: Node, rows: Shape) -> Distance | None:
    """Match x - base, where the base is repeated along rows. `rows` is the shape of the array with one element for each."""
    base = broadcast_source(node.inputs[1], rows) if node.function is sub else None
    return None if base is None else Distance(node.inputs[0], base)


def broadcast_source(node: Node, shape: Shape) -> Node | None:
    """Return the node that views reshape to a shape, and then broadcast; None if the views do anything else."""
    views, x = list[View](), node
    while isinstance(x.function, View):
        views.append(x.function)
        (x,) = x.inputs
    layout = layout_of_views(x.shape, tuple(views[::-1]))
    is_same = layout is not None and x.size == prod(shape) and layout.same_traversal(row_major(shape).expand(*node.shape))
    return x if is_same else None


def depends_on(node: Node, others: Container[Node]) -> bool:
    """Return whether a node is one of others, or is computed from one."""
    return node in others or any(x in others for x in islice(iter_inlined(node), MAX_ROW_NODES))


# Long reductions. Their chunks can be computed in parallel, rounding errors stay small, and the order of summation does not
# depend on the number of threads.

CHUNK_SIZE = 1 << 14  # elements of a long row that are reduced in one chunk
MAX_ROWS_TO_SPLIT_EARLY = 64  # with at most this many rows, shorter ones are split, too, so that all threads have work
MIN_SIZE_TO_SPLIT_COLUMNS = 1 << 18  # elements of an array whose columns are split
MIN_CHUNKS_PER_COLUMN = 16  # chunks into which a column is split, at least
MIN_CHUNKS_IN_ALL_COLUMNS = 1 << 14  # chunks that keep a GPU busy: fewer columns are split into more chunks
MIN_COLUMN_CHUNK = 64  # elements of a chunk of a column, if it is split to keep a GPU busy
MAX_COLUMN_CHUNK = 1 << 10  # elements of a chunk of a column: they are added one after the other


@needs(Reduce, ops=2)
def reduce_rows_first(graph: Graph, _target: Backend) -> Graph:
    """Reduce rows before the other dims, where values depend on a reduction of their row: one kernel does both.

    The mean of each row and the sum of squared distances are reduced by one kernel, which reads each row once:

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> distance = lambda x: x - Reduce(add, (1,))(x).expand(64, 1000) / 1000
    >>> graph = trace(lambda x: Reduce(add, (0, 1))(distance(x) * distance(x)), (64, 1000))
    >>> print(run_pass(reduce_rows_first, graph)[1])
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

    >>> from minifuse.testing.graphs import run_pass, trace
    >>> print(run_pass(split_reductions, trace(Reduce(add, (0,)), (1 << 20,)))[1])
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

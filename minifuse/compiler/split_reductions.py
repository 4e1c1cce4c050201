"""Split large reductions into chunks, and reduce the partial results.

Chunks can be computed in parallel, rounding errors stay small, and the order of summation does not depend on the number of
threads.
"""

from math import prod

from ..ir.array_functions import Reduce, View
from ..ir.graph import Node, rewrite

CHUNK_SIZE = 1 << 14  # elements of a long row that are reduced in one chunk
MAX_ROWS_TO_SPLIT_EARLY = 64  # with at most this many rows, shorter ones are split, too, so that all threads have work
MIN_SIZE_TO_SPLIT_COLUMNS = 1 << 18  # elements of an array whose columns are split
MIN_CHUNKS_PER_COLUMN = 16  # chunks into which a column is split, at least
MIN_CHUNKS_IN_ALL_COLUMNS = 1 << 14  # chunks that keep a GPU busy: fewer columns are split into more chunks
MIN_COLUMN_CHUNK = 64  # elements of a chunk of a column, if it is split to keep a GPU busy
MAX_COLUMN_CHUNK = 1 << 10  # elements of a chunk of a column: they are added one after the other


def split_reductions(outputs: list[Node]) -> list[Node]:
    """Replace large reductions by reductions of chunks, and a reduction of their results."""
    return rewrite(outputs, Reduce, lambda node: split_reduction(node) if isinstance(node.function, Reduce) else node)


def split_reduction(reduction: Node) -> Node:
    """Split a reduction into chunks if it is large enough.

    Long rows are split, and shorter ones, too, if they are few. Long columns are split as well: the elements of a column
    are far apart in memory, but those of one chunk of all columns are close together.
    """
    (x,), operator = reduction.inputs, reduction.function.operator
    dims = [d for d in reduction.function.dims if x.shape[d] > 1]
    row_size = x.size // max(reduction.size, 1)
    has_few_rows = reduction.size <= MAX_ROWS_TO_SPLIT_EARLY
    has_long_rows = row_size >= (4 if has_few_rows else 16) * CHUNK_SIZE
    is_strided = bool(dims) and prod(x.shape[dims[-1] + 1 :]) > 1
    has_columns = is_strided and not has_few_rows and x.size >= MIN_SIZE_TO_SPLIT_COLUMNS
    if has_long_rows and len(dims) > 1:
        inner = split_reduction(Reduce(operator, tuple(dims[1:]))(x))
        return split_reduction(Reduce(operator, (dims[0],))(inner))
    if has_long_rows:
        return split_along(reduction, dims, dims[0], CHUNK_SIZE)
    if has_columns and row_size >= MIN_CHUNKS_PER_COLUMN * MIN_CHUNKS_PER_COLUMN:
        chunks_for_gpu = min(MIN_CHUNKS_IN_ALL_COLUMNS // reduction.size, row_size // MIN_COLUMN_CHUNK)
        return split_columns(reduction, dims, max(MIN_CHUNKS_PER_COLUMN, chunks_for_gpu, -(-row_size // MAX_COLUMN_CHUNK)))
    return reduction


def split_columns(reduction: Node, dims: list[int], min_chunks: int) -> Node:
    """Split a reduction of columns into at least `min_chunks` chunks. Outer dims are split first, so a chunk is compact."""
    (x,), operator, outer = reduction.inputs, reduction.function.operator, 0
    while min_chunks > x.shape[dims[outer]] and outer < len(dims) - 1:
        min_chunks = -(-min_chunks // x.shape[dims[outer]])
        outer += 1
    n = x.shape[dims[outer]]
    length = max(n // min_chunks, 1)
    length = next((k for k in range(length, length // 2, -1) if n % k == 0), length)  # a divisor leaves no remainder
    if length == 1 and dims[outer + 1 :]:
        y: Node = Reduce(operator, tuple(dims[: outer + 1]))(Reduce(operator, tuple(dims[outer + 1 :]))(x))
        return y
    return split_along(reduction, dims, dims[outer], length)


def split_along(reduction: Node, dims: list[int], dim: int, length: int) -> Node:
    """Split a reduction into chunks that have `length` elements along `dim`, and one element along the dims before it."""
    (x,), operator = reduction.inputs, reduction.function.operator
    count = x.shape[dim] // length
    chunked, remainder = slice_dim(x, dim, 0, count * length), slice_dim(x, dim, count * length, x.shape[dim])
    inner = tuple(d + 1 for d in dims if d >= dim)  # after unflatten, which puts the number of the chunk at `dim`
    outer = [d for d in dims if d < dim]
    partial = Reduce(operator, inner)(View("unflatten", (dim, count))(chunked))
    y: Node = Reduce(operator, (*outer, dim, *inner))(partial).reshape(reduction.shape)
    return operator(y, Reduce(operator, tuple(dims))(remainder)) if remainder.size else y


def slice_dim(x: Node, dim: int, start: int, stop: int) -> Node:
    """Return the elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y

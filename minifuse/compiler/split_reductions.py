"""Large folds in pieces: side by side, with small rounding errors, in an order that does not depend on threads."""

from math import prod

from ..ir.array_functions import Reduce, View
from ..ir.graph import Node, rewrite

CHUNK_SIZE = 1 << 14  # elements of a long row that are folded in one go
MAX_ROWS_TO_SPLIT_EARLY = 64  # rows, which are cut earlier, since they are too few to keep threads busy
MIN_SIZE_TO_SPLIT_COLUMNS = 1 << 18  # elements from which on columns are folded in pieces
MIN_CHUNKS_PER_COLUMN = 16  # of a column, at least, where its longest dim has as many
MIN_CHUNKS_IN_ALL_COLUMNS = 1 << 14  # pieces of all columns together that keep a GPU busy: fewer columns are cut in more
MIN_COLUMN_CHUNK = 64  # elements of a piece of a column, at least, if that is why it is cut in more
MAX_COLUMN_CHUNK = 1 << 10  # elements of a piece of a column, at most: they are added one after the other


def split_reductions(outputs: list[Node]) -> list[Node]:
    """Large folds become folds of pieces, and a fold of their results."""
    return rewrite(outputs, Reduce, lambda node: split_reduction(node) if isinstance(node.function, Reduce) else node)


def split_reduction(fold: Node) -> Node:
    """A fold in pieces, or itself where that would not pay.

    It pays where rows are long, most of all if they are few, and where columns are: walked whole, they lie in memory one
    after the other.
    """
    (x,), operator = fold.inputs, fold.function.operator
    dims = [d for d in fold.function.dims if x.shape[d] > 1]
    row = x.size // max(fold.size, 1)
    is_few = row >= (4 if fold.size <= MAX_ROWS_TO_SPLIT_EARLY else 16) * CHUNK_SIZE
    is_columns = (
        bool(dims)
        and prod(x.shape[dims[-1] + 1 :]) > 1
        and fold.size > MAX_ROWS_TO_SPLIT_EARLY
        and x.size >= MIN_SIZE_TO_SPLIT_COLUMNS
    )
    if is_few and len(dims) > 1:
        rest = split_reduction(Reduce(operator, tuple(dims[1:]))(x))
        return split_reduction(Reduce(operator, (dims[0],))(rest))
    if is_few:
        return split_along(fold, dims, dims[0], CHUNK_SIZE)
    if is_columns and row >= MIN_CHUNKS_PER_COLUMN * MIN_CHUNKS_PER_COLUMN:
        return split_columns(
            fold,
            dims,
            max(
                MIN_CHUNKS_PER_COLUMN,
                min(MIN_CHUNKS_IN_ALL_COLUMNS // fold.size, row // MIN_COLUMN_CHUNK),
                -(-row // MAX_COLUMN_CHUNK),
            ),
        )
    return fold


def split_columns(fold: Node, dims: list[int], pieces: int) -> Node:
    """A fold of columns in so many pieces or some more, each of which lies in memory as one: outer dims are cut first."""
    (x,), operator, outer = fold.inputs, fold.function.operator, 0
    while pieces > x.shape[dims[outer]] and outer < len(dims) - 1:
        pieces = -(-pieces // x.shape[dims[outer]])
        outer += 1
    n = x.shape[dims[outer]]
    length = max(n // pieces, 1)
    length = next((k for k in range(length, length // 2, -1) if n % k == 0), length)  # preferably without a rest
    if length == 1 and dims[outer + 1 :]:
        y: Node = Reduce(operator, tuple(dims[: outer + 1]))(Reduce(operator, tuple(dims[outer + 1 :]))(x))
        return y
    return split_along(fold, dims, dims[outer], length)


def split_along(fold: Node, dims: list[int], dim: int, length: int) -> Node:
    """A fold along some dims as a fold of the results of pieces, which have a length along one of them.

    Along dims before that one pieces have one element.
    """
    (x,), operator = fold.inputs, fold.function.operator
    count = x.shape[dim] // length
    whole, rest = slice_dim(x, dim, 0, count * length), slice_dim(x, dim, count * length, x.shape[dim])
    inside = tuple(d + 1 for d in dims if d >= dim)  # of what has one dim more: the pieces stand before what is in them
    outside = [d for d in dims if d < dim]
    partial = Reduce(operator, inside)(View("unflatten", (dim, count))(whole))
    y: Node = Reduce(operator, (*outside, dim, *inside))(partial).reshape(fold.shape)
    return operator(y, Reduce(operator, tuple(dims))(rest)) if rest.size else y


def slice_dim(x: Node, dim: int, start: int, stop: int) -> Node:
    """The elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y

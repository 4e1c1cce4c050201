"""Large folds in pieces: side by side, with small rounding errors, in an order that does not depend on threads."""

from math import prod

from ..functions import Fold, View
from .node import Node, rebuilt

PIECE = 1 << 14  # elements of a long row that are folded in one go
FEW = 64  # rows, which are cut earlier, since they are too few to keep threads busy
MANY = 1 << 18  # elements from which on columns are folded in pieces
PIECES = 16  # of a column, at least, where its longest dim has as many
WIDE = 1 << 14  # pieces of all columns together that keep a GPU busy: fewer columns are cut in more
SHORT = 64  # elements of a piece of a column, at least, if that is why it is cut in more
COLUMN_PIECE = 1 << 10  # elements of a piece of a column, at most: they are added one after the other


def in_pieces(outputs: list[Node]) -> list[Node]:
    """Large folds become folds of pieces, and a fold of their results."""
    return rebuilt(outputs, Fold, lambda node: pieces_of(node) if isinstance(node.function, Fold) else node)


def pieces_of(fold: Node) -> Node:
    """A fold in pieces, or itself where that would not pay.

    It pays where rows are long, most of all if they are few, and where columns are: walked whole, they lie in memory one
    after the other.
    """
    (x,), operator = fold.inputs, fold.function.operator
    dims = [d for d in fold.function.dims if x.shape[d] > 1]
    row = x.size // max(fold.size, 1)
    is_few = row >= (4 if fold.size <= FEW else 16) * PIECE
    is_columns = bool(dims) and prod(x.shape[dims[-1] + 1 :]) > 1 and fold.size > FEW and x.size >= MANY
    if is_few and len(dims) > 1:
        rest = pieces_of(Fold(operator, tuple(dims[1:]))(x))
        return pieces_of(Fold(operator, (dims[0],))(rest))
    if is_few:
        return cut(fold, dims, dims[0], PIECE)
    if is_columns and row >= PIECES * PIECES:
        dim = max(dims, key=x.shape.__getitem__)
        pieces = max(PIECES, min(WIDE // fold.size, row // SHORT))
        most = COLUMN_PIECE * x.shape[dim] // row
        return cut(fold, dims, dim, max(min(x.shape[dim] // pieces, most), 1))
    return fold


def cut(fold: Node, dims: list[int], dim: int, length: int) -> Node:
    """A fold along some dims as a fold of the results of pieces, which have a length along one of them."""
    (x,), operator = fold.inputs, fold.function.operator
    count = x.shape[dim] // length
    whole, rest = part(x, dim, 0, count * length), part(x, dim, count * length, x.shape[dim])
    inside = tuple(d + (d >= dim) for d in dims)  # of what has one dim more: the pieces stand before what is in them
    partial = Fold(operator, inside)(View("split", (dim, count))(whole))
    y: Node = Fold(operator, tuple(sorted({dim, *inside})))(partial).reshape(fold.shape)
    return operator(y, Fold(operator, tuple(dims))(rest)) if rest.size else y


def part(x: Node, dim: int, start: int, stop: int) -> Node:
    """The elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y

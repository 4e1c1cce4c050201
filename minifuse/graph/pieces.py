"""Large folds in pieces: side by side, with small rounding errors, in an order that does not depend on threads."""

from math import prod

from ..dag import topological
from ..functions import Fold, View
from .node import Node, inputs_of, substitute

PIECE = 1 << 14  # elements of a long row that are folded in one go
FEW = 64  # rows, which are cut earlier, since they are too few to keep threads busy
MANY = 1 << 18  # elements from which on columns are folded in pieces
PIECES = 16  # of a column, at least
COLUMN_PIECE = 1 << 10  # elements of a column, at most: they are added one after the other


def in_pieces(outputs: list[Node]) -> list[Node]:
    """Large folds become folds of pieces, and a fold of their results."""
    folds = [node for node in topological(outputs, inputs_of) if isinstance(node.function, Fold)]
    return substitute(outputs, {node: cut for node in folds if (cut := pieces_of(node)) is not node})


def pieces_of(fold: Node) -> Node:
    """A fold in pieces, or itself where that would not pay.

    It pays where rows are long, most of all if they are few, and where columns are: walked whole, they lie in memory one
    after the other.
    """
    (x,), operator = fold.inputs, fold.function.operator
    dims = [d for d in fold.function.dims if x.shape[d] > 1]
    row = x.size // max(fold.size, 1)
    is_few = row >= (4 if fold.size <= FEW else 16) * PIECE
    is_columns = len(dims) == 1 and prod(x.shape[dims[0] + 1 :]) > 1 and fold.size > FEW and x.size >= MANY
    if is_few and len(dims) > 1:
        rest = pieces_of(Fold(operator, tuple(dims[1:]))(x))
        return pieces_of(Fold(operator, (dims[0],))(rest))
    if is_few:
        return cut(fold, dims[0], PIECE)
    if is_columns and x.shape[dims[0]] >= PIECES * PIECES:
        return cut(fold, dims[0], min(x.shape[dims[0]] // PIECES, COLUMN_PIECE))
    return fold


def cut(fold: Node, dim: int, length: int) -> Node:
    """A fold along one dim as a fold of the results of pieces of a length."""
    (x,), operator = fold.inputs, fold.function.operator
    count = x.shape[dim] // length
    whole, rest = part(x, dim, 0, count * length), part(x, dim, count * length, x.shape[dim])
    partial = Fold(operator, (dim + 1,))(View("split", (dim, count))(whole))
    y: Node = Fold(operator, (dim, dim + 1))(partial).reshape(fold.shape)
    return operator(y, Fold(operator, (dim,))(rest)) if rest.size else y


def part(x: Node, dim: int, start: int, stop: int) -> Node:
    """The elements from start to stop along a dim."""
    y: Node = x[(slice(None),) * dim + (slice(start, stop),)]
    return y

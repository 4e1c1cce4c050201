"""Elements picked by index, in the words of kernels: `Take` is elementwise in its index, `Put` is a fold.

    take(x, index)[i, j] = x[index[i], j]
    put(g, index)[v, j]  = sum over i of (g[i, j] where index[i] == v, else 0)

So both fuse with what is around them as all else does. Nothing here knows memory or schedules.
"""

from collections.abc import Sequence
from math import nan

from ..core.dtypes import int64
from ..core.operators import add, eq, maximum, minimum, where
from ..ir.array_functions import Full, Reduce
from ..ir.gather import GatherND
from ..ir.graph import Node, literal
from ..ir.kernel_ir import Expression, IndexedLoad, Op

GATHER_NEEDS_MEMORY = "what is picked by index is picked from memory"
SCATTER_ADD_ENDS_KERNEL = "what adds up by index is all there only at the end"
GATHER_NOT_IN_MATMUL = "a product reads whole arrays, and what is picked by index lies anywhere"


def index_along(node: Node, size: int, dim: int) -> Node:
    """The index along a dim of a size, where `dim` is its place in the shape of a node."""
    found: Node = node.positions(size).reshape(size, *[1] * (node.ndim - dim - 1)).expand(*node.shape)
    return found


def lower_gather(take: Node) -> Node:
    """A Take as an At: each element of the result has an index along each dim of what it is taken from."""
    x, index = take.inputs
    dim, new = take.function.dim, index.ndim - 1
    if not x.size:  # there is nothing to read, not even for what lies outside
        return Node(Full(take.shape, x.dtype), (literal(fill_value(x), x.dtype),), take.shape, x.dtype)
    chosen = index.to(int64).reshape(*index.shape, *[1] * (x.ndim - dim - 1)).expand(*take.shape)
    indices = [chosen if d == dim else index_along(take, n, d + new * (d > dim)) for d, n in enumerate(x.shape)]
    return Node(GatherND(dim), (x, *indices), take.shape, take.dtype)


def fill_value(x: Node) -> float | bool:
    """What stands for an element that is not there."""
    return nan if x.dtype.is_float else False


def clamped_load(
    x: Node, dim: int, indices: Sequence[Expression], raw: int, last: Expression, other: Expression
) -> Expression:
    """The element of raw operand x at some indices: inside by force along `dim`, and another value where it was not."""
    index = indices[dim]
    inside = minimum(maximum(index, 0), last)
    load = IndexedLoad(raw, 0, tuple(inside if d == dim else i for d, i in enumerate(indices)), x.dtype)
    found: Expression = where(eq(inside, index), load, other)
    return found


def match_clamped_load(e: Expression) -> tuple[IndexedLoad, tuple[Expression, ...]] | None:
    """The load in what `clamped_load` gives, and the indices that it was given; None of any other expression."""
    if not (isinstance(e, Op) and e.operator is where and isinstance(e.inputs[1], IndexedLoad)):
        return None
    condition, load, _ = e.inputs
    if not (isinstance(condition, Op) and condition.operator is eq and condition.inputs[0] in load.inputs):
        return None
    inside, index = condition.inputs
    return load, tuple(index if x is inside else x for x in load.inputs)  # type: ignore[return-value]


def lower_scatter_add(put: Node) -> Node:
    """A Put as a fold, with dims of size 1 where the index had its own: of each place it folds what has that index."""
    x, index = put.inputs
    dim = put.function.dim
    before, after = x.shape[:dim], x.shape[dim + index.ndim :]
    chosen = index.shape or (1,)
    shape = *before, put.function.size, *chosen, *after
    values = x.reshape(*before, 1, *chosen, *after).expand(*shape)
    keys = index.to(int64).reshape(*chosen, *[1] * len(after)).expand(*shape)
    is_here = keys == index_along(keys, put.function.size, dim)
    found: Node = Reduce(add, tuple(range(dim + 1, dim + 1 + len(chosen))))(where(is_here, values, 0))
    return found

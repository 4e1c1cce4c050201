"""Lower gathers and scatter-adds: in a kernel, a gather is pointwise in its index, and a scatter-add is a reduction.

    gather(x, index)[i, j]      = x[index[i], j]
    scatter_add(g, index)[v, j] = sum over i of (g[i, j] where index[i] == v, else 0)

So both fuse with the ops around them like any other op. Nothing here depends on memory or kernels.
"""

from collections.abc import Sequence
from math import nan

from ..core.dtypes import int64
from ..core.operators import add, eq, maximum, minimum, where
from ..ir.array_functions import Full, Reduce
from ..ir.gather import GatherND
from ..ir.graph import Node, literal
from ..ir.kernel_ir import Expression, IndexedLoad, Op

GATHER_NEEDS_MEMORY = "a gather may read any element, so its source must be in memory first"
GATHER_NOT_IN_MATMUL = "a matmul copies whole tiles of its operands, and gathered elements are not adjacent"


def index_along(node: Node, size: int, dim: int) -> Node:
    """Return 0, 1, ..., size - 1 along a dim of a node, expanded to the node's shape."""
    positions: Node = node.positions(size).reshape(size, *[1] * (node.ndim - dim - 1)).expand(*node.shape)
    return positions


def lower_gather(gather: Node) -> Node:
    """Rewrite a Gather as a GatherND: each element of the result has an index along each dim of the source."""
    x, index = gather.inputs
    dim, added_dims = gather.function.dim, index.ndim - 1  # added_dims: how many more dims the result has than x
    if not x.size:  # there is nothing to read, not even for an index that is out of range
        return Node(Full(gather.shape, x.dtype), (literal(fill_value(x), x.dtype),), gather.shape, x.dtype)
    expanded_index = index.to(int64).reshape(*index.shape, *[1] * (x.ndim - dim - 1)).expand(*gather.shape)
    indices = [
        expanded_index if d == dim else index_along(gather, n, d + added_dims * (d > dim)) for d, n in enumerate(x.shape)
    ]
    return Node(GatherND(dim), (x, *indices), gather.shape, gather.dtype)


def fill_value(x: Node) -> float | bool:
    """Return the result of a gather for an index that is out of range."""
    return nan if x.dtype.is_float else False


def clamped_load(
    x: Node, dim: int, indices: Sequence[Expression], operand: int, last: Expression, fill: Expression
) -> Expression:
    """Load the element of an indexed operand at some indices, or return `fill` if the index along `dim` is out of range.

    The load itself is clamped to the range 0 to `last`, so it never reads other memory.
    """
    index = indices[dim]
    clamped = minimum(maximum(index, 0), last)
    load = IndexedLoad(operand, 0, tuple(clamped if d == dim else i for d, i in enumerate(indices)), x.dtype)
    element: Expression = where(eq(clamped, index), load, fill)
    return element


def match_clamped_load(e: Expression) -> tuple[IndexedLoad, tuple[Expression, ...]] | None:
    """Return the load in an expression made by `clamped_load`, and the indices before clamping; None for any other."""
    if not (isinstance(e, Op) and e.operator is where):
        return None
    condition, load, _ = e.inputs
    if not (isinstance(load, IndexedLoad) and isinstance(condition, Op) and condition.operator is eq):
        return None
    if condition.inputs[0] not in load.inputs:
        return None
    clamped, index = condition.inputs
    return load, tuple(index if x is clamped else x for x in load.inputs)


def lower_scatter_add(scatter_add: Node) -> Node:
    """Rewrite a scatter-add as a reduction: each element of the result sums the values whose index is its position.

    The dims of the index are reduced, so they have size 1 in the result.
    """
    x, index = scatter_add.inputs
    dim, size = scatter_add.function.dim, scatter_add.function.size
    before, after = x.shape[:dim], x.shape[dim + index.ndim :]
    index_shape = index.shape or (1,)
    shape = *before, size, *index_shape, *after
    values = x.reshape(*before, 1, *index_shape, *after).expand(*shape)
    keys = index.to(int64).reshape(*index_shape, *[1] * len(after)).expand(*shape)
    is_selected = keys == index_along(keys, size, dim)
    sums: Node = Reduce(add, tuple(range(dim + 1, dim + 1 + len(index_shape))))(where(is_selected, values, 0))
    return sums

"""Index elements along a dim: gather and scatter of PyTorch, take_along_axis of NumPy.

A gather is a selection of elements by an index along each dim. A scatter stores slices if its index repeats along all other
dims, compares each position with a short index, or combines values within rows. Otherwise it is one of the flattened array.
"""

from collections.abc import Hashable
from math import prod
from typing import TYPE_CHECKING, Any

from ..core.dispatch import active_tracer
from ..core.indexing import Shape
from ..core.operators import Operator, add, eq, lt, where
from .array_functions import Cast, Full, Reduce, ShapeDtype, View
from .composite_op import CompositeOp
from .gather import BatchedUpdate, Gather, GatherND
from .indexing import Update, broadcast_value, combine, from_start, is_full, scatter

if TYPE_CHECKING:
    from .array_methods import Array

MAX_COMPARED = 32  # indices in a row, with each of which a GPU compares every position


class GatherAlong(CompositeOp):
    """Select an element of the first input along a dim for each index in the second: y[i, j] = x[i, index[i, j]] for dim=1.

    Negative indices count from the end. An index out of range selects NaN, or 0 for integers.
    """

    __slots__ = ("dim",)
    names = ("gather_along",)
    output_layout_like = (1,)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @property
    def parameters(self) -> tuple[Hashable, ...]:
        """The dim."""
        return (self.dim,)

    def infer(self, x: "Array", index: "Array") -> tuple[ShapeDtype, ...]:
        """Return the shape of the index."""
        return ((index.shape, x.dtype),)

    def body(self, x: "Array", index: "Array") -> tuple[Any, ...]:
        """Select by an index for each dim: the positions of the result along all dims but one."""
        indices = [positions_along(index, d) for d in range(x.ndim)]
        indices[self.dim] = from_start(index, x.shape[self.dim])
        return (GatherND(self.dim)(x, *indices),)

    def vjp(self, index: int, g: "Array", *inputs: Any) -> tuple[Any, ...]:
        """Add the gradient to zeros at the index."""
        x, i = inputs
        zeros = g.apply(Full(x.shape, g.dtype), 0)
        return UpdateAlong(add, self.dim)(zeros, i, g)[0], None


class UpdateAlong(Update):
    """Store each value of the third input in the first one at its index in the second: y[i, index[i, j]] = v[i, j], dim=1.

    With an operator, combine them. Without one, the last of several values for one element is stored. Negative indices count
    from the end; those out of range are dropped. If the index repeats along all other dims, slices are stored.
    """

    __slots__ = ()
    prefix = "update_along"

    def body(self, x: "Array", index: "Array", values: "Array") -> tuple[Any, ...]:
        """Store slices, or compare each position with the only index of its row; else store in the flattened array."""
        y = self.in_rows(x, index, values, 1)
        if y is None:
            y = update_flat(x, index, values, self.dim, self.operator)
        return (y,)

    def sorted_body(self, x: "Array", index: "Array", values: "Array") -> tuple[Any, ...]:
        """Store as `body`, but compare each position with more indices, and combine many values within their rows."""
        y = self.in_rows(x, index, values, 1 if self.operator is None else MAX_COMPARED)
        if y is None and self.operator is not None and covers(x, index, self.dim) and 4 * index.size >= x.size:
            y = update_in_rows(x, without_repeats(index), values, self.dim, self.operator)
        return self.body(x, index, values) if y is None else (y,)

    def in_rows(self, x: "Array", index: Any, values: "Array", most: int) -> Any:
        """Store slices if the index repeats along all other dims, or by comparisons if a row of constants has few indices.

        Return None for any other index.
        """
        dim, short = self.dim, without_repeats(index)
        count, n = index.shape[dim], x.shape[dim]
        if not covers(x, index, dim):
            return None
        if short.size == count:
            return scatter(x, dim, from_start(without_ones(short, (count,)), n), values, self.operator)
        if not is_full(x) or count > most:
            return None
        shape = (*x.shape[:dim], n, count, *x.shape[dim + 1 :])
        key, value = (z.reshape(*z.shape[:dim], 1, *z.shape[dim:]).expand(*shape) for z in (from_start(short, n), values))
        own = x.positions(n).reshape(n, *[1] * (x.ndim - dim)).expand(*shape)
        if self.operator is None:
            return where(eq(own, key).reshape(*x.shape), value.reshape(*x.shape), x)
        selected = where(eq(own, key), value, self.operator.identity_for(x.dtype))
        selected = selected if count == 1 else Reduce(self.operator, (dim + 1,))(selected)
        return combine(x, selected.reshape(*x.shape), self.operator)

    def vjp(self, index: int, g: "Array", *inputs: Any) -> tuple[Any, ...] | None:
        """Gather the gradient of the values, if they are added; 0 for dropped ones. Else differentiate the definition."""
        x, i, _ = inputs
        if self.operator is not add:
            return None
        n = x.shape[self.dim]
        return g, None, where((i >= -n) & lt(i, n), GatherAlong(self.dim)(g, i)[0], 0)


def update_flat(x: Any, index: Any, values: Any, dim: int, operator: Operator | None) -> Any:
    """Update the flattened array; if the index repeats along the last dims, slices of these are its elements."""
    end, short = x.ndim, without_repeats(index)
    while covers(x, index, dim) and end - 1 > dim and short.shape[end - 1] == 1:
        end -= 1
    columns = (prod(x.shape[end:]),) * (end < x.ndim)
    flat = flat_along(x.shape[:end], short.reshape(*short.shape[:end]).expand(*index.shape[:end]) if columns else index, dim)
    rows = x.reshape(prod(x.shape[:end]), *columns)
    return scatter(rows, 0, flat.reshape(flat.size), values.reshape(flat.size, *columns), operator).reshape(*x.shape)


def update_in_rows(x: Any, index: Any, values: Any, dim: int, operator: Operator) -> Any:
    """Combine values with the elements of x in rows: one for each part of the index that differs."""
    rows = [d for d in range(x.ndim) if d != dim and index.shape[d] > 1]
    columns = [d for d in range(x.ndim) if d != dim and d not in rows]
    order, count, n = [*rows, dim, *columns], index.shape[dim], x.shape[dim]
    batch, width = (prod(x.shape[d] for d in dims) for dims in (rows, columns))
    key = from_start(index, n).permute(*order).reshape(batch, count)
    x, values = (z.permute(*order) for z in (x, values))
    y = BatchedUpdate(operator)(x.reshape(batch, n, width), key, values.reshape(batch, count, width))
    return y.reshape(*x.shape).permute(*sorted(range(x.ndim), key=order.__getitem__))


def covers(x: Any, index: Any, dim: int) -> bool:
    """Return whether an index has the sizes of an array along all dims but one."""
    return all(a == b for d, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if d != dim)


def without_repeats(index: Any) -> Any:
    """Return an index of size 1 along the dims of a node along which it is expanded."""
    match index.function:
        case View(method="expand"):
            (x,) = index.inputs
            return without_repeats(x.reshape(*[1] * (index.ndim - x.ndim), *x.shape))
        case View(method="permute", parameters=order):
            return without_repeats(*index.inputs).permute(*order)
        case Cast(dtype=dtype):
            return without_repeats(*index.inputs).to(dtype)
    return index


def without_ones(x: Any, shape: Shape) -> Any:
    """Reshape a node to a shape that differs from its own by dims of size 1, without views that only add or remove these."""
    sizes = [n for n in shape if n != 1]
    while (
        isinstance(x.function, View) and x.function.method == "reshape" and sizes == [n for n in x.inputs[0].shape if n != 1]
    ):
        (x,) = x.inputs
    return x.reshape(*shape)


def gather_along(x: Any, index: Any, dim: int, shape: Shape | None = None) -> Any:
    """Return x[..., index[..., k, ...], ...]: an index for each element of the result, along one dim.

    The index is expanded to a shape, if there is one.
    """
    index = index if shape is None else index.expand(*shape)
    if not x.size:  # there is nothing to read
        return Gather(0)(x.reshape(0), flat_along(x.shape, index, dim))
    return GatherAlong(dim)(x, index)[0]


def unrepeated(index: Any) -> Any:
    """Return an index of size 1 along the dims along which its memory repeats. A node of a graph is expanded already."""
    strides = index.meta.layout.strides if hasattr(index, "meta") and active_tracer() is None else ()
    if 0 not in strides:
        return index
    return index[tuple(slice(0, 1) if not s and n > 1 else slice(n) for s, n in zip(strides, index.shape, strict=True))]


def positions_along(index: "Array", d: int) -> Any:
    """Return 0, 1, ... along a dim of an index."""
    return index.positions(index.shape[d]).reshape(index.shape[d], *[1] * (index.ndim - d - 1)).expand(*index.shape)


def scatter_along(x: Any, index: Any, values: Any, dim: int, operator: Operator | None = None) -> Any:
    """Store values, or combine them, at an index for each value, along one dim."""
    values = broadcast_value(values, index.shape, x)
    return UpdateAlong(operator, dim)(x, index, values)[0] if index.size else x


def flat_along(shape: Shape, index: Any, dim: int) -> Any:
    """Return the row-major position of each selected element of an array; -1 for an index that is out of range."""
    n, i = shape[dim], from_start(index, shape[dim])
    flat = i * prod(shape[dim + 1 :])
    for d in range(len(shape)):
        if d != dim:
            flat = flat + positions_along(i, d) * prod(shape[d + 1 :])
    return where((i >= 0) & lt(i, n), flat, -1)

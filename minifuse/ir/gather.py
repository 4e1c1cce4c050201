"""Gather: select elements along a dim by an index array. Scatter combines elements by index.

`Array.index_select`, `np.take` and the embedding layer call `take`. In kernels, a gather is a clamped load.
"""

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING

from ..core.dtypes import DType, int64
from ..core.indexing import normalize_dim
from ..core.operators import Operator, add, eq, lt, maximum, minimum, mul, where
from .array_functions import A, Function, Gradients, ShapeDtype
from .index_checks import in_range, require_integer_index
from .kernel_ir import Expression, IndexedLoad, Op

if TYPE_CHECKING:
    from .array_methods import Array


class Gather(Function):
    """Select slices of the first input along a dim, at the indices in the second.

    The index is int64 or int32 and has any number of dims, which replace the dim. An index out of range selects NaN, or 0
    for integers.
    """

    __slots__ = ("dim",)
    __match_args__ = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def infer(self, x: "Array", index: "Array") -> ShapeDtype:
        """Return the shape with the dim replaced by the shape of the index."""
        return (*x.shape[: self.dim], *index.shape, *x.shape[self.dim + 1 :]), x.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array", index: "Array") -> Gradients:
        """Scatter-add the gradient: an element that was selected several times gets the sum."""
        return Scatter(add, self.dim, x.shape[self.dim])(g, index), None

    def __repr__(self) -> str:
        return f"gather along dim {self.dim}"


class Scatter(Function):
    """Reduce slices of the first input along a dim that have the same index in the second. The gradient of Gather is one.

    Slices are combined in a deterministic order. Indices outside the `size` of the dim are dropped. An element that no index
    selects is the identity of the operator: 0 for `add`.
    """

    __slots__ = ("dim", "operator", "size")
    __match_args__ = ("operator", "dim", "size")

    def __init__(self, operator: Operator, dim: int, size: int) -> None:
        self.operator, self.dim, self.size = operator, dim, size

    def infer(self, x: "Array", index: "Array") -> ShapeDtype:
        """Return the shape with the dims of the index replaced by one dim."""
        return (*x.shape[: self.dim], self.size, *x.shape[self.dim + index.ndim :]), x.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array", index: "Array") -> Gradients:
        """Gather the gradient at the indices: 0 for dropped slices, a share for equal extrema, and for a factor of a product
        the gradient times the other factors.
        """
        total = Scatter(add, self.dim, self.size)

        def gather(z: "Array", index: "Array") -> "Array":
            is_kept = ((index >= 0) & lt(index, self.size)).reshape(*index.shape, *[1] * (y.ndim - self.dim - 1))
            return where(is_kept, Gather(self.dim)(z, index), 0)

        if self.operator in (maximum, minimum):
            wins = eq(gather(y, index), x)
            return where(wins, gather(g / total(wins.to(g.dtype), index), index), 0), None
        if self.operator is mul:
            zeros = eq(x, 0)
            others = self(where(zeros, 1, x), index)  # the product without zeros
            of_zero = where(eq(gather(total(zeros.to(int64), index), index), 1), gather(g * others, index), 0)
            return where(zeros, of_zero, gather(g * y, index) / where(zeros, 1, x)), None
        return gather(g, index), None

    def __repr__(self) -> str:
        return f"scatter_{self.operator} along dim {self.dim} of size {self.size}"


class BatchedUpdate(Function):
    """Combine values (batch, count, columns) with the elements of x (batch, size, columns) at an index, within each batch.

    The index has the shape (batch, count), or (count,) if all batches share it. Indices out of range are dropped. The
    compiler lowers updates at an index to this op.
    """

    __slots__ = ("operator",)
    __match_args__ = ("operator",)

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def infer(self, x: "Array", index: "Array", values: "Array") -> ShapeDtype:
        """Return the shape and dtype of the first input."""
        return x.shape, x.dtype

    def __repr__(self) -> str:
        return f"update_{self.operator} in rows"


class GatherND(Function):
    """Select elements of the first input by one index per dim. The index along `dim` may be out of range.

    If `dim` is None, no index is out of range. The compiler lowers Gather to this op. It is pointwise in its indices, so a
    view of its result is a view of them.
    """

    __slots__ = ("dim",)

    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def infer(self, x: "Array", *indices: "Array") -> ShapeDtype:
        """Return the shape of the indices."""
        return indices[0].shape, x.dtype

    def __repr__(self) -> str:
        return "gather_nd"


class ScatterReduce(Function):
    """Reduce along dims, in a kernel that computes nothing else. The compiler lowers Scatter to this op."""

    __slots__ = ("dims", "operator")

    def __init__(self, operator: Operator, dims: tuple[int, ...]) -> None:
        self.operator, self.dims = operator, dims

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape without the reduced dims."""
        return tuple(n for d, n in enumerate(x.shape) if d not in self.dims), x.dtype

    def __repr__(self) -> str:
        return f"scatter_reduce over dims {self.dims}"


def take(name: str, x: A, dim: int, index: "Array") -> A:
    """Select slices of x along a dim, at the indices in an array whose shape replaces the dim.

    `name` is the caller's name in error messages.

    Raises
    ------
    ShapeError
        The dim does not exist.
    DTypeError
        The index is not an array of int64 or int32.
    IndexingError
        An index is out of range. The check takes 3 us, since it reads the index. A GPU checks in the kernel that gathers,
        and the next time that values are read raises the error. While tracing there are no values: such an index selects
        NaN (0 for integers), without a gradient. No memory outside of x is ever read.
    """
    d = normalize_dim(dim, len(x.shape))
    require_integer_index(name, index)
    return x.apply(Gather(d), x, in_range(name, index, x.shape[d], d))


def fill_value(dtype: DType) -> float | bool:
    """Return the result of a gather for an index that is out of range."""
    return nan if dtype.is_float else False


def clamped_load(
    dtype: DType, dim: int, indices: Sequence[Expression], operand: int, last: Expression, fill: Expression
) -> Expression:
    """Load the element of an indexed operand at some indices, or return `fill` if the index along `dim` is out of range.

    The load itself is clamped to the range 0 to `last`, so it never reads other memory.
    """
    index = indices[dim]
    clamped = minimum(maximum(index, 0), last)
    load = IndexedLoad(operand, 0, tuple(clamped if d == dim else i for d, i in enumerate(indices)), dtype)
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

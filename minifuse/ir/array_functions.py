"""Functions of arrays that are not scalar operators: views, reductions, matmul, casts, and functions composed of others.

A Function is to an array what an Operator is to a number. Called on arrays, it is passed to their `apply`; `infer` returns
the shape and dtype of the result, and `vjp` the gradient, written with the same functions. So compositions of them have
gradients of any order, eager and fused. Nothing here depends on memory.
"""

from collections.abc import Callable, Hashable
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.dispatch import matmul_precision
from ..core.dtypes import HIGHEST, DType, float32, int32, int64
from ..core.errors import GradientError, ShapeError
from ..core.indexing import Range, Shape
from ..core.interning import Interned
from ..core.layout import Layout, broadcast, row_major
from ..core.operators import Operator, add, eq, minimum, ne, where

if TYPE_CHECKING:
    from .array_methods import Array

ShapeDtype = tuple[Shape, DType]
Gradients = tuple["Array | None", ...]  # the gradient of each input; None where there is no gradient
A = TypeVar("A", bound="Array")


class Function(metaclass=Interned):
    """A function of arrays with a shape rule and a gradient rule. Interned by its parameters."""

    __slots__ = ("__weakref__",)

    def infer(self, *inputs: Any) -> ShapeDtype:
        """Return the shape and dtype of the result."""
        raise NotImplementedError

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        """Return the gradient of each input, given the gradient g of the output y. None means that there is no gradient."""
        raise NotImplementedError

    def __call__(self, x: A, *inputs: Any) -> A:
        """Apply the function by the `apply` of the first input."""
        return x.apply(self, x, *inputs)


class View(Function):
    """A view: the elements of the input with another layout, given as a method of Layout and its arguments."""

    __slots__ = ("method", "parameters")

    def __init__(self, method: str, parameters: tuple[Any, ...]) -> None:
        self.method, self.parameters = method, parameters

    def layout(self, layout: Layout) -> Layout:
        """Return the layout of the view of an array with this layout."""
        view: Layout = getattr(layout, self.method)(*self.parameters)
        return view

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape of the new layout."""
        return self.layout(row_major(x.shape)).shape, x.dtype

    def __call__(self, x: A) -> A:
        """Apply the view to an array."""
        return x.apply_view(self)

    def vjp(self, g: "Array", y: "Array | None", x: "Array") -> Gradients:
        """Apply the view backwards: sum the gradients of repeated elements; elements left out get 0."""
        if self.method == "permute":
            return (g.permute(*sorted(range(x.ndim), key=self.parameters.__getitem__)),)
        if self.method == "slice":
            return (PadSlice(x.shape, self.parameters)(g),)
        if self.method == "sliding_windows":
            return (BoundFunction(overlap_add, (x.shape, *self.parameters))(g),)
        if self.method == "skew":
            return (BoundFunction(_skew_vjp, (x.shape[self.parameters[0]], *self.parameters[:-1]))(g),)
        if self.method == "as_strided":
            raise GradientError(
                "backward: no gradient is defined through an overlapping view that was modified in place; modify x.clone()"
            )
        if self.method == "expand":
            new_dims = g.ndim - x.ndim
            dims = tuple(d for d in range(g.ndim) if d < new_dims or x.shape[d - new_dims] != g.shape[d])
            g = Reduce(add, dims)(g) if dims else g
        return (g.reshape(x.shape),)

    def __repr__(self) -> str:
        return f"{self.method}{self.parameters}"


class PadSlice(Function):
    """Zeros of a shape, except for a slice that contains the input: the gradient of slicing."""

    __slots__ = ("ranges", "shape")

    def __init__(self, shape: Shape, ranges: tuple[Range, ...]) -> None:
        self.shape, self.ranges = shape, ranges

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape that was sliced."""
        return self.shape, x.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array") -> Gradients:
        """Slice the gradient. If the gradient is itself a PadSlice with the same parameters, return its input."""
        return g.inputs if getattr(g, "function", None) is self else (View("slice", self.ranges)(g),)

    def region_layout(self, layout: Layout) -> Layout:
        """Return the layout of the slice in an array with this layout."""
        return layout.slice(*self.ranges)

    def __repr__(self) -> str:
        return f"pad_slice in {self.shape}"


class SliceUpdate(Function):
    """The first input with the elements of a view replaced by the second: an in-place update, as a function.

    The second input has the shape of the view, or is a number.
    """

    __slots__ = ("views",)

    def __init__(self, views: tuple[View, ...]) -> None:
        self.views = views

    def region_layout(self, layout: Layout) -> Layout:
        """Return the layout of the replaced elements in an array with this layout."""
        for view in self.views:
            layout = view.layout(layout)
        return layout

    def infer(self, old: "Array", new: "Array") -> ShapeDtype:
        """Return the shape and dtype of the first input."""
        return old.shape, old.dtype

    def vjp(self, g: "Array", y: "Array", old: "Array", new: "Array") -> Gradients:
        """Split the gradient: the old array gets it outside the view, the new elements get it inside."""
        inside = g
        for view in self.views:
            inside = view(inside)
        return self(g, 0), inside

    def __repr__(self) -> str:
        return f"slice_update at {' '.join(map(repr, self.views))}"


class Alias(Function):
    """The input as a separate node. `tag` distinguishes it from the input, for gradients or for buffer assignment."""

    __slots__ = ("tag",)

    def __init__(self, tag: Hashable) -> None:
        self.tag = tag

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape and dtype of the input."""
        return x.shape, x.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array") -> Gradients:
        """Return the gradient unchanged."""
        return (g,)

    def __repr__(self) -> str:
        return "alias"


class CustomVJP(Function):
    """The first input, with a custom VJP with respect to the other inputs. The VJP may read the value itself.

    The definition of the value stays in the graph. So the backward pass loads the value if it is stored, and can recompute
    it from saved inputs if it is not. Kernels do not contain this function.
    """

    __slots__ = ()

    def infer(self, value: "Array", *inputs: "Array") -> ShapeDtype:
        """Return the shape and dtype of the value."""
        return value.shape, value.dtype


class Reduce(Function):
    """Reduce dims to size 1 with an operator that has an identity. There is an input for each state of the operator."""

    __slots__ = ("dims", "operator")

    def __init__(self, operator: Operator, dims: tuple[int, ...]) -> None:
        self.operator, self.dims = operator, dims

    def __call__(self, x: A, *inputs: Any) -> A:
        """Reduce. Integers of 8 and 16 bits are accumulated as int32."""
        y: A = apply_widened(super().__call__, x, *inputs, dtype=self.infer(x, *inputs)[1])
        return y

    def infer(self, *inputs: "Array") -> ShapeDtype:
        """Return the shape with size 1 in the reduced dims. Raise DTypeError if the operator has no identity."""
        x = inputs[self.operator.states.index(self.operator)]
        self.operator.identity_for(x.dtype)
        return tuple(1 if d in self.dims else n for d, n in enumerate(x.shape)), x.dtype

    def vjp(self, g: "Array", y: "Array", *inputs: "Array") -> Gradients:
        """Apply the reduce VJP of the operator, which may reduce along the same dims. Raise GradientError if it has none."""
        shape, vjp = inputs[0].shape, self.operator.reduce_vjp
        if vjp is None:
            raise GradientError(
                f"backward: the reduction {self.operator} has no gradient; write one as reduce_vjp= where it is defined, "
                "or pass x.detach()"
            )
        reduce = lambda operator, *values: Reduce(operator, self.dims)(*values).expand(*shape)  # noqa: E731
        gradients = vjp(g.expand(*shape), y.expand(*shape), *inputs, reduce)
        return gradients if isinstance(gradients, tuple) else (gradients,)

    def __repr__(self) -> str:
        return f"reduce {self.operator} over dims {self.dims}"


class ReduceFirst(Reduce):
    """A reduction that selects an element, as max does. Of equal elements, the first (row-major) gets the gradient."""

    __slots__ = ()

    def vjp(self, g: "Array", y: "Array", *inputs: "Array") -> Gradients:
        """Compare all elements with y to find the first one. If y is NaN, find the first NaN, which differs from itself."""
        (x,) = inputs
        sizes = tuple(n if d in self.dims else 1 for d, n in enumerate(x.shape))
        position = x.positions(prod(sizes)).reshape(sizes)
        first = Reduce(minimum, self.dims)(where(eq(x, y) | ne(x, x), position, prod(sizes)))
        return (where(eq(position, first), g, 0),)


class Matmul(Function):
    """Matrix multiplication (..., M, K) @ (..., K, N) -> (..., M, N) with equal batch dims, in a float32 precision."""

    __slots__ = ("precision",)

    def __init__(self, precision: str = HIGHEST) -> None:
        self.precision = precision

    def __call__(self, x: A, *inputs: Any) -> A:
        """Multiply. Integers of 8 and 16 bits are accumulated as int32."""
        y: A = apply_widened(super().__call__, x, *inputs, dtype=x.dtype)
        return y

    def infer(self, a: "Array", b: "Array") -> ShapeDtype:
        """Return the rows of a by the columns of b."""
        return (*a.shape[:-1], b.shape[-1]), a.dtype

    def vjp(self, g: "Array", y: "Array", a: "Array", b: "Array") -> Gradients:
        """Return two matmuls in the same precision."""
        return self(g, b.mT), self(a.mT, g)

    def precision_of(self, dtype: DType, is_supported: bool) -> str:
        """Return the precision for a dtype: the given one for float32 on a backend that supports reduced precision."""
        return self.precision if is_supported and dtype is float32 else HIGHEST

    def __repr__(self) -> str:
        return "matmul" if self.precision == HIGHEST else f"matmul in {self.precision} precision"


class Cast(Function):
    """Conversion to another dtype."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape of the input and the new dtype."""
        return x.shape, self.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array") -> Gradients:
        """Cast the gradient back, if both dtypes are floats."""
        return (Cast(x.dtype)(g),) if x.dtype.is_float and self.dtype.is_float else (None,)

    def __repr__(self) -> str:
        return f"to {self.dtype}"


class Copy(Function):
    """Copy of the elements in row-major order, in new memory."""

    __slots__ = ()

    def infer(self, x: "Array") -> ShapeDtype:
        """Return the shape and dtype of the input."""
        return x.shape, x.dtype

    def vjp(self, g: "Array", y: "Array", x: "Array") -> Gradients:
        """Return the gradient unchanged."""
        return (g,)

    def __repr__(self) -> str:
        return "copy"


class Full(Function):
    """An array of a shape, filled with one number."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape, self.dtype = shape, dtype

    def infer(self, number: "Array") -> ShapeDtype:
        """Return the given shape and dtype."""
        return self.shape, self.dtype

    def vjp(self, g: "Array", y: "Array", number: "Array") -> Gradients:
        """Return no gradient, since a number has none."""
        return (None,)

    def __repr__(self) -> str:
        return f"full {self.shape}"


class Iota(Function):
    """The integers 0, 1, ..., size - 1 as int64. They need no memory: kernels compute them from the index of the point."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def infer(self) -> ShapeDtype:
        """Return a 1-D shape and int64."""
        return (self.size,), int64

    def __repr__(self) -> str:
        return f"iota {self.size}"


class BoundFunction(metaclass=Interned):
    """A Python function of arrays with bound parameters. On nodes its body is inlined; on tensors it is one traced call."""

    __slots__ = ("__weakref__", "body", "parameters")

    def __init__(self, body: Callable[..., Any], parameters: tuple[Hashable, ...]) -> None:
        self.body, self.parameters = body, parameters

    def __call__(self, *inputs: "Array") -> Any:
        """Run the body."""
        return self.body(*inputs, *self.parameters)

    def __repr__(self) -> str:
        return f"{self.body.__name__}{self.parameters}"


def apply_widened(function: Callable[..., A], *inputs: A, dtype: DType) -> A:
    """Apply a function with int32 in the place of int8, int16 and uint8, and convert the result to a dtype."""
    return function(*[x.to(int32) if x.dtype.is_small else x for x in inputs]).to(dtype)


def matmul(a: A, b: A) -> A:
    """Compute a @ b by NumPy's rule: a vector is a row on the left and a column on the right, and batch dims broadcast."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul: got shapes {a.shape} and {b.shape}, expected at least 1 dim each; use * for numbers")
    rows, columns = a if a.ndim > 1 else a[None, :], b if b.ndim > 1 else b[:, None]
    if rows.shape[-1] != columns.shape[-2]:
        k, other = rows.shape[-1], columns.shape[-2]
        raise ShapeError(
            f"matmul: inner sizes differ, rows of a have {k} elements (shape {a.shape}), columns of b have {other} "
            f"(shape {b.shape})"
        )
    dtype = add.result_dtype(a.dtype, b.dtype)[1]
    try:
        batch = broadcast(rows.shape[:-2], columns.shape[:-2])
    except ShapeError:
        shapes = f"batch shapes {rows.shape[:-2]} and {columns.shape[:-2]} do not broadcast (shapes {a.shape} and {b.shape})"
        raise ShapeError(f"matmul: {shapes}; sizes must be equal or 1") from None
    rows, columns = [x.to(dtype).expand(*batch, *x.shape[-2:]) for x in (rows, columns)]
    y = Matmul(matmul_precision())(rows, columns)
    return y.reshape(batch + rows.shape[-2:-1] * (a.ndim > 1) + columns.shape[-1:] * (b.ndim > 1))


# Gradients composed of several functions.


def overlap_add(g: "Array", shape: Shape, dim: int, size: int, step: int, dilation: int) -> "Array":
    """Return the gradient of `sliding_windows`: for each element, the sum of the gradients of all windows that contain it.

    If windows do not overlap, this is a reshape. Otherwise element i is element j of the window that starts at i - j *
    dilation. So the windows are padded with zeros on both sides, skewed so that the entries with equal i form a line, and
    summed along it. The index in a window becomes the first dim, which keeps elements that are adjacent in memory adjacent.
    """
    *others, last = range(g.ndim)
    n, count, extent = shape[dim], g.shape[dim], dilation * (size - 1)  # count: how many windows there are
    if count == 1 or size == 1 or (step == size and dilation == 1):
        y = g.permute(*others[: dim + 1], last, *others[dim + 1 :]).reshape(*shape[:dim], count * size, *shape[dim + 1 :])
        spacing = dilation if count == 1 else step if size == 1 else 1
        return y if count * size == n else PadSlice(shape, _slice_along(shape, dim, (0, spacing, count * size)))(y)
    padded_shape = (size, *shape[:dim], n + extent, *shape[dim + 1 :])
    padded = PadSlice(padded_shape, _slice_along(padded_shape, dim + 1, (extent, step, count)))(g.permute(last, *others))
    return Reduce(add, (0,))(View("skew", (dim + 1, 0, -dilation, extent, n))(padded)).reshape(shape)


def _skew_vjp(g: "Array", n: int, dim: int, along: int, slope: int, start: int) -> "Array":
    """Return the gradient of `Layout.skew`: pad with zeros, then skew back to the `n` original elements."""
    shift = slope * (g.shape[along] - 1)  # distance by which the last line is shifted
    before, after = max(0, start + max(0, shift)), max(0, n - g.shape[dim] - start - min(0, shift))
    shape = (*g.shape[:dim], before + g.shape[dim] + after, *g.shape[dim + 1 :])
    padded = PadSlice(shape, _slice_along(shape, dim, (before, 1, g.shape[dim])))(g) if before or after else g
    return View("skew", (dim, along, -slope, before - start, n))(padded)


def _slice_along(shape: Shape, dim: int, range_: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    """Return ranges that select `range_` along one dim, and everything along the others."""
    return tuple(range_ if d == dim else (0, 1, n) for d, n in enumerate(shape))

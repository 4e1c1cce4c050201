"""Functions of arrays that are not scalar operators: views, folds, products, casts; and functions made of others.

A function is to an array what an Operator is to a number: called on values it does what their `apply` says; `infer`
gives the shape and dtype of the result, `vjp` the gradient, written with the same functions. There are no other rules:
whatever is built from these has its gradient, of any order, eager and fused. Nothing here knows memory.
"""

from collections.abc import Callable
from math import prod
from typing import Any

from ..core.autograd import matmul_precision
from ..core.dtypes import HIGHEST, DType, float32, int64
from ..core.errors import GradientError, ShapeError
from ..core.interning import Interned
from ..core.layout import Layout, broadcast, row_major
from ..core.operators import Operator, add, eq, minimum, ne, where

Shape = tuple[int, ...]
ShapeDtype = tuple[Shape, DType]


class Function(metaclass=Interned):
    """A function of arrays with a rule for its shape and a rule for its gradient. Interned by its parameters."""

    __slots__ = ("__weakref__",)

    def infer(self, *inputs: Any) -> ShapeDtype:
        """Shape and dtype of the result."""
        raise NotImplementedError

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        """What each input receives when the output y receives g."""
        raise NotImplementedError

    def __call__(self, *inputs: Any) -> Any:
        """Do what `apply` of the inputs says."""
        return inputs[0].apply(self, *inputs)


class View(Function):
    """The same elements seen through another layout: a method of Layout and its arguments."""

    __slots__ = ("method", "parameters")

    def __init__(self, method: str, parameters: tuple[Any, ...]) -> None:
        self.method, self.parameters = method, parameters

    def layout(self, layout: Layout) -> Layout:
        """The layout of the view of something that lies in `layout`."""
        view: Layout = getattr(layout, self.method)(*self.parameters)
        return view

    def infer(self, x: Any) -> ShapeDtype:
        """The shape of the new layout."""
        return self.layout(row_major(x.shape)).shape, x.dtype

    def __call__(self, x: Any) -> Any:
        """See x through this view."""
        return x.apply_view(self)

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The view backwards: repeated elements add up, elements left out receive 0."""
        if self.method == "permute":
            return (g.permute(*sorted(range(x.ndim), key=self.parameters.__getitem__)),)
        if self.method == "slice":
            return (PadSlice(x.shape, self.parameters)(g),)
        if self.method == "sliding_windows":
            return (BoundFunction(overlap_add, (x.shape, *self.parameters))(g),)
        if self.method == "skew":
            return (BoundFunction(_skew_vjp, (x.shape[self.parameters[0]], *self.parameters[:-1]))(g),)
        if self.method == "as_strided":
            raise GradientError("a gradient through overlapping memory that was changed in place; change a clone()")
        if self.method == "expand":
            new = g.ndim - x.ndim
            dims = tuple(d for d in range(g.ndim) if d < new or x.shape[d - new] != g.shape[d])
            g = Reduce(add, dims)(g) if dims else g
        return (g.reshape(x.shape),)

    def __repr__(self) -> str:
        return f"{self.method}{self.parameters}"


class PadSlice(Function):
    """Zeros of a shape, with the input in the place of a slice: the gradient of slicing."""

    __slots__ = ("ranges", "shape")

    def __init__(self, shape: Shape, ranges: tuple[Any, ...]) -> None:
        self.shape, self.ranges = shape, ranges

    def infer(self, x: Any) -> ShapeDtype:
        """The shape that was sliced."""
        return self.shape, x.dtype

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The slice; where that was put into zeros of its own, what it was before."""
        return g.inputs if getattr(g, "function", None) is self else (View("slice", self.ranges)(g),)

    def region_layout(self, layout: Layout) -> Layout:
        """The layout of the slice in something that lies in `layout`."""
        return layout.slice(*self.ranges)

    def __repr__(self) -> str:
        return f"embed in {self.shape}"


class SliceUpdate(Function):
    """The first input, with the second in the place of a view of it: what a change in place of that view makes.

    The second has the shape of the view, or is a number.
    """

    __slots__ = ("views",)

    def __init__(self, views: tuple[View, ...]) -> None:
        self.views = views

    def region_layout(self, layout: Layout) -> Layout:
        """The layout of the place in something that lies in `layout`."""
        for view in self.views:
            layout = view.layout(layout)
        return layout

    def infer(self, old: Any, new: Any) -> ShapeDtype:
        """As before."""
        return old.shape, old.dtype

    def vjp(self, g: Any, y: Any, old: Any, new: Any) -> tuple[Any, ...]:
        """What lies outside the place goes to what was there before, what lies inside to what is there now."""
        seen = g
        for view in self.views:
            seen = view(seen)
        return self(g, 0), seen

    def __repr__(self) -> str:
        return f"insert at {' '.join(map(repr, self.views))}"


class Identity(Function):
    """The input itself, as a value of its own: `mark` tells it from others, for gradients and for memory."""

    __slots__ = ("tag",)

    def __init__(self, mark: Any) -> None:
        self.tag = mark

    def infer(self, x: Any) -> ShapeDtype:
        """The same."""
        return x.shape, x.dtype

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The gradient as it is."""
        return (g,)

    def __repr__(self) -> str:
        return "same"


class CustomVJP(Function):
    """The first input, as a function of the others: a gradient flows to those, by a rule that may read the value itself.

    What the first input is computed from stays in sight. So a backward pass finds the value where it lies in memory anyway,
    and computes it again from what is kept of its parts where it does not. No kernel knows of it.
    """

    __slots__ = ()

    def infer(self, value: Any, *inputs: Any) -> ShapeDtype:
        """As the value."""
        return value.shape, value.dtype


class Reduce(Function):
    """Fold dims to size 1 with an operator that has an identity."""

    __slots__ = ("dims", "operator")

    def __init__(self, operator: Operator, dims: tuple[int, ...]) -> None:
        self.operator, self.dims = operator, dims

    def infer(self, x: Any) -> ShapeDtype:
        """The shape with size 1 in the folded dims; the operator's identity must exist."""
        self.operator.identity_for(x.dtype)
        return tuple(1 if d in self.dims else n for d, n in enumerate(x.shape)), x.dtype

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The rule of the operator, which may fold along the same dims."""

        def fold(operator: Operator, v: Any) -> Any:
            return Reduce(operator, self.dims)(v).expand(*x.shape)

        if self.operator.reduce_vjp is None:
            return (None,)
        return (self.operator.reduce_vjp(g.expand(*x.shape), y.expand(*x.shape), x, fold),)

    def __repr__(self) -> str:
        return f"fold {self.operator} over {self.dims}"


class ReduceFirst(Reduce):
    """A fold that selects. Of the elements that it may have selected, the first in row-major order receives the gradient."""

    __slots__ = ()

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The first one is found again by comparing; only NaN differs from itself."""
        sizes = tuple(n if d in self.dims else 1 for d, n in enumerate(x.shape))
        place = x.positions(prod(sizes)).reshape(sizes)
        first = Reduce(minimum, self.dims)(where(eq(x, y) | ne(x, x), place, prod(sizes)))
        return (where(eq(place, first), g, 0),)


class Matmul(Function):
    """(..., M, K) @ (..., K, N) -> (..., M, N), batch dims already equal; of float32 in a precision."""

    __slots__ = ("precision",)

    def __init__(self, precision: str = HIGHEST) -> None:
        self.precision = precision

    def infer(self, a: Any, b: Any) -> ShapeDtype:
        """Rows of a, columns of b."""
        return (*a.shape[:-1], b.shape[-1]), a.dtype

    def vjp(self, g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        """Two products, in the same precision."""
        return self(g, b.mT), self(a.mT, g)

    def precision_of(self, dtype: DType, is_known: bool) -> str:
        """The precision of a product of a type, on a backend that knows precisions or does not."""
        return self.precision if is_known and dtype is float32 else HIGHEST

    def __repr__(self) -> str:
        return "matmul" if self.precision == HIGHEST else f"matmul in {self.precision} precision"


class Cast(Function):
    """The same values as another element type."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def infer(self, x: Any) -> ShapeDtype:
        """The same shape."""
        return x.shape, self.dtype

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The cast backwards, between floating types."""
        return (Cast(x.dtype)(g),) if x.dtype.is_float and self.dtype.is_float else (None,)

    def __repr__(self) -> str:
        return f"to {self.dtype}"


class Copy(Function):
    """The same elements in row-major order, in memory of their own."""

    __slots__ = ()

    def infer(self, x: Any) -> ShapeDtype:
        """The same."""
        return x.shape, x.dtype

    def vjp(self, g: Any, y: Any, x: Any) -> tuple[Any, ...]:
        """The gradient as it is."""
        return (g,)

    def __repr__(self) -> str:
        return "copy"


class Full(Function):
    """One number at every element of a shape."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape, self.dtype = shape, dtype

    def infer(self, number: Any) -> ShapeDtype:
        """What was asked for."""
        return self.shape, self.dtype

    def vjp(self, g: Any, y: Any, number: Any) -> tuple[Any, ...]:
        """A number receives nothing."""
        return (None,)

    def __repr__(self) -> str:
        return f"full {self.shape}"


class Iota(Function):
    """The numbers 0, 1, ... below a size, which lie nowhere: kernels know where they are."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def infer(self) -> ShapeDtype:
        """As many int64."""
        return (self.size,), int64

    def __repr__(self) -> str:
        return f"range {self.size}"


class BoundFunction(metaclass=Interned):
    """A function made of others, with its parameters. On nodes its body runs; on tensors it is one captured call."""

    __slots__ = ("__weakref__", "body", "parameters")

    def __init__(self, body: Callable[..., Any], parameters: tuple[Any, ...]) -> None:
        self.body, self.parameters = body, parameters

    def __call__(self, *inputs: Any) -> Any:
        """Run the body."""
        return self.body(*inputs, *self.parameters)

    def __repr__(self) -> str:
        return f"{self.body.__name__}{self.parameters}"


class CompositeOp(metaclass=Interned):
    """A function with a definition, made of others, which a backend may know as a whole.

    On nodes it has one of its own for each output, and a gradient rule of its own, if it wants one. Before kernels are
    looked for, its definition takes its place, unless the backend says that it `knows` the function: then all outputs are
    one step of the plan. Interned by its parameters.

    Attributes
    ----------
    names : tuple of str
        Of the outputs; by the first one backends know the function.
    lie_like : tuple of int or None
        Of each output the input in whose order it is laid out, where the shape is the same.
    """

    __slots__ = ("__weakref__",)
    names: tuple[str, ...] = ()
    output_layout_like: tuple[int | None, ...] = ()

    @property
    def parameters(self) -> tuple[Any, ...]:
        """What a backend is told beside the name."""
        return ()

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Shape and dtype of each output."""
        raise NotImplementedError

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """The definition: each output."""
        raise NotImplementedError

    def vjp(self, index: int, g: Any, *inputs: Any) -> tuple[Any, ...] | None:
        """What each input receives when output `index` receives g; None if that is the gradient of the definition."""
        return None

    def outputs(self, *inputs: Any) -> tuple[Any, ...]:
        """Each output as a function of its own."""
        return tuple(CompositeOutput(self, k)(*inputs) for k in range(len(self.names)))

    def __call__(self, *inputs: Any) -> Any:
        """Do what `apply` of the inputs says."""
        return inputs[0].apply(self, *inputs)


class CompositeOutput(Function):
    """One output of a defined function."""

    __slots__ = ("index", "op")

    def __init__(self, of: CompositeOp, index: int) -> None:
        self.op, self.index = of, index

    def infer(self, *inputs: Any) -> ShapeDtype:
        """As the function says."""
        return self.op.infer(*inputs)[self.index]

    def __repr__(self) -> str:
        return self.op.names[self.index]


def matmul(a: Any, b: Any) -> Any:
    """a @ b by NumPy's rule: a vector is a row on the left and a column on the right; batch dims broadcast."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"matmul: shapes {a.shape} and {b.shape}; both need at least 1 dim, use * for numbers")
    rows, columns = a if a.ndim > 1 else a[None, :], b if b.ndim > 1 else b[:, None]
    if rows.shape[-1] != columns.shape[-2]:
        k, other = rows.shape[-1], columns.shape[-2]
        raise ShapeError(f"matmul: inner sizes differ, a has K={k} (shape {a.shape}), b has K={other} (shape {b.shape})")
    dtype = add.result_dtype(a.dtype, b.dtype)[1]
    try:
        batch = broadcast(rows.shape[:-2], columns.shape[:-2])
    except ShapeError:
        shapes = f"batch shapes {rows.shape[:-2]} and {columns.shape[:-2]} do not broadcast (shapes {a.shape} and {b.shape})"
        raise ShapeError(f"matmul: {shapes}; sizes must be equal or 1") from None
    rows, columns = [x.to(dtype).expand(*batch, *x.shape[-2:]) for x in (rows, columns)]
    y = Matmul(matmul_precision())(rows, columns)
    return y.reshape(batch + rows.shape[-2:-1] * (a.ndim > 1) + columns.shape[-1:] * (b.ndim > 1))


# The bodies of gradients that take more than one function.


def overlap_add(g: Any, shape: Shape, dim: int, size: int, step: int, dilation: int) -> Any:
    """What each element of a dim receives: the sum of what it receives as a part of windows.

    Windows that lie beside each other are a reshape. Where they overlap, element i is element j of the window that starts
    at i - j * dilation. So windows are put where they start, into zeros that reach as far as windows do on both sides, the
    lines along which i is constant are seen as rows, and folded. The index in a window comes first there, so that what was
    close in memory stays so.
    """
    *others, last = range(g.ndim)
    n, count, reach = shape[dim], g.shape[dim], dilation * (size - 1)
    if count == 1 or size == 1 or (step == size and dilation == 1):
        y = g.permute(*others[: dim + 1], last, *others[dim + 1 :]).reshape(*shape[:dim], count * size, *shape[dim + 1 :])
        apart = dilation if count == 1 else step if size == 1 else 1
        return y if count * size == n else PadSlice(shape, _slice_along(shape, dim, (0, apart, count * size)))(y)
    room = (size, *shape[:dim], n + reach, *shape[dim + 1 :])
    started = PadSlice(room, _slice_along(room, dim + 1, (reach, step, count)))(g.permute(last, *others))
    return Reduce(add, (0,))(View("skew", (dim + 1, 0, -dilation, reach, n))(started)).reshape(shape)


def _skew_vjp(g: Any, n: int, dim: int, along: int, slope: int, start: int) -> Any:
    """The gradient of `Layout.shear`: sheared the other way, out of zeros, to the `n` elements that were there."""
    slide = slope * (g.shape[along] - 1)
    before, after = max(0, start + max(0, slide)), max(0, n - g.shape[dim] - start - min(0, slide))
    room = (*g.shape[:dim], before + g.shape[dim] + after, *g.shape[dim + 1 :])
    wide = PadSlice(room, _slice_along(room, dim, (before, 1, g.shape[dim])))(g) if before or after else g
    return View("skew", (dim, along, -slope, before - start, n))(wide)


def _slice_along(shape: Shape, dim: int, chosen: tuple[int, int, int]) -> tuple[tuple[int, int, int], ...]:
    """Ranges that are whole but for one dim."""
    return tuple(chosen if d == dim else (0, 1, n) for d, n in enumerate(shape))

"""im2col: the windows of a batch of images as a view of (C, ..., N), and its gradient.

Convolutions are matmuls of windows, and poolings are reductions of windows. The batch is the innermost dim in memory, so
neighboring windows are contiguous over all examples, and kernels read long runs. In shapes, `...` are the dims of an image,
and `*out_size` is the number of windows along each of these dims.
"""

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ..core.dtypes import DType, as_number
from ..core.errors import ShapeError
from ..core.indexing import Range
from ..core.layout import Layout
from ..core.operators import Operator, add
from ..ir.array_functions import A, Full, Gradients, Matmul, PadSlice, Reduce, ShapeDtype, View, overlap_add
from ..ir.array_methods import Array
from ..ir.composite_op import CompositeOp
from ..ir.graph import Node
from ..ir.vjp import strip_reshapes

Sizes = int | Sequence[int]
Padding = Sizes | Literal["valid", "same"]
# The gradient is computed as a convolution only if the windows of the convolution have at most this many times the elements
# of the matmul's result, which `overlap_add` would sum otherwise.
MAX_DIRECT_PRODUCTS = 32  # products in the sum of one result, above which a matmul is faster
MAX_COPY_RATIO = 4
MAX_CACHED_GEOMETRIES = 10_000


class WindowGeometry(NamedTuple):
    """Stride, padding (before, after) and dilation of windows, one for each dim, and the number of groups of channels."""

    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


def as_numbers(value: object) -> Any:
    """Convert a number, or a list or tuple of numbers, to hashable Python numbers."""
    return tuple(map(as_number, value)) if isinstance(value, list | tuple) else as_number(value)


def per_dim(name: str, option: str, value: object, dims: int, minimum: int) -> tuple[int, ...]:
    """Return one number for each dim; a single number applies to all dims. Raise ShapeError for anything else."""
    numbers = as_numbers(value)
    numbers = numbers if isinstance(numbers, tuple) else (numbers,) * dims
    if len(numbers) != dims or any(type(n) is not int or n < minimum for n in numbers):
        or_sequence = f", or {dims} of them" if dims > 1 else ""
        raise ShapeError(f"{name}: got {option}={value!r}, expected an integer of at least {minimum}{or_sequence}")
    return numbers


def window_geometry(
    name: str, kernel: tuple[int, ...], stride: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> WindowGeometry:
    """Check a convolution's stride, padding, dilation and groups, and expand them to one number for each dim."""
    strides = per_dim(name, "stride", stride, len(kernel), 1)
    dilations = per_dim(name, "dilation", dilation, len(kernel), 1)
    groups = as_number(groups)
    if type(groups) is not int or groups < 1:
        raise ShapeError(f"{name}: got groups={groups!r}, expected an integer of at least 1")
    if not isinstance(padding, str):
        padding_per_dim = tuple((n, n) for n in per_dim(name, "padding", padding, len(kernel), 0))
    elif padding == "valid":
        padding_per_dim = ((0, 0),) * len(kernel)
    elif padding == "same":
        if set(strides) != {1}:
            raise ShapeError(f'{name}: padding="same" needs stride 1, got stride {strides}; write the padding as numbers')
        total_padding = [gap * (n - 1) for gap, n in zip(dilations, kernel, strict=True)]
        padding_per_dim = tuple((n // 2, n - n // 2) for n in total_padding)
    else:
        raise ShapeError(f'{name}: got padding={padding!r}, expected an integer, one for each dim, "valid" or "same"')
    return WindowGeometry(strides, padding_per_dim, dilations, groups)


def check_windows(name: str, image: Sequence[int], kernel: Sequence[int], geometry: WindowGeometry) -> None:
    """Raise ShapeError unless at least one window fits into the padded image."""
    padded_sizes = tuple(n + before + after for n, (before, after) in zip(image, geometry.padding, strict=True))
    extent = tuple(gap * (n - 1) + 1 for gap, n in zip(geometry.dilation, kernel, strict=True))
    if any(n < r for n, r in zip(padded_sizes, extent, strict=True)):
        raise ShapeError(
            f"{name}: got a window of {extent} elements (kernel {tuple(kernel)}, dilation {geometry.dilation}) for an image "
            f"of {padded_sizes} (shape {tuple(image)} with padding); write a smaller kernel or more padding"
        )


@lru_cache(MAX_CACHED_GEOMETRIES, typed=True)
def pooling_geometry(
    name: str,
    image: tuple[int, ...],
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], WindowGeometry]:
    """Return window size and geometry of a pooling; with `ceil_mode`, the padding completes the last window."""
    dims = len(image)
    size = per_dim(name, "kernel_size", kernel_size, dims, 1)
    step = size if stride is None else per_dim(name, "stride", stride, dims, 1)
    before = per_dim(name, "padding", padding, dims, 0)
    gap = per_dim(name, "dilation", dilation, dims, 1)
    if any(2 * p > k for p, k in zip(before, size, strict=True)):
        raise ShapeError(f"{name}: got padding={padding!r}, expected at most half of the window size {size}")
    geometry = WindowGeometry(step, tuple((p, p) for p in before), gap, 1)
    check_windows(name, image, size, geometry)
    if not ceil_mode:
        return size, geometry
    after = []
    for n, k, s, p, d in zip(image, size, step, before, gap, strict=True):
        extent = d * (k - 1) + 1
        window_count = min(-(-(n + 2 * p - extent) // s), (n + p - 1) // s) + 1
        after.append(max(p, (window_count - 1) * s + extent - n - p))
    return size, geometry._replace(padding=tuple(zip(before, after, strict=True)))


# Functions of the graph.


def padded_shape(z: Array, padding: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[Range, ...]]:
    """Return the shape of (C, ..., N) with padded image dims, and the slices that contain the original elements."""
    sides = (*[(0, 0)] * (z.ndim - len(padding) - 1), *padding, (0, 0))
    shape = tuple(before + n + after for n, (before, after) in zip(z.shape, sides, strict=True))
    return shape, tuple((before, 1, n) for n, (before, _) in zip(z.shape, sides, strict=True))


def extract_patches(z: A, size: Sequence[int], step: tuple[int, ...], dilation: tuple[int, ...]) -> A:
    """Return all windows as a view: (C, ..., N) -> (C, *size, *out_size, N)."""
    return Patches("patches", (tuple(size), step, dilation))(z)


def sum_windows(windows: A, shape: tuple[int, ...], size: tuple[int, ...], geometry: WindowGeometry) -> A:
    """Add windows (C, *size, *out_size, N) into zeros (C, ..., N): the gradient of padding and `extract_patches`."""
    z: Any = windows.apply(Full(shape, windows.dtype), 0)
    pad = PadSlice(*padded_shape(z, geometry.padding))
    padded = pad(z) if any(map(any, geometry.padding)) else z
    patches: Any = extract_patches(padded, size, geometry.stride, geometry.dilation)
    (y,) = patches.function.vjp(windows.reshape(patches.shape), patches, padded)
    gradient: Any = y if padded is z else pad.vjp(y, y, z)[0]
    return gradient  # type: ignore[no-any-return]


def images_in_memory_order(x: Array, is_contiguous: bool) -> Array:
    """Return images as (C, ..., N), with the batch innermost, or, if they are contiguous, as (N, C, ..., 1)."""
    return x.reshape(*x.shape, 1) if is_contiguous else x.permute(*range(1, x.ndim), 0)


def window_sums(z: A, size: tuple[int, ...], step: tuple[int, ...]) -> A:
    """Return the sum of each window of images in memory order: (C, ..., N) -> (C, *out_size, N)."""
    return reduce_windows(Reduce, add, z, size, step, (1,) * len(size))


def reduce_windows(reduction: type[Reduce], operator: Operator, z: A, size: tuple[int, ...], *geometry: Any) -> A:
    """Reduce each window of images in memory order: (C, ..., N) -> (C, *out_size, N)."""
    first, dims = z.ndim - len(size) - 1, len(size)
    y = reduction(operator, tuple(range(first, first + dims)))(extract_patches(z, size, *geometry))
    return y.reshape(*y.shape[:first], *y.shape[first + dims :])


def batch_first(y: A, dims: int) -> A:
    """Return images as (N, C, ...): the inverse of `images_in_memory_order`."""
    return y.permute(dims + 1, *range(dims + 1)) if y.ndim == dims + 2 else y.reshape(*y.shape[:-1])


class WindowOp(CompositeOp):
    """Base class of matmuls with the matrix of all windows.

    Parameters
    ----------
    size, step, dilation : tuple of int
        Geometry of the windows, one number for each dim.
    dtype : DType
        Dtype of all operands.
    product : Matmul
        The matmul in the chosen precision.
    """

    __slots__ = ("dilation", "dtype", "product", "size", "step")
    output_layout_like = (None,)

    def __init__(
        self, size: tuple[int, ...], step: tuple[int, ...], dilation: tuple[int, ...], dtype: DType, product: Matmul
    ) -> None:
        self.size, self.step, self.dilation, self.dtype, self.product = size, step, dilation, dtype, product

    @property
    def parameters(self) -> tuple[Hashable, ...]:
        """Return the parameters that kernels of backends need. They do not depend on the precision of `product`."""
        return self.size, self.step, self.dilation, self.dtype

    def infer(self, *inputs: Array) -> tuple[ShapeDtype, ...]:
        """Infer shape and dtype from the definition."""
        (y,) = self.body(*inputs)
        return ((y.shape, y.dtype),)

    def patches(self, z: A) -> A:
        """Return the windows: (C, ..., N) -> (C, *size, *out_size, N)."""
        return extract_patches(z, self.size, self.step, self.dilation)

    def matrix(self, z: A, groups: int) -> A:
        """Return the matrix of all windows, (groups, C / groups * size, prod(out_size) * N). A copy if windows overlap."""
        k = z.shape[0] // groups * math.prod(self.size)
        patches = self.patches(z)
        return patches.reshape(groups, k, patches.size // max(groups * k, 1))


class WindowProduct(WindowOp):
    """Matmul of (groups, M, K) and the windows of (C, ..., N), plus an optional bias -> (groups, M, prod(out_size) * N).

    A backend that has a kernel for this op does not copy the windows.
    """

    __slots__ = ()
    names = ("window_product",)

    def body(self, weight: A, z: A, *bias: A) -> tuple[A, ...]:
        """Multiply the weight with the matrix of all windows."""
        groups, m, _ = weight.shape
        y = self.product(weight, self.matrix(z, groups))
        return (y + bias[0].reshape(groups, m, 1) if bias else y,)

    def fused_body(self, weight: A, z: A, *bias: A) -> tuple[A, ...]:
        """Add products of weights and windows in one kernel if a sum has few of them, as in depthwise convolution."""
        groups, m, k = weight.shape
        if k > MAX_DIRECT_PRODUCTS or z.shape[0] != groups or z.dtype is not weight.dtype:
            return self.body(weight, z, *bias)
        windows = self.patches(z)
        dims = len(self.size)
        filters = weight.reshape(groups, m, *self.size, *[1] * (dims + 1))
        products = windows.reshape(groups, 1, *windows.shape[1:]) * filters
        y = Reduce(add, tuple(range(2, 2 + dims)))(products).reshape(groups, m, math.prod(windows.shape[1 + dims :]))
        return (y + bias[0].reshape(groups, m, 1) if bias else y,)

    def vjp(self, index: int, g: Array, weight: Array, z: Array, *bias: Array) -> Gradients:
        """Return the gradients of the weight (a matmul with windows), of z (a matmul or a convolution) and of the bias."""
        patches = self.patches(z)
        (z_grad,) = patches.function.vjp(self.product(weight.mT, g).reshape(*patches.shape), patches, z)
        (weight_grad,) = WindowGradient(self.size, self.step, self.dilation, self.dtype, self.product)(g, z)
        return weight_grad, z_grad, *[Reduce(add, (2,))(g).reshape(b.size) for b in bias]


class WindowGradient(WindowOp):
    """Matmul of (groups, M, prod(out_size) * N) and the transposed windows of (C, ..., N): the gradient of a weight."""

    __slots__ = ()
    names = ("window_gradient",)

    def body(self, g: A, z: A) -> tuple[A, ...]:
        """Multiply with the transposed matrix of all windows."""
        return (self.product(g, self.matrix(z, g.shape[0]).mT),)

    def fused_body(self, g: A, z: A) -> tuple[A, ...]:
        """Add products of gradients and windows in one kernel if there are few sums, as in depthwise convolution."""
        groups, m, _ = g.shape
        count, dims = m * math.prod(self.size), len(self.size)
        if count > MAX_DIRECT_PRODUCTS or z.shape[0] != groups or z.dtype is not g.dtype:
            return self.body(g, z)
        windows = self.patches(z)
        position = windows.shape[1 + dims :]
        products = g.reshape(groups, m, *[1] * dims, *position) * windows.reshape(groups, 1, *windows.shape[1:])
        return (Reduce(add, tuple(range(2 + dims, 3 + 2 * dims)))(products).reshape(groups, m, math.prod(self.size)),)


class Patches(View):
    """View of all windows of the image dims: (C, ..., N) -> (C, *size, *out_size, N), without a copy.

    The parameters are size, step and dilation of the windows, each with one number for each dim. Several dims may precede
    those of the image.
    """

    __slots__ = ()

    def first_dim(self, ndim: int) -> int:
        """Return the first image dim of an array: only the last dim follows the image."""
        return ndim - len(self.parameters[0]) - 1

    def layout(self, layout: Layout) -> Layout:
        """Return the layout of the windows: the dims of the index in a window precede those of the window's position."""
        first, ndim = self.first_dim(layout.ndim), layout.ndim
        for d, numbers in enumerate(zip(*self.parameters, strict=True)):
            layout = layout.sliding_windows(first + d, *numbers)
        return layout.permute(*range(first), *range(ndim, layout.ndim), *range(first, ndim))

    def vjp(self, g: Array, y: Array | None, x: Array) -> Gradients:
        """Return the gradient: the sum over overlapping windows, or one convolution if `as_convolution` returns one."""
        if isinstance(g, Node) and isinstance(x, Node) and (gradient := self.as_convolution(g, x)) is not None:
            return (gradient,)
        size, step, dilation = self.parameters
        if size == step and set(dilation) == {1}:
            return (self.merge_windows(g, x.shape),)
        first = self.first_dim(x.ndim)
        for d, numbers in reversed([*enumerate(zip(*self.parameters, strict=True))]):
            window_dim, position_dim = first + d, first + 2 * d  # dims of the index in a window, and of window positions
            g = g.permute(*(k for k in range(g.ndim) if k != window_dim), window_dim)
            g = overlap_add(
                g, (*g.shape[:position_dim], x.shape[first + d], *g.shape[position_dim + 1 : -1]), position_dim, *numbers
            )
        return (g,)

    def merge_windows(self, g: A, shape: Sequence[int]) -> A:
        """Return the gradient for adjacent windows: one reshape, which is a view if g has the layout of x."""
        first, last = self.first_dim(len(shape)), len(shape) - 1
        pairs = [(last + k, first + k) for k in range(last - first)]  # the window position, and the index in the window
        sizes = [g.shape[position] * g.shape[index] for position, index in pairs]
        order = [d for position, index in pairs for d in (position, index)]
        y = g.permute(*range(first), *order, g.ndim - 1).reshape(*g.shape[:first], *sizes, g.shape[-1])
        uncovered = [(0, n - size) for n, size in zip(shape[first:-1], sizes, strict=True)]
        return PadSlice(*padded_shape(y, uncovered))(y) if any(map(any, uncovered)) else y

    def as_convolution(self, g: Node, x: Node) -> Node | None:
        """Return the gradient as a convolution of b with the flipped filter, if g is the transposed filter @ b.

        Return None if g is not such a matmul, or if the convolution would copy too many elements. The gradient of padding
        is not computed.
        """
        size, step, dilation = self.parameters
        product, out_size, n = strip_reshapes(g), g.shape[1 + len(size) : -1], g.shape[-1]
        is_product = isinstance(product.function, Matmul) and product.ndim == 3 and g.shape[0] % product.shape[0] == 0
        if not is_product or self.first_dim(x.ndim) != 1 or product.shape[2] != math.prod(out_size) * n:
            return None
        a, b = product.inputs  # (groups, C / groups * size, M), (groups, M, prod(out_size) * N)
        groups, m, pad = a.shape[0], a.shape[2], padding_op(x)
        image = tuple(length for _, _, length in pad.ranges[1:-1]) if pad else x.shape[1:-1]
        if not self.has_overlap(out_size) or groups * m * math.prod(image) > MAX_COPY_RATIO * g.shape[0] * math.prod(
            out_size
        ):
            return None
        before = [gap * (k - 1) for gap, k in zip(dilation, size, strict=True)]
        if pad:
            before = [n - start for n, (start, _, _) in zip(before, pad.ranges[1:-1], strict=True)]
        after = [
            i + gap * (k - 1) - p - start
            for i, gap, k, p, start in zip(image, dilation, size, out_size, before, strict=True)
        ]
        if min(*before, *after) < 0:
            return None
        z = b.reshape(groups * m, *out_size, n)
        if any(before) or any(after):
            z = PadSlice(*padded_shape(z, [*zip(before, after, strict=True)]))(z)
        filter_dims = range(2, 2 + len(size))
        kernel = a.reshape(groups, -1, *size, m).flip(*filter_dims).permute(0, 1, 2 + len(size), *filter_dims)
        multiply = WindowProduct(size, step, dilation, z.dtype, product.function)
        (y,) = multiply(kernel.reshape(groups, -1, m * math.prod(size)), z)
        y = y.reshape(g.shape[0], *image, n)
        return pad(y) if pad else y

    def has_overlap(self, out_size: Sequence[int]) -> bool:
        """Return True if windows overlap: the step is 1, and there are several windows of several elements."""
        size, step, _ = self.parameters
        return set(step) == {1} and set(size) != {1} and set(out_size) != {1}


def padding_op(x: Node) -> PadSlice | None:
    """Return the op that padded the image dims of (C, ..., N), or None if x is not the result of padding."""
    function = x.function
    if not isinstance(function, PadSlice):
        return None
    (inner,) = x.inputs
    is_padding = inner.shape[0] == x.shape[0] and inner.shape[-1] == x.shape[-1]
    return function if is_padding and all(step == 1 for _, step, _ in function.ranges) else None

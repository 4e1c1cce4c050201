"""Pooling: the maximum or the mean of each window, as functions and as modules. Each is one composite op.

A pooling is a view and a reduction. The windows of the images are a view that has one dim for each dim of a window, and
these dims are reduced. Nothing is copied. The result has the memory order of the images: row-major if they are contiguous,
else the batch is its innermost dim, as in the results of convolutions.

Not supported: returning indices; inputs without a batch dim (write x[None]).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

from ..core.errors import ShapeError
from ..core.operators import maximum, minimum, where
from ..ir.array_functions import A, BoundFunction, Full, PadSlice, ReduceFirst, SliceUpdate, View, matmul
from ..ir.array_methods import Array
from .activations import require_floats
from .im2col import (
    MAX_CACHED_GEOMETRIES,
    Sizes,
    WindowGeometry,
    as_numbers,
    batch_first,
    check_windows,
    images_in_memory_order,
    padded_shape,
    per_dim,
    reduce_windows,
    window_sums,
)
from .layers import FunctionLayer, apply, require_tensor


def max_pool1d(
    x: A, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False
) -> A:
    """Return the maximum of each window of signals (N, C, L): `max_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.max_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 5.0, 4.0]]]), 2)
    tensor([[[3., 5.]]])
    """
    return pool_max("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: A, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False
) -> A:
    """Return the maximum of each window of images; NaN if the window contains one.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        N images of C channels.
    kernel_size : int or pair
        Rows and columns of a window.
    stride : int or pair, optional
        Distance from one window to the next. Default: the window size, so that windows are adjacent.
    padding : int or pair
        Number of elements added on each side, which are never the maximum; at most half a window.
    dilation : int or pair
        Distance between the elements of a window.
    ceil_mode : bool
        If True, the remaining elements at the end form a smaller window.

    Returns
    -------
    Tensor (N, C, PH, PW)
        PH = (H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1, rounded down, or up with `ceil_mode`, where
        windows that would start in the padding after the image are left out. PW likewise. It is contiguous if x is; else
        the batch is its innermost dim in memory.

    Raises
    ------
    ShapeError
        x is not a batch of images, a window does not fit into them, or an option is too small or too large.
    DTypeError
        x is not a tensor.

    Notes
    -----
    If several elements are the maximum, the first one in row-major order receives the gradient, as in PyTorch. No indices
    are stored: the backward pass compares again. Without padding the forward pass copies nothing. If windows overlap, the
    backward pass stores KH * KW elements for each element of the output.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.arange(16).reshape(1, 1, 4, 4)
    >>> mf.nn.max_pool2d(x, 2)
    tensor([[[[ 5,  7],
              [13, 15]]]])
    """
    return pool_max("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode)


def pool_max(
    name: str,
    dims: int,
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> A:
    """Check the arguments, and compute the maximum over windows of the last dims as one composite op."""
    size, geometry = check_pooling_arguments(name, dims, x, kernel_size, stride, padding, dilation, ceil_mode)
    return pool(_pool_max, x, size, geometry)


def avg_pool1d(
    x: A, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
) -> A:
    """Return the mean of each window of signals (N, C, L): `avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)
    tensor([[[2., 4.]]])
    """
    return pool_mean("avg_pool1d", 1, x, kernel_size, stride, padding, count_include_pad)


def avg_pool2d(
    x: A, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
) -> A:
    """Return the mean of each window of images.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    kernel_size : int or pair
        Rows and columns of a window.
    stride : int or pair, optional
        Distance from one window to the next. Default: the window size, so that windows are adjacent.
    padding : int or pair
        Number of zeros added on each side; at most half a window.
    count_include_pad : bool
        If True, these zeros count as elements of the mean.

    Returns
    -------
    Tensor (N, C, PH, PW)
        PH = (H + 2 * padding - KH) // stride + 1, PW likewise. It is contiguous if x is; else the batch is its innermost
        dim in memory.

    Raises
    ------
    ShapeError
        As in `max_pool2d`.
    DTypeError
        x is not a tensor of floats.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool2d(mf.ones(1, 1, 3, 3), 2, stride=2, padding=1)
    tensor([[[[0.25, 0.5 ],
              [0.5 , 1.  ]]]])
    """
    return pool_mean("avg_pool2d", 2, x, kernel_size, stride, padding, count_include_pad)


def pool_mean(
    name: str, dims: int, x: A, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, count_include_pad: bool
) -> A:
    """Check the arguments, and compute the mean over windows of the last dims as one composite op."""
    size, geometry = check_pooling_arguments(name, dims, x, kernel_size, stride, padding, 1, False)
    require_floats(name, x)
    return pool(_pool_mean, x, size, geometry, bool(count_include_pad))


def adaptive_avg_pool1d(x: A, output_size: int | None) -> A:
    """Average signals (N, C, L), so that they have a given length: `adaptive_avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.adaptive_avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)  # the means of 1 3 2 and of 2 6 4
    tensor([[[2., 4.]]])
    """
    return pool_adaptively("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: A, output_size: int | Sequence[int | None] | None) -> A:
    """Average images, so that they have a given size: each output element is the mean of one part of the image.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    output_size : int or pair
        Rows and columns of the output; None keeps the size of the input.

    Returns
    -------
    Tensor (N, C, *output_size)
        Part p of P along a dim of n elements is floor(p * n / P) ... ceil((p + 1) * n / P), end excluded, as in PyTorch.
        Parts overlap if P does not divide n.

    Raises
    ------
    ShapeError
        x is not a batch of images, a dim of x has size 0, or a requested size is less than 1.
    DTypeError
        x is not a tensor of floats.

    Notes
    -----
    If P divides n, parts are adjacent windows. Otherwise the dim is multiplied by a matrix (n, P) that contains 1 / length
    if an element belongs to a part, else 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.adaptive_avg_pool2d(mf.arange(12).to(mf.float32).reshape(1, 1, 3, 4), (1, 2))
    tensor([[[[4.5, 6.5]]]])
    """
    return pool_adaptively("adaptive_avg_pool2d", 2, x, output_size)


def pool_adaptively(name: str, dims: int, x: A, output_size: int | Sequence[int | None] | None) -> A:
    """Check the arguments, and average parts of the last dims as one composite op."""
    check_images(name, dims, x)
    require_floats(name, x)
    image = x.shape[2:]
    if 0 in image:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected at least 1 element along each of its last {dims} dims")
    requested_sizes = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * dims
    sizes = [image[d] if size is None and d < dims else size for d, size in enumerate(requested_sizes)]
    return pool(_pool_adaptively, x, per_dim(name, "output_size", sizes, dims, 1))


def pool(body: Callable[..., Array], x: A, *options: Hashable) -> A:
    """Run the body of a pooling as one composite op. It gets the images, whether they are contiguous, and the options."""
    return apply(BoundFunction(body, (x.is_contiguous(), *options)), x)


# Checks of arguments.


def check_images(name: str, dims: int, x: Array) -> None:
    """Raise unless x is a batch of images, or of signals."""
    require_tensor(name, x)
    if x.ndim != dims + 2:
        expected_shape = "(N, C, H, W)" if dims == 2 else "(N, C, L)"
        raise ShapeError(
            f"{name}: got x of shape {x.shape}, expected {expected_shape}; write x[None] for a batch of one example"
        )


def check_pooling_arguments(
    name: str,
    dims: int,
    x: Array,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], WindowGeometry]:
    """Check the arguments, and return window size and geometry; with `ceil_mode`, its padding completes the last window."""
    check_images(name, dims, x)
    return compute_window_geometry(name, x.shape[2:], *map(as_numbers, (kernel_size, stride, padding, dilation)), ceil_mode)


@lru_cache(MAX_CACHED_GEOMETRIES, typed=True)
def compute_window_geometry(
    name: str,
    image: tuple[int, ...],
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], WindowGeometry]:
    """Compute the size and geometry of windows for images of one shape."""
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


# Composite ops.


def _pool_max(x: Array, is_contiguous: bool, size: tuple[int, ...], geometry: WindowGeometry) -> Array:
    z = images_in_memory_order(x, is_contiguous)
    if any(map(any, geometry.padding)):
        shape, slices = padded_shape(z, geometry.padding)
        lowest = z.apply(Full(shape, z.dtype), maximum.identity_for(z.dtype))
        z = SliceUpdate((View("slice", slices),))(lowest, z)
    return batch_first(reduce_windows(ReduceFirst, maximum, z, size, geometry.stride, geometry.dilation), len(size))


def _pool_mean(
    x: Array, is_contiguous: bool, size: tuple[int, ...], geometry: WindowGeometry, counts_padding: bool
) -> Array:
    z = images_in_memory_order(x, is_contiguous)
    if any(map(any, geometry.padding)):
        z = PadSlice(*padded_shape(z, geometry.padding))(z)
    y, dims = window_sums(z, size, geometry.stride), len(size)
    if counts_padding:
        return batch_first(y / math.prod(size), dims)
    for d, (n, k, step, (before, _)) in enumerate(zip(x.shape[2:], size, geometry.stride, geometry.padding, strict=True)):
        window_start = x.positions(y.shape[d - dims - 1]) * step - before
        count = minimum(window_start + k, n) - maximum(window_start, 0)
        y = y / count.to(x.dtype).reshape(-1, *[1] * (dims - d))
    return batch_first(y, dims)


def _pool_adaptively(x: Array, is_contiguous: bool, sizes: tuple[int, ...]) -> Array:
    z = images_in_memory_order(x, is_contiguous)
    for d, part_count in enumerate(sizes, z.ndim - len(sizes) - 1):
        if z.shape[d] % part_count:
            z = matmul(z.transpose(d, -1), averaging_matrix(x, z.shape[d], part_count)).transpose(d, -1)
    size = tuple(n // part_count for n, part_count in zip(z.shape[-len(sizes) - 1 : -1], sizes, strict=True))
    return batch_first(window_sums(z, size, size) / math.prod(size), len(size))


def averaging_matrix(x: A, n: int, part_count: int) -> A:
    """Return a matrix (n, part_count): 1 / length if an element belongs to a part, else 0."""
    element, part = x.positions(n).reshape(n, 1), x.positions(part_count)
    start, stop = part * n // part_count, ((part + 1) * n + part_count - 1) // part_count
    return where((element >= start) & (element < stop), 1 / (stop - start).to(x.dtype), 0)


# Modules.


class MaxPool(FunctionLayer):
    """Base class of MaxPool1d and MaxPool2d."""

    options = "kernel_size", "stride", "padding", "dilation", "ceil_mode"
    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x: A) -> A:
        """Reduce each window to its maximum: (N, C, ...) -> (N, C, *out_size)."""
        options = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        return pool_max(type(self).__name__, self.dims, x, *options)


class MaxPool1d(MaxPool):
    """`max_pool1d` as a module."""

    dims = 1


class MaxPool2d(MaxPool):
    """`max_pool2d` as a module.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.MaxPool2d(2)
    >>> layer
    MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    >>> layer(mf.ones(5, 3, 9, 8)).shape
    (5, 3, 4, 4)
    """

    dims = 2


class AvgPool(FunctionLayer):
    """Base class of AvgPool1d and AvgPool2d."""

    options = "kernel_size", "stride", "padding"
    dims: int

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.count_include_pad = padding, count_include_pad

    def forward(self, x: A) -> A:
        """Reduce each window to its mean: (N, C, ...) -> (N, C, *out_size)."""
        options = self.kernel_size, self.stride, self.padding, self.count_include_pad
        return pool_mean(type(self).__name__, self.dims, x, *options)


class AvgPool1d(AvgPool):
    """`avg_pool1d` as a module."""

    dims = 1


class AvgPool2d(AvgPool):
    """`avg_pool2d` as a module."""

    dims = 2


class AdaptiveAvgPool(FunctionLayer):
    """Base class of AdaptiveAvgPool1d and AdaptiveAvgPool2d."""

    options = ("output_size",)
    dims: int

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        self.output_size = output_size

    def forward(self, x: A) -> A:
        """Average to the output size: (N, C, ...) -> (N, C, *output_size)."""
        return pool_adaptively(type(self).__name__, self.dims, x, self.output_size)


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """`adaptive_avg_pool1d` as a module."""

    dims = 1


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """`adaptive_avg_pool2d` as a module."""

    dims = 2

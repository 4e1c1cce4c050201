"""Pooling: the maximum or the mean of each window, as functions and as modules. Each is one composite op.

A pooling is a view and a reduction. The windows of the images are a view that has one dim for each dim of a window, and
these dims are reduced. Nothing is copied. The result has the memory order of the images: row-major if they are contiguous,
else the batch is its innermost dim, as in the results of convolutions.

`adaptive_pooling` has those with a given size of the output, and `pooling_variants` others and the inverse.
"""

import math
from collections.abc import Callable, Hashable
from typing import Any

from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.operators import Operator, eq, maximum, minimum, ne, where
from ..ir.array_functions import A, BoundFunction, Full, PadSlice, Reduce, ReduceFirst, SliceUpdate, View
from ..ir.array_methods import Array
from .activations import require_floats
from .im2col import (
    Sizes,
    WindowGeometry,
    as_numbers,
    batch_first,
    extract_patches,
    images_in_memory_order,
    padded_shape,
    pooling_geometry,
    reduce_windows,
    window_sums,
)
from .layers import IMAGE, FunctionLayer, apply, require_tensor, takes_one_example


def max_pool1d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> A:
    """Return the maximum of each window of signals (N, C, L): `max_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.max_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 5.0, 4.0]]]), 2)
    tensor([[[3., 5.]]])
    """
    return pool_max("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
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
    return_indices : bool
        If True, return a pair: the result, and the positions of the maxima in the flattened image, as int64.

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
    return pool_max("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> A:
    """Return the maximum of each window of volumes (N, C, D, H, W): `max_pool2d` with three dims.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.max_pool3d(mf.ones(1, 1, 2, 4, 6), 2).shape
    (1, 1, 1, 2, 3)
    """
    return pool_max("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@takes_one_example
def pool_max(
    name: str,
    dims: int,
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> A:
    """Check the arguments, and compute the maximum over windows of the last dims as one composite op."""
    check_images(name, dims, x)
    numbers = map(as_numbers, (kernel_size, stride, padding, dilation))
    size, geometry = pooling_geometry(name, x.shape[2:], *numbers, ceil_mode)
    return pool(_pool_max_and_index if return_indices else _pool_max, x, size, geometry)


def avg_pool1d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> A:
    """Return the mean of each window of signals (N, C, L): `avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)
    tensor([[[2., 4.]]])
    """
    return pool_mean("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
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
    ceil_mode : bool
        As in `max_pool2d`.
    count_include_pad : bool
        If True, these zeros count as elements of the mean.
    divisor_override : int, optional
        The number to divide the sums by, in place of the number of elements.

    Returns
    -------
    Tensor (N, C, PH, PW)
        PH = (H + 2 * padding - KH) / stride + 1, rounded down, or up with `ceil_mode`, PW likewise. It is contiguous if x
        is; else the batch is its innermost dim in memory.

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
    return pool_mean("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> A:
    """Return the mean of each window of volumes (N, C, D, H, W): `avg_pool2d` with three dims.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool3d(mf.ones(1, 1, 2, 4, 6), 2).shape
    (1, 1, 1, 2, 3)
    """
    return pool_mean("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@takes_one_example
def pool_mean(
    name: str,
    dims: int,
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> A:
    """Check the arguments, and compute the mean over windows of the last dims as one composite op."""
    check_images(name, dims, x)
    numbers = map(as_numbers, (kernel_size, stride, padding, 1))
    size, geometry = pooling_geometry(name, x.shape[2:], *numbers, ceil_mode)
    require_floats(name, x)
    if divisor_override == 0:
        raise ValueError(f"{name}: got divisor_override=0, expected another number, or None")
    return pool(_pool_mean, x, size, geometry, bool(count_include_pad), as_number(divisor_override))


def pool(body: Callable[..., Any], x: A, *options: Hashable) -> A:
    """Run the body of a pooling as one composite op. It gets the images, whether they are contiguous, and the options."""
    return apply(BoundFunction(body, (x.is_contiguous(), *options)), x)


def check_images(name: str, dims: int, x: Array) -> None:
    """Raise unless x is a batch of images, or of signals."""
    require_tensor(name, x)
    if x.ndim != dims + 2:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected (N, C, {IMAGE[dims]}) or (C, {IMAGE[dims]})")


# Composite ops.


def _pool_max(x: Array, is_contiguous: bool, size: tuple[int, ...], geometry: WindowGeometry) -> Array:
    z = pad_images(images_in_memory_order(x, is_contiguous), geometry, maximum)
    return batch_first(reduce_windows(ReduceFirst, maximum, z, size, geometry.stride, geometry.dilation), len(size))


def _pool_max_and_index(
    x: Array, is_contiguous: bool, size: tuple[int, ...], geometry: WindowGeometry
) -> tuple[Array, Array]:
    z, dims = images_in_memory_order(x, is_contiguous), len(size)
    position = x.positions(math.prod(x.shape[2:])).reshape(*[1] * (z.ndim - dims - 1), *x.shape[2:], 1)
    windows, positions = (
        extract_patches(pad_images(part, geometry, operator), size, geometry.stride, geometry.dilation)
        for part, operator in ((z, maximum), (position, minimum))
    )
    values = largest_and_position(windows, positions, z.ndim - dims - 1, dims)
    y, index = (part.reshape(*part.shape[: -2 * dims - 1], *part.shape[-dims - 1 :]) for part in values)
    return batch_first(y, dims), batch_first(index, dims)


def largest_and_position(x: Array, position: Array, first: int, dims: int) -> tuple[Array, Array]:
    """Return the maximum of x over `dims` dims from `first` on, and the smallest position where x has this value."""
    reduced = tuple(range(first, first + dims))
    y = ReduceFirst(maximum, reduced)(x)
    return y, Reduce(minimum, reduced)(where(eq(x, y) | ne(x, x), position, minimum.identity_for(position.dtype)))


def pad_images(z: Array, geometry: WindowGeometry, operator: Operator) -> Array:
    """Pad images in memory order with the identity of an operator."""
    if not any(map(any, geometry.padding)):
        return z
    shape, slices = padded_shape(z, geometry.padding)
    return SliceUpdate((View("slice", slices),))(z.apply(Full(shape, z.dtype), operator.identity_for(z.dtype)), z)


def _pool_mean(
    x: Array,
    is_contiguous: bool,
    size: tuple[int, ...],
    geometry: WindowGeometry,
    counts_padding: bool,
    divisor: int | None,
) -> Array:
    z = images_in_memory_order(x, is_contiguous)
    if any(map(any, geometry.padding)):
        z = PadSlice(*padded_shape(z, geometry.padding))(z)
    y, dims = window_sums(z, size, geometry.stride), len(size)
    if divisor is not None or (counts_padding and all(before == after for before, after in geometry.padding)):
        return batch_first(y / (math.prod(size) if divisor is None else divisor), dims)
    for d, (n, k, step, (before, _)) in enumerate(zip(x.shape[2:], size, geometry.stride, geometry.padding, strict=True)):
        counted = before if counts_padding else 0  # of the padding at each side
        window_start = x.positions(y.shape[d - dims - 1]) * step - before
        count = minimum(window_start + k, n + counted) - maximum(window_start, -counted)
        y = y / count.to(x.dtype).reshape(-1, *[1] * (dims - d))
    return batch_first(y, dims)


# Modules.


class MaxPool(FunctionLayer):
    """Base class of MaxPool1d, MaxPool2d and MaxPool3d."""

    options = "kernel_size", "stride", "padding", "dilation", "ceil_mode"
    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode, self.return_indices = padding, dilation, ceil_mode, return_indices

    def forward(self, x: A) -> A:
        """Reduce each window to its maximum: (N, C, ...) -> (N, C, *out_size)."""
        options = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
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


class MaxPool3d(MaxPool):
    """`max_pool3d` as a module."""

    dims = 3


class AvgPool(FunctionLayer):
    """Base class of AvgPool1d, AvgPool2d and AvgPool3d."""

    options = "kernel_size", "stride", "padding"
    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: A) -> A:
        """Reduce each window to its mean: (N, C, ...) -> (N, C, *out_size)."""
        options = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return pool_mean(type(self).__name__, self.dims, x, *options, self.divisor_override)


class AvgPool1d(AvgPool):
    """`avg_pool1d` as a module."""

    dims = 1


class AvgPool2d(AvgPool):
    """`avg_pool2d` as a module."""

    dims = 2


class AvgPool3d(AvgPool):
    """`avg_pool3d` as a module."""

    dims = 3

"""Pooling: the maximum or the mean of each window, as functions and as modules. Each is one captured call.

A pooling is a view and a fold: the windows of images are seen, with the index in a window as the last dims, and those are
folded. Nothing is copied. As in convolutions, examples lie closest in the result.

Not here: pooling that gives indices, and that of single examples; a batch of one has them.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..core.errors import DTypeError, ShapeError
from ..core.operators import add, maximum, minimum, where
from ..ir.array_functions import BoundFunction, Full, PadSlice, Reduce, ReduceFirst, Shape, SliceUpdate, View, matmul
from ..ir.array_methods import Array
from .im2col import MANY, Geometry, Sizes, check_windows, listed, patches_of, per_dim, room
from .layers import apply
from .module import Module


def max_pool1d(
    x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False
) -> Any:
    """The largest element of each window of signals (N, C, L): `max_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.max_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 5.0, 4.0]]]), 2)
    tensor([[[3., 5.]]])
    """
    return pool_max("max_pool1d", 1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False
) -> Any:
    """The largest element of each window of images; NaN where there is one.

    Parameters
    ----------
    x : Tensor (N, C, H, W)
        N images of C channels.
    kernel_size : int or pair
        Rows and columns of a window.
    stride : int or pair, optional
        How far one window is from the next; the size of a window if left out, so that they lie beside each other.
    padding : int or pair
        How many elements, lower than any other, are put on each side; at most half a window.
    dilation : int or pair
        How far the elements of a window are apart.
    ceil_mode : bool
        Whether elements that are left over at the end make a smaller window.

    Returns
    -------
    Tensor (N, C, PH, PW)
        PH = (H + 2 * padding - dilation * (KH - 1) - 1) / stride + 1, rounded down, or up in `ceil_mode`; there the last
        window must start inside of the image or the padding before it. PW likewise. In memory the examples lie closest.

    Raises
    ------
    ShapeError
        x is no batch of images, a window does not fit into them, or a number is too small or too large.
    DTypeError
        x is no tensor.

    Notes
    -----
    Of equal elements the first one in row-major order receives the gradient, as in PyTorch. The backward pass finds it
    again, by comparing; no index is kept. Without padding nothing is copied but the gradient where windows overlap, of
    KH * KW elements for each of the output.

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
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Any:
    """The largest elements of windows of the last dims, as one captured call, after all has been checked."""
    size, of = windows_of(name, dims, x, kernel_size, stride, padding, dilation, ceil_mode)
    return apply(BoundFunction(_pool_max, (size, of)), x)


def avg_pool1d(
    x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
) -> Any:
    """The mean of each window of signals (N, C, L): `avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)
    tensor([[[2., 4.]]])
    """
    return pool_mean("avg_pool1d", 1, x, kernel_size, stride, padding, count_include_pad)


def avg_pool2d(
    x: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
) -> Any:
    """The mean of each window of images.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    kernel_size : int or pair
        Rows and columns of a window.
    stride : int or pair, optional
        How far one window is from the next; the size of a window if left out, so that they lie beside each other.
    padding : int or pair
        How many zeros are put on each side; at most half a window.
    count_include_pad : bool
        Whether these zeros count as elements.

    Returns
    -------
    Tensor (N, C, PH, PW)
        PH = (H + 2 * padding - KH) // stride + 1, PW likewise. In memory the examples lie closest.

    Raises
    ------
    ShapeError
        As in `max_pool2d`.
    DTypeError
        x is no tensor of floats.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.avg_pool2d(mf.ones(1, 1, 3, 3), 2, stride=2, padding=1)
    tensor([[[[0.25, 0.5 ],
              [0.5 , 1.  ]]]])
    """
    return pool_mean("avg_pool2d", 2, x, kernel_size, stride, padding, count_include_pad)


def pool_mean(
    name: str, dims: int, x: Any, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, count_include_pad: bool
) -> Any:
    """The means of windows of the last dims, as one captured call, after all has been checked."""
    size, of = windows_of(name, dims, x, kernel_size, stride, padding, 1, False)
    check_floats(name, x)
    return apply(BoundFunction(_pool_mean, (size, of, bool(count_include_pad))), x)


def adaptive_avg_pool1d(x: Any, output_size: int | None) -> Any:
    """The means of as many parts of signals (N, C, L) as are asked for: `adaptive_avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.adaptive_avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)  # of 1 3 2, and of 2 6 4
    tensor([[[2., 4.]]])
    """
    return pool_adaptively("adaptive_avg_pool1d", 1, x, output_size)


def adaptive_avg_pool2d(x: Any, output_size: int | Sequence[int | None] | None) -> Any:
    """The means of as many parts of images as are asked for, whatever the size of the images.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    output_size : int or pair
        Rows and columns of the output; None for as many as there are.

    Returns
    -------
    Tensor (N, C, *output_size)
        Part p of P of a dim of n elements reaches from floor(p * n / P) up to ceil((p + 1) * n / P), as in PyTorch: parts
        share elements where P does not divide n.

    Raises
    ------
    ShapeError
        x is no batch of images, or has no elements along a dim; or a size is not at least 1.
    DTypeError
        x is no tensor of floats.

    Notes
    -----
    Where P divides n, parts are windows beside each other. Else the dim is multiplied with a matrix (n, P), which has
    1 / length where an element belongs to a part.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.adaptive_avg_pool2d(mf.arange(12).to(mf.float32).reshape(1, 1, 3, 4), (1, 2))
    tensor([[[[4.5, 6.5]]]])
    """
    return pool_adaptively("adaptive_avg_pool2d", 2, x, output_size)


def pool_adaptively(name: str, dims: int, x: Any, output_size: Any) -> Any:
    """The means of parts of the last dims, as one captured call, after all has been checked."""
    check_images(name, dims, x)
    check_floats(name, x)
    image = x.shape[2:]
    if 0 in image:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected at least 1 element along each of its last {dims} dims")
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * dims
    sizes = [image[d] if size is None and d < dims else size for d, size in enumerate(given)]
    return apply(BoundFunction(_pool_adaptively, (per_dim(name, "output_size", sizes, dims, 1),)), x)


# What is checked.


def check_images(name: str, dims: int, x: Any) -> None:
    """Raise where x is no batch of images, or of signals."""
    if not isinstance(x, Array):
        raise DTypeError(f"{name}: expected a tensor, got {type(x).__name__}; wrap it in mf.tensor or mf.from_numpy")
    if x.ndim != dims + 2:
        wanted = "(N, C, H, W)" if dims == 2 else "(N, C, L)"
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected {wanted}; one example becomes a batch by x[None]")


def check_floats(name: str, x: Any) -> None:
    """Raise where means would be of integers."""
    if not x.dtype.is_float:
        raise DTypeError(f"{name}: got x of {x.dtype}, expected floats; convert it with x.to(mf.float32)")


def windows_of(
    name: str,
    dims: int,
    x: Any,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], Geometry]:
    """The size of windows, and where they lie; what is missing to the last one in `ceil_mode` is padding behind."""
    check_images(name, dims, x)
    return windows_in(name, x.shape[2:], *map(listed, (kernel_size, stride, padding, dilation)), ceil_mode)


@lru_cache(MANY, typed=True)
def windows_in(
    name: str, image: Shape, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any
) -> tuple[tuple[int, ...], Geometry]:
    """The same for images of a shape."""
    dims = len(image)
    size = per_dim(name, "kernel_size", kernel_size, dims, 1)
    step = size if stride is None else per_dim(name, "stride", stride, dims, 1)
    edge = per_dim(name, "padding", padding, dims, 0)
    gap = per_dim(name, "dilation", dilation, dims, 1)
    if any(2 * p > k for p, k in zip(edge, size, strict=True)):
        raise ShapeError(f"{name}: got padding={padding!r}, expected at most half of the window {size}")
    of = Geometry(step, tuple((p, p) for p in edge), gap, 1)
    check_windows(name, image, size, of)
    if not ceil_mode:
        return size, of
    behind = []
    for n, k, s, p, d in zip(image, size, step, edge, gap, strict=True):
        reach = d * (k - 1) + 1
        windows = min(-(-(n + 2 * p - reach) // s), (n + p - 1) // s) + 1
        behind.append(max(p, (windows - 1) * s + reach - n - p))
    return size, of._replace(padding=tuple(zip(edge, behind, strict=True)))


# What is captured.


def _pool_max(x: Any, size: tuple[int, ...], of: Geometry) -> Any:
    z = x.permute(*range(1, x.ndim), 0)
    if any(map(any, of.padding)):
        shape, place = room(z, of.padding)
        lowest = z.apply(Full(shape, z.dtype), maximum.identity_for(z.dtype))
        z = SliceUpdate((View("slice", place),))(lowest, z)
    z = patches_of(z, size, of.stride, of.dilation)
    return batch_first(ReduceFirst(maximum, tuple(range(1, len(size) + 1)))(z), len(size))


def _pool_mean(x: Any, size: tuple[int, ...], of: Geometry, counts_padding: bool) -> Any:
    z = x.permute(*range(1, x.ndim), 0)
    if any(map(any, of.padding)):
        z = PadSlice(*room(z, of.padding))(z)
    y = sums(z, size, of.stride)
    if counts_padding:
        return batch_first(y / math.prod(size), len(size))
    for d, (n, k, step, (before, _)) in enumerate(zip(x.shape[2:], size, of.stride, of.padding, strict=True)):
        first = x.positions(y.shape[1 + len(size) + d]) * step - before
        inside = minimum(first + k, n) - maximum(first, 0)
        y = y / inside.to(x.dtype).reshape(-1, *[1] * (len(size) - d))
    return batch_first(y, len(size))


def sums(z: Any, size: tuple[int, ...], step: tuple[int, ...]) -> Any:
    """(C, ..., N) -> (C, 1, ..., *places, N): the sums of all windows."""
    return Reduce(add, tuple(range(1, len(size) + 1)))(patches_of(z, size, step, (1,) * len(size)))


def batch_first(y: Any, dims: int) -> Any:
    """(C, 1, ..., *places, N), where windows were folded -> (N, C, *places)."""
    return y.reshape(y.shape[0], *y.shape[1 + dims :]).permute(dims + 1, *range(dims + 1))


def _pool_adaptively(x: Any, sizes: tuple[int, ...]) -> Any:
    z = x.permute(*range(1, x.ndim), 0)
    for d, parts in enumerate(sizes, 1):
        if z.shape[d] % parts:
            z = matmul(z.transpose(d, -1), shares(x, z.shape[d], parts)).transpose(d, -1)
    size = tuple(n // parts for n, parts in zip(z.shape[1:-1], sizes, strict=True))
    return batch_first(sums(z, size, size) / math.prod(size), len(size))


def shares(x: Any, n: int, parts: int) -> Any:
    """(n, parts): 1 / length where an element belongs to a part, else 0."""
    element, part = x.positions(n).reshape(n, 1), x.positions(parts)
    start, stop = part * n // parts, ((part + 1) * n + parts - 1) // parts
    return where((element >= start) & (element < stop), 1 / (stop - start).to(x.dtype), 0)


# Modules.


class MaxPool(Module):
    """What MaxPool1d and MaxPool2d share."""

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

    def forward(self, x: Any) -> Any:
        """(N, C, ...) -> (N, C, ...), with fewer elements."""
        numbers = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        return pool_max(type(self).__name__, self.dims, x, *numbers)

    def extra_repr(self) -> str:
        """How windows lie."""
        return ", ".join(
            f"{name}={getattr(self, name)}" for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
        )


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


class AvgPool(Module):
    """What AvgPool1d and AvgPool2d share."""

    dims: int

    def __init__(
        self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, count_include_pad: bool = True
    ) -> None:
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.count_include_pad = padding, count_include_pad

    def forward(self, x: Any) -> Any:
        """(N, C, ...) -> (N, C, ...), with fewer elements."""
        numbers = self.kernel_size, self.stride, self.padding, self.count_include_pad
        return pool_mean(type(self).__name__, self.dims, x, *numbers)

    def extra_repr(self) -> str:
        """How windows lie."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(AvgPool):
    """`avg_pool1d` as a module."""

    dims = 1


class AvgPool2d(AvgPool):
    """`avg_pool2d` as a module."""

    dims = 2


class AdaptiveAvgPool(Module):
    """What AdaptiveAvgPool1d and AdaptiveAvgPool2d share."""

    dims: int

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        """(N, C, ...) -> (N, C, *output_size)."""
        return pool_adaptively(type(self).__name__, self.dims, x, self.output_size)

    def extra_repr(self) -> str:
        """The size of the output."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptiveAvgPool):
    """`adaptive_avg_pool1d` as a module."""

    dims = 1


class AdaptiveAvgPool2d(AdaptiveAvgPool):
    """`adaptive_avg_pool2d` as a module."""

    dims = 2

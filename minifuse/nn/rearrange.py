"""Layers that only move elements: pixel and channel shuffles, and the windows of images as columns (unfold and fold)."""

import math
from typing import Any

from ..core.errors import ShapeError
from ..ir.array_functions import A, BoundFunction, PadSlice
from ..ir.array_methods import Array
from .im2col import Sizes, WindowGeometry, as_numbers, check_windows, extract_patches, padded_shape, per_dim, sum_windows
from .layers import FunctionLayer, apply, as_batch, require_tensor


def pixel_shuffle(x: A, upscale_factor: int) -> A:
    """Arrange channels as pixels: (..., C * r**2, H, W) -> (..., C, H * r, W * r), where r is the upscale factor.

    Raises
    ------
    ShapeError
        The number of channels is not a multiple of r**2.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.pixel_shuffle(mf.arange(4).reshape(1, 4, 1, 1), 2)
    tensor([[[[0, 1],
              [2, 3]]]])
    """
    r = upscale_factor
    *batch, channels, height, width = image_shape("pixel_shuffle", x)
    if r < 1 or channels % r**2:
        raise ShapeError(f"pixel_shuffle: got x of shape {x.shape}, expected a multiple of {r}**2 channels")
    y = x.reshape(*batch, channels // r**2, r, r, height, width)
    k = len(batch)
    return y.permute(*range(k + 1), k + 3, k + 1, k + 4, k + 2).reshape(*batch, channels // r**2, height * r, width * r)


def pixel_unshuffle(x: A, downscale_factor: int) -> A:
    """Arrange pixels as channels: (..., C, H * r, W * r) -> (..., C * r**2, H, W), the inverse of `pixel_shuffle`.

    Raises
    ------
    ShapeError
        Height or width is not a multiple of r.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.pixel_unshuffle(mf.ones(1, 1, 4, 6), 2).shape
    (1, 4, 2, 3)
    """
    r = downscale_factor
    *batch, channels, height, width = image_shape("pixel_unshuffle", x)
    if r < 1 or height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: got x of shape {x.shape}, expected height and width to be multiples of {r}")
    y = x.reshape(*batch, channels, height // r, r, width // r, r)
    k = len(batch)
    return y.permute(*range(k + 1), k + 2, k + 4, k + 1, k + 3).reshape(*batch, channels * r**2, height // r, width // r)


def channel_shuffle(x: A, groups: int) -> A:
    """Interleave the channels of several groups: channel c of group g, of G groups, becomes channel c * G + g.

    Raises
    ------
    ShapeError
        The number of channels is not a multiple of `groups`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.channel_shuffle(mf.arange(4).reshape(1, 4, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    require_tensor("channel_shuffle", x)
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"channel_shuffle: got x of shape {x.shape}, expected (N, C, ...) with C a multiple of {groups}")
    n, channels, *image = x.shape
    return x.reshape(n, groups, channels // groups, *image).transpose(1, 2).reshape(x.shape)


def image_shape(name: str, x: Array) -> tuple[int, ...]:
    """Return the shape of images (..., C, H, W). Raise ShapeError if there are fewer dims."""
    require_tensor(name, x)
    if x.ndim < 3:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected (..., C, H, W)")
    return x.shape


def unfold(x: A, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> A:
    """Return the windows of images as columns: (N, C, H, W) -> (N, C * KH * KW, number of windows).

    Parameters
    ----------
    x : Tensor (N, C, H, W) or (C, H, W)
    kernel_size, dilation, padding, stride : int or pair
        As in `conv2d`, which multiplies these columns by the filters.

    Raises
    ------
    ShapeError
        x is not images, or no window fits into them.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.unfold(mf.arange(6).reshape(1, 1, 2, 3), (2, 2))
    tensor([[[0, 1],
             [1, 2],
             [3, 4],
             [4, 5]]])
    """
    require_tensor("unfold", x)
    if x.ndim == 3:
        return as_batch(lambda z: unfold(z, kernel_size, dilation, padding, stride), x)
    if x.ndim != 4:
        raise ShapeError(f"unfold: got x of shape {x.shape}, expected (N, C, H, W)")
    size, geometry = windows("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    return apply(BoundFunction(_unfold, (size, geometry)), x)


def fold(x: A, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> A:
    """Add the windows in the columns of x into images: (N, C * KH * KW, number of windows) -> (N, C, *output_size).

    Parameters
    ----------
    x : Tensor (N, C * KH * KW, L) or (C * KH * KW, L)
    output_size : int or pair
        Rows and columns of the images.
    kernel_size, dilation, padding, stride : int or pair
        As in `unfold`, whose gradient this is.

    Raises
    ------
    ShapeError
        x does not have as many columns as there are windows.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.fold(mf.ones(1, 4, 2), (2, 3), (2, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    require_tensor("fold", x)
    if x.ndim == 2:
        return as_batch(lambda z: fold(z, output_size, kernel_size, dilation, padding, stride), x)
    image = per_dim("fold", "output_size", output_size, 2, 1)
    size, geometry = windows("fold", image, kernel_size, dilation, padding, stride)
    counts = [
        (n + 2 * before - gap * (k - 1) - 1) // step + 1
        for n, k, step, (before, _), gap in zip(image, size, *geometry[:3], strict=True)
    ]
    if x.ndim != 3 or x.shape[1] % math.prod(size) or x.shape[2] != math.prod(counts):
        raise ShapeError(
            f"fold: got x of shape {x.shape}, expected (N, C * {math.prod(size)}, {math.prod(counts)}): there are "
            f"{' * '.join(map(str, counts))} windows"
        )
    return apply(BoundFunction(_fold, (image, size, geometry, tuple(counts))), x)


def windows(name: str, image: tuple[int, ...], size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Any:
    """Return the size and the geometry of windows."""
    size, dilation, stride = (
        per_dim(name, option, value, 2, 1)
        for option, value in (("kernel_size", size), ("dilation", dilation), ("stride", stride))
    )
    sides = tuple((n, n) for n in per_dim(name, "padding", as_numbers(padding), 2, 0))
    geometry = WindowGeometry(stride, sides, dilation, 1)
    check_windows(name, image, size, geometry)
    return size, geometry


def _unfold(x: Array, size: tuple[int, ...], geometry: WindowGeometry) -> Array:
    z = x.reshape(*x.shape, 1)
    z = PadSlice(*padded_shape(z, geometry.padding))(z)
    return extract_patches(z, size, geometry.stride, geometry.dilation).reshape(x.shape[0], x.shape[1] * math.prod(size), -1)


def _fold(
    x: Array, image: tuple[int, ...], size: tuple[int, ...], geometry: WindowGeometry, counts: tuple[int, ...]
) -> Array:
    shape = (x.shape[0], x.shape[1] // math.prod(size), *image, 1)
    y = sum_windows(x.reshape(*shape[:2], *size, *counts, 1), shape, size, geometry)
    return y.reshape(y.shape[:-1])


class PixelShuffle(FunctionLayer):
    """`pixel_shuffle` as a module."""

    options = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, x: A) -> A:
        """Map (..., C * r**2, H, W) to (..., C, H * r, W * r)."""
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(FunctionLayer):
    """`pixel_unshuffle` as a module."""

    options = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, x: A) -> A:
        """Map (..., C, H * r, W * r) to (..., C * r**2, H, W)."""
        return pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(FunctionLayer):
    """`channel_shuffle` as a module."""

    options = ("groups",)

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, x: A) -> A:
        """Interleave the channels of the groups; the shape does not change."""
        return channel_shuffle(x, self.groups)


class Unfold(FunctionLayer):
    """`unfold` as a module."""

    options: tuple[str, ...] = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, x: A) -> A:
        """Map (N, C, H, W) to (N, C * KH * KW, number of windows)."""
        return unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Unfold):
    """`fold` as a module."""

    options = "output_size", "kernel_size", "dilation", "padding", "stride"

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, x: A) -> A:
        """Map (N, C * KH * KW, number of windows) to (N, C, *output_size)."""
        return fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "channel_shuffle",
    "fold",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]

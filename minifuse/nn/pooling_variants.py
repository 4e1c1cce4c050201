"""Poolings by powers of windows (Lp) and of random windows (fractional), and the inverse of max pooling."""

import math
from collections.abc import Sequence
from typing import Any

from ..core.dtypes import int64
from ..core.errors import ShapeError
from ..core.operators import add, maximum, where
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.gather import Scatter
from ..tensors.creation import tensor
from ..tensors.random import generator
from .adaptive_pooling import largest_of_regions
from .im2col import Sizes, per_dim
from .layers import FunctionLayer, apply, functions_by_dims, layers_by_dims, takes_one_example
from .pooling import check_images, pool_mean


def pool_powers(
    name: str, dims: int, x: A, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> A:
    """Return (the sum of x**p over each window)**(1 / p), with p = norm_type."""
    count = math.prod(per_dim(name, "kernel_size", kernel_size, dims, 1))
    means = pool_mean(name, dims, x**norm_type, kernel_size, stride, 0, ceil_mode)
    return (means * count) ** (1 / norm_type)


def unpool(
    name: str,
    dims: int,
    x: A,
    indices: Array,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> A:
    """Check the arguments, and put the elements of x where `indices` says, into zeros."""
    check_images(name, dims, x[None] if getattr(x, "ndim", 0) == dims + 1 else x)
    size = per_dim(name, "kernel_size", kernel_size, dims, 1)
    step = size if stride is None else per_dim(name, "stride", stride, dims, 1)
    before = per_dim(name, "padding", padding, dims, 0)
    images = x.shape[-dims:]
    image = tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(images, step, before, size, strict=True))
    image = image if output_size is None else tuple(output_size)[-dims:]
    if indices.shape != x.shape or indices.dtype is not int64 or len(image) != dims or min(image) < 1:
        raise ShapeError(
            f"{name}: got x of shape {x.shape}, indices of shape {indices.shape} and {indices.dtype}, and an output of size "
            f"{image}; expected int64 indices of the shape of x, and at least one element along each of {dims} dims"
        )
    return apply(BoundFunction(_unpool, (image,)), x, indices)


def _unpool(x: Array, indices: Array, image: tuple[int, ...]) -> Array:
    batch, size = x.shape[: x.ndim - len(image)], math.prod(image)
    count = math.prod(batch)
    position = (indices.reshape(count, x.size // max(count, 1)) + x.positions(count)[:, None] * size).reshape(x.size)
    put = Scatter(add, 0, count * size)
    times = put(x.detach().reshape(x.size) * 0 + 1, position)  # overlapping windows have one maximum several times
    return (put(x.reshape(x.size), position) / maximum(times, 1)).reshape(*batch, *image)


@takes_one_example
def pool_fractionally(
    name: str,
    dims: int,
    x: A,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Array | None = None,
) -> A:
    """Check the arguments, draw where the windows begin, and compute the maximum of each."""
    check_images(name, dims, x)
    size, image = per_dim(name, "kernel_size", kernel_size, dims, 1), x.shape[2:]
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{name}: got output_size={output_size} and output_ratio={output_ratio}, expected one of them")
    if output_ratio is not None:
        ratios = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * dims
        output_size = tuple(int(n * ratio) for n, ratio in zip(image, ratios, strict=True))
    counts = per_dim(name, "output_size", output_size, dims, 1)
    if any(count + k - 1 > n for n, k, count in zip(image, size, counts, strict=True)):
        raise ShapeError(f"{name}: windows of {size} do not give an output of {counts} for x of shape {x.shape}")
    samples = _random_samples
    if samples is None:
        samples = tensor(generator().uniform(size=(*x.shape[:2], dims)), x.dtype, x.backend)
    values: Any = apply(BoundFunction(_pool_fractionally, (size, counts)), x, samples)
    return values if return_indices else values[0]  # type: ignore[no-any-return]


def _pool_fractionally(x: Array, samples: Array, size: tuple[int, ...], counts: tuple[int, ...]) -> tuple[Array, Array]:
    dims, regions = len(size), []
    for d, (n, k, count) in enumerate(zip(x.shape[2:], size, counts, strict=True)):
        u = samples[..., dims - 1 - d if dims == 2 else d, None]  # (N, C, 1); in the order in which PyTorch uses them
        ratio = (n - k) / max(count - 1, 1)
        part = x.positions(count)
        start = ((part.to(x.dtype) + u) * ratio).to(int64) - (u * ratio).to(int64)
        start = where(part == count - 1, n - k, start)
        regions.append((start, start + k, k))
    return largest_of_regions(x, regions)


class PowerPool(FunctionLayer):
    """Base class of LPPool1d, LPPool2d and LPPool3d."""

    options = "norm_type", "kernel_size", "stride", "ceil_mode"
    dims: int

    def __init__(self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, x: A) -> A:
        """Reduce each window: (N, C, ...) -> (N, C, *out_size)."""
        options = self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        return pool_powers(type(self).__name__, self.dims, x, *options)


class Unpool(FunctionLayer):
    """Base class of MaxUnpool1d, MaxUnpool2d and MaxUnpool3d."""

    options = "kernel_size", "stride", "padding"
    dims: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def forward(self, x: A, indices: Array, output_size: Sequence[int] | None = None) -> A:
        """Put the elements of x at the indices: (N, C, ...) -> (N, C, *image)."""
        options = self.kernel_size, self.stride, self.padding, output_size
        return unpool(type(self).__name__, self.dims, x, indices, *options)


class FractionalPool(FunctionLayer):
    """Base class of FractionalMaxPool2d and FractionalMaxPool3d."""

    options = "kernel_size", "output_size", "output_ratio"
    dims: int

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Array | None = None,
    ) -> None:
        self.kernel_size, self.output_size, self.output_ratio = kernel_size, output_size, output_ratio
        self.return_indices, self.samples = return_indices, _random_samples

    def forward(self, x: A) -> A:
        """Reduce each window to its maximum: (N, C, ...) -> (N, C, *output_size)."""
        options = self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self.samples
        return pool_fractionally(type(self).__name__, self.dims, x, *options)


FUNCTIONS = functions_by_dims(
    pool_powers, "lp_pool", "Return (sum of x**p)**(1 / p), p = norm_type, of each window of (N, C, {image})."
)
FUNCTIONS |= functions_by_dims(
    unpool,
    "max_unpool",
    "Put maxima back where `max_pool{n}d(..., return_indices=True)` found them. Other elements are 0.",
)
FUNCTIONS |= functions_by_dims(
    pool_fractionally,
    "fractional_max_pool",
    "Return the maxima of windows of (N, C, {image}) at random distances, so many that the output has a size.",
    (2, 3),
)
LAYERS = layers_by_dims(PowerPool, "LPPool", "`lp_pool{n}d` as a module.")
LAYERS |= layers_by_dims(Unpool, "MaxUnpool", "`max_unpool{n}d` as a module.")
LAYERS |= layers_by_dims(FractionalPool, "FractionalMaxPool", "`fractional_max_pool{n}d` as a module.", (2, 3))
globals().update(FUNCTIONS, **LAYERS)

__all__ = [*FUNCTIONS, *LAYERS]

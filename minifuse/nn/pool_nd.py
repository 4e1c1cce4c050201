"""Poolings of volumes, powers of windows (Lp), random windows (fractional), and the inverse of max pooling."""

import math
from collections.abc import Callable, Sequence
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
from .convolution import IMAGE
from .im2col import Sizes, per_dim
from .layers import FunctionLayer, apply, as_batch
from .pooling import AvgPool, MaxPool, check_images, pool_max, pool_mean


def max_pool3d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> A:
    """Return the maximum of each window of volumes (N, C, D, H, W): `max_pool2d` with three dims."""
    return pool_max("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool3d(
    x: A,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> A:
    """Return the mean of each window of volumes (N, C, D, H, W): `avg_pool2d` with three dims."""
    return pool_mean("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def pool_powers(
    name: str, dims: int, x: A, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool
) -> A:
    """Return (the sum of x**p over each window)**(1 / p), with p = norm_type."""
    count = math.prod(per_dim(name, "kernel_size", kernel_size, dims, 1))
    means = pool_mean(name, dims, x**norm_type, kernel_size, stride, ceil_mode=ceil_mode)
    return (means * count) ** (1 / norm_type)


def unpool(
    name: str,
    dims: int,
    x: A,
    indices: Array,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
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


def pool_fractionally(
    name: str,
    dims: int,
    x: A,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: float | Sequence[float] | None,
    return_indices: bool,
    samples: Array | None,
) -> A:
    """Check the arguments, draw where the windows begin, and compute the maximum of each."""
    if getattr(x, "ndim", 0) == dims + 1:
        options = kernel_size, output_size, output_ratio, return_indices, samples
        return as_batch(lambda z: pool_fractionally(name, dims, z, *options), x)
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


def function_of(name: str, call: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Name and document a function that was made for a number of dims."""
    call.__name__, call.__qualname__, call.__doc__ = name, name, doc
    return call


def lp_pool(dims: int) -> Callable[..., Any]:
    """Return the Lp pooling for a number of dims."""
    name = f"lp_pool{dims}d"

    def call(x: A, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> A:
        return pool_powers(name, dims, x, norm_type, kernel_size, stride, ceil_mode)

    return function_of(name, call, f"Return (sum of x**p)**(1 / p), p = norm_type, of each window of (N, C, {IMAGE[dims]}).")


def max_unpool(dims: int) -> Callable[..., Any]:
    """Return the inverse of max pooling for a number of dims."""
    name = f"max_unpool{dims}d"

    def call(
        x: A,
        indices: Array,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> A:
        return unpool(name, dims, x, indices, kernel_size, stride, padding, output_size)

    doc = f"Put maxima back where `max_pool{dims}d(..., return_indices=True)` found them. Other elements are 0."
    return function_of(name, call, doc)


def fractional_max_pool(dims: int) -> Callable[..., Any]:
    """Return the fractional max pooling for a number of dims."""
    name = f"fractional_max_pool{dims}d"

    def call(
        x: A,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Array | None = None,
    ) -> A:
        return pool_fractionally(name, dims, x, kernel_size, output_size, output_ratio, return_indices, _random_samples)

    doc = f"Return the maxima of windows of (N, C, {IMAGE[dims]}) at random distances, so many that the output has a size."
    return function_of(name, call, doc)


class MaxPool3d(MaxPool):
    """`max_pool3d` as a module."""

    dims = 3


class AvgPool3d(AvgPool):
    """`avg_pool3d` as a module."""

    dims = 3


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


FUNCTIONS: dict[str, Any] = {
    f"{prefix}{dims}d": make(dims)
    for prefix, make in (("lp_pool", lp_pool), ("max_unpool", max_unpool), ("fractional_max_pool", fractional_max_pool))
    for dims in (1, 2, 3)
    if (prefix, dims) != ("fractional_max_pool", 1)
}
LAYERS: dict[str, Any] = {
    f"{prefix}{dims}d": type(
        f"{prefix}{dims}d",
        (base,),
        {"dims": dims, "__module__": __name__, "__doc__": f"`{function}{dims}d` as a module."},
    )
    for prefix, base, function in (
        ("LPPool", PowerPool, "lp_pool"),
        ("MaxUnpool", Unpool, "max_unpool"),
        ("FractionalMaxPool", FractionalPool, "fractional_max_pool"),
    )
    for dims in (1, 2, 3)
    if f"{function}{dims}d" in FUNCTIONS
}
globals().update(FUNCTIONS, **LAYERS)

__all__ = ["AvgPool3d", "MaxPool3d", "avg_pool3d", "max_pool3d", *FUNCTIONS, *LAYERS]

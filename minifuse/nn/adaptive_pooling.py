"""Adaptive poolings: the size of the output is given, and each of its elements comes from one part of the image.

Part p of P along a dim of n elements is floor(p * n / P) ... ceil((p + 1) * n / P), end excluded, as in PyTorch. A mean is
a sum over adjacent windows if P divides n, else a matmul. A maximum is a gather of all parts, and a reduction.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.errors import ShapeError
from ..core.operators import minimum, where
from ..ir.array_functions import A, matmul
from ..ir.array_methods import Array
from ..ir.gather import Gather
from .activations import require_floats
from .im2col import batch_first, images_in_memory_order, per_dim, window_sums
from .layers import FunctionLayer, layers_by_dims, takes_one_example
from .pooling import check_images, largest_and_position, pool

OutputSize = int | Sequence[int | None] | None


def adaptive_avg_pool1d(x: A, output_size: int | None) -> A:
    """Average signals (N, C, L), so that they have a given length: `adaptive_avg_pool2d` with one dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.adaptive_avg_pool1d(mf.tensor([[[1.0, 3.0, 2.0, 6.0, 4.0]]]), 2)  # the means of 1 3 2 and of 2 6 4
    tensor([[[2., 4.]]])
    """
    return pool_adaptively("adaptive_avg_pool1d", 1, x, _mean_of_parts, output_size)


def adaptive_avg_pool2d(x: A, output_size: OutputSize) -> A:
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
    return pool_adaptively("adaptive_avg_pool2d", 2, x, _mean_of_parts, output_size)


def adaptive_avg_pool3d(x: A, output_size: OutputSize) -> A:
    """Average volumes (N, C, D, H, W), so that they have a given size: `adaptive_avg_pool2d` with three dims."""
    return pool_adaptively("adaptive_avg_pool3d", 3, x, _mean_of_parts, output_size)


def adaptive_max_pool1d(x: A, output_size: OutputSize, return_indices: bool = False) -> A:
    """Return the maxima of parts of signals (N, C, L): `adaptive_max_pool2d` with one dim."""
    return pool_largest("adaptive_max_pool1d", 1, x, output_size, return_indices)


def adaptive_max_pool2d(x: A, output_size: OutputSize, return_indices: bool = False) -> A:
    """Return the maximum of each part of images. The parts are those of `adaptive_avg_pool2d`.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
    output_size : int or pair
        Rows and columns of the output; None keeps the size of the input.
    return_indices : bool
        If True, return a pair: the result, and the positions of the maxima in the flattened image, as int64.

    Returns
    -------
    Tensor (N, C, *output_size)

    Raises
    ------
    ShapeError, DTypeError
        As in `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.adaptive_max_pool2d(mf.arange(12).to(mf.float32).reshape(1, 1, 3, 4), (1, 2), True)
    (tensor([[[[ 9., 11.]]]]), tensor([[[[ 9, 11]]]]))
    """
    return pool_largest("adaptive_max_pool2d", 2, x, output_size, return_indices)


def adaptive_max_pool3d(x: A, output_size: OutputSize, return_indices: bool = False) -> A:
    """Return the maxima of parts of volumes (N, C, D, H, W): `adaptive_max_pool2d` with three dims."""
    return pool_largest("adaptive_max_pool3d", 3, x, output_size, return_indices)


def pool_largest(name: str, dims: int, x: A, output_size: OutputSize, return_indices: bool) -> A:
    """Check the arguments, and compute the maxima of parts, with their positions if wanted."""
    values: Any = pool_adaptively(name, dims, x, _largest_of_parts, output_size)
    return values if return_indices else values[0]  # type: ignore[no-any-return]


@takes_one_example
def pool_adaptively(name: str, dims: int, x: A, body: Callable[..., Any], output_size: OutputSize) -> A:
    """Check the arguments, and reduce parts of the last dims as one composite op."""
    check_images(name, dims, x)
    require_floats(name, x)
    image = x.shape[2:]
    if 0 in image:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected at least 1 element along each of its last {dims} dims")
    requested_sizes = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * dims
    sizes = [image[d] if size is None and d < dims else size for d, size in enumerate(requested_sizes)]
    return pool(body, x, per_dim(name, "output_size", sizes, dims, 1))


# Composite ops.


def _mean_of_parts(x: Array, is_contiguous: bool, sizes: tuple[int, ...]) -> Array:
    z = images_in_memory_order(x, is_contiguous)
    for d, part_count in enumerate(sizes, z.ndim - len(sizes) - 1):
        if z.shape[d] % part_count:
            z = matmul(z.transpose(d, -1), averaging_matrix(x, z.shape[d], part_count)).transpose(d, -1)
    size = tuple(n // part_count for n, part_count in zip(z.shape[-len(sizes) - 1 : -1], sizes, strict=True))
    return batch_first(window_sums(z, size, size) / math.prod(size), len(size))


def _largest_of_parts(x: Array, _: bool, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    regions = []
    for n, count in zip(x.shape[2:], sizes, strict=True):
        part = x.positions(count)
        start, stop = part * n // count, ((part + 1) * n + count - 1) // count
        longest = max(-(-(p + 1) * n // count) - p * n // count for p in range(count))
        regions.append((start[None, None], stop[None, None], longest))
    return largest_of_regions(x, regions)


def largest_of_regions(x: Array, regions: Sequence[tuple[Array, Array, int]]) -> tuple[Array, Array]:
    """Return the maximum of each region of images (N, C, ...), and its position in the image.

    There are the start and the stop of the regions along each dim, (N or 1, C or 1, count), and the largest size.
    """
    n, channels, *image = x.shape
    dims = len(image)
    position: Any = 0
    for d, (start, stop, longest) in enumerate(regions):
        index = minimum(start[..., None] + x.positions(longest), stop[..., None] - 1)  # (N, C, count, longest)
        shape = [1] * (2 * dims)
        shape[d], shape[dims + d] = index.shape[2:]
        position = position * image[d] + index.reshape(*index.shape[:2], *shape)
    first = x.positions(n * channels).reshape(n, channels, *[1] * (2 * dims)) * math.prod(image)
    y, index = largest_and_position(Gather(0)(x.reshape(x.size), first + position), position, 2 + dims, dims)
    return y.reshape(y.shape[: 2 + dims]), index.expand(y.shape).reshape(y.shape[: 2 + dims])


def averaging_matrix(x: A, n: int, part_count: int) -> A:
    """Return a matrix (n, part_count): 1 / length if an element belongs to a part, else 0."""
    element, part = x.positions(n).reshape(n, 1), x.positions(part_count)
    start, stop = part * n // part_count, ((part + 1) * n + part_count - 1) // part_count
    return where((element >= start) & (element < stop), 1 / (stop - start).to(x.dtype), 0)


# Modules.


class AdaptivePool(FunctionLayer):
    """Base class of the adaptive poolings."""

    options = ("output_size",)
    dims: int

    def __init__(self, output_size: OutputSize) -> None:
        self.output_size = output_size

    def forward(self, x: A) -> A:
        """Average to the output size: (N, C, ...) -> (N, C, *output_size)."""
        return pool_adaptively(type(self).__name__, self.dims, x, _mean_of_parts, self.output_size)


class AdaptiveLargest(AdaptivePool):
    """Base class of the adaptive poolings that return maxima."""

    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, x: A) -> A:
        """Reduce to the output size: (N, C, ...) -> (N, C, *output_size)."""
        return pool_largest(type(self).__name__, self.dims, x, self.output_size, self.return_indices)


LAYERS = layers_by_dims(AdaptivePool, "AdaptiveAvgPool", "`adaptive_avg_pool{n}d` as a module.")
LAYERS |= layers_by_dims(AdaptiveLargest, "AdaptiveMaxPool", "`adaptive_max_pool{n}d` as a module.")
globals().update(LAYERS)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    *LAYERS,
]

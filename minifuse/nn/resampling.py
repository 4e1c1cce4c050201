"""Resampling: images of another size (`interpolate`), and images read at the points of a grid (`grid_sample`).

An element of the output is a weighted sum of a few elements of the input, its taps. Their indices and weights are computed
from the position by the kernel that uses them: a gather for each tap, and a scatter-add as its gradient.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ..core.dtypes import as_number, float32, int64
from ..core.errors import ShapeError
from ..core.operators import abs, maximum, minimum, where  # noqa: A004
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.gather import Gather
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .im2col import as_numbers
from .layers import FunctionLayer, apply, require_tensor

CUBIC, ANTIALIASED_CUBIC = -0.75, -0.5  # the parameters of the cubic kernels, as in PyTorch
LINEAR_MODES = {"linear": 1, "bilinear": 2, "trilinear": 3}  # mode -> number of dims
CUBIC_MODES = {"bicubic": 2}
MODES = ("nearest", "nearest-exact", "area", *LINEAR_MODES, *CUBIC_MODES)
AREA: Any = adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
Scale = float | Sequence[float] | None
Tap = tuple[Array, Array | None]  # an index along a dim, and the weight of the element; None is 1


def interpolate(
    x: A,
    size: int | Sequence[int] | None = None,
    scale_factor: Scale = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> A:
    """Change the size of signals, images or volumes.

    Parameters
    ----------
    x : Tensor (N, C, L), (N, C, H, W) or (N, C, D, H, W)
    size : int or sequence of int, optional
        The size of the output.
    scale_factor : float or sequence of float, optional
        What to multiply the size by, in place of `size`.
    mode : str
        "nearest" and "nearest-exact" copy the nearest element, "linear", "bilinear" and "trilinear" are weighted means of 2
        elements along each dim, "bicubic" of 4, and "area" takes means of parts, as `adaptive_avg_pool2d`.
    align_corners : bool, optional
        If True, the centers of the first and last elements stay where they are; if False, the ends of the image do. Only
        for the linear modes and "bicubic".
    recompute_scale_factor : bool, optional
        If True, the distance of the points follows from the size of the output, not from `scale_factor`.
    antialias : bool
        If True, "bilinear" and "bicubic" take weighted means of all elements that a smaller image has a point for.

    Returns
    -------
    Tensor (N, C, *size)

    Raises
    ------
    ShapeError
        x has too few or too many dims for the mode, or the size is less than 1.
    ValueError
        The mode does not exist, both or none of `size` and `scale_factor` are given, or the mode has no `antialias`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[[0.0, 4.0]]])
    >>> mf.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[0., 0., 4., 4.]]])
    >>> mf.nn.functional.interpolate(x, size=4, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    require_tensor("interpolate", x)
    dims = x.ndim - 2
    if mode not in (ANTIALIASED_MODES if antialias else MODES):
        expected = "bilinear or bicubic" if antialias else f"one of {', '.join(MODES)}"
        raise ValueError(f"interpolate: got mode={mode!r} and antialias={antialias}, expected {expected}")
    if not 1 <= dims <= 3 or (LINEAR_MODES | CUBIC_MODES).get(mode, dims) != dims:
        raise ShapeError(f"interpolate: got x of shape {x.shape}, which mode={mode!r} does not support; see its modes")
    if (size is None) == (scale_factor is None):
        raise ValueError(f"interpolate: got size={size} and scale_factor={scale_factor}, expected one of them")
    if align_corners is not None and mode not in LINEAR_MODES and mode not in CUBIC_MODES:
        raise ValueError(f"interpolate: align_corners is only for linear and cubic modes, got mode={mode!r}; leave it out")
    scales: Any = as_numbers(scale_factor)
    scales = scales if isinstance(scales, tuple) else (scales,) * dims
    if size is None:
        sizes = tuple(math.floor(n * scale) for n, scale in zip(x.shape[2:], scales, strict=True))
        scales = (None,) * dims if recompute_scale_factor else scales
    else:
        sizes = as_numbers(size) if isinstance(size, tuple | list) else (as_number(size),) * dims
    if len(sizes) != dims or min(*sizes, *x.shape[2:]) < 1:
        raise ShapeError(f"interpolate: got a size of {sizes} for x of shape {x.shape}, expected {dims} numbers, at least 1")
    if mode == "area":
        y: A = AREA[dims - 1](x, sizes)
        return y
    function = _interpolate_antialiased if antialias else _interpolate
    return apply(BoundFunction(function, (sizes, scales, mode, bool(align_corners))), x)


def _interpolate(
    x: Array, sizes: tuple[int, ...], scales: tuple[float | None, ...], mode: str, align_corners: bool
) -> Array:
    for d, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        n = x.shape[d]
        if size == n and mode.startswith("nearest") and scale in (None, 1):
            continue
        if mode == "nearest" and size % n == 0 and scale in (None, size / n):  # the elements, repeated: a view
            x = (
                x.unsqueeze(d + 1)
                .expand(*x.shape[: d + 1], size // n, *x.shape[d + 1 :])
                .reshape(*x.shape[:d], size, *x.shape[d + 1 :])
            )
            continue
        taps, shape = taps_along(x, n, size, scale, mode, align_corners), (-1, *[1] * (x.ndim - 1 - d))
        terms = [Gather(d)(x, index) if w is None else Gather(d)(x, index) * w.reshape(shape) for index, w in taps]
        x = sum(terms[1:], terms[0])
    return x


def _interpolate_antialiased(
    x: Array, sizes: tuple[int, ...], scales: tuple[float | None, ...], mode: str, align_corners: bool
) -> Array:
    """Multiply each dim by a matrix of weights: the kernel, as wide as the distance of the points if that is above 1."""
    for d, (size, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        n = x.shape[d]
        distance = point_distance(n, size, scale, align_corners)
        points = (x.positions(size).to(x.dtype) + 0.5) * distance
        offsets = x.positions(n).to(x.dtype) + 0.5 - points.reshape(-1, 1)  # (size, n)
        weights = ANTIALIASED_MODES[mode](abs(offsets / max(distance, 1.0)))
        weights = weights / weights.sum(1, keepdim=True)
        x = (x.transpose(d, -1) @ weights.T).transpose(d, -1)
    return x


def triangle(t: Array) -> Array:
    """Return the weight of an element at a distance t, which is not negative, in a linear mode."""
    return maximum(1 - t, 0)


def keys_kernel(t: Array, a: float) -> Array:
    """Return Keys' cubic weight of an element at a distance t, which is not negative."""
    return where(t < 1, keys_near(t, a), where(t < 2, keys_far(t, a), 0.0))


def keys_near(t: Array, a: float) -> Array:
    """Return Keys' weight at a distance of at most 1."""
    return ((a + 2) * t - (a + 3)) * t * t + 1


def keys_far(t: Array, a: float) -> Array:
    """Return Keys' weight at a distance from 1 to 2."""
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


ANTIALIASED_MODES: dict[str, Callable[[Array], Array]] = {
    "bilinear": triangle,
    "bicubic": lambda t: keys_kernel(t, ANTIALIASED_CUBIC),
}


def point_distance(n: int, size: int, scale: float | None, align_corners: bool) -> float:
    """Return the distance of the points of the output, in elements of the input."""
    if align_corners:
        return (n - 1) / (size - 1) if size > 1 else 0.0
    return n / size if scale is None else 1 / scale


def taps_along(x: Array, n: int, size: int, scale: float | None, mode: str, align_corners: bool) -> list[Tap]:
    """Return the taps of `size` points along a dim of n elements."""
    is_nearest = mode.startswith("nearest")
    position = x.positions(size).to(float32 if is_nearest or not x.dtype.is_float else x.dtype)
    distance = point_distance(n, size, scale, align_corners)
    if align_corners:
        point = position * distance
    else:
        point = position * distance if mode == "nearest" else (position + 0.5) * distance - 0.5 * (not is_nearest)
    if is_nearest:
        return [(minimum(point.to(int64), n - 1), None)]
    if mode in LINEAR_MODES:
        return linear_taps(point if align_corners else maximum(point, 0), n)
    return cubic_taps(point, lambda index: minimum(maximum(index, 0), n - 1))


def linear_taps(point: Array, n: int) -> list[Tap]:
    """Return the two elements next to a point that is not negative."""
    first = minimum(point.to(int64), n - 1)
    weight = point - first.to(point.dtype)
    return [(first, 1 - weight), (minimum(first + 1, n - 1), weight)]


def whole_part(point: Array) -> Array:
    """Return the largest integer that is not above a point."""
    truncated = point.to(int64)
    return truncated - (truncated.to(point.dtype) > point).to(int64)


def cubic_taps(point: Array, inside: Callable[[Array], Array]) -> list[Tap]:
    """Return the four elements next to a point, by Keys' kernel. `inside` maps an index to one that exists."""
    first = whole_part(point)
    t = point - first.to(point.dtype)

    weights = keys_far(t + 1, CUBIC), keys_near(t, CUBIC), keys_near(1 - t, CUBIC), keys_far(2 - t, CUBIC)
    return [(inside(first + k - 1), weight) for k, weight in enumerate(weights)]


def upsample(
    x: A,
    size: int | Sequence[int] | None = None,
    scale_factor: Scale = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> A:
    """Call `interpolate`, the name of today."""
    return interpolate(x, size, scale_factor, mode, align_corners)


def upsample_nearest(x: A, size: int | Sequence[int] | None = None, scale_factor: Scale = None) -> A:
    """Call `interpolate` with mode "nearest"."""
    return interpolate(x, size, scale_factor)


def upsample_bilinear(x: A, size: int | Sequence[int] | None = None, scale_factor: Scale = None) -> A:
    """Call `interpolate` with mode "bilinear" and aligned corners."""
    return interpolate(x, size, scale_factor, "bilinear", align_corners=True)


# Grids.


def affine_grid(theta: A, size: Sequence[int], align_corners: bool | None = None) -> A:
    """Return the points at which `grid_sample` reads an image to transform it by affine maps.

    Parameters
    ----------
    theta : Tensor of floats (N, 2, 3) or (N, 3, 4)
        The maps: a point p of the output is read at theta[:, :-1] @ p + theta[:, -1].
    size : sequence of int
        Size of the output, (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool, optional
        If True, -1 and 1 are the centers of the first and last elements, else the ends of the image.

    Returns
    -------
    Tensor (N, H, W, 2) or (N, D, H, W, 3)
        The last dim is (x, y) or (x, y, z).

    Raises
    ------
    ShapeError
        The shapes do not match.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.affine_grid(mf.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
    tensor([[[[-0.5,  0. ],
              [ 0.5,  0. ]]]])
    """
    require_tensor("affine_grid", theta)
    image = as_numbers(tuple(size))[2:]
    if theta.shape != (size[0], len(image), len(image) + 1) or len(image) not in (2, 3):
        raise ShapeError(
            f"affine_grid: got theta of shape {theta.shape} and size {tuple(size)}, expected (N, 2, 3) or (N, 3, 4)"
        )
    return apply(BoundFunction(_affine_grid, (image, bool(align_corners))), theta)


def _affine_grid(theta: Array, image: tuple[int, ...], align_corners: bool) -> Array:
    n, dims = theta.shape[0], len(image)
    maps = theta.reshape(n, *[1] * dims, dims, dims + 1)
    grid = maps[..., dims]
    for k, size in enumerate(reversed(image)):  # x is the last dim of an image
        position = theta.positions(size).to(theta.dtype)
        last = size - 1 if align_corners else size
        point = (2 * position - (size - 1)) / last if last else position * 0
        grid = grid + maps[..., k] * point.reshape(-1, *[1] * (k + 1))
    return grid.expand(n, *image, dims)


def grid_sample(
    x: A, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> A:
    """Read images, or volumes, at the points of a grid.

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W) or (N, C, D, H, W)
    grid : Tensor (N, P, Q, 2) or (N, O, P, Q, 3)
        Points (x, y) or (x, y, z); -1 is the start of the image and 1 its end.
    mode : {"bilinear", "nearest", "bicubic"}
        How the elements near a point are combined; "bicubic" is for images only.
    padding_mode : {"zeros", "border", "reflection"}
        What is outside of the image.
    align_corners : bool, optional
        If True, -1 and 1 are the centers of the first and last elements, else the ends of the image.

    Returns
    -------
    Tensor (N, C, P, Q) or (N, C, O, P, Q)

    Raises
    ------
    ShapeError
        The shapes do not match.
    ValueError
        A mode does not exist.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[[[0.0, 4.0]]]])
    >>> mf.nn.functional.grid_sample(x, mf.tensor([[[[-0.5, 0.0], [0.0, 0.0]]]]))
    tensor([[[[0., 2.]]]])
    """
    require_tensor("grid_sample", x)
    require_tensor("grid_sample", grid)
    dims = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: got mode={mode!r} and padding_mode={padding_mode!r}; see its documentation")
    if dims not in (2, 3) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != dims:
        raise ShapeError(f"grid_sample: got x of shape {x.shape} and grid of shape {grid.shape}, expected (N, ..., {dims})")
    if (mode == "bicubic" and dims == 3) or 0 in x.shape[2:]:
        raise ShapeError(f"grid_sample: got x of shape {x.shape}, which mode={mode!r} does not support")
    return apply(BoundFunction(_grid_sample, (mode, padding_mode, bool(align_corners))), x, grid)


def _grid_sample(x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool) -> Array:
    n, channels, *image = x.shape
    dims, taps = len(image), []
    for d, size in enumerate(image):
        point = grid[..., dims - 1 - d]
        point = (point + 1) * ((size - 1) / 2) if align_corners else ((point + 1) * size - 1) / 2
        taps.append(grid_taps(point, size, mode, padding_mode, align_corners))
    first = (x.positions(n * channels) * math.prod(image)).reshape(n, channels, *[1] * dims)
    flat, total = x.reshape(x.size), None
    for combination in product(*taps):
        position: Any = 0
        weight: Any = 1
        for (index, w), size in zip(combination, image, strict=True):
            position, weight = position * size + index, weight * w
        term = Gather(0)(flat, first + position.unsqueeze(1)) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total  # type: ignore[return-value]  # there are taps


def grid_taps(point: Array, n: int, mode: str, padding_mode: str, align_corners: bool) -> list[tuple[Array, Array]]:
    """Return the taps along one dim of n elements. The weight of an element outside of the image is 0."""

    def bounded(p: Array) -> Array:
        if padding_mode == "reflection":
            p = reflected(p, n, align_corners)
        return p if padding_mode == "zeros" else minimum(maximum(p, 0), n - 1)

    if mode == "bicubic":
        points = [(whole_part(point) + k - 1).to(point.dtype) for k in range(4)]
        weights = [w for _, w in cubic_taps(point, lambda index: index)]
        taps = [(bounded(p).to(int64), w) for p, w in zip(points, weights, strict=True)]
    elif mode == "nearest":
        nearest = rounded_to_even(bounded(point))
        taps = [(nearest, (nearest == nearest).to(point.dtype))]
    else:
        point = bounded(point)
        first = whole_part(point)
        weight = point - first.to(point.dtype)
        taps = [(first, 1 - weight), (first + 1, weight)]
    return [(minimum(maximum(i, 0), n - 1), where((i >= 0) & (i < n), w, 0)) for i, w in taps]


def rounded_to_even(point: Array) -> Array:
    """Return the nearest integer; of two that are as near, the even one."""
    below = whole_part(point)
    rest = point - below.to(point.dtype)
    is_above: Any = (rest > 0.5) | ((rest == 0.5) & (below % 2 == 1))
    nearest: Array = below + is_above.to(int64)
    return nearest


def reflected(point: Array, n: int, align_corners: bool) -> Array:
    """Mirror a point at the ends of n elements until it is between them."""
    low, span = (0.0, float(n - 1)) if align_corners else (-0.5, float(n))
    if not span:
        return point * 0
    distance = abs(point - low)
    times = whole_part(distance / span)
    rest = distance - times.to(point.dtype) * span
    mirrored: Array = where(times % 2 == 0, rest + low, span - rest + low)
    return mirrored


class Upsample(FunctionLayer):
    """`interpolate` as a module.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.Upsample(scale_factor=2, mode="bilinear")(mf.ones(1, 1, 3, 4)).shape
    (1, 1, 6, 8)
    """

    options = "size", "scale_factor", "mode"
    mode, align_corners, recompute_scale_factor = "nearest", None, None

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: Scale = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, x: A) -> A:
        """Map (N, C, ...) to (N, C, *size)."""
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with mode "nearest"."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Scale = None) -> None:
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with mode "bilinear" and aligned corners."""

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: Scale = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


__all__ = [
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

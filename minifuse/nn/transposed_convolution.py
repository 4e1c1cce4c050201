"""Transposed convolutions of signals, images and volumes, and convolutions of signals with the time as the first dim.

A transposed convolution is the gradient of a convolution with respect to its input. Its parts are those of the backward
pass: a matmul, whose result is summed over windows, or a convolution with the flipped filter (see `im2col.Patches`).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..core.dispatch import matmul_precision
from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.indexing import Shape
from ..ir.array_functions import A, BoundFunction, Matmul
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike
from .convolution import Convolution, check_operands, conv1d
from .im2col import MAX_CACHED_GEOMETRIES, Sizes, WindowGeometry, as_numbers, per_dim, sum_windows, window_geometry
from .layers import IMAGE, WINDOW, apply, functions_by_dims, layers_by_dims, takes_one_example


def conv_tbc(x: A, weight: Array, bias: Array, pad: int = 0) -> A:
    """Convolve signals (T, N, C) with filters (K, C, O): `conv1d` with the time as the first dim.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.conv_tbc(mf.ones(5, 2, 3), mf.ones(2, 3, 4), mf.zeros(4)).shape
    (4, 2, 4)
    """
    return conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


@takes_one_example
def convolve_transposed(
    name: str,
    dims: int,
    x: A,
    weight: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> A:
    """Check the arguments, and compute a transposed convolution over the last `dims` dims as one composite op."""
    check_operands(name, x, weight, bias)
    shapes = tuple(value.shape for value in (x, weight, bias) if value is not None)
    numbers = map(as_numbers, (stride, padding, dilation, output_padding))
    function = plan_transposed_convolution(name, dims, shapes, *numbers, as_number(groups))
    return apply(function, x, weight, *[bias] * (bias is not None))


@lru_cache(MAX_CACHED_GEOMETRIES, typed=True)
def plan_transposed_convolution(
    name: str,
    dims: int,
    shapes: tuple[Shape, ...],
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    groups: int,
) -> BoundFunction:
    """Check the shapes of x, weight and an optional bias, and return the transposed convolution for them."""
    x, weight, *bias = shapes
    if len(weight) != dims + 2 or 0 in weight:
        raise ShapeError(f"{name}: got weight of shape {weight}, expected (C, O / groups, {WINDOW[dims]}), each at least 1")
    geometry = window_geometry(name, weight[2:], stride, padding, dilation, groups)
    more = per_dim(name, "output_padding", output_padding, dims, 0)
    if any(n >= max(step, gap) for n, step, gap in zip(more, geometry.stride, geometry.dilation, strict=True)):
        raise ShapeError(f"{name}: got output_padding={output_padding!r}, expected less than the stride or the dilation")
    if len(x) != dims + 2 or x[1] != weight[0] or x[1] % groups:
        raise ShapeError(
            f"{name}: got x of shape {x}, expected (N, {weight[0]}, {IMAGE[dims]}), since weight has shape {weight}; the "
            f"channels are a multiple of groups={groups}"
        )
    if bias not in ([], [(weight[1] * groups,)]):
        raise ShapeError(f"{name}: got bias of shape {bias[0]}, expected ({weight[1] * groups},)")
    image = tuple(
        (n - 1) * step + gap * (k - 1) + 1 - before - after + extra
        for n, k, step, (before, after), gap, extra in zip(x[2:], weight[2:], *geometry[:3], more, strict=True)
    )
    if min(image) < 1:
        raise ShapeError(f"{name}: x of shape {x} gives an output of size {image}; write less padding")
    return BoundFunction(_convolve_transposed, (geometry, image))


def _convolve_transposed(x: Array, weight: Array, *rest: Any) -> Array:
    """Map (N, C, ...) and (C, O / groups, ...) to (N, O, *image): the gradient of a convolution of zeros (O, *image, N)."""
    bias: list[Array]
    geometry: WindowGeometry
    *bias, geometry, image = rest
    size, groups, n = weight.shape[2:], geometry.groups, x.shape[0]
    g = x.permute(*range(1, x.ndim), 0).reshape(groups, x.shape[1] // groups, math.prod(x.shape[2:]) * n)
    filters = weight.reshape(groups, x.shape[1] // groups, math.prod(weight.shape[1:]))
    products = Matmul(matmul_precision())(filters.mT, g)  # (groups, O / groups * size, prod(x.shape[2:]) * N)
    shape = weight.shape[1] * groups, *image, n
    windows = products.reshape(shape[0], *size, *x.shape[2:], n)
    y = sum_windows(windows, shape, size, geometry)
    y = y + bias[0].reshape(-1, *[1] * (y.ndim - 1)) if bias else y
    return y.permute(y.ndim - 1, *range(y.ndim - 1))


FUNCTIONS = functions_by_dims(
    convolve_transposed,
    "conv_transpose",
    """Compute the gradient of `conv{n}d` with respect to its input, for the gradient x of its result.

    Parameters
    ----------
    x : Tensor of floats (N, C, {image})
    weight : Tensor (C, O / groups, {window})
    bias : Tensor (O,), optional
    stride, padding, groups, dilation
        Those of the convolution.
    output_padding : int or sequence
        The size that is added to the end of each dim; less than the stride or the dilation.

    Returns
    -------
    Tensor (N, O, ...)
        The size of a dim is (n - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.

    Raises
    ------
    ShapeError, DTypeError
        As in `conv2d`.
    """,
)


class TransposedConvolution(Convolution):
    """Base class of ConvTranspose1d, ConvTranspose2d and ConvTranspose3d.

    Parameters
    ----------
    in_channels, out_channels : int
        Number of channels of the input and of the output.
    kernel_size, stride, padding, output_padding, groups, dilation
        As in `conv_transpose2d`.
    bias : bool
        If True, add a bias.
    padding_mode : {"zeros"}
        Only padding with zeros has a transpose.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (in_channels, out_channels / groups, ...)
    bias : Parameter (out_channels,) or None

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.ConvTranspose2d(3, 2, kernel_size=4, stride=2, padding=1)(mf.ones(1, 3, 5, 5)).shape
    (1, 2, 10, 10)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'{type(self).__name__}: got padding_mode={padding_mode!r}, expected "zeros"')
        self.output_padding = per_dim(type(self).__name__, "output_padding", output_padding, self.dims, 0)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, dtype=dtype, backend=backend
        )

    def weight_shape(self) -> tuple[int, ...]:
        """Return the shape of the weight."""
        return self.in_channels, self.out_channels // self.groups, *self.kernel_size

    def forward(self, x: A, output_size: Sequence[int] | None = None) -> A:
        """Map (N, in_channels, ...) to (N, out_channels, ...). `output_size` is reached by a suitable output padding."""
        more = self.output_padding
        options: Any = self.kernel_size, self.stride, self.padding, self.dilation
        if output_size is not None:
            smallest = [
                (n - 1) * step - 2 * before + gap * (k - 1) + 1
                for n, k, step, before, gap in zip(x.shape[-self.dims :], *options, strict=True)
            ]
            more = tuple(n - size for n, size in zip(tuple(output_size)[-self.dims :], smallest, strict=True))
        name, (_, stride, padding, dilation) = type(self).__name__, options
        return convolve_transposed(name, self.dims, x, self.weight, self.bias, stride, padding, more, self.groups, dilation)

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        more = f", output_padding={self.output_padding}" if any(self.output_padding) else ""
        return super().extra_repr() + more


LAYERS = layers_by_dims(
    TransposedConvolution, "ConvTranspose", "`conv_transpose{n}d` as a module, with a learned weight and bias."
)
globals().update(FUNCTIONS, **LAYERS)

__all__ = ["conv_tbc", *FUNCTIONS, *LAYERS]

"""Convolutions: weighted sums over windows, as functions and as modules. Each is one composite op.

    x (N, C, H, W) -> padded with zeros -> windows (C, KH, KW, PH, PW, N) -> a matrix (C * KH * KW, PH * PW * N)
    weight (O, C, KH, KW)  ->  a matrix (O, C * KH * KW)
    y = the matmul of both, plus bias, viewed as (N, O, PH, PW)

This is im2col: the windows are a view, which is copied into a matrix unless the backend multiplies windows in place. The
batch is the innermost dim in memory, both of the padded input and of the result. So rows of neighboring windows are
contiguous, and kernels read long runs. Elementwise ops keep the layout of their inputs, so the ops that follow have it, too.

`transposed_convolution` has their gradients as layers.
"""

import math
from functools import lru_cache
from importlib import import_module
from typing import Any

from ..core.dispatch import matmul_precision
from ..core.dtypes import as_number, float32
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import Shape
from ..ir.array_functions import A, BoundFunction, Matmul, PadSlice
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, tensor
from ..tensors.random import generator
from .im2col import (
    MAX_CACHED_GEOMETRIES,
    Padding,
    Sizes,
    WindowGeometry,
    WindowProduct,
    as_numbers,
    check_windows,
    extract_patches,
    padded_shape,
    per_dim,
    window_geometry,
)
from .layers import IMAGE, WINDOW, apply, takes_one_example
from .module import Module, Parameter


def conv1d(
    x: A,
    weight: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> A:
    """Convolve signals with filters: `conv2d` with one dim.

    Parameters
    ----------
    x : Tensor of floats (N, C, L)
        N signals of C channels.
    weight : Tensor (O, C / groups, K)
        One filter for each output channel.
    bias : Tensor (O,), optional
        Added to each output channel.
    stride, padding, dilation, groups
        As in `conv2d`.

    Returns
    -------
    Tensor (N, O, P)
        P = (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1.

    Raises
    ------
    ShapeError, DTypeError
        As in `conv2d`.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[[1.0, 2.0, 4.0, 8.0]]])
    >>> mf.nn.conv1d(x, mf.tensor([[[-1.0, 1.0]]]))  # the differences of neighbors
    tensor([[[1., 2., 4.]]])
    """
    return convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: A,
    weight: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> A:
    """Convolve images with filters: weighted sums over all windows.

        y[n, o, p, q] = bias[o] + sum over c, i, j of weight[o, c, i, j] * x[n, c, p * stride + i * dilation - padding, ...]

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    weight : Tensor (O, C / groups, KH, KW)
        One filter for each output channel.
    bias : Tensor (O,), optional
        Added to each output channel.
    stride : int or pair
        Distance from one window to the next.
    padding : int, pair, "valid" or "same"
        Number of zeros added on each side. "valid" adds none. "same" (with stride 1 only) adds zeros so that the output has
        the size of the input. If their number is odd, there is one more at the end than at the start.
    dilation : int or pair
        Distance between the elements of a window.
    groups : int
        Number of groups of channels. An output channel depends only on the input channels of its group. With as many groups
        as channels, this is a depthwise convolution.

    Returns
    -------
    Tensor (N, O, PH, PW)
        PH = (H + 2 * padding - dilation * (KH - 1) - 1) // stride + 1, PW likewise. The batch is the innermost dim in
        memory: the result is a view of (O, PH, PW, N).

    Raises
    ------
    ShapeError
        The shapes do not match each other or `groups`, a window does not fit into the image, or an option is too small.
    DTypeError
        An operand is not a tensor, or the dtypes differ. No dtype is converted implicitly.

    Notes
    -----
    As in all deep learning libraries, this is a correlation: the filter is not flipped.

    The parallel backend reads windows in place if PW * N elements (with a stride: N) fill one vector register, or eight
    registers for the gradient of the weight. Otherwise the windows are copied into a matrix of N * PH * PW * C * KH * KW
    elements. This matrix is not stored for the backward pass, which copies the windows again. Without overlap, each element
    is copied at most once. Nothing is copied if a window is the whole image, or if it is one element
    and the batch is the innermost dim in memory, as in the result of another convolution. Padding, or a batch that is not
    the innermost dim, needs one more copy of the images, which is cheap.

    The gradient of x is the gradient of y, convolved with the flipped filter. This copies N * H * W * O * KH * KW elements.
    With a stride, or if that is more than 4 times the size of the matrix above, the gradient is a matmul followed by sums
    over windows.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, A guide to convolution arithmetic for deep learning, 2016, arXiv:1603.07285
    .. [2] K. Chellapilla, S. Puri, P. Simard, High Performance Convolutional Neural Networks for Document Processing, 2006:
       im2col

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.arange(16).to(mf.float32).reshape(1, 1, 4, 4)
    >>> mf.nn.conv2d(x, mf.ones(1, 1, 3, 3))
    tensor([[[[45., 54.],
              [81., 90.]]]])
    >>> mf.nn.conv2d(x, mf.ones(1, 1, 3, 3), stride=2, padding="valid").shape
    (1, 1, 1, 1)
    """
    return convolve("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: A,
    weight: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> A:
    """Convolve volumes (N, C, D, H, W) with filters (O, C / groups, KD, KH, KW): `conv2d` with three dims.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.conv3d(mf.ones(1, 2, 3, 4, 5), mf.ones(1, 2, 2, 2, 2)).shape
    (1, 1, 2, 3, 4)
    """
    return convolve("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


@takes_one_example
def convolve(
    name: str,
    dims: int,
    x: A,
    weight: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> A:
    """Check the arguments, and compute a convolution over the last `dims` dims as one composite op."""
    check_operands(name, x, weight, bias)
    shapes = tuple(value.shape for value in (x, weight, bias) if value is not None)
    function = plan_convolution(
        name, dims, shapes, as_numbers(stride), as_numbers(padding), as_numbers(dilation), as_number(groups)
    )
    return apply(function, x, weight, *[bias] * (bias is not None))


def check_operands(name: str, x: Array, weight: Array, bias: Array | None) -> None:
    """Raise DTypeError unless all operands are tensors of one dtype."""
    operands: list[tuple[str, Any]] = [("x", x), ("weight", weight)] + [("bias", bias)] * (bias is not None)
    for operand, value in operands:
        if not isinstance(value, Array):
            raise DTypeError(f"{name}: expected {operand} to be a tensor, got {type(value).__name__}; wrap it in mf.tensor")
        if value.dtype is not x.dtype:
            raise DTypeError(
                f"{name}: got x of dtype {x.dtype} and {operand} of dtype {value.dtype}, expected the same; "
                f"write x.to(mf.{value.dtype}) or module.to(...)"
            )


@lru_cache(MAX_CACHED_GEOMETRIES, typed=True)
def plan_convolution(
    name: str, dims: int, shapes: tuple[Shape, ...], stride: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> BoundFunction:
    """Check the shapes of x, weight and an optional bias, and return the convolution function for them."""
    x, weight, *bias = shapes
    if len(weight) != dims + 2 or 0 in weight:
        expected_shape = f"(O, C / groups, {WINDOW[dims]})"
        raise ShapeError(f"{name}: got weight of shape {weight}, expected {expected_shape}, each at least 1")
    out_channels, group_channels, kernel = weight[0], weight[1], weight[2:]
    geometry = window_geometry(name, kernel, stride, padding, dilation, groups)
    if out_channels % groups:
        raise ShapeError(
            f"{name}: got {out_channels} output channels, from a weight of shape {weight}, and groups={groups}; expected a "
            "multiple of groups"
        )
    if len(x) != dims + 2 or x[1] != group_channels * groups:
        expected_shape = f"(N, {group_channels * groups}, {IMAGE[dims]})"
        raise ShapeError(
            f"{name}: got x of shape {x}, expected {expected_shape}, since weight has shape {weight} and groups={groups}"
        )
    if bias not in ([], [(out_channels,)]):
        raise ShapeError(
            f"{name}: got bias of shape {bias[0]}, expected ({out_channels},), one number for each output channel"
        )
    check_windows(name, x[2:], kernel, geometry)
    return BoundFunction(_convolve, (geometry,))


# The composite op.


def _convolve(x: Array, weight: Array, *bias_and_geometry: Any) -> Array:
    """Map (N, C, ...) and (O, C / groups, ...) to (N, O, ...); the last argument is the geometry."""
    bias: list[Array]
    *bias, geometry = bias_and_geometry
    out_channels, size = weight.shape[0], weight.shape[2:]
    z = batch_last(x, size, geometry)  # (C, ..., N)
    out_size = extract_patches(z, size, geometry.stride, geometry.dilation).shape[1 + len(size) : -1]
    product = WindowProduct(size, geometry.stride, geometry.dilation, x.dtype, Matmul(matmul_precision()))
    filters = weight.reshape(geometry.groups, out_channels // geometry.groups, -1)
    (y,) = product(filters, z, *bias)  # (groups, O / groups, prod(out_size) * N)
    n = x.shape[0]
    return y.reshape(out_channels, *out_size, n).permute(len(size) + 1, *range(len(size) + 1))


def batch_last(x: A, size: tuple[int, ...], geometry: WindowGeometry) -> A:
    """Map (N, C, ...) to (C, ..., N) with padding. Copy it to this memory order if windows read elements often."""
    z = x.permute(*range(1, x.ndim), 0)
    if any(map(any, geometry.padding)):
        return PadSlice(*padded_shape(z, geometry.padding))(z)
    is_read_often = math.prod(size) > math.prod(geometry.stride) and z.shape[1:-1] != tuple(size)
    return z.reshape(z.size).reshape(z.shape) if is_read_often else z  # copies only if the memory order differs


# Modules.


class Convolution(Module):
    """Base class of Conv1d, Conv2d and Conv3d."""

    dims: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Padding = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        name = type(self).__name__
        kernel = per_dim(name, "kernel_size", kernel_size, self.dims, 1)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        geometry = window_geometry(name, kernel, stride, padding, dilation, groups)
        groups = geometry.groups
        self.stride, self.dilation, self.groups = geometry.stride, geometry.dilation, groups
        self.padding = padding if isinstance(padding, str) else tuple(before for before, _ in geometry.padding)
        self.sides, self.padding_mode = geometry.padding, padding_mode
        if min(in_channels, out_channels) < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{name}: got in_channels={in_channels} and out_channels={out_channels}, expected positive multiples of "
                f"groups={groups}"
            )
        shape = self.weight_shape()
        bound = 1 / math.sqrt(math.prod(shape[1:]))

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight = draw(*shape)
        self.bias = draw(out_channels) if bias else None

    def weight_shape(self) -> tuple[int, ...]:
        """Return the shape of the weight."""
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def forward(self, x: A) -> A:
        """Map (N, in_channels, ...) to (N, out_channels, ...)."""
        padding: Padding = self.padding
        if self.padding_mode != "zeros":
            pad = import_module("minifuse.nn.padding").pad
            x, padding = pad(x, [n for sides in reversed(self.sides) for n in sides], self.padding_mode), 0
        options = self.stride, padding, self.dilation, self.groups
        return convolve(type(self).__name__, self.dims, x, self.weight, self.bias, *options)

    def extra_repr(self) -> str:
        """Return the sizes, and the options that differ from their defaults."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding!r}"] * (self.padding != (0,) * self.dims)
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self.dims)
        parts += [f"groups={self.groups}"] * (self.groups != 1)
        parts += ["bias=False"] * (self.bias is None)
        return ", ".join(parts + [f"padding_mode={self.padding_mode!r}"] * (self.padding_mode != "zeros"))


class Conv1d(Convolution):
    """`conv1d` as a module, with a learned weight and bias.

    Parameters
    ----------
    in_channels, out_channels : int
        Number of channels of the input and of the output.
    kernel_size, stride, padding, dilation, groups
        As in `conv2d`, with one dim.
    bias : bool
        If True, add a bias.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding consists of.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (out_channels, in_channels / groups, kernel_size)
    bias : Parameter (out_channels,) or None

    Notes
    -----
    Parameters are initialized as in `Conv2d`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Conv1d(3, 8, 5, padding="same")
    >>> layer(mf.ones(2, 3, 20)).shape
    (2, 8, 20)
    """

    dims = 1


class Conv2d(Convolution):
    """`conv2d` as a module, with a learned weight and bias.

    Parameters
    ----------
    in_channels, out_channels : int
        Number of channels of the input and of the output.
    kernel_size : int or pair
        Rows and columns of the filter.
    stride, padding, dilation, groups
        As in `conv2d`.
    bias : bool
        If True, add a bias.
    padding_mode : {"zeros", "reflect", "replicate", "circular"}
        What the padding consists of.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (out_channels, in_channels / groups, KH, KW)
    bias : Parameter (out_channels,) or None

    Raises
    ------
    ShapeError
        An option is too small, or a number of channels is not a multiple of `groups`. `forward` raises the errors of
        `conv2d`.
    DTypeError
        `forward`: x is not a tensor, or its dtype differs from that of the weight.

    Notes
    -----
    Parameters are initialized uniformly in +-1 / sqrt(in_channels / groups * KH * KW), as in `torch.nn.Conv2d`. For the
    weight, this is the Kaiming uniform distribution [1]_ of a leaky ReLU with slope sqrt(5).

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, Delving Deep into Rectifiers, 2015, arXiv:1502.01852

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Conv2d(1, 6, kernel_size=3, padding=1)
    >>> layer
    Conv2d(1, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(mf.ones(5, 1, 8, 8)).shape
    (5, 6, 8, 8)
    """

    dims = 2


class Conv3d(Convolution):
    """`conv3d` as a module, with a learned weight and bias; the parameters are those of `Conv2d`.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.Conv3d(1, 2, 3, padding="same")(mf.ones(1, 1, 4, 5, 6)).shape
    (1, 2, 4, 5, 6)
    """

    dims = 3

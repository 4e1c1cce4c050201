"""Convolutions: weighted sums over windows, as functions and as modules. Each is one captured call.

    x (N, C, H, W) -> zeros around it -> windows (C, KH, KW, PH, PW, N) -> a matrix (C * KH * KW, PH * PW * N)
    weight (O, C, KH, KW)  ->  a matrix (O, C * KH * KW)
    y = the product of both, plus bias, seen as (N, O, PH, PW)

The windows are a view. To be a matrix they are copied, unless the backend multiplies windows as they lie. Examples lie
closest in memory, inside and in the result: there whole rows of a window's neighbours are next to each other, so both go by
long runs, and what comes after keeps this order, since elementwise results are laid out like what they read.

Not here: pooling; other padding than zeros.
"""

import math
from functools import lru_cache
from typing import Any, Literal

from ..core.dispatch import matmul_precision
from ..core.dtypes import as_number, float32
from ..core.errors import DTypeError, ShapeError
from ..ir.array_functions import BoundFunction, Matmul, PadSlice, Shape
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, generator, tensor
from .im2col import MANY, Geometry, Sizes, WindowProduct, check_windows, listed, patches_of, per_dim, room
from .layers import apply
from .module import Module, Parameter

Padding = Sizes | Literal["valid", "same"]


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """The weighted sums over all windows of signals: `conv2d` with one dim.

    Parameters
    ----------
    x : Tensor of floats (N, C, L)
        N signals of C channels.
    weight : Tensor (O, C / groups, K)
        The kernel of each output channel.
    bias : Tensor (O,), optional
        What is added to each output channel.
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
    >>> mf.nn.conv1d(x, mf.tensor([[[-1.0, 1.0]]]))  # the differences of neighbours
    tensor([[[1., 2., 4.]]])
    """
    return convolve("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Any:
    """The weighted sums over all windows of images.

        y[n, o, p, q] = bias[o] + sum over c, i, j of weight[o, c, i, j] * x[n, c, p * stride + i * dilation - padding, ...]

    Parameters
    ----------
    x : Tensor of floats (N, C, H, W)
        N images of C channels.
    weight : Tensor (O, C / groups, KH, KW)
        The kernel of each output channel.
    bias : Tensor (O,), optional
        What is added to each output channel.
    stride : int or pair
        How far one window is from the next.
    padding : int, pair, "valid" or "same"
        How many zeros are put on each side; "valid" is none, "same" so many that the output is as large as the input, one
        more behind than before where their number is odd (with stride 1 only).
    dilation : int or pair
        How far the elements of a window are apart.
    groups : int
        In how many groups the channels are: an output channel sees those of its own group. As many as there are channels
        make a depthwise convolution.

    Returns
    -------
    Tensor (N, O, PH, PW)
        PH = (H + 2 * padding - dilation * (KH - 1) - 1) // stride + 1, PW likewise. In memory the examples lie closest: it
        is a view of (O, PH, PW, N).

    Raises
    ------
    ShapeError
        Shapes do not fit each other or `groups`, a window does not fit into the image, or a number is too small.
    DTypeError
        Operands are no tensors, or of different element types: nothing is converted silently.

    Notes
    -----
    It is called a convolution, and is a correlation: the kernel is not flipped.

    The parallel backend reads windows where they lie, as long as PW * N elements (with a stride N) fill a vector, or eight
    for the gradient of the weight. Otherwise copied are N * PH * PW * C * KH * KW elements, the matrix of all windows, and
    again in the backward pass, which does not keep it. Where windows do not overlap, each element is copied once at most.
    None is, where a window is the whole image, or one element of images whose examples lie closest (as those that a
    convolution gives). Images that lie otherwise, or have zeros around them, are copied once more, which is little.

    The gradient of x is the convolution of the gradient of y with the flipped kernel, which copies N * H * W * O * KH * KW
    elements. With a stride, or where that is more than 4 times the number above, it is a product, and sums over windows.

    References
    ----------
    .. [1] V. Dumoulin, F. Visin, A guide to convolution arithmetic for deep learning, 2016, arXiv:1603.07285
    .. [2] K. Chellapilla, S. Puri, P. Simard, High Performance Convolutional Neural Networks for Document Processing, 2006:
       windows as a matrix

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


def convolve(
    name: str,
    dims: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sizes,
    padding: Padding,
    dilation: Sizes,
    groups: int,
) -> Any:
    """A convolution over the last `dims` dims, as one captured call, after all has been checked."""
    operands = [("x", x), ("weight", weight)] + [("bias", bias)] * (bias is not None)
    for operand, value in operands:
        if not isinstance(value, Array):
            raise DTypeError(f"{name}: expected {operand} to be a tensor, got {type(value).__name__}; wrap it in mf.tensor")
        if value.dtype is not x.dtype:
            raise DTypeError(
                f"{name}: got x of {x.dtype} and {operand} of {value.dtype}, expected one element type; "
                f"convert one, x.to(mf.{value.dtype}) or module.to(...)"
            )
    shapes = tuple(value.shape for _, value in operands)
    planned = convolution(name, dims, shapes, listed(stride), listed(padding), listed(dilation), as_number(groups))
    return apply(planned, *[value for _, value in operands])


@lru_cache(MANY, typed=True)
def convolution(
    name: str, dims: int, shapes: tuple[Shape, ...], stride: Any, padding: Any, dilation: Any, groups: Any
) -> BoundFunction:
    """A convolution of x, weight and bias, or none, of these shapes, after these have been checked."""
    x, weight, *bias = shapes
    if len(weight) != dims + 2 or 0 in weight:
        wanted = "(O, C / groups, KH, KW)" if dims == 2 else "(O, C / groups, K)"
        raise ShapeError(f"{name}: got weight of shape {weight}, expected {wanted}, each at least 1")
    outputs, channels, kernel = weight[0], weight[1], weight[2:]
    geometry = geometry_of(name, kernel, stride, padding, dilation, groups)
    if outputs % groups:
        raise ShapeError(f"{name}: {outputs} output channels, from weight of shape {weight}, are not {groups} groups")
    if len(x) != dims + 2 or x[1] != channels * groups:
        wanted = f"(N, {channels * groups}, {'H, W' if dims == 2 else 'L'})"
        raise ShapeError(
            f"{name}: got x of shape {x}, expected {wanted}: weight has shape {weight}, with groups={groups}; "
            "one example becomes a batch by x[None]"
        )
    if bias not in ([], [(outputs,)]):
        raise ShapeError(f"{name}: got bias of shape {bias[0]}, expected ({outputs},), one for each output channel")
    check_windows(name, x[2:], kernel, geometry)
    return BoundFunction(_convolve, (geometry,))


def geometry_of(
    name: str, kernel: tuple[int, ...], stride: Sizes, padding: Padding, dilation: Sizes, groups: int
) -> Geometry:
    """What a user wrote, one number for each dim."""
    steps = per_dim(name, "stride", stride, len(kernel), 1)
    gaps = per_dim(name, "dilation", dilation, len(kernel), 1)
    groups = as_number(groups)
    if type(groups) is not int or groups < 1:
        raise ShapeError(f"{name}: got groups={groups!r}, expected an integer of at least 1")
    if not isinstance(padding, str):
        around = tuple((n, n) for n in per_dim(name, "padding", padding, len(kernel), 0))
    elif padding == "valid":
        around = ((0, 0),) * len(kernel)
    elif padding == "same":
        if set(steps) != {1}:
            raise ShapeError(f'{name}: padding="same" needs stride 1, got stride {steps}; give the padding as numbers')
        reach = [gap * (n - 1) for gap, n in zip(gaps, kernel, strict=True)]
        around = tuple((n // 2, n - n // 2) for n in reach)
    else:
        raise ShapeError(f'{name}: got padding={padding!r}, expected an integer, one for each dim, "valid" or "same"')
    return Geometry(steps, around, gaps, groups)


# What is captured.


def _convolve(x: Any, weight: Any, *rest: Any) -> Any:
    """(N, C, ...) and (O, C / groups, ...) -> (N, O, ...); the rest is a bias, or none, and the geometry."""
    *bias, of = rest
    outputs, size = weight.shape[0], weight.shape[2:]
    z = batch_last(x, size, of)  # (C, ..., N)
    places = patches_of(z, size, of.stride, of.dilation).shape[1 + len(size) : -1]
    product = WindowProduct(size, of.stride, of.dilation, x.dtype, Matmul(matmul_precision()))
    (y,) = product(weight.reshape(of.groups, outputs // of.groups, -1), z, *bias)  # (groups, O / groups, places * N)
    n = x.shape[0]
    return y.reshape(outputs, *places, n).permute(len(size) + 1, *range(len(size) + 1))


def batch_last(x: Any, size: tuple[int, ...], of: Geometry) -> Any:
    """(N, C, ...) -> (C, ..., N), with zeros around, in memory in this order where windows will read an element often."""
    z = x.permute(*range(1, x.ndim), 0)
    if any(map(any, of.padding)):
        return PadSlice(*room(z, of.padding))(z)
    is_read_often = math.prod(size) > math.prod(of.stride) and z.shape[1:-1] != tuple(size)
    return z.reshape(z.size).reshape(z.shape) if is_read_often else z  # a copy only where it lies in another order


# Modules.


class Convolution(Module):
    """What Conv1d and Conv2d share."""

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
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        name = type(self).__name__
        kernel = per_dim(name, "kernel_size", kernel_size, self.dims, 1)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        of = geometry_of(name, kernel, stride, padding, dilation, groups)
        groups = of.groups
        self.stride, self.dilation, self.groups = of.stride, of.dilation, groups
        self.padding = padding if isinstance(padding, str) else tuple(before for before, _ in of.padding)
        if min(in_channels, out_channels) < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{name}: got {in_channels} in_channels and {out_channels} out_channels, expected at least 1 each, and "
                f"multiples of groups={groups}"
            )
        bound = 1 / math.sqrt(in_channels // groups * math.prod(kernel))

        def draw(*shape: int) -> Parameter:
            return Parameter(tensor(generator().uniform(-bound, bound, shape), dtype or float32, backend))

        self.weight = draw(out_channels, in_channels // groups, *kernel)
        self.bias = draw(out_channels) if bias else None

    def forward(self, x: Any) -> Any:
        """(N, in_channels, ...) -> (N, out_channels, ...)."""
        numbers = self.stride, self.padding, self.dilation, self.groups
        return convolve(type(self).__name__, self.dims, x, self.weight, self.bias, *numbers)

    def extra_repr(self) -> str:
        """Sizes, and what is not as by default."""
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding!r}"] * (self.padding != (0,) * self.dims)
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self.dims)
        parts += [f"groups={self.groups}"] * (self.groups != 1)
        return ", ".join(parts + ["bias=False"] * (self.bias is None))


class Conv1d(Convolution):
    """`conv1d` as a module, with a weight and a bias that are learned.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input, and of the output.
    kernel_size, stride, padding, dilation, groups
        As in `conv2d`, with one dim.
    bias : bool
        Whether a bias is added.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    weight : Parameter (out_channels, in_channels / groups, kernel_size)
    bias : Parameter (out_channels,) or None

    Notes
    -----
    First values as in `Conv2d`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.Conv1d(3, 8, 5, padding="same")
    >>> layer(mf.ones(2, 3, 20)).shape
    (2, 8, 20)
    """

    dims = 1


class Conv2d(Convolution):
    """`conv2d` as a module, with a weight and a bias that are learned.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input, and of the output.
    kernel_size : int or pair
        Rows and columns of a window.
    stride, padding, dilation, groups
        As in `conv2d`.
    bias : bool
        Whether a bias is added.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    weight : Parameter (out_channels, in_channels / groups, KH, KW)
    bias : Parameter (out_channels,) or None

    Raises
    ------
    ShapeError
        A number is too small, or the channels are no multiples of `groups`; when called, as in `conv2d`.
    DTypeError
        When called, x is no tensor, or of another element type than the weight.

    Notes
    -----
    Parameters start evenly spread within +-1 / sqrt(in_channels / groups * KH * KW), as in `torch.nn.Conv2d`; for the weight
    that is the distribution of [1]_ for a leaky ReLU of slope sqrt(5).

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

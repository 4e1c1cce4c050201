"""Normalization of each example over its last dims or groups of channels, then a learned scale and shift.

Forward and backward are one kernel each. A row consists of the elements that are normalized together. The forward kernel
reads it three times: for the mean, for the variance (of differences from the mean, so no digits cancel), and for the result.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtypes import as_number
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import Shape, sizes_of
from ..core.operators import add, rsqrt
from ..ir.array_functions import A, BoundFunction, PadSlice
from ..ir.array_methods import Array
from ..ir.reduction_bodies import reduce_dims
from ..tensors.creation import DTypeLike, ones, zeros
from .activations import require_floats
from .layers import FunctionLayer, apply, require_tensor
from .module import Module, Parameter


def layer_norm(
    x: A, normalized_shape: Sequence[int], weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> A:
    """Normalize each example to mean 0 and variance 1 over its last dims; then multiply by `weight` and add `bias`.

    Parameters
    ----------
    x : Tensor of floats (..., *normalized_shape)
    normalized_shape : sequence of int
        Sizes of the last dims, which are normalized together.
    weight, bias : Tensor (*normalized_shape,) or None
        Scale and shift of each element.
    eps : float
        Added to the (biased) variance.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        The last dims of x, or the shape of another tensor, differ from `normalized_shape`.
    DTypeError
        x is not a tensor of floats, or the dtype of another tensor differs.

    References
    ----------
    .. [1] J. L. Ba, J. R. Kiros, G. E. Hinton, Layer Normalization, 2016, arXiv:1607.06450

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.layer_norm(mf.tensor([[1.0, 3.0], [10.0, 30.0]]), (2,))
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    shape = check_last_dims("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    body = BoundFunction(_layer_norm, (len(shape), weight is not None, bias is not None))
    return apply(body, x, eps, *drop_none(weight, bias))


def _layer_norm(x: Array, eps: Array, *rest: Any) -> Array:
    *parameters, count, is_scaled, is_shifted = rest
    dims, size = tuple(range(x.ndim - count, x.ndim)), math.prod(x.shape[x.ndim - count :])
    d = x - reduce_dims(x, dims, True, add) / size
    var = reduce_dims(d * d, dims, True, add) / size
    return scale_and_shift(d * rsqrt(var + eps), parameters, is_scaled, is_shifted)


def group_norm(x: A, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> A:
    """Normalize each group of channels of each example to mean 0 and variance 1, then scale and shift each channel.

    Parameters
    ----------
    x : Tensor of floats (N, C, ...)
    num_groups : int
        Number of groups of adjacent channels; C is a multiple of it.
    weight, bias : Tensor (C,) or None
        Scale and shift of each channel.
    eps : float
        Added to the (biased) variance.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        The number of channels is not a multiple of `num_groups`, or another tensor does not have C elements.
    DTypeError
        x is not a tensor of floats, or the dtype of another tensor differs.

    References
    ----------
    .. [1] Y. Wu, K. He, Group Normalization, 2018, arXiv:1803.08494

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.group_norm(mf.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
    tensor([[-1.,  1., -1.,  1.]])
    """
    return normalize_groups("group_norm", x, num_groups, weight, bias, eps)[0]


def normalize_groups(name: str, x: A, groups: int, weight: Array | None, bias: Array | None, eps: float) -> tuple[A, A, A]:
    """Return x normalized in groups of channels, and the mean and biased variance of each, which have no gradient."""
    require_tensor(name, x)
    require_floats(name, x)
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise ShapeError(f"{name}: got x of shape {x.shape}, expected (N, C, ...) with C a multiple of {groups} groups")
    check_parameters(name, x, x.shape[1:2], weight=weight, bias=bias)
    body = BoundFunction(_normalize_groups, (groups, weight is not None, bias is not None))
    outputs: Any = apply(body, x, eps, *drop_none(weight, bias))
    return outputs  # type: ignore[no-any-return]


def _normalize_groups(x: Array, eps: Array, *rest: Any) -> tuple[Array, Array, Array]:
    *parameters, groups, is_scaled, is_shifted = rest
    n, channels, *image = x.shape
    z = x.reshape(n, groups, channels // groups, *image)
    dims, count = tuple(range(2, z.ndim)), channels // groups * math.prod(image)
    mean = reduce_dims(z, dims, True, add) / count
    d = z - mean
    var = reduce_dims(d * d, dims, True, add) / count
    affine = [p.reshape(groups, channels // groups, *[1] * len(image)) for p in parameters]
    y = scale_and_shift(d * rsqrt(var + eps), affine, is_scaled, is_shifted).reshape(x.shape)
    return y, mean.reshape(n, groups).detach(), var.reshape(n, groups).detach()


def rms_norm(x: A, normalized_shape: Sequence[int], weight: Array | None = None, eps: float | None = None) -> A:
    """Divide each example by the root of the mean square over its last dims; then multiply by `weight`.

    Parameters
    ----------
    x : Tensor of floats (..., *normalized_shape)
    normalized_shape : sequence of int
        Sizes of the last dims, which are normalized together.
    weight : Tensor (*normalized_shape,) or None
        Scale of each element.
    eps : float, optional
        Added to the mean square. Default: the distance from 1 to the next number of the dtype.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        The last dims of x, or the shape of the weight, differ from `normalized_shape`.
    DTypeError
        x is not a tensor of floats, or the dtype of the weight differs.

    References
    ----------
    .. [1] B. Zhang, R. Sennrich, Root Mean Square Layer Normalization, 2019, arXiv:1910.07467

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.rms_norm(mf.tensor([1.0, 7.0]), (2,))
    tensor([0.2, 1.4])
    """
    shape = check_last_dims("rms_norm", x, normalized_shape, weight=weight)
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    return apply(BoundFunction(_rms_norm, (len(shape),)), x, eps, *drop_none(weight))


def _rms_norm(x: Array, eps: Array, *rest: Any) -> Array:
    *parameters, count = rest
    dims, size = tuple(range(x.ndim - count, x.ndim)), math.prod(x.shape[x.ndim - count :])
    mean = reduce_dims(x * x, dims, True, add) / size
    return scale_and_shift(x * rsqrt(mean + eps), parameters, bool(parameters), False)


def local_response_norm(x: A, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> A:
    """Divide each element by (k + alpha * the mean of the squares in `size` neighboring channels)**beta.

    Parameters
    ----------
    x : Tensor of floats (N, C, ...)
    size : int
        Number of channels; size // 2 of them precede the channel. Missing ones count as 0.
    alpha, beta, k : float

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        x has fewer than 3 dims, or `size` is less than 1.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.local_response_norm(mf.ones(1, 2, 1), 2, alpha=6.0, beta=1.0)
    tensor([[[0.25  ],
             [0.1429]]])
    """
    require_tensor("local_response_norm", x)
    if x.ndim < 3 or size < 1:
        raise ShapeError(f"local_response_norm: got {x.shape} and size={size}, expected x (N, C, ...) and size >= 1")
    return apply(BoundFunction(_local_response_norm, (as_number(size),)), x, alpha, beta, k)


def _local_response_norm(x: Array, alpha: Array, beta: Array, k: Array, size: int) -> Array:
    n, channels, *image = x.shape
    whole = [(0, 1, m) for m in image]
    padded = PadSlice((n, channels + size - 1, *image), ((0, 1, n), (size // 2, 1, channels), *whole))(x * x)
    return x / (k + alpha * (padded.unfold(1, size, 1).sum(-1) / size)) ** beta


def check_last_dims(layer: str, x: Array, normalized_shape: Sequence[int], **parameters: Array | None) -> Shape:
    """Return the sizes of the normalized dims. Raise unless they are the last of x, and the shape of the parameters."""
    require_tensor(layer, x)
    shape = sizes_of(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise ShapeError(f"{layer}: got x of shape {x.shape}, expected (..., {sizes}), as in normalized_shape")
    require_floats(layer, x)
    check_parameters(layer, x, shape, **parameters)
    return shape


def check_parameters(layer: str, x: Array, shape: Shape, **parameters: Array | None) -> None:
    """Raise unless each parameter of a layer, if given, has the given shape and the dtype of x."""
    for name, p in parameters.items():
        if p is None:
            continue
        require_tensor(f"{layer}: {name}", p)
        if p.shape != shape:
            raise ShapeError(f"{layer}: got {name} of shape {p.shape}, expected {shape} for x of shape {x.shape}")
        if p.dtype is not x.dtype:
            raise DTypeError(
                f"{layer}: got x of dtype {x.dtype} and {name} of dtype {p.dtype}, expected the same; write "
                f"x.to(mf.{p.dtype}) or module.to(...)"
            )


def drop_none(*parameters: A | None) -> list[A]:
    """Return the parameters that are not None."""
    return [p for p in parameters if p is not None]


def scale_and_shift(y: A, parameters: Sequence[Array], is_scaled: bool, is_shifted: bool) -> A:
    """Multiply by the weight if `is_scaled`, and add the bias if `is_shifted`."""
    y = y * parameters[0] if is_scaled else y
    return y + parameters[-1] if is_shifted else y


class LayerNorm(Module):
    """Normalize each example over its last dims, then scale and shift each element.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dims of the input, which are normalized together.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        If True, learn a scale, initialized to 1.
    bias : bool
        If True, and `elementwise_affine` is True, learn a shift, initialized to 0.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight, bias : Parameter (*normalized_shape,) or None

    Raises
    ------
    ShapeError
        `normalized_shape` is empty, or a size is less than 1. `forward` raises the errors of `layer_norm`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.LayerNorm(4)
    >>> layer, layer(mf.rand(2, 3, 4)).shape
    (LayerNorm((4,), eps=1e-05, elementwise_affine=True), (2, 3, 4))
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        shape = sizes_of(normalized_shape)
        if not shape or min(shape) < 1:
            raise ShapeError(f"LayerNorm: got normalized_shape={normalized_shape}, expected sizes of at least 1")
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        one, zero = ones(shape, dtype=dtype, backend=backend), zeros(shape, dtype=dtype, backend=backend)
        self.weight = Parameter(one) if elementwise_affine else None
        self.bias = Parameter(zero) if elementwise_affine and bias else None

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change."""
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """`group_norm` as a module, with a learned weight and bias.

    Parameters
    ----------
    num_groups, num_channels : int
        Number of groups, and of channels, which is a multiple of it.
    eps : float
        Added to the variance.
    affine : bool
        If True, learn a scale and a shift of each channel.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.GroupNorm(2, 6)
    >>> layer, layer(mf.rand(4, 6, 5)).shape
    (GroupNorm(2, 6, eps=1e-05, affine=True), (4, 6, 5))
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if num_groups < 1 or num_channels < 1 or num_channels % num_groups:
            raise ShapeError(f"GroupNorm: got num_channels={num_channels}, expected a multiple of num_groups={num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = Parameter(ones(num_channels, dtype=dtype, backend=backend)) if affine else None
        self.bias = Parameter(zeros(num_channels, dtype=dtype, backend=backend)) if affine else None

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change."""
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class RMSNorm(Module):
    """`rms_norm` as a module, with a learned weight.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of the last dims of the input, which are normalized together.
    eps : float, optional
        Added to the mean square. Default: the distance from 1 to the next number of the dtype.
    elementwise_affine : bool
        If True, learn a scale, initialized to 1.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight : Parameter (*normalized_shape,) or None

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.RMSNorm(4)
    RMSNorm((4,), eps=None, elementwise_affine=True)
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        self.normalized_shape, self.eps, self.elementwise_affine = sizes_of(normalized_shape), eps, elementwise_affine
        one = ones(self.normalized_shape, dtype=dtype, backend=backend)
        self.weight = Parameter(one) if elementwise_affine else None

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change."""
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(FunctionLayer):
    """`local_response_norm` as a module."""

    options = "size", "alpha", "beta", "k"

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change."""
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k)


__all__ = [
    "GroupNorm",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "group_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]

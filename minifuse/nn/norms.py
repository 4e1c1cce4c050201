"""Normalizations over other dims than those of batch and layer norm: instances, groups, mean squares, near channels."""

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core.dispatch import no_grad
from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.indexing import sizes_of
from ..core.operators import add, rsqrt
from ..ir.array_functions import A, BoundFunction, PadSlice
from ..ir.array_methods import Array
from ..ir.reduction_bodies import reduce_dims
from ..tensors.creation import DTypeLike, ones, zeros
from ..tensors.mutation import store
from .activations import require_floats
from .layers import FunctionLayer, apply, require_tensor
from .module import Module, Parameter
from .normalization import (
    BatchNorm,
    check_parameter,
    drop_none,
    normalize_by_statistics,
    scale_and_shift,
    update_statistics,
)


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
    for key, p in ("weight", weight), ("bias", bias):
        if p is not None:
            check_parameter(name, x, key, p, x.shape[1:2])
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


def instance_norm(
    x: A,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> A:
    """Normalize each channel of each example to mean 0 and variance 1 over its positions, then scale and shift it.

    Parameters
    ----------
    x : Tensor of floats (N, C, ...)
    running_mean, running_var : Tensor (C,) or None
        With `use_input_stats`, they are updated in place, if given. Without, x is normalized by them.
    weight, bias : Tensor (C,) or None
        Scale and shift of each channel.
    use_input_stats : bool
        If True, normalize by the mean and variance of each example.
    momentum : float
        The weight of this batch in the running statistics.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        x has fewer than 3 dims, a channel has fewer than 2 positions, or another tensor does not have C elements.
    DTypeError
        x is not a tensor of floats, or the dtype of another tensor differs.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.functional.instance_norm(mf.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    require_tensor("instance_norm", x)
    if not use_input_stats:
        return normalize_by_statistics(x, running_mean, running_var, weight, bias, eps)
    if x.ndim < 3 or math.prod(x.shape[2:]) < 2:
        raise ShapeError(f"instance_norm: got x of shape {x.shape}, expected (N, C, ...) with several positions a channel")
    y, mean, var = normalize_groups("instance_norm", x, x.shape[1], weight, bias, eps)
    if running_mean is not None and running_var is not None:
        count = math.prod(x.shape[2:])
        with no_grad():
            running = [running_mean, running_var]
            store(update_statistics, running, mean.mean(0), var.mean(0), as_number(momentum), count / (count - 1))
    return y


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
    require_tensor("rms_norm", x)
    require_floats("rms_norm", x)
    shape = sizes_of(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        sizes = ", ".join(map(str, shape))
        raise ShapeError(f"rms_norm: got x of shape {x.shape}, expected (..., {sizes}), as in normalized_shape")
    if weight is not None:
        check_parameter("rms_norm", x, "weight", weight, shape)
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


class BatchNorm3d(BatchNorm):
    """Normalize each channel of a batch of volumes (N, C, D, H, W), then scale and shift it: see `BatchNorm2d`."""

    expected = MappingProxyType({5: "(N, C, D, H, W)"})


class InstanceNorm(BatchNorm):
    """Base class of InstanceNorm1d, InstanceNorm2d and InstanceNorm3d. An input without batch dim is one example."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, backend)

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change. In training, update the running statistics, if there are any."""
        require_tensor(type(self).__name__, x)
        if x.ndim + 1 in self.expected:
            return self.forward(x[None])[0]
        self.check(x)
        from_input = self.training or not self.track_running_stats
        statistics = self.running_mean, self.running_var
        return instance_norm(x, *statistics, self.weight, self.bias, from_input, self.momentum or 0.0, self.eps)


class InstanceNorm1d(InstanceNorm):
    """Normalize each channel of each signal (N, C, L): `instance_norm` as a module; see `BatchNorm1d` for the parameters."""

    expected = MappingProxyType({3: "(N, C, L)"})


class InstanceNorm2d(InstanceNorm):
    """Normalize each channel of each image (N, C, H, W): `instance_norm` as a module; see `BatchNorm2d` for the parameters.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.InstanceNorm2d(3)(mf.rand(2, 3, 4, 5)).shape
    (2, 3, 4, 5)
    """

    expected = MappingProxyType({4: "(N, C, H, W)"})


class InstanceNorm3d(InstanceNorm):
    """Normalize each channel of each volume (N, C, D, H, W): `instance_norm` as a module; see `BatchNorm2d`."""

    expected = MappingProxyType({5: "(N, C, D, H, W)"})


__all__ = [
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LocalResponseNorm",
    "RMSNorm",
    "group_norm",
    "instance_norm",
    "local_response_norm",
    "rms_norm",
]

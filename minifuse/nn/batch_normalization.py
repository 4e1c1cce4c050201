"""Batch and instance normalization: mean 0 and variance 1 of each channel, then a learned scale and shift.

Running statistics are buffers. In training, another in-place call updates them, unless `mf.fuse` fuses it.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..core.dispatch import no_grad
from ..core.dtypes import as_number
from ..core.errors import ShapeError
from ..core.operators import add, rsqrt
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.reduction_bodies import reduce_dims
from ..tensors.creation import DTypeLike, ones, tensor, zeros
from ..tensors.mutation import store
from .activations import require_floats
from .layers import apply, require_tensor
from .module import Buffer, Module, Parameter
from .normalization import check_parameters, drop_none, normalize_groups, scale_and_shift


def batch_norm(
    x: A,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> A:
    """Normalize each channel to mean 0 and variance 1 over all examples and positions, then scale and shift it.

    Parameters
    ----------
    x : Tensor of floats (N, C) or (N, C, ...)
    running_mean, running_var : Tensor (C,) or None
        With `training`, they are updated in place, if given. Without, x is normalized by them.
    weight, bias : Tensor (C,) or None
        Scale and shift of each channel.
    training : bool
        If True, normalize by the mean and variance of this batch.
    momentum : float
        The weight of this batch in the running statistics: (1 - momentum) * running + momentum * new.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor
        The shape and dtype of x.

    Raises
    ------
    ShapeError
        x has fewer than 2 dims, another tensor does not have C elements, or a channel has fewer than 2 elements in training.
    DTypeError
        x is not a tensor of floats, or the dtype of another tensor differs.
    ValueError
        Only one of the running statistics is given, or none without `training`.

    Notes
    -----
    x is divided by the root of the biased variance plus eps; the running variance is unbiased, as in PyTorch [1]_.

    References
    ----------
    .. [1] S. Ioffe, C. Szegedy, Batch Normalization, 2015, arXiv:1502.03167

    Examples
    --------
    >>> import minifuse as mf
    >>> x = mf.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> mean, var = mf.zeros(2), mf.ones(2)
    >>> mf.nn.batch_norm(x, mean, var, training=True)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    >>> mean, var
    (tensor([0.2, 2. ]), tensor([ 1.1, 20.9]))
    """
    running = drop_none(running_mean, running_var)
    if len(running) == 1 or not (running or training):
        raise ValueError(
            "batch_norm: expected both running_mean and running_var; without training=True, x is normalized by them"
        )
    if not training:
        return normalize_by_statistics(x, running_mean, running_var, weight, bias, eps)
    check_channels(x, running_mean=running_mean, running_var=running_var)
    y, mean, var = normalize_by_batch(x, weight, bias, eps)
    if running:
        with no_grad():
            store(update_statistics, running, mean, var, as_number(momentum), bessel_factor(x))
    return y


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


def normalize_by_batch(x: A, weight: Array | None, bias: Array | None, eps: float) -> tuple[A, A, A]:
    """Return x normalized by the batch statistics, and its mean and biased variance, which have no gradient."""
    check_channels(x, weight=weight, bias=bias)
    if x.size <= x.shape[1]:
        raise ShapeError(
            f"batch_norm: got x of shape {x.shape} in training, expected at least 2 elements for each channel to compute a "
            "variance; use larger batches, or module.eval()"
        )
    outputs: Any = apply(bind_affine(_by_batch, weight, bias), x, eps, *drop_none(weight, bias))
    y, mean, var = outputs
    return y, mean, var


def normalize_by_statistics(
    x: A, mean: Array | None, var: Array | None, weight: Array | None, bias: Array | None, eps: float
) -> A:
    """Return x normalized by the given mean and variance."""
    check_channels(x, running_mean=mean, running_var=var, weight=weight, bias=bias)
    return apply(bind_affine(_by_statistics, weight, bias), x, eps, mean, var, *drop_none(weight, bias))


def _by_batch(x: Array, eps: Array, *rest: Any) -> tuple[Array, Array, Array]:
    *parameters, is_scaled, is_shifted = rest
    dims = (0, *range(2, x.ndim))
    count, channels = x.size // x.shape[1], x.shape[1]
    mean = reduce_dims(x, dims, True, add) / count  # (1, C, 1, ...)
    d = x - mean
    var = reduce_dims(d * d, dims, True, add) / count
    affine = [p.reshape(mean.shape) for p in parameters]
    y = scale_and_shift(d * rsqrt(var + eps), affine, is_scaled, is_shifted)
    return y, mean.reshape(channels).detach(), var.reshape(channels).detach()


def _by_statistics(x: Array, eps: Array, *rest: Any) -> Array:
    parameters: list[Array]
    *parameters, is_scaled, is_shifted = rest
    mean, var, *affine = [p.reshape(x.shape[1], *[1] * (x.ndim - 2)) for p in parameters]  # (C, 1, ...)
    return scale_and_shift((x - mean) * rsqrt(var + eps), affine, is_scaled, is_shifted)


def update_statistics(
    mean: Array, var: Array, new_mean: Array, new_var: Array, momentum: Array, bessel: Array
) -> tuple[Array, Array]:
    """Return the running statistics, updated with those of a batch."""
    return (1 - momentum) * mean + momentum * new_mean, (1 - momentum) * var + momentum * (new_var * bessel)


def _update_and_count(mean: Array, var: Array, batch_count: Array, *rest: Array) -> tuple[Array, Array, Array]:
    """Return the running statistics, updated with those of a batch, and the new number of batches."""
    return *update_statistics(mean, var, *rest), batch_count + 1


def _average_and_count(
    mean: Array, var: Array, batch_count: Array, new_mean: Array, new_var: Array, bessel: Array
) -> tuple[Array, Array, Array]:
    """Return the averages of the statistics over all batches, including the new one, and the new number of batches."""
    return _update_and_count(mean, var, batch_count, new_mean, new_var, 1 / (batch_count + 1).to(mean.dtype), bessel)


def bessel_factor(x: Array) -> float:
    """Return n / (n - 1), which converts the biased variance of n elements to the unbiased one."""
    count = x.size // x.shape[1]
    return float(count / (count - 1))


def bind_affine(body: Callable[..., object], weight: Array | None, bias: Array | None) -> BoundFunction:
    """Bind two flags to a composite function: whether there is a weight, and whether there is a bias."""
    return BoundFunction(body, (weight is not None, bias is not None))


def check_channels(x: Array, **others: Array | None) -> None:
    """Raise unless x has channels, and each of the other tensors, if given, has one element for each channel."""
    require_tensor("batch_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: got x of shape {x.shape}, expected (N, C) or (N, C, ...)")
    require_floats("batch_norm", x)
    check_parameters("batch_norm", x, x.shape[1:2], **others)


class BatchNorm(Module):
    """Base class of BatchNorm1d, BatchNorm2d and BatchNorm3d, which differ in the number of dims of their input.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        The weight of each batch in the running statistics. With None, they are the averages over all batches so far.
    affine : bool
        If True, learn a scale and a shift of each channel. They are initialized to 1 and 0.
    track_running_stats : bool
        If True, keep running statistics, which are used after `eval`. If False, always use the batch statistics.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None
    running_mean, running_var : Buffer (C,) or None
    num_batches_tracked : Buffer of int64 () or None

    Raises
    ------
    ShapeError
        `num_features` is less than 1. `forward` raises the errors of `batch_norm`.
    """

    expected: Mapping[int, str] = MappingProxyType({})  # number of dims of x -> its expected shape, for error texts
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Buffer | None
    running_var: Buffer | None
    num_batches_tracked: Buffer | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if num_features < 1:
            raise ShapeError(f"{type(self).__name__}: got num_features={num_features}, expected at least 1")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        one, zero = ones(num_features, dtype=dtype, backend=backend), zeros(num_features, dtype=dtype, backend=backend)
        self.weight, self.bias = (Parameter(one), Parameter(zero)) if affine else (None, None)
        self.running_mean = Buffer(zero.clone()) if track_running_stats else None
        self.running_var = Buffer(one.clone()) if track_running_stats else None
        self.num_batches_tracked = Buffer(tensor(0, backend=backend)) if track_running_stats else None

    def forward(self, x: A) -> A:
        """Normalize x; the shape does not change. In training, update the running statistics."""
        self.check(x)
        if self.running_mean is not None and not self.training:
            return normalize_by_statistics(x, self.running_mean, self.running_var, self.weight, self.bias, self.eps)
        y, mean, var = normalize_by_batch(x, self.weight, self.bias, self.eps)
        if self.running_mean is not None:
            targets = [self.running_mean, self.running_var, self.num_batches_tracked]
            with no_grad():
                if self.momentum is None:
                    store(_average_and_count, targets, mean, var, bessel_factor(x))
                else:
                    store(_update_and_count, targets, mean, var, self.momentum, bessel_factor(x))
        return y

    def check(self, x: Array) -> None:
        """Raise unless x has the expected shape."""
        require_tensor(type(self).__name__, x)
        if x.ndim not in self.expected or x.shape[1] != self.num_features:
            shapes = " or ".join(self.expected.values()).replace("C", str(self.num_features))
            raise ShapeError(f"{type(self).__name__}: got x of shape {x.shape}, expected {shapes}")

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Normalize each feature of a batch (N, C), or each channel of (N, C, L), then scale and shift it.

    Parameters: `num_features`, `eps`, `momentum` (None averages over all batches), `affine`, `track_running_stats`, `dtype`
    and `backend`. See `batch_norm` for their meaning, and for errors.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.BatchNorm1d(2)
    >>> layer(mf.tensor([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[-1., -1.],
            [ 1.,  1.]], requires_grad=True)
    >>> layer.running_mean, layer.num_batches_tracked
    (tensor([0.2, 2. ]), tensor(1))
    >>> layer.eval()
    BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
    """

    expected = MappingProxyType({2: "(N, C)", 3: "(N, C, L)"})


class BatchNorm2d(BatchNorm):
    """Normalize each channel of a batch of images (N, C, H, W), then scale and shift it.

    Parameters: `num_features`, `eps`, `momentum` (None averages over all batches), `affine`, `track_running_stats`, `dtype`
    and `backend`. See `batch_norm` for their meaning, and for errors.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.BatchNorm2d(3)
    >>> layer(mf.rand(2, 3, 4, 5)).shape, list(layer.state_dict())
    ((2, 3, 4, 5), ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'])
    """

    expected = MappingProxyType({4: "(N, C, H, W)"})


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
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "batch_norm",
    "instance_norm",
]

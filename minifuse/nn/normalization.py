"""Normalization: mean 0 and variance 1, of each channel over a batch or of each example, then a learned scale and shift.

Forward and backward are one kernel each: a row is what is normalized together, swept for its mean, for its variance (of
differences from the mean, so that nothing cancels) and for what is stored. Running statistics are buffers that a forward in
training changes in place by one more call; inside a fused function that is a part of the step.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..core.dispatch import no_grad
from ..core.dtypes import as_number
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import sizes_of
from ..core.operators import add, rsqrt
from ..ir.array_functions import BoundFunction
from ..ir.array_methods import reduce_dims
from ..tensors.creation import DTypeLike, ones, tensor, zeros
from ..tensors.mutation import store
from .activations import floats
from .layers import apply, refuse_other_than_tensors
from .module import Buffer, Module, Parameter


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Each channel with mean 0 and variance 1 over all examples and places; then times `weight`, plus `bias`.

    Parameters
    ----------
    x : Tensor of floats (N, C) or (N, C, ...)
    running_mean, running_var : Tensor (C,) or None
        In training they are changed in place, if they are there; else they are what x is normalized by.
    weight, bias : Tensor (C,) or None
        A scale and a shift of each channel.
    training : bool
        Whether x is normalized by the mean and the variance of this batch.
    momentum : float
        How much of the statistics of this batch goes into the running ones: (1 - momentum) * running + momentum * new.
    eps : float
        Added to the variance.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Raises
    ------
    ShapeError
        x has fewer than 2 dims, another tensor has not C elements, or in training a channel has fewer than 2 elements.
    DTypeError
        x is no tensor of floats, or another tensor is of another element type.
    ValueError
        Only one of the running statistics is given, or none where they are needed.

    Notes
    -----
    x is divided by the root of the biased variance plus eps; the running variance is the unbiased one, as in PyTorch [1]_.

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
    running = given(running_mean, running_var)
    if len(running) == 1 or not (running or training):
        raise ValueError(
            "batch_norm: expected running_mean and running_var, both; without training=True they are what x is normalized by"
        )
    if not training:
        return by_statistics(x, running_mean, running_var, weight, bias, eps)
    check_channels(x, running_mean=running_mean, running_var=running_var)
    y, mean, var = by_batch(x, weight, bias, eps)
    if running:
        with no_grad():
            store(_mixed, running, mean, var, as_number(momentum), unbiasing(x))
    return y


def by_batch(x: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    """x normalized by its own statistics; and those, its mean and its biased variance, without a gradient."""
    check_channels(x, weight=weight, bias=bias)
    if x.size <= x.shape[1]:
        raise ShapeError(
            f"batch_norm: got x of shape {x.shape} in training, expected more than 1 element a channel, else the variance "
            "says nothing; use larger batches, or module.eval()"
        )
    found: tuple[Any, Any, Any] = apply(affine(_by_batch, weight, bias), x, eps, *given(weight, bias))
    return found


def by_statistics(x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    """x normalized by statistics that are there already."""
    check_channels(x, running_mean=mean, running_var=var, weight=weight, bias=bias)
    return apply(affine(_by_statistics, weight, bias), x, eps, mean, var, *given(weight, bias))


def _by_batch(x: Any, eps: Any, *more: Any) -> tuple[Any, Any, Any]:
    *parameters, is_scaled, is_shifted = more
    dims = (0, *range(2, x.ndim))
    count, channels = x.size // x.shape[1], x.shape[1]
    mean = reduce_dims(x, dims, True, add) / count  # (1, C, 1, ...)
    d = x - mean
    var = reduce_dims(d * d, dims, True, add) / count
    seen = [p.reshape(mean.shape) for p in parameters]
    y = scaled_and_shifted(d * rsqrt(var + eps), seen, is_scaled, is_shifted)
    return y, mean.reshape(channels).detach(), var.reshape(channels).detach()


def _by_statistics(x: Any, eps: Any, *more: Any) -> Any:
    *parameters, is_scaled, is_shifted = more
    mean, var, *seen = [p.reshape(x.shape[1], *[1] * (x.ndim - 2)) for p in parameters]  # (C, 1, ...)
    return scaled_and_shifted((x - mean) * rsqrt(var + eps), seen, is_scaled, is_shifted)


def _mixed(mean: Any, var: Any, new_mean: Any, new_var: Any, momentum: Any, unbiased: Any) -> tuple[Any, Any]:
    """Running statistics with those of a batch mixed in."""
    return (1 - momentum) * mean + momentum * new_mean, (1 - momentum) * var + momentum * (new_var * unbiased)


def _counted(mean: Any, var: Any, batches: Any, *more: Any) -> tuple[Any, Any, Any]:
    """The same, with the batches counted."""
    return *_mixed(mean, var, *more), batches + 1


def _averaged(mean: Any, var: Any, batches: Any, new_mean: Any, new_var: Any, unbiased: Any) -> tuple[Any, Any, Any]:
    """The same, where all batches count alike."""
    return _counted(mean, var, batches, new_mean, new_var, 1 / (batches + 1).to(mean.dtype), unbiased)


def unbiasing(x: Any) -> float:
    """What makes the variance over a batch that of all there could be."""
    count = x.size // x.shape[1]
    return float(count / (count - 1))


def affine(body: Any, weight: Any, bias: Any) -> BoundFunction:
    """The captured function for a scale and a shift that may be missing."""
    return BoundFunction(body, (weight is not None, bias is not None))


def given(*parameters: Any) -> list[Any]:
    """Those that are there."""
    return [p for p in parameters if p is not None]


def scaled_and_shifted(y: Any, parameters: Sequence[Any], is_scaled: bool, is_shifted: bool) -> Any:
    """y * weight + bias, or what of it there is."""
    y = y * parameters[0] if is_scaled else y
    return y + parameters[-1] if is_shifted else y


def check_channels(x: Any, **others: Any) -> None:
    """Raise where x has no channels, or something else that is there has not one element for each of them."""
    refuse_other_than_tensors("batch_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: got x of shape {x.shape}, expected (N, C) or (N, C, ...)")
    floats("batch_norm", x)
    for name, p in others.items():
        if p is not None:
            check_like("batch_norm", x, name, p, x.shape[1:2])


def check_like(layer: str, x: Any, name: str, p: Any, shape: tuple[int, ...]) -> None:
    """Raise where what belongs to a layer does not fit its input."""
    refuse_other_than_tensors(f"{layer}: {name}", p)
    if p.shape != shape:
        raise ShapeError(f"{layer}: got {name} of shape {p.shape}, expected {shape} for x of shape {x.shape}")
    if p.dtype is not x.dtype:
        raise DTypeError(
            f"{layer}: got x of {x.dtype} and {name} of {p.dtype}, expected the same; convert one, x.to(mf.{p.dtype}) or "
            "module.to(...)"
        )


class BatchNorm(Module):
    """What BatchNorm1d and BatchNorm2d share: all but how many dims the input has.

    Parameters
    ----------
    num_features : int
        C, the number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        How much of each batch goes into the running statistics; None for the mean of all batches so far.
    affine : bool
        Whether there is a learned scale and shift of each channel; they start as 1 and 0.
    track_running_stats : bool
        Whether there are running statistics, which `eval` then normalizes by; without them it is always the batch.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    weight, bias : Parameter (C,) or None
    running_mean, running_var : Buffer (C,) or None
    num_batches_tracked : Buffer of int64 () or None

    Raises
    ------
    ShapeError
        `num_features` is not at least 1; when called, what `batch_norm` raises.
    """

    expected: Mapping[int, str] = MappingProxyType({})  # shapes by their number of dims
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
            raise ShapeError(f"{type(self).__name__}: got {num_features} features, expected at least 1")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        one, zero = ones(num_features, dtype=dtype, backend=backend), zeros(num_features, dtype=dtype, backend=backend)
        self.weight, self.bias = (Parameter(one), Parameter(zero)) if affine else (None, None)
        self.running_mean = Buffer(zero.clone()) if track_running_stats else None
        self.running_var = Buffer(one.clone()) if track_running_stats else None
        self.num_batches_tracked = Buffer(tensor(0, backend=backend)) if track_running_stats else None

    def forward(self, x: Any) -> Any:
        """The same shape; in training the running statistics are changed."""
        self.check(x)
        if self.running_mean is not None and not self.training:
            return by_statistics(x, self.running_mean, self.running_var, self.weight, self.bias, self.eps)
        y, mean, var = by_batch(x, self.weight, self.bias, self.eps)
        if self.running_mean is not None:
            targets = [self.running_mean, self.running_var, self.num_batches_tracked]
            with no_grad():
                if self.momentum is None:
                    store(_averaged, targets, mean, var, unbiasing(x))
                else:
                    store(_counted, targets, mean, var, self.momentum, unbiasing(x))
        return y

    def check(self, x: Any) -> None:
        """Raise where x is of another shape."""
        refuse_other_than_tensors(type(self).__name__, x)
        if x.ndim not in self.expected or x.shape[1] != self.num_features:
            wanted = " or ".join(self.expected.values()).replace("C", str(self.num_features))
            raise ShapeError(f"{type(self).__name__}: got x of shape {x.shape}, expected {wanted}")

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Each feature of a batch (N, C), or each channel of (N, C, L), with mean 0 and variance 1, scaled and shifted.

    Its parameters, attributes and errors are those of `batch_norm` and of all layers of this kind: `num_features`, `eps`,
    `momentum` (None for the mean of all batches), `affine`, `track_running_stats`, `dtype`, `backend`.

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
    """Each channel of a batch of images (N, C, H, W) with mean 0 and variance 1, scaled and shifted.

    Its parameters, attributes and errors are those of `batch_norm` and of all layers of this kind: `num_features`, `eps`,
    `momentum` (None for the mean of all batches), `affine`, `track_running_stats`, `dtype`, `backend`.

    Examples
    --------
    >>> import minifuse as mf
    >>> layer = mf.nn.BatchNorm2d(3)
    >>> layer(mf.rand(2, 3, 4, 5)).shape, list(layer.state_dict())
    ((2, 3, 4, 5), ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'])
    """

    expected = MappingProxyType({4: "(N, C, H, W)"})


def layer_norm(x: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Each example with mean 0 and variance 1 over its last dims; then times `weight`, plus `bias`.

    Parameters
    ----------
    x : Tensor of floats (..., *normalized_shape)
    normalized_shape : sequence of int
        The sizes of the last dims, which are normalized together.
    weight, bias : Tensor (*normalized_shape,) or None
        A scale and a shift of each place.
    eps : float
        Added to the variance, the biased one.

    Returns
    -------
    Tensor
        Of the shape and dtype of x.

    Raises
    ------
    ShapeError
        The last dims of x, or the shape of another tensor, are not `normalized_shape`.
    DTypeError
        x is no tensor of floats, or another tensor is of another element type.

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
    refuse_other_than_tensors("layer_norm", x)
    shape = sizes_of(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise ShapeError(f"layer_norm: got x of shape {x.shape}, expected (..., {wanted}): the last dims are normalized")
    floats("layer_norm", x)
    for name, p in ("weight", weight), ("bias", bias):
        if p is not None:
            check_like("layer_norm", x, name, p, shape)
    body = BoundFunction(_layer_norm, (len(shape), weight is not None, bias is not None))
    return apply(body, x, eps, *given(weight, bias))


def _layer_norm(x: Any, eps: Any, *more: Any) -> Any:
    *parameters, count, is_scaled, is_shifted = more
    dims, size = tuple(range(x.ndim - count, x.ndim)), math.prod(x.shape[x.ndim - count :])
    d = x - reduce_dims(x, dims, True, add) / size
    var = reduce_dims(d * d, dims, True, add) / size
    return scaled_and_shifted(d * rsqrt(var + eps), parameters, is_scaled, is_shifted)


class LayerNorm(Module):
    """Each example with mean 0 and variance 1 over its last dims, then a learned scale and shift of each place.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the last dims of the input, which are normalized together.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there is a learned scale; it starts as 1.
    bias : bool
        Whether there is a learned shift too; it starts as 0.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    weight, bias : Parameter (*normalized_shape,) or None

    Raises
    ------
    ShapeError
        A size is not at least 1, or there is none; when called, what `layer_norm` raises.

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
            raise ShapeError(f"LayerNorm: got normalized_shape {normalized_shape}, expected sizes of at least 1")
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        one, zero = ones(shape, dtype=dtype, backend=backend), zeros(shape, dtype=dtype, backend=backend)
        self.weight = Parameter(one) if elementwise_affine else None
        self.bias = Parameter(zero) if elementwise_affine and bias else None

    def forward(self, x: Any) -> Any:
        """The same shape."""
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"

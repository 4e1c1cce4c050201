"""Gradient clipping, in place, between `backward` and `step`.

One call computes the norm of all gradients, and one call scales all of them. Optimizers are not involved.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..compiler.plan import call
from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, FuseError, GradientError
from ..core.operators import add, maximum, minimum
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..ir.collectives import AllReduce, Axes
from ..ir.placement import sharded_axes
from ..tensors.creation import full
from ..tensors.mutation import store
from ..tensors.tensor import Tensor


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by one factor, so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor, or iterable of tensors
        The parameters whose gradients are clipped; those without a gradient are skipped.
    max_norm : float
        The largest norm allowed.
    norm_type : float
        The power p > 0 of the root of the sum of powers; inf: the largest absolute value.
    error_if_nonfinite : bool
        If True, raise an error if the norm is NaN or infinite. If False, gradients become NaN if the norm is NaN; if it is
        infinite, finite elements become 0 and infinite ones NaN.
    foreach : bool, optional
        Without effect, here and below: all gradients are scaled by one call.

    Returns
    -------
    Tensor, 0-d
        The norm before clipping, 0 if there are no gradients. It is float64 if any gradient is.

    Raises
    ------
    GradientError
        The norm is NaN or infinite, and `error_if_nonfinite` is set; no gradient is changed.
    OverlapError
        Two gradients share memory, so they would be scaled twice.
    ValueError
        `max_norm` is negative or NaN, or the norm type is not positive.
    DTypeError
        A parameter is not a tensor.
    FuseError
        `error_if_nonfinite` is set inside a fused function, where values are not known while tracing.

    Notes
    -----
    Each gradient is multiplied by min(max_norm / (norm + 1e-6), 1), as in `torch.nn.utils.clip_grad_norm_` [1]_. Each
    gradient's squares are summed in its dtype; then these sums are added pairwise. If parameters are sharded, their squares
    are summed over ranks, too, and all ranks get the same norm.

    References
    ----------
    .. [1] R. Pascanu, T. Mikolov, Y. Bengio, On the difficulty of training recurrent neural networks, 2012, arXiv:1211.5063

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([3.0, 4.0], requires_grad=True)
    >>> (p * p / 2).sum().backward()
    >>> norm = mf.optim.clip_grad_norm_([p], max_norm=1.0)
    >>> norm, p.grad
    (tensor(5.), tensor([0.6, 0.8]))
    """
    check_limit("clip_grad_norm_: max_norm", max_norm)
    params = params_with_grad("clip_grad_norm_", parameters)
    grads, axes = [p.grad for p in params], tuple(map(sharded_axes, params))
    total, factor = norm_and_factor("clip_grad_norm_", grads, max_norm, norm_type, error_if_nonfinite, axes)
    if grads:
        with no_grad():
            store(scale_function(len(grads)), grads, factor)
    return total


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of all elements of some tensors, as one vector.

    Parameters and errors as for `clip_grad_norm_`; the tensors are the gradients themselves.

    Examples
    --------
    >>> import minifuse as mf
    >>> mf.nn.utils.get_total_norm([mf.tensor([3.0]), mf.tensor([4.0])])
    tensor(5.)
    """
    xs = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return norm_and_factor("get_total_norm", xs, 1.0, norm_type, error_if_nonfinite)[0]


def norm_over_shards(parameters: Iterable[Tensor]) -> Tensor:
    """Return the norm of the gradients of some parameters, of which ranks hold parts, on all of these ranks."""
    params = params_with_grad("norm_over_shards", parameters)
    axes = tuple(map(sharded_axes, params))
    return norm_and_factor("norm_over_shards", [p.grad for p in params], 1.0, 2.0, False, axes)[0]


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients by one factor, given their total norm, so that it is at most `max_norm`.

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([3.0, 4.0], requires_grad=True)
    >>> (p * p / 2).sum().backward()
    >>> mf.nn.utils.clip_grads_with_norm_([p], 1.0, mf.tensor(5.0))
    >>> p.grad
    tensor([0.6, 0.8])
    """
    check_limit("clip_grads_with_norm_: max_norm", max_norm)
    grads = [p.grad for p in params_with_grad("clip_grads_with_norm_", parameters)]
    if grads:
        with no_grad():
            store(scale_function(len(grads)), grads, call(factor_of, total_norm, float(max_norm)))


def norm_and_factor(
    caller: str,
    grads: Sequence[Any],
    max_norm: float,
    norm_type: float,
    error_if_nonfinite: bool,
    axes: tuple[Axes | None, ...] = (),
) -> tuple[Tensor, Tensor]:
    """Return the total norm of gradients, and the factor that scales it to at most a limit.

    `axes` are those of the ranks that hold the other shards of each gradient.
    """
    if not norm_type > 0:
        raise ValueError(f"{caller}: got norm_type={norm_type}, expected a positive number or math.inf")
    if error_if_nonfinite and active_tracer() is not None:
        raise FuseError(
            f"{caller}: error_if_nonfinite=True reads the norm, but values do not exist while @mf.fuse traces a "
            "function; return the norm, and check it after the call"
        )
    if not grads:
        return full((), 0.0), full((), 1.0)
    with no_grad():
        norm, factor = call(norm_function(axes or (None,) * len(grads), float(norm_type)), *grads, float(max_norm))
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise GradientError(
                f"{caller}: got gradients with norm {norm.item()}, expected a finite one; nothing was changed. Use "
                "a lower learning rate, or find the first layer whose gradient is not finite"
            )
    return norm, factor


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of all gradients to the range from -clip_value to clip_value.

    Parameters
    ----------
    parameters : Tensor, or iterable of tensors
        The parameters whose gradients are clipped; those without a gradient are skipped.
    clip_value : float
        The largest absolute value allowed. NaN stays NaN.

    Raises
    ------
    OverlapError, ValueError, DTypeError
        In the same cases as for `clip_grad_norm_`.

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([3.0, -0.1], requires_grad=True)
    >>> (p * p / 2).sum().backward()
    >>> mf.optim.clip_grad_value_([p], 0.5)
    >>> p.grad
    tensor([ 0.5, -0.1])
    """
    check_limit("clip_grad_value_: clip_value", clip_value)
    grads = [p.grad for p in params_with_grad("clip_grad_value_", parameters)]
    if grads:
        with no_grad():
            store(clip_function(len(grads)), grads, float(clip_value))


def params_with_grad(caller: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """Return the parameters that have a gradient, each once."""
    params = [parameters] if isinstance(parameters, Tensor) else parameters
    by_id = {}
    for p in params:
        if not isinstance(p, Tensor):
            raise DTypeError(f"{caller}: got a parameter of type {type(p).__name__}, expected tensors")
        if p.grad is not None:
            by_id[id(p)] = p
    return list(by_id.values())


def check_limit(name: str, x: float) -> None:
    """Raise ValueError if a limit is negative or NaN."""
    if not x >= 0:
        raise ValueError(f"{name} is {x}, expected a number of at least 0")


# The inputs of these functions are all gradients, then one number. `count` is the number of gradients; it is part of the key
# of `cache` only, so there is one function for each number of gradients.


@cache
def norm_function(axes: tuple[Axes | None, ...], norm_type: float) -> Callable[..., tuple[Array, Array]]:
    """Return a function that computes the norm of gradients, and the factor that scales it to at most a limit."""

    def norm(*inputs: Array) -> tuple[Array, Array]:
        *grads, max_norm = inputs
        totals = []
        for held in dict.fromkeys(axes):  # a sum of the gradients that are sharded over the same axes
            total = power_sum([g for g, own in zip(grads, axes, strict=True) if own == held], norm_type)
            if held is not None:
                (total,) = AllReduce(held, maximum if norm_type == math.inf else add)(total)
            totals.append(total)
        if norm_type == math.inf:
            result = maximum_of(totals)
        else:
            result = pairwise_sum(totals)
            result = result.sqrt() if norm_type == 2 else result ** (1 / norm_type)
        return result, factor_of(result, max_norm)

    return norm


def power_sum(grads: Sequence[Array], norm_type: float) -> Array:
    """Return the sum of powers of all elements; for the norm of type inf, the largest absolute value."""
    if norm_type == math.inf:
        parts = [g.abs().max() for g in grads if g.size] or [grads[0].sum()]
    else:
        parts = [(g * g).sum() if norm_type == 2 else (g.abs() ** norm_type).sum() for g in grads]
    total: Array = (maximum_of if norm_type == math.inf else pairwise_sum)(parts)
    return total


def factor_of(total: Array, max_norm: Array) -> Array:
    """Return the factor that scales a norm to at most a limit."""
    return minimum(max_norm / (total + 1e-6), 1.0)


@cache
def scale_function(count: int) -> Callable[..., tuple[Array, ...]]:
    """Return a function that multiplies all gradients by a factor."""

    def shrink(*inputs: Array) -> tuple[Array, ...]:
        *grads, factor = inputs
        return tuple(g * factor for g in grads)

    return shrink


@cache
def clip_function(count: int) -> Callable[..., tuple[Array, ...]]:
    """Return a function that clamps all gradients."""

    def clip(*inputs: Array) -> tuple[Array, ...]:
        *grads, limit = inputs
        return tuple(maximum(minimum(g, limit), -limit) for g in grads)

    return clip


def pairwise_sum(xs: list[A]) -> A:
    """Sum a few numbers pairwise, which keeps rounding errors small."""
    while len(xs) > 1:
        xs = [a + b for a, b in zip(xs[::2], xs[1::2], strict=False)] + xs[len(xs) // 2 * 2 :]
    return xs[0]


def maximum_of(xs: list[A]) -> A:
    """Return the largest of a few numbers; NaN if one is NaN."""
    result = xs[0]
    for x in xs[1:]:
        result = maximum(result, x)
    return result

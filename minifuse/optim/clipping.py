"""Clipping: gradients made smaller where they are too large, in place, between `backward` and `step`.

The norm of all gradients is one captured call, and so is the change of all of them. Knows no optimizer.
"""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from ..compiler.plan import call
from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, FuseError, GradientError
from ..core.operators import maximum, minimum
from ..tensors.creation import full
from ..tensors.mutation import store
from ..tensors.tensor import Tensor


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """Make all gradients smaller by one factor, so that the norm of all of them together is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor, or iterable of tensors
        Whose gradients; those without one are left out.
    max_norm : float
        The largest norm.
    norm_type : {2.0, inf}
        The root of the sum of squares, or the largest magnitude.
    error_if_nonfinite : bool
        Whether a norm that is NaN or infinite is an error; else all gradients become NaN, or 0, as the factor is.

    Returns
    -------
    Tensor, 0-d
        The norm before; float64 if any gradient is. 0 where there are no gradients.

    Raises
    ------
    GradientError
        The norm is NaN or infinite, and `error_if_nonfinite`; no gradient is changed.
    OverlapError
        Two gradients share memory, which would be made smaller twice.
    ValueError
        `max_norm` is below 0 or NaN, or the norm is another one.
    DTypeError
        There is something else than tensors among the parameters.
    FuseError
        `error_if_nonfinite` inside a fused function, where there are no values to look at.

    Notes
    -----
    Each gradient is multiplied by min(max_norm / (norm + 1e-6), 1), as in `torch.nn.utils.clip_grad_norm_` [1]_. Squares are
    added up in the gradients' own element types, tensor by tensor, and these sums in pairs.

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
    if norm_type not in (2, math.inf):
        raise ValueError(f"clip_grad_norm_: norm_type is {norm_type}, expected 2.0 or math.inf")
    refuse_limit("clip_grad_norm_: max_norm", max_norm)
    if error_if_nonfinite and active_tracer() is not None:
        raise FuseError(
            "clip_grad_norm_: error_if_nonfinite asks for the value of the norm, and a fused function is being captured; "
            "return the norm, and look at it after the call"
        )
    grads = [p.grad for p in with_gradient("clip_grad_norm_", parameters)]
    if not grads:
        return full((), 0.0)
    with no_grad():
        norm, factor = call(measured(len(grads), norm_type == math.inf), *grads, float(max_norm))
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise GradientError(
                f"clip_grad_norm_: the norm of the gradients is {norm.item()}; nothing was changed. Look for the first "
                "layer whose gradient is not finite, or use a lower learning rate"
            )
        store(times(len(grads)), grads, factor)
    found: Tensor = norm
    return found


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Bring each element of all gradients into the range from -clip_value to clip_value.

    Parameters
    ----------
    parameters : Tensor, or iterable of tensors
        Whose gradients; those without one are left out.
    clip_value : float
        The largest magnitude of an element. NaN stays NaN.

    Raises
    ------
    OverlapError, ValueError, DTypeError
        As `clip_grad_norm_`.

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([3.0, -0.1], requires_grad=True)
    >>> (p * p / 2).sum().backward()
    >>> mf.optim.clip_grad_value_([p], 0.5)
    >>> p.grad
    tensor([ 0.5, -0.1])
    """
    refuse_limit("clip_grad_value_: clip_value", clip_value)
    grads = [p.grad for p in with_gradient("clip_grad_value_", parameters)]
    if grads:
        with no_grad():
            store(bounded(len(grads)), grads, float(clip_value))


def with_gradient(name: str, parameters: Any) -> list[Any]:
    """The parameters that have a gradient, each once."""
    params: Iterable[Any] = [parameters] if isinstance(parameters, Tensor) else parameters
    found = {}
    for p in params:
        if not isinstance(p, Tensor):
            raise DTypeError(f"{name}: got {type(p).__name__} among the parameters, expected tensors")
        if p.grad is not None:
            found[id(p)] = p
    return list(found.values())


def refuse_limit(what: str, x: Any) -> None:
    """Raise for a limit that is none."""
    if not x >= 0:
        raise ValueError(f"{what} is {x}, expected at least 0")


# What is captured: functions of all gradients, then of what else there is.


@cache
def measured(count: int, is_largest: bool) -> Callable[..., tuple[Any, Any]]:
    """The norm of all gradients, and the factor that brings it below a limit."""

    def norm(*inputs: Any) -> tuple[Any, Any]:
        *grads, max_norm = inputs
        if is_largest:
            found = highest([g.abs().max() for g in grads if g.size] or [grads[0].sum()])
        else:
            found = total([(g * g).sum() for g in grads]).sqrt()
        return found, minimum(max_norm / (found + 1e-6), 1.0)

    return norm


@cache
def times(count: int) -> Callable[..., tuple[Any, ...]]:
    """All gradients times a factor."""

    def shrink(*inputs: Any) -> tuple[Any, ...]:
        *grads, factor = inputs
        return tuple(g * factor for g in grads)

    return shrink


@cache
def bounded(count: int) -> Callable[..., tuple[Any, ...]]:
    """The gradients, brought into a range."""

    def clip(*inputs: Any) -> tuple[Any, ...]:
        *grads, limit = inputs
        return tuple(maximum(minimum(g, limit), -limit) for g in grads)

    return clip


def total(xs: list[Any]) -> Any:
    """The sum of a few numbers, in pairs, pairs of pairs, and so on: as exact as a sum of many can be."""
    while len(xs) > 1:
        xs = [a + b for a, b in zip(xs[::2], xs[1::2], strict=False)] + xs[len(xs) // 2 * 2 :]
    return xs[0]


def highest(xs: list[Any]) -> Any:
    """The largest of a few numbers; NaN where one is."""
    found = xs[0]
    for x in xs[1:]:
        found = maximum(found, x)
    return found

"""Stochastic gradient descent, with optional momentum."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, UpdateRule


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and weight decay, as `torch.optim.SGD`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update: leaves that require a gradient; or parameter groups.
    lr : float
        The learning rate.
    momentum : float
        Factor of the previous update that is added to each step; 0 for none.
    dampening : float
        Only 0 is supported.
    weight_decay : float
        L2 penalty: weight_decay times the parameter is added to the gradient.
    nesterov : bool
        If True, use Nesterov momentum.
    flags
        `maximize`, and others, as for `Optimizer`.

    Raises
    ------
    ValueError, GradientError, DTypeError
        In the same cases as `add_param_group`; ValueError also for `nesterov` without momentum.

    Notes
    -----
    d = grad + weight_decay * p;  m = momentum * m + d;  p = p - lr * m, or p - lr * (d + momentum * m) with Nesterov [1]_.

    References
    ----------
    .. [1] I. Sutskever, J. Martens, G. Dahl, G. Hinton, On the importance of initialization and momentum in deep learning,
       2013

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = mf.optim.SGD([p], lr=0.1)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    tensor([0.8, 1.6], requires_grad=True)
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        **flags: object,
    ) -> None:
        if dampening:
            raise ValueError(f"SGD: got dampening={dampening}, which is not supported; write dampening=0, and a lower lr")
        super().__init__(params, flags, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        if settings["nesterov"] and not settings["momentum"]:
            raise ValueError(
                "SGD: got nesterov=True with momentum=0, expected a momentum; write momentum=0.9, or nesterov=False"
            )

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule, by the kind of momentum."""
        if not settings["momentum"]:
            return sgd_step, {}
        return nesterov_step if settings["nesterov"] else momentum_step, {"momentum_buffer": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        return [
            self.number(settings, name) for name in ("lr", "weight_decay", "momentum")[: 3 if settings["momentum"] else 2]
        ]


# Update rules: (parameter, its state tensors, its gradient, numbers) -> (new parameter, new state tensors).


def sgd_step(p: Array, g: Array, lr: Array, decay: Array) -> tuple[Array, ...]:
    """Return the parameter after a step against the gradient."""
    return (p - lr * (g + decay * p),)


def momentum_step(p: Array, m: Array, g: Array, lr: Array, decay: Array, momentum: Array) -> tuple[Array, ...]:
    """Return the parameter and the momentum buffer after a step with momentum."""
    m = momentum * m + (g + decay * p)
    return p - lr * m, m


def nesterov_step(p: Array, m: Array, g: Array, lr: Array, decay: Array, momentum: Array) -> tuple[Array, ...]:
    """Return the parameter and the momentum buffer after a step with Nesterov momentum."""
    d = g + decay * p
    m = momentum * m + d
    return p - lr * (d + momentum * m), m

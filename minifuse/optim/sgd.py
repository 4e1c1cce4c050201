"""Stochastic gradient descent: against the gradient, or along a momentum that it turns."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..tensors.tensor import Tensor
from .optimizer import Optimizer, change


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and weight decay, as `torch.optim.SGD`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        What to change: leaves that require a gradient.
    lr : float
        The learning rate.
    momentum : float
        How much of the last change goes on; 0 for none.
    weight_decay : float
        How strongly parameters are drawn to 0: added to the gradient, times the parameter.
    nesterov : bool
        Whether to look ahead along the momentum.

    Raises
    ------
    ValueError, GradientError, DTypeError
        As `add_param_group`; also if Nesterov is asked for without momentum.

    Notes
    -----
    d = grad + weight_decay * p;  m = momentum * m + d;  p = p - lr * m, or p - lr * (d + momentum * m) with Nesterov [1]_.
    There is no dampening.

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

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise where a setting is out of its range."""
        super().check(settings)
        if settings["nesterov"] and not settings["momentum"]:
            raise ValueError(
                "SGD: nesterov looks ahead along the momentum, which is 0; give momentum=0.9, or leave nesterov out"
            )

    def update(self, params: list[Tensor], settings: Mapping[str, Any]) -> None:
        """One call for all."""
        lr, momentum, decay = (self.number(settings, name) for name in ("lr", "momentum", "weight_decay"))
        grads = [p.grad for p in params]
        if momentum:
            buffers = self.remembered(params, "momentum_buffer")
            change(look_ahead if settings["nesterov"] else roll, [params, buffers], grads, lr, decay, momentum)
        else:
            change(descend, [params], grads, lr, decay)


# The formulas: a parameter, what is remembered of it, its gradient and numbers -> the new parameter and what is remembered.


def descend(p: Any, g: Any, lr: Any, decay: Any) -> tuple[Any, ...]:
    """Against the gradient."""
    return (p - lr * (g + decay * p),)


def roll(p: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any) -> tuple[Any, ...]:
    """Along the momentum, which the gradient turns."""
    m = momentum * m + (g + decay * p)
    return p - lr * m, m


def look_ahead(p: Any, m: Any, g: Any, lr: Any, decay: Any, momentum: Any) -> tuple[Any, ...]:
    """Nesterov's: where the momentum will have led, and against the gradient."""
    d = g + decay * p
    m = momentum * m + d
    return p - lr * (d + momentum * m), m

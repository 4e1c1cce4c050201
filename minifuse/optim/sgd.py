"""Stochastic gradient descent, with optional momentum."""

from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, apply_rule


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
    weight_decay : float
        L2 penalty: weight_decay times the parameter is added to the gradient.
    nesterov : bool
        If True, use Nesterov momentum.

    Raises
    ------
    ValueError, GradientError, DTypeError
        In the same cases as `add_param_group`; ValueError also for `nesterov` without momentum.

    Notes
    -----
    d = grad + weight_decay * p;  m = momentum * m + d;  p = p - lr * m, or p - lr * (d + momentum * m) with Nesterov [1]_.
    Dampening is not supported.

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
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        if settings["nesterov"] and not settings["momentum"]:
            raise ValueError(
                "SGD: got nesterov=True with momentum=0, expected a momentum; write momentum=0.9, or nesterov=False"
            )

    def update(self, params: list[Tensor], settings: DynamicDict) -> None:
        """Update all parameters with one call."""
        lr, momentum, decay = (self.number(settings, name) for name in ("lr", "momentum", "weight_decay"))
        grads = [p.grad for p in params]
        if momentum:
            buffers = self.state_tensors(params, "momentum_buffer")
            apply_rule(
                nesterov_step if settings["nesterov"] else momentum_step, [params, buffers], grads, lr, decay, momentum
            )
        else:
            apply_rule(sgd_step, [params], grads, lr, decay)


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

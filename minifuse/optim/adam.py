"""Adam and AdamW: the step of each element is the running mean of its gradient, divided by its root mean square."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.operators import maximum, sqrt
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import FIXED_SETTINGS, Optimizer, Params, UpdateRule


class Adam(Optimizer):
    """Adam: step by the running mean of the gradient over the root of its running mean square, as `torch.optim.Adam`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update: leaves that require a gradient; or parameter groups.
    lr : float
        The learning rate: about the distance that an element moves in a step.
    betas : (float, float)
        Decay of the running mean, and of the running mean square, in each step.
    eps : float
        Added to the denominator, for gradients close to 0.
    weight_decay : float
        L2 penalty: weight_decay times the parameter is added to the gradient.
    amsgrad : bool
        If True, divide by the root of the largest running mean square so far.
    flags
        `maximize`, and others, as for `Optimizer`.

    Raises
    ------
    ValueError, GradientError, DTypeError
        In the same cases as `add_param_group`.

    Notes
    -----
    At step t, with d = grad + weight_decay * p [1]_:

        m = m + (1 - beta1) * (d - m)
        v = beta2 * v + (1 - beta2) * d * d
        p = p - lr / (1 - beta1 ** t) * m / (sqrt(v) / sqrt(1 - beta2 ** t) + eps)

    Each parameter has its own step count: a step in which it has no gradient does not count. All parameters with the same
    count are updated by one call.

    References
    ----------
    .. [1] D. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, 2014, arXiv:1412.6980

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = mf.optim.Adam([p], lr=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    is_decoupled = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, flags, **settings)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule, by the kind of weight decay and by `amsgrad`."""
        states = dict.fromkeys(["exp_avg", "exp_avg_sq", "max_exp_avg_sq"][: 3 if settings["amsgrad"] else 2], 0.0)
        rules = (adamw_step, adamw_amsgrad_step) if self.is_decoupled else (adam_step, adam_amsgrad_step)
        return rules[settings["amsgrad"]], states

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the corrections of the means for step t, and the settings."""
        lr, eps, decay = (self.number(settings, name) for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = map(float, settings["betas"])
        decay = 1 - lr * decay if self.is_decoupled else decay
        step_size, correction2 = lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
        return step_size, correction2, eps, decay, 1 - beta1, beta2, 1 - beta2


class AdamW(Adam):
    """Adam with decoupled weight decay, as `torch.optim.AdamW`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update: leaves that require a gradient; or parameter groups.
    lr : float
        The learning rate: about the distance that an element moves in a step.
    betas : (float, float)
        Decay of the running mean, and of the running mean square, in each step.
    eps : float
        Added to the denominator, for gradients close to 0.
    weight_decay : float
        Each step multiplies the parameter by 1 - lr * weight_decay.
    amsgrad : bool
        If True, divide by the root of the largest running mean square so far.
    flags
        `maximize`, and others, as for `Optimizer`.

    Raises
    ------
    ValueError, GradientError, DTypeError
        In the same cases as `add_param_group`.

    Notes
    -----
    The formula of `Adam` with d = grad, starting from p * (1 - lr * weight_decay) instead of p [1]_: the decay does not
    depend on the size of the gradients.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, Decoupled Weight Decay Regularization, 2017, arXiv:1711.05101

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = mf.optim.AdamW([p], lr=0.5, weight_decay=0.5)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    tensor([ 0.25, -1.  ], requires_grad=True)
    """

    is_decoupled = True
    fixed: Mapping[str, object] = {**FIXED_SETTINGS, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **flags: object,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **flags)


# Update rules: (parameter, its state tensors, its gradient, numbers) -> (new parameter, new state tensors).


def adam_step(p: Array, m: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean and mean square after a step of Adam."""
    step_size, correction2, eps, decay, one_minus_beta1, beta2, one_minus_beta2 = numbers
    d = g + decay * p
    m = m + one_minus_beta1 * (d - m)
    v = beta2 * v + one_minus_beta2 * (d * d)
    return p - step_size * m / (sqrt(v) / correction2 + eps), m, v


def adamw_step(p: Array, m: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean and mean square after a step of AdamW, which decays the parameter first."""
    step_size, correction2, eps, decay_factor, one_minus_beta1, beta2, one_minus_beta2 = numbers
    m = m + one_minus_beta1 * (g - m)
    v = beta2 * v + one_minus_beta2 * (g * g)
    return decay_factor * p - step_size * m / (sqrt(v) / correction2 + eps), m, v


def adam_amsgrad_step(p: Array, m: Array, v: Array, largest: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the state after a step of Adam with the largest mean square so far."""
    step_size, correction2, eps, decay, one_minus_beta1, beta2, one_minus_beta2 = numbers
    d = g + decay * p
    m = m + one_minus_beta1 * (d - m)
    v = beta2 * v + one_minus_beta2 * (d * d)
    largest = maximum(largest, v)
    return p - step_size * m / (sqrt(largest) / correction2 + eps), m, v, largest


def adamw_amsgrad_step(p: Array, m: Array, v: Array, largest: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the state after a step of AdamW with the largest mean square so far."""
    step_size, correction2, eps, decay_factor, one_minus_beta1, beta2, one_minus_beta2 = numbers
    m = m + one_minus_beta1 * (g - m)
    v = beta2 * v + one_minus_beta2 * (g * g)
    largest = maximum(largest, v)
    return decay_factor * p - step_size * m / (sqrt(largest) / correction2 + eps), m, v, largest

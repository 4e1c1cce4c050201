"""Variants of Adam: Adamax, NAdam and RAdam."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.operators import maximum, sqrt, where
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, UpdateRule


class Adamax(Optimizer):
    """Adamax: Adam that divides by the largest gradient so far, which decays; as `torch.optim.Adamax`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate.
    betas : (float, float)
        Decay of the running mean, and of the largest gradient, in each step.
    eps : float
        Added to the absolute gradient.
    weight_decay : float
        L2 penalty.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    d = grad + weight_decay * p;  m = m + (1 - beta1) * (d - m);  u = max(beta2 * u, abs(d) + eps);
    p = p - lr / (1 - beta1 ** t) * m / u [1]_.

    References
    ----------
    .. [1] D. Kingma, J. Ba, Adam: A Method for Stochastic Optimization, 2014, arXiv:1412.6980, section 7
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **flags: object,
    ) -> None:
        super().__init__(params, flags, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return adamax_step, {"exp_avg": 0.0, "exp_inf": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the step size, and the settings."""
        lr, eps, decay = (self.number(settings, name) for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = map(float, settings["betas"])
        return lr / (1 - beta1**t), eps, decay, 1 - beta1, beta2


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov momentum, whose factor grows with the steps; as `torch.optim.NAdam`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate.
    betas : (float, float)
        Decay of the running mean, and of the running mean square, in each step.
    eps : float
        Added to the denominator.
    weight_decay : float
        L2 penalty, or with `decoupled_weight_decay` as in AdamW.
    momentum_decay : float
        How fast the factor of the momentum approaches beta1.
    decoupled_weight_decay : bool
        Whether each step multiplies the parameter by 1 - lr * weight_decay, instead of the L2 penalty.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    mu(t) = beta1 * (1 - 0.96 ** (t * momentum_decay) / 2), and M the product of mu(1) to mu(t). With m and v of Adam and
    c = sqrt(v / (1 - beta2 ** t)) + eps:  p = p - lr * (1 - mu(t)) / (1 - M) * d / c - lr * mu(t + 1) / (1 - M * mu(t + 1))
    * m / c [1]_.

    References
    ----------
    .. [1] T. Dozat, Incorporating Nesterov Momentum into Adam, 2016
    """

    scalar_states = ("mu_product",)

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        settings |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        super().__init__(params, flags, **settings)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return nadam_step, {"mu_product": 1.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the factors of the momentum in this step and the next, the correction of v, and the settings."""
        lr, eps, momentum_decay = (self.number(settings, name) for name in ("lr", "eps", "momentum_decay"))
        beta1, beta2 = map(float, settings["betas"])
        mu, next_mu = (beta1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
        return lr, mu, next_mu, 1 - beta2**t, eps, *split_decay(self, settings), 1 - beta1, beta2


class RAdam(Optimizer):
    """RAdam: Adam whose first steps, while the mean square is unreliable, do not divide by it; as `torch.optim.RAdam`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The learning rate.
    betas : (float, float)
        Decay of the running mean, and of the running mean square, in each step.
    eps : float
        Added to the denominator.
    weight_decay : float
        L2 penalty, or with `decoupled_weight_decay` as in AdamW.
    decoupled_weight_decay : bool
        Whether each step multiplies the parameter by 1 - lr * weight_decay, instead of the L2 penalty.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    With R = 2 / (1 - beta2) - 1 and r = R - 2 * t * beta2 ** t / (1 - beta2 ** t), the step of Adam is multiplied by
    sqrt((r - 4) * (r - 2) * R / ((R - 4) * (R - 2) * r)) if r > 5; otherwise it is lr / (1 - beta1 ** t) * m [1]_.

    References
    ----------
    .. [1] L. Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2019, arXiv:1908.03265
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        **flags: object,
    ) -> None:
        settings = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, flags, **settings, decoupled_weight_decay=decoupled_weight_decay)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return radam_step, {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the step size, the length of the mean, the factor of the rectified step, and the settings."""
        lr, eps = self.number(settings, "lr"), self.number(settings, "eps")
        beta1, beta2 = map(float, settings["betas"])
        limit, correction2 = 2 / (1 - beta2) - 1, 1 - beta2**t
        length = limit - 2 * t * beta2**t / correction2
        factor = 0.0  # unused: if the limit is at most 5, the length never reaches 5
        if limit > 5:
            factor = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length) * correction2
        return lr / (1 - beta1**t), length, factor, eps, *split_decay(self, settings), 1 - beta1, beta2


def split_decay(optimizer: Optimizer, settings: DynamicDict) -> tuple[Any, Any]:
    """Return the factor of the parameter, and that of the parameter in the gradient, for both kinds of weight decay."""
    decay = optimizer.number(settings, "weight_decay")
    return (1 - optimizer.number(settings, "lr") * decay, 0.0) if settings["decoupled_weight_decay"] else (1.0, decay)


# Update rules: (parameter, its state tensors, its gradient, numbers) -> (new parameter, new state tensors).


def adamax_step(p: Array, m: Array, u: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean and largest gradient after a step of Adamax."""
    step_size, eps, decay, one_minus_beta1, beta2 = numbers
    d = g + decay * p
    m = m + one_minus_beta1 * (d - m)
    u = maximum(beta2 * u, abs(d) + eps)
    return p - step_size * m / u, m, u


def nadam_step(p: Array, product: Array, m: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the state after a step of NAdam."""
    lr, mu, next_mu, correction2, eps, shrink, decay, one_minus_beta1, beta2 = numbers
    d = g + decay * p
    product = product * mu
    m = m + one_minus_beta1 * (d - m)
    v = beta2 * v + (1 - beta2) * (d * d)
    c = sqrt(v / correction2) + eps
    step = (1 - mu) / (1 - product) * d + next_mu / (1 - product * next_mu) * m
    return shrink * p - lr * step / c, product, m, v


def radam_step(p: Array, m: Array, v: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, mean and mean square after a step of RAdam."""
    step_size, length, factor, eps, shrink, decay, one_minus_beta1, beta2 = numbers
    d = g + decay * p
    m = m + one_minus_beta1 * (d - m)
    v = beta2 * v + (1 - beta2) * (d * d)
    return shrink * p - step_size * m * where(length > 5, sqrt(factor) / (sqrt(v) + eps), 1.0), m, v

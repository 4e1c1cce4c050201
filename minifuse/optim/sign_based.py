"""Optimizers whose steps depend on signs, and an average of steps: Rprop, Lion and ASGD."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.operators import maximum, minimum, where
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import Optimizer, Params, UpdateRule


class Rprop(Optimizer):
    """Rprop: a step size for each element, which grows while its gradient keeps its sign; as `torch.optim.Rprop`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The first step size.
    etas : (float, float)
        Factors of the step size where the sign changes, and where it stays.
    step_sizes : (float, float)
        The smallest and the largest step size.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    For whole data sets, not for batches [1]_. Where the sign changes, the element does not move in this step.

    References
    ----------
    .. [1] M. Riedmiller, H. Braun, A Direct Adaptive Method for Faster Backpropagation Learning, 1993
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        **flags: object,
    ) -> None:
        super().__init__(params, flags, lr=lr, etas=tuple(etas), step_sizes=tuple(step_sizes))

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        smaller, larger = settings["etas"]
        if not 0 < smaller < 1 < larger:
            raise ValueError(f"{self._name}: got etas={settings['etas']}, expected 0 < etas[0] < 1 < etas[1]")

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return rprop_step, {"prev": 0.0, "step_size": "lr"}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        return [float(x) for x in (*settings["etas"], *settings["step_sizes"])]


class Lion(Optimizer):
    """Lion: a step of equal size in each element, along the sign of a running mean. Not in PyTorch.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The step size, 3 to 10 times smaller than that of AdamW.
    betas : (float, float)
        Share of the running mean in the step; decay of the running mean.
    weight_decay : float
        Each step multiplies the parameter by 1 - lr * weight_decay.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    p = (1 - lr * weight_decay) * p - lr * sign(beta1 * m + (1 - beta1) * grad);  m = beta2 * m + (1 - beta2) * grad [1]_.

    References
    ----------
    .. [1] X. Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, arXiv:2302.06675

    Examples
    --------
    >>> import minifuse as mf
    >>> p = mf.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = mf.optim.Lion([p], lr=0.25)
    >>> (p * p).sum().backward()
    >>> optimizer.step()
    >>> p
    tensor([ 0.75, -1.75], requires_grad=True)
    """

    counts_steps = False

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        **flags: object,
    ) -> None:
        super().__init__(params, flags, lr=lr, betas=tuple(betas), weight_decay=weight_decay)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its state."""
        return lion_step, {"exp_avg": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the settings."""
        lr, decay = self.number(settings, "lr"), self.number(settings, "weight_decay")
        return lr, 1 - lr * decay, *map(float, settings["betas"])


class ASGD(Optimizer):
    """Averaged stochastic gradient descent, with a decaying rate; as `torch.optim.ASGD`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    lr : float
        The first learning rate.
    lambd : float
        Decay of the parameter, relative to the rate.
    alpha : float
        Power of the decay of the rate.
    t0 : float
        The step after which the average begins.
    weight_decay : float
        L2 penalty.
    flags
        `maximize`, and others, as for `Optimizer`.

    Notes
    -----
    After step t the rate is lr / (1 + lambd * lr * t) ** alpha. The average is in the state, as "ax" [1]_.

    References
    ----------
    .. [1] B. Polyak, A. Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992
    """

    scalar_states = ("eta", "mu")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        **flags: object,
    ) -> None:
        super().__init__(params, flags, lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay)

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the rule and its states."""
        return asgd_step, {"eta": "lr", "mu": 1.0, "ax": 0.0}

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the rate after step t, the number of averaged steps, and the settings."""
        lr, lambd, alpha, t0, decay = (
            self.number(settings, name) for name in ("lr", "lambd", "alpha", "t0", "weight_decay")
        )
        return lr / (1 + lambd * lr * t) ** alpha, t - t0, lambd, decay


# Update rules: (parameter, its state tensors, its gradient, numbers) -> (new parameter, new state tensors).


def sign_of(x: Array) -> Array:
    """Return -1, 0 or 1."""
    return where(x > 0, 1.0, where(x < 0, -1.0, 0 * x))


def rprop_step(p: Array, before: Array, size: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, its gradient and its step sizes after a step."""
    smaller, larger, low, high = numbers
    agreement = g * before
    size = maximum(minimum(size * where(agreement > 0, larger, where(agreement < 0, smaller, 1.0)), high), low)
    g = where(agreement < 0, 0.0, g)
    return p - sign_of(g) * size, g, size


def lion_step(p: Array, m: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter and the running mean after a step."""
    lr, shrink, beta1, beta2 = numbers
    return shrink * p - lr * sign_of(beta1 * m + (1 - beta1) * g), beta2 * m + (1 - beta2) * g


def asgd_step(p: Array, eta: Array, mu: Array, mean: Array, g: Array, *numbers: Array) -> tuple[Array, ...]:
    """Return the parameter, the next rate, the next weight of the average, and the average after a step."""
    next_eta, averaged, lambd, decay = numbers
    p = p * (1 - lambd * eta) - eta * (g + decay * p)
    return p, next_eta + 0 * eta, 1 / maximum(averaged + 0 * mu, 1.0), where(mu == 1, p, mean + mu * (p - mean))

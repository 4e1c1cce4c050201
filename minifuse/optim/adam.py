"""Adam and AdamW: the step of each element is the running mean of its gradient, divided by its root mean square."""

from collections.abc import Mapping
from functools import partial

from ..core.dispatch import active_tracer
from ..core.operators import sqrt
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.tensor import Tensor
from .optimizer import FIXED_SETTINGS, Optimizer, Params, apply_rule


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
    ) -> None:
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is out of its range."""
        super().check(settings)
        betas = settings["betas"]
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{self._name}: got betas={betas}, expected two numbers, each at least 0 and less than 1")

    def update(self, params: list[Tensor], settings: DynamicDict) -> None:
        """Update parameters, with one call for each step count."""
        lr, eps, decay = (self.number(settings, name) for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = map(float, settings["betas"])
        rule, decay = (adamw_step, 1 - lr * decay) if self.is_decoupled else (adam_step, decay)
        for t, group in self.group_by_steps(params):
            means, squares = self.state_tensors(group, "exp_avg"), self.state_tensors(group, "exp_avg_sq")
            step_size, correction2 = lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
            numbers = step_size, correction2, eps, decay, 1 - beta1, beta2, 1 - beta2
            apply_rule(rule, [group, means, squares], [p.grad for p in group], *numbers)

    def group_by_steps(self, params: list[Tensor]) -> list[tuple[int, list[Tensor]]]:
        """Group parameters by their number of steps, including the current one.

        Inside a fused function, each call reads the count of each group again. A guard checks that the parameters of a group
        still have equal counts; if one of them has taken a step alone, the function is traced again.
        """
        groups: dict[int, list[Tensor]] = {}
        for p in params:
            groups.setdefault(self.steps_of(p) + 1, []).append(p)
        tracer = active_tracer()
        if tracer is None:
            return [(self.count(group), group) for group in groups.values()]
        tracer.add_guard((id(self), *map(id, params)), partial(self.step_count_pattern, params))
        return [(tracer.call_counter(partial(self.count, group), t), group) for t, group in groups.items()]

    def steps_of(self, p: Tensor) -> int:
        """Return the number of steps that a parameter has taken."""
        step_count: int = self.state[p].get("step", 0) if p in self.state else 0
        return step_count

    def step_count_pattern(self, params: list[Tensor]) -> tuple[int, ...]:
        """Return which parameters have equal step counts: for each, the index of the first one with the same count."""
        first_index: dict[int, int] = {}
        return tuple(first_index.setdefault(self.steps_of(p), k) for k, p in enumerate(params))

    def count(self, params: list[Tensor]) -> int:
        """Increment the step count of parameters with equal counts, and return the new count."""
        step_count = self.steps_of(params[0]) + 1
        for p in params:
            self.state.setdefault(p, {})["step"] = step_count
        return step_count


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
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


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

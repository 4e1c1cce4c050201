"""Adam, and AdamW: each element moves at a pace of its own, that of its gradient's mean over its spread."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ..core.dispatch import active_tracer
from ..core.operators import sqrt
from ..tensors.tensor import Tensor
from .optimizer import FIXED, Optimizer, change


class Adam(Optimizer):
    """Steps of the gradient's mean over the root of its mean square, both running, as `torch.optim.Adam`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        What to change: leaves that require a gradient.
    lr : float
        The learning rate: about how far an element moves in a step.
    betas : (float, float)
        How much of the running mean, and of the running mean square, is kept in a step.
    eps : float
        Added to the root, for gradients near 0.
    weight_decay : float
        How strongly parameters are drawn to 0: added to the gradient, times the parameter.

    Raises
    ------
    ValueError, GradientError, DTypeError
        As `add_param_group`.

    Notes
    -----
    At step t, with d = grad + weight_decay * p [1]_:

        m = m + (1 - beta1) * (d - m)
        v = beta2 * v + (1 - beta2) * d * d
        p = p - lr / (1 - beta1 ** t) * m / (sqrt(v) / sqrt(1 - beta2 ** t) + eps)

    Each parameter counts its own steps: one that had no gradient in a step has not taken it. Those that have taken equally
    many are changed by one call.

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
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise where a setting is out of its range."""
        super().check(settings)
        betas = settings["betas"]
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{self._name}: betas are {betas}, expected two numbers, each at least 0 and below 1")

    def update(self, params: list[Tensor], settings: Mapping[str, Any]) -> None:
        """One call for all that have taken as many steps."""
        lr, eps, decay = (self.number(settings, name) for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = map(float, settings["betas"])
        rule, decay = (adapt_and_shrink, 1 - lr * decay) if self.is_decoupled else (adapt, decay)
        for t, chosen in self.by_steps(params):
            means, squares = self.remembered(chosen, "exp_avg"), self.remembered(chosen, "exp_avg_sq")
            size, root = lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
            numbers = size, root, eps, decay, 1 - beta1, beta2, 1 - beta2
            change(rule, [chosen, means, squares], [p.grad for p in chosen], *numbers)

    def by_steps(self, params: list[Tensor]) -> list[tuple[Any, list[Tensor]]]:
        """(steps taken, this one included; parameters that have taken so many).

        Inside a fused function those that have taken equally many by now have one count. The capture holds as long as the
        same ones have: a call before which one of them alone has taken a step is another kind of call.
        """
        groups: dict[int, list[Tensor]] = {}
        for p in params:
            groups.setdefault(self.steps_of(p) + 1, []).append(p)
        by = active_tracer()
        if by is None:
            return [(self.count(chosen), chosen) for chosen in groups.values()]
        by.add_guard((id(self), *map(id, params)), partial(self.pattern, params))
        return [(by.call_counter(partial(self.count, chosen), t), chosen) for t, chosen in groups.items()]

    def steps_of(self, p: Tensor) -> int:
        """How many steps a parameter has taken."""
        taken: int = self.state[p].get("step", 0) if p in self.state else 0
        return taken

    def pattern(self, params: list[Tensor]) -> tuple[int, ...]:
        """Which parameters have taken equally many steps: of each, the first one that has taken as many."""
        first: dict[int, int] = {}
        return tuple(first.setdefault(self.steps_of(p), k) for k, p in enumerate(params))

    def count(self, params: list[Tensor]) -> int:
        """One more step of parameters that have taken equally many; how many each has taken now."""
        taken = self.steps_of(params[0]) + 1
        for p in params:
            self.state.setdefault(p, {})["step"] = taken
        return taken


class AdamW(Adam):
    """Adam whose weight decay is no part of the gradient, as `torch.optim.AdamW`.

    Parameters
    ----------
    params : tensors, or dicts of groups
        What to change: leaves that require a gradient.
    lr : float
        The learning rate: about how far an element moves in a step.
    betas : (float, float)
        How much of the running mean, and of the running mean square, is kept in a step.
    eps : float
        Added to the root, for gradients near 0.
    weight_decay : float
        The share of a parameter, times `lr`, that a step takes away.

    Raises
    ------
    ValueError, GradientError, DTypeError
        As `add_param_group`.

    Notes
    -----
    As `Adam` with d = grad, from p * (1 - lr * weight_decay) in the place of p [1]_: a parameter shrinks at the same pace
    however large its gradients are.

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
    fixed: Mapping[str, Any] = {**FIXED, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)


# The formulas: a parameter, what is remembered of it, its gradient and numbers -> the new parameter and what is remembered.


def adapt(
    p: Any, m: Any, v: Any, g: Any, size: Any, root: Any, eps: Any, decay: Any, new1: Any, keep2: Any, new2: Any
) -> tuple[Any, ...]:
    """Each element at its own pace."""
    d = g + decay * p
    m = m + new1 * (d - m)
    v = keep2 * v + new2 * (d * d)
    return p - size * m / (sqrt(v) / root + eps), m, v


def adapt_and_shrink(
    p: Any, m: Any, v: Any, g: Any, size: Any, root: Any, eps: Any, keep: Any, new1: Any, keep2: Any, new2: Any
) -> tuple[Any, ...]:
    """The same from a parameter of which a share is taken away."""
    m = m + new1 * (g - m)
    v = keep2 * v + new2 * (g * g)
    return keep * p - size * m / (sqrt(v) / root + eps), m, v

"""Optimizers: what changes parameters by their gradients, with PyTorch's words, formulas and states.

A step is one captured call that stores new values in all parameters of a group at once. The learning rate and the other
settings travel with it as numbers, so that changing them plans and compiles nothing.

Stands on tensors; knows no module. Not here: schedules of the learning rate (set `param_groups[0]["lr"]`), closures.
"""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

import numpy as np

from .autodiff import capture_under_way, no_grad
from .creation import tensor, zeros_like
from .errors import DTypeError, GradientError, ShapeError
from .in_place import store
from .nested import Live
from .operators import sqrt
from .tensor import Tensor

__all__ = ["SGD", "Adam", "Optimizer"]


class Optimizer:
    """What all optimizers share: groups of parameters with their settings, and what is remembered of each parameter.

    A subclass gives its settings to `__init__`, and says in `update` how they change the parameters of a group.

    Attributes
    ----------
    param_groups : list of dict
        {"params": list of tensors, and the settings by name}. A setting may be changed at any time:
        `optimizer.param_groups[0]["lr"] *= 0.5`.
    state : dict
        {parameter: {name: tensor or number}}, filled by the first step.
    """

    not_captured = frozenset(["state"])  # a step that is a part of a fused function looks for it in each call

    def __init__(self, params: Iterable[Any], **settings: Any) -> None:
        self.defaults, self.param_groups = settings, list[Live]()
        self.state: dict[Tensor, dict[str, Any]] = {}
        if isinstance(params, Tensor):
            raise DTypeError(f"{self._name}: expected a list of parameters, got a tensor; write [x], or model.parameters()")
        groups = list(params)
        if not groups:
            raise ValueError(
                f"{self._name}: got no parameters; pass model.parameters(), anew each time: it can be walked only once"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Take further parameters, with settings of their own where they differ.

        Parameters
        ----------
        group
            {"params": tensors, and any settings}.

        Raises
        ------
        ValueError
            There is no parameter, one is here already, or a setting does not exist or is out of its range.
        GradientError
            A parameter requires no gradient, or was computed from others.
        """
        unknown = [name for name in group if name not in (*self.defaults, "params")]
        if unknown:
            found = get_close_matches(unknown[0], self.defaults, n=1) or [", ".join(self.defaults)]
            raise ValueError(f"{self._name}: there is no setting {unknown[0]!r}; did you mean {found[0]}?")
        known = {id(p) for other in self.param_groups for p in other["params"]}
        params = list(group["params"])
        for k, p in enumerate(params):
            self._refuse(p, k, known)
            known.add(id(p))
        settings = Live({**self.defaults, **group, "params": params})
        self.check(settings)
        self.param_groups.append(settings)

    def _refuse(self, p: Any, k: int, known: set[int]) -> None:
        if not isinstance(p, Tensor):
            raise DTypeError(
                f"{self._name}: parameter {k} is {type(p).__name__}, expected a tensor, as of model.parameters()"
            )
        if id(p) in known:
            raise ValueError(
                f"{self._name}: parameter {k}, of shape {p.shape}, was given twice; it would be changed twice a step"
            )
        if not p.requires_grad or not p.is_leaf:
            why = "requires no gradient" if not p.requires_grad else "was computed from other tensors"
            raise GradientError(
                f"{self._name}: parameter {k}, of shape {p.shape}, {why}, and would never change; use nn.Parameter, "
                "or leave it out: [p for p in model.parameters() if p.requires_grad]"
            )

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise where a setting is out of its range; here, where it is negative, or not a number at all."""
        for name in ("lr", "momentum", "weight_decay", "eps"):
            if not settings.get(name, 0) >= 0:
                raise ValueError(f"{self._name}: {name} is {settings[name]}, expected at least 0")

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters: `grad` is None again, so the next backward starts anew."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self) -> None:
        """Change all parameters that have a gradient; the others, and what is remembered of them, stay."""
        with no_grad():
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    self.update(params, group)

    def number(self, settings: Mapping[str, Any], name: str) -> Any:
        """A setting as a float; inside a fused function one that each call reads anew."""
        by = capture_under_way()
        return float(settings[name]) if by is None else by.live(settings, name)

    def update(self, params: list[Tensor], settings: Mapping[str, Any]) -> None:
        """Change these parameters of one group, all of which have a gradient; nothing is recorded."""
        raise NotImplementedError(f"{self._name} has no update; store new values in params there")

    def remembered(self, p: Tensor, name: str) -> Tensor:
        """What is remembered of a parameter under a name: a tensor like it, of zeros at first."""
        by, state = capture_under_way(), self.state.get(p, {})
        if by is None:
            found: Tensor = self.found(p, name)
        else:  # found, or made, by each call
            example = state[name] if name in state else Tensor.empty(p.shape, p.dtype, p.spec.backend)
            found = by.provided((id(self), id(p), name), partial(self.found, p, name), example)
        return found

    def found(self, p: Tensor, name: str) -> Tensor:
        """The same, here and now."""
        state = self.state.setdefault(p, {})
        if name not in state:
            state[name] = zeros_like(p)
        kept: Tensor = state[name]
        return kept

    def state_dict(self) -> dict[str, Any]:
        """Settings and state in PyTorch's form, parameters by number; the tensors are the optimizer's own, no copies.

        Returns
        -------
        dict
            {"state": {number: {name: tensor or number}}, "param_groups": [{"params": [numbers], and the settings}]}.
        """
        params = [p for group in self.param_groups for p in group["params"]]
        number = {p: k for k, p in enumerate(params)}
        groups = [{**group, "params": [number[p] for p in group["params"]]} for group in self.param_groups]
        return {"state": {number[p]: dict(values) for p, values in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over settings and state, copied, as `state_dict` gives them.

        Raises
        ------
        ShapeError
            They belong to other numbers or shapes of parameters; nothing is loaded.
        """
        groups, values = state["param_groups"], state["state"]
        sizes = [[len(group["params"]) for group in each] for each in (groups, self.param_groups)]
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"{self._name}.load_state_dict: groups of {sizes[0]} parameters, expected {sizes[1]}; nothing was loaded"
            )
        params = [p for group in self.param_groups for p in group["params"]]
        for k, found in values.items():
            for name, x in found.items():
                if np.shape(x) not in ((), params[k].shape):
                    raise ShapeError(
                        f"{self._name}.load_state_dict: {name} of parameter {k} has shape {np.shape(x)}, expected "
                        f"{params[k].shape}; nothing was loaded"
                    )
        for group, other in zip(self.param_groups, groups, strict=True):
            group |= {name: x for name, x in other.items() if name != "params"}
        self.state = {params[k]: {name: taken(x, params[k]) for name, x in found.items()} for k, found in values.items()}

    def __repr__(self) -> str:
        groups = [{name: x for name, x in group.items() if name != "params"} for group in self.param_groups]
        counts = [len(group["params"]) for group in self.param_groups]
        lines = [
            f"{n} parameters: {', '.join(f'{k}={x}' for k, x in g.items())}" for n, g in zip(counts, groups, strict=True)
        ]
        return f"{self._name}({'; '.join(lines)})"


def taken(x: Any, p: Tensor) -> Any:
    """A copy of what is remembered: numbers as they are, arrays like the parameter."""
    return x if np.shape(x) == () and not isinstance(x, Tensor) else tensor(x, p.dtype, p.backend)


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
            buffers = [self.remembered(p, "momentum_buffer") for p in params]
            rule = look_ahead if settings["nesterov"] else roll
            store(on_each(rule, len(params), 3), [*params, *buffers], *grads, lr, decay, momentum)
        else:
            store(on_each(descend, len(params), 2), params, *grads, lr, decay)


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

    Each parameter counts its own steps: one that had no gradient in a step has not taken it.

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
            raise ValueError(f"Adam: betas are {betas}, expected two numbers, each at least 0 and below 1")

    def update(self, params: list[Tensor], settings: Mapping[str, Any]) -> None:
        """One call for all that have taken as many steps."""
        lr, eps, decay = (self.number(settings, name) for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = map(float, settings["betas"])
        for t, chosen in self.by_steps(params):
            means = [self.remembered(p, "exp_avg") for p in chosen]
            squares = [self.remembered(p, "exp_avg_sq") for p in chosen]
            grads = [p.grad for p in chosen]
            size, root = lr / (1 - beta1**t), (1 - beta2**t) ** 0.5
            numbers = size, root, eps, decay, 1 - beta1, beta2, 1 - beta2
            store(on_each(adapt, len(chosen), 4), [*chosen, *means, *squares], *grads, *numbers)

    def by_steps(self, params: list[Tensor]) -> Iterable[tuple[Any, list[Tensor]]]:
        """(steps taken, this one included; parameters that have taken so many); inside a fused function, one by one."""
        by = capture_under_way()
        if by is not None:
            taken = [self.state.get(p, {}).get("step", 0) for p in params]
            return [(by.counted(partial(self.count, p), t + 1), [p]) for p, t in zip(params, taken, strict=True)]
        found: dict[int, list[Tensor]] = {}
        for p in params:
            found.setdefault(self.count(p), []).append(p)
        return found.items()

    def count(self, p: Tensor) -> int:
        """One more step of a parameter; how many it has taken."""
        state = self.state.setdefault(p, {})
        taken: int = state.get("step", 0) + 1
        state["step"] = taken
        return taken


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


def adapt(
    p: Any, m: Any, v: Any, g: Any, size: Any, root: Any, eps: Any, decay: Any, new1: Any, keep2: Any, new2: Any
) -> tuple[Any, ...]:
    """Adam's: each element at its own pace."""
    d = g + decay * p
    m = m + new1 * (d - m)
    v = keep2 * v + new2 * (d * d)
    return p - size * m / (sqrt(v) / root + eps), m, v


@cache
def on_each(rule: Callable[..., tuple[Any, ...]], count: int, kinds: int) -> Callable[..., tuple[Any, ...]]:
    """A formula for one parameter as a function of `count` of them, to be captured as one.

    Takes `kinds` times `count` tensors (all parameters, then what is remembered, then all gradients), then numbers.
    Gives the results in the same order.
    """

    def step(*inputs: Any) -> tuple[Any, ...]:
        tensors, numbers = inputs[: kinds * count], inputs[kinds * count :]
        results = [rule(*tensors[k::count], *numbers) for k in range(count)]
        return tuple(x for kind in zip(*results, strict=True) for x in kind)

    return step

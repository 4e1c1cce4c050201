"""Optimizer: groups of parameters with their settings, what is remembered of each parameter, and states in PyTorch's form.

A step is one captured call that stores new values in all parameters of a group at once. The learning rate and the other
settings travel with it as numbers, so that changing them plans and compiles nothing.

Stands on tensors; knows no module. Not here: the formulas (`sgd`, `adam`), schedules of the rate (`schedules`), closures.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

import numpy as np

from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, GradientError, ShapeError
from ..core.pytree import DynamicDict
from ..tensors.creation import tensor, zeros_like
from ..tensors.mutation import store
from ..tensors.tensor import Tensor

# Settings of PyTorch's that a state may bring: those that say how a step is computed, which changes nothing here, and those
# of which there is one value here.
HOW = ("foreach", "fused", "capturable", "differentiable", "initial_lr")
FIXED = {"maximize": False, "amsgrad": False, "dampening": 0, "decoupled_weight_decay": False}


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
    fixed: Mapping[str, Any] = FIXED

    def __init__(self, params: Iterable[Any], **settings: Any) -> None:
        self.defaults, self.param_groups = settings, list[DynamicDict]()
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
        settings = DynamicDict({**self.defaults, **group, "params": params})
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

    # For subclasses.

    def update(self, params: list[Tensor], settings: Mapping[str, Any]) -> None:
        """Change these parameters of one group, all of which have a gradient; nothing is recorded."""
        raise NotImplementedError(f"{self._name} has no update; store new values in params there")

    def number(self, settings: Mapping[str, Any], name: str) -> Any:
        """A setting as a float; inside a fused function one that each call reads anew."""
        by = active_tracer()
        return float(settings[name]) if by is None else by.dynamic_attr(settings, name)

    def remembered(self, params: Sequence[Tensor], name: str) -> list[Tensor]:
        """What is remembered of parameters under a name: a tensor like each, of zeros at first."""
        by = active_tracer()
        if by is None:
            return [self.found(p, name) for p in params]
        found = []
        for p in params:  # found, or made, by each call
            known = self.state.get(p, {}).get(name)
            example = Tensor.empty(p.shape, p.dtype, p.spec.backend) if known is None else known
            found.append(by.external_tensor((id(self), id(p), name), partial(self.found, p, name), example))
        return found

    def found(self, p: Tensor, name: str) -> Tensor:
        """The same, here and now."""
        state = self.state.setdefault(p, {})
        if name not in state:
            state[name] = zeros_like(p)
        kept: Tensor = state[name]
        return kept

    # States.

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
        """Take over settings and state, copied, as `state_dict` gives them, or that of PyTorch's optimizer of this name.

        Parameters
        ----------
        state
            {"state": ..., "param_groups": ...}. Arrays of any library will do in the place of tensors. Settings that it
            does not have stay as they are.

        Raises
        ------
        ShapeError
            They belong to other numbers or shapes of parameters.
        ValueError
            It is no such state, or has a setting that this optimizer does not know, or not in this range.

        Notes
        -----
        After an error nothing has changed.

        Examples
        --------
        >>> import minifuse as mf
        >>> p, q = (mf.tensor([1.0], requires_grad=True) for _ in range(2))
        >>> one, other = mf.optim.SGD([p], lr=0.5), mf.optim.SGD([q])
        >>> other.load_state_dict(one.state_dict())
        >>> other
        SGD(1 parameters: lr=0.5, momentum=0.0, weight_decay=0.0, nesterov=False)
        """
        where = f"{self._name}.load_state_dict"
        if not isinstance(state, Mapping) or not {"state", "param_groups"} <= state.keys():
            raise ValueError(f'{where}: expected a dict with "state" and "param_groups", as state_dict() gives it')
        groups, values = state["param_groups"], state["state"]
        sizes = [[len(group["params"]) for group in each] for each in (groups, self.param_groups)]
        if sizes[0] != sizes[1]:
            raise ShapeError(f"{where}: groups of {sizes[0]} parameters, expected {sizes[1]}; nothing was loaded")
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [k for group in groups for k in group["params"]]
        if unknown := [k for k in values if k not in numbers]:
            raise ShapeError(f"{where}: a state of parameter {unknown[0]!r}, which is in no group; nothing was loaded")
        of = dict(zip(numbers, params, strict=True))
        new = {of[k]: taken(found, of[k], where, k) for k, found in values.items()}
        settings = [self.known_settings(group, where) for group in groups]
        for group, other in zip(self.param_groups, settings, strict=True):
            self.check({**group, **other})
        for group, other in zip(self.param_groups, settings, strict=True):
            group |= other
        self.state = new

    def known_settings(self, group: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The settings of a state that are ours; an error for one that would change what a step computes."""
        found = {}
        for name, x in group.items():
            if name in self.defaults:
                known = self.defaults[name]
                found[name] = tuple(x) if isinstance(known, tuple) else x if isinstance(known, bool) else float(x)
            elif name not in ("params", *HOW) and (name not in self.fixed or x != self.fixed[name]):
                raise ValueError(f"{where}: {name}={x!r}, which {self._name} does not have; nothing was loaded")
        return found

    def __repr__(self) -> str:
        groups = [{name: x for name, x in group.items() if name != "params"} for group in self.param_groups]
        counts = [len(group["params"]) for group in self.param_groups]
        lines = [
            f"{n} parameters: {', '.join(f'{k}={x}' for k, x in g.items())}" for n, g in zip(counts, groups, strict=True)
        ]
        return f"{self._name}({'; '.join(lines)})"


def taken(values: Mapping[str, Any], p: Tensor, where: str, number: int) -> dict[str, Any]:
    """A copy of what is remembered of a parameter: arrays like it, and how many steps it has taken."""
    found: dict[str, Any] = {}
    for name, x in values.items():
        expected = () if name == "step" else p.shape
        if x is None:  # PyTorch's way to say that there is no momentum
            continue
        if np.shape(x) != expected:
            raise ShapeError(
                f"{where}: {name} of parameter {number} has shape {np.shape(x)}, expected {expected}; nothing was loaded"
            )
        found[name] = int(x) if name == "step" else tensor(x, p.dtype, p.backend)
    return found


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


def change(rule: Callable[..., tuple[Any, ...]], targets: Sequence[Sequence[Tensor]], *inputs: Any) -> None:
    """Store what a formula gives: all parameters, and each kind of what is remembered; then come gradients and numbers.

    `inputs` are one list of tensors, then numbers. All of it is one captured call.
    """
    grads, *numbers = inputs
    store(on_each(rule, len(grads), len(targets) + 1), [x for kind in targets for x in kind], *grads, *numbers)

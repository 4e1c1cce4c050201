"""Optimizer: parameter groups with their settings, state tensors of each parameter, and state dicts in PyTorch's form.

A step is one call that stores new values in all parameters of a group at once. The learning rate and other settings are
passed as numbers at launch, so changing them compiles nothing.

This file depends on tensors, not on modules. Not here: the update rules (`sgd`, `adam`), schedules (`schedules`), closures.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

import numpy as np

from ..core.dispatch import active_tracer, no_grad
from ..core.errors import DTypeError, GradientError, ShapeError
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.creation import tensor, zeros_like
from ..tensors.mutation import store
from ..tensors.tensor import Tensor

# Settings of PyTorch's state dicts: those ignored here, since they only choose an implementation, and those for which
# minifuse supports a single value.
IGNORED_SETTINGS = ("foreach", "fused", "capturable", "differentiable", "initial_lr")
FIXED_SETTINGS = {"maximize": False, "amsgrad": False, "dampening": 0, "decoupled_weight_decay": False}

Params = Iterable[Tensor] | Iterable[Mapping[str, Any]]  # parameters, or groups: {"params": tensors, and settings}
# (parameters, state tensors, gradients, numbers) -> (new parameters, new state tensors)
UpdateRule = Callable[..., tuple[Array, ...]]


class Optimizer:
    """Base class of optimizers: parameter groups with their settings, and the state of each parameter.

    A subclass passes its settings to `__init__`, and implements `update`, which changes the parameters of a group.

    Attributes
    ----------
    param_groups : list of dict
        {"params": list of tensors, and the settings by name}. A setting can be changed at any time:
        `optimizer.param_groups[0]["lr"] *= 0.5`.
    state : dict
        {parameter: {name: tensor or number}}, created by the first step.
    """

    not_captured = frozenset(["state"])  # a fused function looks the state up in each call
    fixed: Mapping[str, object] = FIXED_SETTINGS

    def __init__(self, params: Params, **settings: object) -> None:
        self.defaults, self.param_groups = settings, list[DynamicDict]()
        self.state: dict[Tensor, dict[str, Any]] = {}
        if isinstance(params, Tensor):
            raise DTypeError(f"{self._name}: expected a list of parameters, got a tensor; write [x], or model.parameters()")
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                f"{self._name}: got no parameters; write model.parameters(), again for each use: it is an iterator"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add a parameter group, which may have its own settings.

        Parameters
        ----------
        group
            {"params": tensors, and optional settings by name}.

        Raises
        ------
        ValueError
            The optimizer gets no parameter, or one twice; or a setting is unknown or out of its range.
        GradientError
            A parameter does not require a gradient, or is not a leaf.
        """
        unknown = [name for name in group if name not in (*self.defaults, "params")]
        if unknown:
            similar = get_close_matches(unknown[0], self.defaults, n=1) or [", ".join(self.defaults)]
            raise ValueError(f"{self._name}: unknown setting {unknown[0]!r}; did you mean {similar[0]}?")
        known_ids = {id(p) for other in self.param_groups for p in other["params"]}
        params = list(group["params"])
        for k, p in enumerate(params):
            self._validate_param(p, k, known_ids)
            known_ids.add(id(p))
        settings = DynamicDict({**self.defaults, **group, "params": params})
        self.check(settings)
        self.param_groups.append(settings)

    def _validate_param(self, p: object, k: int, known_ids: set[int]) -> None:
        if not isinstance(p, Tensor):
            raise DTypeError(
                f"{self._name}: parameter {k} has type {type(p).__name__}, expected a tensor; write model.parameters()"
            )
        if id(p) in known_ids:
            raise ValueError(
                f"{self._name}: got parameter {k}, of shape {p.shape}, twice; pass it once, or each step would change it "
                "twice"
            )
        if not p.requires_grad or not p.is_leaf:
            why = "does not require a gradient" if not p.requires_grad else "was computed from other tensors"
            raise GradientError(
                f"{self._name}: parameter {k}, of shape {p.shape}, {why}, so it would never change; use nn.Parameter, "
                "or exclude it: [p for p in model.parameters() if p.requires_grad]"
            )

    def check(self, settings: DynamicDict) -> None:
        """Raise ValueError if a setting is negative or NaN. Subclasses extend it."""
        for name in ("lr", "momentum", "weight_decay", "eps"):
            if not settings.get(name, 0) >= 0:
                raise ValueError(f"{self._name}: got {name}={settings[name]}, expected at least 0")

    def zero_grad(self) -> None:
        """Set `grad` of all parameters to None, so that the next backward starts from zero."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self) -> None:
        """Update all parameters that have a gradient. The others and their state do not change."""
        with no_grad():
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    self.update(params, group)

    # Methods for subclasses.

    def update(self, params: list[Tensor], settings: DynamicDict) -> None:
        """Update parameters of one group, all of which have a gradient. Called with gradients disabled (`no_grad`)."""
        raise NotImplementedError(f"{self._name} has no update method; define update(self, params, settings)")

    def number(self, settings: DynamicDict, name: str) -> float:
        """Return a setting as a float; inside a fused function, a number that each call reads again."""
        tracer = active_tracer()
        return float(settings[name]) if tracer is None else tracer.dynamic_attr(settings, name)

    def state_tensors(self, params: Sequence[Tensor], name: str) -> list[Tensor]:
        """Return the state tensor of a name for each parameter, initialized to zeros."""
        tracer = active_tracer()
        if tracer is None:
            return [self.state_tensor(p, name) for p in params]
        tensors = []
        for p in params:  # each call of the fused function looks its state up again
            x = self.state.get(p, {}).get(name)
            example = Tensor.empty(p.shape, p.dtype, p.meta.backend) if x is None else x
            tensors.append(tracer.external_tensor((id(self), id(p), name), partial(self.state_tensor, p, name), example))
        return tensors

    def state_tensor(self, p: Tensor, name: str) -> Tensor:
        """Return one state tensor of a parameter; create it if it does not exist."""
        state = self.state.setdefault(p, {})
        if name not in state:
            state[name] = zeros_like(p)
        x: Tensor = state[name]
        return x

    # State dicts.

    def state_dict(self) -> dict[str, object]:
        """Return settings and state in PyTorch's form, with parameters by number. Tensors are not copied.

        Returns
        -------
        dict
            {"state": {number: {name: tensor or number}}, "param_groups": [{"params": [numbers], and the settings}]}.
        """
        params = [p for group in self.param_groups for p in group["params"]]
        number_of = {p: k for k, p in enumerate(params)}
        groups = [{**group, "params": [number_of[p] for p in group["params"]]} for group in self.param_groups]
        return {"state": {number_of[p]: dict(values) for p, values in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a copy of settings and state, returned by `state_dict` of this optimizer or of PyTorch's of the same name.

        Parameters
        ----------
        state
            {"state": ..., "param_groups": ...}. Tensors may be arrays of any library. Settings that are missing in it do not
            change.

        Raises
        ------
        ShapeError
            The numbers or shapes of the parameters differ.
        ValueError
            The state has another form, or a setting that is unknown or out of its range.

        Notes
        -----
        If this method raises an error, nothing has changed.

        Examples
        --------
        >>> import minifuse as mf
        >>> p, q = (mf.tensor([1.0], requires_grad=True) for _ in range(2))
        >>> one, other = mf.optim.SGD([p], lr=0.5), mf.optim.SGD([q])
        >>> other.load_state_dict(one.state_dict())
        >>> other
        SGD(1 parameters: lr=0.5, momentum=0.0, weight_decay=0.0, nesterov=False)
        """
        caller = f"{self._name}.load_state_dict"
        if not isinstance(state, Mapping) or not {"state", "param_groups"} <= state.keys():
            raise ValueError(f'{caller}: expected a dict with "state" and "param_groups", as returned by state_dict()')
        groups, values = state["param_groups"], state["state"]
        sizes = [[len(group["params"]) for group in group_list] for group_list in (groups, self.param_groups)]
        if sizes[0] != sizes[1]:
            raise ShapeError(f"{caller}: got groups of {sizes[0]} parameters, expected {sizes[1]}; nothing was loaded")
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [k for group in groups for k in group["params"]]
        if unknown := [k for k in values if k not in numbers]:
            raise ShapeError(f"{caller}: got a state for parameter {unknown[0]!r}, which is in no group; nothing was loaded")
        param_of = dict(zip(numbers, params, strict=True))
        new_state = {param_of[k]: copy_parameter_state(x, param_of[k], caller, k) for k, x in values.items()}
        settings = [self.known_settings(group, caller) for group in groups]
        for group, loaded_settings in zip(self.param_groups, settings, strict=True):
            self.check(DynamicDict({**group, **loaded_settings}))
        for group, loaded_settings in zip(self.param_groups, settings, strict=True):
            group |= loaded_settings
        self.state = new_state

    def known_settings(self, group: Mapping[str, Any], caller: str) -> dict[str, object]:
        """Return the settings of a loaded group that this optimizer has.

        Settings that only choose an implementation are ignored. Raise ValueError for other unknown settings.
        """
        settings = dict[str, object]()
        for name, x in group.items():
            if name in self.defaults:
                default = self.defaults[name]
                settings[name] = tuple(x) if isinstance(default, tuple) else x if isinstance(default, bool) else float(x)
            elif name not in ("params", *IGNORED_SETTINGS) and (name not in self.fixed or x != self.fixed[name]):
                raise ValueError(f"{caller}: got {name}={x!r}, which {self._name} does not support; nothing was loaded")
        return settings

    def __repr__(self) -> str:
        groups = [{name: x for name, x in group.items() if name != "params"} for group in self.param_groups]
        counts = [len(group["params"]) for group in self.param_groups]
        lines = [
            f"{n} parameters: {', '.join(f'{k}={x}' for k, x in g.items())}" for n, g in zip(counts, groups, strict=True)
        ]
        return f"{self._name}({'; '.join(lines)})"


def copy_parameter_state(values: Mapping[str, Any], p: Tensor, caller: str, number: int) -> dict[str, Tensor | int]:
    """Copy the loaded state of a parameter: tensors of its shape, dtype and backend, and its number of steps."""
    state: dict[str, Tensor | int] = {}
    for name, x in values.items():
        expected = () if name == "step" else p.shape
        if x is None:  # PyTorch stores None without momentum
            continue
        if np.shape(x) != expected:
            raise ShapeError(
                f"{caller}: got {name} of shape {np.shape(x)} for parameter {number}, expected {expected}; "
                "nothing was loaded"
            )
        state[name] = int(x) if name == "step" else tensor(x, p.dtype, p.backend)
    return state


@cache
def map_rule(rule: UpdateRule, count: int, kind_count: int) -> UpdateRule:
    """Turn an update rule of one parameter into a function of `count` parameters, which is traced as one.

    Its inputs are `kind_count` times `count` tensors (all parameters, then their state tensors, then all gradients), then
    numbers. It returns the results in the same order.
    """

    def step(*inputs: Array) -> tuple[Array, ...]:
        tensors, numbers = inputs[: kind_count * count], inputs[kind_count * count :]
        results = [rule(*tensors[k::count], *numbers) for k in range(count)]
        return tuple(x for kind in zip(*results, strict=True) for x in kind)

    return step


def apply_rule(
    rule: UpdateRule, targets: Sequence[Sequence[Tensor]], grads: Sequence[Tensor | None], *numbers: float
) -> None:
    """Apply an update rule to lists of parameters and state tensors, and store the results, in one call."""
    store(map_rule(rule, len(grads), len(targets) + 1), [x for kind in targets for x in kind], *grads, *numbers)

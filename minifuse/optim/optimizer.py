"""Optimizer: parameter groups with their settings, state tensors of each parameter, and state dicts in PyTorch's form.

A step is one call that stores new values in all parameters of a group at once. The learning rate and other settings are
passed as numbers at launch, so changing them compiles nothing.

This file depends on tensors, not on modules. Not here: the update rules (`sgd`, `adam`), schedules (`schedules`).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dispatch import active_tracer, enable_grad, no_grad
from ..core.errors import DTypeError, GradientError, ShapeError
from ..core.indexing import Shape
from ..core.pytree import DynamicDict
from ..ir.array_methods import Array
from ..tensors.creation import tensor, zeros_like
from ..tensors.mutation import store
from ..tensors.shards import set_shard, shard_of
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from ..core.shards import Shard

# Settings of PyTorch's state dicts: those ignored here, since they only choose an implementation, and those for which
# minifuse supports a single value.
IMPLEMENTATION_FLAGS = ("foreach", "fused", "capturable")
OF_SCHEDULERS = ("initial_lr", "swa_lr", "max_lr", "min_lr", "total_steps", "base_momentum", "max_momentum")
IGNORED_SETTINGS = (*IMPLEMENTATION_FLAGS, *OF_SCHEDULERS, "differentiable")
FIXED_SETTINGS = {"dampening": 0, "decoupled_weight_decay": False}
NON_NEGATIVE = (
    "lr",
    "momentum",
    "weight_decay",
    "eps",
    "alpha",
    "rho",
    "lr_decay",
    "initial_accumulator_value",
    "lambd",
    "d",
)

Params = Iterable[Tensor] | Iterable[Mapping[str, Any]]  # parameters, or groups: {"params": tensors, and settings}
# (parameters, state tensors, gradients, numbers) -> (new parameters, new state tensors)
UpdateRule = Callable[..., tuple[Array, ...]]


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message for an unknown name: the most similar known name, or all of them."""
    known = list(known)
    similar = get_close_matches(name, known, n=1)
    return f"did you mean {similar[0]}?" if similar else f"expected one of {', '.join(known)}"


class Optimizer:
    """Base class of optimizers: parameter groups with their settings, and the state of each parameter.

    A subclass passes its settings to `__init__`, and implements `rule` and `numbers`: the formula of one step of one
    parameter. Or it implements `update`, which changes the parameters of a group.

    Parameters
    ----------
    params : tensors, or dicts of groups
        The parameters to update.
    flags : dict
        PyTorch's keyword arguments of all optimizers. `maximize` changes the sign of the gradients. `foreach`, `fused` and
        `capturable` have no effect: each step is one call for all parameters. `differentiable` is not supported.
    settings
        The other settings, which the groups have.

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

    def __init__(self, params: Params, flags: Mapping[str, object] = MappingProxyType({}), **settings: object) -> None:
        if unknown := [name for name in flags if name not in (*IMPLEMENTATION_FLAGS, "maximize", "differentiable")]:
            names = [*settings, *IMPLEMENTATION_FLAGS, "maximize"]
            raise TypeError(f"{self._name}: got an unexpected argument {unknown[0]!r}; {suggest_name(unknown[0], names)}")
        if flags.get("differentiable"):
            raise ValueError(f"{self._name}: differentiable=True is not supported; write p = p - lr * g instead")
        self.defaults, self.param_groups = {**settings, "maximize": bool(flags.get("maximize", False))}, list[DynamicDict]()
        self.state: dict[Tensor, dict[str, Any]] = {}
        groups = self._list_groups(params)
        if not groups:
            raise ValueError(
                f"{self._name}: got no parameters; write model.parameters(), again for each use: it is an iterator"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _list_groups(self, params: object) -> list[Any]:
        if isinstance(params, Tensor):
            raise DTypeError(f"{self._name}: expected a list of parameters, got a tensor; write [x], or model.parameters()")
        if not isinstance(params, Iterable):
            got = type(params).__name__
            raise DTypeError(f"{self._name}: expected a list of parameters, got {got}; write model.parameters()")
        return list(params)

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
            raise ValueError(f"{self._name}: unknown setting {unknown[0]!r}; {suggest_name(unknown[0], self.defaults)}")
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
        """Raise ValueError if a setting is out of its range, or NaN. Subclasses extend it."""
        for name in NON_NEGATIVE:
            x = settings.get(name, 0)
            if not isinstance(x, tuple) and not x >= 0:
                raise ValueError(f"{self._name}: got {name}={x}, expected at least 0")
        betas = settings.get("betas", (0, 0))
        if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"{self._name}: got betas={betas}, expected two numbers, each at least 0 and less than 1")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set `grad` of all parameters to None, or to zeros, so that the next backward starts from zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = zeros_like(p.grad)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient. The others and their state do not change.

        Parameters
        ----------
        closure : callable, optional
            Called first: computes the loss and its gradients. The loss is returned.
        """
        with enable_grad():
            loss = None if closure is None else closure()
        with no_grad():
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    self.update(params, group)
        return loss

    # Methods for subclasses.

    counts_steps = True  # whether the formula depends on the number of steps
    scalar_states: Collection[str] = ()  # names of state tensors that are one number for each parameter

    def update(self, params: list[Tensor], settings: DynamicDict) -> None:
        """Update parameters of one group, all of which have a gradient, with one call for each step count.

        Called with gradients disabled (`no_grad`).
        """
        rule, states = self.rule(settings, params)
        for t, group in self.group_by_steps(params) if self.counts_steps else [(0, params)]:
            targets = [self.state_tensors(group, name, settings, fill) for name, fill in states.items()]
            grads = [p.grad for p in group]
            apply_rule(rule, [group, *targets], grads, *self.numbers(settings, t), maximize=settings["maximize"])

    def rule(self, settings: DynamicDict, params: list[Tensor]) -> tuple[UpdateRule, Mapping[str, float | str]]:
        """Return the update rule, and for each state tensor its first value: a number, or the name of a setting."""
        raise NotImplementedError(f"{self._name} has no update rule; define rule(self, settings, params), or update")

    def numbers(self, settings: DynamicDict, t: Any) -> Sequence[Any]:
        """Return the numbers of the update rule in step t, counted from 1."""
        raise NotImplementedError(f"{self._name} has no numbers; define numbers(self, settings, t)")

    def number(self, settings: DynamicDict, name: str) -> float:
        """Return a setting as a float; inside a fused function, a number that each call reads again."""
        tracer = active_tracer()
        return float(settings[name]) if tracer is None else tracer.dynamic_attr(settings, name)

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

    def state_tensors(
        self, params: Sequence[Tensor], name: str, settings: Mapping[str, Any], fill: float | str = 0.0
    ) -> list[Tensor]:
        """Return the state tensor of a name for each parameter. `fill` is its first value, or the setting that has it."""
        tracer = active_tracer()
        if tracer is None:
            return [self.state_tensor(p, name, settings, fill) for p in params]
        tensors = []
        for p in params:  # each call of the fused function looks its state up again
            x = self.state.get(p, {}).get(name)
            example = Tensor.empty(self.state_shape(name, p), p.dtype, p.meta.backend) if x is None else x
            find = partial(self.state_tensor, p, name, settings, fill)
            tensors.append(tracer.external_tensor((id(self), id(p), name), find, example))
        return tensors

    def state_tensor(self, p: Tensor, name: str, settings: Mapping[str, Any], fill: float | str) -> Tensor:
        """Return one state tensor of a parameter; create it if it does not exist."""
        state = self.state.setdefault(p, {})
        if name not in state:
            value = float(settings[fill] if isinstance(fill, str) else fill)
            state[name] = Tensor.full(self.state_shape(name, p), value, p.dtype, p.meta.backend)
        x: Tensor = state[name]
        return x

    def state_shape(self, name: str, p: Tensor) -> Shape:
        """Return the shape of a state tensor of a parameter."""
        return () if name == "step" or name in self.scalar_states else p.shape

    # State dicts.

    @property
    def shards(self) -> "list[Shard | None]":
        """The part of each parameter that this rank holds; None for a whole parameter. Sharded checkpoints need them."""
        return [shard_of(p) for group in self.param_groups for p in group["params"]]

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
        for p, values in self.state.items():
            for x in values.values():
                if isinstance(x, Tensor) and x.shape == p.shape:
                    set_shard(x, shard_of(p))  # for sharded checkpoints: the part that this rank holds
        state = {k: dict(self.state[p]) for p, k in number_of.items() if p in self.state}
        return {"state": state, "param_groups": groups}

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
        new_state = {param_of[k]: self.copy_state(x, param_of[k], caller, k) for k, x in values.items()}
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
                settings[name] = (
                    tuple(x) if isinstance(default, tuple) else x if isinstance(default, bool | str) else float(x)
                )
            elif name not in ("params", *IGNORED_SETTINGS) and (name not in self.fixed or x != self.fixed[name]):
                raise ValueError(f"{caller}: got {name}={x!r}, which {self._name} does not support; nothing was loaded")
        return settings

    def copy_state(self, values: Mapping[str, Any], p: Tensor, caller: str, number: int) -> dict[str, Tensor | int]:
        """Copy the loaded state of a parameter: tensors of its shape, dtype and backend, and its number of steps."""
        state: dict[str, Tensor | int] = {}
        for name, x in values.items():
            expected = self.state_shape(name, p)
            if x is None:  # PyTorch stores None without momentum
                continue
            if np.shape(x) != expected:
                raise ShapeError(
                    f"{caller}: got {name} of shape {np.shape(x)} for parameter {number}, expected {expected}; "
                    "nothing was loaded"
                )
            state[name] = int(x) if name == "step" else tensor(x, p.dtype, p.backend)
        return state

    def __repr__(self) -> str:
        hidden = ("params", "initial_lr")
        groups = [
            {name: x for name, x in group.items() if name not in hidden and (name, x) != ("maximize", False)}
            for group in self.param_groups
        ]
        counts = [len(group["params"]) for group in self.param_groups]
        lines = [
            f"{n} parameters: {', '.join(f'{k}={x}' for k, x in g.items())}" for n, g in zip(counts, groups, strict=True)
        ]
        return f"{self._name}({'; '.join(lines)})"


@cache
def map_rule(rule: UpdateRule, count: int, kind_count: int, maximize: bool) -> UpdateRule:
    """Turn an update rule of one parameter into a function of `count` parameters, which is traced as one.

    Its inputs are `kind_count` times `count` tensors (all parameters, then their state tensors, then all gradients), then
    numbers. It returns the results in the same order. With `maximize`, the rule gets the negative gradients.
    """

    def step(*inputs: Array) -> tuple[Array, ...]:
        tensors, numbers = inputs[: kind_count * count], inputs[kind_count * count :]
        results = []
        for k in range(count):
            *targets, g = tensors[k::count]
            results.append(rule(*targets, -g if maximize else g, *numbers))
        return tuple(x for kind in zip(*results, strict=True) for x in kind)

    return step


def apply_rule(
    rule: UpdateRule,
    targets: Sequence[Sequence[Tensor]],
    grads: Sequence[Tensor | None],
    *numbers: float,
    maximize: bool = False,
) -> None:
    """Apply an update rule to lists of parameters and state tensors, and store the results, in one call."""
    step = map_rule(rule, len(grads), len(targets) + 1, maximize)
    store(step, [x for kind in targets for x in kind], *grads, *numbers)

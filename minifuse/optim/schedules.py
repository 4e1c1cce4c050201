"""Schedules: the learning rate as a function of the number of steps.

A schedule sets `lr` in the parameter groups of an optimizer, and stores their initial rates. Each optimizer step reads the
rate again, so a new rate needs no compilation. Schedules are independent of the optimizer's update rule. PyTorch's are in
`lr_scheduler`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dispatch import active_tracer
from ..core.dtypes import as_number
from ..core.errors import FuseError
from .optimizer import Optimizer


class Schedule:
    """Base class of schedules: the rate of each group is its initial rate times a factor that depends on the step.

    A subclass implements `factor`. Call `step()` once after each `optimizer.step()`, outside of a fused function.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the schedule sets, when it is created and in each `step()`.
    warmup : int
        Number of steps over which the rate rises linearly: step k, counted from 0, uses (k + 1) / (warmup + 1) of the rate.

    Attributes
    ----------
    last_step : int
        Number of steps taken.
    base_lrs : list of float
        The initial rate of each group.

    Raises
    ------
    ValueError
        `warmup` is negative.
    """

    def __init__(self, optimizer: Optimizer, warmup: int = 0) -> None:
        self._check_optimizer(optimizer)
        warmup = as_number(warmup)
        if not (isinstance(warmup, int) and warmup >= 0):
            raise ValueError(f"{self._name}: got warmup={warmup}, expected a whole number of steps, at least 0")
        self.optimizer, self.warmup, self.last_step = optimizer, warmup, 0
        self.base_lrs = [float(group["lr"]) for group in optimizer.param_groups]
        self._set_rates()

    def _check_optimizer(self, optimizer: object, schedules: "Sequence[Schedule]" = ()) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{self._name}: got {type(optimizer).__name__}, expected an optimizer")
        if any(x.optimizer is not optimizer for x in schedules):
            raise ValueError(f"{self._name}: the schedulers are of several optimizers; make all of them for one")

    @property
    def _name(self) -> str:
        return type(self).__name__

    def factor(self, step: int) -> float:
        """Return the factor of the rate after `step` steps. In this class it stays 1 after the warmup."""
        return min(1.0, (step + 1) / (self.warmup + 1))

    def rates(self, step: int) -> list[float]:
        """Return the rate of each group after `step` steps."""
        factor = self.factor(step)
        return [lr * factor for lr in self.base_lrs]

    def step(self) -> None:
        """Increment `last_step`, and set the rates of the next optimizer step."""
        check_not_traced(self._name)
        self.last_step += 1
        self._set_rates()

    def _set_rates(self) -> None:
        groups = self.optimizer.param_groups
        self.base_lrs += [float(group["lr"]) for group in groups[len(self.base_lrs) :]]  # groups that were added later
        for group, lr in zip(groups, self.rates(self.last_step), strict=True):
            group["lr"] = lr

    def last_lrs(self) -> list[float]:
        """Return the current rate of each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, int | list[float]]:
        """Return the number of steps and the initial rates, as plain numbers.

        Returns
        -------
        dict
            {"last_step": int, "base_lrs": list of float}.
        """
        return {"last_step": self.last_step, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, and set the rates immediately.

        Raises
        ------
        ValueError
            The state lacks an entry, or has another number of groups. The schedule is unchanged.
        """
        is_valid = isinstance(state, Mapping) and {"last_step", "base_lrs"} <= state.keys()
        if not is_valid or len(state["base_lrs"]) != len(self.optimizer.param_groups):
            count = len(self.optimizer.param_groups)
            raise ValueError(
                f"{self._name}.load_state_dict: got {state}, expected a dict with last_step, and base_lrs of {count} groups"
            )
        self.last_step, self.base_lrs = int(state["last_step"]), [float(lr) for lr in state["base_lrs"]]
        self._set_rates()

    def __repr__(self) -> str:
        return f"{self._name}(last_step={self.last_step}, lr={self.last_lrs()})"


def check_not_traced(name: str) -> None:
    """Raise FuseError inside a fused function."""
    if active_tracer() is not None:
        raise FuseError(
            f"{name}.step: called inside a function that @mf.fuse traces, where it would run only once; "
            "call it after the fused function, which reads the rate again in each call"
        )


class ConstantSchedule(Schedule):
    """A constant rate after a linear warmup.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the schedule sets.
    warmup : int
        Number of steps over which the rate rises linearly to its full value; 0 for no warmup.

    Raises
    ------
    ValueError
        `warmup` is negative.

    Examples
    --------
    >>> import minifuse as mf
    >>> optimizer = mf.optim.SGD([mf.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = mf.optim.ConstantSchedule(optimizer, warmup=3)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates += schedule.last_lrs()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """


class CosineSchedule(Schedule):
    """A linear warmup, then half a cosine wave down to `minimum` times the full rate, where the rate stays.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the schedule sets.
    steps : int
        Number of steps, including the warmup, after which the rate is lowest.
    warmup : int
        Number of these steps over which the rate rises linearly to its full value; 0 for no warmup.
    minimum : float
        The lowest rate, as a fraction of the full rate of each group, from 0 to 1.

    Raises
    ------
    ValueError
        `steps` is not greater than `warmup`, or `minimum` is not between 0 and 1.

    Notes
    -----
    Step k, from 0, uses (k + 1) / (warmup + 1) of the full rate if k < warmup; otherwise
    minimum + (1 - minimum) * (1 + cos(pi * t)) / 2 of it [1]_, where t = (k - warmup) / (steps - warmup), at most 1. Without
    warmup this is `torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=minimum * lr)`.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2016, arXiv:1608.03983

    Examples
    --------
    >>> import minifuse as mf
    >>> optimizer = mf.optim.SGD([mf.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = mf.optim.CosineSchedule(optimizer, steps=5, warmup=1, minimum=0.1)
    >>> rates = []
    >>> for _ in range(7):
    ...     rates += schedule.last_lrs()
    ...     optimizer.step()
    ...     schedule.step()
    >>> [round(lr, 3) for lr in rates]
    [0.5, 1.0, 0.868, 0.55, 0.232, 0.1, 0.1]
    """

    def __init__(self, optimizer: Optimizer, steps: int, warmup: int = 0, minimum: float = 0.0) -> None:
        if not 0 <= minimum <= 1:
            raise ValueError(f"{self._name}: got minimum={minimum}, expected a fraction of the full rate, from 0 to 1")
        warmup = as_number(warmup)
        if isinstance(warmup, int) and not steps > warmup:
            raise ValueError(f"{self._name}: got steps={steps}, expected more than warmup={warmup}")
        self.steps, self.minimum = steps, minimum
        super().__init__(optimizer, warmup)

    def factor(self, step: int) -> float:
        """Return the factor of the rate after a number of steps."""
        if step < self.warmup:
            return super().factor(step)
        t = min((step - self.warmup) / (self.steps - self.warmup), 1.0)
        return self.minimum + (1 - self.minimum) * (1 + math.cos(math.pi * t)) / 2

"""Schedules: the learning rate as a function of how many steps were taken.

A schedule sets `lr` in the groups of an optimizer, and remembers the rate that each group had at first. A step of an
optimizer reads the rate anew each time, so nothing is planned or captured again. Knows no formula of an optimizer.
"""

import math
from collections.abc import Mapping
from typing import Any

from ..core.dispatch import active_tracer
from ..core.dtypes import as_number
from ..core.errors import FuseError
from .optimizer import Optimizer


class Schedule:
    """What all schedules share: the rate of each group is its first one, times a factor that depends on the step.

    A subclass says in `factor` what that is. Call `step()` once after each `optimizer.step()`, outside of a fused function.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups get new rates, at once too: the first step is taken with the rate of `factor(0)`.
    warmup : int
        In how many steps the rate rises to its full value: step k of them, counted from 0, has (k + 1) / (warmup + 1) of it.

    Attributes
    ----------
    last_step : int
        How many steps were taken.
    base_lrs : list of float
        The rate of each group before the schedule.

    Raises
    ------
    ValueError
        `warmup` is below 0.
    """

    def __init__(self, optimizer: Optimizer, warmup: int = 0) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{self._name}: expected an optimizer, got {type(optimizer).__name__}")
        warmup = as_number(warmup)
        if not (isinstance(warmup, int) and warmup >= 0):
            raise ValueError(f"{self._name}: warmup is {warmup}, expected a number of steps, at least 0")
        self.optimizer, self.warmup, self.last_step = optimizer, warmup, 0
        self.base_lrs = [float(group["lr"]) for group in optimizer.param_groups]
        self._set()

    @property
    def _name(self) -> str:
        return type(self).__name__

    def factor(self, step: int) -> float:
        """The share of its first rate that each group has after so many steps; here, once warm, all of it."""
        return min(1.0, (step + 1) / (self.warmup + 1))

    def step(self) -> None:
        """One step more was taken: set the rates of the next one."""
        if active_tracer() is not None:
            raise FuseError(
                f"{self._name}.step: a fused function is being captured, and the rate would change then, and never again; "
                "call it after the fused function, which reads the rate anew in each call"
            )
        self.last_step += 1
        self._set()

    def _set(self) -> None:
        groups = self.optimizer.param_groups
        self.base_lrs += [float(group["lr"]) for group in groups[len(self.base_lrs) :]]  # groups that came later
        factor = self.factor(self.last_step)
        for group, lr in zip(groups, self.base_lrs, strict=True):
            group["lr"] = lr * factor

    def last_lrs(self) -> list[float]:
        """The rate that each group has now."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """How many steps were taken, and from which rates; numbers only.

        Returns
        -------
        dict
            {"last_step": int, "base_lrs": list of float}.
        """
        return {"last_step": self.last_step, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken; the rates are set at once.

        Raises
        ------
        ValueError
            It is no such state, or one of another number of groups; nothing has changed then.
        """
        known = isinstance(state, Mapping) and {"last_step", "base_lrs"} <= state.keys()
        if not known or len(state["base_lrs"]) != len(self.optimizer.param_groups):
            count = len(self.optimizer.param_groups)
            raise ValueError(
                f"{self._name}.load_state_dict: expected last_step, and base_lrs of {count} groups, got {state}"
            )
        self.last_step, self.base_lrs = int(state["last_step"]), [float(lr) for lr in state["base_lrs"]]
        self._set()

    def __repr__(self) -> str:
        return f"{self._name}(last_step={self.last_step}, lr={self.last_lrs()})"


class ConstantSchedule(Schedule):
    """The full rate, after a linear warm-up.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups get new rates.
    warmup : int
        In how many steps the rate rises to its full value, in equal parts; 0 for none.

    Raises
    ------
    ValueError
        `warmup` is below 0.

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
    """A linear warm-up, then half a cosine down from the full rate to a share of it, where it stays.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups get new rates.
    steps : int
        After how many steps, those of the warm-up included, the rate is lowest.
    warmup : int
        In how many of them the rate rises to its full value, in equal parts; 0 for none.
    minimum : float
        The lowest rate, as a share of the full rate of each group, from 0 to 1.

    Raises
    ------
    ValueError
        `steps` is not more than `warmup`, or `minimum` is no share.

    Notes
    -----
    Step k, counted from 0, has (k + 1) / (warmup + 1) of the full rate as long as k < warmup; then
    minimum + (1 - minimum) * (1 + cos(pi * t)) / 2 of it [1]_, where t = (k - warmup) / (steps - warmup), at most 1. Without
    a warm-up that is `torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, eta_min=minimum * lr)`.

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
            raise ValueError(f"{self._name}: minimum is {minimum}, expected a share of the full rate, from 0 to 1")
        warmup = as_number(warmup)
        if isinstance(warmup, int) and not steps > warmup:
            raise ValueError(f"{self._name}: steps is {steps}, expected more than the {warmup} of the warm-up")
        self.steps, self.minimum = steps, minimum
        super().__init__(optimizer, warmup)

    def factor(self, step: int) -> float:
        """The share of its first rate that each group has after so many steps."""
        if step < self.warmup:
            return super().factor(step)
        t = min((step - self.warmup) / (self.steps - self.warmup), 1.0)
        return self.minimum + (1 - self.minimum) * (1 + math.cos(math.pi * t)) / 2

"""PyTorch's learning rate schedulers: each is a formula of the number of steps.

`step()` sets `lr` in each parameter group of the optimizer. Several schedulers of one optimizer multiply their factors:
a scheduler that finds another rate than that of its formula multiplies it by the ratio of the formula's new and old rates.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .optimizer import Optimizer
from .schedules import Schedule, check_not_traced

PerGroup = float | Sequence[float]
Lambdas = Callable[[int], float] | Sequence[Callable[[int], float]]


class LRScheduler(Schedule):
    """Base class of PyTorch's schedulers. A subclass implements `factor`, or `rate`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the scheduler sets.
    last_epoch : int
        Number of steps taken before, less 1: -1 at the beginning. To continue, the groups need "initial_lr".

    Attributes
    ----------
    last_epoch : int
        Number of steps taken.
    base_lrs : list of float
        The initial rate of each group, which is its setting "initial_lr".
    """

    is_chainable = True  # whether `step` multiplies rates that others have changed; otherwise it replaces them

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self._check_optimizer(optimizer)
        if last_epoch != -1 and any("initial_lr" not in group for group in optimizer.param_groups):
            raise ValueError(f'{self._name}: got last_epoch={last_epoch}, and a group has no "initial_lr"; set it first')
        self.optimizer, self.last_step = optimizer, last_epoch + 1
        self.base_lrs = [group.setdefault("initial_lr", float(group["lr"])) for group in optimizer.param_groups]
        self.formula_lrs = list(self.base_lrs) if last_epoch == -1 else self.rates(last_epoch)
        self._set_rates()

    @property
    def last_epoch(self) -> int:
        """Number of steps taken."""
        return self.last_step

    def factor(self, step: int) -> float:
        """Return the factor of the rate after `step` steps."""
        raise NotImplementedError(f"{self._name} has no formula; define factor(self, step), or rate(self, step, lr, group)")

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps, given its initial rate."""
        return lr * self.factor(step)

    def rates(self, step: int) -> list[float]:
        """Return the rate of each group after `step` steps."""
        return [self.rate(step, lr, k) for k, lr in enumerate(self.base_lrs)]

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next optimizer step, or of the step with number `epoch`."""
        check_not_traced(self._name)
        self.last_step = self.last_step + 1 if epoch is None else epoch
        self._set_rates(is_absolute=epoch is not None)

    def _set_rates(self, is_absolute: bool = False) -> None:
        groups = self.optimizer.param_groups
        for group in groups[len(self.base_lrs) :]:  # groups that were added later
            self.base_lrs.append(group.setdefault("initial_lr", float(group["lr"])))
            self.formula_lrs.append(self.base_lrs[-1])
        rates, is_chained = self.rates(self.last_step), self.is_chainable and not is_absolute
        for group, lr, before in zip(groups, rates, self.formula_lrs, strict=True):
            current = float(group["lr"])
            group["lr"] = current * lr / before if is_chained and current != before != 0 else lr
        self.formula_lrs = rates

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return self.last_lrs()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and the rates, as plain numbers."""
        return {"last_epoch": self.last_step, "base_lrs": list(self.base_lrs), "_last_lr": self.last_lrs()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state. The optimizer's own state has its rates."""
        self.last_step, self.base_lrs = int(state["last_epoch"]), list(state["base_lrs"])
        self.formula_lrs = self.rates(self.last_step)

    def __repr__(self) -> str:
        return f"{self._name}(last_epoch={self.last_step}, lr={self.last_lrs()})"


class LambdaLR(LRScheduler):
    """Multiply the initial rate by a function of the number of steps, or by one for each group."""

    is_chainable = False

    def __init__(self, optimizer: Optimizer, lr_lambda: Lambdas, last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group(self._name, optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        return lr * float(self.lr_lambdas[group](step))


class MultiplicativeLR(LRScheduler):
    """Multiply the current rate by a function of the number of steps, from step 1, or by one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Lambdas, last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group(self._name, optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        return lr * math.prod(float(self.lr_lambdas[group](k)) for k in range(1, step + 1))


class StepLR(LRScheduler):
    """Multiply the rate by `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each milestone, a number of steps."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return self.gamma ** bisect_right(self.milestones, step)


class ConstantLR(LRScheduler):
    """Multiply the rate by `factor` in the first `total_iters` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"{self._name}: got factor={factor}, expected a number from 0 to 1")
        self.first_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return self.first_factor if step < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """Change the factor of the rate linearly from `start_factor` to `end_factor` over `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"{self._name}: got factors {start_factor} and {end_factor}, expected numbers from 0 to 1")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return self.start_factor + (self.end_factor - self.start_factor) * min(step, self.total_iters) / self.total_iters


class ExponentialLR(LRScheduler):
    """Multiply the rate by `gamma` in each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return float(self.gamma**step)


class PolynomialLR(LRScheduler):
    """Let the rate fall to 0 over `total_iters` steps, as a power of the remaining share."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """Return the factor after `step` steps."""
        return float((1 - min(step, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """Let the rate swing as a cosine: from the initial rate to `eta_min` in `T_max` steps, and back in as many."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        return cosine(lr, self.eta_min, step / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Let the rate fall as half a cosine to `eta_min`, then start again; each period is `T_mult` times as long as the last.

    `step(epoch)` also takes a number of periods with a fraction.
    """

    is_chainable = False

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803  # PyTorch's name
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or T_mult < 1:
            raise ValueError(f"{self._name}: got T_0={T_0} and T_mult={T_mult}, expected at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: float, lr: float, group: int) -> float:
        """Return the rate of a group after `step` steps."""
        period: float = self.T_0
        while step >= period:
            step, period = step - period, period * self.T_mult
        return cosine(lr, self.eta_min, step / period)


def cosine(start: float, end: float, t: float) -> float:
    """Return the value at t, from 0 to 1, of half a cosine wave from `start` to `end`."""
    return end + (start - end) * (1 + math.cos(math.pi * t)) / 2


def linear(start: float, end: float, t: float) -> float:
    """Return the value at t, from 0 to 1, of a line from `start` to `end`."""
    return start + (end - start) * t


CURVES = {"cos": cosine, "linear": linear}


def per_group(name: str, optimizer: Optimizer, x: Any) -> list[Any]:
    """Return one value for each parameter group."""
    count = len(optimizer.param_groups)
    if not isinstance(x, list | tuple):
        return [x] * count
    if len(x) != count:
        raise ValueError(f"{name}: got {len(x)} values, expected {count}, one for each parameter group")
    return list(x)

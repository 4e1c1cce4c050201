"""Schedulers that combine others, and one that watches a metric: SequentialLR, ChainedScheduler, ReduceLROnPlateau."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from .lr_formulas import LRScheduler, PerGroup, per_group
from .optimizer import Optimizer
from .schedules import check_not_traced


class SequentialLR(LRScheduler):
    """Use several schedulers, one after the other: from milestone k, a number of steps, on, number k + 1."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{self._name}: got {len(milestones)} milestones for {len(schedulers)} schedulers, expected one fewer"
            )
        self._check_optimizer(optimizer, schedulers)
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_step = last_epoch + 1
        self.schedulers[0].step(0)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next optimizer step."""
        check_not_traced(self._name)
        self.last_step += 1
        k = bisect_right(self.milestones, self.last_step)
        self.schedulers[k].step(0 if k > 0 and self.milestones[k - 1] == self.last_step else None)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, and the states of the schedulers."""
        return {"last_epoch": self.last_step, "_schedulers": [x.state_dict() for x in self.schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.last_step = int(state["last_epoch"])
        for scheduler, part in zip(self.schedulers, state["_schedulers"], strict=True):
            scheduler.load_state_dict(part)


class ChainedScheduler(SequentialLR):
    """Use several schedulers at once: their factors are multiplied."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError(f"{self._name}: got no schedulers")
        self.optimizer, self.schedulers, self.last_step = optimizer or schedulers[0].optimizer, list(schedulers), 0
        self._check_optimizer(self.optimizer, schedulers)

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next optimizer step."""
        check_not_traced(self._name)
        self.last_step += 1
        for scheduler in self.schedulers:
            scheduler.step()


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric has stopped improving. Call `step(metric)`.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer whose rates the scheduler sets.
    mode : {"min", "max"}
        Whether a smaller or a larger metric is better.
    factor : float
        Less than 1.
    patience : int
        Number of steps without an improvement after which the next one reduces the rate.
    threshold : float
        The smallest improvement that counts.
    threshold_mode : {"rel", "abs"}
        Whether the threshold is relative to the best metric.
    cooldown : int
        Number of steps after a reduction in which none is counted.
    min_lr : float, or one for each group
        The smallest rate.
    eps : float
        The smallest change of a rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: PerGroup = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self._check_optimizer(optimizer)
        if factor >= 1:
            raise ValueError(f"{self._name}: got factor={factor}, expected less than 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"{self._name}: got mode={mode!r}, {threshold_mode!r}, expected min or max, rel or abs")
        self.optimizer, self.last_step, self.reduction = optimizer, 0, factor
        self.sign, self.threshold, self.is_relative = 1 if mode == "min" else -1, threshold, threshold_mode == "rel"
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.min_lrs = per_group(self._name, optimizer, min_lr)
        self.best, self.num_bad_epochs, self.cooldown_counter = math.inf * self.sign, 0, 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Compare a metric with the best one, and reduce the rates after too many steps without an improvement."""
        check_not_traced(self._name)
        self.last_step += 1
        metric = float(metrics)
        if self.is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group, smallest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                lr = max(float(group["lr"]) * self.reduction, smallest)
                group["lr"] = lr if float(group["lr"]) - lr > self.eps else group["lr"]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def is_better(self, metric: float) -> bool:
        """Return True if a metric is an improvement."""
        margin = self.sign * self.threshold
        bound = self.best * (1 - margin) if self.is_relative else self.best - margin
        return self.sign * metric < self.sign * bound

    def state_dict(self) -> dict[str, Any]:
        """Return the best metric and the counts."""
        names = ("best", "num_bad_epochs", "cooldown_counter")
        return {"last_epoch": self.last_step, **{name: getattr(self, name) for name in names}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.last_step, self.best = int(state["last_epoch"]), float(state["best"])
        self.num_bad_epochs, self.cooldown_counter = int(state["num_bad_epochs"]), int(state["cooldown_counter"])

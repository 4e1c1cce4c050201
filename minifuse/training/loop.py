"""The training loop: one step for each batch of a loader, and a record of each step.

Every training run of the package uses this loop: recipes (`Trainer`), `minifuse demo`, and the page "Train".
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import nan
from time import perf_counter
from typing import TypedDict

from ..data import Loader
from ..distributed import all_reduce, average_gradients, weigh_part
from ..nn import Module
from ..optim import Optimizer, Schedule, clip_grad_norm_
from ..tensors.tensor import Tensor

LossFunction = Callable[..., Tensor]  # (model, *batch) -> loss


class StepRecord(TypedDict):
    """The record of a step: number and epoch, counted from 1, learning rate, loss, and seconds, with data loading."""

    step: int
    epoch: int
    rate: float
    loss: float
    seconds: float


def train_step(
    compute_loss: LossFunction, model: Module, optimizer: Optimizer, max_norm: float | None, *batch: Tensor
) -> Tensor:
    """Compute the loss of a batch (a rank has a part of it) and its gradients, clip them, and update the parameters."""
    loss = weigh_part(compute_loss(model, *batch), len(batch[0]))
    optimizer.zero_grad()
    loss.backward()
    average_gradients(p for group in optimizer.param_groups for p in group["params"])
    clip_gradients(optimizer, max_norm)
    optimizer.step()
    return all_reduce(loss.detach(), "mean")


def clip_gradients(optimizer: Optimizer, max_norm: float | None) -> None:
    """Clip the gradients of all parameters of an optimizer, unless `max_norm` is None."""
    if max_norm is not None:
        clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)


@dataclass(eq=False)
class TrainingLoop:
    """Training steps over the batches of a loader, which can be interrupted and continued."""

    model: Module
    optimizer: Optimizer
    loader: Loader
    step: Callable[..., Tensor]
    """Takes a training step with the tensors of a batch, and returns the loss; see `train_step`."""
    schedule: Schedule | None = None
    """The schedule of the learning rate. Its `step` is called after each training step."""
    steps: int = sys.maxsize
    """Number of steps in total."""
    eval_interval: int = sys.maxsize
    """Number of steps between two evaluations in an epoch; each epoch ends with one."""
    losses_per_fetch: int = 1
    """Number of losses that are copied from the device together."""
    done: int = 0
    """Number of steps done."""

    @property
    def is_evaluation_due(self) -> bool:
        """True if held-out data should be evaluated now."""
        return self.done % len(self.loader) % self.eval_interval == 0 or self.done >= self.steps

    def batches(self, goal: int) -> Iterator[tuple[Tensor, ...]]:
        """Iterate over the batches of the remaining steps up to step `goal`."""
        while self.done < goal:
            epoch, position = divmod(self.done, len(self.loader))
            self.loader.load_state_dict({**self.loader.state_dict(), "epoch": epoch, "position": position})
            yield from islice(self.loader, goal - self.done)

    def advance(self, goal: int | None = None) -> Iterator[list[StepRecord]]:
        """Run the remaining steps, or those up to step `goal`.

        Yields lists of at most `losses_per_fetch` records. A list ends at each step after which an evaluation is due.
        """
        goal = self.steps if goal is None else goal
        records, losses, start = list[StepRecord](), list[Tensor](), perf_counter()
        self.model.train()
        for batch in self.batches(goal):
            epoch, rate = self.done // len(self.loader) + 1, float(self.optimizer.param_groups[0]["lr"])
            records.append({"step": self.done + 1, "epoch": epoch, "rate": rate, "loss": nan, "seconds": nan})
            losses.append(self.step(*batch).detach())
            if self.schedule is not None:
                self.schedule.step()
            self.done += 1
            if len(losses) < self.losses_per_fetch and not self.is_evaluation_due and self.done < goal:
                continue
            values = [float(loss.item()) for loss in losses]
            seconds = (perf_counter() - start) / len(values)
            for record, value in zip(records, values, strict=True):
                record["loss"], record["seconds"] = value, seconds
            yield records
            records, losses, start = [], [], perf_counter()

"""The training loop: one step for each batch, and the state between two steps.

A step is what a user would write: loss, gradients, update. With `fuse` it is one fused function, so Python only passes the
next batch. `state` contains everything that the following steps depend on: after restoring it, training continues with
identical numbers.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any

from ..backends.registry import get_backend
from ..core.errors import CheckpointError, MinifuseError, ShapeError, TrainingError
from ..jit.fuse import fuse
from ..nn import Module
from ..optim import Optimizer, clip_grad_norm_
from ..tensors.creation import get_rng_state, manual_seed, set_rng_state
from ..tensors.tensor import Tensor
from .recipe import Recipe, Settings

MIN_EVALUATIONS = 20  # in a run with at least as many steps
STATE_PARTS = {"step", "model", "optimizer", "schedule", "rng"}
LOSSES_PER_FETCH = 10  # losses copied from a device together, since each copy waits for the device


def make_step(recipe: Recipe, model: Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    """Return the training step of a recipe."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]

    def step(*batch: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = recipe.loss(model, *batch)
        loss.backward()
        if recipe.max_norm is not None:
            clip_grad_norm_(parameters, recipe.max_norm)
        optimizer.step()
        return loss

    return step


class Trainer:
    """A training run: model, optimizer, data and the number of steps done.

    Parameters
    ----------
    recipe : Recipe
    settings : Settings

    Raises
    ------
    TrainingError, ShapeError
        The recipe cannot be built with these settings.

    Attributes
    ----------
    done, steps : int
        Number of steps done, and in total.
    between : int
        Number of steps between two evaluations; there is one at the end of each epoch, too.
    """

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        manual_seed(settings.seed)
        self.recipe, self.settings = recipe, settings
        with translate_errors(recipe, settings):
            self.data = recipe.data(settings)
            self.model = recipe.model(settings, self.data).to(backend=settings.backend)
        self.loader = self.data.loader
        if not len(self.loader):
            raise TrainingError(
                f"{recipe.name}: got batch={settings.batch} for {self.loader.length} examples, which make no batch; use a "
                "smaller one"
            )
        self.steps, self.done = settings.epochs * len(self.loader), 0
        with translate_errors(recipe, settings):
            self.optimizer, self.schedule = recipe.optimizer(settings, self.model, self.steps)
        step = make_step(recipe, self.model, self.optimizer)
        self.step: Callable[..., Tensor] = fuse(step) if settings.fuse else step
        is_host = get_backend(settings.backend).is_host
        self.at_once = 1 if is_host else LOSSES_PER_FETCH
        self.between = min(len(self.loader), max(self.steps // MIN_EVALUATIONS, 1))

    @property
    def is_time_to_look(self) -> bool:
        """True if held-out data should be evaluated now."""
        in_epoch = self.done % len(self.loader)
        return in_epoch % self.between == 0 or self.done >= self.steps

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return float(self.optimizer.param_groups[0]["lr"])

    def batches(self, goal: int) -> Iterator[tuple[Tensor, ...]]:
        """Iterate over the batches of the steps up to a step number."""
        while self.done < goal:
            epoch, position = divmod(self.done, len(self.loader))
            self.loader.load_state_dict({**self.loader.state_dict(), "epoch": epoch, "position": position})
            yield from islice(self.loader, goal - self.done)

    def advance(self, goal: int | None = None) -> Iterator[list[dict[str, Any]]]:
        """Run the remaining steps, or those up to a step number.

        Yields the records of the last few steps: step, epoch, rate, loss, seconds per step. When an evaluation is due, the
        last record is that of the last step.

        Raises
        ------
        BadLoss
            A loss is NaN or infinite.
        """
        goal = self.steps if goal is None else goal
        waiting, losses, began = list[dict[str, Any]](), list[Tensor](), perf_counter()
        self.model.train()
        for batch in self.batches(goal):
            waiting.append({"step": self.done + 1, "epoch": self.done // len(self.loader) + 1, "rate": self.rate})
            losses.append(self.step(*batch).detach())
            if self.schedule is not None:
                self.schedule.step()
            self.done += 1
            if len(losses) < self.at_once and not self.is_time_to_look and self.done < goal:
                continue
            values = [float(loss.item()) for loss in losses]
            seconds = (perf_counter() - began) / len(values)
            records = [{**one, "loss": value, "seconds": seconds} for one, value in zip(waiting, values, strict=True)]
            waiting, losses = [], []
            check_losses(records)
            yield records
            began = perf_counter()

    # State.

    def state(self) -> dict[str, Any]:
        """Return everything that the following steps depend on, as nested dicts. Tensors are not copied."""
        return {
            "step": self.done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule and self.schedule.state_dict(),
            "rng": get_rng_state(),
        }

    def restore(self, state: Any, origin: str = "the state") -> None:
        """Restore a state.

        Parameters
        ----------
        state
            The result of `state`.
        origin : str
            The source of the state, for messages.

        Raises
        ------
        ShapeError
            The state belongs to another model; the message lists the differences.
        CheckpointError
            The state has another form, or belongs to another optimizer, schedule or number of steps.

        Notes
        -----
        Do not use the trainer after an error: parts of the state may be restored.
        """
        missing = STATE_PARTS - state.keys() if isinstance(state, Mapping) else STATE_PARTS
        if missing:
            parts = ", ".join(sorted(missing))
            raise CheckpointError(
                f"{origin} is not the state of a run: {parts} is missing; use a checkpoint written by a run"
            )
        step, has_schedule = state["step"], self.schedule is not None
        if type(step) is not int or not 0 <= step <= self.steps:
            raise CheckpointError(
                f"{origin} is at step {step!r:.40}, expected 0 to {self.steps}; use the checkpoint of this run"
            )
        if (state["schedule"] is not None) is not has_schedule:
            raise CheckpointError(
                f"{origin} {'lacks a' if has_schedule else 'has a'} schedule of rates, unlike this run's recipe"
            )
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.schedule is not None:
                self.schedule.load_state_dict(state["schedule"])
            set_rng_state(state["rng"])
        except ShapeError as error:
            raise ShapeError(f"{origin}: {error}") from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{origin} does not fit this run: {error}; use the checkpoint of this run") from error
        self.done = step

    def measure(self) -> dict[str, float]:
        """Compute the metrics on held-out data."""
        self.model.eval()
        try:
            return self.recipe.measure(self.model, self.data)
        finally:
            self.model.train()


@contextmanager
def translate_errors(recipe: Recipe, settings: Settings) -> Iterator[None]:
    """Convert errors of the block, which depends only on settings, to a `TrainingError` that lists them."""
    try:
        yield
    except MinifuseError:
        raise
    except (MemoryError, OverflowError, ValueError) as error:
        shown = ", ".join(f"{name}={value}" for name, value in settings.as_dict().items())
        raise TrainingError(f"{recipe.name} cannot be built: {error}; choose other settings than {shown}") from error


def check_losses(records: list[dict[str, Any]]) -> None:
    """Raise BadLoss if a loss is NaN or infinite."""
    for one in records:
        if not math.isfinite(one["loss"]):
            raise BadLoss(one["step"], one["loss"])


class BadLoss(TrainingError):  # noqa: N818  # named after the fault
    """A loss is NaN or infinite.

    Attributes
    ----------
    step : int
        The first step with such a loss.
    """

    def __init__(self, step: int, loss: float, found: str = "") -> None:
        super().__init__(f"the loss of step {step} is {loss}{found and '; '}{found}")
        self.step, self.loss = step, loss

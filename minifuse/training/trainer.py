"""The loop: a step for each batch, and where a run stands between two of them.

A step is what a user would write: loss, gradients, update. With `fuse` it is one captured function, so Python does little
more than hand over the next batch. Everything that decides the next step is in `state`: put back, training goes on with the
very same numbers.
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

LOOKS = 20  # at what is held out, at least, if a run has as many steps
STATE_PARTS = {"step", "model", "optimizer", "schedule", "rng"}
AT_ONCE = 10  # losses that are fetched together from a device: each fetch waits for it


def step_of(recipe: Recipe, model: Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    """A step of training, as one writes it."""
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
    """A model on its way.

    Parameters
    ----------
    recipe : Recipe
    settings : Settings

    Raises
    ------
    TrainingError, ShapeError
        The recipe has no data, model or optimizer for these settings.

    Attributes
    ----------
    done, steps : int
        Steps that were taken, and all that will be.
    between : int
        Steps from one look at what is held out to the next; there is one at the end of each epoch too.
    """

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        manual_seed(settings.seed)
        self.recipe, self.settings = recipe, settings
        with refusing(recipe, settings):
            self.data = recipe.data(settings)
            self.model = recipe.model(settings, self.data).to(backend=settings.backend)
        self.loader = self.data.loader
        if not len(self.loader):
            raise TrainingError(
                f"{recipe.name}: {self.loader.length} examples make no batch of {settings.batch}; ask for fewer"
            )
        self.steps, self.done = settings.epochs * len(self.loader), 0
        with refusing(recipe, settings):
            self.optimizer, self.schedule = recipe.optimizer(settings, self.model, self.steps)
        step = step_of(recipe, self.model, self.optimizer)
        self.step: Callable[..., Tensor] = fuse(step) if settings.fuse else step
        is_host = get_backend(settings.backend).is_host
        self.at_once = 1 if is_host else AT_ONCE
        self.between = min(len(self.loader), max(self.steps // LOOKS, 1))

    @property
    def is_time_to_look(self) -> bool:
        """Whether what is held out should be looked at now."""
        in_epoch = self.done % len(self.loader)
        return in_epoch % self.between == 0 or self.done >= self.steps

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return float(self.optimizer.param_groups[0]["lr"])

    def batches(self, goal: int) -> Iterator[tuple[Tensor, ...]]:
        """The batches of the steps from here up to a goal."""
        while self.done < goal:
            epoch, position = divmod(self.done, len(self.loader))
            self.loader.load_state_dict({**self.loader.state_dict(), "epoch": epoch, "position": position})
            yield from islice(self.loader, goal - self.done)

    def advance(self, goal: int | None = None) -> Iterator[list[dict[str, Any]]]:
        """Take the steps that are left, or those up to a goal.

        Gives what is known of the last few: step, epoch, rate, loss, seconds a step. Where somebody wants to look, the last
        of them is the last step so far.

        Raises
        ------
        BadLoss
            A loss is no number.
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
            told = [{**one, "loss": value, "seconds": seconds} for one, value in zip(waiting, values, strict=True)]
            waiting, losses = [], []
            refuse_bad(told)
            yield told
            began = perf_counter()

    # Where it stands.

    def state(self) -> dict[str, Any]:
        """All that decides the steps to come: numbers and tensors, in dicts; the tensors are the run's own."""
        return {
            "step": self.done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule and self.schedule.state_dict(),
            "rng": get_rng_state(),
        }

    def restore(self, state: Any, origin: str = "the state") -> None:
        """Stand where a state was taken.

        Parameters
        ----------
        state
            What `state` returned.
        origin : str
            Where it was read from, for errors.

        Raises
        ------
        ShapeError
            It is the state of another model; the differences are named.
        CheckpointError
            It is no state of a run, or that of another optimizer, schedule or number of steps.

        Notes
        -----
        After an error the trainer must not be used: parts of the state may be restored.
        """
        missing = STATE_PARTS - state.keys() if isinstance(state, Mapping) else STATE_PARTS
        if missing:
            parts = ", ".join(sorted(missing))
            raise CheckpointError(f"{origin} is no state of a run: {parts} is missing; use a checkpoint that a run wrote")
        step, has_schedule = state["step"], self.schedule is not None
        if type(step) is not int or not 0 <= step <= self.steps:
            raise CheckpointError(
                f"{origin} is at step {step!r:.40}, expected 0 to {self.steps} of this run; use its own checkpoint"
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
            raise CheckpointError(f"{origin} does not fit this run: {error}; use its own checkpoint") from error
        self.done = step

    def measure(self) -> dict[str, float]:
        """How well it does on what it has not seen."""
        self.model.eval()
        try:
            return self.recipe.measure(self.model, self.data)
        finally:
            self.model.train()


@contextmanager
def refusing(recipe: Recipe, settings: Settings) -> Iterator[None]:
    """Raise an error of a block, which depends on nothing but settings, as a `TrainingError` that shows them."""
    try:
        yield
    except MinifuseError:
        raise
    except (MemoryError, OverflowError, ValueError) as error:
        shown = ", ".join(f"{name}={value}" for name, value in settings.as_dict().items())
        raise TrainingError(f"{recipe.name} cannot be built: {error}; choose other settings than {shown}") from error


def refuse_bad(told: list[dict[str, Any]]) -> None:
    """Raise where a loss is no number."""
    for one in told:
        if not math.isfinite(one["loss"]):
            raise BadLoss(one["step"], one["loss"])


class BadLoss(TrainingError):  # noqa: N818  # an error, by what is wrong
    """A loss is NaN or infinite.

    Attributes
    ----------
    step : int
        The first step whose loss is.
    """

    def __init__(self, step: int, loss: float, found: str = "") -> None:
        super().__init__(f"the loss of step {step} is {loss}{found and '; '}{found}")
        self.step, self.loss = step, loss

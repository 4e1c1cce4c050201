"""The training run of a recipe: its loop, evaluations, and the state between two steps.

With `fuse`, a step is one fused function, so Python only passes the next batch. `state` contains everything that the
following steps depend on: after restoring it, training continues with identical numbers.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..backends.registry import get_backend
from ..core.errors import CheckpointError, MinifuseError, ShapeError, TrainingError
from ..data import Loader
from ..distributed import rank, size
from ..jit.fuse import fuse
from ..nn import Module
from ..optim import Optimizer
from ..tensors.random import get_rng_state, manual_seed, set_rng_state
from ..tensors.tensor import Tensor
from .loop import TrainingLoop, train_step
from .recipe import Recipe, Settings

MIN_EVALUATIONS = 20  # evaluations of a run, if it has at least as many steps
STATE_PARTS = {"step", "model", "optimizer", "schedule", "rng"}
LOSSES_PER_FETCH = 10  # losses copied from a device together, since each copy waits for the device


def make_step(recipe: Recipe, model: Module, optimizer: Optimizer) -> Callable[..., Tensor]:
    """Return the training step of a recipe."""

    def step(*batch: Tensor) -> Tensor:
        return train_step(recipe.loss, model, optimizer, recipe.max_norm, *batch)

    return step


class Trainer(TrainingLoop):
    """A training run of a recipe: model, optimizer, data and the number of steps done.

    Parameters
    ----------
    recipe : Recipe
    settings : Settings

    Raises
    ------
    TrainingError, ShapeError
        The recipe cannot be built with these settings.
    """

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        manual_seed(settings.seed)
        self.recipe, self.settings = recipe, settings
        with translate_errors(recipe, settings):
            self.data = recipe.data(settings)
            model, loader = recipe.model(settings, self.data).to(backend=settings.backend), self.data.loader
        loader.shard = rank(), size()
        if not len(loader):
            raise TrainingError(
                f"{recipe.name}: got batch={settings.batch}, but the {loader.length} examples do not fill one batch; use a "
                "smaller batch"
            )
        self.require_parts(loader)
        steps = settings.epochs * len(loader)
        with translate_errors(recipe, settings):
            optimizer, schedule = recipe.optimizer(settings, model, steps)
        step = make_step(recipe, model, optimizer)
        step = fuse(step) if settings.fuse else step
        eval_interval = min(len(loader), max(steps // MIN_EVALUATIONS, 1))
        losses_per_fetch = 1 if get_backend(settings.backend).is_host else LOSSES_PER_FETCH
        super().__init__(model, optimizer, loader, step, schedule, steps, eval_interval, losses_per_fetch)

    def require_parts(self, loader: Loader) -> None:
        """Raise TrainingError if a rank would have no part of a batch."""
        smallest = loader.length % loader.batch_size or loader.batch_size
        if min(smallest, loader.batch_size) < size() and not (loader.drop_last and loader.batch_size >= size()):
            raise TrainingError(
                f"{self.recipe.name}: a batch of {smallest} examples has not a part for each of {size()} ranks; use fewer "
                "ranks or another batch size"
            )

    # State.

    def state(self) -> dict[str, object]:
        """Return everything that the following steps depend on, as nested dicts. Tensors are not copied."""
        return {
            "step": self.done,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule and self.schedule.state_dict(),
            "rng": get_rng_state(),
        }

    def restore(self, state: object, origin: str = "the state") -> None:
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
        parts = state if isinstance(state, Mapping) else {}
        if missing := ", ".join(sorted(STATE_PARTS - parts.keys())):
            raise CheckpointError(
                f"{origin} is not the state of a run: {missing} is missing; use a checkpoint written by a run"
            )
        step, has_schedule = parts["step"], self.schedule is not None
        if type(step) is not int or not 0 <= step <= self.steps:
            raise CheckpointError(
                f"{origin} is at step {step!r:.40}, expected 0 to {self.steps}; use the checkpoint of this run"
            )
        if (parts["schedule"] is not None) is not has_schedule:
            raise CheckpointError(
                f"{origin} {'lacks' if has_schedule else 'has'} a learning rate schedule, unlike this run's recipe"
            )
        try:
            self.model.load_state_dict(parts["model"])
            self.optimizer.load_state_dict(parts["optimizer"])
            if self.schedule is not None:
                self.schedule.load_state_dict(parts["schedule"])
            set_rng_state(parts["rng"])
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
        settings_text = ", ".join(f"{name}={value}" for name, value in settings.as_dict().items())
        raise TrainingError(f"{recipe.name} cannot be built: {error}; choose other settings than {settings_text}") from error


class BadLoss(TrainingError):  # noqa: N818  # named after the fault
    """A loss is NaN or infinite.

    Attributes
    ----------
    step : int
        The first step whose loss is NaN or infinite.
    """

    def __init__(self, step: int, loss: float, details: str = "") -> None:
        super().__init__(f"the loss of step {step} is {loss}{details and '; '}{details}")
        self.step, self.loss = step, loss

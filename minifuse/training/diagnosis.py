"""Where a bad number came from. Training goes back to the last checkpoint, comes again to where it was, and looks.

Each run of a step gives the same numbers, so the second time leads to the same place; there the layers run one by one.
"""

from typing import Any

import numpy as np

from ..core.dispatch import no_grad
from ..nn import Module
from ..nn.hooks import watched
from ..tensors.tensor import Tensor
from .recipe import Recipe, Settings
from .run_folder import RunFolder
from .trainer import BadLoss, Trainer

ADVICE = "lower the rate, or clip gradients"


def explained(error: BadLoss, recipe: Recipe, settings: Settings, folder: RunFolder) -> BadLoss:
    """The error of a loss that is no number, with the first layer that went bad.

    Notes
    -----
    Costs the steps since the last checkpoint once more.
    """
    trainer = Trainer(recipe, settings)
    trainer.restore(folder.load(settings.backend))
    before: tuple[Tensor, ...] = ()
    if trainer.done < error.step - 1:
        take(trainer, error.step - 2)
        before = next(trainer.batches(error.step - 1))
    take(trainer, error.step - 1)
    batch = next(trainer.batches(error.step))
    return BadLoss(error.step, error.loss, first_bad(recipe, trainer.model, batch, before))


def take(trainer: Trainer, goal: int) -> None:
    """Take the steps up to a goal."""
    for _ in trainer.advance(goal):
        pass


def first_bad(recipe: Recipe, model: Module, batch: tuple[Tensor, ...], before: tuple[Tensor, ...] = ()) -> str:
    """The first thing that is no number, on the way from a batch, and the batch before it, to its loss, in words."""
    for k, x in enumerate(batch):
        if count := bad_ones(x):
            return f"input {k} of its batch holds {count:,} numbers that are not finite: look at the data"
    for name, p in model.named_parameters():
        if count := bad_ones(p):
            why = next(
                (f"input {k} of its batch holds {n:,} of them" for k, x in enumerate(before) if (n := bad_ones(x))), ""
            )
            return f"{name} holds {count:,} numbers that are not finite, which the step before has made: {why or ADVICE}"
    seen = list[tuple[str, Module, Any]]()
    with no_grad(), watched(model, lambda *told: seen.append(told)):
        recipe.loss(model, *batch)
    for name, module, output in seen:
        for x in output if isinstance(output, tuple | list) else [output]:
            if count := bad_ones(x):
                title = f"{name} ({type(module).__name__})" if name else type(module).__name__
                return (
                    f"the first layer that gave one is {title}: {count:,} of its {x.size:,} outputs are not finite; {ADVICE}"
                )
    return "every layer gave finite numbers, and the loss of them is not: they are too large, or have no logarithm"


def bad_ones(x: Any) -> int:
    """How many numbers of a tensor are NaN or infinite."""
    return int(np.count_nonzero(~np.isfinite(x.numpy()))) if isinstance(x, Tensor) and x.dtype.is_float else 0

"""Find the source of a loss that is NaN or infinite: repeat training from the last checkpoint, and check each layer.

Steps are reproducible, so the second run reaches the same state; there the layers run one by one.
"""

import numpy as np

from ..core.dispatch import no_grad
from ..nn import Module
from ..nn.hooks import watch_outputs
from ..tensors.tensor import Tensor
from .recipe import Recipe, Settings
from .run_folder import RunFolder
from .trainer import BadLoss, Trainer

ADVICE = "lower the learning rate, or clip gradients"


def diagnose(error: BadLoss, recipe: Recipe, settings: Settings, folder: RunFolder) -> BadLoss:
    """Return the error with a description of the first layer whose output is not finite.

    Notes
    -----
    Repeats the steps since the last checkpoint.
    """
    trainer = Trainer(recipe, settings)
    trainer.restore(folder.load(settings.backend))
    before: tuple[Tensor, ...] = ()
    if trainer.done < error.step - 1:
        advance_to(trainer, error.step - 2)
        before = next(trainer.batches(error.step - 1))
    advance_to(trainer, error.step - 1)
    batch = next(trainer.batches(error.step))
    return BadLoss(error.step, error.loss, describe_first_nonfinite(recipe, trainer.model, batch, before))


def advance_to(trainer: Trainer, goal: int) -> None:
    """Run the steps up to a step number."""
    for _ in trainer.advance(goal):
        pass


def describe_first_nonfinite(
    recipe: Recipe, model: Module, batch: tuple[Tensor, ...], before: tuple[Tensor, ...] = ()
) -> str:
    """Describe the first tensor with numbers that are not finite, from the batch to the loss."""
    for k, x in enumerate(batch):
        if count := count_nonfinite(x):
            return f"input {k} of the batch contains {count:,} numbers that are not finite: check the data"
    for name, p in model.named_parameters():
        if count := count_nonfinite(p):
            why = next(
                (
                    f"input {k} of that batch contains {n:,} of them"
                    for k, x in enumerate(before)
                    if (n := count_nonfinite(x))
                ),
                "",
            )
            return f"{name} contains {count:,} numbers that are not finite after the previous step: {why or ADVICE}"
    seen = list[tuple[str, Module, object]]()
    with no_grad(), watch_outputs(model, lambda *output: seen.append(output)):
        recipe.loss(model, *batch)
    for name, module, output in seen:
        for y in output if isinstance(output, tuple | list) else [output]:
            if isinstance(y, Tensor) and (count := count_nonfinite(y)):
                title = f"{name} ({type(module).__name__})" if name else type(module).__name__
                return f"the first such layer is {title}: {count:,} of its {y.size:,} outputs are not finite; {ADVICE}"
    return "the outputs of all layers are finite, and their loss is not: they are too large, or have no logarithm"


def count_nonfinite(x: Tensor) -> int:
    """Count the elements of a tensor that are NaN or infinite."""
    return int(np.count_nonzero(~np.isfinite(x.numpy()))) if x.dtype.is_float else 0

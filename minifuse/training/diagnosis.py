"""Find the source of a loss that is NaN or infinite: repeat training from the last checkpoint, and check each layer.

Steps are reproducible, so the repetition reaches the state before the bad step. In that step the layers run one by one.
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
    previous_batch: tuple[Tensor, ...] = ()
    if trainer.done < error.step - 1:
        advance_to(trainer, error.step - 2)
        previous_batch = next(trainer.batches(error.step - 1))
    advance_to(trainer, error.step - 1)
    batch = next(trainer.batches(error.step))
    return BadLoss(error.step, error.loss, describe_first_nonfinite(recipe, trainer.model, batch, previous_batch))


def advance_to(trainer: Trainer, goal: int) -> None:
    """Run all steps up to step `goal`."""
    for _ in trainer.advance(goal):
        pass


def describe_first_nonfinite(
    recipe: Recipe, model: Module, batch: tuple[Tensor, ...], previous_batch: tuple[Tensor, ...] = ()
) -> str:
    """Describe the first tensor that is not finite, in the order of computation: batch, parameters, outputs of layers."""
    for k, x in enumerate(batch):
        if count := count_nonfinite(x):
            return f"input {k} of the batch contains {count:,} numbers that are not finite: check the data"
    for name, p in model.named_parameters():
        if count := count_nonfinite(p):
            why = next(
                (
                    f"input {k} of its batch contains {n:,} numbers that are not finite: check the data"
                    for k, x in enumerate(previous_batch)
                    if (n := count_nonfinite(x))
                ),
                "",
            )
            return f"{name} contains {count:,} numbers that are not finite after the previous step; {why or ADVICE}"
    outputs = list[tuple[str, Module, object]]()
    with no_grad(), watch_outputs(model, lambda *output: outputs.append(output)):
        recipe.loss(model, *batch)
    for name, module, output in outputs:
        for y in output if isinstance(output, tuple | list) else [output]:
            if isinstance(y, Tensor) and (count := count_nonfinite(y)):
                title = f"{name} ({type(module).__name__})" if name else type(module).__name__
                return f"in the first non-finite layer, {title}, {count:,} of {y.size:,} outputs are not finite; {ADVICE}"
    return "the outputs of all layers are finite, but too large for the loss, or outside the domain of its logarithm"


def count_nonfinite(x: Tensor) -> int:
    """Count the elements of a tensor that are NaN or infinite."""
    return int(np.count_nonzero(~np.isfinite(x.numpy()))) if x.dtype.is_float else 0

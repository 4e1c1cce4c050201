"""A run from where it stands to its end: steps, the log, looks at what is held out, checkpoints, curves."""

from collections.abc import Callable, Mapping
from math import nan
from time import monotonic
from typing import Any

from .curves import draw
from .diagnosis import bad_ones, explained
from .run_folder import CURVES, RunFolder
from .trainer import BadLoss, Trainer

SAVE_S = 30.0  # between two checkpoints within an epoch

Told = list[dict[str, Any]]


def fit(
    trainer: Trainer,
    folder: RunFolder,
    tell: Callable[[Told, Mapping[str, float] | None], bool | None] | None = None,
) -> bool:
    """Train to the end, or until somebody says stop.

    Parameters
    ----------
    trainer : Trainer
        Where it stands: at its beginning, or restored.
    folder : RunFolder
        Gets the log, checkpoints at each look at what is held out and at least every half minute, and the curves.
    tell : function of (last steps, numbers of what is held out or None), optional
        Called after each few steps; gives True to stop. The numbers come with each look.

    Returns
    -------
    bool
        Whether all steps are done.

    Raises
    ------
    BadLoss
        A loss is no number: with its step, and the first layer that went bad. The last checkpoint is from before.
    TrainingError, CheckpointError
        Something cannot be written; the last checkpoint is whole.
    """
    if not trainer.done:
        folder.save(trainer.state())
    saved = monotonic()
    try:
        for told in trainer.advance():
            folder.note(*told)
            numbers = None
            if trainer.is_time_to_look:
                numbers = trainer.measure()
                folder.note({"step": trainer.done, "epoch": told[-1]["epoch"], "held_out": numbers})
            is_stopped = bool(tell and tell(told, numbers))
            if numbers or is_stopped or monotonic() - saved > SAVE_S:
                keep(trainer, folder)
                saved = monotonic()
            if is_stopped:
                break
    except BadLoss as error:
        raise explained(error, trainer.recipe, trainer.settings, folder) from None
    finally:
        folder.close()
    draw(list(folder.lines()), trainer.recipe, folder.path / CURVES)
    return trainer.done >= trainer.steps


def keep(trainer: Trainer, folder: RunFolder) -> None:
    """Save a checkpoint; not of weights that went bad, which would take the place of good ones."""
    if any(bad_ones(p) for p in trainer.model.parameters()):
        raise BadLoss(trainer.done + 1, nan)
    folder.save(trainer.state())


def resume(trainer: Trainer, folder: RunFolder) -> None:
    """Stand where the last checkpoint was taken, and forget what the log says of later steps."""
    trainer.restore(folder.load(trainer.settings.backend))
    folder.forget_after(trainer.done)

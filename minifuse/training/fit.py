"""A run from where it stands to its end: steps, the log, looks at what is held out, checkpoints, curves."""

from collections.abc import Callable, Mapping
from math import nan
from time import monotonic
from typing import Any

from ..core.errors import TrainingError
from .curves import draw
from .diagnosis import bad_ones, explained
from .run_folder import CHECKPOINT, CURVES, RunFolder
from .trainer import BadLoss, Trainer

SAVE_S = 30.0  # between two checkpoints within an epoch

Told = list[dict[str, Any]]
Tell = Callable[[Told, Mapping[str, float] | None], bool | None]


def fit(
    trainer: Trainer,
    folder: RunFolder,
    tell: Tell | None = None,
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
        Another process trains in the folder, or something cannot be written; the last checkpoint is whole.

    Notes
    -----
    The folder is locked until this function returns or raises.
    """
    try:
        if not trainer.done:
            folder.save(trainer.state())
        train(trainer, folder, tell)
        folder.put(CURVES, draw(list(folder.lines()), trainer.recipe))
    except BadLoss as error:
        raise explained(error, trainer.recipe, trainer.settings, folder) from None
    finally:
        folder.close()
    return trainer.done >= trainer.steps


def train(trainer: Trainer, folder: RunFolder, tell: Tell | None) -> None:
    """Take the steps that are left, or those until `tell` returns True; log, measure and save meanwhile."""
    saved = monotonic()
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


def keep(trainer: Trainer, folder: RunFolder) -> None:
    """Save a checkpoint; not of weights that went bad, which would take the place of good ones."""
    if any(bad_ones(p) for p in trainer.model.parameters()):
        raise BadLoss(trainer.done + 1, nan)
    folder.save(trainer.state())


def resume(trainer: Trainer, folder: RunFolder) -> None:
    """Restore the last checkpoint, drop later lines from the log, and keep the folder locked for `fit`.

    Parameters
    ----------
    trainer : Trainer
        A new one, with the settings of the run. It must not be used after an error.
    folder : RunFolder
        A run that ended before its first checkpoint begins at its first step.

    Raises
    ------
    TrainingError
        Another process trains in the folder, a file is damaged, or there are steps in the log and no checkpoint.
    CheckpointError
        The checkpoint is damaged, or of another run.
    ShapeError
        It is the checkpoint of another model.
    """
    folder.lock()
    try:
        if not folder.is_untouched:
            trainer.restore(folder.load(trainer.settings.backend), str(folder.path / CHECKPOINT))
        elif trainer.done:
            raise TrainingError(
                f"{folder.path} has no checkpoint yet, and the trainer is at step {trainer.done}; pass a new one"
            )
        folder.forget_after(trainer.done)
    except BaseException:
        folder.close()
        raise

"""Run the training loop: steps, the log, evaluations, checkpoints and curves."""

from collections.abc import Callable, Mapping
from math import isfinite, nan
from time import monotonic

from ..core.errors import TrainingError
from .curves import draw_curves
from .diagnosis import count_nonfinite, diagnose
from .loop import StepRecord
from .run_folder import CHECKPOINT, CURVES, RunFolder
from .trainer import BadLoss, Trainer

SAVE_INTERVAL_S = 30.0  # seconds between two checkpoints

ProgressCallback = Callable[[list[StepRecord], Mapping[str, float] | None], bool | None]


def fit(trainer: Trainer, folder: RunFolder, tell: ProgressCallback | None = None) -> bool:
    """Train to the end, or until the callback asks to stop.

    Parameters
    ----------
    trainer : Trainer
        A new trainer, or a restored one.
    folder : RunFolder
        Stores the log, checkpoints at each evaluation and at least every half minute, and the curves.
    tell : function of (list of StepRecord, metrics or None), optional
        Called after every few steps with their records and, after an evaluation, with its metrics. Returns True to stop.

    Returns
    -------
    bool
        True if all steps are done.

    Raises
    ------
    BadLoss
        A loss is NaN or infinite. The message names the step, and the first layer whose output is not finite. The last
        checkpoint was saved before that step.
    TrainingError, CheckpointError
        Another process trains in the folder, or a file cannot be written. The last checkpoint is intact.

    Notes
    -----
    The folder is locked until this function returns or raises.
    """
    try:
        if not trainer.done:
            folder.save(trainer.state())
        train(trainer, folder, tell)
        folder.put(CURVES, draw_curves(list(folder.lines()), trainer.recipe))
    except BadLoss as error:
        raise diagnose(error, trainer.recipe, trainer.settings, folder) from None
    finally:
        folder.close()
    return trainer.done >= trainer.steps


def train(trainer: Trainer, folder: RunFolder, tell: ProgressCallback | None) -> None:
    """Run steps until all are done or `tell` returns True; log them, and evaluate and save when due."""
    last_save_s = monotonic()
    for records in trainer.advance():
        for record in records:
            if not isfinite(record["loss"]):
                raise BadLoss(record["step"], record["loss"])
        folder.note(*records)
        metrics = None
        if trainer.is_evaluation_due:
            metrics = trainer.measure()
            folder.note({"step": trainer.done, "epoch": records[-1]["epoch"], "held_out": metrics})
        is_stopped = bool(tell and tell(records, metrics))
        if metrics or is_stopped or monotonic() - last_save_s > SAVE_INTERVAL_S:
            save_checkpoint(trainer, folder)
            last_save_s = monotonic()
        if is_stopped:
            break


def save_checkpoint(trainer: Trainer, folder: RunFolder) -> None:
    """Save a checkpoint. Raise BadLoss if a weight is not finite, since the checkpoint would overwrite a good one."""
    if any(count_nonfinite(p) for p in trainer.model.parameters()):
        raise BadLoss(trainer.done + 1, nan)
    folder.save(trainer.state())


def resume(trainer: Trainer, folder: RunFolder) -> None:
    """Restore the last checkpoint, remove the log lines of later steps, and keep the folder locked for `fit`.

    Parameters
    ----------
    trainer : Trainer
        A new trainer with the settings of the run. Do not use it after an error.
    folder : RunFolder
        The folder of the run. A run that ended before its first checkpoint starts at its first step.

    Raises
    ------
    TrainingError
        Another process trains in the folder, a file is damaged, or the log has steps but there is no checkpoint.
    CheckpointError
        The checkpoint is damaged, or belongs to another run.
    ShapeError
        The checkpoint belongs to another model.
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

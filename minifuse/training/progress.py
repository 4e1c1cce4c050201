"""Progress bars of training runs and commands, in terminals and in notebooks.

A notebook shows a bar as one output, which is updated in place; rich's own bars need ipywidgets there, and a thread whose
output kernels do not assign to the cell.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from ..core.errors import MissingPartError
from .loop import StepRecord
from .trainer import Trainer

try:
    from rich.console import Console, Group, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text
except ImportError:
    raise MissingPartError('progress bars need rich, which is not installed; run: pip install "minifuse[train]"') from None

LOSS_SMOOTHING = 0.9  # weight of the previous value in the displayed loss
MIN_SHOWN_S = 60.0  # lines show the remaining time if it is longer; where no terminal is, there is no bar
REFRESH_INTERVAL_S = 0.2  # seconds between two updates of a bar in a notebook

StepCallback = Callable[[list[StepRecord], Mapping[str, float] | None], None]


class ProgressBar(Progress):
    """A progress bar in a terminal."""

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False)


class NotebookProgressBar(ProgressBar):
    """A progress bar in a notebook, with the lines that were printed, as one output."""

    def __init__(self, *columns: Any, **options: Any) -> None:
        self.printed: list[Text] = []
        self.handle: Any = None
        self.next_refresh_s = 0.0
        super().__init__(*columns, **options | {"auto_refresh": False})

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        self.printed.append(Text(text))
        self.refresh()

    def start(self) -> None:
        """Show the bar."""
        if not self.disable:
            from IPython.display import display

            self.handle = display(self, display_id=True)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Show the last state of the bar, which stays."""
        self.next_refresh_s = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Update the output, unless it was updated a moment ago."""
        if self.handle is not None and monotonic() >= self.next_refresh_s:
            self.handle.update(self)
            self.next_refresh_s = monotonic() + REFRESH_INTERVAL_S

    def update(self, *arguments: Any, **changes: Any) -> None:
        """Change a task, and update the output."""
        super().update(*arguments, **changes)
        self.refresh()

    def get_renderable(self) -> RenderableType:
        """Return the lines and the bar."""
        return Group(*self.printed, super().get_renderable())


def new_progress_bar(*columns: Any, console: Console | None = None, **options: Any) -> ProgressBar:
    """Return a progress bar for a terminal or for a notebook, wherever this runs; the options are those of rich."""
    console = console or Console()
    return (NotebookProgressBar if console.is_jupyter else ProgressBar)(*columns, console=console, **options)


@contextmanager
def show_progress(trainer: Trainer, console: Console | None = None) -> Iterator[StepCallback]:
    """Show a progress bar with loss, speed and remaining time, and a line for each evaluation.

    Parameters
    ----------
    trainer : Trainer
    console : rich.console.Console, optional
        Where the bar is shown. Default: the terminal, or the notebook.

    Yields
    ------
    function of (list of StepRecord, metrics or None)
        Updates the bar. `fit` calls it if it is passed as `tell`.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    loss_and_speed, metric = [0.0, 0.0], trainer.recipe.target
    with new_progress_bar(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("training", total=trainer.steps, completed=trainer.done, speed="")

        def report(records: list[StepRecord], numbers: Mapping[str, float] | None) -> None:
            for record in records:
                weight = LOSS_SMOOTHING if loss_and_speed[1] else 0.0
                loss_and_speed[0] = weight * loss_and_speed[0] + (1 - weight) * record["loss"]
                loss_and_speed[1] = trainer.settings.batch / record["seconds"]
            progress.update(
                bar,
                completed=trainer.done,
                description=f"loss {loss_and_speed[0]:.3f}",
                speed=f"{loss_and_speed[1]:,.0f}/s, left",
            )
            if numbers is not None:
                line = f"step {trainer.done:>6,} of {trainer.steps:,}   loss {loss_and_speed[0]:.4f}"
                left = progress.tasks[bar].time_remaining
                left_text = f"   {left / 60:,.0f} min left" if left and left >= MIN_SHOWN_S else ""
                progress.print_line(f"{line}   held-out {metric} {numbers[metric]:.4f}{left_text}")

        yield report

"""training/progress.py: progress bars in a terminal and in a notebook."""

import io
import re
from time import monotonic

import pytest
from rich.console import Console
from rich.progress import Task

from minifuse.recipes import recipe_named
from minifuse.training import Trainer, progress
from minifuse.training.progress import NotebookProgressBar, ProgressBar, new_progress_bar, show_progress


class Handle:
    """The display of a notebook: what it has shown."""

    def __init__(self, shown):
        self.shown = [shown.get_renderable()]

    def update(self, shown):
        self.shown.append(shown.get_renderable())


@pytest.fixture
def handles(monkeypatch):
    IPython = pytest.importorskip("IPython.display", reason="needs minifuse[notebooks]")  # noqa: N806  # a module
    made = []

    def display(shown, display_id):
        assert display_id is True
        made.append(Handle(shown))
        return made[-1]

    monkeypatch.setattr(IPython, "display", display)
    return made


def notebook_console():
    return Console(file=io.StringIO(), force_jupyter=True, width=80)


def text_of(renderable):
    console = Console(file=io.StringIO(), width=80)
    console.print(renderable)
    return console.file.getvalue()


def test_the_kind_of_bar_fits_the_place():
    assert type(new_progress_bar(console=notebook_console())) is NotebookProgressBar
    assert type(new_progress_bar(console=Console(file=io.StringIO(), force_jupyter=False))) is ProgressBar


def test_a_notebook_has_one_output_which_is_not_updated_all_the_time(handles):
    with new_progress_bar(console=notebook_console()) as bar:
        start = monotonic()
        task = bar.add_task("counting", total=1000)
        for _ in range(1000):
            bar.update(task, advance=1)
        intervals = (monotonic() - start) / progress.REFRESH_INTERVAL_S
    (handle,) = handles
    assert len(handle.shown) <= intervals + 4
    assert "100%" in text_of(handle.shown[-1])


def test_lines_are_part_of_the_output(handles):
    console = notebook_console()
    with new_progress_bar(console=console) as bar:
        bar.add_task("counting", total=3)
        bar.print_line("a [line] of text")
    assert text_of(handles[0].shown[-1]).splitlines()[0].strip() == "a [line] of text"
    assert console.file.getvalue() == ""


def test_a_terminal_prints_lines_above_the_bar():
    console = Console(file=io.StringIO(), force_jupyter=False, width=80)
    with new_progress_bar(console=console, transient=True) as bar:
        bar.print_line("a [line] of text")
    assert "a [line] of text" in console.file.getvalue()


def test_a_disabled_bar_shows_nothing(handles):
    with new_progress_bar(console=notebook_console(), disable=True) as bar:
        bar.update(bar.add_task("counting", total=1), advance=1)
    assert handles == []


def test_a_run_shows_its_steps_and_evaluations(handles):
    recipe = recipe_named("mlp")
    trainer = Trainer(recipe, recipe.settings.changed({"epochs": 1}))
    with show_progress(trainer, notebook_console()) as report:
        for records in trainer.advance():
            report(records, {"accuracy": 0.5} if trainer.done % 10 == 0 else None)
    text = text_of(handles[0].shown[-1])
    assert text.count("held-out accuracy 0.5000") == 2
    assert f"{trainer.steps}/{trainer.steps}" in text


@pytest.mark.parametrize(("seconds", "text"), [(150.0, "0.5000   2 min left"), (59.0, "0.5000\n"), (None, "0.5000\n")])
def test_a_line_of_a_long_run_has_the_minutes_that_are_left(seconds, text, monkeypatch):
    monkeypatch.setattr(Task, "time_remaining", seconds)
    recipe = recipe_named("mlp")
    console = Console(file=io.StringIO(), force_jupyter=False, width=80)
    with show_progress(Trainer(recipe, recipe.settings), console) as report:
        report([], {"accuracy": 0.5})
    assert text in re.sub(" +\n", "\n", console.file.getvalue())


KERNEL_CELLS = (
    """
from minifuse.recipes import recipe_named
from minifuse.training import Trainer
from minifuse.training.progress import show_progress
recipe = recipe_named("mlp")
trainer = Trainer(recipe, recipe.settings.changed({"epochs": 2}))
with show_progress(trainer) as report:
    for records in trainer.advance():
        report(records, trainer.measure() if trainer.is_evaluation_due else None)
""",
    """
from minifuse.cli import warmup
warmup.run(warmup.WarmupRequest(("mlp",)), json=False);
""",
)


def test_in_a_kernel_progress_is_one_output(tmp_path, monkeypatch):
    pytest.importorskip("nbclient", reason="needs minifuse[notebooks]")
    pytest.importorskip("ipykernel", reason="needs minifuse[notebooks]")
    from tests.docs.run_notebook import run_cells

    training, warmup = run_cells(tmp_path, *KERNEL_CELLS)
    (output,) = training
    assert "46/46" in output["data"]["text/plain"]
    bar, summary = warmup
    assert "1/1" in bar["data"]["text/plain"]
    assert "kernels" in summary["data"]["text/plain"]

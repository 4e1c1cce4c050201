"""The state of `minifuse course watch`, without a terminal and without processes.

saved, pressed, began, ended        events; each changes the state
running, number                     the task to judge now; a new number means that earlier runs are obsolete
screen                              the content of the terminal
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from ..core.errors import MinifuseError
from . import report, workspace
from .progress import is_same_code, next_task, parts, passes, text, untouched_results
from .registry import all_tasks
from .task import Task
from .verdicts import Result

KEYS = {
    "h": "hint",
    "l": "list",
    "d": "diff",
    "v": "picture",
    "r": "reset",
    "n": "next",
    "q": "quit",
}


class Watch:
    """The state of a watch over a student's folder.

    Parameters
    ----------
    folder : Path
    first : Task or None
        The task to begin with. Default: the first one that does not pass.
    known : mapping of str to Result, optional
        Results that are known without a run, by the id of their task.
    show : function of a link
        Opens a page of the visualizer and returns a sentence with its address. Called when v is pressed.
    """

    def __init__(
        self,
        folder: Path,
        first: Task | None = None,
        show: Callable[[str], str] = str,
        known: Mapping[str, Result] | None = None,
    ) -> None:
        self.folder, self._show = folder, show
        self.results = {**(untouched_results(folder) if known is None else known)}
        self.task = first or next_task(self.results) or all_tasks()[0]
        self.results.pop(self.task.id, None)
        self.running: Task | None = None
        """The task to judge now."""
        self.number = 0
        """The number of the current run. Events of other runs are ignored."""
        self.check = ""
        self.is_over = False
        self._advances = first is None  # until a task does not pass
        self._waiting = [self.task, *(task for task in all_tasks() if task is not self.task and task.id not in self.results)]
        self._hints: dict[str, int] = {}
        self._view, self._message, self._is_confirming = "result", "", False
        self._difference: list[str] = []
        self._texts = {task.file: text(folder / task.file) for task in all_tasks()}
        self._advance()

    def saved(self, names: Iterable[str]) -> None:
        """Handle saved files: judge the changed task first, then all others that the files may affect."""
        files = {name for name in names if name not in self._texts or text(self.folder / name) != self._texts[name]}
        if not files:
            return
        changed = [task for task in all_tasks() if task.file in files and self._has_changed(task)]
        self._texts |= {file: text(self.folder / file) for file in files & set(self._texts)}
        touched = [task for task in all_tasks() if task.file in files] or list(
            all_tasks()
        )  # any task may import other files
        self.task = self._choose_task(changed, touched)
        again = [self.task, *touched, *([self.running] if self.running else []), *self._waiting]
        self._waiting = list({task.id: task for task in again}.values())
        self._advances, self._is_confirming = False, False
        self._view, self._message = "result", ""
        self.results.pop(self.task.id, None)
        self._advance()

    def _has_changed(self, task: Task) -> bool:
        """Return whether a function of a task differs from the last saved version."""
        before, now = parts(self._texts[task.file]), parts(text(self.folder / task.file))
        return bool(now) and any(not is_same_code(now.get(slot), before.get(slot)) for slot in task.slots)

    def _choose_task(self, changed: list[Task], touched: list[Task]) -> Task:
        """Return the task that the student is probably working on."""
        if changed:
            return self.task if self.task in changed else changed[0]
        return self.task if self.task in touched else next((task for task in touched if not self.passes(task)), self.task)

    def pressed(self, key: str) -> None:
        """Handle a pressed key."""
        was_confirming, self._is_confirming, self._message = self._is_confirming, False, ""
        if was_confirming:
            self._message = self._reset() if key in "yY" else "nothing was changed"
        elif key == "h":
            self._hints[self.task.id] = min(self._hints.get(self.task.id, 0) + 1, len(report.hints_of(self.task)))
            self._view = "result"
        elif key in ("l", "d") and self._view == {"l": "list", "d": "diff"}[key]:
            self._view = "result"
        elif key == "l":
            self._view = "list"
        elif key == "d":
            self._diff()
        elif key == "v":
            self._picture()
        elif key == "r":
            self._is_confirming = True
        elif key == "n":
            self._next()
        elif key == "q":
            self.is_over = True

    def began(self, check: str) -> None:
        """Handle the start of a check."""
        self.check = check

    def ended(self, result: Result) -> None:
        """Handle the result of a run."""
        self.results[result.task] = result
        if self._advances and self.passes(self.task):
            self.task = next_task(self.results) or self.task
        self._advance()

    def passes(self, task: Task) -> bool:
        """Return whether a task has passed."""
        return passes(self.results, task)

    def _advance(self) -> None:
        """Request the next run."""
        self.running = self._waiting.pop(0) if self._waiting else None
        self.number += 1
        self.check = ""

    def _next(self) -> None:
        """Go to the next task that does not pass, and judge it."""
        following = next_task(self.results, self.task)
        if following is None or following is self.task:
            self._message = "every task passes" if self.passes(self.task) else "all other tasks pass"
            return
        self.task, self._view, self._advances = following, "result", False
        rest = [*([self.running] if self.running else []), *self._waiting]
        self._waiting = [self.task, *(task for task in rest if task is not self.task)]
        self._advance()

    def _diff(self) -> None:
        """Show the difference between the student's functions and the reference, if they pass."""
        if not self.passes(self.task):
            self._message = f"{self.task.id} does not pass yet, and the reference would spoil it"
            return
        try:
            self._difference = workspace.diff_with_reference(self.folder, self.task)
        except (MinifuseError, SyntaxError) as error:
            self._message = str(error)
            return
        self._view = "diff"

    def _picture(self) -> None:
        """Open the visualizer at the failing case."""
        result = self.results.get(self.task.id)
        link = next((o.link for o in result.outcomes if o.verdict != "passed"), "") if result else ""
        self._message = self._show(link) if link else "the visualizer has no page for this result"

    def _reset(self) -> str:
        """Reset the task, and return a sentence about it."""
        try:
            copy = workspace.reset(self.folder, self.task)
        except MinifuseError as error:
            return str(error)
        self.saved([self.task.file])
        backup = f"; your version is in {copy.relative_to(self.folder)}" if copy else ""
        return f"{', '.join(self.task.slots)} were reset{backup}"

    def screen(self) -> RenderableType:
        """Render the current view, the activity, the progress and the keys."""
        views = {"result": self._result, "list": self._list, "diff": self._differences}
        question = f"Reset {', '.join(self.task.slots)}? y/n" if self._is_confirming else ""
        lines: list[RenderableType] = [views[self._view](), ""]
        if self._message or question:
            lines += [report.indent(question or self._message, "bold"), ""]
        return Group(
            *lines, report.indent(self._state(), "dim"), report.indent(report.render_progress(self.results)), keys()
        )

    def _result(self) -> RenderableType:
        """Render the result of the task, and the hints that were requested."""
        result, number = self.results.get(self.task.id), self._hints.get(self.task.id, 0)
        if result is None:
            view: RenderableType = Text(f"{self.task.id} {self.task.title}", style="bold")
        else:
            view = report.render_result(self.task, result, advice="")  # the keys are shown
        hints = [Text.assemble((f"{kind}. ", "bold"), hint) for kind, hint in report.hints_of(self.task)[:number]]
        return Group(view, *(part for hint in hints for part in ("", report.indent(hint))))

    def _list(self) -> RenderableType:
        return report.render_status(self.results, self.task.id)

    def _differences(self) -> RenderableType:
        if not self._difference:
            return report.indent("Your functions and the reference are the same, line by line.")
        return Syntax("\n".join(self._difference), "diff", background_color="default", word_wrap=True)

    def _state(self) -> str:
        """Return a sentence about the current activity."""
        if self.running is None:
            return "waiting for you to save a file"
        return f"judging {self.running.id}" + (f": {self.check}" if self.check else " ...")


def keys() -> RenderableType:
    """Render the keys and their meaning."""
    return report.indent(
        Text.assemble(*[part for key, meaning in KEYS.items() for part in ((key, "bold"), f" {meaning}   ")])
    )

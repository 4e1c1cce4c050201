"""The state of `minifuse course watch`: it takes events, and says what to show and what to run. No terminal, no process.

saved, pressed, began, ended        what happened; each changes the state
running, number                     what is to be judged now; another number: what ran before is of no interest
screen                              what is to be seen
"""

import ast
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from ..core.errors import MinifuseError
from . import report, workspace
from .registry import TASKS
from .task import Task
from .verdicts import Outcome, Result

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
        The task to begin with; None: the first that does not hold.
    show : function of a link
        Opens the visualizer at a page, and gives a sentence with its address; asked when somebody presses v.
    """

    def __init__(self, folder: Path, first: Task | None = None, show: Callable[[str], str] = str) -> None:
        self.folder, self._show = folder, show
        self.task = first or TASKS[0]
        self.results = {task.id: untouched(task) for task in TASKS if task is not self.task and is_untouched(folder, task)}
        self.running: Task | None = None
        """The task to judge now."""
        self.number = 0
        """Of the run that is wanted; what comes from another one is late."""
        self.check = ""
        self.is_over = False
        self._is_looking = first is None  # for the first task that does not hold
        self._waiting = [self.task, *(task for task in TASKS if task is not self.task and task.id not in self.results)]
        self._hints: dict[str, int] = {}
        self._view, self._said, self._asks = "result", "", False
        self._difference: list[str] = []
        self._texts = {task.file: text(folder / task.file) for task in TASKS}
        self._advance()

    def saved(self, names: Iterable[str]) -> None:
        """Files of the folder were saved: judge the task that they belong to, then whatever else they may have changed."""
        files = {name for name in names if name not in self._texts or text(self.folder / name) != self._texts[name]}
        if not files:
            return
        changed = [task for task in TASKS if task.file in files and self._has_changed(task)]
        self._texts |= {file: text(self.folder / file) for file in files & set(self._texts)}
        touched = [task for task in TASKS if task.file in files] or list(TASKS)  # a file of their own may serve any task
        self.task = self._of_saved(changed, touched)
        again = [self.task, *touched, *([self.running] if self.running else []), *self._waiting]
        self._waiting = list({task.id: task for task in again}.values())
        self._is_looking, self._asks = False, False
        self._view, self._said = "result", ""
        self.results.pop(self.task.id, None)
        self._advance()

    def _has_changed(self, task: Task) -> bool:
        """Return whether a function of a task is not what it was."""
        before, now = parts(self._texts[task.file]), parts(text(self.folder / task.file))
        return bool(now) and any(now.get(slot) != before.get(slot) for slot in task.slots)

    def _of_saved(self, changed: list[Task], touched: list[Task]) -> Task:
        """The task that somebody works on who has saved these."""
        if changed:
            return self.task if self.task in changed else changed[0]
        return self.task if self.task in touched else next((task for task in touched if not self.holds(task)), self.task)

    def pressed(self, key: str) -> None:
        """A key."""
        asked, self._asks, self._said = self._asks, False, ""
        if asked:
            self._said = self._reset() if key in "yY" else "nothing was changed"
        elif key == "h":
            self._hints[self.task.id] = min(self._hints.get(self.task.id, 0) + 1, len(self.task.hints))
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
            self._asks = True
        elif key == "n":
            self._next()
        elif key == "q":
            self.is_over = True

    def began(self, check: str) -> None:
        """The run has come to this check."""
        self.check = check

    def ended(self, result: Result) -> None:
        """The run has a result."""
        self.results[result.task] = result
        if self._is_looking and self.holds(self.task):
            self.task = next((task for task in TASKS if not self.holds(task)), self.task)
        self._advance()

    def holds(self, task: Task) -> bool:
        """Return whether a task is known to hold."""
        return task.id in self.results and self.results[task.id].verdict == "passed"

    def _advance(self) -> None:
        """Want the next run."""
        self.running = self._waiting.pop(0) if self._waiting else None
        self.number += 1
        self.check = ""

    def _next(self) -> None:
        """Go to the next task that does not hold, and judge it."""
        at = TASKS.index(self.task)
        open_ = [task for task in (*TASKS[at + 1 :], *TASKS[:at]) if not self.holds(task)]
        if not open_:
            self._said = "every task holds" if self.holds(self.task) else "this is the only one that is left"
            return
        self.task, self._view, self._is_looking = open_[0], "result", False
        rest = [*([self.running] if self.running else []), *self._waiting]
        self._waiting = [self.task, *(task for task in rest if task is not self.task)]
        self._advance()

    def _diff(self) -> None:
        """Show the student's functions beside the reference, if they hold."""
        if not self.holds(self.task):
            self._said = f"{self.task.id} does not pass yet, and the reference would spoil it"
            return
        try:
            self._difference = workspace.difference(self.folder, self.task)
        except (MinifuseError, SyntaxError) as error:
            self._said = str(error)
            return
        self._view = "diff"

    def _picture(self) -> None:
        """Open the visualizer at the case that fails."""
        result = self.results.get(self.task.id)
        link = next((o.link for o in result.outcomes if o.verdict != "passed"), "") if result else ""
        self._said = self._show(link) if link else "there is no picture of this"

    def _reset(self) -> str:
        """Take the task back; what became of it."""
        try:
            copy = workspace.reset(self.folder, self.task)
        except MinifuseError as error:
            return str(error)
        self.saved([self.task.file])
        kept = f"; what you had is in {copy.relative_to(self.folder)}" if copy else ""
        return f"{', '.join(self.task.slots)} are as at first{kept}"

    def screen(self) -> RenderableType:
        """Render one failure, or what was asked for; the progress; the keys."""
        views = {"result": self._result, "list": self._list, "diff": self._compared}
        asks = f"Put {', '.join(self.task.slots)} back to what they were at first? y/n" if self._asks else ""
        lines: list[RenderableType] = [views[self._view](), ""]
        if self._said or asks:
            lines += [report.inside(asks or self._said, "bold"), ""]
        return Group(*lines, report.inside(self._state(), "dim"), report.inside(report.of_progress(self.results)), keys())

    def _result(self) -> RenderableType:
        """The task, what became of it, and the hints that were asked for."""
        result, number = self.results.get(self.task.id), self._hints.get(self.task.id, 0)
        if result is None:
            found: RenderableType = Text(f"{self.task.id} {self.task.title}", style="bold")
        else:
            found = report.of_result(self.task, result)
        kinds = ("The idea", "In words", "Where to look")
        hints = [Text.assemble((f"{kinds[k]}. ", "bold"), self.task.hints[k]) for k in range(number)]
        return Group(found, *(part for hint in hints for part in ("", report.inside(hint))))

    def _list(self) -> RenderableType:
        return report.of_status(self.results, self.task.id)

    def _compared(self) -> RenderableType:
        if not self._difference:
            return report.inside("Your functions and the reference are the same, line by line.")
        return Syntax("\n".join(self._difference), "diff", background_color="default", word_wrap=True)

    def _state(self) -> str:
        """Describe the current activity."""
        if self.running is None:
            return "waiting for you to save a file"
        return f"judging {self.running.id}" + (f": {self.check}" if self.check else " ...")


def keys() -> RenderableType:
    """The keys and what they do."""
    return report.inside(Text.assemble(*[part for key, what in KEYS.items() for part in ((key, "bold"), f" {what}   ")]))


def is_untouched(folder: Path, task: Task) -> bool:
    """Return whether the functions of a task are as at first; then nobody needs to run them."""
    mine, first = parts(text(folder / task.file)), parts(workspace.stub(task.file).encode())
    return all(mine.get(slot) == first[slot] for slot in task.slots)


def untouched(task: Task) -> Result:
    """Return the result of a task that is as at first."""
    said = f"task {task.id} is still to be written; `minifuse course hint {task.id}` helps"
    return Result(task.id, [Outcome(task.checks[0].name, "pending", said)], {})


def text(path: Path) -> bytes:
    """Return the text of a file; nothing if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@lru_cache
def parts(source: bytes) -> dict[str, str]:
    """The definitions at the top of a file, without comments and spaces; none if it is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    return {node.name: ast.dump(node) for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}

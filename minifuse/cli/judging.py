"""Judge tasks with a line of progress on the terminal, and report the case and the line that Ctrl-C stopped."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from ..course import report, verdict_cache
from ..course.check import current
from ..course.task import Task
from ..course.verdicts import Interrupted, Result
from .output import new_console

SILENT_S = 1.0  # a check that takes less time shows no progress
PATIENT_S = 5.0  # a case that takes longer is shown


class Progress:
    """The check and the case of a task that are being judged, and since when."""

    def __init__(self, task: Task) -> None:
        self.task, self.check = task, ""
        self._started = self._changed = time.monotonic()
        self._case = ""

    def begin(self, check: str) -> None:
        """Note the start of a check."""
        self.check = check

    def render(self) -> RenderableType:
        """Render nothing in the first second, then the check, and a case that takes long."""
        now = time.monotonic()
        if current[0] != self._case:
            self._case, self._changed = current[0], now
        if now - self._started < SILENT_S:
            return Text("")
        lines = [f"judging {self.task.id} for {now - self._started:.0f} s: {self.check}"]
        if now - self._changed > PATIENT_S:
            lines += [f"case {self._case}"] * bool(self._case)
            lines += ["Ctrl-C stops it, and shows the line that is running"]
        return report.indent(Text("\n".join(lines), "dim", no_wrap=True, overflow="ellipsis"))


def judge_tasks(folder: Path, tasks: Iterable[Task], **options: Any) -> Iterator[Result]:
    """Judge tasks as `verdict_cache.run` does. If Ctrl-C stops one, print the result so far to standard error."""
    terminal = new_console(to_stderr=True)
    for task in tasks:
        progress = Progress(task)
        line = Live(
            console=terminal,
            get_renderable=progress.render,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        try:
            with line:
                (result,) = verdict_cache.run(folder, [task], begin=progress.begin, **options)
        except Interrupted as error:
            terminal.print(report.render_result(task, error.result))
            raise
        yield result

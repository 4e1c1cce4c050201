"""Judge tasks one after the other, or one that another thread can cancel.

The student's code runs in a process of its own with limits on time and memory (`student_process`), so that an endless loop
becomes a verdict.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .drawn_cases import DrawnCases
from .judge import judge
from .registry import all_tasks
from .student_process import MEMORY_BYTES, TIME_S, StudentProcess
from .task import Effort, Task
from .verdicts import Outcome, Result


def run(
    folder: Path,
    tasks: Sequence[Task],
    *,
    effort: Effort | None = None,
    is_strict: bool = False,
    runs_all_checks: bool = False,
    time_s: float = TIME_S,
    memory_bytes: int = MEMORY_BYTES,
    begin: Callable[[str], None] | None = None,
    drawn: DrawnCases | None = None,
) -> Iterator[Result]:
    """Judge tasks one after the other, and yield the results.

    Parameters
    ----------
    folder : Path
        The student's files.
    tasks : sequence of Task
    effort : Effort, optional
    is_strict : bool
        True to use nothing from the oracle.
    runs_all_checks : bool
        True to continue after a check that fails.
    time_s, memory_bytes : float, int
        The limits of the student's code, for each task.
    begin : function, optional
        Called with the name of each check before it runs.
    drawn : DrawnCases, optional
        The cases of earlier runs of the task, if it is only one. This run adds its own.
    """
    for task in tasks:
        yield TaskRun(
            folder,
            task,
            effort,
            is_strict=is_strict,
            runs_all_checks=runs_all_checks,
            time_s=time_s,
            memory_bytes=memory_bytes,
            begin=begin,
            drawn=drawn,
        ).result()


class TaskRun:
    """The judging of one task. `result` does it; `cancel` ends it, also from another thread.

    Parameters
    ----------
    folder, task, effort, is_strict, runs_all_checks, time_s, memory_bytes, begin, drawn
        As for `run`.
    """

    def __init__(
        self,
        folder: Path,
        task: Task,
        effort: Effort | None = None,
        *,
        is_strict: bool = False,
        runs_all_checks: bool = False,
        time_s: float = TIME_S,
        memory_bytes: int = MEMORY_BYTES,
        begin: Callable[[str], None] | None = None,
        drawn: DrawnCases | None = None,
    ) -> None:
        self.task, self.effort, self.runs_all_checks, self.begin = task, effort or Effort(), runs_all_checks, begin
        self._student = StudentProcess(folder, all_tasks(), None if is_strict else task, time_s, memory_bytes)
        self._student.drawn = drawn or self._student.drawn

    def result(self) -> Result:
        """Wait for the result. A run that was cancelled never passes."""
        with self._student:
            result = judge(self._student, self.task, self.effort, self.runs_all_checks, self.begin)
        self._student.drawn.save()
        return verify_result(result, self.task)

    def cancel(self) -> None:
        """End the process of the student's code."""
        self._student.close()


def verify_result(result: Result, task: Task) -> Result:
    """Add an error to a result that passed although a check or a function of the task did not run."""
    missing = [check.name for check in task.checks if check.name not in {o.check for o in result.outcomes}]
    if result.verdict == "passed" and (missing or not task.checks or not all(result.calls.get(s) for s in task.slots)):
        result.outcomes.append(Outcome("every check ran", "error", f"did not run: {', '.join(missing) or 'your functions'}"))
    return result

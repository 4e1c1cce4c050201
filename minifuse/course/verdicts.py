"""Exceptions that checks raise, and the results of checks and tasks as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):  # noqa: N818  # a verdict
    """Raised for code that is not allowed: a forbidden import, or a call of the reference answer."""


class Stopped(BaseException):  # no Exception: Hypothesis must not continue to search for smaller cases
    """Raised when the student's code exits the program or exhausts the memory. Judging ends at once."""


class TimedOut(BaseException):
    """Raised when the answers of a student's functions took more time than they may. Judging ends at once."""

    def __init__(self, seconds: float, lines: Sequence[tuple[str, int]]) -> None:
        advice = "is there a loop that does not end?"
        super().__init__(f"stopped after {seconds:g} s; {advice} If not, --limit {5 * seconds:g} gives it more time")
        self.lines = list(lines)
        """(file, line) of the student's code that was running, the innermost last."""


class Interrupted(KeyboardInterrupt):
    """Raised when Ctrl-C ends the judging of a task. It has the result so far."""

    def __init__(self, result: "Result") -> None:
        super().__init__()
        self.result = result


class StudentError(Exception):
    """An exception that a student's code raised in its process, or a question about it."""

    def __init__(self, kind: str, message: str, lines: Sequence[tuple[str, int]], place: str = "") -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.lines = kind, message, list(lines)
        self.place = place
        """The line of a teacher's own tasks that raised it, as "questions/task10_1.py, line 8"; "" if none did."""


class Wrong(Exception):  # noqa: N818  # a verdict
    """A failed check, with the smallest case that shows the failure.

    `case` is the case as data, for known mistakes; `case_text` is how a report prints it.
    """

    def __init__(
        self,
        message: str,
        *,
        case: Any = None,
        case_text: str = "",
        expected: Any = None,
        got: Any = None,
        drawing: Sequence[str] = (),
        link: str = "",
        lines: Sequence[tuple[str, int]] = (),
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.case, self.case_text, self.expected, self.got = message, case, case_text, expected, got
        self.drawing, self.link, self.lines, self.kind = list(drawing), link, list(lines), kind
        self.others: list[Wrong] = []
        """Failures of the same check on larger cases."""


@dataclass
class Outcome:
    """The outcome of one check. Plain data, so that a subprocess can send it as JSON."""

    check: str
    verdict: str
    """passed, pending, failed, error, refused, timeout."""
    message: str = ""
    case: str = ""
    expected: str = ""
    got: str = ""
    drawing: list[str] = field(default_factory=list)
    link: str = ""
    """The page of the visualizer that shows the case: "strides?shape=..."."""
    lines: list[tuple[str, int, str]] = field(default_factory=list)
    """(file, line, text) of the student's lines in the traceback, the line that raised last."""
    mistake: str = ""
    hint: str = ""
    printed: str = ""
    """The output of the student's code for this case."""


@dataclass
class Result:
    """The result of a task."""

    task: str
    outcomes: list[Outcome]
    calls: dict[str, int]
    """Number of calls of each of the student's functions."""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    share: float = 1.0
    """The fraction of the task's points that a pass earns."""

    @property
    def has_run(self) -> bool:
        """Return whether a function of the student's was called, or a check failed."""
        return any(self.calls.values()) or any(outcome.verdict == "failed" for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """Return the verdict of the first check that did not pass; "passed" if all did, and "pending" if no check ran."""
        return next((o.verdict for o in self.outcomes if o.verdict != "passed"), "passed" if self.outcomes else "pending")

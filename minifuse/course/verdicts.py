"""Verdicts on a student's answer: the exceptions that a check raises, and results as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):  # noqa: N818  # a verdict
    """Not an answer: an import that the task is to be written without, or a call of the judge."""


class Stopped(BaseException):  # no Exception: whoever looks for smaller cases must not go on
    """An immediate end of a judging: the student's code leaves the program, or takes all memory."""


class Wrong(Exception):  # noqa: N818  # a verdict
    """A demand that does not hold, with the smallest case that shows it."""

    def __init__(
        self,
        said: str,
        *,
        case: Any = None,
        told: str = "",
        expected: Any = None,
        got: Any = None,
        drawing: Sequence[str] = (),
        link: str = "",
        lines: Sequence[tuple[str, int]] = (),
        kind: str = "",
    ) -> None:
        super().__init__(said)
        self.said, self.case, self.told, self.expected, self.got = said, case, told, expected, got
        self.drawing, self.link, self.lines, self.kind = list(drawing), link, list(lines), kind
        self.others: list[Wrong] = []
        """Failures of the same demand that were seen on the way to this one."""


@dataclass
class Outcome:
    """The outcome of one check; `Result` has them all. Plain data, so that it can leave a process as JSON."""

    check: str
    verdict: str
    """passed, pending, failed, error, refused, timeout."""
    said: str = ""
    case: str = ""
    expected: str = ""
    got: str = ""
    drawing: list[str] = field(default_factory=list)
    link: str = ""
    """An address of the visualizer that shows the case: "strides?shape=..."."""
    lines: list[tuple[str, int, str]] = field(default_factory=list)
    """(file, line, text) of the student's code that takes part, the place of the fault last."""
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
    """How often each slot of the student's was called."""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    share: float = 1.0
    """Of the task's points, once it passes."""

    @property
    def has_run(self) -> bool:
        """Return whether a function of the student's was called, or a check found fault with one."""
        return any(self.calls.values()) or any(outcome.verdict == "failed" for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """That of the first check that did not pass; passed if all did, and there was at least one."""
        return next((o.verdict for o in self.outcomes if o.verdict != "passed"), "passed" if self.outcomes else "pending")

"""What a task of the course is, and what can be said of an answer. Data only: no student's code, no terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .student import Student

COMMON = frozenset(
    "__future__ collections dataclasses functools itertools math operator random typing minifuse.course".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Mistake:
    """One thing that often goes wrong, and what to say to whom it happened.

    It is recognised by what it gives: `gives` answers a case as somebody would who made it, `when` judges any failure. It
    must explain every failure that was seen, not only the smallest, which many mistakes have in common.
    """

    name: str
    """A few words that name it: "strides are ignored"."""
    hint: str
    """What to think about, without the answer."""
    gives: Callable[[Any], Any] | None = None
    when: Callable[["Wrong"], bool] | None = None
    check: str = ""
    """The check that it fails; any if empty."""


@dataclass(frozen=True)
class Check:
    """One demand: `run` asks a student's functions, and raises `Wrong` where the demand does not hold."""

    name: str
    """What is demanded, as a sentence: "every element is read where its strides say"."""
    run: Callable[["Student", "Effort"], None]


@dataclass(frozen=True)
class Effort:
    """How hard to look for a counter-example."""

    examples: int = 60
    seed: int | None = None
    """None: the same examples each time."""


@dataclass(frozen=True)
class Task:
    """One task: what a student writes, and what is demanded of it."""

    id: str
    """ "2.3": the module, a dot, its number there."""
    title: str
    file: str
    """Where the student writes: "tensors.py"."""
    slots: tuple[str, ...]
    """Functions and classes of that file that are theirs to write."""
    points: int
    text: str
    """What is to be done, in a paragraph."""
    hints: tuple[str, str, str]
    """The idea, the algorithm in words, where to look."""
    reads: tuple[str, ...]
    """What to read first: files and pages of the library."""
    checks: tuple[Check, ...]
    mistakes: tuple[Mistake, ...]
    allows: frozenset[str] = frozenset()
    """Modules that it may import besides COMMON; a name allows what lies in it too."""

    @property
    def module(self) -> int:
        """The number of its module."""
        return int(self.id.partition(".")[0])

    @property
    def mark(self) -> str:
        """Its mark for pytest: "task2_3"."""
        return f"task{self.id.replace('.', '_')}"


class Refused(Exception):  # noqa: N818  # a verdict
    """What is no answer: an import that the task is to be written without, the judge called as a witness."""


class Stopped(BaseException):  # no Exception: whoever looks for smaller cases must not go on
    """What ends a judging at once: the student's code leaves the program, or takes all memory."""


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
    """What became of one check; `Result` has them all. Plain data, so that it can leave a process as JSON."""

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
    """What the student's code printed for this case."""


@dataclass
class Result:
    """What became of a task."""

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
        """Whether anything of the student's was asked: a function of theirs was called, or a check found fault with it."""
        return any(self.calls.values()) or any(outcome.verdict == "failed" for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """That of the first check that did not pass; passed if all did, and there was at least one."""
        return next((o.verdict for o in self.outcomes if o.verdict != "passed"), "passed" if self.outcomes else "pending")

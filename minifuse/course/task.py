"""Classes of tasks, checks and known mistakes. They are data: nothing here runs a student's code or prints."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .student_process import StudentProcess
from .verdicts import Wrong


@dataclass(frozen=True)
class Mistake:
    """A frequent mistake, and a hint for those who made it.

    A failure is explained by a mistake if `wrong_answer`, called with the case, returns the student's answer, or if `when`,
    called with the failure, returns True. The mistake must explain every failure of the check, not only the smallest:
    different mistakes often fail on the same smallest case.
    """

    name: str
    """A clause that describes it: "strides are ignored"."""
    hint: str
    """A hint that does not reveal the answer."""
    wrong_answer: Callable[[Any], Any] | None = None
    when: Callable[[Wrong], bool] | None = None
    check: str = ""
    """The name of the check that fails; any check if empty."""


@dataclass(frozen=True)
class Check:
    """A requirement: `run` calls a student's functions, and raises `Wrong` if the requirement is not met."""

    name: str
    """The requirement, as a sentence: "every element is read where its strides say"."""
    run: Callable[[StudentProcess, "Effort"], None]
    points: float | None = None
    """How many of the task's points it is worth. None for an equal share of those that the other checks leave."""


@dataclass(frozen=True)
class Effort:
    """How many examples to try in the search for a counterexample, and their random seed."""

    examples: int = 60
    seed: int | None = None
    """None for the same examples in each run."""


@dataclass(frozen=True)
class Task:
    """A task: the functions that a student writes, and the checks that they must pass."""

    id: str
    """The module, a dot, and the number in the module: "2.3"."""
    title: str
    file: str
    """The file in which the student writes: "tensors.py"."""
    slots: tuple[str, ...]
    """The names of the functions and classes of that file that the student writes."""
    points: int
    text: str
    """The assignment, one paragraph."""
    hints: tuple[str, str, str]
    """The idea; the algorithm in words; where to look."""
    reads: tuple[str, ...]
    """Files and pages of the library to read first."""
    checks: tuple[Check, ...]
    mistakes: tuple[Mistake, ...]
    allows: frozenset[str] = frozenset()
    """Modules that the file may import besides COMMON. A package includes its modules."""

    @property
    def order(self) -> tuple[int, int]:
        """The place among the tasks: (2, 11) is after (2, 3)."""
        module, _, number = self.id.partition(".")
        return int(module), int(number)

    @property
    def module(self) -> int:
        """The number of its module."""
        return self.order[0]

    @property
    def mark(self) -> str:
        """The pytest marker: "task2_3"."""
        return f"task{self.id.replace('.', '_')}"

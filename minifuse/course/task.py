"""Tasks of the course, their checks and the mistakes that they recognize. Data only: no student's code, no terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .student import Student
from .verdicts import Wrong


@dataclass(frozen=True)
class Mistake:
    """One thing that often goes wrong, and what to say to whom it happened.

    It is recognised by what it gives: `gives` answers a case as somebody would who made it, `when` judges any failure. It
    must explain every failure that was seen, not only the smallest, which many mistakes have in common.
    """

    name: str
    """A few words that name it: "strides are ignored"."""
    hint: str
    """A thought that helps, without the answer."""
    gives: Callable[[Any], Any] | None = None
    when: Callable[[Wrong], bool] | None = None
    check: str = ""
    """The check that it fails; any if empty."""


@dataclass(frozen=True)
class Check:
    """One demand: `run` asks a student's functions, and raises `Wrong` where the demand does not hold."""

    name: str
    """The demand, as a sentence: "every element is read where its strides say"."""
    run: Callable[[Student, "Effort"], None]


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
    """The assignment, in a paragraph."""
    hints: tuple[str, str, str]
    """The idea, the algorithm in words, where to look."""
    reads: tuple[str, ...]
    """Files and pages of the library to read first."""
    checks: tuple[Check, ...]
    mistakes: tuple[Mistake, ...]
    allows: frozenset[str] = frozenset()
    """Modules that it may import besides COMMON; a package allows its modules too."""

    @property
    def module(self) -> int:
        """The number of its module."""
        return int(self.id.partition(".")[0])

    @property
    def mark(self) -> str:
        """Its mark for pytest: "task2_3"."""
        return f"task{self.id.replace('.', '_')}"

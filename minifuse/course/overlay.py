"""Complete a student's functions with the oracle's: it lends those that are not written yet. All calls are counted."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import signature, unwrap
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..core.errors import NotDoneYet
from . import oracle
from .imports import Assignment
from .oracle import Slot
from .student import Student


class Overlay(Student):
    """The slots of a folder. For functions that are not written yet, the oracle lends its own.

    Parameters
    ----------
    folder : Path, optional
        The folder of the student's files. Default: the oracle lends every slot.
    tasks : tuple of Task
        The tasks whose slots the files may define.

    Notes
    -----
    `calls` counts calls of the student's functions, `lent` those of the oracle's.
    """

    def __init__(self, folder: Path | None = None, tasks: tuple[Assignment, ...] = ()) -> None:
        super().__init__(folder or Path(), tasks if folder else (), None)
        self._loans: dict[str, Slot] = {}

    def __getattr__(self, slot: str) -> Any:
        """Return the function of a slot: the student's, or the oracle's."""
        task = self.home.get(slot)
        if task is None or not self.path(task.file).is_file():
            return self.lend(slot)
        try:
            return super().__getattr__(slot)
        except NotDoneYet:  # the file has no such function
            return self.lend(slot)

    def is_from_student(self, slot: str) -> bool:
        """Return whether the student has written a slot."""
        getattr(self, slot)
        return slot not in self._loans

    def count(self, slot: str) -> None:
        """Count a call of a slot that did not go through the counting wrapper."""
        (self.calls if self.is_from_student(slot) else self.lent)[slot] += 1

    def fill(self, module: ModuleType, file: str) -> None:
        """Wrap the slots of a loaded file in counters, and lend those that are not written yet."""
        super().fill(module, file)
        for slot, task in self.home.items():
            if task.file == file and is_unwritten(vars(module).get(slot)):
                vars(module)[slot] = self.lend(slot)

    def lend(self, slot: str) -> Slot:
        """Return the oracle's function for a slot, wrapped in a counter."""
        if slot.startswith("_"):
            raise AttributeError(slot)
        if slot not in self._loans:
            self._loans[slot] = count_calls(self.bind_slots(oracle.function(slot)), slot, self.lent)
        return self._loans[slot]

    def bind_slots(self, function: Slot) -> Slot:
        """Pass slots of this overlay to a function of the oracle's, one for each of its keyword-only parameters."""
        needs = (
            []
            if isinstance(function, type)
            else [p.name for p in signature(function).parameters.values() if p.kind == p.KEYWORD_ONLY]
        )
        if not needs:
            return function
        return wraps(function)(lambda *args: function(*args, **{slot: getattr(self, slot) for slot in needs}))


def count_calls(function: Slot, slot: str, calls: Counter[str]) -> Slot:
    """Return a function that counts its calls, or a subclass whose static methods do. The original is unchanged."""
    if isinstance(function, type):
        methods = {name: value.__func__ for name, value in vars(function).items() if isinstance(value, staticmethod)}
        counted = {name: staticmethod(count_calls(method, slot, calls)) for name, method in methods.items()}
        return type(slot, (function,), {"__doc__": function.__doc__, **counted})

    @wraps(function)
    def call(*args: object, **options: object) -> object:
        calls[slot] += 1
        return function(*args, **options)

    return call


def is_unwritten(value: object) -> bool:
    """Return whether a function, or a method of a class, is missing or calls `todo`.

    Examples
    --------
    >>> from minifuse.course import todo
    >>> is_unwritten(lambda x: todo("2.3a")), is_unwritten(lambda x: x + 1)
    (True, False)
    """
    if isinstance(value, type):
        members = [getattr(member, "__func__", member) for member in vars(value).values()]
        return any(is_unwritten(member) for member in members if isinstance(unwrap_any(member), FunctionType))
    value = unwrap_any(value)
    return not isinstance(value, FunctionType) or calls_todo(value.__code__)


def unwrap_any(value: object) -> object:
    """Return the function inside a counting wrapper; any other value unchanged."""
    return unwrap(value) if callable(value) else value


def calls_todo(code: CodeType) -> bool:
    """Return whether a function, or a function nested in it, calls `todo`."""
    return "todo" in code.co_names or any(calls_todo(c) for c in code.co_consts if isinstance(c, CodeType))


@contextmanager
def count_slots_once(*counts: Counter[str]) -> Iterator[None]:
    """Count each slot at most once in this block: loops call some of them for every element."""
    before = [dict(count) for count in counts]
    yield
    for count, old in zip(counts, before, strict=True):
        for slot, calls in count.items():
            if calls > (most := old.get(slot, 0) + 1):
                count[slot] = most


@dataclass(frozen=True)
class Share:
    """How much of the code that ran was the student's."""

    theirs: tuple[str, ...]
    """The student's slots that were called."""
    lent: tuple[str, ...]
    """The oracle's slots that were called."""
    calls: int
    """Number of calls of the student's slots."""
    lent_calls: int

    @property
    def of_calls(self) -> float:
        """The student's fraction of all calls."""
        return self.calls / max(self.calls + self.lent_calls, 1)

    def __str__(self) -> str:
        return (
            f"{len(self.theirs)} of the {len(self.theirs) + len(self.lent)} functions of the course that this run called "
            f"are yours ({self.of_calls:.0%} of {self.calls + self.lent_calls:,} calls)"
        )


def share_of(calls: Counter[str], lent: Counter[str]) -> Share:
    """Compute the share from two counters of calls."""
    return Share(tuple(sorted(+calls)), tuple(sorted(+lent)), calls.total(), lent.total())

"""A student's folder under a whole engine: their functions where they are written, the oracle's elsewhere, all counted."""

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
    """The slots of a folder, where what is still to be written is the oracle's.

    Parameters
    ----------
    folder : Path, optional
        The folder of the student's files; without one, every slot is the oracle's.
    tasks : tuple of Task
        Those whose slots the files may have.

    Notes
    -----
    `calls` counts the student's functions, `lent` the oracle's.
    """

    def __init__(self, folder: Path | None = None, tasks: tuple[Assignment, ...] = ()) -> None:
        super().__init__(folder or Path(), tasks if folder else (), None)
        self.lent: Counter[str] = Counter()
        self._loans: dict[str, Slot] = {}

    def __getattr__(self, slot: str) -> Any:
        """A slot, by its name: the student's, or the oracle's."""
        task = self.home.get(slot)
        if task is None or not self.path(task.file).is_file():
            return self.loan(slot)
        try:
            return super().__getattr__(slot)
        except NotDoneYet:  # the file has no such function
            return self.loan(slot)

    def is_theirs(self, slot: str) -> bool:
        """Return whether a slot is the student's own."""
        getattr(self, slot)
        return slot not in self._loans

    def count(self, slot: str) -> None:
        """Note that a slot ran, which was called in another way than by its name."""
        (self.calls if self.is_theirs(slot) else self.lent)[slot] += 1

    def fill(self, module: ModuleType, file: str) -> None:
        """Put counters around the slots of a loaded file, and the oracle where something is still to be written."""
        super().fill(module, file)
        for slot, task in self.home.items():
            if task.file == file and is_open(vars(module).get(slot)):
                vars(module)[slot] = self.loan(slot)

    def loan(self, slot: str) -> Slot:
        """The oracle's function for a slot, counted."""
        if slot.startswith("_"):
            raise AttributeError(slot)
        if slot not in self._loans:
            self._loans[slot] = counting(self.joined(oracle.function(slot)), slot, self.lent)
        return self._loans[slot]

    def joined(self, function: Slot) -> Slot:
        """A function of the oracle's that uses the slots of this overlay: those that it has keyword-only parameters for."""
        needs = (
            []
            if isinstance(function, type)
            else [p.name for p in signature(function).parameters.values() if p.kind == p.KEYWORD_ONLY]
        )
        if not needs:
            return function
        return wraps(function)(lambda *args: function(*args, **{slot: getattr(self, slot) for slot in needs}))


def counting(function: Slot, slot: str, calls: Counter[str]) -> Slot:
    """A function, or a class with the same static methods, that counts its calls; what it is made of stays as it is."""
    if isinstance(function, type):
        methods = {name: value.__func__ for name, value in vars(function).items() if isinstance(value, staticmethod)}
        counted = {name: staticmethod(counting(method, slot, calls)) for name, method in methods.items()}
        return type(slot, (function,), {"__doc__": function.__doc__, **counted})

    @wraps(function)
    def call(*args: object, **options: object) -> object:
        calls[slot] += 1
        return function(*args, **options)

    return call


def is_open(value: object) -> bool:
    """Return whether a function, or one of a class, is not there or says `todo`.

    Examples
    --------
    >>> from minifuse.course import todo
    >>> is_open(lambda x: todo("2.3a")), is_open(lambda x: x + 1)
    (True, False)
    """
    if isinstance(value, type):
        members = [getattr(member, "__func__", member) for member in vars(value).values()]
        return any(is_open(member) for member in members if isinstance(unwrap_any(member), FunctionType))
    value = unwrap_any(value)
    return not isinstance(value, FunctionType) or says_todo(value.__code__)


def unwrap_any(value: object) -> object:
    """Return the original of a function that counts its calls; anything else as it is."""
    return unwrap(value) if callable(value) else value


def says_todo(code: CodeType) -> bool:
    """Return whether a function calls `todo`, or one within it does."""
    return "todo" in code.co_names or any(says_todo(c) for c in code.co_consts if isinstance(c, CodeType))


@contextmanager
def once_each(*counts: Counter[str]) -> Iterator[None]:
    """Whatever is called in here any number of times, for each element of a tensor, counts once."""
    before = [Counter(count) for count in counts]
    yield
    for count, old in zip(counts, before, strict=True):
        for slot, calls in count.items():
            count[slot] = min(calls, old[slot] + 1)


@dataclass(frozen=True)
class Share:
    """How much of what ran was the student's."""

    theirs: tuple[str, ...]
    """Slots of theirs that were called."""
    lent: tuple[str, ...]
    """Slots of the oracle's that were called."""
    calls: int
    """Of theirs."""
    lent_calls: int

    @property
    def of_calls(self) -> float:
        """Their part of all calls, 0 to 1."""
        return self.calls / max(self.calls + self.lent_calls, 1)

    def __str__(self) -> str:
        return (
            f"{len(self.theirs)} of {len(self.theirs) + len(self.lent)} slots are yours, "
            f"and {self.of_calls:.0%} of {self.calls + self.lent_calls:,} calls"
        )


def share_of(calls: Counter[str], lent: Counter[str]) -> Share:
    """The share that counts tell."""
    return Share(tuple(sorted(+calls)), tuple(sorted(+lent)), calls.total(), lent.total())

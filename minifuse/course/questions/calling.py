"""The simplest questions: what does one of the student's functions return?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..student import Student


def call_with_all(slot: str, student: Student, case: Sequence[object]) -> object:
    """Call a slot with the parts of the case as arguments."""
    return getattr(student, slot)(*case)


def call_with_one(slot: str, student: Student, case: object) -> object:
    """Call a slot with the case as its only argument."""
    return getattr(student, slot)(case)


def call_named(student: Student, case: tuple[str, Sequence[object]]) -> object:
    """Call the slot that the case names with the arguments of the case."""
    slot, arguments = case
    return getattr(student, slot)(*arguments)


def calls(slot: str) -> Callable[[Student, Any], object]:
    """Return the question that calls a slot with the parts of the case."""
    return partial(call_with_all, slot)


def calls_with_one(slot: str) -> Callable[[Student, Any], object]:
    """Return the question that calls a slot with the whole case."""
    return partial(call_with_one, slot)

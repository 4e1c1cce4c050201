"""The simplest questions: what does one of the student's functions return?"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ..student import Student

T = TypeVar("T")
MAX_MADE = 20  # objects, until one is at a given address


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


def made_where_another_was(other: Callable[[], T], use: Callable[[T], object], make: Callable[[], T]) -> T:
    """Return a new object, at the address of another that was used and freed if there is one: an address is no key."""
    first = other()
    use(first)
    address = id(first)
    del first
    made = [make()]
    while id(made[-1]) != address and len(made) < MAX_MADE:
        made.append(make())
    return made[-1]

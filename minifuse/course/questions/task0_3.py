"""Questions of task 0.3: map, zip and reduce with a function that the case names."""

from collections.abc import Callable, Sequence
from typing import Any

from ..student import Student

Case = tuple[str | float | list[float], ...]
"""The arguments of a slot, with the names of functions instead of functions."""
FUNCTIONS: dict[str, Callable[..., float]] = {
    "lambda x: x + 1": lambda x: x + 1,
    "lambda x: 3 * x": lambda x: 3 * x,
    "lambda x, y: 10 * x + y": lambda x, y: 10 * x + y,
    "lambda x, y: x - y": lambda x, y: x - y,
    "lambda x, y: x if x > y else y": lambda x, y: x if x > y else y,
}


def call(slot: str, student: Student, case: Case) -> object:
    """Call a slot with a case."""
    return getattr(student, slot)(*arguments(case))


def ask_zip(student: Student, case: Case) -> object:
    """Return the student's pairs, or "ValueError"."""
    return or_value_error(student.zip_lists, case)


def or_value_error(function: Callable[..., Any], case: Case) -> object:
    """Call a function; return "ValueError" if it raises ValueError."""
    try:
        return function(*arguments(case))
    except ValueError:
        return "ValueError"


def count_calls(slot: str, bases: Sequence[str], student: Student, lists: Sequence[list[float]]) -> int:
    """Return how often a function of lists calls one of its base functions."""
    before = sum(student.calls[base] for base in bases)
    getattr(student, slot)(*lists)
    return sum(student.calls[base] for base in bases) - before


def arguments(case: Case) -> list[Callable[..., float] | float | list[float]]:
    """Replace names of functions in a case by the functions."""
    return [FUNCTIONS[x] if isinstance(x, str) else x for x in case]

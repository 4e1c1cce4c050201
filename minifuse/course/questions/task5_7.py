"""Questions of task 5.7: what a student's functions say of schedules, and what they choose."""

from collections.abc import Sequence
from typing import Any

from ..nests import Machine, Nest
from ..student import Student
from .calling import answer_or_error, first_and_later
from .work import limited_lines

MAX_LINES = 1_000_000
ROUNDS = 2
Choice = tuple[Nest, Machine]


def ask_all(slot: str, student: Student, cases: Sequence[Any]) -> object:
    """Return the first and later answers of a slot to many cases."""
    return first_and_later(lambda case: answer_or_error(student, getattr(student, slot), case), cases, ROUNDS)


def ask_choices(student: Student, cases: Sequence[Choice]) -> list[object]:
    """Return the schedule for each nest, or the error."""
    return [answer_or_error(student, student.choose, case) for case in cases]


def ask_limited(student: Student, case: Choice) -> object:
    """Return the schedule for a nest; raise `Wrong` if it takes too many lines."""
    advice = "most schedules need not be tried: look at those that differ from a good one in one number"
    with limited_lines(student, "choose", MAX_LINES, advice):
        return student.choose(*case)

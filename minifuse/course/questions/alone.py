"""The question of tasks 6.2 and 6.4 whether a rank knows only what is its own, and what others sent to it."""

from collections.abc import Callable
from typing import TypeVar

from ..ranks import Program, run_alone, run_ranks
from ..student import Student

CaseT = TypeVar("CaseT")


def ask_alone(
    slot: str, programs: Callable[[Student, CaseT], list[Program]], student: Student, case: tuple[CaseT, CaseT, int]
) -> object:
    """Return the result of a rank among others, and alone with the same messages, after a run of another case.

    `programs` returns the programs of all ranks, which call the slot.
    """
    first, other, rank = case
    run, _ = [student.count_calls(slot, run_ranks)(programs(student, one)) for one in (first, other)]
    alone = student.count_calls(slot, run_alone)(programs(student, first)[rank], rank, run)
    return run.results[rank], alone.results[0]

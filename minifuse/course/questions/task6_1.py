"""Questions of task 6.1: what each rank returns and sends when all run one function."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..ranks import Array, Group, Program, RankRun, run_alone, run_ranks
from ..student import Student
from ..verdicts import Wrong


def call_on_rank(function: Any, x: Array, group: Group) -> Any:
    """Call a function of task 6.1 with what a rank has."""
    return function(x, group.rank, group.size, group.send, group.receive)


def programs_of(student: Student, slot: str, arrays: Sequence[Array]) -> list[Program]:
    """Return the programs of ranks that call a slot, each with its own array."""
    return [partial(call_on_rank, student.raw(slot), x) for x in arrays]


def run_slot(slot: str, student: Student, arrays: Sequence[Array]) -> RankRun:
    """Call a slot on each rank with its array, and return results and messages."""
    run: RankRun = student.count_calls(slot, run_ranks)(programs_of(student, slot, arrays))
    for x, result in zip(arrays, run.results, strict=True):
        if isinstance(result, np.ndarray) and np.shares_memory(result, x):
            kind = "view" if len(arrays) > 1 else "view of one"
            raise Wrong("the result is x, or a view of it; it has to be a new array", kind=kind)
    return run


def ask_alone(student: Student, case: tuple[list[Array], list[Array], int]) -> object:
    """Return what a rank returned among others, and what alone with the same messages, after a run with other arrays."""
    arrays, others, rank = case
    run = run_slot("all_reduce", student, arrays)
    run_slot("all_reduce", student, others)
    function = student.count_calls("all_reduce", run_alone)
    alone = function(programs_of(student, "all_reduce", arrays)[rank], rank, run)
    return RankRun([run.results[rank]], [run.events[rank]]), alone

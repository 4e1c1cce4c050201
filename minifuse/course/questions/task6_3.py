"""Questions of task 6.3: parts of weights, the pair of functions around them, and two layers."""

from typing import Any, NamedTuple

from ..ranks import Array, Group, Program, RankRun, run_alone, run_ranks
from ..student import Student


class Layers(NamedTuple):
    """Two layers with their input and the gradient of their result."""

    size: int
    """The number of ranks."""
    x: Array
    w1: Array
    b1: Array
    w2: Array
    b2: Array
    d: Array


def ask_columns(student: Student, case: Layers) -> list[Any]:
    """Return the part of the first layer of each rank."""
    return [student.split_columns(case.w1, case.b1, rank, case.size) for rank in range(case.size)]


def ask_rows(student: Student, case: Layers) -> list[Any]:
    """Return the part of the second layer of each rank."""
    return [student.split_rows(case.w2, rank, case.size) for rank in range(case.size)]


def ask_cuts(student: Student, case: Layers) -> tuple[list[int], list[int]]:
    """Return the number of columns and of rows of each rank."""
    return [w.shape[1] for w, _ in ask_columns(student, case)], [len(w) for w in ask_rows(student, case)]


def ask_pair(slot: str, method: str, student: Student, case: list[Array]) -> RankRun:
    """Return what a method of CopyToRanks or SumOverRanks returns on each rank."""
    function = getattr(getattr(student, slot), method)

    def program(group: Group) -> Any:
        return function(case[group.rank].copy(), group)

    return run_ranks([program] * len(case))


def layer_programs(student: Student, case: Layers, widths: list[int]) -> list[Program]:
    """Return programs that run both layers forward and backward on parts of these widths."""
    forward, backward = student.raw("mlp_forward"), student.raw("mlp_backward")

    def program(group: Group) -> Any:
        start = sum(widths[: group.rank])
        part = slice(start, start + widths[group.rank])
        own = [x.copy() for x in (case.x, case.w1[:, part], case.b1[part], case.w2[part], case.b2)]
        given = group.without_notes()
        y, saved = forward(*own, given)
        group.note("forward", 0)
        result = y.copy()
        return result, *backward(case.d.copy(), saved, given)

    return [program] * case.size


def widths_of(case: Layers) -> list[int]:
    """Return the number of hidden elements of each rank."""
    count = len(case.b1)
    return [count // case.size + (rank < count % case.size) for rank in range(case.size)]


def ask_layers(student: Student, case: Layers) -> RankRun:
    """Return the result and the gradients on each rank."""
    function = student.count_calls("mlp_forward", student.count_calls("mlp_backward", run_ranks))
    run: RankRun = function(layer_programs(student, case, widths_of(case)))
    return run


def ask_layers_alone(student: Student, case: tuple[Layers, Layers, int]) -> object:
    """Return what a rank returns among others, and alone with the same messages, after another run."""
    first, other, rank = case
    run = ask_layers(student, first)
    ask_layers(student, other)
    function = student.count_calls("mlp_forward", run_alone)
    alone = function(layer_programs(student, first, widths_of(first))[rank], rank, run)
    return run.results[rank], alone.results[0]

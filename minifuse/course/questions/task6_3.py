"""Questions of task 6.3: parts of weights, the pair of functions around them, and two layers."""

from collections.abc import Callable, Sequence
from functools import partial
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


def widths_of(case: Layers) -> list[int]:
    """Return the number of hidden elements of each rank."""
    count = len(case.b1)
    return [count // case.size + (rank < count % case.size) for rank in range(case.size)]


def run_layers(student: Student, case: Layers, runs: Sequence[Callable[[list[Program]], RankRun]]) -> list[RankRun]:
    """Run the forward pass of all ranks, and then the backward pass, each by a function of the programs of all ranks.

    So the forward passes of all ranks are done before the first backward pass, as if all had waited for each other.
    """
    forward, backward = student.raw("mlp_forward"), student.raw("mlp_backward")
    widths, kept = widths_of(case), dict[int, Any]()

    def run_forward(group: Group) -> Any:
        start = sum(widths[: group.rank])
        part = slice(start, start + widths[group.rank])
        own = [x.copy() for x in (case.x, case.w1[:, part], case.b1[part], case.w2[part], case.b2)]
        y, kept[group.rank] = forward(*own, group.without_notes())
        group.note("forward", 0)
        return y.copy()

    def run_backward(group: Group) -> Any:
        return backward(case.d.copy(), kept[group.rank], group.without_notes())

    return [run([program] * case.size) for run, program in zip(runs, (run_forward, run_backward), strict=True)]


def joined(runs: Sequence[RankRun]) -> RankRun:
    """Return the results and the actions of the forward and the backward pass as those of one run."""
    first, second = runs
    results = [(y, *gradients) for y, gradients in zip(first.results, second.results, strict=True)]
    return RankRun(results, [[*a, *b] for a, b in zip(first.events, second.events, strict=True)])


def run_counted(student: Student, case: Layers) -> list[RankRun]:
    """Run both passes on all ranks, and count them as calls."""
    runs = [student.count_calls(slot, run_ranks) for slot in ("mlp_forward", "mlp_backward")]
    return run_layers(student, case, runs)


def ask_layers(student: Student, case: Layers) -> RankRun:
    """Return the result and the gradients on each rank."""
    return joined(run_counted(student, case))


def ask_layers_alone(student: Student, case: tuple[Layers, Layers, int]) -> object:
    """Return what a rank returns among others, and alone with the same messages, after another run."""
    first, other, rank = case
    together = run_counted(student, first)
    run_counted(student, other)
    function = student.count_calls("mlp_forward", run_alone)

    def again(run: RankRun, programs: list[Program]) -> RankRun:
        alone: RankRun = function(programs[rank], rank, run)
        return alone

    alone = run_layers(student, first, [partial(again, run) for run in together])
    return joined(together).results[rank], joined(alone).results[0]

"""Questions of task 6.2: parameters, buckets, averaged gradients, and a run of all ranks."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..ranks import Array, Group, Program, RankRun, run_ranks
from ..student import Student

Part = tuple[Array, Array]
"""(x, y)."""


class Averaging(NamedTuple):
    """The gradients of all ranks in one step."""

    limit: int
    examples: list[int]
    """Of each rank."""
    gradients: list[list[Array]]
    """Of each rank and parameter."""
    orders: list[list[int]]
    """The parameters in the order in which they are ready on each rank."""


class Training(NamedTuple):
    """A run of a network with one hidden layer."""

    limit: int
    rate: float
    parameters: list[list[Array]]
    """Of each rank."""
    parts: list[list[Part]]
    """Of each rank and batch."""


def gradients_of(parameters: Sequence[Array], part: Part) -> list[Array]:
    """Return the gradients of the mean squared error of a network, tanh(x @ w + b) @ v + c; zeros without examples."""
    (w, b, v, c), (x, y) = parameters, part
    hidden = np.tanh(x @ w + b)
    error = 2 * (hidden @ v + c - y) / max(len(x), 1)
    inner = error @ v.T * (1 - hidden * hidden)
    return [x.T @ inner, inner.sum(0), hidden.T @ error, error.sum(0)]


def backward(note: Callable[[str, int], None], parameters: Sequence[Array], part: Part, ready: Any) -> None:
    """Announce each gradient, that of the last parameter first; its memory is used again afterwards."""
    for k, gradient in reversed(list(enumerate(gradients_of(parameters, part)))):
        note("ready", k)
        ready(k, gradient)
        gradient[...] = np.nan


def ask_broadcast(student: Student, case: list[list[Array]]) -> RankRun:
    """Return the parameters of each rank after the start."""
    function = student.raw("broadcast_parameters")
    programs: list[Program] = [partial(function, parameters) for parameters in case]
    run: RankRun = student.count_calls("broadcast_parameters", run_ranks)(programs)
    return run


def average_on_rank(make: Any, case: Averaging, group: Group) -> Any:
    """Let a rank's gradients be averaged; the events say what began when."""
    gradients = case.gradients[group.rank]
    averager = make([x.shape for x in gradients], case.limit, case.examples[group.rank], group.without_notes())
    for k in case.orders[group.rank]:
        group.note("ready", k)
        memory = gradients[k].copy()
        averager.ready(k, memory)
        memory[...] = np.nan
    group.note("finish", 0)
    return averager.finish()


def ask_averages(student: Student, case: Averaging) -> RankRun:
    """Return the averaged gradients on each rank, and what each rank did."""
    return run_ranks([partial(average_on_rank, student.GradientAverager, case)] * len(case.gradients))


def training_programs(student: Student, case: Training) -> list[Program]:
    """Return the programs of ranks that train."""
    function = student.raw("train_parallel")

    def program(group: Group) -> Any:
        own, parts = case.parameters[group.rank], case.parts[group.rank]
        return function(own, parts, partial(backward, group.note), case.rate, case.limit, group.without_notes())

    return [program] * len(case.parameters)


def ask_trained(student: Student, case: Training) -> RankRun:
    """Return the parameters of each rank at the end."""
    run: RankRun = student.count_calls("train_parallel", run_ranks)(training_programs(student, case))
    return run

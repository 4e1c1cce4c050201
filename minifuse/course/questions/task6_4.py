"""Questions of task 6.4: the order of a stage, and a run of all stages."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..ranks import Array, Group, Program, RankRun, run_ranks
from ..student import Student


class Stages(NamedTuple):
    """A network of one layer a stage, tanh(x @ w + b), and a batch in microbatches."""

    weights: list[tuple[Array, Array]]
    """(w, b) of each stage."""
    inputs: list[Array]
    """x of each microbatch."""
    targets: list[Array]


def apply_layer(x: Array, w: Array, b: Array) -> Array:
    """Return the result of a layer."""
    return np.asarray(np.tanh(x @ w + b))


def layer_gradients(d: Array, x: Array, y: Array, w: Array) -> tuple[Array, list[Array]]:
    """Return the gradient of x, and those of w and b."""
    inner = d * (1 - y * y)
    return inner @ w.T, [x.T @ inner, inner.sum(0)]


def loss_gradient_of(y: Array, target: Array, count: int) -> Array:
    """Return the gradient of the mean squared error over `count` examples."""
    return 2 * (y - target) / count


class StageLayers:
    """The layers of a stage, as `run_stage` gets them. What it does is recorded."""

    def __init__(self, case: Stages, stage: int, note: Callable[[str, int], None]) -> None:
        self._case, self._stage, self._note = case, stage, note
        self._saved: dict[int, tuple[Array, Array]] = {}

    def input(self, k: int) -> Array:
        """Return the input of a microbatch, on stage 0."""
        if self._stage:
            raise ValueError(f"stage {self._stage} has no input; its x comes from stage {self._stage - 1}")
        return self._case.inputs[k].copy()

    def forward(self, k: int, x: Array) -> Array:
        """Return the result of a microbatch."""
        self._note("forward", k)
        y = apply_layer(x, *self._case.weights[self._stage])
        self._saved[k] = x.copy(), y
        return y.copy()

    def loss_gradient(self, k: int, y: Array) -> Array:
        """Return the gradient of the result of a microbatch, on the last stage."""
        last = len(self._case.weights) - 1
        if self._stage != last:
            raise ValueError(f"stage {self._stage} has no loss; its d comes from stage {self._stage + 1}")
        return loss_gradient_of(y, self._case.targets[k], sum(map(len, self._case.inputs)))

    def backward(self, k: int, d: Array) -> tuple[Array, list[Array]]:
        """Return the gradient of x, and those of the parameters."""
        self._note("backward", k)
        if k not in self._saved:
            raise ValueError(f"microbatch {k} did not go forward, or went backward before")
        x, y = self._saved.pop(k)
        return layer_gradients(d, x, y, self._case.weights[self._stage][0])


def ask_orders(student: Student, case: tuple[int, int]) -> list[Any]:
    """Return the orders of all stages."""
    stages, microbatches = case
    return [student.one_forward_one_backward(stage, stages, microbatches) for stage in range(stages)]


def stage_programs(student: Student, case: Stages) -> list[Program]:
    """Return the programs of all stages."""
    function, size = student.raw("run_stage"), len(case.weights)

    def program(group: Group) -> Any:
        layers = StageLayers(case, group.rank, group.note)
        return function(group.rank, size, len(case.inputs), layers, group.send, group.receive)

    return [program] * size


def ask_run(student: Student, case: Stages) -> RankRun:
    """Return the gradients of each stage, and what it did."""
    run: RankRun = student.count_calls("run_stage", run_ranks)(stage_programs(student, case))
    return run

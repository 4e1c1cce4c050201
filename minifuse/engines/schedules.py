"""Pipeline schedules: the order in which a stage runs its micro-batches forward and backward.

The layers of a model are cut into p stages, one a rank, and a batch into m micro-batches. A stage sends activations to the
next one, and gradients to the one before. At both ends of a step stages wait for each other: of its time,
(p - 1) / (m + p - 1) is idle (the *bubble*) with both schedules. They differ in memory: a stage keeps the activations of a
micro-batch until its backward pass.

References
----------
Y. Huang and others, GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, 2018, arXiv:1811.06965
D. Narayanan and others, PipeDream: Generalized Pipeline Parallelism for DNN Training, 2019 (1F1B)
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from .messages import Array, RankProgram, Recv, Send, Work

Pass = Callable[[int, Array | None], Array]


class MicroStep(NamedTuple):
    """One pass of a micro-batch through a stage."""

    is_forward: bool
    micro_batch: int


def gpipe(_stage: int, _stages: int, micro_batches: int) -> list[MicroStep]:
    """Run all micro-batches forward, then all backward: a stage keeps the activations of all m."""
    return [MicroStep(is_forward, k) for is_forward in (True, False) for k in range(micro_batches)]


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[MicroStep]:
    """Run each micro-batch backward as soon as possible: a stage keeps the activations of p - stage of them."""
    ahead = stages - 1 - stage  # forward passes until the first gradient can be there
    pairs = [(MicroStep(True, k + ahead), MicroStep(False, k)) for k in range(-ahead, micro_batches)]
    return [step for pair in pairs for step in pair if 0 <= step.micro_batch < micro_batches]


SCHEDULES: dict[str, Callable[[int, int, int], list[MicroStep]]] = {"gpipe": gpipe, "1f1b": one_forward_one_backward}


def kept_activations(order: Sequence[MicroStep]) -> int:
    """Return the largest number of micro-batches whose activations a stage keeps at a time."""
    return max(accumulate(1 if step.is_forward else -1 for step in order))


def run_stage(
    stage: int, stages: int, order: Sequence[MicroStep], forward: Pass, backward: Pass, seconds: tuple[float, float] = (0, 0)
) -> RankProgram[None]:
    """Run one stage: for each micro-batch it receives one array and sends one, forward and then backward.

    Parameters
    ----------
    stage, stages : int
        The stage of this rank, and the number of stages.
    order : sequence of MicroStep
        From one of SCHEDULES.
    forward, backward : function of the number of a micro-batch and the array that was received
        They return the array to send. At the ends of the pipeline nothing is received (None), and nothing is sent.
    seconds : pair of float
        The times of a forward and of a backward pass, for a cost model.
    """
    for is_forward, k in order:
        source, target = (stage - 1, stage + 1) if is_forward else (stage + 1, stage - 1)
        received = (yield Recv(source)) if 0 <= source < stages else None
        result = (forward if is_forward else backward)(k, received)
        yield Work(seconds[0 if is_forward else 1], f"{'F' if is_forward else 'B'}{k}")
        if 0 <= target < stages:
            yield Send(target, result, chunk=k)

"""Questions about networks of two layers: train one, and apply it to points."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..engine import Engine
from ..strided import Array
from ..student import Student
from ..variables import Scalar, Tensor

Points = list[tuple[float, float]]
Training = tuple[Points, list[int], int, int, Points]  # (points, their labels, steps, seed, points without labels)
ALLOCATIONS = 100_000  # between two garbage collections, while a network is trained


class Layer(NamedTuple):
    """The parameters of a layer, and its inputs: one point, or a row for each point."""

    weights: Array
    biases: Array
    xs: Array


class Net(NamedTuple):
    """Two layers. The last one has no inputs of its own: they are the outputs of the first."""

    first: Layer
    last: Layer


def train_and_apply(
    slot: str, probabilities: Callable[[Engine, Any, Points], Sequence[float]], student: Student, case: Training
) -> tuple[int, Sequence[float] | None, Sequence[float]]:
    """Train a network with a slot, and apply it to the points without labels and to those of the training.

    Return the number of backward passes and the probabilities. They are None and () without a network, or if it went
    backward too often.
    """
    points, labels, steps, seed, unseen = case
    engine = Engine(student)
    with rare_garbage_collection():
        network = getattr(student, slot)(engine, list(points), list(labels), steps, seed)
        if network is None or engine.backwards > steps:
            return engine.backwards, None, ()
        return engine.backwards, probabilities(engine, network, unseen), probabilities(engine, network, points)


def scalar_probabilities(engine: Engine, network: Callable[[Sequence[float]], Scalar], points: Points) -> Sequence[float]:
    """Return the probabilities of a network of scalars."""
    return [float(network(list(point))) for point in points]


def tensor_probabilities(engine: Engine, network: Callable[[Tensor], Tensor], points: Points) -> Sequence[float]:
    """Return the probabilities of a network of tensors."""
    return [float(p) for p in network(engine.constant(points)).value.array().reshape(len(points))]


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Run the garbage collector rarely: graphs of scalars have no cycles, and it would take a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(ALLOCATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)

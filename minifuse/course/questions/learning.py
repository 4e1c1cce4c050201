"""Questions about networks of two layers: train one, and apply it to points."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..engine import Engine
from ..strided import Array
from ..student import Student
from ..variables import Tensor, Variable

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
    with rare_garbage_collection(), recorded_gradients() as record:
        network = getattr(student, slot)(engine, list(points), list(labels), steps, seed)
        if network is None or record.passes > steps:
            return record.passes, None, ()
        return record.passes, probabilities(engine, network, unseen), probabilities(engine, network, points)


class GradientRecord:
    """The backward passes of all engines."""

    def __init__(self) -> None:
        self.backwards = 0
        self.accumulations: Counter[Variable[Any]] = Counter()
        """Number of gradients that each leaf received."""

    @property
    def passes(self) -> int:
        """Return the number of backward passes, also of those that did not go through an engine."""
        return max(self.backwards, *self.accumulations.values(), 0)


@contextmanager
def recorded_gradients(sign: float = 1.0) -> Iterator[GradientRecord]:
    """Record the backward passes in this block. Leaves receive their gradients times `sign`, 1 or -1."""
    record = GradientRecord()
    accumulate, backward = Variable.accumulate, Engine.backward

    def recorded_accumulate(self: Variable[Any], d: Any) -> None:
        record.accumulations[self] += 1
        accumulate(self, d if sign == 1 else -d)

    def recorded_backward(self: Engine, root: Variable[Any], d: Any = None) -> None:
        record.backwards += 1
        backward(self, root, d)

    replaced: tuple[tuple[Any, str, Any], ...] = (
        (Variable, "accumulate", recorded_accumulate),
        (Engine, "backward", recorded_backward),
    )
    for cls, name, method in replaced:
        setattr(cls, name, method)
    try:
        yield record
    finally:
        for (cls, name, _), method in zip(replaced, (accumulate, backward), strict=True):
            setattr(cls, name, method)


def layers_of(network: Any) -> list[tuple[list[list[float]], list[float]]]:
    """Return the weights and the biases of each layer of a network of scalars."""
    return [
        ([[float(w) for w in row] for row in layer.weights], [float(b) for b in layer.biases]) for layer in network.layers
    ]


def scalar_probabilities(engine: Engine, network: Any, points: Points) -> Sequence[float]:
    """Return the probabilities of a network of scalars, computed from its parameters."""
    (weights, biases), (last, (bias,)) = layers_of(network)
    hidden = np.maximum(np.reshape(points, (-1, 2)) @ np.array(weights) + biases, 0)
    with np.errstate(over="ignore"):
        return [float(p) for p in (1 / (1 + np.exp(-(hidden @ np.array(last) + bias)))).ravel()]


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

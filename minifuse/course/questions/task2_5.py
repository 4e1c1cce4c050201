"""Questions of task 2.5: a network of tensors."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from ..engine import Engine
from ..strided import Array
from ..student import Student
from ..variables import Tensor
from .learning import Layer, Net, Points, Training, tensor_probabilities

Guesses = tuple[Array, Array]  # (probabilities, labels), of shape (points, 1)
Parameters = list[tuple[Array, Array | None]]  # (value, derivative) of each
Steps = tuple[Parameters, float]  # (parameters, rate)


STEPS = 2


def fill(engine: Engine, layer: Any, case: Layer) -> None:
    """Set the parameters of a student's layer."""
    layer.weights.value, layer.biases.value = engine.values(case.weights), engine.values(case.biases)


def ask_layer(student: Student, case: Layer) -> object:
    """Return the outputs of the student's layer."""
    engine = Engine(student)
    layer = student.TensorLinear(engine, *case.weights.shape, Random(1))
    fill(engine, layer, case)
    return array_of(layer(engine.constant(case.xs)))


def array_of(x: object) -> object:
    """Return the elements of a tensor; anything else unchanged."""
    return np.array(x.value.array()) if isinstance(x, Tensor) else x


def ask_network(student: Student, case: Net) -> object:
    """Return the probabilities of the student's network."""
    engine = Engine(student)
    network = student.TensorNetwork(engine, *case.first.weights.shape, Random(1))
    for layer, values in zip(network.layers, case, strict=True):
        fill(engine, layer, values)
    return array_of(network(engine.constant(case.first.xs)))


def ask_loss(student: Student, case: Guesses) -> tuple[float, Array | None]:
    """Return the student's loss, and the gradient of the outputs."""
    engine = Engine(student)
    outputs = engine.tensor(case[0])
    loss = student.tensor_loss(outputs, engine.constant(case[1]))
    loss.backward()
    return loss.item(), np.array(outputs.grad.array()) if outputs.grad is not None else None


def ask_step(student: Student, case: Steps) -> Parameters:
    """Return values and gradients after the student's steps: the same gradients are given twice, to the same parameters."""
    engine = Engine(student)
    parameters = [engine.tensor(value) for value, _ in case[0]]
    for _ in range(STEPS):
        for p, (_, d) in zip(parameters, case[0], strict=True):
            p.grad = None if d is None else engine.values(d)
        student.tensor_step(parameters, case[1])
    return [(np.array(p.value.array()), None if p.grad is None else np.array(p.grad.array())) for p in parameters]


class NotedRandom(Random):
    """A random generator that notes the numbers it has drawn, which are those of `uniform` before they are scaled."""

    def __init__(self, seed: int) -> None:
        self.drawn: list[float] = []
        super().__init__(seed)

    def random(self) -> float:
        """Draw a number between 0 and 1, and note it."""
        self.drawn.append(super().random())
        return self.drawn[-1]


def drawn_parameters(student: Student, case: tuple[int, int, int]) -> tuple[list[Array], list[float]]:
    """Return the parameters of a new layer, and the numbers that its random generator has drawn."""
    inputs, outputs, seed = case
    random = NotedRandom(seed)
    layer = student.TensorLinear(Engine(student), inputs, outputs, random)
    return [np.array(p.value.array()) for p in (layer.weights, layer.biases)], random.drawn


def train_briefly(student: Student, case: tuple[Points, list[int], int, Sequence[int]]) -> list[tuple[int, list[Array]]]:
    """Return the number of backward passes of all engines, and the parameters, after a training with each seed."""
    points, labels, steps, seeds = case
    found = []
    for seed in seeds:
        engine, before = Engine(student), Engine.all_backwards
        network = student.train_tensor_network(engine, list(points), list(labels), steps, seed)
        found.append((Engine.all_backwards - before, [np.array(p.value.array()) for p in network.parameters()]))
    return found


class ReversedEngine(Engine):
    """An engine whose gradients have the wrong sign: what learns from them unlearns."""

    def backward(self, root: Any, d: Any = None) -> None:
        """Accumulate the negative gradients."""
        super().backward(root, np.full(root.shape, -1.0) if d is None else -root.as_value(d))


def train_in_reverse(student: Student, case: Training) -> tuple[int, list[float]]:
    """Train with gradients of the wrong sign; return the number of backward passes, and the probabilities of new points."""
    points, labels, steps, seed, unseen = case
    engine = ReversedEngine(student)
    try:
        network = student.train_tensor_network(engine, list(points), list(labels), steps, seed)
        return engine.backwards, list(tensor_probabilities(engine, network, unseen))
    except (ArithmeticError, ValueError):  # it may give up where nothing is learnt
        return engine.backwards, []


def initial_parameters(student: Student, seeds: Sequence[int]) -> list[list[Array]]:
    """Return the parameters of a new layer of shape (3, 4), for each seed."""
    layers = [student.TensorLinear(Engine(student), 3, 4, Random(seed)) for seed in seeds]
    return [[np.array(p.value.array()) for p in (layer.weights, layer.biases)] for layer in layers]

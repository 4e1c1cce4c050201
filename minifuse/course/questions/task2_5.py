"""Questions of task 2.5: a network of tensors."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from ..engine import Engine
from ..strided import Array
from ..student import Student
from ..variables import Tensor
from .learning import Layer, Net

Guesses = tuple[Array, Array]  # (probabilities, labels), of shape (points, 1)
Parameters = list[tuple[Array, Array | None]]  # (value, derivative) of each
Steps = tuple[Parameters, float]  # (parameters, rate)


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
    """Return values and gradients after the student's step."""
    engine = Engine(student)
    parameters = [engine.tensor(value) for value, _ in case[0]]
    for p, (_, d) in zip(parameters, case[0], strict=True):
        p.grad = None if d is None else engine.values(d)
    student.tensor_step(parameters, case[1])
    return [(np.array(p.value.array()), None if p.grad is None else np.array(p.grad.array())) for p in parameters]


def initial_parameters(student: Student, seeds: Sequence[int]) -> list[list[Array]]:
    """Return the parameters of a new layer of shape (3, 4), for each seed."""
    layers = [student.TensorLinear(Engine(student), 3, 4, Random(seed)) for seed in seeds]
    return [[np.array(p.value.array()) for p in layer.parameters()] for layer in layers]

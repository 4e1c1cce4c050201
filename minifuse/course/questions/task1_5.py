"""Questions of task 1.5: a network of scalars."""

from collections.abc import Sequence
from random import Random
from typing import Any

from ..engine import Engine
from ..student import Student
from .learning import Layer, Net

Guesses = tuple[tuple[float, ...], tuple[int, ...]]  # (probabilities, labels)
Parameters = Sequence[tuple[float, float | None]]  # (value, derivative) of each
Steps = tuple[Parameters, float]  # (parameters, rate)


def fill(layer: Any, case: Layer) -> None:
    """Set the parameters of a student's layer."""
    for row, values in zip(layer.weights, case.weights.tolist(), strict=True):
        for w, value in zip(row, values, strict=True):
            w.value = value
    for b, value in zip(layer.biases, case.biases.tolist(), strict=True):
        b.value = value


def ask_layer(student: Student, case: Layer) -> list[float]:
    """Return the outputs of the student's layer."""
    layer = student.ScalarLinear(Engine(student), *case.weights.shape, Random(1))
    fill(layer, case)
    return [float(x) for x in layer(case.xs.tolist())]


def ask_network(student: Student, case: Net) -> float:
    """Return the probability of the student's network."""
    network = student.ScalarNetwork(Engine(student), *case.first.weights.shape, Random(1))
    for layer, values in zip(network.layers, case, strict=True):
        fill(layer, values)
    return float(network(case.first.xs.tolist()))


def ask_loss(student: Student, case: Guesses) -> tuple[float, list[float]]:
    """Return the student's loss, and the gradient of each output."""
    engine = Engine(student)
    outputs = [engine.scalar(p) for p in case[0]]
    loss = student.scalar_loss(outputs, list(case[1]))
    loss.backward()
    return float(loss), [x.grad or 0.0 for x in outputs]


def ask_step(student: Student, case: Steps) -> Parameters:
    """Return values and gradients after the student's step."""
    engine = Engine(student)
    parameters = [engine.scalar(value) for value, _ in case[0]]
    for p, (_, d) in zip(parameters, case[0], strict=True):
        p.grad = d
    student.scalar_step(parameters, case[1])
    return [(p.value, p.grad) for p in parameters]


def initial_parameters(student: Student, seeds: Sequence[int]) -> list[list[float]]:
    """Return the parameters of a new layer of 3 inputs and 4 outputs, for each seed."""
    layers = [student.ScalarLinear(Engine(student), 3, 4, Random(seed)) for seed in seeds]
    return [[float(p) for p in layer.parameters()] for layer in layers]

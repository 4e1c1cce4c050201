"""Questions of task 1.5: a network of scalars."""

from collections.abc import Sequence
from random import Random
from typing import Any

from ..engine import Engine
from ..student import Student
from .learning import Layer, Net, Points, layers_of, rare_garbage_collection, recorded_gradients

Guesses = tuple[tuple[float, ...], tuple[int, ...]]  # (probabilities, labels)
Parameters = Sequence[tuple[float, float | None]]  # (value, gradient) of each
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
    """Return values and gradients after the student's step, which follows another step of the same parameters."""
    engine = Engine(student)
    parameters = [engine.scalar(value) for value, _ in case[0]]
    for p in parameters:
        p.grad = 3.0
    student.scalar_step(parameters, 2.0)
    for p, (value, d) in zip(parameters, case[0], strict=True):
        p.value, p.grad = value, d
    student.scalar_step(parameters, case[1])
    return [(p.value, p.grad) for p in parameters]


def ask_layer_gradients(student: Student, case: Layer) -> list[Any]:
    """Return the gradients of weights, biases and inputs of the student's layer, if output j receives j + 1."""
    engine = Engine(student)
    layer = student.ScalarLinear(engine, *case.weights.shape, Random(1))
    fill(layer, case)
    xs = [engine.scalar(x) for x in case.xs.tolist()]
    root = engine.scalar(0.0)
    for j, output in enumerate(layer(xs)):
        root = root + output * (j + 1.0)
    root.backward()
    return [[[w.grad for w in row] for row in layer.weights], [b.grad for b in layer.biases], [x.grad for x in xs]]


def ask_network_gradients(student: Student, case: Net) -> list[Any]:
    """Return the gradients of weights and biases of both layers of the student's network, if its output receives 1."""
    network = student.ScalarNetwork(Engine(student), *case.first.weights.shape, Random(1))
    for layer, values in zip(network.layers, case, strict=True):
        fill(layer, values)
    network(case.first.xs.tolist()).backward()
    return [[[[w.grad for w in row] for row in x.weights], [b.grad for b in x.biases]] for x in network.layers]


def initial_parameters(student: Student, case: tuple[int, int, int]) -> list[float]:
    """Return the parameters of a new layer, for (inputs, outputs, seed)."""
    inputs, outputs, seed = case
    return [float(p) for p in student.ScalarLinear(Engine(student), inputs, outputs, Random(seed)).parameters()]


def train(student: Student, case: tuple[Points, list[int], int, int, float]) -> tuple[int, object]:
    """Return the number of backward passes of a training, and the parameters of the network.

    The case is (points, labels, steps, seed, sign): all gradients that arrive at a leaf are multiplied by the sign.
    """
    points, labels, steps, seed, sign = case
    with rare_garbage_collection(), recorded_gradients(sign) as record:
        network = student.train_scalar_network(Engine(student), list(points), list(labels), steps, seed)
        return record.passes, layers_of(network)

"""Questions of task 4.6: the steps of an optimizer, its state, and how many steps a training takes."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..engine import Engine
from ..strided import Array
from ..student import Student
from ..values import Values
from ..variables import Tensor
from ..verdicts import Wrong

Gradients = tuple[Array | None, ...]
"""The gradient of each parameter."""
Found = tuple[tuple[Array, ...], ...]
"""The value of each parameter after each step."""


class Run(NamedTuple):
    """An optimizer, its parameters, and the gradients that they get."""

    name: str
    """SGD or Adam."""
    options: dict[str, Any]
    values: tuple[Array, ...]
    gradients: tuple[Gradients, ...]
    """For each step."""
    rates: tuple[float, ...]
    """For each step."""
    saved_after: int = 0
    """The number of steps before the state is saved."""


class Training(NamedTuple):
    """A network of two layers, its data, and the optimizer that trains it."""

    name: str
    options: dict[str, Any]
    weights: tuple[Array, ...]
    xs: Array
    labels: Array
    target: float
    most: int


class Trained(NamedTuple):
    """The steps of a training, as a record of plain numbers."""

    steps: int | None
    """The answer of `steps_until`."""
    losses: int
    """Losses that were computed."""
    backwards: int
    """Losses that went backward."""


def make_parameters(engine: Engine, values: tuple[Array, ...]) -> list[Tensor]:
    """Return parameters with these values."""
    return [engine.tensor(value) for value in values]


def take_steps(optimizer: Any, parameters: list[Tensor], case: Run, first: int, last: int) -> Found:
    """Take the steps from `first` to `last`, and return the values after each."""
    found = []
    for gradients, rate in zip(case.gradients[first:last], case.rates[first:last], strict=True):
        for p, d in zip(parameters, gradients, strict=True):
            p.grad = None if d is None else p.engine.values(d)
        optimizer.rate = rate
        optimizer.step()
        found.append(tuple(np.array(p.value.array()) for p in parameters))
    return tuple(found)


def ask_steps(student: Student, case: Run) -> object:
    """Return the values after each step."""
    parameters = make_parameters(Engine(student), case.values)
    optimizer = getattr(student, case.name)(parameters, case.rates[0], **case.options)
    return take_steps(optimizer, parameters, case, 0, len(case.gradients))


def ask_resumed(student: Student, case: Run) -> object:
    """Save the state after some steps, load it in a new optimizer, and return the values after each of the other steps.

    The first optimizer goes on before its state is stored as JSON, and the state is loaded by two new ones, one after the
    other: each continues from where it was saved.
    """
    engine, count = Engine(student), len(case.gradients)
    parameters = make_parameters(engine, case.values)
    optimizer = getattr(student, case.name)(parameters, case.rates[0], **case.options)
    take_steps(optimizer, parameters, case, 0, case.saved_after)
    values = tuple(np.array(p.value.array()) for p in parameters)
    state = optimizer.state_dict()
    take_steps(optimizer, parameters, case, case.saved_after, count)
    try:
        stored = json.loads(json.dumps(state))
    except (TypeError, ValueError) as error:
        raise Wrong(f"json.dumps(state_dict()) raises {type(error).__name__}: {error}", kind="state") from None
    found: Found = ()
    for _ in range(2):
        parameters = make_parameters(engine, values)
        optimizer = getattr(student, case.name)(parameters, case.rates[0], **case.options)
        optimizer.load_state_dict(stored)
        found = take_steps(optimizer, parameters, case, case.saved_after, count)
    return found


def ask_gradients(student: Student, case: Run) -> object:
    """Return the gradients after a step, and then after zero_grad."""
    parameters = make_parameters(Engine(student), case.values)
    optimizer = getattr(student, case.name)(parameters, case.rates[0], **case.options)
    take_steps(optimizer, parameters, case, 0, 1)
    kept = tuple(np.array(p.grad.array()) if isinstance(p.grad, Values) else p.grad for p in parameters)
    optimizer.zero_grad()
    return kept, tuple(p.grad for p in parameters)


def network_loss(engine: Engine, parameters: list[Tensor], xs: Array, labels: Array) -> Tensor:
    """Return the mean squared error of a network of two layers."""
    first, first_biases, last, last_biases = parameters
    outputs = (engine.constant(xs) @ first + first_biases).sigmoid() @ last + last_biases
    errors = outputs - engine.constant(labels)
    return (errors * errors).mean()


def train(engine: Engine, optimizer_class: Callable[..., Any], run: Callable[..., Any], case: Training) -> Trained:
    """Train a network until its loss is small. The parameters have a gradient of another loss before."""
    parameters = make_parameters(engine, case.weights)
    for p in parameters:
        p.grad = engine.values(np.ones(p.shape))
    losses = []

    def loss_of() -> Tensor:
        losses.append(network_loss(engine, parameters, case.xs, case.labels))
        return losses[-1]

    steps = run(optimizer_class(parameters, **case.options), loss_of, case.target, case.most)
    return Trained(steps, len(losses), engine.backwards)


def ask_training(student: Student, case: Training) -> object:
    """Train with the student's optimizer and loop."""
    return tuple(train(Engine(student), getattr(student, case.name), student.steps_until, case))

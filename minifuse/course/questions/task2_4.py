"""Questions of task 2.4: differentiable functions of tensors, and the gradient of broadcasting."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.indexing import Shape
from ..engine import Engine
from ..strided import Strided
from ..student import Student
from ..values import Values
from ..variables import Context, Function


class Call(NamedTuple):
    """A function, its inputs and options, and the gradient of its result."""

    name: str
    inputs: tuple[Strided, ...]
    options: dict[str, Any]
    d: Strided

    def __str__(self) -> str:
        shapes = " and ".join(str(x.shape) for x in self.inputs)
        options = "".join(f", {key} {value}" for key, value in self.options.items())
        return f"{self.name} of shape{'s' * (len(self.inputs) > 1)} {shapes}{options}; d of shape {self.d.shape}"


Look = Callable[[Engine, Function, Call], object]
"""A function of (engine, function, case)."""
Repeated = tuple[Strided, Shape]
"""(a gradient, the shape that was broadcast to its shape)."""


def run(engine: Engine, function: Function, case: Call) -> tuple[Context, object]:
    """Run forward on the inputs of a case."""
    context = Context()
    return context, function.forward(context, *[engine.values(x) for x in case.inputs], **case.options)


def another(case: Call) -> Call:
    """Return the call with other numbers."""
    return case._replace(inputs=tuple(x._replace(storage=x.storage * 0.5) for x in case.inputs))


def value(engine: Engine, function: Function, case: Call) -> object:
    """Return the value of forward."""
    return as_array(run(engine, function, case)[1])


def slopes(engine: Engine, function: Function, case: Call) -> object:
    """Run backward after another forward with other numbers."""
    context, _ = run(engine, function, case)
    run(engine, function, another(case))
    found = function.backward(context, engine.values(case.d))
    return tuple(as_array(x) for x in found) if isinstance(found, tuple) else found


def slopes_alone(engine: Engine, function: Function, case: Call) -> object:
    """Run backward directly after forward."""
    found = function.backward(run(engine, function, case)[0], engine.values(case.d))
    return tuple(map(as_array, found))


def both(engine: Engine, function: Function, case: Call) -> object:
    """Return the value of forward and the gradients of backward."""
    found = slopes(engine, function, case)
    return (value(engine, function, case), *found) if isinstance(found, tuple) else found


def as_array(x: object) -> object:
    """Return the elements of `Values`; anything else unchanged."""
    return np.array(x.array()) if isinstance(x, Values) else x


def ask(look: Look, student: Student, case: Call) -> object:
    """Look at a function of the student's."""
    return look(Engine(student), getattr(student, case.name), case)


def ask_sum(student: Student, case: Repeated) -> object:
    """Return the student's sum."""
    return as_array(student.unbroadcast(Engine(student).values(case[0]), case[1]))

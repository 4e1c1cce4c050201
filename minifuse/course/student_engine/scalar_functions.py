"""Operators of Scalars by the classes with `forward` and `backward` that a student wrote in task 1.2."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...core import dispatch
from ...core.autograd import FREED_GRAPH, grad_edge
from ...core.errors import GradientError
from ...core.scalar import Scalar, to_number
from ..variables import Context
from .engine import StudentEngine

CLASSES = {
    "add": "Add",
    "mul": "Mul",
    "neg": "Neg",
    "log": "Log",
    "exp": "Exp",
    "sigmoid": "Sigmoid",
    "relu": "ReLU",
    "lt": "LT",
    "eq": "EQ",
}
"""The class of task 1.2 for each operator. `Inv` is used by a division."""


class FunctionBackward:
    """A call of a student's function, recorded for the backward pass."""

    count = 1

    def __init__(self, function: Any, context: Context, inputs: Sequence[Scalar | float]) -> None:
        self.function = function
        self.context: Context | None = context
        self.edges = tuple(grad_edge(x) if isinstance(x, Scalar) and x.requires_grad else None for x in inputs)

    def backward(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """Return the derivative with respect to each input, by the student's `backward`."""
        if self.context is None:
            raise GradientError(FREED_GRAPH)
        if dispatch.mode.is_recording:
            raise GradientError(
                "backward: create_graph=True needs functions that work on Scalars; those of your engine save numbers, so "
                "their derivatives cannot be differentiated again"
            )
        (d,) = gradients
        return tuple(float(g) for g in self.function.backward(self.context, float(to_number(d))))

    def free_saved(self) -> None:
        """Free what `forward` saved."""
        self.context = None


def apply_function(engine: StudentEngine, name: str, *inputs: Scalar | float) -> Scalar:
    """Apply a student's class to Scalars and numbers, and record the call."""
    function, context = engine.slot(name), Context()
    y = Scalar(function.forward(context, *[float(to_number(x)) for x in inputs]), False)
    if dispatch.mode.is_recording and any(isinstance(x, Scalar) and x.requires_grad for x in inputs):
        y.requires_grad, y.grad_fn = True, (FunctionBackward(function, context, inputs), 0)
    return y


def replaced_operators(engine: StudentEngine) -> dict[str, Callable[..., Scalar]]:
    """Return the operators of Scalars that a student's classes compute, by name."""
    found: dict[str, Callable[..., Scalar]] = {
        operator: partial(apply_function, engine, name) for operator, name in CLASSES.items() if engine.has(name)
    }
    add, mul, neg = (found.get(name) for name in ("add", "mul", "neg"))
    if add and neg:
        found["sub"] = lambda x, y: add(x, neg(y))
    if mul and engine.has("Inv"):
        found["div"] = lambda x, y: mul(x, apply_function(engine, "Inv", y))
    if engine.has("LT"):
        found["gt"] = lambda x, y: apply_function(engine, "LT", y, x)
    return found

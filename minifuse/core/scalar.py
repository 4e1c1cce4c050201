"""Scalar: a number with a gradient. Of the code of tensors it uses only the operator table and the backpropagation."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from . import autograd, dispatch
from .dtypes import as_number
from .errors import DTypeError, GradientError
from .operators import Operator, eq, ne
from .traceable import Traceable

functions: "dict[str, Callable[..., Scalar]]" = {}
"""Functions that compute an operator on Scalars in place of its entry, by name. The engine of a student fills it."""


class ScalarBackward:
    """One operator applied to numbers, recorded for the backward pass."""

    __slots__ = ("edges", "inputs", "operator", "output")
    count = 1

    def __init__(self, operator: Operator, inputs: "tuple[ScalarOperand, ...]", output: "Scalar") -> None:
        self.operator = operator
        self.inputs: tuple[ScalarOperand, ...] | None = inputs
        self.output: Scalar | None = output
        self.edges = tuple(autograd.grad_edge(x) if isinstance(x, Scalar) and x.requires_grad else None for x in inputs)

    def backward(self, gradients: "Sequence[ScalarOperand | None]") -> "Sequence[ScalarOperand | None]":
        """Return the gradient of each input, by the VJP of the operator."""
        if self.inputs is None or self.output is None:
            raise GradientError(autograd.FREED_GRAPH)
        y: ScalarOperand = self.output
        xs: Sequence[ScalarOperand] = self.inputs
        if not dispatch.mode.is_recording:
            y, *xs = [np.float64(to_number(x)) for x in (y, *xs)]  # NumPy's float: Python's raises on division by 0
        with np.errstate(all="ignore"):
            if self.operator.vjp is None:
                return [None] * len(xs)
            found: Sequence[ScalarOperand | None] = self.operator.vjp(*gradients, y, *xs)
            autograd.check_input_gradients(self.operator, found, len(xs))
            return found

    def free_saved(self) -> None:
        """Free the inputs and the output, which refers to this node."""
        self.inputs = self.output = None


class Scalar(Traceable):
    """A number that records how it was computed.

    Parameters
    ----------
    data
        The number. It is stored as a Python float; arithmetic uses float64.
    requires_grad
        Whether `backward` computes its `grad`.

    Examples
    --------
    >>> a, b = Scalar(2.0), Scalar(-3.0)
    >>> y = (a * b + 10).log() * a
    >>> y.backward()
    >>> round(y.data, 4), round(a.grad, 4), round(b.grad, 4)
    (2.7726, -0.1137, 1.0)
    """

    __slots__ = ("__weakref__", "data", "grad", "grad_fn", "requires_grad")

    __array_priority__ = -1.0  # above that of NumPy's scalars: before NumPy 2.1 they compare with float(self) otherwise
    __hash__ = object.__hash__  # `==` compares values, but dicts compare Scalars by identity, as they do tensors

    def __init__(self, data: float, requires_grad: bool = True) -> None:
        self.data, self.requires_grad = float(to_number(data)), requires_grad
        self.grad: Scalar | float | None = None
        self.grad_fn: autograd.GradFn | None = None

    def __eq__(self, other: object) -> Any:
        """Return a Scalar, 1 if the values are equal and 0 if not; anything but a real number is never equal."""
        return self.apply(eq, self, other) if is_comparable(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        """Return a Scalar, 0 if the values are equal and 1 if not; anything but a real number always differs."""
        return self.apply(ne, self, other) if is_comparable(other) else NotImplemented

    def apply(self, operator: Operator, *inputs: "ScalarOperand") -> "Scalar":
        """Apply an operator to numbers, and record it."""
        for x in inputs:
            if isinstance(x, Traceable) and not isinstance(x, Scalar):
                raise DTypeError(f"{operator}: got a Scalar and a {type(x).__name__}; convert the Scalar with mf.tensor")
        if not operator.accepts_floats:
            expected = "integers and bools" if operator.accepts_bools else "integers"
            raise DTypeError(f"{operator}: got float64, expected {expected}; Scalars are floats")
        if operator.name in functions:
            return functions[operator.name](*inputs)
        if not operator.is_primitive and operator.vjp is None:
            y: Scalar = operator.inline(*inputs)
            return y
        with np.errstate(all="ignore"):
            y = Scalar(operator(*[np.float64(to_number(x)) for x in inputs]), False)
        if dispatch.mode.is_recording and operator.vjp and any(isinstance(x, Scalar) and x.requires_grad for x in inputs):
            y.requires_grad, y.grad_fn = True, (ScalarBackward(operator, inputs, y), 0)
        return y

    def backward(self, create_graph: bool = False, retain_graph: bool | None = None) -> None:
        """Add the derivative of this number to `grad` of every Scalar that it was computed from.

        Parameters
        ----------
        create_graph
            Return derivatives as Scalars, which can be differentiated again, instead of floats.
        retain_graph
            Allow another call of `backward`. Default: `create_graph`.

        Raises
        ------
        GradientError
            The number was computed from no Scalar that requires a gradient, or an earlier call freed the graph.
        """
        retain = create_graph if retain_graph is None else retain_graph
        start: ScalarOperand = Scalar(1.0, False) if create_graph else 1.0
        for leaf, g in autograd.run_backward([self], [start], create_graph=create_graph, retain_graph=retain).items():
            g = g if create_graph else float(to_number(g))
            leaf.grad = g if leaf.grad is None else leaf.grad + g

    def item(self) -> float:
        """Return the number as a Python float."""
        return self.data

    def __bool__(self) -> bool:
        return bool(self.data)

    def __float__(self) -> float:
        return self.data

    def __repr__(self) -> str:
        return f"Scalar({self.data})"


ScalarOperand = Scalar | float | np.float64


def is_comparable(x: object) -> TypeGuard[ScalarOperand]:
    """Return whether `==` compares x by value. `apply` raises DTypeError for a Traceable of another class."""
    return isinstance(x, Traceable | Real | np.bool_)


def to_number(x: object) -> Any:
    """Return the number in a Scalar, or a real number itself. Raise DTypeError for anything else."""
    number = x.data if isinstance(x, Scalar) else as_number(x)
    if not isinstance(number, Real):
        raise DTypeError(f"expected a real number, got {type(x).__name__} ({x!r:.40})")
    return number

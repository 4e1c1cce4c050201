"""Programs: functions of tensors as data, and the arrays to which they are applied.

A program is callable with any operands that have the operators: with tracers it is captured, with arrays it is computed.
`drawn_programs` draws programs and computes what they should return.
"""

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..core.indexing import Shape
from .strided import Array

Operand = int | float  # an int is the index of a value (first the arguments, then one value per line); a float is a constant
ARGUMENT_NAMES = "xyzuvw"
OPERATOR_FORMATS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "lt": "{} < {}",
    "matmul": "{} @ {}",
}
TENSOR_FUNCTIONS: dict[str, Callable[..., object]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "lt": operator.lt,
    "matmul": operator.matmul,
    "maximum": lambda x, y: x.maximum(y),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sum": lambda x: x.sum(),
    "max": lambda x: x.max(),
}


class TensorLike(Protocol):
    """A value with operators and a shape: a tensor, or a tracer that has no elements yet."""

    @property
    def shape(self) -> Shape:
        """Return the sizes of the dims."""

    def __add__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __sub__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __mul__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __truediv__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __radd__(self, other: float) -> "TensorLike": ...
    def __rsub__(self, other: float) -> "TensorLike": ...
    def __rmul__(self, other: float) -> "TensorLike": ...
    def __rtruediv__(self, other: float) -> "TensorLike": ...
    def __matmul__(self, other: "TensorLike") -> "TensorLike": ...
    def __lt__(self, other: "TensorLike | float") -> "TensorLike": ...
    def __neg__(self) -> "TensorLike": ...

    def exp(self) -> "TensorLike":
        """Return e to the power of each element."""

    def log(self) -> "TensorLike":
        """Return the logarithm of each element."""

    def maximum(self, other: "TensorLike | float") -> "TensorLike":
        """Return the larger of each pair of elements."""

    def sum(self) -> "TensorLike":
        """Return the sum of each row."""

    def max(self) -> "TensorLike":
        """Return the largest element of each row."""


class Line(NamedTuple):
    """One statement of a program."""

    op: str
    operands: tuple[Operand, ...]


class Program(NamedTuple):
    """A function of tensors, as a list of statements."""

    shapes: tuple[Shape, ...]
    lines: tuple[Line, ...]
    outputs: tuple[int, ...]

    def __call__(self, *xs: object) -> object:
        """Run the lines, with the operators and methods of the arguments."""
        values = list(xs)
        for op, operands in self.lines:
            values.append(TENSOR_FUNCTIONS[op](*[k if isinstance(k, float) else values[k] for k in operands]))
        outputs = tuple(values[k] for k in self.outputs)
        return outputs if len(outputs) > 1 else outputs[0]

    def name(self, k: Operand) -> str:
        """Return the name of a value: x, y, ... for arguments, then a, b, ..."""
        if isinstance(k, float):
            return repr(k)
        later = k - len(self.shapes)
        if later < 0:
            return ARGUMENT_NAMES[k] if len(self.shapes) <= len(ARGUMENT_NAMES) else f"x{k}"
        return "abcdefghijklmnopqrst"[later] if later < 20 else f"t{later}"

    def __str__(self) -> str:
        arguments = ", ".join(f"{self.name(k)} {shape}" for k, shape in enumerate(self.shapes))
        lines = [f"{self.name(len(self.shapes) + k)} = {self.format_line(line)}" for k, line in enumerate(self.lines)]
        if len(lines) > 24:
            lines = [*lines[:3], f"... {len(lines) - 4} more", lines[-1]]
        return "; ".join([f"of {arguments}", *lines, "return " + ", ".join(map(self.name, self.outputs))])

    def format_line(self, line: Line) -> str:
        """Return the expression on the right side of a statement."""
        names = [self.name(k) for k in line.operands]
        if line.op in OPERATOR_FORMATS:
            return OPERATOR_FORMATS[line.op].format(*names)
        return f"-{names[0]}" if line.op == "neg" else f"{names[0]}.{line.op}({', '.join(names[1:])})"


def sample_array(shape: Shape, k: int) -> Array:
    """Return an array for argument k, with elements of both signs that occur in no other position or argument."""
    return np.random.default_rng(100 * k + len(shape)).uniform(-2.0, 2.0, shape)


def sample_arrays(shapes: Sequence[Shape]) -> list[Array]:
    """Return an array for each argument."""
    return [sample_array(shape, k) for k, shape in enumerate(shapes)]

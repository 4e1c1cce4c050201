"""Questions of task 4.4 beside those of task 2.4: the mask of dropout, and what a logarithm is taken of."""

import numpy as np

from ..engine import Engine
from ..strided import Array, Strided
from ..student import Student
from ..values import Operand
from .task2_4 import Call, value

Mask = tuple[int, float, int]
"""(count, rate, seed)."""


class LogEngine(Engine):
    """An engine that records the smallest number of which a logarithm is taken."""

    least = np.inf

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run a loop."""
        if name == "log" and a.array().size:
            self.least = min(self.least, float(a.array().min()))
        super().loop(kind, name, out, a, *operands)


def ask_log(student: Student, case: Call) -> tuple[object, float]:
    """Return the value of forward, and the smallest number of which it takes a logarithm."""
    engine = LogEngine(student)
    return value(engine, getattr(student, case.name), case), engine.least


def ask_masks(student: Student, case: Mask) -> list[object]:
    """Return a mask, the same one again after the caller has changed the list, and one of another rate."""
    count, rate, seed = case
    first = student.dropout_mask(count, rate, seed)
    if not isinstance(first, list):
        return [first, first, first]
    kept = list(first)
    first[:] = [-1.0] * len(first)
    return [kept, student.dropout_mask(count, rate, seed), student.dropout_mask(count, rate / 2, seed)]


def largest_of(d: Array) -> float:
    """Return the largest magnitude in a gradient; 1 if all of it is 0."""
    return float(np.abs(d).max(initial=0.0)) or 1.0

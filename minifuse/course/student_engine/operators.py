"""The operators of minifuse, written with those of task 0.1 and bound to the functions of a student."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...backends.base import ScalarFunction
from ...core.operators import Operator
from ..oracle.module0 import add, eq, exp, inv, log, lt, maximum, mul, neg, relu, sigmoid
from ..oracle.ufuncs import ON_ARRAYS
from .engine import StudentEngine

SAME = {f.__name__: f for f in (add, eq, exp, log, lt, maximum, mul, neg, relu, sigmoid)}
"""The functions of task 0.1 that are an operator of minifuse as they are."""


def sub(x: float, y: float) -> float:
    """Return x - y."""
    return add(x, neg(y))


def div(x: float, y: float) -> float:
    """Return x / y."""
    return mul(x, inv(y))


def gt(x: float, y: float) -> float:
    """Return 1 if x > y, else 0."""
    return lt(y, x)


def minimum(x: float, y: float) -> float:
    """Return the smaller one."""
    return neg(maximum(neg(x), neg(y)))


COMPOSED: dict[str, Callable[..., float]] = {f.__name__: f for f in (sub, div, gt, minimum)}
"""Operators that are made of several of task 0.1."""
OPERATORS = tuple(sorted({*SAME, "inv"}))
"""The functions of task 0.1 that an engine uses."""


class BoundOperators:
    """The operators of minifuse as functions of Python numbers: a student's, or the library's where none is written."""

    def __init__(self, engine: StudentEngine) -> None:
        self.engine = engine
        self._bound: dict[ScalarFunction | str, tuple[Callable[..., Any], tuple[str, ...]]] = {}

    def bind(self, op: ScalarFunction | str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        """Return an operator as a function of numbers, and the names of the student's functions that it calls.

        A str names a function of task 0.1. There are no names if the library lends the function.
        """
        if op not in self._bound:
            self._bound[op] = self.look_up(op)
        return self._bound[op]

    def look_up(self, op: ScalarFunction | str) -> tuple[Callable[..., Any], tuple[str, ...]]:
        """Return what `bind` returns."""
        if isinstance(op, str):
            return (self.engine.raw(op), (op,)) if self.engine.has(op) else (ON_ARRAYS[op], ())
        if not isinstance(op, Operator):
            return op, ()
        if op.name in SAME and self.engine.has(op.name):
            return self.engine.raw(op.name), (op.name,)
        if op.name in COMPOSED:
            function = COMPOSED[op.name]
            assert isinstance(function, FunctionType)
            needs = function.__code__.co_names
            if self.engine.has(*needs):
                namespace = {"__name__": __name__} | {name: self.engine.raw(name) for name in needs}
                return FunctionType(function.__code__, namespace, op.name), needs
        return op.body, ()


def name_of(op: ScalarFunction | str) -> str:
    """Return the name of an operator for the count of lent functions."""
    if isinstance(op, str):
        return op
    return op.name if isinstance(op, Operator) else getattr(op, "__name__", type(op).__name__)

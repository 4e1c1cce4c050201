"""The operators of minifuse, written with those of task 0.1 and bound to the functions of a student."""

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...backends.base import ScalarFunction
from ...core.operators import Operator
from ..oracle.ufuncs import ON_ARRAYS
from .compiled_loops import slots_in
from .engine import StudentEngine

if TYPE_CHECKING:
    from ..oracle.module0 import add, inv, lt, maximum, mul, neg

SAME = frozenset({"add", "eq", "exp", "log", "lt", "maximum", "mul", "neg", "relu", "sigmoid"})
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
"""Operators that are made of several of task 0.1. Their global names are bound to a student's functions."""
OPERATORS = tuple(sorted({*SAME, "inv"}))
"""The functions of task 0.1 that an engine uses."""


class BoundOperator(NamedTuple):
    """An operator as a function of numbers."""

    function: Callable[..., Any]
    names: tuple[str, ...] = ()
    """The student's functions that it consists of; none if the library lends it."""
    calls: frozenset[str] = frozenset()
    """The slots that these call in turn. Python counts their calls, compiled code does not."""


class BoundOperators:
    """The operators of minifuse as functions of Python numbers: a student's, or the library's where none is written."""

    def __init__(self, engine: StudentEngine) -> None:
        self.engine = engine
        self._bound: dict[ScalarFunction | str, BoundOperator] = {}

    def bind(self, op: ScalarFunction | str) -> BoundOperator:
        """Return an operator; a str names a function of task 0.1."""
        if op not in self._bound:
            self._bound[op] = self.look_up(op)
        return self._bound[op]

    def look_up(self, op: ScalarFunction | str) -> BoundOperator:
        """Return what `bind` returns."""
        if isinstance(op, str):
            return self.written(op) if self.engine.has(op) else BoundOperator(ON_ARRAYS[op])
        if not isinstance(op, Operator):
            return BoundOperator(op)
        if op.name in SAME and self.engine.has(op.name):
            return self.written(op.name)
        if op.name in COMPOSED:
            function = COMPOSED[op.name]
            assert isinstance(function, FunctionType)
            needs = function.__code__.co_names
            if self.engine.has(*needs):
                namespace = {"__name__": __name__} | {name: self.engine.raw(name) for name in needs}
                calls = frozenset[str]().union(*[self.written(name).calls for name in needs])
                return BoundOperator(FunctionType(function.__code__, namespace, op.name), needs, calls)
        return BoundOperator(op.body)

    def written(self, name: str) -> BoundOperator:
        """Return a function that the student has written."""
        function = self.engine.raw(name)
        return BoundOperator(function, (name,), frozenset(slots_in(function, self.engine.student)))


def name_of(op: ScalarFunction | str) -> str:
    """Return the name of an operator for the count of lent functions."""
    if isinstance(op, str):
        return op
    return op.name if isinstance(op, Operator) else getattr(op, "__name__", type(op).__name__)

"""Integers that count their divisions: a loop that computes positions from elements' numbers divides in each iteration."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LIMIT = 2**63


@dataclass
class Divisions:
    """A number of divisions."""

    count: int = 0


def pair(function: Callable[[Any, Any], Any], cost: int = 0) -> tuple[Any, Any]:
    """Return a binary operator of `CountedInt` that counts `cost` divisions, and the reflected operator."""

    def result_of(self: "CountedInt", x: Any, y: Any) -> Any:
        self.divisions.count += cost
        result = function(x, y)
        return CountedInt(wrapped(result), self.divisions) if type(result) is int else result

    def is_number(other: object) -> bool:
        return isinstance(other, int | float)

    def operate(self: "CountedInt", other: Any) -> Any:
        return result_of(self, int(self), plain(other)) if is_number(other) else NotImplemented

    def reflected(self: "CountedInt", other: Any) -> Any:
        return result_of(self, plain(other), int(self)) if is_number(other) else NotImplemented

    return operate, reflected


def wrapped(x: int) -> int:
    """Return the int64 that has the last 64 bits of an int, as compiled code computes it."""
    return x if -LIMIT <= x < LIMIT else (x + LIMIT) % (2 * LIMIT) - LIMIT


def plain(x: float) -> float:
    """Return a `CountedInt` as an int, any other number unchanged."""
    return int(x) if isinstance(x, int) else x


class CountedInt(int):
    """An int of 64 bits whose divisions are counted. Its sums and products are counted ints too."""

    divisions: Divisions

    def __new__(cls, value: int, divisions: Divisions) -> "CountedInt":
        """Create an int that counts in `divisions`."""
        self = super().__new__(cls, value)
        self.divisions = divisions
        return self

    def __neg__(self) -> "CountedInt":
        return CountedInt(-int(self), self.divisions)

    __floordiv__, __rfloordiv__ = pair(operator.floordiv, 1)
    __truediv__, __rtruediv__ = pair(operator.truediv, 1)
    __mod__, __rmod__ = pair(operator.mod, 1)
    __divmod__, __rdivmod__ = pair(divmod, 1)
    __add__, __radd__ = pair(operator.add)
    __sub__, __rsub__ = pair(operator.sub)
    __mul__, __rmul__ = pair(operator.mul)
    __and__, __rand__ = pair(operator.and_)
    __or__, __ror__ = pair(operator.or_)
    __lshift__, __rlshift__ = pair(operator.lshift)
    __rshift__, __rrshift__ = pair(operator.rshift)

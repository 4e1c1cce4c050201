"""Operators with a bug, which the properties that a student writes in task 0.2 should find."""

import math
from collections.abc import Callable, Mapping
from inspect import signature
from itertools import product
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from . import oracle
from .questions.task0_2 import NAMES, Operators, Point, Replacement, wrong_between
from .questions.wrong_operators import WRONG_OPERATORS

GRID = tuple(product([0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 0.3, -0.7, 7.0, -8.0], repeat=3))
"""Triples of numbers at which the operators are tested."""


POINTS = 10  # of each kind, at which a property is asked about a bug of a few numbers


class Bug(NamedTuple):
    """A wrong implementation of an operator."""

    operator: str
    description: str
    """Its mistake, as a predicate: "ignores the second number"."""
    low: float = -math.inf
    high: float = math.inf
    """It is right where its first number is not between these."""

    @property
    def where(self) -> str:
        """The numbers for which it is wrong, as a clause: "if the first number is between 3 and 4"; "" for all."""
        return "" if math.isinf(self.low) else f", if the first number is between {self.low:g} and {self.high:g}"

    @property
    def replacement(self) -> Replacement:
        """The bug, as a question gets it."""
        return self.description, self.low, self.high

    @property
    def function(self) -> Callable[..., float]:
        """The wrong operator."""
        wrong = WRONG_OPERATORS[self.operator][self.description]
        return wrong_between(wrong, oracle.function(self.operator), self.low, self.high)

    def find_counterexample(self) -> tuple[tuple[float, ...], float, float]:
        """Return (numbers, wrong result, right result) for the first point at which the results differ clearly."""
        wrong, right = self.function, oracle.function(self.operator)
        count = len(signature(right).parameters)
        middle = (self.low + self.high) / 2
        grid = GRID if math.isnan(middle) else [(middle, y, z) for _, y, z in GRID[:100]]
        cases = [*grid, *[(x, x + near, 0.0) for x, _, _ in grid for near in (1e-12, 1e-3)]]
        xs = next(c[:count] for c in cases if abs(wrong(*c[:count]) - right(*c[:count])) > 1e-6)
        return xs, wrong(*xs), right(*xs)

    def limited(self, chance: Random) -> "list[Bug]":
        """Return the same bug for a few numbers only, below and above 0, as far as all results are clearly wrong there."""
        right, wrong, found = oracle.function(self.operator), self.function, list[Bug]()
        count = len(signature(right).parameters)
        for sign in (1, -1):
            size = chance.uniform(1.1, 6.0)
            ends = sorted((sign * size, sign * 1.3 * size))
            points = [(x, other)[:count] for x in ends for other in (0.7, -2.5, -x, x + 1e-12, x + 1e-3)]
            errors = [abs(wrong(*p) - right(*p)) > 0.02 * max(1.0, abs(right(*p))) for p in points]
            if sum(errors) > len(errors) // 2:
                found.append(self._replace(low=ends[0], high=ends[1]))
        return found

    def points(self, chance: Random) -> list[Point]:
        """Return numbers for which a limited bug shows: one of them, or its exponential, is where the operator is wrong."""
        found = list[Point]()
        for _ in range(POINTS):
            x, y, z = (chance.uniform(self.low, self.high) for _ in range(3))
            others = [chance.choice(GRID)[0], chance.uniform(-30, 30)]
            found += [(x, *others), (x, y, z), tuple(chance.sample([x, *others], 3))]
            found.append((math.log(x), math.log(y), math.log(z)) if self.low > 0 else (x, x, -x))
        return found


TESTED = {
    "about_add": ("add",),
    "about_mul": ("mul",),
    "about_maximum": ("maximum",),
    "about_is_close": ("is_close",),
    "about_relu": ("relu",),
    "about_sigmoid": ("sigmoid",),
    "about_exp_and_log": ("log", "exp"),
    "about_inv": ("inv",),
}
"""The operators that each property tests."""
BUGS = {
    slot: tuple(Bug(operator, text) for operator in operators for text in WRONG_OPERATORS[operator])
    for slot, operators in TESTED.items()
}


def operators_with(replaced: Mapping[str, Callable[..., float]] = MappingProxyType({})) -> Operators:
    """Return right operators, with some replaced by others: `operators_with({"neg": lambda x: x})`."""
    return Operators({name: oracle.function(name) for name in NAMES} | dict(replaced))


def is_true(answer: object) -> bool:
    """Return whether a property returned True, or 1.0 as operators do."""
    return isinstance(answer, bool | int | float) and answer == 1


def is_false(answer: object) -> bool:
    """Return whether a property returned False or 0.0."""
    return isinstance(answer, bool | int | float) and answer == 0

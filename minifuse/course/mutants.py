"""Operators with a bug, which the properties that a student writes in task 0.2 should find."""

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from . import oracle
from .questions.task0_2 import NAMES, Operators
from .questions.wrong_operators import WRONG_OPERATORS

GRID = tuple(product([0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 0.3, -0.7, 7.0, -8.0], repeat=3))
"""Triples of numbers at which the operators are tested."""


class Bug(NamedTuple):
    """A wrong implementation of an operator."""

    operator: str
    description: str
    """Its mistake, as a predicate: "ignores the second number"."""

    @property
    def function(self) -> Callable[..., float]:
        """The wrong operator."""
        return WRONG_OPERATORS[self.operator][self.description]

    def find_counterexample(self) -> tuple[tuple[float, ...], float, float]:
        """Return (numbers, wrong result, right result) for the first point at which the results differ clearly."""
        wrong, right = self.function, oracle.function(self.operator)
        count = len(signature(right).parameters)
        cases = [*GRID, *[(x, x + near, 0.0) for x, _, _ in GRID for near in (1e-12, 1e-3)]]
        xs = next(c[:count] for c in cases if abs(wrong(*c[:count]) - right(*c[:count])) > 1e-6)
        return xs, wrong(*xs), right(*xs)


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

"""Operators with a bug, which the properties that a student writes in task 0.2 should find."""

from inspect import signature
from itertools import product
from typing import NamedTuple

from . import oracle
from .questions.task0_2 import WRONG_OPERATORS

GRID = tuple(product([0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 0.3, -0.7, 7.0, -8.0], repeat=3))
"""Triples of numbers at which the operators are tested."""


class Bug(NamedTuple):
    """A wrong implementation of an operator."""

    operator: str
    description: str
    """Its mistake, as a predicate: "ignores the second number"."""
    function: str
    """Its name in WRONG_OPERATORS."""

    def find_counterexample(self) -> tuple[tuple[float, ...], float, float]:
        """Return (numbers, wrong result, right result) for the first point at which the results differ clearly."""
        wrong, right = WRONG_OPERATORS[self.function], oracle.function(self.operator)
        count = len(signature(right).parameters)
        cases = [*GRID, *[(x, x + near, 0.0) for x, _, _ in GRID for near in (1e-12, 1e-3)]]
        xs = next(c[:count] for c in cases if abs(wrong(*c[:count]) - right(*c[:count])) > 1e-6)
        return xs, wrong(*xs), right(*xs)


BUGS: dict[str, tuple[Bug, ...]] = {
    "about_add": (
        Bug("add", "ignores the second number", "lambda x, y: x"),
        Bug("add", "subtracts the second number", "lambda x, y: x - y"),
        Bug("add", "adds one more", "lambda x, y: x + y + 1"),
        Bug("add", "forgets the sign of the second number", "lambda x, y: x + abs(y)"),
        Bug("add", "rounds to a whole number", "lambda x, y: float(round(x + y))"),
        Bug("add", "adds the product too", "lambda x, y: x + y + x * y"),
    ),
    "about_mul": (
        Bug("mul", "adds", "lambda x, y: x + y"),
        Bug("mul", "squares the first number", "lambda x, y: x * x"),
        Bug("mul", "drops every sign", "lambda x, y: abs(x * y)"),
        Bug(
            "mul", "returns a negative product of two negative numbers", "lambda x, y: -x * y if x < 0 and y < 0 else x * y"
        ),
        Bug("mul", "doubles the product", "lambda x, y: 2 * x * y"),
        Bug("mul", "rounds to a whole number", "lambda x, y: float(round(x * y))"),
    ),
    "about_maximum": (
        Bug("maximum", "returns the smaller number", "min"),
        Bug("maximum", "returns the first number", "lambda x, y: x"),
        Bug("maximum", "compares without signs", "lambda x, y: x if abs(x) > abs(y) else y"),
        Bug("maximum", "never goes below zero", "lambda x, y: max(x, y, 0.0)"),
        Bug("maximum", "returns slightly more than both", "lambda x, y: max(x, y) + 0.01"),
    ),
    "about_is_close": (
        Bug("is_close", "is always 1", "lambda x, y: 1.0"),
        Bug("is_close", "is 1 only for equal numbers", "lambda x, y: float(x == y)"),
        Bug("is_close", "is 1 whenever the first number is smaller", "lambda x, y: float(x - y < 1e-8)"),
        Bug("is_close", "allows a hundredth", "lambda x, y: float(abs(x - y) < 0.01)"),
        Bug("is_close", "is 0 for negative numbers", "lambda x, y: float(x >= 0 and math.isclose(x, y, rel_tol=1e-5))"),
    ),
    "about_relu": (
        Bug("relu", "lets negative numbers through", "lambda x: x"),
        Bug("relu", "drops the sign", "abs"),
        Bug("relu", "returns 1 for every positive number", "lambda x: float(x > 0)"),
        Bug("relu", "stops at 6", "lambda x: min(max(x, 0.0), 6.0)"),
        Bug("relu", "lets a hundredth of negative numbers through", "lambda x: x if x > 0 else 0.01 * x"),
        Bug("relu", "has its corner rounded off", "lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0.0)"),
    ),
    "about_sigmoid": (
        Bug("sigmoid", "is a half everywhere", "lambda x: 0.5"),
        Bug("sigmoid", "falls where it should rise", "lambda x: 1 / (1 + math.exp(x))"),
        Bug("sigmoid", "goes from -1 to 1", "math.tanh"),
        Bug("sigmoid", "is shifted to the right by 1", "lambda x: 1 / (1 + math.exp(1 - x))"),
        Bug("sigmoid", "is twice as steep", "lambda x: 1 / (1 + math.exp(-2 * x))"),
        Bug("sigmoid", "is a straight line between 0 and 1", "lambda x: min(max(0.5 + x / 4, 0.0), 1.0)"),
    ),
    "about_exp_and_log": (
        Bug("log", "has base 10", "lambda x: math.log10(x) if x > 0 else -math.inf"),
        Bug("log", "adds a thousandth first", "lambda x: math.log(x + 1e-3) if x > -1e-3 else -math.inf"),
        Bug("exp", "is a power of 2", "lambda x: 2.0**x"),
        Bug("exp", "drops the sign of its argument", "lambda x: math.exp(abs(x))"),
        Bug("exp", "is only 1 + x + x * x / 2", "lambda x: 1 + x + x * x / 2"),
        Bug("exp", "goes on as a straight line from 5", "lambda x: math.exp(min(x, 5.0)) * (1 + max(x - 5.0, 0.0))"),
    ),
    "about_inv": (
        Bug("inv", "returns the number itself", "lambda x: x"),
        Bug("inv", "changes the sign", "lambda x: -x"),
        Bug("inv", "drops the sign", "lambda x: 1 / abs(x) if x else math.inf"),
        Bug("inv", "keeps two digits", "lambda x: round(1 / x, 2) if x else math.inf"),
        Bug("inv", "adds a hundredth first", "lambda x: 1 / (x + 0.01)"),
    ),
}


def operators_under_test(slot: str) -> tuple[str, ...]:
    """Return the names of the operators that a property tests."""
    return tuple(dict.fromkeys(bug.operator for bug in BUGS[slot]))


def is_true(answer: object) -> bool:
    """Return whether a property returned True, or 1.0 as operators do."""
    return isinstance(answer, bool | int | float) and answer == 1


def is_false(answer: object) -> bool:
    """Return whether a property returned False or 0.0."""
    return isinstance(answer, bool | int | float) and answer == 0

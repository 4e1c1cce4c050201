"""Operators with a bug: operator -> what is wrong, as a predicate ("ignores the second number") -> the wrong function."""

import math
from collections.abc import Callable

WRONG_OPERATORS: dict[str, dict[str, Callable[..., float]]] = {
    "add": {
        "ignores the second number": lambda x, y: x,
        "subtracts the second number": lambda x, y: x - y,
        "adds one more": lambda x, y: x + y + 1,
        "forgets the sign of the second number": lambda x, y: x + abs(y),
        "rounds to a whole number": lambda x, y: float(round(x + y)),
        "adds the product too": lambda x, y: x + y + x * y,
    },
    "mul": {
        "adds": lambda x, y: x + y,
        "squares the first number": lambda x, y: x * x,
        "drops every sign": lambda x, y: abs(x * y),
        "returns a negative product of two negative numbers": lambda x, y: -x * y if x < 0 and y < 0 else x * y,
        "doubles the product": lambda x, y: 2 * x * y,
        "rounds to a whole number": lambda x, y: float(round(x * y)),
    },
    "maximum": {
        "returns the smaller number": min,
        "returns the first number": lambda x, y: x,
        "compares without signs": lambda x, y: x if abs(x) > abs(y) else y,
        "never goes below zero": lambda x, y: max(x, y, 0.0),
        "returns slightly more than both": lambda x, y: max(x, y) + 0.01,
    },
    "is_close": {
        "is always 1": lambda x, y: 1.0,
        "is 1 only for equal numbers": lambda x, y: float(x == y),
        "is 1 whenever the first number is smaller": lambda x, y: float(x - y < 1e-8),
        "allows a hundredth": lambda x, y: float(abs(x - y) < 0.01),
        "is 0 for negative numbers": lambda x, y: float(x >= 0 and math.isclose(x, y, rel_tol=1e-5)),
    },
    "relu": {
        "lets negative numbers through": lambda x: x,
        "drops the sign": abs,
        "returns 1 for every positive number": lambda x: float(x > 0),
        "stops at 6": lambda x: min(max(x, 0.0), 6.0),
        "lets a hundredth of negative numbers through": lambda x: x if x > 0 else 0.01 * x,
        "has its corner rounded off": lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0.0),
    },
    "sigmoid": {
        "is a half everywhere": lambda x: 0.5,
        "falls where it should rise": lambda x: 1 / (1 + math.exp(x)),
        "goes from -1 to 1": math.tanh,
        "is shifted to the right by 1": lambda x: 1 / (1 + math.exp(1 - x)),
        "is twice as steep": lambda x: 1 / (1 + math.exp(-2 * x)),
        "is a straight line between 0 and 1": lambda x: min(max(0.5 + x / 4, 0.0), 1.0),
    },
    "log": {
        "has base 10": lambda x: math.log10(x) if x > 0 else -math.inf,
        "adds a thousandth first": lambda x: math.log(x + 1e-3) if x > -1e-3 else -math.inf,
    },
    "exp": {
        "is a power of 2": lambda x: 2.0**x,
        "drops the sign of its argument": lambda x: math.exp(abs(x)),
        "is only 1 + x + x * x / 2": lambda x: 1 + x + x * x / 2,
        "goes on as a straight line from 5": lambda x: math.exp(min(x, 5.0)) * (1 + max(x - 5.0, 0.0)),
    },
    "inv": {
        "returns the number itself": lambda x: x,
        "changes the sign": lambda x: -x,
        "drops the sign": lambda x: 1 / abs(x) if x else math.inf,
        "keeps two digits": lambda x: round(1 / x, 2) if x else math.inf,
        "adds a hundredth first": lambda x: 1 / (x + 0.01),
    },
}

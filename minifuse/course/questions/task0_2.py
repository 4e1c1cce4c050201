"""Questions of task 0.2: properties of operators, of which one may have a bug."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...core.errors import NotDoneYet
from ..student import Student
from ..verdicts import Refused

Point = tuple[float, ...]
Case = tuple[str, Point]  # (slot, three numbers)
NAMES = tuple("identity add mul neg lt eq maximum is_close sigmoid relu log exp inv log_grad inv_grad relu_grad".split())  # noqa: SIM905
WRONG_OPERATORS: dict[str, Callable[..., float]] = {
    "lambda x, y: x": lambda x, y: x,
    "lambda x, y: x - y": lambda x, y: x - y,
    "lambda x, y: x + y + 1": lambda x, y: x + y + 1,
    "lambda x, y: x + abs(y)": lambda x, y: x + abs(y),
    "lambda x, y: float(round(x + y))": lambda x, y: float(round(x + y)),
    "lambda x, y: x + y + x * y": lambda x, y: x + y + x * y,
    "lambda x, y: x + y": lambda x, y: x + y,
    "lambda x, y: x * x": lambda x, y: x * x,
    "lambda x, y: abs(x * y)": lambda x, y: abs(x * y),
    "lambda x, y: -x * y if x < 0 and y < 0 else x * y": lambda x, y: -x * y if x < 0 and y < 0 else x * y,
    "lambda x, y: 2 * x * y": lambda x, y: 2 * x * y,
    "lambda x, y: float(round(x * y))": lambda x, y: float(round(x * y)),
    "min": min,
    "lambda x, y: x if abs(x) > abs(y) else y": lambda x, y: x if abs(x) > abs(y) else y,
    "lambda x, y: max(x, y, 0.0)": lambda x, y: max(x, y, 0.0),
    "lambda x, y: max(x, y) + 0.01": lambda x, y: max(x, y) + 0.01,
    "lambda x, y: 1.0": lambda x, y: 1.0,
    "lambda x, y: float(x == y)": lambda x, y: float(x == y),
    "lambda x, y: float(x - y < 1e-8)": lambda x, y: float(x - y < 1e-8),
    "lambda x, y: float(abs(x - y) < 0.01)": lambda x, y: float(abs(x - y) < 0.01),
    "lambda x, y: float(x >= 0 and math.isclose(x, y, rel_tol=1e-5))": lambda x, y: float(
        x >= 0 and math.isclose(x, y, rel_tol=1e-5)
    ),
    "lambda x: x": lambda x: x,
    "abs": abs,
    "lambda x: float(x > 0)": lambda x: float(x > 0),
    "lambda x: min(max(x, 0.0), 6.0)": lambda x: min(max(x, 0.0), 6.0),
    "lambda x: x if x > 0 else 0.01 * x": lambda x: x if x > 0 else 0.01 * x,
    "lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0.0)": lambda x: math.log1p(math.exp(-abs(x))) + max(x, 0.0),
    "lambda x: 0.5": lambda x: 0.5,
    "lambda x: 1 / (1 + math.exp(x))": lambda x: 1 / (1 + math.exp(x)),
    "math.tanh": math.tanh,
    "lambda x: 1 / (1 + math.exp(1 - x))": lambda x: 1 / (1 + math.exp(1 - x)),
    "lambda x: 1 / (1 + math.exp(-2 * x))": lambda x: 1 / (1 + math.exp(-2 * x)),
    "lambda x: min(max(0.5 + x / 4, 0.0), 1.0)": lambda x: min(max(0.5 + x / 4, 0.0), 1.0),
    "lambda x: math.log10(x) if x > 0 else -math.inf": lambda x: math.log10(x) if x > 0 else -math.inf,
    "lambda x: math.log(x + 1e-3) if x > -1e-3 else -math.inf": lambda x: math.log(x + 1e-3) if x > -1e-3 else -math.inf,
    "lambda x: 2.0**x": lambda x: 2.0**x,
    "lambda x: math.exp(abs(x))": lambda x: math.exp(abs(x)),
    "lambda x: 1 + x + x * x / 2": lambda x: 1 + x + x * x / 2,
    "lambda x: math.exp(min(x, 5.0)) * (1 + max(x - 5.0, 0.0))": lambda x: math.exp(min(x, 5.0)) * (1 + max(x - 5.0, 0.0)),
    "lambda x: -x": lambda x: -x,
    "lambda x: 1 / abs(x) if x else math.inf": lambda x: 1 / abs(x) if x else math.inf,
    "lambda x: round(1 / x, 2) if x else math.inf": lambda x: round(1 / x, 2) if x else math.inf,
    "lambda x: 1 / (x + 0.01)": lambda x: 1 / (x + 0.01),
}
"""Operators that a case names, for some operator of NAMES."""


class Operators:
    """The operators of task 0.1, of which one may have a bug, and a record of their calls.

    Parameters
    ----------
    functions : dict from str to function
        The sixteen operators.

    Attributes
    ----------
    calls : list of (name, arguments, result)
        The calls so far.
    """

    def __init__(self, functions: Mapping[str, Callable[..., float]]) -> None:
        self.calls: list[tuple[str, tuple[float, ...], float]] = []
        self._functions = functions

    def __getattr__(self, name: str) -> Callable[..., float]:
        """Return the operator of a name."""
        if name not in NAMES:
            raise AttributeError(f"there is no operator {name}; there are {', '.join(NAMES)}", name=name, obj=self)

        def call(*xs: float) -> float:
            result: float = self._functions[name](*xs)
            self.calls.append((name, xs, result))
            return result

        return call

    def __dir__(self) -> list[str]:
        return list(NAMES)


def operators_of(student: Student) -> dict[str, Callable[..., float]]:
    """Return the operators without a bug."""
    return {name: getattr(student, name) for name in NAMES}


def ask(student: Student, case: Case) -> object:
    """Return the answer of a property for right operators."""
    slot, xs = case
    return getattr(student, slot)(Operators(operators_of(student)), *xs)


def describe_calls(student: Student, case: Case) -> list[str]:
    """Return the calls of right operators by a property, also by one that raises an error: "add(1.0, 2.0) = 3.0"."""
    slot, xs = case
    ops = Operators(operators_of(student))
    call_property(student, slot, ops, xs)
    return [f"{name}({', '.join(map(repr, xs))}) = {y!r}" for name, xs, y in ops.calls]


def called_operators(student: Student, case: tuple[str, Sequence[str], Iterable[Point]]) -> set[str]:
    """Return which of some operators a property calls at some points, of which the first may suffice."""
    slot, names, points = case
    called = set[str]()
    functions = operators_of(student)
    for xs in points:
        ops = Operators(functions)
        getattr(student, slot)(ops, *xs)
        called |= {name for name, _, _ in ops.calls}
        if called.issuperset(names):
            break
    return called


def call_property(student: Student, slot: str, ops: Operators, xs: Point) -> object:
    """Call a property; return False if it raises, since an error finds the bug too."""
    try:
        return getattr(student, slot)(ops, *xs)
    except (NotDoneYet, Refused):
        raise
    except Exception:
        return False


def answers(student: Student, case: tuple[str, Mapping[str, str], Iterable[Point]]) -> list[object]:
    """Return the answers of a property at some points for operators of which some are replaced by wrong ones."""
    slot, replaced, points = case
    functions = operators_of(student) | {name: WRONG_OPERATORS[wrong] for name, wrong in replaced.items()}
    return [call_property(student, slot, Operators(functions), xs) for xs in points]

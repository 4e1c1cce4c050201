"""Questions of task 0.2: properties of operators, of which one may have a bug."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from ...core.errors import NotDoneYet
from ..student import Student
from ..verdicts import Refused
from .calling import answer_or_error, first_and_later
from .wrong_operators import WRONG_OPERATORS

Point = tuple[float, ...]
Case = tuple[str, Point]  # (slot, three numbers)
Replacement = tuple[str, float, float]  # (what is wrong with the operator, between which first numbers)
NAMES = tuple("identity add mul neg lt eq maximum is_close sigmoid relu log exp inv log_grad inv_grad relu_grad".split())  # noqa: SIM905


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

    calls: list[tuple[str, tuple[float, ...], float]]

    def __init__(self, functions: Mapping[str, Callable[..., float]]) -> None:
        self.calls = []
        for name in NAMES:
            setattr(self, name, recorded(name, functions[name], self.calls))

    def __getattr__(self, name: str) -> Callable[..., float]:
        """Raise AttributeError with the names that there are."""
        raise AttributeError(f"there is no operator {name}; there are {', '.join(NAMES)}", name=name, obj=self)


def recorded(
    name: str, function: Callable[..., float], calls: list[tuple[str, tuple[float, ...], float]]
) -> Callable[..., float]:
    """Return a function that records its calls. Those of right operators and of wrong ones look the same."""

    def call(*xs: float) -> float:
        result: float = function(*xs)
        calls.append((name, xs, result))
        return result

    return call


@cache
def operators_of(student: Student) -> Mapping[str, Callable[..., float]]:
    """Return the operators without a bug. They remember their results, since properties ask the same again and again."""
    return {name: cache(getattr(student, name)) for name in NAMES}


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


def answers_twice(slot: str, rounds: int, student: Student, points: Sequence[Point]) -> object:
    """Return the first and later answers of a property for right operators at some points."""
    ops, function = Operators(operators_of(student)), getattr(student, slot)

    def answer(xs: Point) -> object:
        ops.calls.clear()
        return answer_or_error(student, function, (ops, *xs))

    return first_and_later(answer, points, rounds)


def answers(student: Student, case: tuple[str, Mapping[str, Replacement], Iterable[Point]]) -> list[object]:
    """Return the answers of a property at some points for operators of which some are replaced by wrong ones."""
    slot, replaced, points = case
    functions = dict(operators_of(student))
    for name, (text, low, high) in replaced.items():
        functions[name] = wrong_between(WRONG_OPERATORS[name][text], functions[name], low, high)
    ops = Operators(functions)

    def answer(xs: Point) -> object:
        ops.calls.clear()
        return call_property(student, slot, ops, xs)

    return [answer(xs) for xs in points]


def wrong_between(wrong: Callable[..., float], right: Callable[..., float], low: float, high: float) -> Callable[..., float]:
    """Return an operator with a bug where its first number is between two, and right elsewhere."""
    return lambda *xs: wrong(*xs) if low <= xs[0] <= high else right(*xs)

"""Questions of task 1.1: a numerical derivative of a function that the case describes, and that records its calls."""

from collections.abc import Callable
from typing import NamedTuple

from ..student import Student

Terms = tuple[tuple[float, tuple[int, ...]], ...]
"""A polynomial as a sum: (coefficient, numbers of the arguments that are multiplied) for each term."""
Floats = list[float] | tuple[float, ...]


LIST_GIVEN = "f takes its arguments one by one, and got a list or a tuple"


class Case(NamedTuple):
    """A call of `numerical_derivative`."""

    terms: Terms
    xs: Floats
    k: int
    epsilon: float | None
    """None: it is not given."""


class Record(NamedTuple):
    """The arguments of a call of f, and whether xs had changed by then."""

    arguments: tuple[float, ...]
    has_changed: bool


def evaluate(terms: Terms, xs: Floats) -> float:
    """Evaluate a polynomial."""
    total = 0.0
    for coefficient, factors in terms:
        for i in factors:
            coefficient *= xs[i]
        total += coefficient
    return total


def recorded(terms: Terms, xs: Floats, records: list[Record]) -> Callable[..., float]:
    """Return the polynomial as a function that records its calls."""
    before: list[Floats] = [list(xs)]

    def f(*arguments: float) -> float:
        if any(isinstance(x, list | tuple) for x in arguments):
            raise TypeError(LIST_GIVEN)
        records.append(Record(arguments, list(xs) != before[0]))
        return evaluate(terms, arguments)

    return f


def slope_of(student: Student, f: Callable[..., float], xs: Floats, case: Case) -> object:
    """Return the student's derivative of f."""
    options = {} if case.epsilon is None else {"epsilon": case.epsilon}
    return student.numerical_derivative(f, xs, case.k, **options)


def ask(student: Student, case: Case) -> object:
    """Return the student's derivative, after another one of the same function at another point, in the same list."""
    f = recorded(case.terms, case.xs, [])
    xs = case.xs
    if isinstance(xs, list):
        xs = [x + 1.0 for x in case.xs]
        slope_of(student, f, xs, case)
        xs[:] = case.xs
    return slope_of(student, f, xs, case)


def ask_calls(student: Student, case: Case) -> tuple[list[tuple[float, ...]], bool]:
    """Return the arguments of the calls of f, and whether xs changed while f was called, or is changed afterwards."""
    records: list[Record] = []
    xs = type(case.xs)(case.xs)
    slope_of(student, recorded(case.terms, xs, records), xs, case)
    return [record.arguments for record in records], xs != case.xs or any(record.has_changed for record in records)

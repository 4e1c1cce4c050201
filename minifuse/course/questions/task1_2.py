"""Questions of task 1.2: forward and backward of one function of numbers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..student import Student
from ..variables import Context, Function

Case = tuple[str, tuple[float, ...], float]  # (function, inputs, d)


class Calls(NamedTuple):
    """Several calls of functions: all forward, then backward in another order, with repetitions."""

    calls: tuple[Case, ...]
    order: tuple[int, ...]
    """The numbers of the calls that go backward."""


def ask(how: Callable[[Function, Any], object], student: Student, case: Case) -> object:
    """Evaluate the student's function of a case with `value`, `slopes` or `slopes_of_first`."""
    return how(getattr(student, case[0]), case)


def ask_all(how: Callable[[Function, Any], object], student: Student, cases: Sequence[Case]) -> list[tuple[object, str]]:
    """Evaluate the student's function of each case; for an error, its text instead, and nothing more."""
    answers: list[tuple[object, str]] = []
    for case in cases:
        if answers and answers[-1][1]:
            answers.append((None, ""))
            continue
        try:
            answers.append((ask(how, student, case), ""))
        except (ArithmeticError, ValueError) as error:
            answers.append((None, f"{type(error).__name__}: {error}"))
    return answers


def value(function: Function, case: Case) -> object:
    """Return the value of forward."""
    return function.forward(Context(), *case[1])


def slopes(function: Function, case: Case) -> object:
    """Run forward, then backward."""
    context = Context()
    function.forward(context, *case[1])
    return plain_tuple(function.backward(context, case[2]))


def ask_several(student: Student, case: Calls) -> list[object]:
    """Run all calls forward, then backward in the order of the case."""
    return several(lambda name: getattr(student, name), case)


def several(function: Callable[[str], Function], case: Calls) -> list[object]:
    """Run all calls forward, then backward in the order of the case.

    The contexts of backward are new ones with the same saved values: what is stored elsewhere, or by the identity of a
    context, is not found there.
    """
    saved = []
    for name, xs, _ in case.calls:
        context = Context()
        function(name).forward(context, *xs)
        saved.append(context.saved)
    answers = []
    for k in case.order:
        name, _, d = case.calls[k]
        context = Context()
        context.saved = saved[k]
        answers.append(plain_tuple(function(name).backward(context, d)))
        saved[k] = context.saved
    return answers


def plain_tuple(value: object) -> object:
    """Return a tuple for an object of a class derived from it, such as a named tuple; anything else unchanged."""
    return tuple(value) if isinstance(value, tuple) else value

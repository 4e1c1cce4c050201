"""Questions of task 1.2: forward and backward of one function of numbers."""

from collections.abc import Callable
from typing import Any

from ..student import Student
from ..variables import Context, Function

Case = tuple[str, tuple[float, ...], float]  # (function, inputs, d)


def ask(how: Callable[[Function, Any], object], student: Student, case: Any) -> object:
    """Evaluate the student's function of a case with `value`, `slopes` or `slopes_of_first`."""
    return how(getattr(student, name_in(case)), case)


def name_in(case: Any) -> str:
    """Return the name of the function of a case."""
    return case[0] if isinstance(case[0], str) else str(case[0][0])


def value(function: Function, case: Case) -> object:
    """Return the value of forward."""
    return function.forward(Context(), *case[1])


def slopes(function: Function, case: Case) -> object:
    """Run forward, then backward."""
    context = Context()
    function.forward(context, *case[1])
    return function.backward(context, case[2])


def slopes_of_first(function: Function, case: tuple[Case, Case]) -> object:
    """Run forward for two calls, then backward of the first one."""
    one, two = case
    contexts = Context(), Context()
    function.forward(contexts[0], *one[1])
    function.forward(contexts[1], *two[1])
    return function.backward(contexts[0], one[2])

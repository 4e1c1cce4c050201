"""Task 1.2: differentiable functions of numbers."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..cases import among, autodiff_link
from ..check import CaseT, agreement, in_turn
from ..questions.task1_2 import Case, ask, name_in, slopes, slopes_of_first, value
from ..task import Check, Mistake, Task
from ..variables import Function

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHARE = 0.3  # of the usual number of examples, for each function
ONE, TWO = ("Neg", "Log", "Exp", "Inv", "Sigmoid", "ReLU"), ("Add", "Mul", "LT", "EQ")
VALUES, SLOPES, APART = (
    "forward gives the value",
    "backward gives a derivative for each input, times d",
    "two calls of one function do not disturb each other",
)


def calls(name: str) -> "SearchStrategy[Case]":
    """Draw (name, inputs, d) for a function."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        xs = [draw(st.integers(-12, 12)) / 4 for _ in range(2 if name in TWO else 1)]
        if name in ("Log", "Inv"):
            xs = [abs(x) + 0.5 if name == "Log" else x + math.copysign(0.5, x) for x in xs]
        if name == "Sigmoid":
            xs = [draw(among(0.0, 0.0, 800.0, -800.0)) or xs[0]]
        if name in ("EQ", "LT"):
            xs[1] = xs[draw(among(0, 1))]
        return name, tuple(xs), draw(among(1.0, 2.0, -3.0))

    return case()


def two_calls(name: str) -> "SearchStrategy[tuple[Case, Case]]":
    """Draw two calls of a function with different inputs."""
    from hypothesis import strategies as st

    return st.tuples(calls(name), calls(name)).filter(lambda c: c[0][1] != c[1][1])


def right_answer(how: Callable[[Function, CaseT], object]) -> Callable[[CaseT], object]:
    """Return a function that evaluates the oracle's function."""
    return lambda case: how(function_of(case), case)


def function_of(case: object) -> Function:
    """Return the oracle's function for a case."""
    found: Any = oracle.function(name_in(case))  # a class, by its static methods
    function: Function = found
    return function


def describe_case(case: Case) -> str:
    """Return a call as text."""
    name, xs, d = case
    return f"{name} of {', '.join(map(str, xs))}, d {d:g}"


def each(
    demand: str,
    names: Sequence[str],
    cases: Callable[[str], "SearchStrategy[CaseT]"],
    how: Callable[[Function, CaseT], object],
    describe: Callable[[CaseT], str],
    link: Callable[[CaseT], str] | None = None,
) -> Check:
    """Return a check that tests several functions one after the other, with equal numbers of cases."""
    parts = [
        agreement(
            f"{name}: {demand}",
            partial(cases, name),
            partial(ask, how),
            right_answer(how),
            describe=describe,
            link=link,
            share=SHARE,
        )
        for name in names
    ]
    return in_turn(demand, parts)


def by_wrong_rule(rules: dict[str, Callable[..., tuple[float, ...]]]) -> Callable[[Case], object]:
    """Return an answer in which some functions have wrong derivatives."""

    def gives(case: Case) -> object:
        name, xs, d = case
        return rules[name](d, *xs)

    return gives


TASK = Task(
    id="1.2",
    title="Functions that know their derivatives",
    file="scalar_functions.py",
    slots=("Add", "Mul", "Neg", "Log", "Exp", "Inv", "Sigmoid", "ReLU", "LT", "EQ"),
    points=5,
    text=(
        "Each function is a class with two static methods. forward computes the value, and saves what the derivative will "
        "need. backward gets d, which says how fast the end result grows with this function's result, and gives the same "
        "for each of its inputs: d times the derivative, as a tuple."
    ),
    hints=(
        "backward never sees the inputs again: what it needs of them, forward must save. Some derivatives need the inputs, "
        "some the value, some nothing.",
        "Add passes d on to both. Mul gives each input d times the other. For one input, log_grad, inv_grad and relu_grad "
        "of task 0.1 are the answer already; exp and sigmoid can be told from their own value. Comparisons are flat.",
        "minifuse/core/operators.py has the derivatives of the whole library, beside the operators.",
    ),
    reads=("docs/guide/gradients.md", "minifuse/core/operators.py"),
    checks=(
        each(VALUES, (*TWO, *ONE), calls, value, describe=describe_case),
        each(SLOPES, (*TWO, *ONE), calls, slopes, describe=describe_case, link=lambda c: autodiff_link()),
        each(
            APART,
            ("Mul", *ONE),
            two_calls,
            slopes_of_first,
            describe=lambda c: (
                f"forward of {describe_case(c[0])}; then forward of {describe_case(c[1])}; then backward of the first"
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "Mul gives each input its own value",
            "x * y grows by y when x grows by 1. Whose derivative is whose value?",
            wrong_answer=by_wrong_rule({"Mul": lambda d, x, y: (d * x, d * y)}),
            check=SLOPES,
        ),
        Mistake(
            "d is left out",
            "backward gives how fast the end result grows, not how fast this function does: times d.",
            wrong_answer=lambda c: slopes(function_of(c), (*c[:2], 1.0)),
            check=SLOPES,
        ),
        Mistake(
            "a single derivative is no tuple",
            "One input, one derivative, and still a tuple: (d,) has a comma.",
            when=lambda w: isinstance(w.got, float) and isinstance(w.expected, tuple) and not w.kind,
            check=SLOPES,
        ),
        Mistake(
            "what was saved is not unpacked",
            "context.saved is a tuple, even of a single value: (x,) = context.saved.",
            when=lambda w: w.kind == "TypeError" and ("tuple" in w.message or "sequence" in w.message),
            check=SLOPES,
        ),
        Mistake(
            "the derivative of sigmoid is taken at its value",
            "s * (1 - s), where s is sigmoid(x) already: it must not go through sigmoid twice.",
            wrong_answer=by_wrong_rule({"Sigmoid": lambda d, x: (d * twice(x) * (1 - twice(x)),)}),
            check=SLOPES,
        ),
        Mistake(
            "the exponential overflows for large inputs",
            "exp(800) is no float. Task 0.1's sigmoid is right for every x: call that.",
            when=lambda w: w.kind == "OverflowError",
        ),
        Mistake(
            "what forward saves is stored in one place for all calls",
            "A network has thousands of Muls under way. Each has a context of its own: save it there.",
            wrong_answer=lambda c: slopes(function_of(c), (c[1][0], c[1][1], c[0][2])),
            check=APART,
        ),
        Mistake(
            "a comparison answers True or False",
            "Slots of this course are floats: 1.0 and 0.0. A comparison too.",
            when=lambda w: isinstance(w.got, bool),
            check=VALUES,
        ),
        Mistake(
            "ReLU passes derivatives where its input is negative",
            "Where x is negative, ReLU is 0 whatever x does.",
            wrong_answer=by_wrong_rule({"ReLU": lambda d, x: (d,)}),
            check=SLOPES,
        ),
    ),
)


def twice(x: float) -> float:
    """sigmoid(sigmoid(x))."""
    sigmoid = oracle.function("sigmoid")
    return float(sigmoid(sigmoid(x)))

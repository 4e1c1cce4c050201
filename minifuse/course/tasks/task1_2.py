"""Task 1.2: differentiable functions of numbers."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

from .. import oracle
from ..cases import among, formula_link
from ..check import CaseT, agreement, current, in_turn, same
from ..messages import type_name
from ..questions.task1_2 import Calls, Case, ask, ask_all, ask_several, several, slopes, value
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..variables import Function
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SHARE = 0.15  # of the usual number of examples, for each function
ONE, TWO = ("Neg", "Log", "Exp", "Inv", "Sigmoid", "ReLU"), ("Add", "Mul", "LT", "EQ")
VALUES, SLOPES, APART, ALL_VALUES, ALL_SLOPES = (
    "forward gives the value",
    "backward gives a derivative for each input, times d",
    "calls do not disturb each other, and what backward needs is in the context",
    "values are floats, exact ones, for every float",
    "derivatives are floats, exact ones, for every float and every d",
)
RTOL = 4e-15
"""Of values and derivatives: some 20 rounding errors. The formulas have at most five operations."""
KEYS, SAME_KEYS = (2.0, 3.0), ((2.0, -1.0), (5.0, 3.0), (1.0, 4.0), (1.0, 6.0), (3.0, 2.0))
"""Inputs, and others of which the first, the second, the sum or the product is the same, or both in another order."""
TINY, ROUNDING = 1e-300, 1e-15  # smaller floats have fewer digits; absolute error of a sigmoid
FORMULAS = {
    "Add": "x + y",
    "Mul": "x * y",
    "Neg": "-x",
    "Log": "x.log()",
    "Exp": "x.exp()",
    "Inv": "1 / x",
    "Sigmoid": "x.sigmoid()",
    "ReLU": "x.relu()",
}


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


def inputs_of_all_sizes(name: str, random: Random) -> list[tuple[float, ...]]:
    """Return inputs of a function: 0, infinities, nan, numbers of all sizes, and numbers that almost equal each other."""
    edges = (0.0, -0.0, 0.1, math.inf, -math.inf, math.nan)
    numbers = [random.choice((1.0, -1.0)) * random.uniform(1, 10) * 10.0 ** random.randint(-300, 299) for _ in range(30)]
    numbers += [random.uniform(-900, 900) for _ in range(15)] + [random.uniform(-3, 3) for _ in range(15)]
    if name not in TWO:
        return [(x,) for x in (*edges, *numbers) if name == "Neg" or str(x) not in ("nan", "-0.0")]
    near = [pair for x in numbers for pair in ((x, x), (x, x * (1 + 1e-9)), (math.nextafter(x, 0.0), x), (x, 0.0))]
    return [*product(edges, edges), *near, *product(numbers[::2], edges), *zip(numbers, numbers[::-1], strict=True)]


def has_derivative(name: str, x: float) -> bool:
    """Return whether a function has a derivative that is not too large or too small for a float."""
    if name in ("Log", "Inv"):
        return 1e-100 < (x if name == "Log" else abs(x)) < 1e100
    return name != "Exp" or -600.0 < x < 600.0


def all_calls(name: str, random: Random, is_backward: bool) -> list[Case]:
    """Return calls of a function, with d of all sizes. For backward, inputs at which it has a derivative."""
    ds = [1.0, -3.0, 0.0, 1e-12, -1e-80, 1e6, 1 / 3, 7e90, *[math.inf, math.nan] * (name in (*TWO, "Neg"))]
    inputs = inputs_of_all_sizes(name, random)
    if not is_backward:
        return [(name, xs, 1.0) for xs in inputs]
    return [(name, xs, random.choice(ds)) for xs in inputs * 2 if name in TWO or has_derivative(name, *xs)]


def of_all_sizes(
    demand: str, how: Callable[[Function, Case], object], examine: Callable[[Case, object], None], is_backward: bool
) -> Check:
    """Return a check of each function on many floats, from a random seed: it takes no search to find a wrong one."""

    def run(student: StudentProcess, effort: Effort) -> None:
        for name in (*TWO, *ONE):
            cases = all_calls(name, Random(effort.seed or 0), is_backward)
            current[0] = f"{name} of many inputs"
            for case, (got, error) in zip(cases, student.ask(partial(ask_all, how), cases), strict=True):
                if error:
                    raise Wrong(error, case_text=describe_case(case), link=link_of(case), kind=error.partition(":")[0])
                try:
                    examine(case, got)
                except Wrong as wrong:
                    wrong.case, wrong.case_text = case, describe_case(case)
                    raise

    return Check(demand, run)


def several_calls(least: int = 1) -> "SearchStrategy[Calls]":
    """Draw calls of one or two functions, which go backward in another order, some of them twice."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Calls:
        names = [draw(among(*TWO, *ONE)), draw(among("Mul", *ONE))]
        drawn = [draw(calls(names[draw(among(0, 1))])) for _ in range(draw(st.integers(1, 5)))]
        made = tuple(drawn[k * k % len(drawn)] for k in range(max(len(drawn), least)))
        again = tuple(draw(st.lists(st.integers(0, len(made) - 1), max_size=3)))
        return Calls(made, (*draw(among(*orders(len(made)))), *again))

    return case()


def calls_of_equal_keys() -> "SearchStrategy[Calls]":
    """Draw two calls of a function that have an input, the sum or the product of their inputs in common."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Calls:
        name, other = draw(among("Mul", *TWO)), draw(among(*SAME_KEYS))
        return Calls(((name, KEYS, 1.0), (name, other, 1.0)), draw(among((0, 1), (1, 0))))

    return case()


def orders(count: int) -> list[tuple[int, ...]]:
    """Return some orders of the numbers below `count`: as they are, the reverse, and two others."""
    numbers = tuple(range(count))
    return [numbers, numbers[::-1], (*numbers[1::2], *numbers[::2]), (*numbers[count // 2 :], *numbers[: count // 2])]


def right_answer(how: Callable[[Function, CaseT], object]) -> Callable[[CaseT], object]:
    """Return a function that evaluates the oracle's function."""
    return lambda case: how(function_of(case), case)


def function_of(case: Any) -> Function:
    """Return the oracle's function for a case."""
    return function_named(case[0])


def function_named(name: str) -> Function:
    """Return the oracle's function of a name."""
    found: Any = oracle.function(name)  # a class, by its static methods
    function: Function = found
    return function


def describe_case(case: Case) -> str:
    """Return a call as text."""
    name, xs, d = case
    return f"{name} of {', '.join(map(str, xs))}, d {d:g}"


def describe_several(case: Calls) -> str:
    """Return the calls as text."""
    numbered = "; ".join(f"{k}: {describe_case(call)}" for k, call in enumerate(case.calls[:8]))
    more = f"; ... {len(case.calls) - 8} more" if len(case.calls) > 8 else ""
    order = ", ".join(map(str, case.order[:20])) + ", ..." * (len(case.order) > 20)
    return f"forward of {numbered}{more}; then backward of {order}"


def link_of(case: Case) -> str:
    """Return the page that differentiates the function."""
    return formula_link(FORMULAS.get(case[0], ""), "xy" if case[0] in TWO else "x") if case[0] in FORMULAS else ""


def examine_value(case: Case, got: object) -> None:
    """Raise `Wrong` for a value that is not a float, or not exact."""
    examine(case, (got,), (value(function_of(case), case),), ROUNDING * (case[0] == "Sigmoid"), ALL_VALUES)


def examine_slopes(case: Case, got: object) -> None:
    """Raise `Wrong` for derivatives that are no tuple of floats, or not exact."""
    expected = slopes(function_of(case), case)
    examine(case, got, expected, ROUNDING * abs(case[2]) if case[0] == "Sigmoid" else 0.0, ALL_SLOPES)


def examine(case: Case, got: Any, expected: Any, allowed: float, message: str) -> None:
    """Raise `Wrong` if one of the numbers is not a float, or differs by more than rounding errors."""
    if not isinstance(got, tuple) or len(got) != len(expected):
        raise Wrong(message, expected=expected, got=got, link=link_of(case))
    for x, right in zip(got, expected, strict=True):
        if not isinstance(x, float):
            raise Wrong(f"{x!r} is of type {type_name(x)}, expected a float", expected=right, got=x, link=link_of(case))
        is_equal = x == right or (math.isnan(x) and math.isnan(right))
        if not is_equal and not abs(x - right) <= max(RTOL * abs(right), allowed, TINY) < math.inf:
            raise Wrong(message, expected=expected, got=got, link=link_of(case))


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


def is_inexact(wrong: Wrong) -> bool:
    """Return whether the numbers are almost right."""
    if not isinstance(wrong.got, tuple):
        return False
    pairs = zip(wrong.got, wrong.expected, strict=True)
    return not wrong.kind and all(abs(a - b) <= 1e-5 * (1 + abs(b)) for a, b in pairs)


def is_of_another_call(wrong: Wrong) -> bool:
    """Return whether a derivative is that of a later call of the same function, or the context is empty."""
    if wrong.kind in ("AttributeError", "KeyError", "IndexError", "ValueError"):
        return True
    made, order = wrong.case
    last = {call[0]: call for call in made}
    others = [slopes(function_named(made[k][0]), (made[k][0], last[made[k][0]][1], made[k][2])) for k in order]
    return not wrong.kind and all(
        same(got, right) or same(got, other) for got, right, other in zip(wrong.got, wrong.expected, others, strict=True)
    )


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
    reads=("docs/course/1.2-scalar-functions.md", "docs/guide/gradients.md", "minifuse/core/operators.py"),
    checks=(
        each(VALUES, (*TWO, *ONE), calls, value, describe=describe_case),
        each(SLOPES, (*TWO, *ONE), calls, slopes, describe=describe_case, link=link_of),
        agreement(
            APART,
            several_calls,
            ask_several,
            lambda case: several(function_named, case),
            also=calls_of_equal_keys,
            share=2.0,
            large=lambda: several_calls(80),
            describe=describe_several,
        ),
        of_all_sizes(ALL_VALUES, value, examine_value, is_backward=False),
        of_all_sizes(ALL_SLOPES, slopes, examine_slopes, is_backward=True),
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
            when=lambda w: w.kind == "TypeError" and any(x in w.message for x in ("tuple", "sequence", "0-dimensional")),
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
            "A network has thousands of Muls under way. Each has a context of its own: save it there, and only there.",
            when=is_of_another_call,
            check=APART,
        ),
        Mistake(
            "a comparison answers True or False",
            "Slots of this course are floats: 1.0 and 0.0. A comparison too.",
            when=lambda w: isinstance(w.got, bool),
            check=VALUES,
        ),
        Mistake(
            "a number is an int",
            "Slots of this course return floats: 0.0, not 0. max(0, x) may be an int; max(0.0, x) is a float.",
            when=lambda w: isinstance(w.got, int) and not isinstance(w.got, bool),
        ),
        Mistake(
            "a derivative is measured, rounded or limited",
            "Ten digits are right, and the others are not, or only for some sizes. The formula is exact for all of them.",
            when=is_inexact,
        ),
        Mistake(
            "a comparison multiplies d by 0",
            "0 * nan and 0 * inf are nan. A comparison is flat, whatever d is: return 0.0, 0.0.",
            when=lambda w: w.case[0] in ("LT", "EQ") and isinstance(w.got, tuple) and any(map(math.isnan, w.got)),
            check=ALL_SLOPES,
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

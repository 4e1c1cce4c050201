"""Task 0.1: operators on one number or two."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import oracle
from ..check import agreement, in_turn
from ..questions.calling import call_named
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Numbers = tuple[float, ...]
Case = tuple[str, Numbers]  # (slot, its arguments)
Drawn = Callable[[], "SearchStrategy[Numbers]"]

FAR = 4.0  # times the tolerance: too far however the relative and absolute tolerance are combined
ARITHMETIC = "identity, add, mul, neg, maximum and relu give what arithmetic says"
ANSWERS = "lt, eq and is_close answer 1.0 or 0.0"
FUNCTIONS = "exp, log, inv and sigmoid are what their names say"
CORNERS = "every float has an answer: nothing overflows, nothing is divided by zero"
SLOPES = "log_grad, inv_grad and relu_grad are derivatives, times d"


def format_call(case: Case) -> str:
    """Return a call as source text: "add(1.0, 2.5)"."""
    slot, xs = case
    return f"{slot}({', '.join(map(str, xs))})"


def agrees(slot: str, name: str, cases: Drawn, draw: Callable[[Case, object, float], Sequence[str]] | None = None) -> Check:
    """Return a check that compares one operator with the oracle's."""

    def named() -> "SearchStrategy[Case]":
        return cases().map(lambda xs: (slot, xs))

    return agreement(
        name,
        named,
        call_named,
        lambda c: oracle.function(slot)(*c[1]),
        describe=format_call,
        draw=draw,
    )


def numbers(count: int, least: int = -40, most: int = 40) -> "SearchStrategy[Numbers]":
    """Draw tuples of multiples of 1/4, which floats represent exactly."""
    from hypothesis import strategies as st

    return st.tuples(*[st.integers(least, most).map(lambda k: k / 4) for _ in range(count)])


def pairs() -> "SearchStrategy[Numbers]":
    """Draw two numbers that are sometimes equal, and often differ only in sign."""
    from hypothesis import strategies as st

    return numbers(2).flatmap(lambda c: st.sampled_from([c, c, (c[0], c[0]), (c[0], -c[0])]))


def neighbours() -> "SearchStrategy[Numbers]":
    """Draw two numbers that are equal, differ by a quarter of the tolerance, or by several times the tolerance."""
    from hypothesis import strategies as st

    def pair(x: float, part: float, is_second: bool) -> tuple[float, float]:
        y = x + part * max(1e-5 * abs(x), 1e-8)
        return (y, x) if is_second else (x, y)

    sizes = st.tuples(
        st.sampled_from([0.0, 1.0, -2.5, 7e3, -3e9, 4e-4, 2e-7]), st.sampled_from([0.0, 0.25, -0.25, FAR, -FAR])
    )
    return st.tuples(sizes, st.booleans()).map(lambda c: pair(*c[0], c[1]))


def compared() -> "SearchStrategy[Numbers]":
    """Draw two numbers that are equal, nearly equal, or different."""
    from hypothesis import strategies as st

    return st.one_of(pairs(), neighbours())


def about_zero() -> "SearchStrategy[Numbers]":
    """Draw numbers, half of which are 0."""
    from hypothesis import strategies as st

    return st.one_of(st.just((0.0,)), numbers(1))


def positive() -> "SearchStrategy[Numbers]":
    """Draw positive numbers, some of them small."""
    from hypothesis import strategies as st

    return st.tuples(st.one_of(st.integers(1, 200).map(lambda k: k / 4), st.sampled_from([0.1, 1e-3, 1e-6, 1e-9, 1e9])))


def not_zero() -> "SearchStrategy[Numbers]":
    """Draw numbers other than 0."""
    return numbers(1).filter(lambda c: c[0] != 0)


def listed(*tuples: Numbers) -> Drawn:
    """Return a strategy of these tuples, the first being the simplest."""

    def cases() -> "SearchStrategy[Numbers]":
        from hypothesis import strategies as st

        return st.sampled_from(tuples)

    return cases


def slopes(given: Drawn) -> Drawn:
    """Draw (x, d) with x from a strategy."""

    def cases() -> "SearchStrategy[Numbers]":
        from hypothesis import strategies as st

        return st.tuples(given(), numbers(1)).map(lambda c: (c[0][0], c[1][0]))

    return cases


def slope_measured(case: Case, got: object, expected: float) -> Sequence[str]:
    """Return the slope of a function from two of its values, as lines."""
    slot, (x, d) = case
    name = slot.removesuffix("_grad")
    if name == "relu" and x == 0:
        return ["relu has a corner at 0: a slope of 0 on its left, of 1 on its right; at 0 it is taken as 0"]
    step = 1e-4 * max(abs(x), 1e-4)
    low, high = [oracle.function(name)(x + side * step) for side in (-1, 1)]
    return [
        f"{name}({x:g} - {step:g}) = {low:.8g}",
        f"{name}({x:g} + {step:g}) = {high:.8g}",
        f"so {name} rises by {(high - low) / (2 * step):.5g} for each 1 in x there; times d = {d:g}",
    ]


def asks_for_a_distance(wrong: Wrong) -> bool:
    """Return whether is_close is wrong for small numbers that are far apart, or large ones that are close."""
    slot, xs = wrong.case
    size = max(map(abs, xs))
    return slot == "is_close" and bool(wrong.got == 1.0 if size < 100 else wrong.got == 0.0)


def adds_before_log(wrong: Wrong) -> bool:
    """Return whether the answer is the logarithm of a slightly larger number."""
    slot, xs = wrong.case
    is_number = isinstance(wrong.got, float) and math.isfinite(wrong.got)
    return slot == "log" and is_number and 0 < math.exp(wrong.got) - xs[0] < 0.1


def raises(slots: tuple[str, ...], *kinds: str) -> Callable[[Wrong], bool]:
    """Return whether a failure is one of these exceptions in one of these slots."""
    return lambda wrong: wrong.kind in kinds and wrong.case[0] in slots


def without_d(case: Case) -> float:
    """Return a derivative that is not multiplied by d."""
    slot, (x, _) = case
    slope: float = oracle.function(slot)(x, 1.0)
    return slope


TASK = Task(
    id="0.1",
    title="Operators on numbers",
    file="operators.py",
    slots=tuple(
        "identity add mul neg lt eq maximum is_close sigmoid relu log exp inv log_grad inv_grad relu_grad".split()  # noqa: SIM905
    ),
    points=4,
    text=(
        "Sixteen functions of one float or two: all that a network computes is made of them. Each takes floats and gives a "
        "float; questions (lt, eq, is_close) answer 1.0 or 0.0. None of them raises: what is too large for a float is inf, "
        "the logarithm of 0 is -inf, that of a negative number is nan. The three that end in _grad give d times a "
        "derivative."
    ),
    hints=(
        "Most are one line. Where a formula has exp in it, ask how large its argument can be: e to the power of 710 does "
        "not fit a float, e to the power of -710 is merely close to 0.",
        "sigmoid: for x >= 0 take 1 / (1 + exp(-x)); for x < 0 multiply above and below by exp(x), so that exp is never "
        "asked for more than 1. exp and log: math.exp and math.log, with the answers that they refuse to give put in by "
        "hand.",
        "minifuse/core/operators.py has the same functions for the whole library, each with its derivative; "
        "docs/guide/operators.md lists them.",
    ),
    reads=("docs/course/0.1-operators.md", "docs/guide/operators.md"),
    checks=(
        in_turn(
            ARITHMETIC,
            [
                agrees("identity", "identity(x) is x", lambda: numbers(1)),
                agrees("add", "add(x, y) is the sum", lambda: numbers(2)),
                agrees("mul", "mul(x, y) is the product", lambda: numbers(2)),
                agrees("neg", "neg(x) has the other sign", lambda: numbers(1)),
                agrees("maximum", "maximum(x, y) is the larger one", pairs),
                agrees("relu", "relu(x) is x where it is positive, else 0.0", lambda: numbers(1)),
            ],
        ),
        in_turn(
            ANSWERS,
            [
                agrees("lt", "lt(x, y) is 1.0 if x is less than y, else 0.0", compared),
                agrees("eq", "eq(x, y) is 1.0 if x and y are equal, else 0.0", compared),
                agrees("is_close", "is_close(x, y) goes by the size of the numbers", neighbours),
            ],
        ),
        in_turn(
            FUNCTIONS,
            [
                agrees("exp", "exp(x) is e to the power of x", lambda: numbers(1)),
                agrees("log", "log(x) is the natural logarithm", positive),
                agrees("inv", "inv(x) is 1 / x", not_zero),
                agrees("sigmoid", "sigmoid(x) is 1 / (1 + exp(-x))", lambda: numbers(1)),
            ],
        ),
        in_turn(
            CORNERS,
            [
                agrees(
                    "exp", "exp has an answer for every float", listed((-1e3,), (-math.inf,), (709.0,), (710.0,), (1e308,))
                ),
                agrees("sigmoid", "sigmoid has an answer for every float", listed((1e3,), (-1e3,), (710.0,), (-1e308,))),
                agrees("log", "log has an answer for every float", listed((math.inf,), (0.0,), (-2.0,), (-1e308,))),
                agrees("inv", "inv has an answer for every float", listed((math.inf,), (1e308,), (0.0,))),
                agrees(
                    "is_close",
                    "an infinity is close to itself alone",
                    listed((math.inf, math.inf), (math.inf, 1.0), (1.0, -math.inf), (-math.inf, math.inf)),
                ),
            ],
        ),
        in_turn(
            SLOPES,
            [
                agrees("log_grad", "log_grad(x, d) is d times the slope of log at x", slopes(positive), slope_measured),
                agrees("inv_grad", "inv_grad(x, d) is d times the slope of inv at x", slopes(not_zero), slope_measured),
                agrees(
                    "relu_grad",
                    "relu_grad(x, d) is d times the slope of relu at x",
                    slopes(about_zero),
                    slope_measured,
                ),
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "a question is answered by True or False",
            "Later the answer is multiplied, summed and differentiated like any number, so it is a float: 1.0 or 0.0.",
            when=lambda w: isinstance(w.got, bool),
            check=ANSWERS,
        ),
        Mistake(
            "is_close allows the same distance for numbers of every size",
            "Floats keep about 16 digits, wherever the point is. How far apart may two numbers near 1e9 be, and how far two "
            "near 1e-6?",
            when=asks_for_a_distance,
            check=ANSWERS,
        ),
        Mistake(
            "nothing is close to zero but zero itself",
            "A part of 0 is 0. That is what the second tolerance is for, 1e-8, whatever the size of the numbers.",
            when=lambda w: w.case[0] == "is_close" and w.got == 0.0 and max(map(abs, w.case[1])) < 1e-5,
            check=ANSWERS,
        ),
        Mistake(
            "sigmoid asks for exp of a large number",
            "For x = -1000 the formula wants exp(1000), which no float holds, although the answer is close to 0. Which "
            "other form of the same quotient has exp(x) in it, instead of exp(-x)?",
            when=raises(("sigmoid",), "OverflowError"),
        ),
        Mistake(
            "sigmoid divides one infinity by another",
            "inf / inf is nan. For x >= 0 use the form in which exp is asked for -x, for x < 0 the one in which it is asked "
            "for x: exp then never gives more than 1.",
            when=lambda w: w.case[0] == "sigmoid" and isinstance(w.got, float) and math.isnan(w.got),
            check=CORNERS,
        ),
        Mistake(
            "exp stops where the result is too large for a float",
            "math.exp raises OverflowError there. A float has a value for it: math.inf.",
            when=raises(("exp",), "OverflowError"),
            check=CORNERS,
        ),
        Mistake(
            "log or inv stops at a number that it does not like",
            "math.log raises at 0 and below, and so does a division by 0. Say what is to be given there: -inf or nan for "
            "log, inf for inv.",
            when=raises(("log", "inv"), "ValueError", "ZeroDivisionError"),
            check=CORNERS,
        ),
        Mistake(
            "log adds something to its argument first",
            "That keeps log(0) finite, and makes every other answer wrong by a little: log(1) is no longer 0, and "
            "log(exp(x)) is not x. Treat 0 by itself.",
            when=adds_before_log,
        ),
        Mistake(
            "a derivative is not multiplied by d",
            "d is the derivative of all that comes after, with respect to this operator's result: the chain rule "
            "multiplies.",
            wrong_answer=without_d,
            check=SLOPES,
        ),
        Mistake(
            "the derivative of inv has the wrong sign",
            "Where x is positive and grows, 1 / x falls.",
            wrong_answer=lambda c: oracle.function("inv_grad")(c[1][0], -c[1][1]),
            check=SLOPES,
        ),
    ),
)

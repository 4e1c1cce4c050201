"""Task 1.1: a numerical derivative."""

import math
from typing import TYPE_CHECKING

from .. import oracle
from ..cases import among, formula_link
from ..check import agreement, check_each
from ..questions.task1_1 import LIST_GIVEN, Case, Floats, Terms, ask, ask_calls, evaluate
from ..task import Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SLOPE, TWICE, UNCHANGED, ANY = (
    "the slope lies between a bit below and a bit above",
    "f is called twice: at x + epsilon and at x - epsilon",
    "xs stays as it is, also while f is called",
    "so it is for every number of arguments, every epsilon, and slopes of every size",
)
SHARE = 0.3  # of the usual number of cases
DEFAULT, ULPS = 1e-6, 4  # the epsilon that is not given; rounding errors of a point
SIMPLE: tuple[Terms, ...] = (
    ((3, (0,)),),
    ((1, (0, 0)),),
    ((1, (0, 0, 0)),),
    ((1, (0, 0)), (-5, (1,))),
    ((1, (0, 1, 1)),),
    ((1, (0, 1)), (7, (2, 2))),
)
"""3 * x, x * x, x * x * x, x * x - 5 * y, x * y * y, x * y + 7 * z * z."""


class Slope(float):
    """The right slope. It may differ by `allowed`: the distance of the points may be rounded, and each quotient."""

    allowed = 0.0


def count_of(terms: Terms) -> int:
    """Return the number of arguments of a polynomial."""
    return 1 + max(i for _, factors in terms for i in factors)


def points() -> "SearchStrategy[Case]":
    """Draw simple functions, at points where many numbers are equal."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        terms = draw(among(*SIMPLE))
        count = count_of(terms)
        xs = tuple(draw(st.integers(-8, 8)) / 2 for _ in range(count))
        epsilon = draw(among(0.5, 0.25, 2.0**-10))
        return Case(terms, list(xs) if draw(among(False, True)) else xs, draw(st.integers(0, count - 1)), epsilon)

    return case()


def other_points(most: int = 12) -> "SearchStrategy[Case]":
    """Draw functions of up to `most` arguments with any coefficients, flat ones too, and any epsilon, or none."""
    from hypothesis import strategies as st

    powers = among(*[10.0**k for k in range(-9, 10)])
    numbers = st.builds(lambda a, b: a * b, among(1.0, 0.0, 3.0, -0.5, 0.1, -1 / 3), powers)

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        count = draw(st.integers(1, most))
        factors = st.lists(st.integers(0, count - 1), min_size=1, max_size=3).map(tuple)
        k = draw(st.integers(0, count - 1))
        terms = ((draw(numbers), (count - 1,)), (draw(numbers), (k,)), (draw(numbers), draw(factors)))
        some = [draw(numbers) for _ in range(3)]
        xs = tuple(0.0 if i == k and draw(among(False, True)) else some[i * i % 3] for i in range(count))
        epsilon = draw(among(None, 1e-12, 1e-8, 1e-5, 1e-3, 0.7, 40.0))
        if abs(xs[k]) * 2.0**-30 > (epsilon or DEFAULT):  # the two points would be rounded to the same number
            epsilon = 2.0**-20 * abs(xs[k])
        return Case(terms, list(xs) if draw(among(False, True)) else xs, k, epsilon)

    return case()


def formula(terms: Terms) -> str:
    """Return a polynomial as source text."""
    count = count_of(terms)
    names = "xyz" if count <= 3 else [f"x{i}" for i in range(count)]
    texts = [" * ".join([f"{a:g}"] * (a != 1) + [names[i] for i in factors]) for a, factors in terms]
    return " + ".join(texts).replace("+ -", "- ")


def describe_case(case: Case) -> str:
    """Return a call as source text."""
    given = "not given" if case.epsilon is None else f"{case.epsilon:g}"
    return f"f = {formula(case.terms)}; xs {case.xs}, k {case.k}, epsilon {given}"


def link_of(case: Case) -> str:
    """Return the page that differentiates the function."""
    names = "xyz"[: count_of(case.terms)] if count_of(case.terms) <= 3 else ()
    return formula_link(formula(case.terms), names)


def expect(case: Case) -> Slope:
    """Return the right derivative."""
    terms, xs, k, epsilon = case
    epsilon = DEFAULT if epsilon is None else epsilon
    slope = oracle.function("numerical_derivative")(lambda *xs: evaluate(terms, xs), xs, k, epsilon)
    height = max(abs(evaluate(terms, [x + way * epsilon * (i == k) for i, x in enumerate(xs)])) for way in (1, -1))
    expected = Slope(slope)
    expected.allowed = abs(slope) * (1e-12 + ULPS * math.ulp(abs(xs[k]) + epsilon) / epsilon)
    expected.allowed += ULPS * math.ulp(height / (2 * epsilon))  # f(...) / (2 * epsilon) - f(...) / (2 * epsilon)
    return expected


def is_near(got: object, expected: Slope) -> bool:
    """Return whether a slope is right up to the rounding of the distance."""
    return (
        isinstance(got, float | int)
        and not isinstance(got, bool)
        and (got == expected or abs(got - expected) <= expected.allowed)
    )


def slope_to(case: Case, above: float, below: float, by: float, *, all_move: bool = False) -> float:
    """Return a difference quotient of other points with another denominator."""
    epsilon = DEFAULT if case.epsilon is None else case.epsilon
    high, low = [[x + way * epsilon * (all_move or i == case.k) for i, x in enumerate(case.xs)] for way in (above, below)]
    return (evaluate(case.terms, high) - evaluate(case.terms, low)) / (by * epsilon)


def is_rounded(wrong: Wrong) -> bool:
    """Return whether the student's slope is the right one, rounded to a number of places."""
    return not wrong.kind and any(wrong.got == round(float(wrong.expected), places) for places in range(16))


def is_slope(wrong: Wrong, slope: float) -> bool:
    """Return whether the student's slope is this one, which may be almost the right one."""
    return not wrong.kind and math.isclose(wrong.got, slope, rel_tol=1e-13)


def examine_calls(case: Case, answer: tuple[list[Floats], bool]) -> None:
    """Raise `Wrong` if f is not called twice, or at other points."""
    calls, _ = answer
    if len(calls) != 2:
        raise Wrong(
            f"f was called {len(calls)} times; a slope needs two points",
            case_text=describe_case(case),
            expected="2 calls",
            kind="calls",
        )
    epsilon, x = DEFAULT if case.epsilon is None else case.epsilon, case.xs[case.k]
    for got, at in zip(sorted(calls, key=lambda xs: xs[case.k]), (x - epsilon, x + epsilon), strict=True):
        expected = [at if i == case.k else one for i, one in enumerate(case.xs)]
        allowed = [ULPS * math.ulp(abs(x) + epsilon) if i == case.k else 0.0 for i in range(len(expected))]
        if len(got) != len(expected) or any(abs(a - b) > c for a, b, c in zip(got, expected, allowed, strict=True)):
            raise Wrong("f was called at another point", case_text=describe_case(case), expected=expected, got=list(got))


def examine_xs(case: Case, answer: tuple[list[Floats], bool]) -> None:
    """Raise `Wrong` if xs was changed."""
    if answer[1]:
        raise Wrong(
            "xs was modified, at least while f was called; it belongs to the caller",
            case_text=describe_case(case),
            expected=str(case.xs),
            kind="changed",
        )


TASK = Task(
    id="1.1",
    title="A derivative by asking twice",
    file="autodiff.py",
    slots=("numerical_derivative",),
    points=2,
    text=(
        "How fast does f grow with its argument k? Ask f a bit above the point and a bit below it, with all other arguments "
        "as they are, and divide by the way between: (f(x + epsilon) - f(x - epsilon)) / (2 * epsilon). This knows nothing "
        "of how f computes, so it is what every other derivative is held against."
    ),
    hints=(
        "A slope is a difference of heights over the way between two points. Take the points on both sides, so that what "
        "the curve bends on one side is made good on the other.",
        "Make two copies of the arguments, change argument k in each, by epsilon upwards and downwards; call f on both.",
        "project/views/autodiff.py has the same for whole arrays, in `finite_differences`; the page Autodiff of `minifuse "
        "app` shows what it gives beside the real derivative.",
    ),
    reads=("docs/course/1.1-numerical-derivative.md", "docs/guide/gradients.md", "project/views/autodiff.py"),
    checks=(
        agreement(SLOPE, points, ask, expect, describe=describe_case, agree=is_near, link=link_of),
        check_each(UNCHANGED, points, ask_calls, examine_xs, describe=describe_case, share=SHARE),
        check_each(TWICE, other_points, ask_calls, examine_calls, large=lambda: other_points(300), describe=describe_case),
        agreement(
            ANY,
            other_points,
            ask,
            expect,
            large=lambda: other_points(300),
            describe=describe_case,
            agree=is_near,
            link=link_of,
        ),
    ),
    mistakes=(
        Mistake(
            "the slope is taken from the point itself to one side",
            "From x to x + epsilon the curve bends, and nothing makes good for it. For x * x at 0 with epsilon 0.5 the "
            "slope is 0: what do you get?",
            when=lambda w: is_slope(w, slope_to(w.case, 1, 0, 1)) or is_slope(w, slope_to(w.case, 0, -1, 1)),
            check=SLOPE,
        ),
        Mistake(
            "the difference is divided by epsilon, not by the way between the points",
            "How far is it from x - epsilon to x + epsilon?",
            when=lambda w: is_slope(w, slope_to(w.case, 1, -1, 1)),
            check=SLOPE,
        ),
        Mistake(
            "all arguments move, not only argument k",
            "The derivative by one argument leaves the others where they are.",
            when=lambda w: is_slope(w, slope_to(w.case, 1, -1, 2, all_move=True)),
            check=SLOPE,
        ),
        Mistake(
            "it is always the first argument that moves",
            "k says which argument moves; 0 is the first.",
            when=lambda w: is_slope(w, slope_to(w.case._replace(k=0), 1, -1, 2)),
            check=SLOPE,
        ),
        Mistake(
            "epsilon is not what was given",
            "Whoever calls chooses epsilon; 1e-6 is only what it is if nothing is said.",
            when=lambda w: is_slope(w, slope_to(w.case._replace(epsilon=None), 1, -1, 2)),
            check=SLOPE,
        ),
        Mistake(
            "the slope is rounded",
            "A slope may be tiny: that of 1e-9 * x is 1e-9. Return the quotient as it is.",
            when=is_rounded,
        ),
        Mistake(
            "f is not called twice",
            "Two values make a slope, even if they are equal. A third call is work for nothing.",
            when=lambda w: w.kind == "calls",
        ),
        Mistake(
            "xs is changed in place",
            "A list that was given belongs to the caller. Take a copy, and change that.",
            when=lambda w: w.kind == "changed" or (w.kind == "TypeError" and "item assignment" in w.message),
        ),
        Mistake(
            "f gets a list",
            "f takes its arguments one by one: f(*xs).",
            when=lambda w: w.kind == "TypeError" and LIST_GIVEN in w.message,
        ),
    ),
)

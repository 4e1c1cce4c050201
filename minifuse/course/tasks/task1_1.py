"""Task 1.1: a numerical derivative."""

from typing import TYPE_CHECKING

from .. import oracle
from ..cases import autodiff_link
from ..check import agreement, close
from ..questions.task1_1 import FUNCTIONS, Case, ask, count_calls
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

SLOPE, TWICE, UNCHANGED = "the slope lies between a bit below and a bit above", "f is called twice", "xs stays as it is"


def points() -> "SearchStrategy[Case]":
    """Draw (name of a function, arguments, index of the argument, epsilon)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Case:
        name = draw(st.sampled_from(list(FUNCTIONS)))
        count = FUNCTIONS[name].__code__.co_argcount
        xs = tuple(draw(st.integers(-8, 8).map(lambda n: n / 2)) for _ in range(count))
        return name, xs, draw(st.integers(0, count - 1)), draw(st.sampled_from([0.5, 0.25, 1e-6]))

    return case()


def describe_case(case: Case) -> str:
    """Return a call as source text."""
    name, xs, k, epsilon = case
    return f"f = {name}; xs {xs}, k {k}, epsilon {epsilon:g}"


def expect(case: Case) -> float:
    """Return the right derivative."""
    return float(oracle.function("numerical_derivative")(FUNCTIONS[case[0]], *case[1:]))


def slope_to(case: Case, above: float, below: float, by: float) -> float:
    """Return a difference quotient of other points with another denominator."""
    name, xs, k, epsilon = case
    high, low = [[x + way * epsilon * (i == k) for i, x in enumerate(xs)] for way in (above, below)]
    return float((FUNCTIONS[name](*high) - FUNCTIONS[name](*low)) / (by * epsilon))


def called_twice(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if f is not called twice, or xs is modified."""
    count, xs = student.ask(count_calls, [2.0, 3.0])
    case = "f = x * y; xs [2.0, 3.0], k 0"
    if count != 2:
        raise Wrong(f"f was called {count} times; a slope needs two points", case_text=case, expected=2, got=count)
    if xs != [2.0, 3.0]:
        raise Wrong(
            "xs was modified; the caller still needs it", case_text=case, expected="[2.0, 3.0]", got=xs, kind="changed"
        )


def is_near(got: object, expected: float) -> bool:
    """Return whether numbers are equal up to the rounding errors of a small epsilon."""
    return close(got, expected) or (isinstance(got, float | int) and expected - 1e-6 < got < expected + 1e-6)


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
    reads=("docs/guide/gradients.md", "project/views/autodiff.py"),
    checks=(
        agreement(SLOPE, points, ask, expect, describe=describe_case, agree=is_near, link=lambda c: autodiff_link()),
        Check(TWICE, called_twice),
    ),
    mistakes=(
        Mistake(
            "the slope is taken from the point itself to one side",
            "From x to x + epsilon the curve bends, and nothing makes good for it. For x * x at 0 with epsilon 0.5 the "
            "slope is 0: what do you get?",
            wrong_answer=lambda c: slope_to(c, 1, 0, 1),
            when=lambda w: not w.kind and is_near(w.got, slope_to(w.case, 0, -1, 1)),
            check=SLOPE,
        ),
        Mistake(
            "the difference is divided by epsilon, not by the way between the points",
            "How far is it from x - epsilon to x + epsilon?",
            wrong_answer=lambda c: slope_to(c, 1, -1, 1),
            check=SLOPE,
        ),
        Mistake(
            "all arguments move, not only argument k",
            "The derivative by one argument leaves the others where they are.",
            wrong_answer=lambda c: (
                (FUNCTIONS[c[0]](*[x + c[3] for x in c[1]]) - FUNCTIONS[c[0]](*[x - c[3] for x in c[1]])) / (2 * c[3])
            ),
            check=SLOPE,
        ),
        Mistake(
            "it is always the first argument that moves",
            "k says which argument moves; 0 is the first.",
            wrong_answer=lambda c: slope_to((*c[:2], 0, c[3]), 1, -1, 2),
            check=SLOPE,
        ),
        Mistake(
            "epsilon is not what was given",
            "Whoever calls chooses epsilon; 1e-6 is only what it is if nothing is said.",
            wrong_answer=lambda c: slope_to((*c[:3], 1e-6), 1, -1, 2),
            check=SLOPE,
        ),
        Mistake(
            "xs is changed in place",
            "A list that was given belongs to the caller. Take a copy, and change that.",
            when=lambda w: w.kind in ("changed", "TypeError"),
        ),
    ),
)

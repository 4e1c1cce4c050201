"""Questions on task 1.1: central differences with numbers put in."""

from random import Random

from .. import oracle
from .figures import signed, table
from .question import Question, Wrong, format_value


def central(rng: Random) -> Question:
    """Ask for the central difference of a parabola."""
    a, b, x, e = rng.choice([2, 3]), rng.choice([-3, -2, 2, 3]), rng.randint(1, 4), rng.choice([1, 2, 0.5])

    def f(x: float) -> float:
        return a * x * x + b * x

    answer = oracle.function("numerical_derivative")(f, [x], 0, e)
    below, above = f(x - e), f(x + e)
    return Question(
        f"f(x) = {a} * x * x {'+' if b > 0 else '-'} {abs(b)} * x. What is its central difference at x = {x} with epsilon "
        f"= {e}?",
        answer,
        f"slope = (above - below) / (2 * epsilon) = ({format_value(above)} - {format_value(below)}) / {2 * e} = "
        f"{format_value(answer)}. For a parabola nothing is wrong with it: the slope is 2 * {a} * {x} + {signed(b)}.",
        {
            (above - f(x)) / e: "this is the slope to one side; take a point on both sides",
            (above - below) / e: "the points are 2 * epsilon apart",
        },
        drawing=table([("below", x - e, below), ("above", x + e, above)], ("", "x", "f(x)")),
        numbers={"a": a, "b": b, "x": x, "e": e},
    )


def one_side(rng: Random) -> Question:
    """Ask for the difference quotient to one side."""
    x, e = rng.randint(1, 5), rng.choice([1, 2, 0.5])
    answer = ((x + e) ** 2 - x**2) / e
    return Question(
        "f(x) = x * x. Somebody takes the slope to one side only: (f(x + epsilon) - f(x)) / epsilon. What is it at x = "
        f"{x} with epsilon = {e}?",
        answer,
        f"({format_value((x + e) ** 2)} - {x**2}) / {e} = {format_value(answer)}: (x + e)**2 - x**2 is 2xe + e**2; divided "
        f"by e that is the slope 2x = {2 * x}, plus e = {e}. On the other side the error is {-e}, so a difference over both "
        "sides has none.",
        {
            2 * x: "this is the slope, which the difference to one side misses",
            2 * x - e: "this is the slope to the other side",
        },
        numbers={"x": x, "e": e},
    )


def cubic(rng: Random) -> Question:
    """Ask for the error of a central difference."""
    x, e = rng.randint(1, 4), rng.choice([1, 2, 0.5, 3])

    def f(x: float) -> float:
        return x**3

    slope = oracle.function("numerical_derivative")(f, [x], 0, e)
    answer = slope - 3 * x * x
    return Question(
        f"The slope of f(x) = x * x * x at x = {x} is {3 * x * x}. By how much is the central difference with epsilon = "
        f"{e} too large?",
        answer,
        f"({format_value(f(x + e))} - {format_value(f(x - e))}) / {2 * e} = {format_value(slope)}, which is "
        f"{format_value(answer)} too large: epsilon * epsilon, wherever x is. A tenth of epsilon has a hundredth of the "
        "error.",
        {
            0: "only parabolas and lines have no error",
            e: "the error shrinks with the square of epsilon",
            slope: "this is the difference itself, not its error",
        },
        drawing=table(
            [(eps, oracle.function("numerical_derivative")(f, [x], 0, eps)) for eps in (e, e / 10, e / 100)],
            ("epsilon", "slope"),
        ),
        numbers={"x": x, "e": e},
    )


def argument(rng: Random) -> Question:
    """Ask for the slope by one of two arguments."""
    a, x, y, k = rng.randint(2, 5), rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 1)

    def f(x: float, y: float) -> float:
        return x * y - a * y

    slope = oracle.function("numerical_derivative")
    answer, other = slope(f, [x, y], k, 0.5), slope(f, [x, y], 1 - k, 0.5)
    together = (f(x + 0.5, y + 0.5) - f(x - 0.5, y - 0.5)) / 1.0
    points = [(x - 0.5, y), (x + 0.5, y)] if k == 0 else [(x, y - 0.5), (x, y + 0.5)]
    return Question(
        f"f(x, y) = x * y - {a} * y. What is numerical_derivative(f, [{x}, {y}], k={k}, epsilon=0.5)?",
        answer,
        f"Only argument {k} moves, and the points are 1 apart: {format_value(f(*points[1]))} - {signed(f(*points[0]))} = "
        f"{format_value(answer)}.",
        {other: f"k={k} is the {'first' if k == 0 else 'second'} argument", together: "only argument k moves"},
        drawing=table([(*p, f(*p)) for p in points], ("x", "y", "f(x, y)")),
        numbers={"a": a, "x": x, "y": y, "k": k},
    )


def calls(rng: Random) -> Question:
    """Ask how often f is called for the slopes by all arguments."""
    n = rng.choice([3, 5, 10, 50, 100])
    counted = []

    def f(*xs: float) -> float:
        counted.append(xs)
        return sum(xs)

    for k in range(n):
        oracle.function("numerical_derivative")(f, [1.0] * n, k)
    wrong: Wrong = {n: "each slope needs a point below and a point above", n + 1: "the point itself is not asked"}
    return Question(
        f"A loss depends on {n} weights. How often is it computed to get its slope by each of them with "
        "numerical_derivative?",
        len(counted),
        f"Twice for each weight: 2 * {n} = {len(counted)}. Backpropagation gets all of them by going backward once.",
        wrong,
        numbers={"n": n},
    )


QUESTIONS = (central, one_side, cubic, argument, calls)

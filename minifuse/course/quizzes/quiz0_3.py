"""Questions on task 0.3: the order of reductions, their start, and calls."""

import operator
from collections.abc import Callable
from random import Random

from .. import oracle
from .figures import table
from .question import Question, Wrong, choose


def steps(fn: Callable[[float, float], float], xs: list[int], start: int) -> list[tuple[object, ...]]:
    """Return each step of a reduction: the value so far, the element, and the result."""
    rows: list[tuple[object, ...]] = []
    for x in xs:
        rows.append((start, x, fn(start, x)))
        start = int(fn(start, x))
    return rows


def digits(rng: Random) -> Question:
    """Ask for a reduction by 10 * x + y."""
    xs, start = rng.sample(range(1, 8), 3), rng.choice([0, 8, 9])

    def fn(x: float, y: float) -> float:
        return 10 * x + y

    answer = oracle.function("reduce_list")(fn, xs, start)
    backwards = oracle.function("reduce_list")(fn, xs[::-1], start)
    swapped = oracle.function("reduce_list")(lambda x, y: fn(y, x), xs, start)
    wrong: Wrong = {backwards: "elements are taken from the left", swapped: "fn receives what it has so far first"}
    if start:
        wrong[oracle.function("reduce_list")(fn, xs[1:], xs[0])] = "the reduction begins with start"
    return Question(
        f"fn(x, y) = 10 * x + y. What is reduce_list(fn, {xs}, {start})?",
        answer,
        "reduce_list computes fn(fn(fn(start, x0), x1), x2), from the left:",
        wrong,
        drawing=table(steps(fn, xs, start), ("so far", "element", "fn")),
        numbers={"xs": xs, "start": start},
    )


def differences(rng: Random) -> Question:
    """Ask for a reduction by x - y."""
    xs, start = [rng.randint(1, 9) for _ in range(3)], rng.choice([10, 20, 30])
    a, b, c = xs
    answer = oracle.function("reduce_list")(operator.sub, xs, start)
    return Question(
        f"fn(x, y) = x - y. What is reduce_list(fn, {xs}, {start})?",
        answer,
        f"From the left: (({start} - {a}) - {b}) - {c} = {answer}.",
        {
            a - (b - (c - start)): "the reduction begins with start and the first element, not with the last ones",
            c - (b - (a - start)): "fn receives what it has so far first, and the next element second",
            a - b - c: "the reduction begins with start",
        },
        drawing=table(steps(operator.sub, xs, start), ("so far", "element", "fn")),
        numbers={"xs": xs, "start": start},
    )


def empty(rng: Random) -> Question:
    """Ask for a reduction of an empty list."""
    name, fn = rng.choice([("add", operator.add), ("mul", operator.mul), ("maximum", max)])
    start = rng.choice([-3, -1, 1, 2, 5])
    answer = oracle.function("reduce_list")(fn, [], start)
    return Question(
        f"What is reduce_list({name}, [], {start})?",
        answer,
        f"fn is never called, so what the reduction began with is the result: {start}. That is why prod_list starts "
        "at 1: the product of xs + ys is the product of xs times that of ys, also if ys is empty.",
        {0: f"the start of this reduction is {start}, not 0"},
        numbers={"start": start},
    )


def counted_calls(rng: Random) -> Question:
    """Ask how often a function is called by map, zip and reduce in turn."""
    n = rng.randint(3, 9)
    xs, counts = [float(k) for k in range(n)], []

    def counting(*values: float) -> float:
        counts.append(values)
        return values[0]

    oracle.function("map_list")(counting, xs)
    oracle.function("zip_lists")(counting, xs, xs)
    oracle.function("reduce_list")(counting, xs, 0.0)
    return Question(
        f"xs and ys have {n} elements each. How often is fn called by map_list(fn, xs), zip_lists(fn, xs, ys) and "
        "reduce_list(fn, xs, 0.0) together?",
        len(counts),
        f"{n} + {n} + {n}: once for each element, once for each pair, and once for each element again, since the reduction "
        "begins with start and not with the first element.",
        {
            3 * n - 1: "the first element is combined with start, which is one more call",
            4 * n: "zip calls fn once for a pair, not once for each of its elements",
        },
        numbers={"n": n},
    )


def lengths(rng: Random) -> Question:
    """Ask what zip_lists does with lists of these lengths."""
    n, m = rng.randint(2, 5), rng.randint(2, 5)
    m = n if rng.random() < 0.25 else m
    try:
        right = f"A list of {len(oracle.function('zip_lists')(operator.add, [1] * n, [1] * m))}"
    except ValueError:
        right = "ValueError"
    options = {
        f"A list of {min(n, m)}": "Python's zip drops the end of the longer list, which would hide a mistake",
        f"A list of {n + m}": "zip makes one element of each pair",
        "ValueError": "lists of one length are no mistake",
        f"A list of {max(n, m)}": "the end of the longer list has nothing to be paired with",
    }
    why = "equal, so there is a pair for each element" if n == m else "different, and to drop an end would hide a mistake"
    return choose(
        rng,
        f"xs has {n} elements, ys has {m}. What does zip_lists(add, xs, ys) give?",
        right,
        {text: mistake for text, mistake in options.items() if text != right},
        f"The lengths {n} and {m} are {why}.",
        numbers={"n": n, "m": m, "right": right},
    )


QUESTIONS = (digits, differences, empty, counted_calls, lengths)

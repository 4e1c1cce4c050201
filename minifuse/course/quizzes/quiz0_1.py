"""Questions on task 0.1: floats at their ends, closeness, and derivatives of operators."""

from random import Random

from .. import oracle
from .figures import table
from .question import Question, Wrong, choose, format_value

ENDS = {
    "log": ((0.0, "log comes closer and closer to it, and it is no error"), (-1.0, "")),
    "exp": ((1000.0, ""), (-1000.0, "")),
    "inv": ((0.0, ""),),
    "sigmoid": ((-1000.0, ""), (1000.0, "")),
}
VALUES = {
    "-inf": "this would be the logarithm of 0",
    "inf": "inf stands for a result that is too large for a float",
    "0.0": "0 is the result where a power of e is too small for a float",
    "1.0": "the sigmoid reaches 1 far to the right only",
    "nan": "nan is kept for the logarithm of a negative number",
    "an error": "a kernel works on a million elements, and must not end because of one of them",
}


def ends(rng: Random) -> Question:
    """Ask for the result of an operator at the ends of floats."""
    name = rng.choice(list(ENDS))
    x = rng.choice(ENDS[name])[0]
    right = repr(float(oracle.function(name)(x)))
    others = rng.sample([value for value in VALUES if value not in (right, "an error")], 2)
    rows = [(f"{n}({at:g})", repr(float(oracle.function(n)(at)))) for n, ats in ENDS.items() for at, _ in ats]
    return choose(
        rng,
        f"What does {name}({x}) return?",
        right,
        {value: VALUES[value] for value in (*others, "an error")},
        f"Every float has an answer: {name}({x}) = {right}. All ends together:",
        drawing=table(rows),
        numbers={"name": name, "x": x, "right": right},
    )


def opposite_sigmoid(rng: Random) -> Question:
    """Ask for the sigmoid of -x, with that of x given."""
    x = rng.choice([-3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0])
    sigmoid = oracle.function("sigmoid")
    given, answer = round(float(sigmoid(x)), 3), round(float(sigmoid(-x)), 3)
    return Question(
        f"sigmoid({x}) is {given:.3f}. What is sigmoid({-x}), to three decimals?",
        answer,
        f"The sigmoid is a soft step that is symmetric around one half: sigmoid(x) + sigmoid(-x) = 1, so 1 - {given:.3f} = "
        f"{answer:.3f}.",
        {given: "the sigmoid rises, so it differs on the two sides", -given: "a sigmoid is never below 0"},
        drawing=table([(f"sigmoid({at})", round(float(sigmoid(at)), 3)) for at in (-abs(x), 0.0, abs(x))]),
        tolerance=6e-4,
        numbers={"x": x},
    )


def closeness(rng: Random) -> Question:
    """Ask whether two numbers are close."""
    digits, exponent = rng.randint(2, 8), rng.choice([-9, -6, 0, 4, 8])
    x = float(f"{digits}e{exponent}")
    y = float(f"{digits}.{rng.choice(['000001', '00001', '001', '5'])}e{exponent}")
    answer = int(oracle.function("is_close")(x, y))
    limit = max(1e-5 * y, 1e-8)
    compare = "at most" if answer else "more than"
    return Question(
        "Numbers are close if they differ by at most 1e-5 of the larger one, or by at most 1e-8. What does "
        f"is_close({x:.7g}, {y:.7g}) return?",
        answer,
        f"They differ by {abs(x - y):.2g}. Allowed is the larger of 1e-5 * {y:.7g} = {1e-5 * y:.2g} and 1e-8. "
        f"{abs(x - y):.2g} is {compare} {limit:.2g}.",
        {1 - answer: "closeness goes by the size of the numbers, and near 0 by 1e-8"},
        numbers={"x": x, "y": y},
    )


def derivative(rng: Random) -> Question:
    """Ask for the derivative of inv, log or relu, times d."""
    name, x, d = rng.choice(["inv_grad", "log_grad", "relu_grad"]), rng.choice([-4, -2, 2, 4, 5]), rng.choice([2, 3, 10, 20])
    x = abs(x) if name == "log_grad" else x
    answer = float(oracle.function(name)(x, d))
    rules = {
        "inv_grad": ("1 / x", "-1 / (x * x)", -1 / (x * x)),
        "log_grad": ("log(x)", "1 / x", 1 / x),
        "relu_grad": ("relu(x)", "1 above 0, else 0", float(x > 0)),
    }
    function, rule, slope = rules[name]
    wrong: Wrong = {slope: "the derivative is multiplied by d"}
    if name == "inv_grad":
        wrong |= {-answer: "1 / x falls, so the sign is minus", d / x: "this is d times the function, not its derivative"}
    if name == "relu_grad":
        wrong = {d * (1 - float(x > 0)): "relu is flat below 0, and rises as fast as x above"}
    return Question(
        f"What is {name}({x}, {d}): the derivative of {function} at x = {x}, times d = {d}?",
        answer,
        f"The derivative of {function} is {rule}. At {x} it is {format_value(slope)}; times {d} that is "
        f"{format_value(answer)}.",
        wrong,
        tolerance=5e-4,
        numbers={"name": name, "x": x, "d": d},
    )


def sum_of_comparisons(rng: Random) -> Question:
    """Ask for a sum of comparisons, which are numbers."""
    xs, limit = [rng.randint(1, 6) for _ in range(6)], rng.randint(2, 5)
    lt = oracle.function("lt")
    answers = [float(lt(x, limit)) for x in xs]
    return Question(
        f"Comparisons return numbers. What is the sum of lt(x, {limit}) over the elements x of {xs}?",
        int(sum(answers)),
        f"lt(x, {limit}) is 1.0 where x is less than {limit}, and 0.0 elsewhere, also where they are equal:",
        {
            sum(x <= limit for x in xs): f"{limit} is not less than {limit}",
            sum(x > limit for x in xs): "lt(x, y) asks whether x is the smaller one",
        },
        drawing=table([xs, [int(a) for a in answers]]),
        numbers={"xs": xs, "limit": limit},
    )


QUESTIONS = (ends, opposite_sigmoid, closeness, derivative, sum_of_comparisons)

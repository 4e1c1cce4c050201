"""Questions on task 1.3: the chain rule of one call."""

from random import Random

from .. import oracle
from ..engine import Engine
from .figures import fork, signed
from .question import Question, Wrong, format_value


def speeds(rng: Random) -> Question:
    """Ask for the derivative of a chain."""
    a, b, c = rng.randint(2, 5), rng.randint(2, 5), rng.choice([-3, -2, 2, 3])
    x = Engine().scalar(1.0)
    (c * (b * (a * x))).backward()
    answer = float(x.grad or 0.0)
    return Question(
        f"y = {a} * x, z = {b} * y, and w = {c} * z. How much does w grow when x grows by 1?",
        answer,
        f"Speeds are multiplied along a chain: {a} * {b} * {signed(c)} = {format_value(answer)}.",
        {a + b + c: "speeds along a chain are multiplied, not added", c: "this is how fast w grows with z"},
        drawing=f"x --{a}--> y --{b}--> z --{c}--> w",
        numbers={"a": a, "b": b, "c": c},
    )


def square(rng: Random) -> Question:
    """Ask for the derivatives that the call of x * x sends."""
    x, d = rng.randint(2, 9), rng.choice([2, 3, 5, 10])
    leaf = Engine().scalar(float(x))
    call = (leaf * leaf).history
    answer = tuple(value for _, value in oracle.function("chain_rule")(call, float(d)))
    return Question(
        f"x is {x}. The result of the call x * x receives {d}. Which derivatives are in the pairs of chain_rule(call, "
        f"{d}), in order?",
        answer,
        f"x is an input twice, and is there twice: each time with {d} * {x} = {d * x}. Whoever adds up gets {2 * d * x}.",
        {
            (2 * d * x,): "a pair for each input; the sum is for others to make",
            (d * x,): "x is an input twice, so there are two pairs",
            (x, x): "the derivatives are multiplied by d",
        },
        drawing=fork(f"x = {x} <-- {d * x}", f"x = {x} <-- {d * x}", f"Mul <-- {d}"),
        numbers={"x": x, "d": d},
    )


def constants(rng: Random) -> Question:
    """Ask which derivatives a call with constants sends."""
    c, x, d, is_first = rng.randint(2, 9), rng.randint(2, 9), rng.choice([2, 3, 10]), rng.random() < 0.5
    engine = Engine()
    leaf = engine.scalar(float(x))
    call = (c * leaf if is_first else leaf * c).history
    answer = tuple(value for _, value in oracle.function("chain_rule")(call, float(d)))
    text = f"{c} * x" if is_first else f"x * {c}"
    both = (d * x, d * c) if is_first else (d * c, d * x)
    wrong: Wrong = {both: "nobody wants the derivative of a constant", (c,): "the derivatives are multiplied by d"}
    if is_first:
        wrong[(d * x,)] = "constants were dropped before the inputs were paired, so the pairs have shifted"
    else:
        wrong[(d * x,)] = "this is the derivative by the constant"
    return Question(
        f"x is {x}, and {c} is a constant. The result of the call {text} receives {d}. Which derivatives are in the pairs "
        f"of chain_rule(call, {d})?",
        answer,
        f"backward returns {format_value(both)}, one for each input. The constant is left out with its derivative, and x "
        f"keeps its own: {d} * {c} = {d * c}.",
        wrong,
        numbers={"c": c, "x": x, "d": d, "first": is_first},
    )


def total(rng: Random) -> Question:
    """Ask for the derivative of x * x + c * x."""
    c, x, d = rng.randint(2, 5), rng.randint(2, 5), rng.choice([1, 2, 10])
    leaf = Engine().scalar(float(x))
    (leaf * leaf + c * leaf).backward(float(d))
    answer = float(leaf.grad or 0.0)
    return Question(
        f"x is {x}, and x * x + {c} * x receives {d}. How much does x receive in all?",
        answer,
        f"Add passes {d} to both sides. x * x sends {d} * {x} twice, {c} * x sends {d} * {c}: {d * x} + {d * x} + {d * c} "
        f"= {format_value(answer)}.",
        {
            d * (x + c): "x is used twice in x * x, and receives twice",
            2 * d * x: "x is used in both terms",
            **({2 * x + c: "all derivatives are multiplied by d"} if d > 1 else {}),
        },
        numbers={"c": c, "x": x, "d": d},
    )


def unit(rng: Random) -> Question:
    """Ask for the derivative of a hidden unit by its weight."""
    w, x, b, d = rng.choice([-2, -1, 1, 2]), rng.choice([-3, -2, 2, 3, 4]), rng.choice([-1, 1]), rng.choice([1, 2, 5])
    engine = Engine()
    weight, data = engine.scalar(float(w)), engine.scalar(float(x))
    (weight * data + float(b)).relu().backward(float(d))
    answer, inside = float(weight.grad or 0.0), w * x + b
    passes = f"{inside} is above 0, so relu passes {d} back" if inside > 0 else f"{inside} is below 0, so relu passes 0 back"
    wrong: Wrong = (
        {d * w: "w receives d times x, the other input", d * inside: "relu passes d back, not d times its value"}
        if inside > 0
        else {d * x: "relu is flat below 0, and passes 0 back", d: "relu is flat below 0, and passes 0 back"}
    )
    return Question(
        f"w = {w}, x = {x}, b = {b}. The result of relu(w * x + b) receives {d}. How much does w receive?",
        answer,
        f"w * x + b = {inside}. {passes[0].upper()}{passes[1:]}, add passes the same back, and w receives "
        f"{d if inside > 0 else 0} * {signed(x)} = {format_value(answer)}.",
        wrong,
        numbers={"w": w, "x": x, "b": b, "d": d},
    )


QUESTIONS = (speeds, square, constants, total, unit)

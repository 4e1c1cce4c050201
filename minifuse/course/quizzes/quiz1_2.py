"""Questions on task 1.2: what backward returns."""

from random import Random
from typing import Any

from ...core.scalar import Scalar
from .. import oracle
from ..variables import Context
from .figures import fork
from .question import Question, Wrong, choose, format_value


def backward(name: str, inputs: tuple[float, ...], d: float) -> tuple[float, ...]:
    """Run forward and backward of a scalar function."""
    function: Any = oracle.function(name)
    context = Context()
    function.forward(context, *map(float, inputs))
    return tuple(float(x) for x in function.backward(context, float(d)))


def product(rng: Random) -> Question:
    """Ask for the backward pass of Mul."""
    x, y, d = rng.randint(2, 9), rng.randint(2, 9), rng.choice([1, 2, 3, 10])
    answer = backward("Mul", (x, y), d)
    return Question(
        f"Mul.forward got x = {x} and y = {y}. Which tuple does Mul.backward return for d = {d}?",
        answer,
        f"x * y grows by y when x grows by 1, so x receives d * y = {d} * {y}, and y receives d * x = {d} * {x}.",
        {
            (d * x, d * y): "each input receives d times the other input",
            **({(y, x): "each derivative is multiplied by d"} if d > 1 else {}),
        },
        drawing=fork(f"x = {x} <-- {d * y}", f"y = {y} <-- {d * x}", f"Mul <-- d = {d}"),
        numbers={"x": x, "y": y, "d": d},
    )


def inverse(rng: Random) -> Question:
    """Ask for the backward pass of Inv, Neg or ReLU."""
    name, x, d = rng.choice(["Inv", "Inv", "ReLU", "Neg"]), rng.choice([-4, -2, 2, 4]), rng.choice([4, 8, 16])
    (answer,) = backward(name, (x,), d)
    slope = {"Inv": f"-1 / (x * x) = -1 / {x * x}", "ReLU": f"{int(x > 0)}, since {x} is {'above' if x > 0 else 'below'} 0"}
    wrong: dict[str, Wrong] = {
        "Inv": {-answer: "1 / x falls on both sides of 0", d / x: "this is d times the value, not times the derivative"},
        "ReLU": {d - answer: "the derivative is 1 above 0 and 0 below", answer / d: "d is left out"}
        if x > 0
        else {d: "relu is flat below 0"},
        "Neg": {d: "-x falls when x grows", -x: "Neg needs nothing of its input", -1: "d is left out"},
    }
    return Question(
        f"{name}.forward got x = {x}. What does {name}.backward return for d = {d}?",
        answer,
        f"The derivative is {slope.get(name, '-1 everywhere')}. Times {d} that is {format_value(answer)}.",
        wrong[name],
        numbers={"name": name, "x": x, "d": d},
    )


def from_value(rng: Random) -> Question:
    """Ask for a derivative that follows from the value of the function."""
    name, s, d = rng.choice(["Sigmoid", "Exp"]), rng.choice([0.2, 0.4, 0.6, 0.8, 0.9]), rng.choice([1, 2, 10])
    x = Scalar(s / (1 - s) if name == "Sigmoid" else s).log()
    leaf = Scalar(x.data, requires_grad=True)
    (leaf.sigmoid() if name == "Sigmoid" else leaf.exp()).backward()
    answer = round(float(leaf.grad.data if isinstance(leaf.grad, Scalar) else leaf.grad or 0.0) * d, 9)
    again = 1 / (1 + 2.718281828**-s) if name == "Sigmoid" else 2.718281828**s
    if name == "Sigmoid":
        text = f"The derivative of a sigmoid is s * (1 - s), with its own value s: {s} * {1 - s:.1f} = {s * (1 - s):.2f}."
        wrong: Wrong = {s * d: "s is the value; the derivative is s * (1 - s)", (1 - s) * d: "the derivative is s * (1 - s)"}
    else:
        text = f"The derivative of exp is its own value, {s}, which forward saves."
        wrong = {again * d: "the value is not put through exp again", (s - 1) * d: "the derivative of exp is exp"}
    return Question(
        f"{name}.forward returned {s}, and saved it. What does backward return for d = {d}?",
        answer,
        f"{text} Times d = {d} that is {format_value(answer)}.",
        wrong,
        tolerance=5e-3,
        numbers={"name": name, "s": s, "d": d},
    )


NEEDS = {
    "Mul": "both inputs",
    "Add": "nothing",
    "Neg": "nothing",
    "LT": "nothing",
    "Log": "its input",
    "ReLU": "its input",
    "Exp": "its own value",
    "Sigmoid": "its own value",
}
REASONS = {
    "Exp": " The derivative of exp is exp, which forward has computed.",
    "Sigmoid": " The derivative is s * (1 - s), with s = sigmoid(x). If forward saved x, exp would be computed twice.",
}


def needs(rng: Random) -> Question:
    """Ask what forward must save."""
    name = rng.choice(list(NEEDS))
    at, elsewhere = (
        ((2.0, 3.0), (-1.0, 5.0)) if name in ("Mul", "Add", "LT") else ((2.0,), (-1.0,) if name == "ReLU" else (7.0,))
    )
    here, there = backward(name, at, 1.0), backward(name, elsewhere, 1.0)
    right = "nothing" if here == there else NEEDS[name]
    same = "its derivative is the same for all inputs"
    mistakes = {
        "nothing": "its derivative depends on the inputs",
        "both inputs": same if right == "nothing" else "it has one input",
        "its input": same if right == "nothing" else "the derivative is easier to get from something else",
        "its own value": same if right == "nothing" else "the derivative is not made of the value",
    }
    of = "does not depend on the inputs" if right == "nothing" else f"is made of {right}"
    return choose(
        rng,
        f"What should {name}.forward save for backward?",
        right,
        {text: mistake for text, mistake in mistakes.items() if text != right},
        f"With d = 1, backward returns {format_value(here)} for {format_value(at)} and {format_value(there)} for "
        f"{format_value(elsewhere)}: it {of}.{REASONS.get(name, '')}",
        numbers={"name": name, "right": right},
    )


def comparison(rng: Random) -> Question:
    """Ask for the backward pass of a comparison."""
    name, x, y, d = rng.choice(["LT", "EQ"]), rng.randint(1, 5), rng.randint(1, 5), rng.choice([2, 3, 5])
    answer = backward(name, (x, y), d)
    return Question(
        f"{name}.forward got {x} and {y}. Which tuple does {name}.backward return for d = {d}?",
        answer,
        "A comparison is flat: when an input grows a little, its value stays as it is. So both inputs receive 0.",
        {(d, d): "this is what Add returns", (d, -d): "this is what a difference returns", (1, 1): "comparisons are flat"},
        numbers={"name": name, "x": x, "y": y, "d": d},
    )


QUESTIONS = (product, inverse, from_value, needs, comparison)

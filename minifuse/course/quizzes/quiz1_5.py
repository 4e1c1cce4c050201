"""Questions on task 1.5: networks of numbers, their loss, and a step."""

import math
from random import Random

from .. import oracle
from ..engine import Engine
from ..learning import network_output
from ..questions.learning import Layer, Net
from .figures import signed, table, terms
from .question import Question, Wrong, format_value


def parameters(rng: Random) -> Question:
    """Ask for the number of parameters of a network."""
    inputs, hidden = rng.randint(2, 4), rng.randint(2, 10)
    network = oracle.function("ScalarNetwork")(Engine(), inputs, hidden, Random(0))
    answer = len(network.parameters())
    return Question(
        f"How many numbers does ScalarNetwork(engine, inputs={inputs}, hidden={hidden}, random) learn?",
        answer,
        f"The first layer has {inputs} * {hidden} weights and {hidden} biases, the last one {hidden} weights and 1 bias: "
        f"{inputs * hidden} + {hidden} + {hidden} + 1 = {answer}.",
        {
            inputs * hidden + hidden: "this is one layer, or both without biases",
            inputs * hidden + 2 * hidden: "the output has a bias, too",
        },
        numbers={"inputs": inputs, "hidden": hidden},
    )


def unit(rng: Random) -> Question:
    """Ask for the number that goes into the sigmoid of a small network."""
    first = [[rng.choice([-2, -1, 1, 2]) for _ in range(2)] for _ in range(2)]
    biases, last, bias = (
        [rng.choice([-1, 0, 1]) for _ in range(2)],
        [rng.choice([-2, 1, 3]) for _ in range(2)],
        rng.choice([-1, 1]),
    )
    x = [rng.choice([-1, 1, 2]), rng.choice([-1, 1, 2])]
    import numpy as np

    net = Net(
        Layer(np.array(first, float), np.array(biases, float), np.array(x, float)),
        Layer(np.array(last, float)[:, None], np.array([bias], float), np.zeros(0)),
    )
    p = float(network_output(net)[0])
    answer = round(math.log(p / (1 - p)), 6)
    units = [x[0] * first[0][j] + x[1] * first[1][j] + biases[j] for j in range(2)]
    rows = [
        (
            j,
            terms([(first[0][j], x[0]), (first[1][j], x[1])]) + f" + {signed(biases[j])}",
            units[j],
            max(units[j], 0),
            last[j],
        )
        for j in range(2)
    ]
    return Question(
        f"A network has these two hidden units and the last bias {bias}. For x = {x[0]}, y = {x[1]}, which number goes "
        "into the sigmoid?",
        answer,
        f"The last layer weighs what relu leaves: {terms([(last[j], max(units[j], 0)) for j in range(2)])} + "
        f"{signed(bias)} = {format_value(answer)}.",
        {
            sum(last[j] * units[j] for j in range(2)) + bias: "relu is left out: a unit below 0 says nothing",
            max(answer, 0.0) if answer < 0 else answer - bias: "there is no relu before the sigmoid"
            if answer < 0
            else "the last bias is left out",
        },
        figure=table(
            [(j, first[0][j], first[1][j], biases[j], last[j]) for j in range(2)], ("unit", "w", "v", "b", "last weight")
        ),
        drawing=table(rows, ("unit", "w * x + v * y + b", "", "relu", "last weight")),
        tolerance=1e-4,
        numbers={"first": first, "biases": biases, "last": last, "bias": bias, "x": x},
    )


def loss(rng: Random) -> Question:
    """Ask for a loss in multiples of log(2)."""
    engine, count = Engine(), rng.choice([2, 4])
    powers, labels = [rng.randint(1, 4) for _ in range(count)], [rng.randint(0, 1) for _ in range(count)]
    right = [1 / 2**k for k in powers]
    ps = [p if label else 1 - p for p, label in zip(right, labels, strict=True)]
    value = oracle.function("scalar_loss")([engine.scalar(p) for p in ps], labels)
    answer = round(value.value / math.log(2), 9)
    rows = [(p, label, r, k) for p, label, r, k in zip(ps, labels, right, powers, strict=True)]
    wrong: Wrong = {
        float(sum(powers)): "the loss is the mean over the points, not their sum",
        round(sum(-math.log2(p) for p in ps) / count, 9): "for a point of kind 0 the loss is -log(1 - p)",
        -answer: "a loss is -log, and never below 0",
    }
    if 0 not in labels:
        del wrong[round(sum(-math.log2(p) for p in ps) / count, 9)]
    return Question(
        "A network says these probabilities p of kind 1. The loss is a multiple of log(2) = 0.693. Which multiple?",
        answer,
        f"-log(1 / 2**k) is k * log(2), and the mean is ({' + '.join(map(str, powers))}) / {count} = "
        f"{format_value(answer)}.",
        wrong,
        figure=table([(p, label) for p, label in zip(ps, labels, strict=True)], ("p", "label")),
        drawing=table(rows, ("p", "label", "of the right kind", "times log(2)")),
        tolerance=1e-3,
        numbers={"ps": ps, "labels": labels},
    )


def step(rng: Random) -> Question:
    """Ask for a weight after a step."""
    start, target, rate = rng.choice([0, 1, 2, 5]), rng.choice([3, 4, 8, 10]), rng.choice([0.1, 0.25, 0.5])
    engine = Engine()
    w = engine.scalar(float(start))
    ((w - target) * (w - target)).backward()
    slope = float(w.grad or 0.0)
    oracle.function("scalar_step")([w], rate)
    answer = round(w.value, 9)
    return Question(
        f"The loss is (w - {target}) * (w - {target}), and w = {start}. Which value has w after a step with rate {rate}?",
        answer,
        f"The gradient is 2 * (w - {target}) = {format_value(slope)}. A step goes by -rate times the gradient: {start} "
        f"- {rate} * ({format_value(slope)}) = {format_value(answer)}.",
        {
            start + rate * slope: "a step goes downhill, against the gradient",
            start - rate * slope / 2: "the gradient of the square is 2 * (w - target)",
            start - slope: "the gradient is multiplied by the rate",
        },
        tolerance=1e-6,
        numbers={"start": start, "target": target, "rate": rate},
    )


def kept(rng: Random) -> Question:
    """Ask for a weight after two steps whose gradients are kept."""
    target, rate = rng.choice([2, 4, 8, 10, 20]), rng.choice([0.25, 0.5, 0.125])
    engine = Engine()
    values, steps = {}, []
    for is_kept in (True, False):
        w = engine.scalar(0.0)
        for _ in range(2):
            ((w - target) * (w - target)).backward()
            steps += [(w.value, float(w.grad or 0.0))] if is_kept else []
            w.value -= rate * float(w.grad or 0.0)
            w.grad = w.grad if is_kept else None
        values[is_kept] = round(w.value, 9)
    return Question(
        f"The loss is (w - {target}) * (w - {target}), w begins at 0, the rate is {rate}. Somebody forgets to set the "
        "gradient to None after a step. Which value has w after the second step?",
        values[True],
        "The second backward adds to what is there, so the second step goes along the sum of two gradients. Without the "
        f"mistake w would be {format_value(values[False])}.",
        {values[False]: "this is w without the mistake", rate * 2 * target: "this is w after the first step"},
        drawing=table(steps, ("w before", "gradient kept")),
        tolerance=1e-6,
        numbers={"target": target, "rate": rate},
    )


QUESTIONS = (parameters, unit, loss, step, kept)

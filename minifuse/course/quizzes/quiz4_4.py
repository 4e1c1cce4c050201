"""Questions on task 4.4: softmax of large numbers, derivatives, and dropout."""

import math
from random import Random

import numpy as np

from ..engine import Engine
from ..networks import dropout, log_softmax, maximum, softmax
from .figures import signed, table
from .question import Question, choose, format_value


def flat(values: object) -> list[float]:
    """Return nested lists as a flat list."""
    floats: list[float] = np.asarray(values, float).reshape(-1).tolist()
    return floats


def shifted(rng: Random) -> Question:
    """Ask for a softmax of scores that are all larger."""
    scores, more = rng.sample([-1, 0, 1, 2, 3], 3), rng.choice([10, 100, 1000, -100])
    engine = Engine()
    before = flat(softmax(engine.tensor([[float(x) for x in scores]]), 1).tolist())
    after = flat(softmax(engine.tensor([[float(x + more) for x in scores]]), 1).tolist())
    k = rng.randrange(3)
    given, answer = round(before[k], 3), round(after[k], 3)
    rows = [(str(x), x - max(scores), math.exp(x - max(scores)), p) for x, p in zip(scores, before, strict=True)]
    return Question(
        f"The softmax of the scores {scores} is {format_value(tuple(round(p, 3) for p in before))}. {abs(more)} is "
        f"{'added to' if more > 0 else 'subtracted from'} all scores. Which probability has the one that was {scores[k]}, "
        "to three decimals?",
        answer,
        f"Numerator and denominator grow alike, so nothing changes: {given}. Less the largest, both rows of scores are the "
        "same:",
        {
            round(1 / 3, 3): "the differences between the scores stay",
            1.0: "the differences between the scores stay",
            0.0: "the differences between the scores stay",
        },
        drawing=table(rows, ("score", "less the largest", "exp", "softmax")),
        tolerance=6e-4,
        numbers={"scores": scores, "more": more, "k": k},
    )


def difference(rng: Random) -> Question:
    """Ask for the difference of two log-probabilities."""
    scores = rng.sample([-3, -1, 0, 1, 2, 4, 7], 3)
    logs = flat(log_softmax(Engine().tensor([[float(x) for x in scores]]), 1).tolist())
    i, j = rng.sample(range(3), 2)
    answer = round(logs[i] - logs[j], 9)
    rows = [(str(x), value, math.exp(value)) for x, value in zip(scores, logs, strict=True)]
    return Question(
        f"The scores are {scores}. How much larger is the log-softmax of the score {scores[i]} than that of the score "
        f"{scores[j]}?",
        answer,
        f"log-softmax = scores - log(sum of exp), and the same is subtracted from both: {scores[i]} - {signed(scores[j])} "
        f"= {format_value(answer)}.",
        {
            -answer: "it is the other way round",
            round(
                math.exp(logs[i]) - math.exp(logs[j]), 3
            ): "this is the difference of the probabilities, not of their logarithms",
        },
        drawing=table(rows, ("score", "log-softmax", "softmax")),
        tolerance=1e-4,
        numbers={"scores": scores, "i": i, "j": j},
    )


def overflow(rng: Random) -> Question:
    """Ask for the result of a naive softmax."""
    large = rng.choice([800, 1000, 2000])
    scores = rng.choice([[large, 0], [-large, -large - 1], [1, 2], [large, large], [0, -large]])
    with np.errstate(all="ignore"):
        powers = np.exp(np.array(scores, float))
        naive = powers / powers.sum()
    good = flat(softmax(Engine().tensor([[float(x) for x in scores]]), 1).tolist())
    right = "nan" if math.isnan(naive[0]) else f"{naive[0]:.3f}"
    options = {"an error": "floats end in inf, 0 and nan, not in errors"}
    if right == "nan":
        why = f"exp({scores[0]}) is {powers[0]:g}, and {powers[0]:g} / {powers.sum():g} is nan. Less the largest, it "
        why += f"is {good[0]:.3f}."
        options[f"{good[0]:.3f}"] = "this is the right softmax; the powers overflow, or are all 0"
    else:
        why = f"exp({scores[0]}) = {powers[0]:.4g} and the sum {powers.sum():.4g} are fine: {right}."
        options |= {"inf": "no power is infinite here", "nan": "nothing overflows here, and the sum is not 0"}
    return choose(
        rng,
        f"Somebody computes exp(scores) / exp(scores).sum() for the scores {scores}. What is the first probability?",
        right,
        options,
        why,
        numbers={"scores": scores, "right": right},
    )


def loss_gradient(rng: Random) -> Question:
    """Ask for the gradient of the loss with respect to a score."""
    ps = rng.choice([(0.5, 0.3, 0.2), (0.7, 0.2, 0.1), (0.6, 0.1, 0.3), (0.8, 0.15, 0.05)])
    label, k = rng.randrange(3), rng.randrange(3)
    engine = Engine()
    scores = engine.tensor([[math.log(p) for p in ps]])
    (-(log_softmax(scores, 1) * [[float(j == label) for j in range(3)]]).sum()).backward()
    answer = round(flat(scores.grad.tolist() if scores.grad else [])[k], 9)
    said = (
        f"At the label that is y - 1 = {ps[k]} - 1 = {format_value(answer)}"
        if k == label
        else f"Elsewhere that is y = {ps[k]}"
    )
    return Question(
        f"A network says that three kinds have the probabilities {ps}. The right one is number {label}, counted from 0, "
        f"and the loss is -log of its probability. What is the gradient with respect to score {k}?",
        answer,
        f"The gradient is what the network said, less what is so. {said}.",
        {
            -answer: "the loss falls when the score of the label grows, and grows with the others",
            round(answer + 1 if k == label else answer - 1, 9): "1 is subtracted at the label only",
            round(ps[k] * (1 - ps[k]), 9): "this is sigmoid's derivative, which has no neighbors",
        },
        tolerance=1e-3,
        numbers={"ps": ps, "label": label, "k": k},
    )


def largest(rng: Random) -> Question:
    """Ask for the gradient of a maximum with equal elements."""
    x, d = [rng.randint(1, 8) for _ in range(5)], rng.choice([6, 12])
    for at in rng.sample(range(5), rng.randint(2, 3)):
        x[at] = 9
    engine = Engine()
    row = engine.tensor([[float(v) for v in x]])
    engine.backward(maximum(row, 1), [[float(d)]])
    answer = tuple(flat(row.grad.tolist() if row.grad else []))
    count = x.count(9)
    first = x.index(9)
    return Question(
        f"The maximum of the row {x} receives {d}. What do the five elements receive?",
        answer,
        f"The largest gets all of it, and {count} equal ones share: {d} / {count} = {format_value(d / count)} each.",
        {
            tuple(
                float(d) if v == 9 else 0.0 for v in x
            ): "equal elements share; together they get what the maximum received",
            tuple(float(d) if k == first else 0.0 for k in range(5)): "equal elements share; the order does not matter",
        },
        numbers={"x": x, "d": d},
    )


def dropped(rng: Random) -> Question:
    """Ask for an element after dropout."""
    rate, x, is_training = rng.choice([0.2, 0.5, 0.75]), rng.choice([2, 3, 4, 6, 8]), rng.random() < 0.7
    engine, seed = Engine(), 0
    while not flat(dropout(engine.tensor([[float(x)]]), rate, seed, True).tolist())[0]:
        seed += 1
    answer = round(flat(dropout(engine.tensor([[float(x)]]), rate, seed, is_training).tolist())[0], 9)
    kept = x / (1 - rate)
    when = "in this training step" if is_training else "when the network is used"
    return Question(
        f"An element is {x}, the rate of dropout is {rate}, and the mask of a training step keeps the element. What "
        f"does dropout return for it {when}?",
        answer,
        f"What is kept is multiplied by 1 / (1 - {rate}) = {format_value(1 / (1 - rate))}, so that sums stay as large as "
        f"they were: {format_value(kept)}."
        if is_training
        else f"Nothing is dropped and nothing is scaled then: the mask did it in training. It stays {x}.",
        {
            (x if is_training else kept): "in training, what is kept is scaled up"
            if is_training
            else "the mask scales in training only",
            x * (1 - rate): "values are scaled up in training, not down when the network is used",
            x / rate if rate != 0.5 else 0: "rate is the part that is dropped" if rate != 0.5 else "this element is kept",
        },
        tolerance=1e-6,
        numbers={"rate": rate, "x": x, "training": is_training},
    )


QUESTIONS = (shifted, difference, overflow, loss_gradient, largest, dropped)

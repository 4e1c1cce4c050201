"""Questions on task 4.6: velocities, means, what is left out, and rates."""

import math
from random import Random

from .question import Question, Wrong, format_value


def velocity(rng: Random) -> Question:
    """Ask for the velocity after two steps."""
    momentum, first, second = rng.choice([0.5, 0.8, 0.9]), rng.choice([1, 2, 4]), rng.choice([-1, -2, 3])
    answer = round(momentum * first + second, 6)
    return Question(
        f"SGD has momentum {momentum} and no weight decay. A parameter has the gradients {first}, then {second}. Which "
        "velocity has it after both steps?",
        answer,
        f"The first velocity is {first}. Then {momentum} * {first} + {second} = {format_value(answer)}.",
        {
            round(momentum * first + (1 - momentum) * second, 6): "the gradient is added as it is, not a part of it",
            second: "the velocity keeps a part of the gradients before",
            first + second: "the old velocity is multiplied by the momentum",
        },
        tolerance=1e-6,
        numbers={"momentum": momentum, "first": first, "second": second},
    )


def constant(rng: Random) -> Question:
    """Ask for the velocity that a constant gradient leads to."""
    momentum, gradient = rng.choice([0.5, 0.75, 0.8, 0.9]), rng.choice([1, 2, 3])
    answer = round(gradient / (1 - momentum), 6)
    return Question(
        f"With momentum {momentum} the gradient of a parameter is {gradient} in every step. Which velocity does it come "
        "near to after many steps?",
        answer,
        f"A velocity that no longer changes is {momentum} * v + {gradient} = v, so v = {gradient} / (1 - {momentum}) = "
        f"{format_value(answer)}.",
        {
            gradient: "the gradients add up, as long as they agree",
            round(gradient * momentum, 6): "each step adds the whole gradient",
            round(gradient * (1 - momentum), 6): "divide by 1 - momentum, do not multiply",
        },
        tolerance=1e-6,
        numbers={"momentum": momentum, "gradient": gradient},
    )


def decay(rng: Random) -> Question:
    """Ask for a value after a step with weight decay."""
    value, gradient = rng.choice([2, 4, 10]), rng.choice([1, -1, 3])
    rate, weight_decay = rng.choice([0.1, 0.5]), rng.choice([0.1, 0.5])
    d = gradient + weight_decay * value
    answer = round(value - rate * d, 6)
    return Question(
        f"A parameter has the value {value} and the gradient {gradient}. Which value has it after the first step of SGD "
        f"with rate {rate}, momentum 0.9 and weight decay {weight_decay}?",
        answer,
        f"d = {gradient} + {weight_decay} * {value} = {format_value(d)}, which is the first velocity: {value} - {rate} * "
        f"{format_value(d)} = {format_value(answer)}.",
        {
            round(value - rate * gradient, 6): "the decay is added to the gradient",
            round(value - rate * (gradient - weight_decay * value), 6): "the decay pulls the value towards 0",
            round(value - rate * 1.9 * d, 6): "the velocity is 0 before the first step",
        },
        tolerance=1e-6,
        numbers={"value": value, "gradient": gradient, "rate": rate, "decay": weight_decay},
    )


def first_step(rng: Random) -> Question:
    """Ask for the size of Adam's first step."""
    gradient, rate = rng.choice([0.001, 0.5, 20, 3000]), rng.choice([0.1, 0.01])
    return Question(
        f"How far does the first step of Adam move a parameter whose gradient is {gradient}? The rate is {rate}, betas are "
        "(0.9, 0.999) and epsilon is 0.",
        rate,
        f"m / (1 - 0.9) is the gradient, and v / (1 - 0.999) its square. So the step is {rate} * {gradient} / {gradient} = "
        f"{rate}, however large the gradient is.",
        {
            gradient * rate: "Adam divides by the size of the gradient",
            rate * 0.1 / math.sqrt(0.001): "the bias of both means is corrected",
            rate * 0.1: "m is divided by 1 - beta1, and v by 1 - beta2",
        },
        tolerance=rate * 1e-3,
        numbers={"gradient": gradient, "rate": rate},
    )


def left_out(rng: Random) -> Question:
    """Ask for t of a parameter that had no gradient in some steps."""
    steps = rng.randint(5, 9)
    without = sorted(rng.sample(range(1, steps), rng.randint(1, 3)))
    answer = steps - len(without)
    return Question(
        f"Adam has taken {steps} steps. In {len(without)} of them the gradient of a parameter was None. Which t has this "
        "parameter now?",
        answer,
        f"Where it has no gradient it is left out, with its state: {steps} - {len(without)} = {answer}.",
        {steps: "each parameter counts its own steps", len(without): "these are the steps that left it out"},
        numbers={"steps": steps, "without": without},
    )


def schedule(rng: Random) -> Question:
    """Ask for a rate of the schedule."""
    warmup, peak, length = rng.choice([2, 4, 5]), rng.choice([1.0, 0.5, 0.1]), rng.choice([4, 6, 12])
    steps = warmup + length
    place, part, why = rng.choice(
        [
            (0, 1 / warmup, "the warm-up begins with peak / warmup"),
            (warmup + length // 2, 0.5, "half of the cosine is over, where it is one half"),
            (steps, 0.0, "after the last step the rate is 0"),
        ]
    )
    wrong: Wrong = {peak: "this is the rate in steps warmup - 1 and warmup"}
    if place == 0:
        wrong[0.0] = "a step with rate 0 would change nothing"
    else:
        wrong[peak * (steps - place) / steps or peak / length] = "the rate falls along half a cosine after the warm-up"
    return choose_number(place, steps, warmup, peak, peak * part, why, wrong)


def choose_number(step: int, steps: int, warmup: int, peak: float, answer: float, why: str, wrong: Wrong) -> Question:
    """Return the question for a rate."""
    return Question(
        f"A schedule has {steps} steps, a warm-up of {warmup}, and the peak {peak}. Which rate has step {step}, counted "
        "from 0?",
        answer,
        f"It is {format_value(answer)}: {why}.",
        wrong,
        tolerance=1e-6,
        numbers={"step": step, "steps": steps, "warmup": warmup, "peak": peak},
    )


QUESTIONS = (velocity, constant, decay, first_step, left_out, schedule)

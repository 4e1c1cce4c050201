"""Questions on task 7.2: normalized rows, lost digits, and what backward needs."""

from random import Random

import numpy as np

from .question import Question


def normalized(rng: Random) -> Question:
    """Ask for an element of a layer norm."""
    mean, distance, at = rng.randint(-5, 9), rng.randint(1, 4), rng.randint(0, 1)
    gain, bias = rng.randint(2, 5), rng.randint(1, 3)
    row = [mean - distance, mean + distance]
    sign = 2 * at - 1
    return Question(
        f"A layer norm with epsilon 0, gain {gain} and bias {bias} for both columns gets the row {row}. What is "
        f"element {at} of the result?",
        sign * gain + bias,
        f"The mean is {mean} and the variance {distance**2}, so the normalized row is [-1, 1]: {sign} * {gain} + {bias}.",
        {
            sign: "gain and bias follow",
            sign * distance * gain + bias: "the distance is divided by the root of the variance",
        },
        numbers={"row": row, "gain": gain, "bias": bias, "at": at},
    )


def constant_row(rng: Random) -> Question:
    """Ask for the scale of a row."""
    variance, epsilon, root = rng.choice(
        [(0.0, 0.01, 0.1), (0.0, 0.0001, 0.01), (0.09, 0.16, 0.5), (0.0, 0.25, 0.5), (0.39, 0.25, 0.8), (3.5, 0.5, 2.0)]
    )
    wrong = 1 / (variance**0.5 + epsilon)
    return Question(
        f"A row has variance {variance}, and epsilon is {epsilon}. By which factor is x - mean multiplied, before gain?",
        round(1 / root, 9),
        f"1 / sqrt({variance} + {epsilon}) = 1 / {root}.",
        {round(wrong, 6): "epsilon is added below the root", root: "it is divided by the root"},
        tolerance=1e-4,
        numbers={"variance": variance, "epsilon": epsilon},
    )


def lost_digits(rng: Random) -> Question:
    """Ask what a difference of large numbers is in float32."""
    first = rng.choice([4096, 8192, 16384, 32768, 65536])
    x = np.array([first, first + 1], np.float32)
    found = float((x * x).mean(dtype=np.float32) - x.mean(dtype=np.float32) ** 2)
    return Question(
        f"In float32, what is mean(x * x) - mean(x) ** 2 of the row [{first}, {first + 1}]? A float32 has 24 bits, so whole "
        f"numbers above {2**24:,} are rounded to even ones, and larger ones more: near 2 ** 30 to multiples of 128.",
        found,
        f"The squares are about {first**2:,}, where the 0.25 of the true variance is less than a rounding. Subtract the "
        "mean first: then the squares are 0.25 exactly.",
        {0.25: "this is the true variance", 0.5: "this is the distance to the mean"},
        numbers={"row": [first, first + 1]},
    )


def kept(rng: Random) -> Question:
    """Ask how many numbers are kept for the backward pass."""
    rows, width = rng.choice([32, 100, 128]), rng.choice([16, 50, 64])
    return Question(
        f"x has {rows} rows of {width} numbers. Backward keeps the normalized rows, and 1 / sqrt(variance + epsilon) of "
        "each row. How many numbers are these?",
        rows * width + rows,
        f"{rows} * {width} + {rows} = {rows * width + rows:,}.",
        {2 * rows * width: "a row has one scale, not one for each element", rows * width: "the scales are kept too"},
        numbers={"rows": rows, "width": width},
    )


def last_gradient(rng: Random) -> Question:
    """Ask for the last element of a gradient."""
    gradient = [rng.randint(-6, 9) / 2 for _ in range(3)]
    if sum(gradient) == 0:
        gradient[0] += 1
    return Question(
        f"A row x of 4 numbers goes through a layer norm. The gradient of x is {gradient[0]}, {gradient[1]}, {gradient[2]} "
        "and a fourth number. Which one?",
        -sum(gradient),
        "The same number added to all elements moves the mean, and nothing else: so the gradient of a row sums to 0.",
        {sum(gradient): "the sum of all four is 0", 0.0: "it is what makes the sum 0"},
        tolerance=1e-9,
        numbers={"gradient": gradient},
    )


def gain_gradient(rng: Random) -> Question:
    """Ask for the gradient of a gain."""
    column = rng.randint(0, 1)
    normal = [[-1, 1], [1, -1], [-1, 1]]
    gradient = [[rng.randint(1, 9) for _ in range(2)] for _ in range(3)]
    right = sum(row[column] * g[column] for row, g in zip(normal, gradient, strict=True))
    return Question(
        f"The normalized rows are {normal}, the gradient of the result is {gradient}. What is the gradient "
        f"of gain[{column}]?",
        right,
        f"The sum of normalized times gradient over all rows of column {column}.",
        {
            sum(g[column] for g in gradient): "this is the gradient of the bias",
            right / 3: "gradients of rows are added, not averaged",
        },
        tolerance=1e-6,
        numbers={"normal": normal, "gradient": gradient, "column": column},
    )


QUESTIONS = (normalized, constant_row, lost_digits, kept, last_gradient, gain_gradient)

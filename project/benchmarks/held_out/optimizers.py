"""Steps of optimizers, as functions of tensors."""

from typing import Any

import numpy as np

from .program import Program


def adam(m: Any, p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * g * g
    unbiased = mean / (1 - 0.9**7), square / (1 - 0.999**7)
    return p - 1e-2 * unbiased[0] / (m.sqrt(unbiased[1]) + 1e-8), mean, square


def exact_adam(p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean, square = mean + (g - mean) * (1 - 0.9), square + (g**2 - square) * (1 - 0.999)
    rate = 1e-2 * np.sqrt(1 - 0.999**7) / (1 - 0.9**7)
    return p - rate * mean / (np.sqrt(square) + 1e-8 * np.sqrt(1 - 0.999**7)), mean, square


def lion(m: Any, p: Any, g: Any, mean: Any) -> Any:
    direction = 0.9 * mean + 0.1 * g
    sign = m.where(direction > 0, 1.0, m.where(direction < 0, -1.0, 0 * direction))
    return p - 1e-2 * (sign + 0.1 * p), 0.99 * mean + 0.01 * g


def exact_lion(p: Any, g: Any, mean: Any) -> Any:
    return p * (1 - 1e-3) - 1e-2 * np.sign(9 * mean + g), mean + 0.01 * (g - mean)


def rmsprop(m: Any, p: Any, g: Any, square: Any, momentum: Any) -> Any:
    square = 0.99 * square + 0.01 * g * g
    momentum = 0.9 * momentum + g / (m.sqrt(square) + 1e-8)
    return p - 1e-2 * momentum, square, momentum


def exact_rmsprop(p: Any, g: Any, square: Any, momentum: Any) -> Any:
    square = square - 0.01 * (square - np.square(g))
    momentum = 0.9 * momentum + g / (square**0.5 + 1e-8)
    return p - 0.01 * momentum, square, momentum


def adafactor(m: Any, p: Any, g: Any, rows: Any, columns: Any) -> Any:
    squares = g * g + 1e-30
    rows = 0.9 * rows + 0.1 * squares.mean(1)
    columns = 0.9 * columns + 0.1 * squares.mean(0)
    update = g * m.rsqrt(rows / rows.mean())[:, None] * m.rsqrt(columns)
    norm = m.sqrt((update * update).mean())
    return p - 1e-2 * update / m.where(norm > 1.0, norm, 0 * norm + 1), rows, columns


def exact_adafactor(p: Any, g: Any, rows: Any, columns: Any) -> Any:
    rows, columns = 0.9 * rows + 0.1 * np.mean(g**2, 1), 0.9 * columns + 0.1 * np.mean(g**2, 0)
    update = g / np.sqrt(np.outer(rows, columns) / rows.mean())
    return p - 1e-2 * update / max(1, np.sqrt(np.mean(update**2))), rows, columns


def moments(draw: Any, h: int, w: int) -> list[Any]:
    return [*[draw.normal(h, w) for _ in range(3)], draw.uniform(0.1, 1, h, w)]


PROGRAMS = [
    Program(
        "Adam step",
        "Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1",
        adam,
        exact_adam,
        moments,
        gpu=(3001, 3011),
        cpu=(997, 1009),
        tiny=(3, 4),
    ),
    Program(
        "Lion step",
        "Chen et al., Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2",
        lion,
        exact_lion,
        lambda draw, h, w: [draw.normal(h, w) for _ in range(3)],
        gpu=(4001, 3989),
        cpu=(997, 1009),
        tiny=(3, 4),
    ),
    Program(
        "RMSprop step with momentum",
        "Tieleman and Hinton, Neural Networks for Machine Learning, 2012, lecture 6.5; momentum as in Graves, 2013, eq. 40",
        rmsprop,
        exact_rmsprop,
        lambda draw, h, w: [draw.normal(h, w), draw.normal(h, w), draw.uniform(0.1, 1, h, w), draw.normal(h, w)],
        gpu=(3001, 3011),
        cpu=(997, 1009),
        tiny=(3, 4),
    ),
    Program(
        "Adafactor step with factored moments",
        "Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018, algorithm 4",
        adafactor,
        exact_adafactor,
        lambda draw, h, w: [draw.normal(h, w), draw.normal(h, w), draw.uniform(0.5, 1, h), draw.uniform(0.5, 1, w)],
        gpu=(4001, 4003),
        cpu=(997, 1531),
        tiny=(3, 4),
    ),
]

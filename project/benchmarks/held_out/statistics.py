"""Finance, statistics, quantization, and functions of permuted arrays."""

import math
from typing import Any

import numpy as np

from .activations import erf
from .program import Program, softmax


def normal_cdf(m: Any, x: Any) -> Any:
    return 0.5 * (1 + m.erf(x / math.sqrt(2)))


def black_scholes(m: Any, s: Any, k: Any, t: Any, r: Any, v: Any) -> Any:
    deviation = v * m.sqrt(t)
    d1 = (m.log(s / k) + (r + 0.5 * v * v) * t) / deviation
    return s * normal_cdf(m, d1) - k * m.exp(-r * t) * normal_cdf(m, d1 - deviation)


def exact_black_scholes(s: Any, k: Any, t: Any, r: Any, v: Any) -> Any:
    forward, deviation = s * np.exp(r * t), v * np.sqrt(t)
    d2 = np.log(forward / k) / deviation - deviation / 2
    a, b = (0.5 + 0.5 * erf(d / math.sqrt(2)) for d in (d2 + deviation, d2))
    return np.exp(-r * t) * (forward * a - k * b)


def options(draw: Any, n: int) -> list[Any]:
    bounds = ((80, 120), (80, 120), (0.25, 2), (0.01, 0.05), (0.1, 0.5))
    return [draw.uniform(low, high, n) for low, high in bounds]


def binomial(m: Any, price: Any, spot: Any, strike: Any) -> Any:
    value = price
    for k in range(1, 5):
        held = 0.99 * (0.52 * value[:, 1:] + 0.48 * value[:, :-1])
        value = m.maximum(held, strike - spot[:, k:] * 0.97**k)
    return value


def exact_binomial(price: Any, spot: Any, strike: Any) -> Any:
    for k in range(4):
        n = price.shape[1] - 1
        held = 0.99 * (0.48 * price[:, :n] + 0.52 * price[:, 1 : n + 1])
        price = np.fmax(held, strike - spot[:, -n:] * 0.97 ** (k + 1))
    return price


def column_variance(m: Any, x: Any) -> Any:
    return x.var(0)


def exact_column_variance(x: Any) -> Any:
    return (np.square(x).sum(0) - x.sum(0) ** 2 / len(x)) / (len(x) - 1)


def int8(m: Any, x: Any) -> Any:
    scale = abs(x).max(1, keepdim=True) / 127
    return np.round(x / scale) * scale


def torch_int8(x: Any) -> Any:
    scale = x.abs().amax(1, keepdim=True) / 127
    return (x / scale).round() * scale


def exact_int8(x: Any) -> Any:
    steps = x * (127 / np.abs(x).max(1, keepdims=True))
    return np.rint(steps) / (127 / np.abs(x).max(1, keepdims=True))


def permuted_softmax(m: Any, x: Any) -> Any:
    return x.permute(2, 0, 1).softmax(1) * 2


def exact_permuted_softmax(x: Any) -> Any:
    return 2 * np.transpose(softmax(x, 0), (2, 0, 1))


PROGRAMS = [
    Program(
        "Black-Scholes call prices",
        "Black and Scholes, The Pricing of Options and Corporate Liabilities, 1973, eq. 13",
        black_scholes,
        exact_black_scholes,
        options,
        gpu=(8_000_009,),
        cpu=(800_011,),
        tiny=(7,),
        gradients=5,
        gradient_tolerance=1e-3,
    ),
    Program(
        "four backward steps of a binomial tree",
        "Cox, Ross and Rubinstein, Option Pricing: A Simplified Approach, 1979, sec. 5; American put",
        binomial,
        exact_binomial,
        lambda draw, n, d: [draw.uniform(0, 30, n, d), draw.uniform(80, 120, n, d), draw.uniform(90, 110, n, 1)],
        gpu=(8009, 1009),
        cpu=(1009, 997),
        tiny=(3, 7),
    ),
    Program(
        "variance of columns",
        "Chan, Golub and LeVeque, Algorithms for Computing the Sample Variance, 1983, eq. 1.1",
        column_variance,
        exact_column_variance,
        lambda draw, n, d: [draw.normal(n, d)],
        gpu=(30011, 997),
        cpu=(10007, 331),
        tiny=(7, 3),
        gradients=1,
    ),
    Program(
        "int8 round trip of rows of 30,011",
        "Dettmers, Lewis, Belkada and Zettlemoyer, LLM.int8(), 2022, eq. 1",
        int8,
        exact_int8,
        lambda draw, n, d: [draw.normal(n, d)],
        gpu=(997, 30011),
        cpu=(97, 30011),
        tiny=(3, 7),
        torch=torch_int8,
        tolerance=0.05,  # a quotient near a half is rounded to either side: a step is about 4.5 / 127
    ),
    Program(
        "softmax of a permuted array",
        "Goodfellow, Bengio and Courville, Deep Learning, 2016, eq. 6.29, along the first dim of three",
        permuted_softmax,
        exact_permuted_softmax,
        lambda draw, a, b, c: [draw.normal(a, b, c)],
        gpu=(257, 331, 293),
        cpu=(97, 131, 151),
        tiny=(4, 3, 5),
        gradients=1,
    ),
]

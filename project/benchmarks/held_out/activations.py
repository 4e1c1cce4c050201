"""Activations and feed-forward layers."""

import math
from typing import Any

import numpy as np

from .program import Program


def erf(x: Any) -> Any:
    """Compute the error function by the standard library, element by element, or by a table of it for large arrays."""
    if x.size <= 1 << 16:
        return np.vectorize(math.erf, otypes=[float])(x)
    grid = np.linspace(-6, 6, 1 << 16)
    values, slopes = np.vectorize(math.erf)(grid), 2 / math.sqrt(math.pi) * np.exp(-grid * grid)
    x = np.clip(x, -6, 6)
    k = np.minimum(((x + 6) / 12 * (grid.size - 1)).astype(np.int64), grid.size - 2)
    step = grid[1] - grid[0]
    t = (x - grid[k]) / step
    rise = values[k + 1] - values[k]
    curve = (slopes[k] * step - rise) * (1 - t) - (slopes[k + 1] * step - rise) * t
    return values[k] + t * rise + t * (1 - t) * curve


def swiglu(m: Any, x: Any, gate: Any, up: Any) -> Any:
    return m.nn.functional.silu(x @ gate) * (x @ up)


def exact_swiglu(x: Any, gate: Any, up: Any) -> Any:
    z = x @ gate
    return z / (1 + np.exp(-z)) * (x @ up)


def geglu(m: Any, x: Any) -> Any:
    half = x.shape[1] // 2
    return m.nn.functional.gelu(x[:, :half]) * x[:, half:]


def exact_geglu(x: Any) -> Any:
    a, b = np.split(x, 2, axis=1)
    return a * 0.5 * (1 + erf(a / math.sqrt(2))) * b


def mish(m: Any, x: Any) -> Any:
    return x * m.tanh(m.nn.functional.softplus(x))


def exact_mish(x: Any) -> Any:
    e = np.exp(x)
    return x * (e * e + 2 * e) / (e * e + 2 * e + 2)


def hard_swish(m: Any, x: Any) -> Any:
    return x * (m.clip(x, -3.0, 3.0) + 3) / 6


def exact_hard_swish(x: Any) -> Any:
    return np.where(x >= 3, x, np.where(x <= -3, 0, x * (x + 3) / 6))


PROGRAMS = [
    Program(
        "SwiGLU layer",
        "Shazeer, GLU Variants Improve Transformer, 2020, eq. 5",
        swiglu,
        exact_swiglu,
        lambda draw, n, d, h: [draw.normal(n, d), draw.normal(d, h) / 16, draw.normal(d, h) / 16],
        gpu=(4093, 512, 1361),
        cpu=(509, 256, 677),
        tiny=(3, 4, 5),
        gradients=3,
    ),
    Program(
        "GEGLU of halves of rows",
        "Shazeer, GLU Variants Improve Transformer, 2020, eq. 5",
        geglu,
        exact_geglu,
        lambda draw, n, d: [draw.normal(n, d)],
        gpu=(8191, 4094),
        cpu=(997, 2018),
        tiny=(3, 6),
        gradients=1,
    ),
    Program(
        "mish",
        "Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019, eq. 1",
        mish,
        exact_mish,
        lambda draw, n: [draw.normal(n)],
        gpu=(25_000_009,),
        cpu=(3_000_017,),
        tiny=(11,),
        gradients=1,
    ),
    Program(
        "hard swish of a strided input",
        "Howard et al., Searching for MobileNetV3, 2019, sec. 5.2",
        hard_swish,
        exact_hard_swish,
        lambda draw, n, d: [draw.normal(n, 2 * d)[:, ::2]],
        gpu=(4999, 5003),
        cpu=(997, 1009),
        tiny=(3, 5),
        gradients=1,
    ),
]

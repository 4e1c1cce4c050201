"""Networks and statistics whose arrays are joined, stacked, rolled, padded and cut."""

from typing import Any

import numpy as np

from .program import Program, softmax


def rotary_halves(m: Any, x: Any, cosines: Any, sines: Any) -> Any:
    a, b = x.chunk(2, -1)
    rotated = m.cat((-b, a), -1)
    return x * cosines + rotated * sines


def exact_rotary_halves(x: Any, cosines: Any, sines: Any) -> Any:
    d = x.shape[-1] // 2
    z = (x[..., :d] + 1j * x[..., d:]) * (cosines + 1j * sines)[:, :d]
    return np.concatenate([z.real, z.imag], -1)


def rotary_inputs(draw: Any, n: int, heads: int, size: int, d: int) -> list[Any]:
    angles = np.outer(np.arange(size), 10000.0 ** (-2 * np.arange(d // 2) / d))
    angles = np.hstack([angles, angles])
    return [draw.normal(n, heads, size, d), draw.constant(np.cos(angles)), draw.constant(np.sin(angles))]


def swiglu(m: Any, x: Any, w: Any, out: Any) -> Any:
    gate, value = (x @ w).chunk(2, dim=-1)
    return (m.nn.functional.silu(gate) * value) @ out


def exact_swiglu(x: Any, w: Any, out: Any) -> Any:
    d = w.shape[1] // 2
    gate = x @ w[:, :d]
    return (gate / (1 + np.exp(-gate)) * (x @ w[:, d:])) @ out


def temporal_shift(m: Any, x: Any) -> Any:
    fold = x.shape[2] // 4
    zeros = m.zeros_like(x[:, :1, :fold])
    later = m.cat([x[:, 1:, :fold], zeros], dim=1)
    earlier = m.cat([zeros, x[:, :-1, fold : 2 * fold]], dim=1)
    return m.relu(m.cat([later, earlier, x[:, :, 2 * fold :]], dim=2))


def exact_temporal_shift(x: Any) -> Any:
    fold = x.shape[2] // 4
    y = x.copy()
    y[:, :-1, :fold], y[:, -1, :fold] = x[:, 1:, :fold], 0
    y[:, 1:, fold : 2 * fold], y[:, 0, fold : 2 * fold] = x[:, :-1, fold : 2 * fold], 0
    return np.maximum(y, 0)


def shifted_windows(m: Any, x: Any) -> Any:
    n, h, w, c = x.shape
    y = m.roll(x, shifts=(-2, -2), dims=(1, 2))
    windows = y.reshape(n, h // 4, 4, w // 4, 4, c)
    mean = windows.mean((2, 4), keepdim=True)
    y = (windows - mean).reshape(n, h, w, c)
    return x + m.roll(y, shifts=(2, 2), dims=(1, 2))


def exact_shifted_windows(x: Any) -> Any:
    rows, cols = (((np.arange(size) - 2) % size) // 4 for size in x.shape[1:3])
    sums = np.zeros((len(x), rows.max() + 1, cols.max() + 1, x.shape[3]))
    np.add.at(sums, (slice(None), rows[:, None], cols), x)
    return 2 * x - sums[:, rows[:, None], cols] / 16


def im2col(m: Any, x: Any, weight: Any) -> Any:
    h, w = x.shape[2:]
    padded = m.nn.functional.pad(x, (1, 1, 1, 1))
    columns = m.stack([padded[:, :, i : i + h, j : j + w] for i in range(3) for j in range(3)], dim=2)
    return m.einsum("nckhw,ock->nohw", columns, weight)


def exact_im2col(x: Any, weight: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight.reshape(*weight.shape[:2], 3, 3), optimize=True)


def kronecker(m: Any, gradient: Any, a: Any, b: Any, damping: Any) -> Any:
    curvature = m.kron(a, b) + damping * m.eye(a.shape[0] * b.shape[0], dtype=a.dtype, device=a.device)
    return curvature @ gradient.flatten()


def exact_kronecker(gradient: Any, a: Any, b: Any, damping: Any) -> Any:
    return (a @ gradient @ b.T + damping * gradient).ravel()


def symmetric(draw: Any, n: int) -> Any:
    """Draw a symmetric matrix, the second moments of activations."""
    x = np.random.default_rng(n).standard_normal((n, 2 * n))
    return draw.constant(x @ x.T / (2 * n))


def soft_argmax(m: Any, scores: Any) -> Any:
    n, k, h, w = scores.shape
    p = scores.flatten(2).softmax(-1).reshape(n, k, h, w)
    row, col = (m.linspace(-1, 1, size, dtype=p.dtype, device=p.device) for size in (h, w))
    y, x = m.meshgrid(row, col, indexing="ij")
    return m.stack([(p * x).sum((2, 3)), (p * y).sum((2, 3))], dim=-1)


def exact_soft_argmax(scores: Any) -> Any:
    n, k, h, w = scores.shape
    p = softmax(scores.reshape(n, k, h * w)).reshape(n, k, h, w)
    return np.stack([p.sum(2) @ np.linspace(-1, 1, w), p.sum(3) @ np.linspace(-1, 1, h)], -1)


PROGRAMS = [
    Program(
        "rotary embedding of halves",
        "Black et al., GPT-NeoX-20B: An Open-Source Autoregressive Language Model, 2022, sec. 2.1.1",
        rotary_halves,
        exact_rotary_halves,
        rotary_inputs,
        gpu=(8, 16, 2003, 128),
        cpu=(2, 8, 1009, 64),
        tiny=(2, 2, 3, 4),
        gradients=1,
    ),
    Program(
        "SwiGLU by chunks",
        "Shazeer, GLU Variants Improve Transformer, 2020, eq. 6",
        swiglu,
        exact_swiglu,
        lambda draw, n, d, hidden: [draw.normal(n, d), draw.normal(d, 2 * hidden) / 16, draw.normal(hidden, d) / 16],
        gpu=(4093, 509, 1376),
        cpu=(509, 251, 688),
        tiny=(3, 2, 5),
        gradients=3,
    ),
    Program(
        "temporal shift of channels",
        "Lin, Gan and Han, TSM: Temporal Shift Module for Efficient Video Understanding, 2019, sec. 3.2",
        temporal_shift,
        exact_temporal_shift,
        lambda draw, n, t, c, side: [draw.normal(n, t, c, side, side)],
        gpu=(8, 16, 128, 56),
        cpu=(2, 8, 32, 56),
        tiny=(2, 3, 4, 2),
    ),
    Program(
        "centered windows after a cyclic shift",
        "Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, 2021, sec. 3.2 and fig. 4",
        shifted_windows,
        exact_shifted_windows,
        lambda draw, n, side, c: [draw.normal(n, side, side, c)],
        gpu=(64, 56, 192),
        cpu=(8, 56, 96),
        tiny=(2, 8, 3),
        gradients=1,
    ),
    Program(
        "convolution by stacked columns",
        "Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for Document Processing, 2006, sec. 3",
        im2col,
        exact_im2col,
        lambda draw, n, c, o, side: [draw.normal(n, c, side, side), draw.normal(o, c, 9) / 8],
        gpu=(32, 32, 64, 57),
        cpu=(4, 16, 32, 57),
        tiny=(2, 2, 3, 4),
        gradients=2,
    ),
    Program(
        "curvature of Kronecker factors times a gradient",
        "Martens and Grosse, Optimizing Neural Networks with Kronecker-factored Approximate Curvature, 2015, eq. 5",
        kronecker,
        exact_kronecker,
        lambda draw, n, k: [draw.normal(n, k), symmetric(draw, n), symmetric(draw, k), draw.uniform(0.1, 1, 1)],
        gpu=(131, 61),
        cpu=(61, 37),
        tiny=(3, 2),
        gradients=4,
    ),
    Program(
        "expected coordinates of heat maps",
        "Nibali et al., Numerical Coordinate Regression with Convolutional Neural Networks, 2018, eq. 2",
        soft_argmax,
        exact_soft_argmax,
        lambda draw, n, k, h, w: [draw.normal(n, k, h, w)],
        gpu=(64, 17, 96, 72),
        cpu=(8, 17, 64, 48),
        tiny=(2, 2, 3, 4),
        gradients=1,
    ),
]

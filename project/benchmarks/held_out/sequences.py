"""Recurrent cells, attention and positional encodings."""

import math
from typing import Any

import numpy as np

from .program import Program, softmax


def sigmoid(x: Any) -> Any:
    """Compute the logistic function by NumPy."""
    return 0.5 * (1 + np.tanh(x / 2))


def lstm(m: Any, x: Any, h: Any, c: Any, w: Any, u: Any, bias: Any) -> Any:
    d = h.shape[1]
    z = x @ w + h @ u + bias
    i, f, g, o = z[:, :d], z[:, d : 2 * d], z[:, 2 * d : 3 * d], z[:, 3 * d :]
    return m.sigmoid(o) * m.tanh(m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g))


def exact_lstm(x: Any, h: Any, c: Any, w: Any, u: Any, bias: Any) -> Any:
    i, f, g, o = np.split(np.hstack([x, h]) @ np.vstack([w, u]) + bias, 4, axis=1)
    return sigmoid(o) * np.tanh(sigmoid(f) * c + sigmoid(i) * np.tanh(g))


def gru(m: Any, x: Any, h: Any, w: Any, u: Any) -> Any:
    d = h.shape[1]
    a, b = x @ w, h @ u[:, : 2 * d]
    r, z = m.sigmoid(a[:, :d] + b[:, :d]), m.sigmoid(a[:, d : 2 * d] + b[:, d:])
    new = m.tanh(a[:, 2 * d :] + (r * h) @ u[:, 2 * d :])
    return z * h + (1 - z) * new


def exact_gru(x: Any, h: Any, w: Any, u: Any) -> Any:
    (wr, wz, wh), (ur, uz, uh) = np.split(w, 3, axis=1), np.split(u, 3, axis=1)
    r, z = sigmoid(x @ wr + h @ ur), sigmoid(x @ wz + h @ uz)
    return z * h + (1 - z) * np.tanh(x @ wh + (r * h) @ uh)


def alibi(m: Any, q: Any, k: Any, v: Any, slopes: Any, distance: Any) -> Any:
    scores = q @ k.mT / math.sqrt(q.shape[-1]) - slopes * distance
    return scores.softmax(-1) @ v


def exact_alibi(q: Any, k: Any, v: Any, slopes: Any, distance: Any) -> Any:
    scores = np.einsum("bhid,bhjd->bhij", q, k, optimize=True) / math.sqrt(q.shape[-1])
    return np.matmul(softmax(scores - slopes * distance), v)


def alibi_inputs(draw: Any, n: int, heads: int, size: int, d: int) -> list[Any]:
    position = np.arange(size)
    distance = np.where(position[:, None] < position, np.inf, np.subtract.outer(position, position).astype(float))
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    finite = np.minimum(distance, 1e9)
    return [*[draw.normal(n, heads, size, d) for _ in range(3)], draw.constant(slopes[:, None, None]), draw.constant(finite)]


def sliding_window(m: Any, q: Any, k: Any, v: Any, allowed: Any) -> Any:
    scores = m.where(allowed, q @ k.mT / math.sqrt(q.shape[-1]), -1e9)
    return scores.softmax(-1) @ v


def exact_sliding_window(q: Any, k: Any, v: Any, allowed: Any) -> Any:
    scores = np.matmul(q, np.swapaxes(k, 1, 2)) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True)) * allowed
    return np.matmul(e / e.sum(-1, keepdims=True), v)


def window_inputs(draw: Any, n: int, size: int, d: int, width: int) -> list[Any]:
    apart = np.subtract.outer(np.arange(size), np.arange(size))
    return [*[draw.normal(n, size, d) for _ in range(3)], draw.constant((apart >= 0) & (apart < width))]


def soft_cap(m: Any, q: Any, k: Any, v: Any) -> Any:
    scores = 5.0 * m.tanh(q @ k.mT / math.sqrt(q.shape[-1]) / 5.0)
    return scores.softmax(-1) @ v


def exact_soft_cap(q: Any, k: Any, v: Any) -> Any:
    scores = np.einsum("nid,njd->nij", q, k, optimize=True) / math.sqrt(q.shape[-1])
    return np.einsum("nij,nje->nie", softmax(5 * np.tanh(scores / 5)), v, optimize=True)


def linear_attention(m: Any, q: Any, k: Any, v: Any) -> Any:
    q, k = m.nn.functional.elu(q) + 1, m.nn.functional.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(1)[:, :, None])


def exact_linear_attention(q: Any, k: Any, v: Any) -> Any:
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    moments, sums = np.einsum("nsd,nse->nde", k, v, optimize=True), k.sum(1)
    return np.einsum("nsd,nde->nse", q, moments, optimize=True) / np.einsum("nsd,nd->ns", q, sums)[:, :, None]


def relative_bias(m: Any, q: Any, k: Any, v: Any, table: Any, index: Any) -> Any:
    heads, size = q.shape[1], q.shape[2]
    bias = table.index_select(0, index).reshape(size, size, heads).permute(2, 0, 1)
    return (q @ k.mT / math.sqrt(q.shape[-1]) + bias).softmax(-1) @ v


def exact_relative_bias(q: Any, k: Any, v: Any, table: Any, index: Any) -> Any:
    size = q.shape[2]
    bias = np.moveaxis(table[index.reshape(size, size)], 2, 0)
    return softmax(q @ np.swapaxes(k, 2, 3) / math.sqrt(q.shape[-1]) + bias) @ v


def swin_inputs(draw: Any, n: int, heads: int, side: int, d: int) -> list[Any]:
    y, x = (np.subtract.outer(z.ravel(), z.ravel()) + side - 1 for z in np.indices((side, side)))
    index = (y * (2 * side - 1) + x).ravel()
    qkv = [draw.normal(n, heads, side * side, d) for _ in range(3)]
    return [*qkv, draw.normal((2 * side - 1) ** 2, heads), draw.constant(index)]


def rotary(m: Any, x: Any, cosines: Any, sines: Any) -> Any:
    pairs = x.reshape(*x.shape[:3], -1, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    c, s = cosines[:, None, :], sines[:, None, :]
    return (a * c - b * s) * (a * s + b * c)


def exact_rotary(x: Any, cosines: Any, sines: Any) -> Any:
    z = (x[..., ::2] + 1j * x[..., 1::2]) * (cosines + 1j * sines)[:, None]
    return z.real * z.imag


def rotary_inputs(draw: Any, n: int, size: int, heads: int, d: int) -> list[Any]:
    angles = np.outer(np.arange(size), 10000.0 ** (-2 * np.arange(d // 2) / d))
    return [draw.normal(n, size, heads, d), draw.constant(np.cos(angles)), draw.constant(np.sin(angles))]


PROGRAMS = [
    Program(
        "LSTM cell",
        "Hochreiter and Schmidhuber, Long Short-Term Memory, 1997, with the forget gate of Gers et al., 2000, eq. 1 to 5",
        lstm,
        exact_lstm,
        lambda draw, n, i, d: [
            draw.normal(n, i),
            *[draw.normal(n, d) for _ in range(2)],
            draw.normal(i, 4 * d) / 16,
            draw.normal(d, 4 * d) / 16,
            draw.normal(4 * d),
        ],
        gpu=(4093, 509, 512),
        cpu=(509, 251, 256),
        tiny=(3, 2, 3),
        gradients=6,
    ),
    Program(
        "GRU cell",
        "Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, eq. 5 to 8",
        gru,
        exact_gru,
        lambda draw, n, i, d: [draw.normal(n, i), draw.normal(n, d), draw.normal(i, 3 * d) / 16, draw.normal(d, 3 * d) / 16],
        gpu=(4093, 509, 512),
        cpu=(509, 251, 256),
        tiny=(3, 2, 3),
        gradients=4,
    ),
    Program(
        "attention with linear biases",
        "Press, Smith and Lewis, Train Short, Test Long: Attention with Linear Biases, 2022, sec. 3",
        alibi,
        exact_alibi,
        alibi_inputs,
        gpu=(4, 8, 997, 64),
        cpu=(1, 4, 509, 64),
        tiny=(1, 2, 5, 3),
        gradients=3,
    ),
    Program(
        "sliding-window attention",
        "Beltagy, Peters and Cohan, Longformer: The Long-Document Transformer, 2020, sec. 3.1",
        sliding_window,
        exact_sliding_window,
        window_inputs,
        gpu=(16, 1009, 64, 128),
        cpu=(4, 499, 64, 64),
        tiny=(2, 6, 3, 2),
        gradients=3,
    ),
    Program(
        "attention with soft-capped scores",
        "Gemma Team, Gemma 2: Improving Open Language Models at a Practical Size, 2024, sec. 2",
        soft_cap,
        exact_soft_cap,
        lambda draw, n, size, d: [draw.normal(n, size, d) for _ in range(3)],
        gpu=(32, 997, 64),
        cpu=(4, 509, 64),
        tiny=(2, 5, 3),
        gradients=3,
    ),
    Program(
        "linear attention",
        "Katharopoulos, Vyas, Pappas and Fleuret, Transformers are RNNs, 2020, eq. 5 and 7",
        linear_attention,
        exact_linear_attention,
        lambda draw, n, size, d: [draw.normal(n, size, d) for _ in range(3)],
        gpu=(32, 4001, 64),
        cpu=(8, 1009, 64),
        tiny=(2, 5, 3),
        gradients=3,
    ),
    Program(
        "window attention with a relative position bias",
        "Liu et al., Swin Transformer: Hierarchical Vision Transformer using Shifted Windows, 2021, eq. 4",
        relative_bias,
        exact_relative_bias,
        swin_inputs,
        gpu=(512, 6, 7, 32),
        cpu=(64, 4, 7, 32),
        tiny=(2, 2, 2, 3),
        gradients=4,
    ),
    Program(
        "rotary embedding of adjacent pairs",
        "Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021, eq. 34",
        rotary,
        exact_rotary,
        rotary_inputs,
        gpu=(8, 2003, 16, 64),
        cpu=(2, 1009, 8, 64),
        tiny=(2, 3, 2, 4),
        gradients=1,
    ),
]

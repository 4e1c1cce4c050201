"""Attention, graphs, embeddings and losses that read and add by index, or under a mask."""

import math
from typing import Any

import numpy as np

from .program import Program, softmax


def masked_attention(m: Any, q: Any, k: Any, v: Any, is_word: Any) -> Any:
    size = q.shape[2]
    allowed = m.tril(m.ones(size, size, dtype=m.bool, device=q.device)) & is_word[:, None, None, :]
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~allowed, float("-inf"))
    return m.softmax(scores, dim=-1) @ v


def exact_masked_attention(q: Any, k: Any, v: Any, is_word: Any) -> Any:
    scores = np.einsum("bhid,bhjd->bhij", q, k, optimize=True) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True)) * is_word[:, None, None]
    e *= np.tri(q.shape[2])
    return np.matmul(e / e.sum(-1, keepdims=True), v)


def padded_inputs(draw: Any, n: int, heads: int, size: int, d: int) -> list[Any]:
    lengths = np.random.default_rng(7).integers(size // 2 + 1, size + 1, n)
    return [*[draw.normal(n, heads, size, d) for _ in range(3)], draw.constant(np.arange(size) < lengths[:, None])]


def bucketed_bias(m: Any, q: Any, k: Any, v: Any, table: Any) -> Any:
    position = m.arange(q.shape[2], device=q.device)
    distance = (position[None, :] - position[:, None]).clamp(-16, 16) + 16
    bias = table[distance].permute(2, 0, 1)
    return (q @ k.transpose(-2, -1) + bias).softmax(-1) @ v


def exact_bucketed_bias(q: Any, k: Any, v: Any, table: Any) -> Any:
    scores = np.matmul(q, np.swapaxes(k, 2, 3))
    for (i, j), _ in np.ndenumerate(scores[0, 0]):
        scores[:, :, i, j] += table[min(max(j - i, -16), 16) + 16]
    return np.matmul(softmax(scores), v)


def graph_convolution(m: Any, x: Any, w: Any, source: Any, target: Any) -> Any:
    n = x.shape[0]
    h = x @ w
    degree = h.new_ones(n).index_add(0, target, h.new_ones(len(target)))
    scale = degree.rsqrt()
    messages = h[source] * (scale[source] * scale[target])[:, None]
    return m.relu((h * (scale * scale)[:, None]).index_add(0, target, messages))


def exact_graph_convolution(x: Any, w: Any, source: Any, target: Any) -> Any:
    n = len(x)
    scale = 1 / np.sqrt(1 + np.bincount(target, minlength=n))
    y = scale[:, None] * (x @ w)
    sums = np.stack([y[:, k] + np.bincount(target, y[source, k], n) for k in range(w.shape[1])], 1)
    return np.maximum(scale[:, None] * sums, 0)


def graph_attention(m: Any, h: Any, a: Any, b: Any, source: Any, target: Any) -> Any:
    n, c = h.shape
    scores = m.nn.functional.elu((h @ a)[source] + (h @ b)[target]).exp()
    total = h.new_zeros(n).scatter_add(0, target, scores)
    weight = scores / total[target]
    return m.zeros_like(h).scatter_add(0, target[:, None].expand(-1, c), weight[:, None] * h[source])


def exact_graph_attention(h: Any, a: Any, b: Any, source: Any, target: Any) -> Any:
    scores = (h @ a)[source] + (h @ b)[target]
    scores = np.exp(np.where(scores > 0, scores, np.exp(np.minimum(scores, 0)) - 1))
    total = np.bincount(target, scores, len(h))
    sums = [np.bincount(target, scores * h[source, k], len(h)) for k in range(h.shape[1])]
    return np.stack(sums, 1) / np.where(total > 0, total, 1)[:, None]


def edges(draw: Any, n: int, degree: int) -> list[Any]:
    """Draw the sources and the targets of edges between n nodes."""
    return [draw.integers(n, n * degree), draw.integers(n, n * degree)]


def bag_of_words(m: Any, table: Any, words: Any, w: Any) -> Any:
    is_word = words != 0
    vectors = table[words].masked_fill(~is_word[..., None], 0.0)
    mean = vectors.sum(1) / is_word.sum(1, keepdim=True).clamp(min=1).to(table.dtype)
    return m.log_softmax(mean @ w, -1)


def exact_bag_of_words(table: Any, words: Any, w: Any) -> Any:
    z = np.stack([table[row[row != 0]].sum(0) / max((row != 0).sum(), 1) for row in words]) @ w
    return np.log(softmax(z))


def double_q(m: Any, q: Any, action: Any, reward: Any, alive: Any, online: Any, target: Any) -> Any:
    chosen = q.gather(1, action[:, None]).squeeze(1)
    best = online.argmax(1, keepdim=True)
    value = m.take_along_dim(target, best, dim=1).squeeze(1)
    error = chosen - (reward + 0.99 * alive * value)
    return ((error * error + 1).sqrt() - 1).mean()


def exact_double_q(q: Any, action: Any, reward: Any, alive: Any, online: Any, target: Any) -> Any:
    rows = np.arange(len(q))
    error = q[rows, action] - reward - 0.99 * alive * target[rows, online.argmax(1)]
    return np.mean(np.hypot(error, 1) - 1)


def transitions(draw: Any, n: int, actions: int) -> list[Any]:
    alive = (np.random.default_rng(2).random(n) < 0.9).astype(float)
    q, online, target = (draw.normal(n, actions) for _ in range(3))
    return [q, draw.integers(actions, n), draw.normal(n), draw.constant(alive), online, target]


def unshuffle(m: Any, kept: Any, token: Any, position: Any, order: Any) -> Any:
    n, _, d = kept.shape
    missing = order.shape[1] - kept.shape[1]
    x = m.cat([kept, token.expand(n, missing, d)], dim=1)
    return m.gather(x, 1, order[:, :, None].expand(-1, -1, d)) + position


def exact_unshuffle(kept: Any, token: Any, position: Any, order: Any) -> Any:
    tokens = np.repeat(token[0], order.shape[1] - kept.shape[1], 0)
    return np.stack([np.vstack([x, tokens])[row] for x, row in zip(kept, order, strict=True)]) + position


def shuffled_patches(draw: Any, n: int, size: int, d: int) -> list[Any]:
    order = np.argsort(np.random.default_rng(11).random((n, size)), 1)
    return [draw.normal(n, size // 4, d), draw.normal(1, 1, d), draw.normal(size, d), draw.constant(order)]


PROGRAMS = [
    Program(
        "causal attention with padding",
        "Vaswani et al., Attention Is All You Need, 2017, sec. 3.2.3",
        masked_attention,
        exact_masked_attention,
        padded_inputs,
        gpu=(8, 8, 509, 64),
        cpu=(2, 4, 251, 64),
        tiny=(2, 2, 5, 3),
        gradients=3,
    ),
    Program(
        "attention with a bias for each distance",
        "Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer, 2020, sec. 2.1",
        bucketed_bias,
        exact_bucketed_bias,
        lambda draw, n, heads, size, d: [
            *[draw.normal(n, heads, size, d) / d**0.25 for _ in range(2)],
            draw.normal(n, heads, size, d),
            draw.normal(33, heads),
        ],
        gpu=(8, 8, 509, 64),
        cpu=(2, 4, 251, 64),
        tiny=(2, 2, 5, 3),
        gradients=4,
    ),
    Program(
        "graph convolution",
        "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017, eq. 2",
        graph_convolution,
        exact_graph_convolution,
        lambda draw, n, degree, d: [draw.normal(n, d), draw.normal(d, d) / d**0.5, *edges(draw, n, degree)],
        gpu=(65537, 8, 64),
        cpu=(10007, 8, 32),
        tiny=(5, 2, 3),
    ),
    Program(
        "graph attention",
        "Velickovic et al., Graph Attention Networks, 2018, eq. 3 and 4",
        graph_attention,
        exact_graph_attention,
        lambda draw, n, degree, d: [
            draw.normal(n, d),
            draw.normal(d) / d**0.5,
            draw.normal(d) / d**0.5,
            *edges(draw, n, degree),
        ],
        gpu=(65537, 8, 64),
        cpu=(10007, 8, 32),
        tiny=(5, 2, 3),
        gradients=3,
    ),
    Program(
        "classes of bags of words",
        "Joulin, Grave, Bojanowski and Mikolov, Bag of Tricks for Efficient Text Classification, 2017, sec. 2",
        bag_of_words,
        exact_bag_of_words,
        lambda draw, n, size, words, d: [draw.normal(words, d), draw.integers(words, n, size), draw.normal(d, 19)],
        gpu=(16381, 64, 100_003, 64),
        cpu=(1021, 32, 30011, 64),
        tiny=(3, 4, 5, 2),
        gradients=1,
    ),
    Program(
        "double Q-learning loss",
        "van Hasselt, Guez and Silver, Deep Reinforcement Learning with Double Q-learning, 2016, eq. 4",
        double_q,
        exact_double_q,
        transitions,
        gpu=(1_000_003, 18),
        cpu=(65537, 18),
        tiny=(5, 3),
        gradients=1,
    ),
    Program(
        "masked tokens put back in order",
        "He et al., Masked Autoencoders Are Scalable Vision Learners, 2022, sec. 3",
        unshuffle,
        exact_unshuffle,
        shuffled_patches,
        gpu=(256, 196, 512),
        cpu=(16, 196, 256),
        tiny=(2, 8, 3),
        gradients=3,
    ),
]

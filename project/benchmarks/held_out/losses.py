"""Losses."""

from typing import Any

import numpy as np

from .program import Program, logsumexp, softmax


def label_smoothing(m: Any, logits: Any, classes: Any) -> Any:
    return m.nn.functional.cross_entropy(logits, classes, label_smoothing=0.1)


def exact_label_smoothing(logits: Any, classes: Any) -> Any:
    log_p = logits - logsumexp(logits, 1)[:, None]
    return -np.mean(0.9 * log_p[np.arange(len(classes)), classes] + 0.1 * log_p.mean(1))


def focal(m: Any, x: Any, y: Any) -> Any:
    p = m.sigmoid(x)
    p_t = y * p + (1 - y) * (1 - p)
    a_t = 0.25 * y + 0.75 * (1 - y)
    return (-a_t * (1 - p_t) ** 2 * m.log(p_t)).mean()


def exact_focal(x: Any, y: Any) -> Any:
    p_t = 1 / (1 + np.exp(np.where(y == 1, -x, x)))
    return np.mean(np.where(y == 1, 0.25, 0.75) * np.square(1 - p_t) * -np.log(p_t))


def info_nce(m: Any, a: Any, b: Any) -> Any:
    a = a / (a * a).sum(1, keepdim=True).sqrt()
    b = b / (b * b).sum(1, keepdim=True).sqrt()
    scores = a @ b.T * 5
    matches = (a * b).sum(1) * 5
    return (0.5 * (scores.logsumexp(1) + scores.logsumexp(0)) - matches).mean()


def exact_info_nce(a: Any, b: Any) -> Any:
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    scores = 5 * (a @ b.T)
    of_rows, of_columns = np.log(np.diag(softmax(scores, 1))), np.log(np.diag(softmax(scores, 0)))
    return -(of_rows + of_columns).mean() / 2


def robust(m: Any, x: Any, y: Any) -> Any:
    r = (x - y) / 0.5
    return (m.sqrt(r * r + 1) - 1).mean()


def exact_robust(x: Any, y: Any) -> Any:
    return np.mean(np.hypot((x - y) * 2, 1) - 1)


def gaussian_kl(m: Any, mean: Any, log_var: Any) -> Any:
    return -0.5 * (1 + log_var - mean * mean - log_var.exp()).sum(1).mean()


def exact_gaussian_kl(mean: Any, log_var: Any) -> Any:
    var = np.exp(log_var)
    return np.sum(var + mean**2 - 1 - np.log(var)) / (2 * len(mean))


def dice(m: Any, x: Any, y: Any) -> Any:
    p = m.sigmoid(x)
    dims = (1, 2, 3)
    return (1 - 2 * (p * y).sum(dims) / ((p * p).sum(dims) + (y * y).sum(dims))).mean()


def exact_dice(x: Any, y: Any) -> Any:
    p, y = (1 / (1 + np.exp(-x))).reshape(len(x), -1), y.reshape(len(x), -1)
    return np.mean([1 - 2 * (a @ b) / (a @ a + b @ b) for a, b in zip(p, y, strict=True)])


def contrastive(m: Any, a: Any, b: Any, differs: Any) -> Any:
    d = a - b
    squares = (d * d).sum(1)
    gap = m.relu(8.0 - squares.sqrt())
    return ((1 - differs) * squares / 2 + differs * gap * gap / 2).mean()


def exact_contrastive(a: Any, b: Any, differs: Any) -> Any:
    distance = np.linalg.norm(a - b, axis=1)
    return np.where(differs == 1, np.square(np.maximum(8.0 - distance, 0)), distance**2).mean() / 2


def labels(draw: Any, *shape: int) -> Any:
    """Return zeros and ones as floats."""
    return draw.constant(np.random.default_rng(5).integers(0, 2, shape).astype(np.float64))


PROGRAMS = [
    Program(
        "label smoothing of rows of 32,003 classes",
        "Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2016, sec. 7",
        label_smoothing,
        exact_label_smoothing,
        lambda draw, n, c: [draw.normal(n, c), draw.integers(c, n)],
        gpu=(1009, 32003),
        cpu=(61, 32003),
        tiny=(3, 7),
        gradients=1,
    ),
    Program(
        "focal loss",
        "Lin, Goyal, Girshick, He and Dollar, Focal Loss for Dense Object Detection, 2017, eq. 5",
        focal,
        exact_focal,
        lambda draw, n, c: [draw.normal(n, c), labels(draw, n, c)],
        gpu=(300_007, 80),
        cpu=(30011, 80),
        tiny=(3, 5),
        gradients=1,
    ),
    Program(
        "symmetric InfoNCE",
        "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, fig. 3",
        info_nce,
        exact_info_nce,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(n, d)],
        gpu=(4093, 509),
        cpu=(1009, 127),
        tiny=(5, 3),
        gradients=2,
    ),
    Program(
        "robust regression loss",
        "Barron, A General and Adaptive Robust Loss Function, 2019, eq. 1 with alpha = 1",
        robust,
        exact_robust,
        lambda draw, n: [draw.normal(n), draw.normal(n)],
        gpu=(33_554_393,),
        cpu=(3_000_017,),
        tiny=(13,),
        gradients=1,
    ),
    Program(
        "KL divergence of diagonal Gaussians",
        "Kingma and Welling, Auto-Encoding Variational Bayes, 2014, appendix B",
        gaussian_kl,
        exact_gaussian_kl,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(n, d)],
        gpu=(65537, 257),
        cpu=(10007, 127),
        tiny=(3, 5),
        gradients=2,
    ),
    Program(
        "Dice loss of volumes",
        "Milletari, Navab and Ahmadi, V-Net, 2016, sec. 3",
        dice,
        exact_dice,
        lambda draw, n, d, h, w: [draw.normal(n, d, h, w), labels(draw, n, d, h, w)],
        gpu=(5, 127, 157, 163),
        cpu=(3, 61, 67, 71),
        tiny=(2, 2, 3, 3),
        gradients=1,
    ),
    Program(
        "contrastive loss of pairs",
        "Hadsell, Chopra and LeCun, Dimensionality Reduction by Learning an Invariant Mapping, 2006, eq. 4",
        contrastive,
        exact_contrastive,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(n, d), labels(draw, n)],
        gpu=(250_007, 64),
        cpu=(30011, 64),
        tiny=(5, 3),
        gradients=2,
    ),
]

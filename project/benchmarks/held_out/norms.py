"""Normalization layers."""

from typing import Any

import numpy as np

from .program import Program

EPSILON = 1e-5


def rms_norm(m: Any, x: Any, gain: Any) -> Any:
    return x * m.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * gain


def exact_rms_norm(x: Any, gain: Any) -> Any:
    return gain * x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + EPSILON)


def group_norm(m: Any, x: Any, weight: Any, bias: Any) -> Any:
    n, c, h, w = x.shape
    z = x.reshape(n, 3, c // 3 * h * w)
    z = (z - z.mean(2, keepdim=True)) * m.rsqrt(z.var(2, correction=0, keepdim=True) + EPSILON)
    return z.reshape(n, c, h, w) * weight.reshape(1, c, 1, 1) + bias.reshape(1, c, 1, 1)


def exact_group_norm(x: Any, weight: Any, bias: Any) -> Any:
    parts = [
        (part - part.mean((1, 2, 3), keepdims=True)) / np.sqrt(part.var((1, 2, 3), keepdims=True) + EPSILON)
        for part in np.split(x, 3, axis=1)
    ]
    return np.concatenate(parts, axis=1) * weight[:, None, None] + bias[:, None, None]


def instance_norm(m: Any, x: Any) -> Any:
    mean = x.mean((2, 3), keepdim=True)
    d = x - mean
    return d / m.sqrt((d * d).mean((2, 3), keepdim=True) + EPSILON)


def exact_instance_norm(x: Any) -> Any:
    return (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + EPSILON)


def weight_standardization(m: Any, w: Any) -> Any:
    flat = w.reshape(w.shape[0], -1)
    d = flat - flat.mean(1, keepdim=True)
    return (d / (flat.std(1, correction=0, keepdim=True) + EPSILON)).reshape(w.shape)


def exact_weight_standardization(w: Any) -> Any:
    dims = tuple(range(1, w.ndim))
    return (w - w.mean(dims, keepdims=True)) / (w.std(dims, keepdims=True) + EPSILON)


def add_and_norm(m: Any, x: Any, branch: Any, weight: Any, bias: Any) -> Any:
    return m.nn.functional.layer_norm(x + branch, weight.shape, weight, bias)


def exact_add_and_norm(x: Any, branch: Any, weight: Any, bias: Any) -> Any:
    z = x + branch
    return (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + EPSILON) * weight + bias


def local_response_norm(m: Any, x: Any) -> Any:
    squares, sums = x * x, m.zeros_like(x)
    c = x.shape[1]
    for shift in range(-2, 3):
        sums[:, max(0, -shift) : c - max(0, shift)] += squares[:, max(0, shift) : c - max(0, -shift)]
    return x / (2 + 1e-4 * sums) ** 0.75


def exact_local_response_norm(x: Any) -> Any:
    padded = np.pad(x**2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    sums = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=1).sum(-1)
    return x / (2 + 1e-4 * sums) ** 0.75


def channels_first(draw: Any, n: int, c: int, h: int, w: int) -> Any:
    return draw.normal(n, c, h, w)


PROGRAMS = [
    Program(
        "RMS norm",
        "Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, eq. 4",
        rms_norm,
        exact_rms_norm,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(d)],
        gpu=(8191, 4099),
        cpu=(2003, 1009),
        tiny=(3, 7),
        gradients=2,
    ),
    Program(
        "group norm",
        "Wu and He, Group Normalization, 2018, eq. 1 and 6",
        group_norm,
        exact_group_norm,
        lambda draw, n, c, h, w: [channels_first(draw, n, c, h, w), draw.normal(c), draw.normal(c)],
        gpu=(32, 96, 97, 101),
        cpu=(8, 48, 61, 53),
        tiny=(2, 6, 3, 5),
        gradients=3,
    ),
    Program(
        "instance norm, channels last in memory",
        "Ulyanov, Vedaldi and Lempitsky, Instance Normalization: The Missing Ingredient for Fast Stylization, 2016, eq. 3",
        instance_norm,
        exact_instance_norm,
        lambda draw, n, c, h, w: [np.transpose(draw.normal(n, h, w, c), (0, 3, 1, 2))],
        gpu=(16, 64, 149, 151),
        cpu=(4, 32, 83, 89),
        tiny=(2, 3, 5, 3),
        gradients=1,
    ),
    Program(
        "weight standardization",
        "Qiao, Wang, Liu, Shen and Yuille, Micro-Batch Training with Batch-Channel Normalization, 2019, eq. 5",
        weight_standardization,
        exact_weight_standardization,
        lambda draw, o, i, k: [draw.normal(o, i, k, k)],
        gpu=(2039, 1021, 3),
        cpu=(509, 257, 3),
        tiny=(3, 2, 3),
        gradients=1,
    ),
    Program(
        "residual and layer norm of rows of 777",
        "Vaswani et al., Attention Is All You Need, 2017, sec. 5.4, with Ba et al., Layer Normalization, 2016, eq. 4",
        add_and_norm,
        exact_add_and_norm,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(n, d), draw.normal(d), draw.normal(d)],
        gpu=(30011, 777),
        cpu=(2503, 777),
        tiny=(4, 7),
        gradients=4,
    ),
    Program(
        "local response norm",
        "Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012, sec. 3.3",
        local_response_norm,
        exact_local_response_norm,
        lambda draw, n, c, h, w: [channels_first(draw, n, c, h, w)],
        gpu=(64, 96, 55, 55),
        cpu=(8, 96, 27, 27),
        tiny=(1, 6, 2, 3),
    ),
]

"""Convolutions and pooling."""

from typing import Any

import numpy as np

from .program import Program, amax

WINDOWS = np.lib.stride_tricks.sliding_window_view


def correlate(x: Any, weight: Any) -> Any:
    """Correlate images (N, C, H, W) with filters (O, C, K, K) by NumPy."""
    h, w, k = x.shape[2] - weight.shape[2] + 1, x.shape[3] - weight.shape[3] + 1, weight.shape[2]
    parts = [
        np.einsum("nchw,oc->nohw", x[:, :, i : i + h, j : j + w], weight[:, :, i, j], optimize=True)
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts)


def grouped(m: Any, x: Any, weight: Any) -> Any:
    return x + m.nn.functional.conv2d(x, weight, padding=1, groups=4)


def exact_grouped(x: Any, weight: Any) -> Any:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [correlate(*part) for part in zip(np.split(padded, 4, 1), np.split(weight, 4), strict=True)]
    return np.concatenate(parts, axis=1) + x


def gated_dilated(m: Any, x: Any, filters: Any, gates: Any) -> Any:
    conv = m.nn.functional.conv1d
    return m.tanh(conv(x, filters, dilation=4)) * m.sigmoid(conv(x, gates, dilation=4))


def exact_gated_dilated(x: Any, filters: Any, gates: Any) -> Any:
    size = x.shape[2] - 4
    early, late = x[:, :, :size], x[:, :, 4:]
    a, b = (np.matmul(w[:, :, 0], early) + np.matmul(w[:, :, 1], late) for w in (filters, gates))
    return np.tanh(a) / (1 + np.exp(-b))


def separable(m: Any, x: Any, depthwise: Any, pointwise: Any) -> Any:
    conv = m.nn.functional.conv2d
    return conv(conv(x, depthwise, padding=1, groups=x.shape[1]), pointwise)


def exact_depthwise(x: Any, weight: Any) -> Any:
    h, w = x.shape[2:]
    x, y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), 0
    for i, j in np.ndindex(3, 3):
        y = y + x[:, :, i : i + h, j : j + w] * weight[:, 0, i, j][:, None, None]
    return y


def exact_separable(x: Any, depthwise: Any, pointwise: Any) -> Any:
    return np.einsum("nchw,oc->nohw", exact_depthwise(x, depthwise), pointwise[:, :, 0, 0], optimize=True)


def max_pool_3d(m: Any, x: Any) -> Any:
    for dim in (1, 2, 3):
        x = amax(x.unfold(dim, 3, 2), 4)
    return x


def exact_max_pool_3d(x: Any) -> Any:
    return WINDOWS(x, (3, 3, 3), axis=(1, 2, 3))[:, ::2, ::2, ::2].max((4, 5, 6))


def lp_pool(m: Any, x: Any) -> Any:
    return ((abs(x) ** 3).unfold(2, 5, 3).sum(3) + 1e-6) ** (1 / 3)


def exact_lp_pool(x: Any) -> Any:
    return np.cbrt((np.abs(WINDOWS(x, 5, axis=2)[:, :, ::3]) ** 3).sum(3) + 1e-6)


def average_pool(m: Any, x: Any) -> Any:
    return m.nn.functional.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)


def exact_average_pool(x: Any) -> Any:
    around = ((0, 0), (0, 0), (1, 1), (1, 1))
    sums, counts = (
        WINDOWS(np.pad(z, around), (3, 3), axis=(2, 3))[:, :, ::2, ::2].sum((4, 5)) for z in (x, np.ones_like(x))
    )
    return sums / counts


PROGRAMS = [
    Program(
        "grouped convolution and its input",
        "Xie, Girshick, Dollar, Tu and He, Aggregated Residual Transformations for Deep Neural Networks, 2017, eq. 3",
        grouped,
        exact_grouped,
        lambda draw, n, c, h, w: [draw.normal(n, c, h, w), draw.normal(c, c // 4, 3, 3)],
        gpu=(16, 128, 57, 57),
        cpu=(2, 64, 57, 57),
        tiny=(1, 4, 4, 3),
        gradients=2,
    ),
    Program(
        "gated dilated convolution",
        "van den Oord et al., WaveNet: A Generative Model for Raw Audio, 2016, eq. 2",
        gated_dilated,
        exact_gated_dilated,
        lambda draw, n, c, size: [draw.normal(n, c, size), draw.normal(c, c, 2) / 8, draw.normal(c, c, 2) / 8],
        gpu=(8, 64, 30011),
        cpu=(2, 32, 10007),
        tiny=(2, 3, 9),
        gradients=3,
    ),
    Program(
        "depthwise separable convolution",
        "Howard et al., MobileNets, 2017, sec. 3.1; without an activation between, as in Chollet, Xception, 2017, sec. 4.7",
        separable,
        exact_separable,
        lambda draw, n, c, o, h, w: [draw.normal(n, c, h, w), draw.normal(c, 1, 3, 3), draw.normal(o, c, 1, 1)],
        gpu=(16, 96, 96, 79, 79),
        cpu=(2, 48, 48, 61, 61),
        tiny=(1, 3, 2, 4, 3),
        gradients=3,
    ),
    Program(
        "max pooling in 3-d, overlapping",
        "Tran, Bourdev, Fergus, Torresani and Paluri, Learning Spatiotemporal Features with 3D ConvNets, 2015, sec. 3",
        max_pool_3d,
        exact_max_pool_3d,
        lambda draw, n, d, h, w: [draw.normal(n, d, h, w)],
        gpu=(32, 65, 97, 97),
        cpu=(8, 33, 61, 61),
        tiny=(2, 5, 3, 5),
    ),
    Program(
        "Lp pooling in 1-d",
        "Sermanet, Chintala and LeCun, Convolutional Neural Networks Applied to House Numbers, 2012, eq. 1",
        lp_pool,
        exact_lp_pool,
        lambda draw, n, c, size: [draw.normal(n, c, size)],
        gpu=(16, 32, 30011),
        cpu=(4, 16, 30011),
        tiny=(2, 2, 11),
        gradients=1,
    ),
    Program(
        "average pooling in 2-d without the padding",
        "Szegedy et al., Rethinking the Inception Architecture for Computer Vision, 2016, fig. 5",
        average_pool,
        exact_average_pool,
        lambda draw, n, c, h, w: [draw.normal(n, c, h, w)],
        gpu=(16, 64, 149, 151),
        cpu=(4, 32, 97, 101),
        tiny=(1, 2, 5, 4),
        gradients=1,
    ),
]

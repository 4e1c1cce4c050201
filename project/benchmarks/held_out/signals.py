"""Filters of images, transforms of signals, measures of quality."""

import math
from typing import Any

import numpy as np

from .program import Program

GAUSS = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


def gaussian(m: Any, x: Any) -> Any:
    h, w = x.shape
    rows = GAUSS[0] * x[: h - 4]
    for k in range(1, 5):
        rows = rows + GAUSS[k] * x[k : h - 4 + k]
    y = GAUSS[0] * rows[:, : w - 4]
    for k in range(1, 5):
        y = y + GAUSS[k] * rows[:, k : w - 4 + k]
    return y


def exact_gaussian(x: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5))
    return np.einsum("ijkl,k,l->ij", windows, GAUSS, GAUSS, optimize=True)


def sobel(m: Any, x: Any) -> Any:
    gx = x[:-2, 2:] - x[:-2, :-2] + 2 * (x[1:-1, 2:] - x[1:-1, :-2]) + x[2:, 2:] - x[2:, :-2]
    gy = x[2:, :-2] - x[:-2, :-2] + 2 * (x[2:, 1:-1] - x[:-2, 1:-1]) + x[2:, 2:] - x[:-2, 2:]
    return m.sqrt(gx * gx + gy * gy + 1e-6)


def exact_sobel(x: Any) -> Any:
    across, down = x[:, 2:] - x[:, :-2], x[2:] - x[:-2]
    gx = across[:-2] + 2 * across[1:-1] + across[2:]
    gy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return np.sqrt(gx**2 + gy**2 + 1e-6)


def bilateral(m: Any, x: Any) -> Any:
    h, w = x.shape
    c, total, weights = x[2:-2, 2:-2], 0.0, 0.0
    for i in range(5):
        for j in range(5):
            y = x[i : h - 4 + i, j : w - 4 + j]
            weight = m.exp(-((y - c) ** 2) * 8.0 - ((i - 2) ** 2 + (j - 2) ** 2) / 4.5)
            total, weights = total + weight * y, weights + weight
    return total / weights


def exact_bilateral(x: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5))
    y, x = np.mgrid[-2:3, -2:3]
    total, weights = np.zeros(windows.shape[:2]), np.zeros(windows.shape[:2])
    for i, j in np.ndindex(5, 5):
        part = windows[:, :, i, j]
        weight = np.exp(-(y[i, j] ** 2 + x[i, j] ** 2) / 4.5) / np.exp(8 * np.square(part - windows[:, :, 2, 2]))
        total += weight * part
        weights += weight
    return total / weights


def haar(m: Any, x: Any) -> Any:
    a, b, c, d = x[::2, ::2], x[::2, 1::2], x[1::2, ::2], x[1::2, 1::2]
    return (a + b + c + d) / 2, (a - b + c - d) / 2, (a + b - c - d) / 2, (a - b - c + d) / 2


def exact_haar(x: Any) -> Any:
    h, w = x.shape
    blocks = x.reshape(h // 2, 2, w // 2, 2)
    step = np.array([[1, 1], [1, -1]]) / math.sqrt(2)
    y = np.einsum("pi,aibj,qj->pqab", step, blocks, step, optimize=True)
    return y[0, 0], y[0, 1], y[1, 0], y[1, 1]


def fft_stage(m: Any, real: Any, imaginary: Any, cosines: Any, sines: Any) -> Any:
    n, half = real.shape[0], cosines.shape[0]
    re, im = real.reshape(n, -1, 2, half), imaginary.reshape(n, -1, 2, half)
    a, b = re[:, :, 1], im[:, :, 1]
    turned_re, turned_im = a * cosines + b * sines, b * cosines - a * sines
    y_re, y_im = m.zeros_like(re), m.zeros_like(im)
    y_re[:, :, 0], y_re[:, :, 1] = re[:, :, 0] + turned_re, re[:, :, 0] - turned_re
    y_im[:, :, 0], y_im[:, :, 1] = im[:, :, 0] + turned_im, im[:, :, 0] - turned_im
    return y_re.reshape(real.shape), y_im.reshape(real.shape)


def exact_fft_stage(real: Any, imaginary: Any, cosines: Any, sines: Any) -> Any:
    half = len(cosines)
    z = (real + 1j * imaginary).reshape(len(real), -1, 2, half)
    turned = z[:, :, 1] * (cosines - 1j * sines)
    y = np.stack([z[:, :, 0] + turned, z[:, :, 0] - turned], axis=2).reshape(real.shape)
    return y.real, y.imag


def twiddles(draw: Any, n: int, size: int, half: int) -> list[Any]:
    angle = np.pi * np.arange(half) / half
    return [draw.normal(n, size), draw.normal(n, size), draw.constant(np.cos(angle)), draw.constant(np.sin(angle))]


PROGRAMS = [
    Program(
        "separable Gaussian filter",
        "Burt and Adelson, The Laplacian Pyramid as a Compact Image Code, 1983, sec. II with a = 0.375",
        gaussian,
        exact_gaussian,
        lambda draw, h, w: [draw.normal(h, w)],
        gpu=(4999, 5003),
        cpu=(1511, 1499),
        tiny=(6, 7),
        gradients=1,
    ),
    Program(
        "Sobel gradient magnitude",
        "Gonzalez and Woods, Digital Image Processing, 2008, eq. 3.6-11 and fig. 3.41",
        sobel,
        exact_sobel,
        lambda draw, h, w: [draw.uniform(0, 1, h, w)],
        gpu=(4999, 5003),
        cpu=(1511, 1499),
        tiny=(5, 6),
        gradients=1,
    ),
    Program(
        "bilateral filter with a window of 5 x 5",
        "Tomasi and Manduchi, Bilateral Filtering for Gray and Color Images, 1998, eq. 5",
        bilateral,
        exact_bilateral,
        lambda draw, h, w: [draw.uniform(0, 1, h, w)],
        gpu=(3001, 3011),
        cpu=(509, 503),
        tiny=(6, 5),
    ),
    Program(
        "Haar wavelet step in 2-d",
        "Mallat, A Theory for Multiresolution Signal Decomposition, 1989, sec. IV",
        haar,
        exact_haar,
        lambda draw, h, w: [draw.normal(h, w)],
        gpu=(5002, 4998),
        cpu=(1514, 1498),
        tiny=(4, 6),
    ),
    Program(
        "radix-2 stage of an FFT",
        "Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series, 1965, eq. 20",
        fft_stage,
        exact_fft_stage,
        twiddles,
        gpu=(1009, 16384, 64),
        cpu=(127, 8192, 64),
        tiny=(3, 16, 4),
    ),
]

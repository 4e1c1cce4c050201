"""Sums and products of all elements so far: rendering, returns, survival, images and distributions."""

from typing import Any

import numpy as np

from .program import Program, softmax


def rendering(m: Any, density: Any, color: Any, step: Any) -> Any:
    alpha = 1 - m.exp(-density * step)
    through = m.cumprod(1 - alpha + 1e-6, dim=1)
    through = m.cat([m.ones_like(through[:, :1]), through[:, :-1]], dim=1)
    return ((alpha * through)[:, :, None] * color).sum(1)


def exact_rendering(density: Any, color: Any, step: Any) -> Any:
    depth = density * step
    passed = np.cumsum(np.log(np.exp(-depth) + 1e-6), 1)
    passed = np.exp(np.pad(passed, ((0, 0), (1, 0)))[:, :-1])
    return np.einsum("nt,ntc->nc", -np.expm1(-depth) * passed, color)


def advantages(m: Any, reward: Any, value: Any, last: Any) -> Any:
    decay = 0.99 * 0.95
    following = m.cat([value[:, 1:], last[:, None]], dim=1)
    delta = reward + 0.99 * following - value
    weight = decay ** m.arange(reward.shape[1], dtype=reward.dtype, device=reward.device)
    return m.flip(m.cumsum(m.flip(delta * weight, (1,)), dim=1), (1,)) / weight


def exact_advantages(reward: Any, value: Any, last: Any) -> Any:
    y, a = np.empty_like(reward), 0.0
    for t in reversed(range(reward.shape[1])):
        following = last if t == reward.shape[1] - 1 else value[:, t + 1]
        a = reward[:, t] + 0.99 * following - value[:, t] + 0.99 * 0.95 * a
        y[:, t] = a
    return y


def cox(m: Any, risk: Any, has_event: Any) -> Any:
    at_risk = m.logcumsumexp(risk, dim=0)
    return -((risk - at_risk) * has_event).sum() / has_event.sum()


def exact_cox(risk: Any, has_event: Any) -> Any:
    return np.average(np.log(np.cumsum(np.exp(risk))) - risk, weights=has_event)


def earth_mover(m: Any, logits: Any, classes: Any) -> Any:
    p = logits.softmax(1)
    y = m.nn.functional.one_hot(classes, logits.shape[1]).to(p.dtype)
    gap = m.cumsum(p, 1) - m.cumsum(y, 1)
    return (gap * gap).sum(1).mean()


def exact_earth_mover(logits: Any, classes: Any) -> Any:
    is_reached = np.arange(logits.shape[1]) >= classes[:, None]
    return np.sum(np.square(np.cumsum(softmax(logits), 1) - is_reached)) / len(logits)


def box_filter(m: Any, x: Any) -> Any:
    sums = m.nn.functional.pad(x.cumsum(-1).cumsum(-2), (1, 0, 1, 0))
    return (sums[..., 9:, 9:] - sums[..., :-9, 9:] - sums[..., 9:, :-9] + sums[..., :-9, :-9]) / 81


def exact_box_filter(x: Any) -> Any:
    for axis in (1, 2):
        x = np.lib.stride_tricks.sliding_window_view(x, 9, axis).mean(-1)
    return x


def piecewise_linear(m: Any, x: Any, logits: Any) -> Any:
    bins = logits.shape[-1]
    p = logits.softmax(-1)
    cdf = m.nn.functional.pad(p.cumsum(-1), (1, 0))
    place = x * bins
    k = place.floor().long().clamp(0, bins - 1)[..., None]
    left, slope = cdf.gather(-1, k)[..., 0], p.gather(-1, k)[..., 0]
    return left + slope * (place - place.floor())


def exact_piecewise_linear(x: Any, logits: Any) -> Any:
    bins = logits.shape[-1]
    edge = np.arange(bins) / bins
    return np.sum(softmax(logits) * np.clip((x[..., None] - edge) * bins, 0, 1), -1)


PROGRAMS = [
    Program(
        "rendering of rays through a volume",
        "Mildenhall et al., NeRF: Representing Scenes as Neural Radiance Fields for View Synthesis, 2020, eq. 3",
        rendering,
        exact_rendering,
        lambda draw, n, size: [draw.uniform(0, 3, n, size), draw.normal(n, size, 3), draw.uniform(0.01, 0.03, n, size)],
        gpu=(65537, 192),
        cpu=(4099, 192),
        tiny=(3, 5),
        gradients=2,
    ),
    Program(
        "generalized advantages",
        "Schulman, Moritz, Levine, Jordan and Abbeel, High-Dimensional Continuous Control Using GAE, 2016, eq. 16",
        advantages,
        exact_advantages,
        lambda draw, n, size: [draw.normal(n, size), draw.normal(n, size), draw.normal(n)],
        gpu=(65537, 128),
        cpu=(8209, 128),
        tiny=(3, 5),
        gradients=3,
    ),
    Program(
        "partial likelihood of sorted times",
        "Cox, Partial Likelihood, 1975, sec. 2",
        cox,
        exact_cox,
        lambda draw, n: [
            draw.normal(n),
            draw.constant((np.random.default_rng(3).random(n) < 0.6).astype(float)),
        ],
        gpu=(8_388_593,),
        cpu=(1_000_003,),
        tiny=(7,),
        gradients=1,
    ),
    Program(
        "squared earth mover's distance of ordered classes",
        "Hou, Yu and Samaras, Squared Earth Mover's Distance-based Loss for Training Deep Neural Networks, 2016, eq. 5",
        earth_mover,
        exact_earth_mover,
        lambda draw, n, c: [draw.normal(n, c), draw.integers(c, n)],
        gpu=(262_147, 101),
        cpu=(20011, 101),
        tiny=(3, 5),
        gradients=1,
    ),
    Program(
        "box filter by a summed-area table",
        "Crow, Summed-Area Tables for Texture Mapping, 1984, sec. 2",
        box_filter,
        exact_box_filter,
        lambda draw, n, h, w: [draw.normal(n, h, w)],
        gpu=(32, 1021, 1531),
        cpu=(4, 509, 767),
        tiny=(2, 11, 12),
        gradients=1,
        tolerance=1e-3,
        gradient_tolerance=1e-3,
    ),
    Program(
        "coupling by piecewise-linear distributions",
        "Muller, McWilliams, Rousselle, Gross and Novak, Neural Importance Sampling, 2019, eq. 6 to 8",
        piecewise_linear,
        exact_piecewise_linear,
        lambda draw, n, d, bins: [draw.uniform(0, 1, n, d), draw.normal(n, d, bins)],
        gpu=(262_147, 4, 32),
        cpu=(20011, 4, 32),
        tiny=(3, 2, 4),
    ),
]

"""Distances, kernel matrices, clusters and particles."""

import math
from typing import Any

import numpy as np

from .program import Program, amax, softmax


def rbf(m: Any, a: Any, b: Any) -> Any:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)
    return m.exp(-squares / (2.0 * a.shape[1]))


def exact_rbf(a: Any, b: Any) -> Any:
    squares = np.square(a)[:, :, None].sum(1) + np.square(b).sum(1)[None] - 2 * np.einsum("id,jd->ij", a, b, optimize=True)
    return np.exp(-0.5 * squares / a.shape[1])


def matern(m: Any, a: Any, b: Any) -> Any:
    d = a[:, None, :] - b[None, :, :]
    r = math.sqrt(5) * (d * d).sum(2).sqrt()
    return (1 + r + r * r / 3) * m.exp(-r)


def exact_matern(a: Any, b: Any) -> Any:
    r2 = 5 * sum(np.square(np.subtract.outer(a[:, k], b[:, k])) for k in range(a.shape[1]))
    return (1 + np.sqrt(r2) + r2 / 3) * np.exp(-np.sqrt(r2))


def mahalanobis(m: Any, x: Any, mean: Any, precision: Any) -> Any:
    d = x - mean
    return m.sqrt(((d @ precision) * d).sum(1))


def exact_mahalanobis(x: Any, mean: Any, precision: Any) -> Any:
    return np.sqrt(np.einsum("ni,ij,nj->n", x - mean, precision, x - mean, optimize=True))


def positive_definite(draw: Any, d: int) -> Any:
    """Return a symmetric matrix with eigenvalues between 1 and some 4."""
    a = np.random.default_rng(3).standard_normal((d, d)) / math.sqrt(d)
    return draw.constant(np.eye(d) + (a @ a.T) / 2)


def gravity(m: Any, position: Any, mass: Any) -> Any:
    d = position[None, :, :] - position[:, None, :]
    r2 = (d * d).sum(2) + 0.01
    return (d * (mass / (r2 * m.sqrt(r2)))[:, :, None]).sum(1)


def exact_gravity(position: Any, mass: Any) -> Any:
    x, y, z = (np.subtract.outer(p, p) for p in position.T)
    strength = mass * (x * x + y * y + z * z + 0.01) ** -1.5
    return -np.stack([(d * strength).sum(1) for d in (x, y, z)], axis=1)


def distortion(m: Any, x: Any, centers: Any) -> Any:
    squares = (x * x).sum(1, keepdim=True) - 2 * (x @ centers.T) + (centers * centers).sum(1)
    return -amax(-squares, 1)


def exact_distortion(x: Any, centers: Any) -> Any:
    return np.min([np.square(x - center).sum(1) for center in centers], axis=0)


def sinkhorn(m: Any, cost: Any, g: Any) -> Any:
    f = -((g - cost) * 2.0).logsumexp(1) / 2.0
    return -((f[:, None] - cost) * 2.0).logsumexp(0) / 2.0


def exact_sinkhorn(cost: Any, g: Any) -> Any:
    kernel = np.exp(-2 * cost)
    u = 1 / (kernel @ np.exp(2 * g))
    return -np.log(u @ kernel) / 2


def mixture(m: Any, x: Any, logits: Any, mean: Any, log_scale: Any) -> Any:
    z = (x[:, None, :] - mean) * m.exp(-log_scale)
    log_p = -0.5 * (z * z).sum(2) - log_scale.sum(1) - 0.5 * math.log(2 * math.pi) * x.shape[1]
    return (log_p + logits.log_softmax(0)).logsumexp(1).mean()


def exact_mixture(x: Any, logits: Any, mean: Any, log_scale: Any) -> Any:
    density = 0
    for p, center, scale in zip(softmax(logits), mean, np.exp(log_scale), strict=True):
        density = density + p * np.prod(np.exp(-(((x - center) / scale) ** 2) / 2) / scale / np.sqrt(2 * np.pi), axis=1)
    return np.log(density).mean()


def points(draw: Any, n: int, k: int, d: int) -> list[Any]:
    return [draw.normal(n, d), draw.normal(k, d)]


PROGRAMS = [
    Program(
        "squared exponential kernel matrix",
        "Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. 4.9",
        rbf,
        exact_rbf,
        points,
        gpu=(6007, 5987, 127),
        cpu=(1511, 1499, 31),
        tiny=(4, 5, 3),
        gradients=2,
    ),
    Program(
        "Matern 5/2 kernel matrix in 3-d",
        "Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, eq. 4.17",
        matern,
        exact_matern,
        points,
        gpu=(6007, 5987, 3),
        cpu=(1511, 1499, 3),
        tiny=(4, 5, 3),
        gradients=2,
    ),
    Program(
        "Mahalanobis distance",
        "Bishop, Pattern Recognition and Machine Learning, 2006, eq. 2.44",
        mahalanobis,
        exact_mahalanobis,
        lambda draw, n, d: [draw.normal(n, d), draw.normal(d), positive_definite(draw, d)],
        gpu=(300_007, 127),
        cpu=(30011, 61),
        tiny=(5, 3),
        gradients=2,
        gradient_tolerance=1e-3,
    ),
    Program(
        "gravity of n bodies",
        "Nyland, Harris and Prins, Fast N-Body Simulation with CUDA, GPU Gems 3, 2007, eq. 3",
        gravity,
        exact_gravity,
        lambda draw, n: [draw.normal(n, 3), draw.uniform(0.5, 1, n)],
        gpu=(12007,),
        cpu=(2503,),
        tiny=(7,),
    ),
    Program(
        "distance to the nearest center of k-means",
        "Lloyd, Least Squares Quantization in PCM, 1982, sec. 3; Bishop, 2006, eq. 9.2",
        distortion,
        exact_distortion,
        points,
        gpu=(300_007, 97, 61),
        cpu=(30011, 97, 31),
        tiny=(7, 3, 4),
        tolerance=3e-4,
    ),
    Program(
        "Sinkhorn step in the log domain",
        "Peyre and Cuturi, Computational Optimal Transport, 2019, eq. 4.40 and 4.41",
        sinkhorn,
        exact_sinkhorn,
        lambda draw, n, k: [draw.uniform(0, 3, n, k), draw.normal(k)],
        gpu=(4999, 5003),
        cpu=(1009, 1511),
        tiny=(4, 5),
        gradients=2,
    ),
    Program(
        "log-likelihood of a mixture of Gaussians",
        "Bishop, Pattern Recognition and Machine Learning, 2006, eq. 9.14, with diagonal covariances",
        mixture,
        exact_mixture,
        lambda draw, n, k, d: [draw.normal(n, d), draw.normal(k), draw.normal(k, d), draw.uniform(-0.5, 0.5, k, d)],
        gpu=(200_003, 16, 8),
        cpu=(20011, 16, 8),
        tiny=(5, 3, 2),
        gradients=4,
        gradient_tolerance=1e-3,
    ),
]

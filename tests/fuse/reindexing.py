"""Loops whose steps read the array before them at several indices. Each step runs on tensors and on NumPy's arrays."""

from typing import NamedTuple

import numpy as np

import minifuse as mf

SIZE = 60
ORDERS = [(np.arange(SIZE) * 7 + k) % SIZE for k in range(8)]


class Kind(NamedTuple):
    """A loop: what one step computes of an array and the number of the step, and the shape that it begins with."""

    step: object
    shape: tuple[int, ...] = (SIZE, SIZE)


@mf.fuse
def plus(p, q):
    return p + q * 0.5


def weighted(p, k):
    """A convolution by slices, whose result is the next image."""
    n, m = p.shape
    parts = [p[i : n - 2 + i, j : m - 2 + j] * (i - j / 4) for i in range(3) for j in range(3)]
    return np.maximum(sum(parts[1:], parts[0]), 0.01)


KINDS = {
    "a row": Kind(lambda p, k: p + p[k]),
    "one row": Kind(lambda p, k: p + p[0]),
    "a column": Kind(lambda p, k: p + p[:, k : k + 1]),
    "the first column": Kind(lambda p, k: p + p[:, :1]),
    "a row and a column": Kind(lambda p, k: np.minimum(p, p[:, k : k + 1] + p[k : k + 1, :])),
    "the first row and column": Kind(lambda p, k: np.where(p > 0.5, p[:1], p[:, :1])),
    "an outer product": Kind(lambda p, k: p - p[:, k : k + 1] * p[k : k + 1] / (p[k, k] + 9)),
    "one element": Kind(lambda p, k: p + p[k, k]),
    "an element and a column": Kind(lambda p, k: p + p[k : k + 1, k : k + 1] * p[:, k : k + 1]),
    "the transpose": Kind(lambda p, k: p + p.T),
    "flips": Kind(lambda p, k: p + p[::-1] + p[:, ::-1]),
    "a flipped transpose": Kind(lambda p, k: p + p[::-1].T),
    "two neighbors": Kind(lambda p, k: p[1:] + p[:-1], (SIZE * 4,)),
    "four neighbors": Kind(
        lambda p, k: p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2], (SIZE * 2 + 10, SIZE * 2 + 10)
    ),
    "a convolution": Kind(weighted, (SIZE * 2 + 10, SIZE * 2 + 10)),
    "rows by index": Kind(lambda p, k: p + np.take(p, ORDERS[k % 8], 0)),
    "a reshape that reorders": Kind(
        lambda p, k: p + np.reshape(np.transpose(np.reshape(p, (2, 30, 60)), (1, 0, 2)), (60, 60))
    ),
    "sums of rows and columns": Kind(lambda p, k: p + np.sum(p, 1, keepdims=True) * np.sum(p, 0, keepdims=True) * 1e-4),
    "the mean": Kind(lambda p, k: p - np.mean(p) * p[k]),
    "a sum of a row": Kind(lambda p, k: p + np.sum(p[k]) * 1e-2),
    "a product": Kind(lambda p, k: (p @ p) * 1e-2 + p[k]),
    "a fused function": Kind(lambda p, k: plus(p, p[k])),
}
STEPPED = ["a row", "a row and a column", "two neighbors", "rows by index"]  # whose results after each step are asked for
DIFFERENTIATED = ["a row", "a row and a column", "an outer product", "the first row and column"]


def loop(name, count):
    """The loop as a function, and an array for it; results stay of one size."""
    kind = KINDS[name]

    def function(p):
        for k in range(count):
            p = kind.step(p, k) * 0.5
        return p

    return function, np.random.default_rng(0).uniform(0.1, 1, kind.shape)


def loop_of_results(name, count):
    """The loop as a function that returns what it has after each step."""
    kind = KINDS[name]

    def function(p):
        found = []
        for k in range(count):
            p = kind.step(p, k) * 0.5
            found.append(p)
        return tuple(found)

    return function, np.random.default_rng(0).uniform(0.1, 1, kind.shape)


def gradient_of_loop(name, count):
    """The gradient of the sum of what the loop computes."""
    function, array = loop(name, count)

    def gradient(p):
        function(p).sum().backward()
        return p.grad

    return gradient, array


def changes(count):
    """A loop that changes rows in place, each computed from the one before it."""

    def function(p):
        p = p * 1.0
        for k in range(1, count):
            p[k % SIZE] = p[k % SIZE] * 0.5 + p[k % SIZE - 1] * 0.25
        return p

    return function, np.random.default_rng(0).uniform(0.1, 1, (SIZE, SIZE))


PROGRAMS = {
    **{name: lambda n, name=name: loop(name, n) for name in KINDS},
    **{f"{name}, all steps": lambda n, name=name: loop_of_results(name, n) for name in STEPPED},
    **{f"{name}, gradient": lambda n, name=name: gradient_of_loop(name, n) for name in DIFFERENTIATED},
    "rows in place": changes,
}

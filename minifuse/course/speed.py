"""Measure a student's loops relative to naive loops and to NumPy.

A busy machine slows all of them down. So they run in turns, round by round, and the best round of each counts. If the
student's loop is too slow, more rounds follow. Only ratios are shown: absolute times depend on the machine.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from .strided import Array

MIN_ROUNDS, MAX_ROUNDS = 4, 16
Loop = Callable[..., None]


class Ratio(NamedTuple):
    """The speed of a loop relative to others."""

    to_naive: float
    """How many times faster than the naive loop."""
    to_numpy: float
    """How many times faster than NumPy; less than 1 is slower."""


def naive_chain(out: Array, a: Array, b: Array) -> None:
    """Compute sqrt(a * a + b * b) * 0.5 + a with one loop per operator, like a library without fusion."""
    size = len(out)
    squares, others = np.empty(size), np.empty(size)
    for i in range(size):
        squares[i] = a[i] * a[i]
    for i in range(size):
        others[i] = b[i] * b[i]
    total = np.empty(size)
    for i in range(size):
        total[i] = squares[i] + others[i]
    root = np.empty(size)
    for i in range(size):
        root[i] = np.sqrt(total[i])
    half = np.empty(size)
    for i in range(size):
        half[i] = root[i] * 0.5
    for i in range(size):
        out[i] = half[i] + a[i]


def naive_column_sums(out: Array, a: Array) -> None:
    """Sum one column after the other."""
    for column in range(a.shape[1]):
        total = 0.0
        for row in range(a.shape[0]):
            total += a[row, column]
        out[column] = total


def naive_matmul(out: Array, a: Array, b: Array) -> None:
    """Compute each output by the definition of the matrix product."""
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            out[row, column] = total


NAIVE: dict[str, Loop] = {"fast_chain": naive_chain, "fast_column_sums": naive_column_sums, "fast_matmul": naive_matmul}


@cache
def inputs(slot: str) -> tuple[Array, ...]:
    """Return the arguments of a loop, the output first. The inputs are larger than the caches of a core.

    Rows of the column sums have 8 KB, so all elements of a column fall into the same few sets of a set-associative cache.
    """
    random = np.random.default_rng(3)
    if slot == "fast_chain":
        return np.zeros(1_000_000), random.random(1_000_000), random.random(1_000_000)
    if slot == "fast_column_sums":
        return np.zeros(1024), random.random((4096, 1024))
    return np.zeros((384, 384)), random.random((384, 384)), random.random((384, 384))


def ratio(slot: str, yours: Loop, numpy: Loop, naive: Loop, is_enough: Callable[[Ratio], bool]) -> Ratio:
    """Time the three loops in turns and compare their best rounds; continue up to MAX_ROUNDS while `is_enough` is False."""
    arguments = inputs(slot)
    loops: Sequence[Loop] = (yours, naive, numpy)
    best = [float("inf")] * len(loops)
    for number in range(MAX_ROUNDS + 1):
        for k, loop in enumerate(loops):
            started = time.perf_counter()
            loop(*arguments)
            seconds = time.perf_counter() - started
            if number:  # the first round fills caches
                best[k] = min(best[k], seconds)
        result = Ratio(best[1] / best[0], best[2] / best[0])
        if number >= MIN_ROUNDS and is_enough(result):
            break
    return result


def table(ratios: dict[str, Ratio]) -> str:
    """Return the ratios as a text table, one line per loop."""
    lines = [f"{'times as fast as':<18}  {'a naive loop':>12}  {'NumPy':>6}"]
    lines += [f"{slot:<18}  {r.to_naive:>12.1f}  {r.to_numpy:>6.2f}" for slot, r in ratios.items()]
    return "\n".join(lines)

"""Measure a student's loops relative to naive loops and to NumPy.

The time is taken by the judge, whose clock the student's code cannot change. A busy machine slows all of them down. So they
run in turns, round by round, and the best round of each counts. If the student's loop is too slow, more rounds follow. Only
ratios are shown: absolute times depend on the machine.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from .compiled import cached_jit
from .speed_inputs import inputs
from .strided import Array

MIN_ROUNDS, MAX_ROUNDS = 4, 16
REPEATS = 4  # calls of the student's loop in one question, so that the question takes no part of the time


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


NAIVE: dict[str, Callable[..., None]] = {
    "fast_chain": naive_chain,
    "fast_column_sums": naive_column_sums,
    "fast_matmul": naive_matmul,
}


def best_ratio(
    slot: str, run: Callable[[int], None], numpy: Callable[..., object], is_enough: Callable[[Ratio], bool]
) -> Ratio:
    """Time three loops in turns and compare their best rounds; continue up to MAX_ROUNDS while `is_enough` is False.

    Parameters
    ----------
    slot : str
    run : function of an int
        Runs the student's loop so many times, in its process.
    numpy : function
        Computes the same with NumPy.
    is_enough : function of a ratio
    """
    naive = cached_jit(NAIVE[slot])
    loops: tuple[Callable[[], object], ...] = (
        partial(run, REPEATS),
        partial(naive, *inputs(slot)),
        partial(numpy, *inputs(slot)),
    )
    best = [float("inf")] * len(loops)
    for number in range(MAX_ROUNDS + 1):
        for k, loop in enumerate(loops):
            started = time.perf_counter()
            loop()
            seconds = time.perf_counter() - started
            if number:  # the first round fills caches
                best[k] = min(best[k], seconds)
        result = Ratio(best[1] / best[0] * REPEATS, best[2] / best[0] * REPEATS)
        if number >= MIN_ROUNDS and is_enough(result):
            break
    return result


def table(ratios: dict[str, Ratio]) -> str:
    """Return the ratios as a text table, one line per loop."""
    lines = [f"{'times as fast as':<18}  {'a naive loop':>12}  {'NumPy':>6}"]
    lines += [f"{slot:<18}  {r.to_naive:>12.1f}  {r.to_numpy:>6.2f}" for slot, r in ratios.items()]
    return "\n".join(lines)

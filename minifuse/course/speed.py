"""How fast a student's loops are on this machine, beside naive ones and NumPy's: ratios of times that are taken in turns.

A busy machine slows all of them down. So they run one after the other, round by round; the best round of each counts; and
what is too slow gets more rounds. No time is shown, since it would say more of the machine than of the loop.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from .strided import Array

MIN_ROUNDS, MAX_ROUNDS = 4, 16  # rounds
Loop = Callable[..., None]


class Ratio(NamedTuple):
    """How a loop compares."""

    to_naive: float
    """How many times faster than the naive loop."""
    to_numpy: float
    """How many times faster than NumPy; less than 1 is slower."""


def naive_chain(out: Array, a: Array, b: Array) -> None:
    """A pass for each operator, as a library makes them that does not fuse."""
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
    """One column after the other."""
    for column in range(a.shape[1]):
        total = 0.0
        for row in range(a.shape[0]):
            total += a[row, column]
        out[column] = total


def naive_matmul(out: Array, a: Array, b: Array) -> None:
    """The sum of the definition, for one output after the other."""
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, column]
            out[row, column] = total


NAIVE: dict[str, Loop] = {"fast_chain": naive_chain, "fast_column_sums": naive_column_sums, "fast_matmul": naive_matmul}


@cache
def inputs(slot: str) -> tuple[Array, ...]:
    """Arrays larger than the caches of a core, and the output, first.

    Columns are summed of rows of 8 KB: a cache looks for a line in the few places that the middle bits of its address name,
    and those are the same bits for all elements of such a column.
    """
    random = np.random.default_rng(3)
    if slot == "fast_chain":
        return np.zeros(1_000_000), random.random(1_000_000), random.random(1_000_000)
    if slot == "fast_column_sums":
        return np.zeros(1024), random.random((4096, 1024))
    return np.zeros((384, 384)), random.random((384, 384)), random.random((384, 384))


def ratio(slot: str, yours: Loop, numpy: Loop, naive: Loop, is_enough: Callable[[Ratio], bool]) -> Ratio:
    """Times of the three in turns, the best round of each; more rounds while they are not enough."""
    arguments = inputs(slot)
    loops: Sequence[Loop] = (yours, naive, numpy)
    best = [float("inf")] * len(loops)
    for number in range(MAX_ROUNDS + 1):
        for k, loop in enumerate(loops):
            started = time.perf_counter()
            loop(*arguments)
            took = time.perf_counter() - started
            if number:  # the first round fills caches
                best[k] = min(best[k], took)
        found = Ratio(best[1] / best[0], best[2] / best[0])
        if number >= MIN_ROUNDS and is_enough(found):
            break
    return found


def table(ratios: dict[str, Ratio]) -> str:
    """Format the ratios, a line for each loop."""
    lines = [f"{'times as fast as':<18}  {'a naive loop':>12}  {'NumPy':>6}"]
    lines += [f"{slot:<18}  {r.to_naive:>12.1f}  {r.to_numpy:>6.2f}" for slot, r in ratios.items()]
    return "\n".join(lines)

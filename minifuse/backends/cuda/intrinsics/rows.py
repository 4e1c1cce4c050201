"""The words of kernels that fold the rows of a product while it lies in registers: `attention` is made of them.

A lane holds `rows` times `columns` sums of a tile, as `tiles` lays them out, and one number for each of its rows, or
columns, in a local array. Each word is a `Intrinsic`: its Python meaning is here, what Numba compiles it to in
`row_tile_code`. Exponentials are to base 2, which the hardware has an instruction for: exp(x) is 2 ** (x * LOG2E).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....simt import word
from .base import Intrinsic

LOG2E = 1 / math.log(2)


def llvm_intrinsic(meaning: Callable[..., Any], name: str, *operands: Any) -> Intrinsic:
    """A word that Numba compiles to what a function of `row_tile_code` makes."""

    def build() -> Any:
        from . import rows_llvm

        return getattr(rows_llvm, name)(*operands)

    return Intrinsic(meaning, build)


def within(rows: Sequence[int], columns: Sequence[int]) -> Any:
    """What can be seen of scores that lie past an edge: -inf where column >= end, and unless low <= column - row <= high."""

    def keep(acc: Any, row: int, column: int, end: int, low: int, high: int) -> Any:
        i, j = row + np.array(rows)[:, None], column + np.array(columns)
        return np.where((j < end) & (low <= j - i) & (j - i <= high), acc, np.float32(-np.inf))

    return llvm_intrinsic(keep, "within", rows, columns)


def raise_to_rows(rows: int, columns: int) -> Any:
    """largest[r] = the larger one of itself and the sums of row r; NaN is passed over."""

    @word
    def raise_to(largest: Any, acc: Any) -> None:
        for r in range(rows):
            largest[r] = np.fmax(largest[r], np.fmax.reduce(acc[r]))

    return llvm_intrinsic(raise_to, "raise_to_rows", rows, columns)


def exponentials(rows: int, columns: int, along: str = "row") -> Any:
    """2 ** (scale * acc - shift), by one fma and one instruction each; a shift for each row, or for each column."""

    @word
    def exponential(acc: Any, scale: Any, shift: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            exact = acc.astype(float) * float(scale) - per_line_values(shift, along, rows, columns)
            return np.exp2(exact.astype(np.float32))

    return llvm_intrinsic(exponential, "exponentials", rows, columns, along)


def add_rows(rows: int, columns: int) -> Any:
    """totals[r] += the sum of row r."""

    @word
    def add_up(totals: Any, acc: Any) -> None:
        for r in range(rows):
            totals[r] = np.add.accumulate([totals[r], *acc[r]], dtype=np.float32)[-1]

    return llvm_intrinsic(add_up, "add_rows", rows, columns)


def scaled_rows(rows: int, columns: int) -> Any:
    """acc[r, c] * factors[r]."""

    @word
    def scale(acc: Any, factors: Any) -> Any:
        return acc * per_line_values(factors, "row", rows, columns).astype(np.float32)

    return llvm_intrinsic(scale, "scaled_rows", rows, columns)


def softmax_gradients(rows: int, columns: int, along: str = "row") -> Any:
    """p * (g - delta): what scores receive if their softmax p receives g; `delta` for each row, or for each column."""

    @word
    def gradient(p: Any, g: Any, delta: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):
            return p * (g - per_line_values(delta, along, rows, columns).astype(np.float32))

    return llvm_intrinsic(gradient, "softmax_gradients", rows, columns, along)


def turn(rows: Sequence[int], columns: Sequence[int], pitch: int) -> Any:
    """tile[i + columns[c] * pitch + rows[r]] = acc[r, c], four rows at once: columns become rows that can be multiplied."""

    @word
    def store(tile: Any, i: int, acc: Any) -> None:
        for c, column in enumerate(columns):
            for r in range(0, len(rows), 4):
                tile.store(i + column * pitch + rows[r], tuple(acc[r : r + 4, c]))

    return llvm_intrinsic(store, "turn", rows, columns, pitch)


def _exp2(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.exp2(np.float32(x))


exp2 = llvm_intrinsic(_exp2, "exp2")
exp2.__doc__ = "2 ** x, by one instruction: off by two units in the last place at most, and 0 where it is not normal."


def per_line_values(array: Any, along: str, rows: int, columns: int) -> Any:
    """One number for each row of a tile, or for each of its columns, beside or above it, exactly."""
    found = np.array([float(array[k]) for k in range(rows if along == "row" else columns)])
    return found[:, None] if along == "row" else found

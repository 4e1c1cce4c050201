"""Intrinsics that reduce the rows of a product while it is in registers; attention kernels are made of them.

A lane holds `rows` times `columns` accumulators of a tile, at the positions of `gemm.lane_indices`, and a local array with
one number for each of its rows, or columns. Each is an `Intrinsic`: this file has its Python implementation, `rows_llvm` the
code that Numba compiles. Exponentials are to base 2, for which the hardware has an instruction: exp(x) is 2 ** (x * LOG2E).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....simt import word
from .base import Intrinsic

LOG2E = 1 / math.log(2)


def llvm_intrinsic(python_semantics: Callable[..., Any], name: str, *operands: Any) -> Intrinsic:
    """Return an intrinsic that Numba compiles with the function `name` of `rows_llvm`."""

    def build() -> Any:
        from . import rows_llvm

        return getattr(rows_llvm, name)(*operands)

    return Intrinsic(python_semantics, build)


def mask_scores(rows: Sequence[int], columns: Sequence[int]) -> Any:
    """Mask scores: -inf where column >= end, and where column - row is not between low and high."""

    def keep(acc: Any, row: int, column: int, end: int, low: int, high: int) -> Any:
        i, j = row + np.array(rows)[:, None], column + np.array(columns)
        return np.where((j < end) & (low <= j - i) & (j - i <= high), acc, np.float32(-np.inf))

    return llvm_intrinsic(keep, "mask_scores", rows, columns)


def row_maxima(rows: int, columns: int) -> Any:
    """Set largest[r] to the maximum of itself and the accumulators of row r. NaN is ignored."""

    @word
    def raise_to(largest: Any, acc: Any) -> None:
        for r in range(rows):
            largest[r] = np.fmax(largest[r], np.fmax.reduce(acc[r]))

    return llvm_intrinsic(raise_to, "row_maxima", rows, columns)


def exponentials(rows: int, columns: int, along: str = "row") -> Any:
    """Compute 2 ** (scale * acc - shift) with one fma and one instruction each, with one shift per row or per column."""

    @word
    def exponential(acc: Any, scale: Any, shift: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            exact = acc.astype(float) * float(scale) - per_line_values(shift, along, rows, columns)
            return np.exp2(exact.astype(np.float32))

    return llvm_intrinsic(exponential, "exponentials", rows, columns, along)


def add_rows(rows: int, columns: int) -> Any:
    """Add the sum of row r to totals[r]."""

    @word
    def add_up(totals: Any, acc: Any) -> None:
        for r in range(rows):
            totals[r] = np.add.accumulate([totals[r], *acc[r]], dtype=np.float32)[-1]

    return llvm_intrinsic(add_up, "add_rows", rows, columns)


def scale_rows(rows: int, columns: int) -> Any:
    """Return acc[r, c] * factors[r]."""

    @word
    def scale(acc: Any, factors: Any) -> Any:
        return acc * per_line_values(factors, "row", rows, columns).astype(np.float32)

    return llvm_intrinsic(scale, "scale_rows", rows, columns)


def softmax_gradients(rows: int, columns: int, along: str = "row") -> Any:
    """Return p * (g - delta), the gradient of scores if g is that of their softmax p. `delta` is per row or column."""

    @word
    def gradient(p: Any, g: Any, delta: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):
            return p * (g - per_line_values(delta, along, rows, columns).astype(np.float32))

    return llvm_intrinsic(gradient, "softmax_gradients", rows, columns, along)


def store_transposed(rows: Sequence[int], columns: Sequence[int], pitch: int) -> Any:
    """Store a transposed tile, four rows at once: tile[i + columns[c] * pitch + rows[r]] = acc[r, c].

    Its columns become rows, so that it can be an operand of the next product.
    """

    @word
    def store(tile: Any, i: int, acc: Any) -> None:
        for c, column in enumerate(columns):
            for r in range(0, len(rows), 4):
                tile.store(i + column * pitch + rows[r], tuple(acc[r : r + 4, c]))

    return llvm_intrinsic(store, "store_transposed", rows, columns, pitch)


def _exp2(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.exp2(np.float32(x))


exp2 = llvm_intrinsic(_exp2, "exp2")
exp2.__doc__ = "Return 2 ** x by one instruction, with an error of at most 2 ulp; subnormal results become 0."


def per_line_values(array: Any, along: str, rows: int, columns: int) -> Any:
    """Return one number for each row of a tile, or for each column, shaped to broadcast over the tile, in float64."""
    found = np.array([float(array[k]) for k in range(rows if along == "row" else columns)])
    return found[:, None] if along == "row" else found

"""Intrinsics of attention kernels: they mask, scale and reduce the rows of a product while it is in registers.

A lane has `rows` times `columns` accumulators of a tile, at the positions of `gemm.lane_indices`, and local arrays with one
number for each of its rows or columns. This file contains the Python implementations, `rows_llvm` the code that Numba
compiles. `@word` marks a function as an instruction of the CUDA interpreter.

Exponentials are to base 2, for which the hardware has an instruction: exp(x) is 2 ** (x * LOG2E).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....simt import Array, word
from .base import Intrinsic, intrinsic

Scores = NDArray[np.float32]  # accumulators of a lane: (rows, columns)

LOG2E = 1 / math.log(2)


def mask_scores(rows: Sequence[int], columns: Sequence[int]) -> Intrinsic[Scores]:
    """Return an intrinsic that sets scores to -inf where column >= end or column - row is not in low ... high."""

    @intrinsic("rows_llvm.mask_scores", rows, columns)
    def mask(acc: Scores, row: int, column: int, end: int, low: int, high: int) -> Scores:
        i, j = row + np.array(rows)[:, None], column + np.array(columns)
        return np.where((j < end) & (low <= j - i) & (j - i <= high), acc, np.float32(-np.inf))

    return mask


def row_maxima(rows: int, columns: int) -> Intrinsic[None]:
    """Return an intrinsic that sets largest[r] to the maximum of itself and row r. NaN is ignored."""

    @intrinsic("rows_llvm.row_maxima", columns)
    @word
    def update_maxima(largest: Array, acc: Scores) -> None:
        for r in range(rows):
            largest[r] = np.fmax(largest[r], np.fmax.reduce(acc[r]))

    return update_maxima


def exponentials(rows: int, columns: int, along: str = "row") -> Intrinsic[Scores]:
    """Return an intrinsic that computes 2 ** (scale * acc - shift) by two instructions, with one shift per row or column."""

    @intrinsic("rows_llvm.exponentials", rows, columns, along)
    @word
    def exponential(acc: Scores, scale: np.float32, shift: Array) -> Scores:
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            exact = acc.astype(float) * float(scale) - per_line_values(shift, along, rows, columns)
            return np.exp2(exact.astype(np.float32))

    return exponential


def add_rows(rows: int, columns: int) -> Intrinsic[None]:
    """Return an intrinsic that adds the sum of row r to totals[r]."""

    @intrinsic("rows_llvm.add_rows", columns)
    @word
    def add_sums(totals: Array, acc: Scores) -> None:
        for r in range(rows):
            totals[r] = np.add.accumulate([totals[r], *acc[r]], dtype=np.float32)[-1]

    return add_sums


def scale_rows(rows: int, columns: int) -> Intrinsic[Scores]:
    """Return an intrinsic that computes acc[r, c] * factors[r]."""

    @intrinsic("rows_llvm.scale_rows", rows, columns)
    @word
    def scale(acc: Scores, factors: Array) -> Scores:
        return acc * per_line_values(factors, "row", rows, columns).astype(np.float32)

    return scale


def softmax_gradients(rows: int, columns: int, along: str = "row") -> Intrinsic[Scores]:
    """Return an intrinsic for p * (g - delta): the gradient of scores, from the gradient g of their softmax p.

    There is one `delta` per row or per column.
    """

    @intrinsic("rows_llvm.softmax_gradients", rows, columns, along)
    @word
    def gradient(p: Scores, g: Scores, delta: Array) -> Scores:
        with np.errstate(invalid="ignore", over="ignore"):
            return p * (g - per_line_values(delta, along, rows, columns).astype(np.float32))

    return gradient


def store_transposed(rows: Sequence[int], columns: Sequence[int], pitch: int) -> Intrinsic[None]:
    """Return an intrinsic that stores a transposed tile: tile[i + columns[c] * pitch + rows[r]] = acc[r, c].

    It stores four rows at once. The transposed tile can be an operand of the next product.
    """

    @intrinsic("rows_llvm.store_transposed", rows, columns, pitch)
    @word
    def store(tile: Array, i: int, acc: Scores) -> None:
        for c, column in enumerate(columns):
            for r in range(0, len(rows), 4):
                tile.store(i + column * pitch + rows[r], tuple(acc[r : r + 4, c]))

    return store


@intrinsic("rows_llvm.exp2")
def exp2(x: np.float32) -> np.float32:
    """Return 2 ** x by one instruction, with an error of at most 2 ulp; subnormal results become 0."""
    with np.errstate(invalid="ignore"):
        return np.exp2(np.float32(x))


def per_line_values(array: Array, along: str, rows: int, columns: int) -> NDArray[np.float64]:
    """Return one number for each row of a tile, or for each column, shaped to broadcast over the tile, in float64."""
    values = np.array([float(array[k]) for k in range(rows if along == "row" else columns)])
    return values[:, None] if along == "row" else values

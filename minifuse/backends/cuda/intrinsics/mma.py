"""Intrinsics of matrix multiplication on tensor cores through `mma.sync`, in which a warp multiplies small matrices.

Each is an `Intrinsic`: this file contains its Python implementation, `mma_llvm` the code that Numba compiles. The
interpreter multiplies the same fragments as the hardware (`simt.fragments`), so tests without a GPU detect a wrong position.

A kernel may map the elements of a fragment to any rows, columns and k of a tile, if both operands use the same k. Here a
lane takes two adjacent rows and four adjacent columns, which are not adjacent in the PTX manual. So operands are loaded from
shared memory in pairs, and accumulators are stored to memory in groups of four.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....simt import Array, mma_sync, word
from ....simt.arithmetic import RealNumber
from ..tile_shapes import MMA_DEPTH
from .base import Intrinsic, intrinsic


def round_to_tf32(x: float | np.float32) -> np.float32:
    """Round x to the 10 fraction bits of tf32: to nearest, ties away from zero. Infinity and NaN are unchanged.

    Examples
    --------
    >>> float(round_to_tf32(1 + 2**-11)), float(round_to_tf32(1 + 2**-12))
    (1.0009765625, 1.0)
    """
    x = np.float32(x)
    if not np.isfinite(x):
        return x
    return np.uint32(int(x.view(np.uint32)) + 0x1000 & 0xFFFFE000).view(np.float32)


def bf16_bits(x: float | np.float32) -> int:
    """Return the 16 bits of x rounded to bf16, which has 7 fraction bits: to nearest, ties to even.

    Examples
    --------
    >>> hex(bf16_bits(1.0)), hex(bf16_bits(1 + 2**-8)), hex(bf16_bits(1 + 3 * 2**-8))
    ('0x3f80', '0x3f80', '0x3f82')
    """
    x = np.float32(x)
    bits = int(x.view(np.uint32))
    return 0x7FFF if np.isnan(x) else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16_pair(low: float | np.float32, high: float | np.float32) -> int:
    """Pack two numbers as bf16 into a 32-bit integer, the first one in the lower half."""
    bits = bf16_bits(high) << 16 | bf16_bits(low)
    return bits - (1 << 32) if bits >> 31 else bits


pack_bf16 = intrinsic("mma_llvm.pack_bf16")(bf16_pair)


def lane_rows(warp_rows: int) -> tuple[int, ...]:
    """Return the rows of a lane's accumulators, relative to its first one: two adjacent rows of every 16.

    Examples
    --------
    >>> lane_rows(32)
    (0, 1, 16, 17)
    """
    return tuple(row + e for row in range(0, warp_rows, 16) for e in range(2))


def lane_columns(warp_columns: int) -> tuple[int, ...]:
    """Return the columns of a lane's accumulators: four adjacent columns of every 16."""
    return tuple(column + e for column in range(0, warp_columns, 16) for e in range(4))


def mma_products(warp: tuple[int, int], steps: int, pitch_a: int, pitch_b: int, kind: str) -> Intrinsic[NDArray[np.float32]]:
    """Return an intrinsic that adds the products of one tile of depth `steps` to the accumulators of a warp.

    acc = multiply(acc, a, i, b, j): the lane's first row starts at a[i], its first columns at b[j], for k = lane % 4. Rows
    of a tile along k are one pitch apart. Pitches are 8 more than a multiple of 32, so that the pairs that half a warp loads
    are in 32 different banks.

    Operands are rounded to nearest just before use. The tensor cores would truncate them, which reduces every magnitude.
    """
    rows, columns = warp

    def registers(tile: Array, i: int, pitch: int) -> Sequence[Sequence[RealNumber]]:
        """Return two adjacent elements at each k of the lane in this step, as instruction registers: (2, registers)."""
        lines = np.array([tile.load(i + k * pitch, 2) for k in range(0, MMA_DEPTH[kind], 4)]).T
        if kind == "tf32":
            return [[round_to_tf32(x) for x in line] for line in lines]
        return [[bf16_pair(*line[k : k + 2]) for k in (0, 2)] for line in lines]

    @intrinsic("mma_llvm.mma_products", warp, steps, pitch_a, pitch_b, kind)
    @word
    def multiply(acc: NDArray[np.float32], a: Array, i: int, b: Array, j: int) -> NDArray[np.float32]:
        acc = acc.copy()
        for k in range(0, steps, MMA_DEPTH[kind]):
            left = [registers(a, i + k * pitch_a + row, pitch_a) for row in range(0, rows, 16)]
            right = [registers(b, j + k * pitch_b + column, pitch_b) for column in range(0, columns, 16)]
            for m, (upper, lower) in enumerate(left):
                fragment = upper[0], lower[0], upper[1], lower[1]
                for n, pair in enumerate(right):
                    for e, other in enumerate(pair):
                        sums = acc[2 * m : 2 * m + 2, 4 * n + e : 4 * n + 4 : 2]
                        sums[...] = np.reshape(mma_sync(kind, fragment, tuple(other), tuple(sums.ravel())), (2, 2))
        return acc

    return multiply

"""The words of products on tensor cores through `mma.sync`: one warp multiplies small matrices that its lanes hold together.

Each is a `Intrinsic`: its Python meaning is here, what Numba compiles it to in `fragment_code`. The interpreter multiplies
with the very fragments of the hardware (`simt.fragments`), so that a wrong place shows without a GPU.

Which row, column and k of the tile an element of a fragment stands for is free, as long as both operands agree on k. Here a
lane takes two rows and four columns side by side, where the manual has them apart: so operands come from shared memory in
pairs, and sums go to memory in fours.
"""

from typing import Any

import numpy as np

from ....simt import mma_sync, word
from ..tile_shapes import MMA_DEPTH
from .base import Intrinsic


def llvm_intrinsic(meaning: Any, name: str, *operands: Any) -> Intrinsic:
    """A word that Numba compiles to what a function of `fragment_code` makes."""

    def build() -> Any:
        from . import mma_llvm

        return getattr(mma_llvm, name)(*operands)

    return Intrinsic(meaning, build)


def round_to_tf32(x: Any) -> Any:
    """x with the 10 bits of fraction that tf32 has, to nearest, ties away from zero. Infinity and NaN stay.

    Examples
    --------
    >>> float(rounded_to_tf32(1 + 2**-11)), float(rounded_to_tf32(1 + 2**-12))
    (1.0009765625, 1.0)
    """
    x = np.float32(x)
    if not np.isfinite(x):
        return x
    return np.uint32(int(x.view(np.uint32)) + 0x1000 & 0xFFFFE000).view(np.float32)


def bf16_bits(x: Any) -> int:
    """The 16 bits of x as bf16, which has 7 bits of fraction: to nearest, ties to even.

    Examples
    --------
    >>> hex(bits_of_bf16(1.0)), hex(bits_of_bf16(1 + 2**-8)), hex(bits_of_bf16(1 + 3 * 2**-8))
    ('0x3f80', '0x3f80', '0x3f82')
    """
    x = np.float32(x)
    bits = int(x.view(np.uint32))
    return 0x7FFF if np.isnan(x) else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16_pair(low: Any, high: Any) -> int:
    """Two numbers as bf16 in an integer of 32 bits, the first one in the lower half."""
    found = bf16_bits(high) << 16 | bf16_bits(low)
    return found - (1 << 32) if found >> 31 else found


pack_bf16 = llvm_intrinsic(bf16_pair, "pack_bf16")


def lane_rows(warp_rows: int) -> tuple[int, ...]:
    """The rows of a lane's sums, from its first one on: two neighbours of each 16.

    Examples
    --------
    >>> tile_rows(32)
    (0, 1, 16, 17)
    """
    return tuple(row + e for row in range(0, warp_rows, 16) for e in range(2))


def lane_columns(warp_columns: int) -> tuple[int, ...]:
    """The columns of a lane's sums: four neighbours of each 16."""
    return tuple(column + e for column in range(0, warp_columns, 16) for e in range(4))


def warp_products(warp: tuple[int, int], steps: int, pitch_a: int, pitch_b: int, kind: str) -> Intrinsic:
    """Add to a lane's sums the products of one tile of `steps` k, which the warp computes together.

    acc = multiply(acc, a, i, b, j): the lane's first row begins at a[i], its first columns at b[j], of tiles whose rows
    along k are a pitch apart; i and j are those of k = lane % 4. Pitches are 8 more than a multiple of 32, so that the pairs
    of half a warp lie in 32 banks.

    Operands are rounded to nearest just before use. The tensor cores would cut bits off, which makes every number smaller.
    """
    rows, columns = warp

    def registers(tile: Any, i: int, pitch: int) -> Any:
        """Two neighbours at each k that the lane has in this step, as registers of the instruction: (2, registers)."""
        found = np.array([tile.load(i + k * pitch, 2) for k in range(0, MMA_DEPTH[kind], 4)]).T
        if kind == "tf32":
            return [[round_to_tf32(x) for x in line] for line in found]
        return [[bf16_pair(*line[k : k + 2]) for k in (0, 2)] for line in found]

    @word
    def multiply(acc: Any, a: Any, i: int, b: Any, j: int) -> Any:
        acc = acc.copy()
        for k in range(0, steps, MMA_DEPTH[kind]):
            left = [registers(a, i + k * pitch_a + row, pitch_a) for row in range(0, rows, 16)]
            right = [registers(b, j + k * pitch_b + column, pitch_b) for column in range(0, columns, 16)]
            for m, (upper, lower) in enumerate(left):
                fragment = upper[0], lower[0], upper[1], lower[1]
                for n, pair in enumerate(right):
                    for e, other in enumerate(pair):
                        sums = acc[2 * m : 2 * m + 2, 4 * n + e : 4 * n + 4 : 2]
                        found = mma_sync(kind, fragment, tuple(other), tuple(sums.ravel()))
                        sums[...] = np.reshape(found, (2, 2))
        return acc

    return llvm_intrinsic(multiply, "warp_products", warp, steps, pitch_a, pitch_b, kind)

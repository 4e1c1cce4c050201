"""`mma.sync`: a small matrix product computed by the 32 lanes of a warp, and the matrix elements that each lane stores.

The instruction multiplies (16, k) by (k, 8) and adds (16, 8): k is 8 for tf32 and 16 for bf16. The elements of a matrix in
the registers of one lane are its fragment. Lanes form groups of four: `g = lane // 4` is the group, and `t = lane % 4` the
index in the group.

A register has 32 bits: one float32, of which tf32 uses the upper 19 bits, or two bf16, the first in the lower half.

Here, products are exact and their sum is rounded once. Hardware adds in another order and truncates intermediate sums.

References
----------
.. [1] NVIDIA, "Parallel Thread Execution ISA", warp-level matrix instructions: matrix fragments for mma.m16n8k8 with .tf32,
   and for mma.m16n8k16 with .bf16.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columnar import WARP_SIZE

FragmentArray = NDArray[np.float32] | NDArray[np.int64]  # tf32 in floats, pairs of bf16 in integers


class FragmentIndex(NamedTuple):
    """Row and column of each element of a fragment: arrays of shape (WARP_SIZE, elements of a lane)."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]


def fragment_index(rows: list[NDArray[np.int64]], columns: list[NDArray[np.int64]]) -> FragmentIndex:
    """Build the index of a fragment from the rows and columns of its elements, each given for all lanes."""
    return FragmentIndex(
        *[np.stack([np.broadcast_to(x, WARP_SIZE) for x in coordinates], 1) for coordinates in (rows, columns)]
    )


LANE: Final = np.arange(WARP_SIZE)
G: Final = LANE // 4
T: Final = LANE % 4
OPERAND_INDICES: Final = {  # kind -> the fragment indices of a and b
    "tf32": (fragment_index([G, G + 8, G, G + 8], [T, T, T + 4, T + 4]), fragment_index([T, T + 4], [G, G])),
    "bf16": (
        fragment_index([G, G, G + 8, G + 8] * 2, [2 * T, 2 * T + 1] * 2 + [2 * T + 8, 2 * T + 9] * 2),
        fragment_index([2 * T, 2 * T + 1, 2 * T + 8, 2 * T + 9], [G] * 4),
    ),
}
ACCUMULATOR_INDEX: Final = fragment_index([G, G, G + 8, G + 8], [2 * T, 2 * T + 1] * 2)
K_SIZE: Final = {"tf32": 8, "bf16": 16}


def decode_registers(kind: str, registers: FragmentArray) -> NDArray[np.float32]:
    """Return the values that the tensor cores read from registers (WARP_SIZE, n). tf32 drops the low bits."""
    if kind == "tf32":
        return (registers.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    words = (registers.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    halves = np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)], 2)
    return halves.reshape(WARP_SIZE, -1).view(np.float32)


def multiply(kind: str, a: FragmentArray, b: FragmentArray, c: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the fragments of a @ b + c, (WARP_SIZE, 4) float32, given those of a, b and c."""
    index_a, index_b = OPERAND_INDICES[kind]
    left, right, sums = np.zeros((16, K_SIZE[kind])), np.zeros((K_SIZE[kind], 8)), np.zeros((16, 8))
    left[index_a.row, index_a.column] = decode_registers(kind, a)
    right[index_b.row, index_b.column] = decode_registers(kind, b)
    sums[ACCUMULATOR_INDEX.row, ACCUMULATOR_INDEX.column] = c
    with np.errstate(all="ignore"):
        result = (left @ right + sums).astype(np.float32)
    return result[ACCUMULATOR_INDEX.row, ACCUMULATOR_INDEX.column]

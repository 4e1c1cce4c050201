"""`mma.sync`: a small matrix product that the 32 lanes of a warp hold together, and where each lane's part of it lies.

The instruction multiplies (16, k) by (k, 8) and adds (16, 8): k is 8 in tf32, 16 in bf16. What a lane holds of a matrix is
its fragment. Lanes are counted as rows of four: `g = lane // 4`, `t = lane % 4`.

A register has 32 bits: a float32, of which tf32 takes the upper 19, or two bf16, the first in the lower half.

Products are exact here, and their sum is rounded once. Hardware adds in its own order, and cuts bits off along the way.

References
----------
.. [1] NVIDIA, "Parallel Thread Execution ISA", warp-level matrix instructions: matrix fragments for mma.m16n8k8 with .tf32,
   and for mma.m16n8k16 with .bf16.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .columnar import WARP_SIZE

Array = npt.NDArray[Any]


class FragmentIndex(NamedTuple):
    """Where each element of a fragment lies: (WARP, elements of a lane) each."""

    row: Array
    column: Array


def fragment_index(rows: list[Any], columns: list[Any]) -> FragmentIndex:
    """Of fragments whose elements lie at such rows and columns, over all lanes."""
    return FragmentIndex(*[np.stack([np.broadcast_to(x, WARP_SIZE) for x in side], 1) for side in (rows, columns)])


LANE: Final = np.arange(WARP_SIZE)
G: Final = LANE // 4
T: Final = LANE % 4
OPERAND_INDICES: Final = {  # of a, b and c
    "tf32": (fragment_index([G, G + 8, G, G + 8], [T, T, T + 4, T + 4]), fragment_index([T, T + 4], [G, G])),
    "bf16": (
        fragment_index([G, G, G + 8, G + 8] * 2, [2 * T, 2 * T + 1] * 2 + [2 * T + 8, 2 * T + 9] * 2),
        fragment_index([2 * T, 2 * T + 1, 2 * T + 8, 2 * T + 9], [G] * 4),
    ),
}
ACCUMULATOR_INDEX: Final = fragment_index([G, G, G + 8, G + 8], [2 * T, 2 * T + 1] * 2)
K_SIZE: Final = {"tf32": 8, "bf16": 16}


def decode_registers(kind: str, registers: Array) -> Array:
    """What the tensor cores see in registers (WARP, n): of tf32 the bits that it has room for, the others cut off."""
    if kind == "tf32":
        return (registers.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    words = (registers.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    halves = np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)], 2)
    return halves.reshape(WARP_SIZE, -1).view(np.float32)


def multiply(kind: str, a: Array, b: Array, c: Array) -> Array:
    """Fragments of a @ b + c, (WARP, 4) float32, from those of a, b and c."""
    at_a, at_b = OPERAND_INDICES[kind]
    left, right, sums = np.zeros((16, K_SIZE[kind])), np.zeros((K_SIZE[kind], 8)), np.zeros((16, 8))
    left[at_a.row, at_a.column] = decode_registers(kind, a)
    right[at_b.row, at_b.column] = decode_registers(kind, b)
    sums[ACCUMULATOR_INDEX.row, ACCUMULATOR_INDEX.column] = c
    with np.errstate(all="ignore"):
        found: Array = (left @ right + sums)[ACCUMULATOR_INDEX.row, ACCUMULATOR_INDEX.column].astype(np.float32)
    return found

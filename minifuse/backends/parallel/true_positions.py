"""Positions of the true elements of a mask: count them in each block of the mask, then store them, block by block.

The counts say where the positions of a block begin in the result. So threads store the blocks independently, in order. The
loops have no branch on a single element, which a processor could not predict: every position is stored, and the next one
overwrites it unless its element is true.
"""

from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import int64
from .compiler import compile_kernel_text
from .driver import count_chunks, driver

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor

BLOCK = 1 << 14  # elements of a block
MIN_SIZE = 1 << 15  # elements of a mask for which two launches are faster than NumPy

COUNT = f"""
def kernel(start, stop, args):
    mask, counts, n = pointer_u8(args[0]), pointer_i64(args[1]), args[2]
    for block in range(start, stop):
        count = 0
        for i in range(block * {BLOCK}, min((block + 1) * {BLOCK}, n)):
            count += mask[i] != 0
        counts[block] = count
"""

STORE = f"""
def kernel(start, stop, args):
    mask, ends, out = pointer_u8(args[0]), pointer_i64(args[1]), pointer_i64(args[2])
    for block in range(start, stop):
        i, k, end = block * {BLOCK}, ends[block - 1] if block > 0 else 0, ends[block]
        while k + 8 <= end:
            any_true = 0
            for j in range(i, i + 8):
                any_true |= mask[j]
            if any_true != 0:
                for j in range(i, i + 8):
                    out[k] = j
                    k += mask[j] != 0
            i += 8
        while k < end:
            out[k] = i
            k += mask[i] != 0
            i += 1
"""


def true_positions(mask: "Tensor") -> "Tensor":
    """Return the row-major positions of the true elements of a contiguous mask of at least MIN_SIZE elements."""
    blocks = ceil(mask.size / BLOCK)
    ends = np.empty(blocks, np.int64)
    launch(COUNT, blocks, mask.size, mask.address, ends.ctypes.data, mask.size)
    np.cumsum(ends, out=ends)
    result = mask.empty((int(ends[-1]),), int64, mask.meta.backend)
    launch(STORE, blocks, mask.size, mask.address, ends.ctypes.data, result.address)
    return result


def launch(text: str, blocks: int, work: int, *values: int) -> None:
    """Launch a kernel over blocks."""
    driver()(compile_kernel_text(text), blocks, count_chunks(blocks, work), np.array(values, np.int64).tobytes())

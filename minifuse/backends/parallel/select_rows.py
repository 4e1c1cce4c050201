"""Select the few first elements of rows on the CPU, in the stable order of `ir.sort`.

The extremes of some lanes of a row give a bound. The elements that are not behind it, rarely more than are selected, are
inserted in the list of the first ones.
"""

from functools import lru_cache

import numpy as np

from ...core.dtypes import DType, int64
from ...ir.selection import INDICES, Selection
from ...ir.steps import Step
from ..executable import Cost, Executable, Launcher
from .compiler import compile_kernel_text
from .driver import count_chunks, driver
from .sort_rows import MIN_SORTED, rows_of

LANES_PER_SELECTED = 2  # with more, it takes longer to find the bound than to insert what is not behind it
MAX_COUNT = 512  # selected elements, whose lanes fit in a block
MAX_SQUARE_PER_ELEMENT = 8  # of the count, for each element of a row: otherwise insertions take longer than a sort
BLOCK = 16  # elements that are compared with the bound at once


class CpuSelection(Executable):
    """A selection of the indices of the first elements of rows."""

    def __init__(self, step: Step, op: Selection) -> None:
        super().__init__(step)
        self.op, self.dtype, self.count = op, step.kernel.operand_dtypes()[-1], op.count or 0

    @property
    def refusal(self) -> str | None:
        """Why NumPy should select the elements."""
        (_, x), op = self.step.inputs[0], self.op
        if op.names != (INDICES,) or not 0 < self.count <= MAX_COUNT:
            return "NumPy selects many elements, and a sort those at ranks"
        n = x.shape[op.dim]
        is_short = n < LANES_PER_SELECTED * self.count or MAX_SQUARE_PER_ELEMENT * n < self.count**2
        return "NumPy selects elements of small arrays and of short rows" if is_short or x.size < MIN_SORTED else None

    @property
    def source(self) -> str:
        """The text of the kernel."""
        return selection_text(self.dtype, self.op.descending)

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return the launch of the kernel, of rows that are contiguous."""
        ((out,), (x_layout,)), dim, count = self.step.layouts(), self.op.dim, self.count
        n, address = x_layout.shape[dim], compile_kernel_text(self.source)
        rows, chunks = x_layout.size // n, count_chunks(x_layout.size // n, x_layout.size)

        def launch(target: int, source: int) -> None:
            y, x = rows_of(int64, target, out, dim), np.ascontiguousarray(rows_of(self.dtype, source, x_layout, dim))
            indices = y if y.flags.c_contiguous else np.empty(y.shape, np.int64)
            arguments = [x.ctypes.data, indices.ctypes.data, n, count, LANES_PER_SELECTED * count]
            driver()(address, rows, chunks, np.array(arguments, np.int64).tobytes())
            if indices is not y:
                y[...] = indices

        return launch


@lru_cache(1024)
def selection_text(dtype: DType, descending: bool) -> str:
    """Return the text of the kernel. There are as many lanes as elements of a block, or fewer."""
    is_after = "(a < b) | ((b != b) & (a == a))" if descending else "(a > b) | ((a != a) & (b == b))"  # NaN is the largest
    wide = "i32" if dtype.itemsize < 4 else dtype.short
    insert = """j, used = min(used, count - 1), min(used + 1, count)
SPACEwhile j > 0 and is_after(best[j - 1], value):
SPACE    best[j], places[j] = best[j - 1], places[j - 1]
SPACE    j -= 1
SPACEbest[j], places[j] = value, """
    return f"""
def kernel(start, stop, args):
    def is_after(a, b):
        return {is_after}

    x, indices = pointer_{dtype.short}(args[0]), pointer_i64(args[1])
    n, count, width = args[2], args[3], args[4]
    lanes, best, places = block_of_{dtype.short}(), block_of_{dtype.short}(), block_of_i64()
    for row in range(start, stop):
        first = row * n
        for k in range(width):
            lanes[k] = x[first + k]
        for tile in range(first + width, first + n - width + 1, width):
            for k in range(width):
                lane, value = {wide}(lanes[k]), {wide}(x[tile + k])
                lanes[k] = where(is_after(lane, value), value, lane)
        used = 0
        for k in range(width):
            value = lanes[k]
            if used < count or is_after(best[count - 1], value):
                {insert.replace("SPACE", " " * 16)}k
        bound, used = best[count - 1], 0
        for tile in range(0, n, {BLOCK}):
            end, is_found = min(tile + {BLOCK}, n), False
            for i in range(tile, end):
                is_found |= not is_after(x[first + i], bound)
            for i in range(tile, end if is_found else tile):
                value = x[first + i]
                if not is_after(value, bound) and (used < count or is_after(best[count - 1], value)):
                    {insert.replace("SPACE", " " * 20)}i
        for k in range(count):
            indices[row * count + k] = places[k]
"""

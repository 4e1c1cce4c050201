"""Sort rows on the CPU, with indices: NumPy sorts integers of 32 bits, which has vector instructions, between two kernels.

The first kernel makes an integer of each element and its index: the low bits are the index, and the others are the high bits
of the element's position in the range of its row. The second one gathers the elements in that order, and mends it: elements
with equal high bits are few, adjacent, and sorted by insertion. A row in which this takes long is sorted by `ir.sort`.
"""

from functools import lru_cache
from math import prod

import numpy as np

from ...core.dtypes import DType, int32, int64, uint8
from ...core.indexing import Shape
from ...core.layout import Layout, row_major
from ...ir.sort import INDICES, VALUES, Sort, order_of
from ...ir.steps import Step
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ..base import Backend
from ..executable import Cost, Executable, Launcher
from ..operand import Operand
from .compiler import compile_kernel_text
from .driver import count_chunks, driver
from .host_rows import Part, share, split_rows

MIN_SORTED = 1 << 16  # elements that are worth compiling two kernels
MAX_ROW = 1 << 13  # elements of a row, whose indices leave enough bits for the elements
MAX_MOVES = 4  # moves of an insertion for each element of a row; sorting integers of 64 bits takes as long
PARTS_PER_THREAD = 4  # so that a thread which shares its core with another process can take fewer
SORT_COST = 16  # of an element in additions, in each kernel


class CpuSort(Executable):
    """A sort of rows, of which the indices are an output."""

    def __init__(self, backend: Backend, step: Step, op: Sort) -> None:
        super().__init__(step)
        self.backend, self.op, self.dtype = backend, op, step.kernel.operand_dtypes()[-1]

    @property
    def refusal(self) -> str | None:
        """Why NumPy should sort elements with their indices."""
        ((_, x),) = self.step.inputs
        is_long = x.shape[self.op.dim] > MAX_ROW
        return "integers of 64 bits are sorted for long rows" if is_long or x.size < MIN_SORTED else None

    @property
    def source(self) -> str:
        """The texts of both kernels."""
        return "".join(sort_texts(self.dtype, self.op.descending))

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return the launches of the kernels, and the call of NumPy between them."""
        (outputs, (x_layout,)), dim, descending = self.step.layouts(), self.op.dim, self.op.descending
        n, rows = x_layout.shape[dim], x_layout.size // x_layout.shape[dim]
        pack, mend = map(compile_kernel_text, sort_texts(self.dtype, descending))
        chunks, parts = count_chunks(rows, rows * n * SORT_COST), split_rows((rows, n), 1, PARTS_PER_THREAD)
        names, dtypes = self.op.names, {VALUES: self.dtype, INDICES: int64}

        def launch(*addresses: int) -> None:
            buffers = list[MemoryBuffer]()

            def scratch(dtype: DType, shape: Shape = (rows, n)) -> np.ndarray:
                buffers.append(self.backend.allocate(round_to_size_class(prod(shape) * dtype.itemsize)))
                return Operand.at_address(buffers[-1].address, dtype, row_major(shape)).array()

            *places, source = addresses
            arrays = zip(names, places, outputs, strict=True)
            targets = {name: rows_of(dtypes[name], address, layout, dim) for name, address, layout in arrays}
            x = np.ascontiguousarray(rows_of(self.dtype, source, x_layout, dim)).reshape(rows, n)
            results = {k: y.reshape(rows, n) for k, y in targets.items() if y.flags.c_contiguous}
            results |= {name: scratch(dtype) for name, dtype in dtypes.items() if name not in results}
            values, indices = results[VALUES], results[INDICES]
            pairs, is_unsorted = scratch(int32).view(np.uint32), scratch(uint8, (rows,))
            operands = [x, pairs, values, indices, is_unsorted]
            arguments = np.array([*[a.ctypes.data for a in operands], n, (n - 1).bit_length()], np.int64).tobytes()

            def sort_pairs(part: Part) -> None:
                pairs[part].sort(axis=1)

            driver()(pack, rows, chunks, arguments)
            share(sort_pairs, parts)
            driver()(mend, rows, chunks, arguments)
            if (others := np.flatnonzero(is_unsorted)).size:
                with np.errstate(all="ignore"):
                    indices[others] = order_of(x[others], 1, descending)
                values[others] = np.take_along_axis(x[others], indices[others], 1)
            for name, target in targets.items():
                if not target.flags.c_contiguous:
                    target[...] = results[name].reshape(target.shape)

        return launch


def rows_of(dtype: DType, address: int, layout: Layout, dim: int) -> np.ndarray:
    """Return an array in memory, with its rows along the last dim."""
    return np.moveaxis(Operand.at_address(address, dtype, layout).array(), dim, -1)


@lru_cache(1024)
def sort_texts(dtype: DType, descending: bool) -> tuple[str, str]:
    """Return the texts of the kernels before and after the sort of integers."""
    integer = "i64" if dtype.itemsize == 8 else "i32"
    bits = 64 if integer == "i64" else 32
    element, key, most = dtype.short, "x[i]", (1 << (bits - 1)) - 1
    if dtype.is_float:  # the magnitude, with the sign; all NaN are the largest number
        element, infinity = integer, int(np.array(np.inf, dtype.numpy).view(f"i{bits // 8}"))
        key = f"where((x[i] & {most}) > {infinity}, {most}, where(x[i] < 0, -(x[i] & {most}), x[i] & {most}))"
    key, is_after = (f"{integer}(~({key}))", "<") if descending else (f"{integer}({key})", ">")
    unpack = """
def kernel(start, stop, args):
    x, pairs, n, index_bits = pointer_{}(args[0]), pointer_i32(args[1]), args[5], args[6]"""
    pack = f"""{unpack.format(element)}
    place_bits = 32 - index_bits
    mask = {integer}((i64(1) << place_bits) - 1)
    for row in range(start, stop):
        low, high = {integer}({most}), {integer}(-{most} - 1)
        for i in range(row * n, (row + 1) * n):
            low, high = minimum(low, {key}), maximum(high, {key})
        used, half = 1, (sub(i64(high), i64(low)) >> 1) & {(1 << 63) - 1}  # bits of the range of the row
        while half > 0:
            used, half = used + 1, half >> 1
        shift = {integer}(max(used - place_bits, 0))
        for k in range(n):
            i = row * n + k
            place = i32((sub({key}, low) >> shift) & mask)
            pairs[i] = i32(place << index_bits) | i32(k)
"""
    mend = f"""{unpack.format(dtype.short)}
    values, indices, is_unsorted = pointer_{dtype.short}(args[2]), pointer_i64(args[3]), pointer_u8(args[4])
    block = block_of_{dtype.short}()
    mask = (i64(1) << index_bits) - 1
    for row in range(start, stop):
        first, stop_row, moves = row * n, (row + 1) * n, 0
        for tile in range(first, stop_row, 256):
            size = min(stop_row - tile, 256)
            for k in range(size):
                block[k] = x[first + (i64(pairs[tile + k]) & mask)]
            for k in range(size):
                values[tile + k] = block[k]
        for k in range(first, stop_row):
            indices[k] = i64(pairs[k]) & mask
        for k in range(first + 1, stop_row):
            if values[k - 1] {is_after} values[k]:
                value, index, j = values[k], indices[k], k
                while j > first and values[j - 1] {is_after} value and moves <= {MAX_MOVES} * n:
                    values[j], indices[j] = values[j - 1], indices[j - 1]
                    j, moves = j - 1, moves + 1
                values[j], indices[j] = value, index
        is_unsorted[row] = moves > {MAX_MOVES} * n
"""
    return pack, mend

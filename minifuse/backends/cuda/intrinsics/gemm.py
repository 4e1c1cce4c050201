"""Intrinsics of matrix multiplication: asynchronous copies, outer products in registers, and the store of a tile.

Each is an `Intrinsic`: this file contains its Python implementation, `gemm_llvm` the code that Numba compiles. In the
interpreter, the accumulators of a lane are a NumPy array, which a kernel only passes from one intrinsic to the next.

An asynchronous copy is complete only after a wait. The interpreter writes the copy at once, to detect races with readers,
but counts it as unwritten until its lane has waited: a kernel that forgets to wait reads uninitialized memory.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ....simt import Array, current, shuffle_registers, word
from ....simt.arithmetic import RealNumber
from ....simt.lanes import CopyInFlight
from ..tile_shapes import swizzle
from .base import Intrinsic, intrinsic

Accumulators = np.ndarray  # the sums of a lane: (rows, columns), with a dtype of ACCUMULATOR_DTYPES
ACCUMULATOR_DTYPES = {
    name: np.dtype(kind) for name, kind in {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "u8": "i4"}.items()
}


def lane_indices(count: int, lanes: int) -> tuple[int, ...]:
    """Return the indices of a lane's `count` values along one side of its warp's tile: interleaved groups of four.

    Examples
    --------
    >>> lane_indices(8, 4)
    (0, 1, 2, 3, 16, 17, 18, 19)
    """
    return tuple(i // 4 * 4 * lanes + i % 4 for i in range(count))


def copy_async(width: int, element: str = "f32") -> Intrinsic[None]:
    """Return an intrinsic that starts to copy `width` elements, 1 or 4, to shared memory, or zeros if not `valid`.

    The copy is complete once the lane has waited for the group of copies that it belongs to. A copy of four elements needs
    addresses that are multiples of 16 bytes, or of its size if that is less. Single bytes are copied through registers, for
    which a barrier is enough.
    """

    @intrinsic("gemm_llvm.copy_async", width, element)
    @word
    def copy(shared: Array, i: int, source: Array, j: int, valid: bool) -> None:
        shared.receive(i, width, source if valid else None, j)
        pending_copies()[-1].append((shared, i, width))

    return copy


def wait(count: int) -> Intrinsic[None]:
    """Return an intrinsic that waits until at most the last `count` groups of this lane's copies are pending."""

    @intrinsic("gemm_llvm.statement", f"cp.async.wait_group {count};")
    @word
    def wait_group() -> None:
        groups = pending_copies()
        while len(groups) - 1 > count:
            for shared, i, width in groups.pop(0):
                shared.mark(i, width, is_written=True)

    return wait_group


def pending_copies() -> list[list[CopyInFlight]]:
    """Return the pending copies of the running lane, in groups. The last group is still open."""
    lane = current("cp.async")
    if lane.copies is None:
        lane.copies = [[]]
    return lane.copies


@intrinsic("gemm_llvm.statement", "cp.async.commit_group;")
@word
def commit() -> None:
    """Close the group of the copies that this lane has started."""
    pending_copies().append([])


def zeros(rows: int, columns: int, element: str = "f32") -> Intrinsic[Accumulators]:
    """Return an intrinsic for a lane's accumulators before the first product. Bools accumulate as int32."""

    @intrinsic("gemm_llvm.zeros", rows * columns, element)
    def zero() -> Accumulators:
        return np.zeros((rows, columns), ACCUMULATOR_DTYPES[element])

    return zero


def outer_products(
    rows: Sequence[int],
    columns: Sequence[int],
    steps: int,
    pitch_a: int,
    pitch_b: int,
    element: str = "f32",
    are_swizzled: tuple[bool, bool] = (False, False),
) -> Intrinsic[Accumulators]:
    """Return an intrinsic that adds the products of a tile: acc[i, j] += sum over k of A[k, rows[i]] * B[k, columns[j]].

    Floats use fma (the interpreter computes in float64 and rounds again), integers wrap around, and bools use `or` and
    `and`. A swizzled tile stores groups of four elements in the order of `swizzle`. Undoing it is free: it only selects
    registers.
    """
    is_a_swizzled, is_b_swizzled = are_swizzled
    # products of float32 are exact in float64
    exact_dtype = np.dtype(np.float64) if element == "f32" else ACCUMULATOR_DTYPES[element]
    read_a = tile_reader(rows, steps, pitch_a, is_a_swizzled, exact_dtype)
    read_b = tile_reader(columns, steps, pitch_b, is_b_swizzled, exact_dtype)

    @intrinsic("gemm_llvm.outer_products", rows, columns, steps, pitch_a, pitch_b, element, are_swizzled)
    @word
    def multiply(acc: Accumulators, a: Array, i: int, b: Array, j: int) -> Accumulators:
        x, y = read_a(a, i)[:, :, None], read_b(b, j)[:, None, :]
        if element == "u8":
            return acc | np.bitwise_or.reduce(x & y)
        acc = acc.copy()
        for product in x * y:
            np.add(acc, product, out=acc, dtype=exact_dtype, casting="same_kind")
        return acc

    return multiply


def tile_reader(
    lines: Sequence[int], steps: int, pitch: int, is_swizzled: bool, exact_dtype: np.dtype
) -> Callable[[Array, int], Accumulators]:
    """Return a function that reads one operand of a lane's products from a tile, four elements at a time: (steps, lines)."""
    places = np.add.outer(np.arange(steps) * pitch, lines[::4]).reshape(-1)
    order = np.arange(len(lines)) ^ swizzle(np.arange(steps))[:, None]

    def read(tile: Array, i: int) -> Accumulators:
        elements = tile.gather(i + places, 4).astype(exact_dtype).reshape(steps, len(lines))
        return np.take_along_axis(elements, order, 1) if is_swizzled else elements

    return read


def interleaved_indices(count: int, lanes: int) -> tuple[int, ...]:
    """Return the columns of a lane's `count` sums after `interleave_columns`, relative to the number of the lane.

    Examples
    --------
    >>> interleaved_indices(8, 4)
    (0, 4, 8, 12, 16, 20, 24, 28)
    >>> interleaved_indices(4, 8)
    (0, 16, 8, 24)
    """
    bits = [lanes.bit_length() - 1 + (lanes.bit_length() - 1 + b) % 2 for b in range(2)]  # of the column, for each bit of k
    return tuple(k // 4 * 4 * lanes + (k % 2 << bits[0]) + (k // 2 % 2 << bits[1]) for k in range(count))


def interleave_columns(sums: Accumulators, lanes: int, lane: int) -> Accumulators:
    """Exchange the sums of `lanes` lanes along a row, so that these have adjacent columns.

    Before, a lane has four adjacent columns, and the next lane the next four. A store of one column of each lane would write
    every fourth element. Afterwards, a store writes `lanes` adjacent elements. Column and lane change places bit by bit: in
    each step, a lane gives half of its sums to the lane whose number differs in one bit.
    """
    groups = sums.reshape(len(sums), -1, 2, 2).copy()
    for mask, bit in exchange_steps(lanes):
        halves = groups if bit else groups.swapaxes(2, 3)
        given = 0 if lane & mask else 1
        halves[:, :, given] = shuffle_registers(halves[:, :, given].copy(), mask)
    return groups.reshape(sums.shape)


def exchange_steps(lanes: int) -> list[tuple[int, int]]:
    """Return the steps of `interleave_columns`: the bit of the lane, as a mask, and the number of the column's bit."""
    return [(1 << p, p % 2) for p in range(lanes.bit_length() - 1)]


def float64_mma_products(
    rows: Sequence[int], columns: Sequence[int], steps: int, steps_a: tuple[int, int], steps_b: tuple[int, int]
) -> Intrinsic[Accumulators]:
    """Return an intrinsic that adds the products of one float64 tile to the accumulators of a warp, on tensor cores.

    Element (x, k) of a tile is at x * steps[0] + k * steps[1] from the warp's corner. A lane has the accumulators at rows
    lane // 4 + rows[i] and columns lane % 4 * 2 + columns[j]: every eighth row, and a pair of every eight columns.
    """
    (ax, ak), (bx, bk) = steps_a, steps_b
    places_a = np.add.outer(np.arange(steps) * ak, np.multiply(rows, ax)).reshape(-1)
    places_b = np.add.outer(np.arange(steps) * bk, np.multiply(columns, bx)).reshape(-1)

    @intrinsic("gemm_llvm.float64_mma_products", len(rows), len(columns), steps, steps_a, steps_b)
    @word
    def multiply(acc: Accumulators, a: Array, i: int, b: Array, j: int) -> Accumulators:
        lane = current("mma.sync").laneid
        row, column = lane // 4, lane % 4 * 2
        x = a.gather(i + row * ax + places_a, 1).reshape(steps, len(rows), 1)
        y = b.gather(j + column * bx + places_b, 1).reshape(steps, 1, len(columns))
        for product in x * y:
            acc = acc + product
        return acc

    return multiply


def store_tile(
    rows: Sequence[int], columns: Sequence[int], guarded: bool, element: str = "f32", lanes: int = 1
) -> Intrinsic[None]:
    """Return an intrinsic that stores a lane's sums where top <= row, left <= column and, if `guarded`, row < M, column < N.

    out[start + row * row_step + column * column_step] = epilogue(alpha * sum, row, column, at), or four elements at once
    with epilogue4 if `wide`: then column_step is 1, and N, left and the address of every row are multiples of four elements.
    The type in memory may differ from that of the accumulators. If a row has several `lanes`, with
    columns of `lane_indices`, they exchange columns before they store single elements.
    """
    interleaved = interleaved_indices(len(columns), lanes) if lanes > 1 else columns

    @intrinsic("gemm_llvm.store_tile", rows, columns, guarded, element, lanes)
    @word
    def store(
        out: Array, start: int, i: int, j: int, top: int, left: int, M: int, N: int, row_step: int, column_step: int,
        wide: bool, acc: Accumulators, alpha: float, epilogue: Callable[..., RealNumber],
        epilogue4: Callable[..., tuple[RealNumber, ...]], at: tuple[object, ...],
    ) -> None:  # fmt: skip
        scaled = acc.dtype.type(alpha) * acc if acc.dtype.kind == "f" else acc
        width, places = (4, columns) if wide else (1, interleaved)
        if lanes > 1 and not wide:
            lane = current("store_tile").laneid % lanes
            scaled, j = interleave_columns(scaled, lanes, lane), j - 3 * lane
        for r, place in enumerate(rows):
            for c in range(0, len(columns), width):
                row, column = i + place, j + places[c]
                if top <= row and left <= column and (not guarded or (row < M and column < N)):
                    sums = tuple(to_kernel_number(scaled[r, c + q]) for q in range(width))
                    results = epilogue4(sums, row, column, at) if wide else (epilogue(sums[0], row, column, at),)
                    out.store(start + row * row_step + column * column_step, results)

    return store


def to_kernel_number(x: np.signedinteger | np.floating) -> RealNumber:
    """Convert an accumulator to the number type of kernels: integers become Python ints."""
    return int(x) if isinstance(x, np.signedinteger) else x

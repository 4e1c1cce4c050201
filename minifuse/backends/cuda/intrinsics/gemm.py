"""The words of fast matrix products: copies that overlap with arithmetic, outer products in registers, the store of a tile.

Each is a `Intrinsic`: its Python meaning is here, what Numba compiles it to in `tile_code`. In the interpreter a lane's
sums are a NumPy array; a kernel only hands them from word to word.

A copy that is on its way is not there yet. In the interpreter it is written at once, so that a race with a reader shows, but
counts as unwritten until its lane has waited for it: a kernel that forgets to wait reads what nobody has written.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....simt import current, word
from ..tile_shapes import swizzle
from .base import Intrinsic

ACCUMULATOR_DTYPES = {
    name: np.dtype(kind) for name, kind in {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8", "u8": "i4"}.items()
}


def lane_indices(count: int, lanes: int) -> tuple[int, ...]:
    """Where the `count` values of a lane lie along one side of its warp's tile: groups of four, side by side with others'.

    Examples
    --------
    >>> places(8, 4)
    (0, 1, 2, 3, 16, 17, 18, 19)
    """
    return tuple(i // 4 * 4 * lanes + i % 4 for i in range(count))


def llvm_intrinsic(meaning: Callable[..., Any], name: str, *operands: Any) -> Intrinsic:
    """A word that Numba compiles to what a function of `tile_code` makes."""

    def build() -> Any:
        from . import gemm_llvm

        return getattr(gemm_llvm, name)(*operands)

    return Intrinsic(meaning, build)


def copy_async(width: int, element: str = "f32") -> Intrinsic:
    """Start a copy of `width` elements, 1 or 4, from memory to shared memory; of zeros where it is not `valid`.

    They are there once the lane has waited for the group of copies that they belong to. Four lie at multiples of 16 bytes,
    or of their size. Single bytes go through registers, for which a barrier is enough.
    """

    @word
    def copy(shared: Any, i: int, source: Any, j: int, valid: bool) -> None:
        shared.receive(i, width, source if valid else None, j)
        pending_copies()[-1].append((shared, i, width))

    return llvm_intrinsic(copy, "copy_async", width, element)


def wait(count: int) -> Intrinsic:
    """Wait until at most the last `count` groups of this lane's copies are on their way."""

    @word
    def wait_group() -> None:
        groups = pending_copies()
        while len(groups) - 1 > count:
            for shared, i, width in groups.pop(0):
                shared.mark(i, width, is_written=True)

    return llvm_intrinsic(wait_group, "statement", f"cp.async.wait_group {count};")


def pending_copies() -> list[list[tuple[Any, int, int]]]:
    """The copies of the lane that runs, in groups; the last one is still open."""
    lane = current("cp.async")
    if lane.copies is None:
        lane.copies = [[]]
    return lane.copies


@word
def commit_group() -> None:
    """Close the group of the copies that this lane has started."""
    pending_copies().append([])


commit = llvm_intrinsic(commit_group, "statement", "cp.async.commit_group;")


def zeros(rows: int, columns: int, element: str = "f32") -> Intrinsic:
    """The sums of a lane before the first product. Bools are added up as int32."""

    def zero() -> Any:
        return np.zeros((rows, columns), ACCUMULATOR_DTYPES[element])

    return llvm_intrinsic(zero, "zeros", rows * columns, element)


def outer_products(
    rows: Sequence[int],
    columns: Sequence[int],
    steps: int,
    pitch_a: int,
    pitch_b: int,
    element: str = "f32",
    are_mixed: tuple[bool, bool] = (False, False),
) -> Intrinsic:
    """Add to a lane's sums the products of one tile: acc[i, j] += sum over k of A[k, rows[i]] * B[k, columns[j]].

    Floats by fma (in the interpreter, float64 is rounded twice); integers wrap around; bools by `or` and `and`. Of a tile
    that is mixed, groups of four elements lie in the order of `swizzle`; which register holds which costs nothing.
    """
    is_a_mixed, is_b_mixed = are_mixed
    exact = (
        np.dtype(np.float64) if element == "f32" else ACCUMULATOR_DTYPES[element]
    )  # products of float32 are exact in float64
    look_a, look_b = (
        tile_reader(rows, steps, pitch_a, is_a_mixed, exact),
        tile_reader(columns, steps, pitch_b, is_b_mixed, exact),
    )

    @word
    def multiply(acc: Any, a: Any, i: int, b: Any, j: int) -> Any:
        x, y = look_a(a, i)[:, :, None], look_b(b, j)[:, None, :]
        if element == "u8":
            return acc | np.bitwise_or.reduce(x & y)
        acc = acc.copy()
        for product in x * y:
            np.add(acc, product, out=acc, dtype=exact, casting="same_kind")
        return acc

    return llvm_intrinsic(multiply, "outer_products", rows, columns, steps, pitch_a, pitch_b, element, are_mixed)


def tile_reader(
    lines: Sequence[int], steps: int, pitch: int, is_mixed: bool, exact: np.dtype[Any]
) -> Callable[[Any, int], NDArray[Any]]:
    """What a lane reads of a tile on one side of its products, four elements at once: (steps, lines)."""
    places = np.add.outer(np.arange(steps) * pitch, lines[::4]).reshape(-1)
    order = np.arange(len(lines)) ^ swizzle(np.arange(steps))[:, None]

    def look(tile: Any, i: int) -> NDArray[Any]:
        found = tile.gather(i + places, 4).astype(exact).reshape(steps, len(lines))
        return np.take_along_axis(found, order, 1) if is_mixed else found

    return look


def fragment_products(
    rows: Sequence[int], columns: Sequence[int], steps: int, steps_a: tuple[int, int], steps_b: tuple[int, int]
) -> Intrinsic:
    """Add to the sums of a warp's lanes the products of one tile of float64, by tensor cores.

    Element (x, k) of a tile lies at x * steps[0] + k * steps[1] from the warp's corner. A lane has the sums at rows
    lane // 4 + rows[i] and columns lane % 4 * 2 + columns[j]: rows eight apart, pairs of columns eight apart.
    """
    (ax, ak), (bx, bk) = steps_a, steps_b
    places_a = np.add.outer(np.arange(steps) * ak, np.multiply(rows, ax)).reshape(-1)
    places_b = np.add.outer(np.arange(steps) * bk, np.multiply(columns, bx)).reshape(-1)

    @word
    def multiply(acc: Any, a: Any, i: int, b: Any, j: int, lane: int) -> Any:
        row, column = int(lane) // 4, int(lane) % 4 * 2
        x = a.gather(i + row * ax + places_a, 1).reshape(steps, len(rows), 1)
        y = b.gather(j + column * bx + places_b, 1).reshape(steps, 1, len(columns))
        for product in x * y:
            acc = acc + product
        return acc

    return llvm_intrinsic(multiply, "fragment_products", len(rows), len(columns), steps, steps_a, steps_b)


def store_tile(
    rows: Sequence[int], columns: Sequence[int], guarded: bool, element: str = "f32", stored: str = ""
) -> Intrinsic:
    """Store a lane's sums where top <= row and left <= column and, if `guarded`, row < M and column < N.

    out[start + row * row_step + column * column_step] = finish(alpha * sum, row, column, at), four at once, by finish_four,
    where `wide`: column_step is 1 then, and N, left and the address of every row are multiples of four elements. What is
    `stored` may have another type than the sums.
    """

    @word
    def store(
        out: Any, start: int, i: int, j: int, top: int, left: int, M: int, N: int, row_step: int, column_step: int,
        wide: bool, acc: Any, alpha: float, finish: Any, finish_four: Any, at: Any,
    ) -> None:  # fmt: skip
        scaled = acc.dtype.type(alpha) * acc if acc.dtype.kind == "f" else acc
        width = 4 if wide else 1
        for r, place in enumerate(rows):
            for c in range(0, len(columns), width):
                row, column = i + place, j + columns[c]
                if top <= row and left <= column and (not guarded or (row < M and column < N)):
                    sums = tuple(to_kernel_number(scaled[r, c + q]) for q in range(width))
                    found = finish_four(sums, row, column, at) if wide else (finish(sums[0], row, column, at),)
                    out.store(start + row * row_step + column * column_step, found)

    return llvm_intrinsic(store, "store_tile", rows, columns, guarded, element, stored or element)


def to_kernel_number(x: Any) -> Any:
    """A sum as kernels hold numbers: integers are Python's."""
    return x.item() if x.dtype.kind == "i" else x

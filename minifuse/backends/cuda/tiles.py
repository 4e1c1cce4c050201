"""The words of fast matrix products: copies that overlap with arithmetic, outer products in registers, the store of a tile.

Each is a `Word`: its Python meaning is here, what Numba compiles it to in `tile_code`. In the interpreter a lane's sums are
a NumPy array; a kernel only hands them from word to word.

A copy that is on its way is not there yet. In the interpreter it is written at once, so that a race with a reader shows, but
counts as unwritten until its lane has waited for it: a kernel that forgets to wait reads what nobody has written.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...simt import current, word
from .words import Word

COPIES = (-1,)  # among the things that a lane of the interpreter owns: its groups of copies, the last one still open


def places(count: int, lanes: int) -> tuple[int, ...]:
    """Where the `count` values of a lane lie along one side of its warp's tile: groups of four, side by side with others'.

    Examples
    --------
    >>> places(8, 4)
    (0, 1, 2, 3, 16, 17, 18, 19)
    """
    return tuple(i // 4 * 4 * lanes + i % 4 for i in range(count))


def copy_async(width: int) -> Word:
    """Start a copy of `width` floats, 1 or 4, from memory to shared memory; of zeros where it is not `valid`.

    They are there once the lane has waited for the group of copies that they belong to. Four lie at multiples of 16 bytes.
    """

    @word
    def copy(shared: Any, i: int, source: Any, j: int, valid: bool) -> None:
        shared.store(i, source.load(j, width) if valid else (np.float32(0),) * width)
        set_written(shared, i, width, False)
        groups_of_lane()[-1].append((shared, i, width))

    def build() -> Any:
        from . import tile_code

        return tile_code.copy_async(width)

    return Word(copy, build)


def wait(count: int) -> Word:
    """Wait until at most the last `count` groups of this lane's copies are on their way."""

    @word
    def wait_group() -> None:
        groups = groups_of_lane()
        while len(groups) - 1 > count:
            for shared, i, width in groups.pop(0):
                set_written(shared, i, width, True)

    def build() -> Any:
        from . import tile_code

        return tile_code.statement(f"cp.async.wait_group {count};")

    return Word(wait_group, build)


def groups_of_lane() -> list[list[tuple[Any, int, int]]]:
    """The copies of the lane that runs, in groups."""
    lane = current("cp.async")
    lane.locals = {} if lane.locals is None else lane.locals
    groups: list[list[tuple[Any, int, int]]] = lane.locals.setdefault(COPIES, [[]])
    return groups


def set_written(shared: Any, i: int, width: int, is_written: bool) -> None:
    """Say whether elements have been written."""
    shared._written.reshape(-1)[i : i + width] = is_written


@word
def close_group() -> None:
    """Close the group of the copies that this lane has started."""
    groups_of_lane().append([])


def _commit() -> Any:
    from . import tile_code

    return tile_code.statement("cp.async.commit_group;")


commit = Word(close_group, _commit)


def zeros(rows: int, columns: int) -> Word:
    """The sums of a lane before the first product."""

    def zero() -> Any:
        return np.zeros((rows, columns), np.float32)

    def build() -> Any:
        from . import tile_code

        return tile_code.zeros(rows * columns)

    return Word(zero, build)


def outer_products(rows: Sequence[int], columns: Sequence[int], steps: int, pitch_a: int, pitch_b: int) -> Word:
    """Add to a lane's sums the products of one tile: acc[i, j] += sum over k of A[k, rows[i]] * B[k, columns[j]], by fma."""

    @word
    def multiply(acc: Any, a: Any, i: int, b: Any, j: int) -> Any:
        for k in range(steps):
            x = np.concatenate([a.load(i + k * pitch_a + row, 4) for row in rows[::4]], dtype=np.float64)
            y = np.concatenate([b.load(j + k * pitch_b + column, 4) for column in columns[::4]], dtype=np.float64)
            acc = (acc + x[:, None] * y).astype(np.float32)  # products of float32 are exact in float64
        return acc

    def build() -> Any:
        from . import tile_code

        return tile_code.outer_products(rows, columns, steps, pitch_a, pitch_b)

    return Word(multiply, build)


def store_tile(rows: Sequence[int], columns: Sequence[int], guarded: bool) -> Word:
    """Store a lane's sums where top <= row and left <= column and, if `guarded`, row < M and column < N.

    out[start + row * row_step + column * column_step] = finish(alpha * sum, row, column, extra), four at once where `wide`:
    column_step is 1 then, and N, left and the address of every row are multiples of four elements.
    """

    @word
    def store(
        out: Any, start: int, i: int, j: int, top: int, left: int, M: int, N: int, row_step: int, column_step: int,
        wide: bool, acc: Any, alpha: float, finish: Any, extra: Any,
    ) -> None:  # fmt: skip
        scaled, width = np.float32(alpha) * acc, 4 if wide else 1
        for r, place in enumerate(rows):
            for c in range(0, len(columns), width):
                row, column = i + place, j + columns[c]
                if top <= row and left <= column and (not guarded or (row < M and column < N)):
                    numbers = [finish(scaled[r, c + q], row, column + q, extra) for q in range(width)]
                    out.store(start + row * row_step + column * column_step, tuple(numbers))

    def build() -> Any:
        from . import tile_code

        return tile_code.store_tile(rows, columns, guarded)

    return Word(store, build)

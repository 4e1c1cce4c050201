"""How many threads a kernel gets, and in what shape. Another size is another grid, never another kernel.

A block has at most 256 threads. Sides are powers of two, so that the threads of a short row lie in one warp.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from .emitter import MOST, WARP

THREADS = 256  # of a block
LARGEST_GRID = 65535  # blocks along y, and along z
MANY = 1024  # blocks that keep a GPU busy


class Geometry(NamedTuple):
    """Blocks along x, y, z, and threads along x, y."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


def geometry_of(form: str, sizes: Sequence[int], rows: int, counted: int, is_wide: bool) -> Geometry:
    """The grid of a kernel of a form over axes of these sizes; the first `rows` are rows, `counted` of them shared out."""
    count, last = prod(sizes[:counted]), sizes[-1]
    if form == "rows":
        return of_rows(count, last, is_wide)
    if form == "columns":
        return of_columns(count, sizes[rows - 1], last)
    return of_points(count, last, 4 if is_wide else 1) if counted else of_line(last, 4 if is_wide else 1)


def of_line(last: int, each: int) -> Geometry:
    """A thread for `each` elements of the only axis."""
    x = clamp(power_of_two(ceil_div(last, each)), WARP, THREADS)
    return Geometry((ceil_div(last, x * each), 1, 1), (x, 1, 1))


def of_points(count: int, last: int, each: int) -> Geometry:
    """A thread for `each` elements of the last axis; rows along y, in strides of the grid where they are too many."""
    x = clamp(power_of_two(ceil_div(last, each)), 1, THREADS)
    y = clamp(power_of_two(count), ceil_div(WARP, x), THREADS // x)
    return Geometry((ceil_div(last, x * each), min(ceil_div(count, y), LARGEST_GRID), 1), (x, y, 1))


def of_rows(count: int, last: int, is_wide: bool) -> Geometry:
    """As many threads a row as it has elements, or groups of four, up to 256; several short rows share a block."""
    x = clamp(power_of_two(ceil_div(last, 4 if is_wide else 1)), 1, MOST)
    y = clamp(power_of_two(count), ceil_div(WARP, x), THREADS // x) if x <= WARP else 1
    return Geometry((ceil_div(count, y), 1, 1), (x, y, 1))


def of_columns(count: int, columns: int, length: int) -> Geometry:
    """32 columns a block, each shared by 4 threads, or, where columns are few, by up to 8; short ones need fewer."""
    blocks = ceil_div(columns, WARP) * count
    y = clamp(power_of_two(ceil_div(length, 4)), 1, 4 if blocks >= MANY else MOST // WARP)
    x = clamp(power_of_two(columns), WARP, max(WARP, THREADS // 2 // y))
    rows_y = min(count, LARGEST_GRID)
    return Geometry((ceil_div(columns, x), rows_y, ceil_div(count, rows_y)), (x, y, 1))


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def clamp(n: int, low: int, high: int) -> int:
    """n, moved between two bounds."""
    return max(low, min(n, high))

"""How many threads a kernel gets, and in what shape. Another size is another grid, never another kernel.

A block has at most 256 threads, or 512 for a long row. Sides are powers of two, so that the threads of a short row lie in
one warp.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from .codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS, WARP
from .codegen.segment_sum_blocked import ROWS
from .codegen.transpose import LANES, SIDE

THREADS = 256  # of a block
MAX_ROW_ELEMENTS_PER_THREAD, MAX_ELEMENTS_PER_THREAD_OF_FEW_ROWS = (
    40,
    8,
)  # most elements of a row for each of its threads, and where rows are few
MAX_CACHED_BYTES_PER_THREAD = 160  # most bytes of a row that wait in shared memory for each of its threads
LONG_ROW_THREADS = 1024  # threads that share a row which leaves no room for another one on its multiprocessor
EXCLUSIVE_ROW_BYTES = 100 * 1024  # bytes of such a row
CHUNK_BYTES = 32  # bytes of a long row that a thread has on their way at a time, or twice as many where it is read twice
LINE_THREADS = 8  # threads that load 128 bytes side by side, in groups of four
VECTOR_WIDTH = 4  # neighbours that are loaded at once
MAX_GRID_YZ = 65535  # blocks along y, and along z
MIN_BUSY_BLOCKS = 1024  # blocks that keep a GPU busy
MAX_REGISTER_BYTES = (
    128  # bytes of a row that a thread holds at most: half of the registers that it has if 1,024 are at work
)
REDUCTION_BYTES = 8 * 1024  # bytes of shared memory that are left for what warps tell each other
MAX_SHARED_BYTES = (
    227 * 1024
)  # bytes of shared memory that a block may have; older processors have less, and read long rows again


class RowPartition(NamedTuple):
    """How a row is dealt out: each of so many threads holds so many groups of `width` neighbours, all or some at a time."""

    threads: int
    groups: int
    width: int


class LaunchGeometry(NamedTuple):
    """Blocks along x, y, z, and threads along x, y."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


def geometry_of(
    form: str, sizes: Sequence[int], rows: int, counted: int, each: int, across: int | None = None, held: int = 0
) -> LaunchGeometry:
    """The grid of a kernel of a form over axes of these sizes; the first `rows` are rows, `counted` of them shared out.

    `each` is how many elements a thread takes along the last axis; of tiles, the other side lies along the axis `across`; of
    rows, `held` bytes an element wait in shared memory.
    """
    count, last = prod(sizes[:counted]), sizes[-1]
    if across is not None:
        return tiled_geometry(prod(sizes[:-1]) // sizes[across], sizes[across], last)
    if form == "rows":
        return row_geometry(count, last, each > 1, held)
    if form == "bands":
        return LaunchGeometry(
            (1, *split_grid_yz(ceil_div(sizes[0], ROWS))), (clamp(power_of_two(sizes[1]), WARP, THREADS), 1, 1)
        )
    if form == "columns":
        return column_geometry(count, sizes[rows - 1], last)
    return pointwise_geometry(count, last, each) if counted else line_geometry(last, each)


def line_geometry(last: int, each: int) -> LaunchGeometry:
    """A thread for `each` elements of the only axis."""
    x = clamp(power_of_two(ceil_div(last, each)), WARP, max_threads(each))
    return LaunchGeometry((ceil_div(last, x * each), 1, 1), (x, 1, 1))


def pointwise_geometry(count: int, last: int, each: int) -> LaunchGeometry:
    """A thread for `each` elements of the last axis; rows along y, and along z where they are too many."""
    x = clamp(power_of_two(ceil_div(last, each)), 1, max_threads(each))
    y = clamp(power_of_two(count), ceil_div(WARP, x), max_threads(each) // x)
    return LaunchGeometry((ceil_div(last, x * each), *split_grid_yz(ceil_div(count, y))), (x, y, 1))


def max_threads(each: int) -> int:
    """Threads of a block: half as many where each has two groups of four, which an H200 runs 1 to 4 % faster so."""
    return THREADS // 2 if each > VECTOR_WIDTH else THREADS


def tiled_geometry(matrices: int, height: int, width: int) -> LaunchGeometry:
    """A block for each tile: along x those beside each other, along y and z those below each other, of all matrices."""
    return LaunchGeometry((ceil_div(width, SIDE), *split_grid_yz(matrices * ceil_div(height, SIDE))), (*LANES, 1))


def row_geometry(count: int, last: int, is_wide: bool, held: int) -> LaunchGeometry:
    """A thread for 20 to 40 elements of a row, and 128 bytes loaded side by side at least; short rows share a block.

    The more bytes of each element wait in shared memory, the fewer elements a thread has, so that many threads fit.
    """
    share = (
        min(MAX_ROW_ELEMENTS_PER_THREAD, MAX_CACHED_BYTES_PER_THREAD // max(held, 1))
        if count >= MIN_BUSY_BLOCKS
        else MAX_ELEMENTS_PER_THREAD_OF_FEW_ROWS
    )
    is_whole = is_wide and last % VECTOR_WIDTH == 0
    least = clamp(power_of_two(last // VECTOR_WIDTH if is_whole else last), 1, LINE_THREADS if is_whole else WARP)
    x = clamp(power_of_two(ceil_div(last, max(share, 1))), least, MAX_ROW_THREADS)
    y = clamp(power_of_two(count), ceil_div(WARP, x), THREADS // x) if x <= WARP else 1
    return LaunchGeometry((ceil_div(count, y), 1, 1), (x, y, 1))


def partition_row(count: int, last: int, is_wide: bool, nbytes: int) -> RowPartition | None:
    """How rows of `nbytes` an element are held in registers; None where they are too long for that.

    A thread has up to 128 bytes, or half as much one element at a time, or little where rows are few.
    """
    width = VECTOR_WIDTH if is_wide else 1
    parts, most = ceil_div(last, width), max(MAX_REGISTER_BYTES // (1 if is_wide else 2) // nbytes // width, 1)
    least = clamp(power_of_two(parts), 1, LINE_THREADS if is_wide else WARP)
    wanted = power_of_two(ceil_div(parts, most if count >= MIN_BUSY_BLOCKS else max(most // 4, 1)))
    threads = clamp(wanted, least, MAX_ROW_THREADS)
    groups = ceil_div(parts, threads)
    return RowPartition(threads, groups, width) if groups <= most else None


def partition_long_row(count: int, last: int, is_wide: bool, nbytes: int, is_read_twice: bool) -> RowPartition | None:
    """How a row that no registers hold is walked in chunks; None where it is better off in shared memory.

    Two reads beat one only where a row leaves no room for another one and comes one element at a time, or does not fit. Then
    few blocks, of many threads, so that the second read finds the row in the L2 cache.
    """
    width = VECTOR_WIDTH if is_wide else 1
    if is_read_twice and (
        cached_row_pitch(nbytes, last, 1, MAX_SHARED_BYTES) if is_wide else nbytes * last <= EXCLUSIVE_ROW_BYTES
    ):
        return None
    threads = LONG_ROW_THREADS if is_read_twice or count < MIN_BUSY_BLOCKS else THREADS
    return RowPartition(threads, max(CHUNK_BYTES * (1 + is_read_twice) // nbytes // width, 1), width)


def partitioned_row_geometry(count: int, threads: int) -> LaunchGeometry:
    """Rows that are shared by so many threads; short ones share a block."""
    y = clamp(power_of_two(count), ceil_div(WARP, threads), THREADS // threads) if threads <= WARP else 1
    return LaunchGeometry((ceil_div(count, y), 1, 1), (threads, y, 1))


def cached_row_pitch(nbytes: int, last: int, rows: int, most_shared: int) -> int:
    """Elements from row to row in shared memory, a multiple of four; 0 where `rows` of `nbytes` an element do not fit."""
    pitch = ceil_div(last, VECTOR_WIDTH) * VECTOR_WIDTH
    return pitch if pitch * nbytes * rows <= most_shared - REDUCTION_BYTES else 0


def column_geometry(count: int, columns: int, length: int) -> LaunchGeometry:
    """32 columns a block, each shared by 4 threads, or, where columns are few, by up to 8; short ones need fewer."""
    blocks = ceil_div(columns, WARP) * count
    y = clamp(power_of_two(ceil_div(length, 4)), 1, 4 if blocks >= MIN_BUSY_BLOCKS else MAX_COLUMN_THREADS // WARP)
    x = clamp(power_of_two(columns), WARP, max(WARP, THREADS // 2 // y))
    return LaunchGeometry((ceil_div(columns, x), *split_grid_yz(count)), (x, y, 1))


def vec4_column_geometry(count: int, columns: int) -> LaunchGeometry:
    """256 threads a block, of which 32 lie along columns, four each, or fewer where that makes too few blocks."""
    x = WARP
    while x > LINE_THREADS and ceil_div(columns, VECTOR_WIDTH * x) * count < MIN_BUSY_BLOCKS // 2:
        x //= 2
    return LaunchGeometry((ceil_div(columns, VECTOR_WIDTH * x), *split_grid_yz(count)), (x, THREADS // x, 1))


def split_grid_yz(count: int) -> tuple[int, int]:
    """So many blocks along y and z; some more where they do not fill both."""
    y = min(count, MAX_GRID_YZ)
    return y, ceil_div(count, y)


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def power_of_two(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def clamp(n: int, low: int, high: int) -> int:
    """n, moved between two bounds."""
    return max(low, min(n, high))

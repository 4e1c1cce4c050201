"""Launch geometry: how many threads a kernel gets, and in which shape. Sizes change the grid, never the kernel.

A block has at most 256 threads, or 512 for a long row. Its dimensions are powers of two, so the threads of a short row are
in one warp.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ...core.rounding import ceil_div, power_of_two
from ..codegen.gpu_facts import WARP, split_grid_yz
from .codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS
from .codegen.segment_sum_blocked import ROWS
from .codegen.transpose import LANES, SIDE

THREADS = 256  # threads of a block
MAX_ROW_ELEMENTS_PER_THREAD = 40
MAX_ELEMENTS_PER_THREAD_SMALL_GRID = 8
MAX_CACHED_BYTES_PER_THREAD = 160  # bytes of a row in shared memory
LONG_ROW_THREADS = 1024  # threads of a row that leaves no room for another row on its multiprocessor
EXCLUSIVE_ROW_BYTES = 100 * 1024  # a row with more bytes is alone on its multiprocessor
LINE_THREADS = 8  # threads that load 128 adjacent bytes in groups of four float32
VECTOR_WIDTH = 4  # elements of a vector load or store
MIN_BUSY_BLOCKS = 1024  # blocks that keep a GPU busy
REDUCTION_BYTES = 8 * 1024  # bytes of shared memory reserved for reductions across warps
MAX_SHARED_BYTES = 227 * 1024  # of a block on compute capability 9.0; older GPUs have less and read long rows again


class LaunchGeometry(NamedTuple):
    """Blocks along x, y, z, and threads along x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]


def geometry_of(
    form: str,
    sizes: Sequence[int],
    rows: int,
    grid_axes: int,
    thread_elements: int,
    tile_axis: int | None = None,
    cached_bytes: int = 0,
) -> LaunchGeometry:
    """Return the grid of a kernel of a form over axes of these sizes.

    The first `rows` axes are rows, and the grid covers the first `grid_axes` of them. A thread takes `thread_elements` along
    the last axis. For tiles, `tile_axis` is the other axis of a tile. For rows, shared memory caches `cached_bytes` bytes of
    each element.
    """
    count, last_size = prod(sizes[:grid_axes]), sizes[-1]
    if tile_axis is not None:
        return tiled_geometry(prod(sizes[:-1]) // sizes[tile_axis], sizes[tile_axis], last_size)
    if form == "rows":
        return row_geometry(count, last_size, thread_elements > 1, cached_bytes)
    if form == "bands":
        threads = clamp(power_of_two(sizes[1]), WARP, THREADS)
        return LaunchGeometry((1, *split_grid_yz(ceil_div(sizes[0], ROWS))), (threads, 1, 1))
    if form == "columns":
        return column_geometry(count, sizes[rows - 1], last_size)
    return pointwise_geometry(count, last_size, thread_elements) if grid_axes else line_geometry(last_size, thread_elements)


def line_geometry(last_size: int, thread_elements: int) -> LaunchGeometry:
    """Return a grid with one thread for every `thread_elements` of a single axis."""
    x = clamp(power_of_two(ceil_div(last_size, thread_elements)), WARP, max_threads(thread_elements))
    return LaunchGeometry((ceil_div(last_size, x * thread_elements), 1, 1), (x, 1, 1))


def pointwise_geometry(count: int, last_size: int, thread_elements: int) -> LaunchGeometry:
    """Return a grid with one thread for every `thread_elements` of the last axis; rows are along y, and z if necessary."""
    x = clamp(power_of_two(ceil_div(last_size, thread_elements)), 1, max_threads(thread_elements))
    y = clamp(power_of_two(count), ceil_div(WARP, x), max_threads(thread_elements) // x)
    return LaunchGeometry((ceil_div(last_size, x * thread_elements), *split_grid_yz(ceil_div(count, y))), (x, y, 1))


def max_threads(thread_elements: int) -> int:
    """Return the threads of a block: half of THREADS if a thread takes two groups of four, 1 to 4 % faster on an H200."""
    return THREADS // 2 if thread_elements > VECTOR_WIDTH else THREADS


def tiled_geometry(matrices: int, height: int, width: int) -> LaunchGeometry:
    """Return a grid with a block for each tile: columns of tiles along x; rows of tiles, of all matrices, along y and z."""
    return LaunchGeometry((ceil_div(width, SIDE), *split_grid_yz(matrices * ceil_div(height, SIDE))), (*LANES, 1))


def row_geometry(count: int, last_size: int, is_wide: bool, cached_bytes: int) -> LaunchGeometry:
    """Return a grid with a thread for 20 to 40 elements of a row, and loads of at least 128 adjacent bytes.

    Short rows share a block. The more bytes of each element are cached in shared memory, the fewer elements a thread gets,
    so that many threads fit.
    """
    per_thread = MAX_ELEMENTS_PER_THREAD_SMALL_GRID
    if count >= MIN_BUSY_BLOCKS:
        per_thread = min(MAX_ROW_ELEMENTS_PER_THREAD, MAX_CACHED_BYTES_PER_THREAD // max(cached_bytes, 1))
    is_vectorized = is_wide and last_size % VECTOR_WIDTH == 0
    min_x = clamp(
        power_of_two(last_size // VECTOR_WIDTH if is_vectorized else last_size), 1, LINE_THREADS if is_vectorized else WARP
    )
    x = clamp(power_of_two(ceil_div(last_size, max(per_thread, 1))), min_x, MAX_ROW_THREADS)
    y = clamp(power_of_two(count), ceil_div(WARP, x), THREADS // x) if x <= WARP else 1
    return LaunchGeometry((ceil_div(count, y), 1, 1), (x, y, 1))


def cached_row_pitch(nbytes: int, last_size: int, rows: int, max_shared_bytes: int) -> int:
    """Return the number of elements from row to row in shared memory, a multiple of 4; 0 if `rows` rows do not fit."""
    pitch = ceil_div(last_size, VECTOR_WIDTH) * VECTOR_WIDTH
    return pitch if pitch * nbytes * rows <= max_shared_bytes - REDUCTION_BYTES else 0


def column_geometry(count: int, columns: int, length: int) -> LaunchGeometry:
    """Return a grid with 32 columns per block, each processed by 4 threads, or by up to 8 if there are few columns.

    Short columns need fewer threads.
    """
    blocks = ceil_div(columns, WARP) * count
    y = clamp(power_of_two(ceil_div(length, 4)), 1, 4 if blocks >= MIN_BUSY_BLOCKS else MAX_COLUMN_THREADS // WARP)
    x = clamp(power_of_two(columns), WARP, max(WARP, THREADS // 2 // y))
    return LaunchGeometry((ceil_div(columns, x), *split_grid_yz(count)), (x, y, 1))


def clamp(n: int, low: int, high: int) -> int:
    """Limit n to the range from low to high."""
    return max(low, min(n, high))

"""Where threads are drawn: blocks lie over the line or matrix that they compute, in one grid of cells.

Of many blocks, those around the chosen one are drawn; of a large block, the threads around the chosen one.
"""

from dataclasses import dataclass

from .coordinates import linear_index, unravel_index
from .picture import CHOSEN, Hull

MAX_DRAWN_THREADS = 128  # of blocks along a line
MAX_COLUMNS, MAX_ROWS = 24, 16  # threads of a matrix of blocks
WIDE_COLUMNS, WIDE_ROWS = 32, 8  # threads of blocks whose rows are longer than that: a row is often a warp
ROW = 16  # threads of a row, where blocks along a line allow it

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class ThreadPlaces:
    """The blocks that are drawn, and the place of each of their threads."""

    grid: Sizes
    block: Sizes
    blocks: tuple[int, ...]
    """The linear indices of the drawn blocks."""
    part: tuple[range, range]
    """The x and the y of the threads of each block that are drawn."""
    columns: int
    rows: int
    depth: int
    """The z index of the drawn threads in their block."""
    is_line: bool
    """Whether all dims but x have the size 1: rows of threads continue one another."""

    def find(self, block: int, thread: int) -> tuple[int, int] | None:
        """Return the row and column of a thread; None if it is not drawn."""
        x, y, z = unravel_index(thread, self.block)
        if block not in self.blocks or z != self.depth or x not in self.part[0] or y not in self.part[1]:
            return None
        row, column = self.corner(block)
        x, y = x - self.part[0].start, y - self.part[1].start
        if self.is_line:
            return row + (column + x) // self.columns, (column + x) % self.columns
        return row + y, column + x

    def corner(self, block: int) -> tuple[int, int]:
        """Return the row and column of the first drawn thread of a block."""
        width, height = map(len, self.part)
        if self.is_line:
            k = block - self.blocks[0]
            side_by_side = max(self.columns // width, 1)
            return k // side_by_side * self.rows_of_block, k % side_by_side * width
        (x, y, _), (first_x, first_y, _) = (unravel_index(b, self.grid) for b in (block, self.blocks[0]))
        return (y - first_y) * height, (x - first_x) * width

    @property
    def rows_of_block(self) -> int:
        """The rows of one block."""
        return -(-len(self.part[0]) // self.columns) if self.is_line else len(self.part[1])

    def origin(self) -> tuple[int, int]:
        """Return the row and column, in the whole launch, of the first drawn thread of a matrix of blocks."""
        x, y, _ = unravel_index(self.blocks[0], self.grid)
        return y * self.block[1] + self.part[1].start, x * self.block[0] + self.part[0].start

    def drawn_ends(self) -> tuple[int, int]:
        """Return the first and the last drawn thread of a block."""
        x, y = self.part
        return linear_index((x[0], y[0], self.depth), self.block), linear_index((x[-1], y[-1], self.depth), self.block)

    def hulls(self, chosen: int) -> tuple[Hull, ...]:
        """Return the outlines of the blocks, the chosen one last."""
        columns = min(len(self.part[0]), self.columns)
        return tuple(
            Hull(("threads", *self.corner(block)), self.rows_of_block, columns, CHOSEN if block == chosen else "")
            for block in sorted(self.blocks, key=lambda block: block == chosen)
        )


def place_threads(grid: Sizes, block: Sizes, chosen: int, thread: int) -> ThreadPlaces:
    """Choose the blocks to draw, with the chosen one among them, and their arrangement."""
    thread_x, thread_y, depth = unravel_index(thread, block)
    if grid[1:] == block[1:] == (1, 1):
        part = window(thread_x, block[0], WIDE_COLUMNS * WIDE_ROWS)
        blocks = window(chosen, grid[0], max(MAX_DRAWN_THREADS // block[0], 1))
        columns = line_columns(len(part), len(blocks))
        in_a_row = max(columns // len(part), 1)
        rows = -(-len(blocks) // in_a_row) * -(-len(part) // columns)
        return ThreadPlaces(grid, block, tuple(blocks), (part, range(1)), columns, rows, depth, is_line=True)
    x, y, z = unravel_index(chosen, grid)
    max_rows = MAX_ROWS if block[0] <= MAX_COLUMNS else WIDE_ROWS
    part_x, part_y = window(thread_x, block[0], WIDE_COLUMNS), window(thread_y, block[1], max_rows)
    along_x, along_y = (
        window(k, count, max(most // size, 1))
        for k, count, most, size in ((x, grid[0], MAX_COLUMNS, block[0]), (y, grid[1], max_rows, block[1]))
    )
    blocks_drawn = tuple(linear_index((k, n, z), grid) for n in along_y for k in along_x)
    columns, rows = len(along_x) * len(part_x), len(along_y) * len(part_y)
    return ThreadPlaces(grid, block, blocks_drawn, (part_x, part_y), columns, rows, depth, is_line=False)


def line_columns(size: int, count: int) -> int:
    """Return the columns of a line of blocks: so many small blocks as fit, or a part of a large block."""
    if size <= ROW:
        return size * min(ROW // size, count)
    if size > MAX_DRAWN_THREADS:
        return WIDE_COLUMNS
    return next((columns for columns in range(ROW, ROW // 2, -1) if size % columns == 0), ROW)


def window(k: int, count: int, most: int) -> range:
    """Return at most so many successive numbers of 0..count-1, with k among them."""
    shown = min(count, most)
    first = min(k // shown * shown, count - shown)
    return range(first, first + shown)

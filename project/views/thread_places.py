"""Where threads are drawn: blocks lie over the line or matrix that they compute, in one grid of cells."""

from dataclasses import dataclass

from .coordinates import linear_index, unravel_index
from .picture import CHOSEN, Hull

MAX_DRAWN_THREADS = 128  # of blocks along a line
MAX_COLUMNS, MAX_ROWS = 24, 16  # threads of a matrix of blocks
ROW = 16  # threads of a row, where blocks along a line allow it

Sizes = tuple[int, int, int]


@dataclass(frozen=True)
class ThreadPlaces:
    """The blocks that are drawn, and the place of each of their threads."""

    grid: Sizes
    block: Sizes
    blocks: tuple[int, ...]
    """The linear indices of the drawn blocks."""
    columns: int
    rows: int
    depth: int
    """The z index of the drawn threads in their block."""
    is_line: bool
    """Whether all dims but x have the size 1: rows of threads continue one another."""

    def find(self, block: int, thread: int) -> tuple[int, int] | None:
        """Return the row and column of a thread; None if it is not drawn."""
        if block not in self.blocks:
            return None
        if self.is_line:
            row, column = self.corner(block)
            return row + (column + thread) // self.columns, (column + thread) % self.columns
        x, y, z = unravel_index(thread, self.block)
        row, column = self.corner(block)
        return (row + y, column + x) if z == self.depth else None

    def corner(self, block: int) -> tuple[int, int]:
        """Return the row and column of the first thread of a block."""
        if self.is_line:
            k = block - self.blocks[0]
            side_by_side = max(self.columns // self.block[0], 1)
            return k // side_by_side * self.rows_of_block, k % side_by_side * self.block[0]
        (x, y, _), (first_x, first_y, _) = (unravel_index(b, self.grid) for b in (block, self.blocks[0]))
        return (y - first_y) * self.block[1], (x - first_x) * self.block[0]

    @property
    def rows_of_block(self) -> int:
        """The rows of one block."""
        return -(-self.block[0] // self.columns) if self.is_line else self.block[1]

    def origin(self) -> tuple[int, int]:
        """Return the row and column, in the whole launch, of the first drawn thread of a matrix of blocks."""
        x, y, _ = unravel_index(self.blocks[0], self.grid)
        return y * self.block[1], x * self.block[0]

    def hulls(self, chosen: int) -> tuple[Hull, ...]:
        """Return the outlines of the blocks, the chosen one last."""
        columns = min(self.block[0], self.columns)
        return tuple(
            Hull(("threads", *self.corner(block)), self.rows_of_block, columns, CHOSEN if block == chosen else "")
            for block in sorted(self.blocks, key=lambda block: block == chosen)
        )


def place_threads(grid: Sizes, block: Sizes, chosen: int, thread: int) -> ThreadPlaces:
    """Choose the blocks to draw, with the chosen one among them, and their arrangement."""
    depth = unravel_index(thread, block)[2]
    if grid[1:] == block[1:] == (1, 1):
        count = min(grid[0], max(MAX_DRAWN_THREADS // block[0], 1))
        first = min(chosen // count * count, grid[0] - count)
        blocks = tuple(range(first, first + count))
        columns = line_columns(block[0], count)
        in_a_row = max(columns // block[0], 1)
        rows = -(-count // in_a_row) * -(-block[0] // columns)
        return ThreadPlaces(grid, block, blocks, columns, rows, depth, is_line=True)
    x, y, z = unravel_index(chosen, grid)
    along_x, along_y = (
        window(k, count, max(most // size, 1))
        for k, count, most, size in ((x, grid[0], MAX_COLUMNS, block[0]), (y, grid[1], MAX_ROWS, block[1]))
    )
    blocks = tuple(linear_index((k, n, z), grid) for n in along_y for k in along_x)
    return ThreadPlaces(grid, block, blocks, len(along_x) * block[0], len(along_y) * block[1], depth, is_line=False)


def line_columns(size: int, count: int) -> int:
    """Return the columns of a line of blocks: so many small blocks as fit, or a part of a large block."""
    if size <= ROW:
        return size * min(ROW // size, count)
    if size > MAX_DRAWN_THREADS:
        return 2 * ROW
    return next((columns for columns in range(ROW, ROW // 2, -1) if size % columns == 0), ROW)


def window(k: int, count: int, most: int) -> range:
    """Return at most so many successive numbers of 0..count-1, with k among them."""
    shown = min(count, most)
    first = min(k // shown * shown, count - shown)
    return range(first, first + shown)

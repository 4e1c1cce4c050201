"""Schedules: how the points of a loop nest are dealt out to blocks, threads and registers.

Every axis follows one formula:

    index = ((outer * registers + r) * threads + t) * vector + v

`t` is the number of the thread along this axis. `r` and `v` are loops of constant length, which the compiler unrolls, so
their values are in registers. `outer` counts blocks of the grid or, if `serial`, the steps of a loop. The `vector` elements
of an axis are adjacent in memory and move in one instruction. On a reduced axis, threads combine their results.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple


class Tile(NamedTuple):
    """The schedule of one axis.

    Attributes
    ----------
    threads, registers, vector : int
        As in the formula of this module.
    serial : bool
        Whether `outer` counts the steps of a loop. Otherwise it counts blocks or, on a reduced axis, is always 0.
    is_constant : bool
        Whether the text contains the size of the axis, and registers cover all of it.
    chunk : int
        The elements of a serial axis that a block copies to shared memory at a time; 0 if it copies none.
    """

    threads: int = 1
    registers: int = 1
    vector: int = 1
    serial: bool = False
    is_constant: bool = False
    chunk: int = 0

    @property
    def length(self) -> int:
        """The elements that one step of `outer` covers."""
        return self.threads * self.registers * self.vector

    @property
    def elements(self) -> int:
        """The elements that a thread has in registers."""
        return self.registers * self.vector


class LoopSchedule(NamedTuple):
    """The tile of each axis of a loop nest.

    Attributes
    ----------
    tiles : tuple of Tile
    order : tuple of int
        The axes that have threads: along x, y and z of the block.
    column : int or None
        The axis whose blocks are along x of the grid. If it is None, those of all axes are.
    row : int or None
        The axis whose blocks are along y of the grid; those of the other axes are along z. If it is None, although there is
        a column, the other axes share y and z.
    tail : int or None
        An axis whose size is no multiple of its vector, so the last elements are computed one at a time.
    vectors : tuple of str
        The operands that move in vectors: their addresses must be multiples of 16 bytes.
    staged : tuple of str
        Operands that a block copies to shared memory first, because threads share or transpose their elements.
    split : tuple of int
        Reduced axes of which each block reduces one chunk only. It stores a partial result for each chunk.
    blocks : int
        The blocks that should run at the same time on a multiprocessor, which limits registers; 0 sets no limit.
    why : str
        The reason for the choice, in words.
    """

    tiles: tuple[Tile, ...]
    order: tuple[int, ...]
    column: int | None = None
    tail: int | None = None
    vectors: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    split: tuple[int, ...] = ()
    blocks: int = 0
    row: int | None = None
    why: str = ""

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return prod(tile.threads for tile in self.tiles)

    def span(self, a: int) -> int:
        """Return the elements along an axis that a block has in shared memory at a time."""
        return self.tiles[a].chunk or self.tiles[a].length

    def block(self) -> tuple[int, int, int]:
        """Return the threads of a block along x, y and z."""
        x, y, z = (*[self.tiles[a].threads for a in self.order], 1, 1, 1)[:3]
        return x, y, z

    def describe(self, sizes: Sequence[int]) -> str:
        """Return the schedule in words, axis by axis.

        Examples
        --------
        >>> LoopSchedule((Tile(), Tile(256, 2, 4)), (1,)).describe((5, 4096))
        'i0 (5): blocks; i1 (4096): blocks, 2 registers, 256 threads, vectors of 4'
        >>> LoopSchedule((Tile(), Tile(256, 2, 4)), (1,)).describe((5, 2000))
        'i0 (5): blocks; i1 (2000): 2 registers, 256 threads, vectors of 4'
        """
        return "; ".join(
            f"i{a} ({n}): {describe_tile(t, n)}" for a, (n, t) in enumerate(zip(sizes, self.tiles, strict=True))
        )


def describe_tile(tile: Tile, size: int | None = None) -> str:
    """Return the nonempty factors of a tile in words, outermost first.

    An axis of a `size` that one tile covers has no blocks.
    """
    is_in_one_block = tile.is_constant or (size is not None and size <= tile.length)
    outer = ["loop"] if tile.serial and not tile.is_constant else [] if is_in_one_block else ["blocks"]
    registers = [f"{tile.registers} registers"] * (tile.registers > 1)
    threads = [f"{tile.threads} threads"] * (tile.threads > 1)
    outer += [f"chunks of {tile.chunk} in shared memory"] * (tile.chunk > 0)
    return ", ".join([*outer, *registers, *threads, *[f"vectors of {tile.vector}"] * (tile.vector > 1)]) or "1 element"

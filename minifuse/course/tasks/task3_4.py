"""Task 3.4: matmul as a CUDA kernel, in tiles of shared memory."""

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from .. import launches, oracle
from ..draw import rows
from ..launch_facts import Launch, LaunchFacts, flat
from ..loops import describe_layout
from ..oracle.module3 import TILE
from ..parallel import flipped, gapped, row_major
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    pass

ONE_BLOCK_PRODUCT, TILED_PRODUCT = "cuda_one_block_matmul", "cuda_matmul"
PRACTICE = "one block: both matrices in shared memory, sizes up to a tile"
TILES = "tiles: every product is summed, whatever the sizes, layouts and batches"


def describe_case(case: Launch) -> str:
    """Return a launch as text."""
    case_text = [
        f"{name} {describe_layout(x)}" if isinstance(x, Strided) else f"{name} of shape {x.shape}"
        for name, x in zip(("out", "a", "b"), case.arguments, strict=True)
    ]
    return "; ".join([*case_text, f"{case.grid} blocks of {TILE} x {TILE} threads"])


def expected_of(case: Launch) -> Array:
    """Return the right output."""
    given = case.fresh()
    oracle.function(case.slot)(*given)
    return flat(given[0])


def of_slot(slot: str, arguments: tuple[Strided | Array, ...], grid: tuple[int, int, int]) -> Launch:
    """Return a launch in blocks of TILE x TILE threads."""
    return Launch(slot, "", arguments, grid, (TILE, TILE))


def grid_of(case: Launch) -> tuple[int, int, int]:
    """Return the numbers of blocks across, down, and in the batch."""
    assert isinstance(case.grid, tuple)
    across, down, batch = case.grid
    return across, down, batch


def tight(shape: tuple[int, ...], start: int = 1) -> Strided:
    """Return a row-major tensor whose storage ends with its last element."""
    made = row_major(shape, start)
    return made._replace(storage=made.storage[: prod(shape)].copy())


def of_tiles(a: Strided, b: Strided, out: Strided | None = None) -> Launch:
    """Return a launch with enough blocks to cover the output with tiles."""
    batch, m, n = max(a.shape[0], b.shape[0]), a.shape[1], b.shape[2]
    return of_slot(
        TILED_PRODUCT, (out or tight((batch, m, n)), a, b), (launches.blocks(n, TILE), launches.blocks(m, TILE), batch)
    )


def across(x: Strided) -> Strided:
    """Return a view with the last two dims exchanged."""
    (z, m, n), (s, r, c) = x.shape, x.strides
    return x._replace(shape=(z, n, m), strides=(s, c, r))


@cache
def cases(slot: str) -> list[Launch]:
    """Return launches of a slot: full tiles, then partial tiles, then other layouts and batches."""
    if slot == ONE_BLOCK_PRODUCT:
        sizes = (TILE, 1, 3, TILE - 1)
        made = [[np.arange(first, first + n * n * 1.0).reshape(n, n) for first in (1, -7)] for n in sizes]
        return [of_slot(ONE_BLOCK_PRODUCT, (np.zeros_like(a), a, b), (1, 1, 1)) for a, b in made]
    t = TILE
    return [
        of_tiles(tight((1, t, t)), tight((1, t, t), -7)),
        of_tiles(tight((1, t, 2 * t)), tight((1, 2 * t, t), -7)),
        of_tiles(tight((1, 2 * t, t)), tight((1, t, 3 * t), -7)),
        of_tiles(tight((1, 3, 2)), tight((1, 2, 5), -7)),
        of_tiles(tight((1, t + 1, t + 3)), tight((1, t + 3, t + 2), -7)),
        of_tiles(across(tight((1, 5, t + 1))), flipped(gapped((1, 5, 3), -7)), gapped((1, t + 1, 3))),
        of_tiles(tight((2, 3, 4)), tight((2, 4, 5), -7)),
        of_tiles(tight((1, 3, 4)), tight((2, 4, 5), -7)),
        of_tiles(tight((3, t - 1, 4)), tight((1, 4, t + 1), -7)),
    ]


def launched(student: StudentProcess, case: Launch) -> LaunchFacts:
    """Run a launch in the interpreter, and raise `Wrong` if its output is wrong."""
    expected, case_text = expected_of(case), describe_case(case)
    found = launches.facts_of(student, case)
    got = found.out
    launches.check_all_written(got, expected, case.slot, case_text, launches.describe_launch(case.grid, case.block))
    if not np.allclose(got, expected, equal_nan=True):
        drawn = [*rows(array_of(case.arguments[1]), "a"), *rows(array_of(case.arguments[2]), "b")]
        drawn += [*rows(expected, "expected"), *rows(got, "got")]
        message = launches.differs(case.slot, expected, got)
        raise Wrong(message, case_text=case_text, expected=expected, got=got, drawing=drawn, link="matmul")
    return found


def array_of(x: Strided | Array) -> Array:
    """Return an operand as a NumPy array."""
    return x.array() if isinstance(x, Strided) else x


def is_right(slot: str) -> Callable[[StudentProcess, Effort], None]:
    """Return a check that all launches of a slot are right."""
    return launches.until_wrong(launched, lambda: cases(slot), describe_case)


def reads_once_a_tile(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if an element is read from global memory more than once per tile of the output that needs it."""
    repeated = []
    for slot in (ONE_BLOCK_PRODUCT, TILED_PRODUCT):
        for case in cases(slot)[:5]:
            found, case_text = launched(student, case), describe_case(case)
            across, down, _ = grid_of(case)
            why = "by each tile of out that needs it: then it is in shared memory, where the whole block reads it"
            launches.check_reads(slot, found, "a", across, why, case_text)
            launches.check_reads(slot, found, "b", down, why, case_text)
            launches.check_writes_once(slot, found, prod(case.out.shape), case_text)
            repeated.append((case, found.out))
    if note := launches.note_of_gpu(student, repeated):
        student.notes.append(note)


def with_a_tile_turned(case: Launch) -> Array:
    """Multiply with the two indices of the tile of b exchanged."""
    out, a, b = case.fresh()
    if case.slot != TILED_PRODUCT or any(n % TILE for n in (*a.shape[1:], *b.shape[1:])):
        raise ValueError(case)
    assert isinstance(b, Strided)
    z, k, n = b.shape
    tiles = b.array().reshape(z, k // TILE, TILE, n // TILE, TILE).swapaxes(2, 4)
    turned = tight(b.shape)
    turned.array()[...] = tiles.reshape(b.shape)
    oracle.function(TILED_PRODUCT)(out, a, turned)
    return flat(out)


def has_only_full_tiles(wrong: Wrong) -> bool:
    """Return whether all tiles of a launch are full."""
    if not isinstance(wrong.case, Launch):
        return False
    return not any(n % TILE for x in wrong.case.arguments for n in x.shape[-2:])


def is_repeated(wrong: Wrong) -> bool:
    """Return whether the operands of a launch have different batch sizes."""
    if not isinstance(wrong.case, Launch) or wrong.case.slot != TILED_PRODUCT:
        return False
    _, a, b = wrong.case.arguments
    return bool(a.shape[0] != b.shape[0])


TASK = Task(
    id="3.4",
    title="CUDA matmul in tiles",
    file="kernels.py",
    slots=(ONE_BLOCK_PRODUCT, TILED_PRODUCT),
    points=8,
    text=(
        "First for practice: matrices no larger than a block, both read into shared memory once. Then for any size: a block "
        "makes one tile of the output. It walks along the inner dim tile by tile: read a tile of a and one of b into shared "
        "memory, wait, add their products, wait. Past the edges a tile is filled with 0."
    ),
    hints=(
        "A cell of a is needed for a whole row of the output. From global memory each thread would ask for it again; from a "
        "tile the block reads it once, and every thread of the tile's row uses it.",
        "row, col from blockIdx and threadIdx; total = 0. For each tile along k: every thread fills one cell of each tile, "
        "with 0 outside; barrier; total += tile_a[ty, n] * tile_b[n, tx] for all n; barrier. In the end, if row and col are "
        "inside, write total.",
        "docs/course/3.4-cuda-matmul.md; docs/guide/simulator.md has four broken matmuls and what is said of them.",
    ),
    reads=("docs/course/3.4-cuda-matmul.md", "docs/guide/simulator.md"),
    checks=(
        Check(PRACTICE, is_right(ONE_BLOCK_PRODUCT)),
        Check(TILES, is_right(TILED_PRODUCT)),
        Check("each cell of a and b is read once for each tile, each cell of out written once", reads_once_a_tile),
    ),
    mistakes=(
        Mistake(
            "nothing waits until the tiles are full",
            "Other threads fill the cells that this one is about to read: a barrier between filling and using.",
            when=lambda w: w.kind == "UninitializedReadError" and has_only_full_tiles(w),
        ),
        Mistake(
            "nothing waits until the tiles have been used",
            "The fast threads fill the next tiles while slow ones still read these: a barrier at the end of each step too.",
            when=lambda w: w.kind == "RaceError",
        ),
        Mistake(
            "cells of a tile past the edge stay empty",
            "Every thread takes part in every product of the tile. What lies outside of a or b is 0, and changes no sum.",
            when=lambda w: w.kind == "UninitializedReadError" and not has_only_full_tiles(w),
        ),
        Mistake(
            "a batch of size 1 is not repeated",
            "blockIdx.z counts matrices of the output. An operand with only one gives the same one each time.",
            when=lambda w: w.kind == "OutOfBoundsError" and is_repeated(w),
        ),
        Mistake(
            "the guard is missing where sizes are no multiple of a tile",
            "The tiles at the edges reach past the matrix: row, col and k have a limit each, in loads and in the store.",
            when=lambda w: w.kind == "OutOfBoundsError",
        ),
        Mistake(
            "threads past the edge leave before a barrier",
            "cuda.syncthreads() waits for every thread of the block. Guard the loads and the store; let the thread stay.",
            when=lambda w: w.kind == "BarrierError",
        ),
        Mistake(
            "the indices of a tile are exchanged",
            "threadIdx.x runs along a row: it is the second index of a tile. Row n of tile_b is read as tile_b[n, tx].",
            wrong_answer=with_a_tile_turned,
            check=TILES,
        ),
        Mistake(
            "each thread reads its row and its column from global memory",
            "That is right, and TILE times as much to read. One load a thread and tile, then shared memory.",
            when=lambda w: w.kind == "extra reads",
        ),
        Mistake(
            "the sum is accumulated in the output",
            "Global memory is far away; total is a register.",
            when=lambda w: w.kind == "extra writes",
        ),
    ),
    allows=frozenset({"numba", "minifuse.simt"}),
)

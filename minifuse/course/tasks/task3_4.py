"""Task 3.4: matmul as a CUDA kernel, in tiles of shared memory."""

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np

from .. import launches, oracle
from ..check import is_near
from ..draw import rows
from ..launch_facts import Launch, LaunchFacts, flat
from ..loops import describe_layout
from ..oracle.module3 import TILE
from ..parallel import SUM_EDGES, flipped, gapped, tight, values_like, with_values
from ..simulated import WARP
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

ONE_BLOCK_PRODUCT, TILED_PRODUCT = "cuda_one_block_matmul", "cuda_matmul"
PRACTICE = "one block: both matrices in shared memory, sizes up to a tile"
LONG = 260  # products of a sum
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
    """Return launches of a slot: full tiles, then partial tiles, other layouts, batches and values, then long sums."""
    if slot == ONE_BLOCK_PRODUCT:
        kinds = [(n, "whole numbers") for n in (TILE, 1, 3, TILE - 1)] + [(5, "fractions"), (TILE, "edges"), (6, "edges")]
        return [of_block(n, kind) for n, kind in kinds]
    t = TILE
    return [
        of_tiles(tight((1, t, t)), tight((1, t, t), -7)),
        of_tiles(tight((1, t, 2 * t)), tight((1, 2 * t, t), -7)),
        of_tiles(tight((1, 2 * t, t)), tight((1, t, 3 * t), -7)),
        of_tiles(tight((1, 3, 2)), tight((1, 2, 5), -7)),
        of_tiles(tight((1, t + 1, t + 3)), tight((1, t + 3, t + 2), -7)),
        of_tiles(tight((1, 2 * t, 2 * t)), tight((1, 2 * t, 2 * t), -7)),
        of_tiles(across(tight((1, 5, t + 1))), flipped(gapped((1, 5, 3), -7)), gapped((1, t + 1, 3))),
        of_tiles(tight((2, 3, 4)), tight((2, 4, 5), -7)),
        of_tiles(tight((1, 3, 4)), tight((2, 4, 5), -7)),
        of_tiles(tight((3, t - 1, 4)), tight((1, 4, t + 1), -7)),
        of_tiles(tight((7, 2, 3)), tight((7, 3, 2), -7)),
        of_tiles(tight((2, 3, 0)), tight((2, 0, 4))),
        *[of_tiles(*[with_values(tight((1, *n)), "fractions") for n in ((9, 11), (11, 3))])],
        *[
            of_tiles(*[with_values(tight((1, *n), first), "edges", SUM_EDGES) for n, first in (((9, 7), 1), ((7, 10), k))])
            for k in (4, 8)
        ],
        of_tiles(*[scaled(with_values(tight((1, *n)), "fractions"), 2.0**-333) for n in ((3, 4), (4, 5))]),
        of_tiles(*[with_values(tight((1, *n)), "fractions") for n in ((3, LONG), (LONG, 2))]),
        of_tiles(tight((1, 2, 3)), tight((1, 3, 10 * t + 1), -7)),
        of_tiles(tight((1, 10 * t + 1, 2)), tight((1, 2, 3), -7)),
    ]


def of_block(n: int, kind: str) -> Launch:
    """Return a launch of the practice kernel."""
    a, b = [values_like(np.arange(first, first + n * n * 1.0).reshape(n, n), kind, SUM_EDGES) for first in (1, -7)]
    return of_slot(ONE_BLOCK_PRODUCT, (np.zeros_like(a), a, b), (1, 1, 1))


def scaled(x: Strided, factor: float) -> Strided:
    """Return a tensor whose elements are multiplied by a number."""
    return x._replace(storage=x.storage * factor)


def launched(student: StudentProcess, case: Launch) -> LaunchFacts:
    """Run a launch in the interpreter, and raise `Wrong` if its output is wrong."""
    expected, case_text = expected_of(case), describe_case(case)
    found = launches.facts_of(student, case)
    got = found.out
    launches.check_all_written(got, expected, case.slot, case_text, launches.describe_launch(case.grid, case.block))
    if not is_near(got, expected):
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
        for case in cases(slot)[:6]:
            found, case_text = launched(student, case), describe_case(case)
            across, down, _ = grid_of(case)
            why = "by each tile of out that needs it: then it is in shared memory, where the whole block reads it"
            launches.check_reads(slot, found, "a", across, why, case_text)
            launches.check_reads(slot, found, "b", down, why, case_text)
            launches.check_writes_once(slot, found, prod(case.out.shape), case_text)
            shares_work(case, found)
            if slot == TILED_PRODUCT and case.arguments[2].shape[2] == 2 * TILE == case.arguments[1].shape[2]:
                along_rows(case, found)
            repeated.append((case, found.out))
    if note := launches.note_of_gpu(student, repeated):
        student.notes.append(note)


def shares_work(case: Launch, found: LaunchFacts) -> None:
    """Raise `Wrong` if a thread fills more than one cell of a tile, or makes more than one element of the output."""
    tiles = -(-case.arguments[1].shape[-1] // TILE)
    for name, most, enough in (
        ("a", found.of("a").most_by_thread, tiles),
        ("b", found.of("b").most_by_thread, tiles),
        ("out", found.of("out").most_stores_by_thread, 1),
        ("the tiles", found.most_cells, 2 * TILE),
    ):
        if most > enough:
            word, when = ("writes", "") if name == "out" else ("reads", " between two barriers" * (name == "the tiles"))
            raise Wrong(
                f"{case.slot}: one thread {word} {most} elements of {name}{when}, and others wait; "
                f"{enough} {'is' if enough == 1 else 'are'} enough. "
                "Each thread fills one cell of each tile, and makes one element of out from a row and a column of tiles",
                case_text=describe_case(case),
                kind="one thread",
            )


def along_rows(case: Launch, found: LaunchFacts) -> None:
    """Raise `Wrong` if neighboring threads do not access neighboring elements of rows, which begin at cache lines here."""
    most = WARP // TILE
    for name in ("a", "b", "out"):
        array = found.of(name)
        for word, traffic in (("read", array.load_traffic), ("written", array.store_traffic)):
            if traffic.lines > most * traffic.requests:
                raise Wrong(
                    f"{case.slot}: elements of {name} are {word} by {traffic.requests} requests of warps, which touch "
                    f"{traffic.lines} cache lines; {most * traffic.requests} are enough, since a warp covers {most} rows of "
                    "a tile. threadIdx.x counts along a row",
                    case_text=describe_case(case),
                    lines=array.load_lines if word == "read" else array.store_lines,
                    kind="uncoalesced",
                )


def with_x_and_y_exchanged(case: Launch) -> Array:
    """Multiply with blocks that are numbered down by x, and across by y: the rest of the output is not written."""
    out, a, b = case.fresh()
    across, down, _ = grid_of(case)
    if case.slot != TILED_PRODUCT or across == down:
        raise ValueError(case)
    oracle.function(TILED_PRODUCT)(out, a, b)
    array = out.array()
    array[:, across * TILE :] = np.nan
    array[:, :, down * TILE :] = np.nan
    return flat(out)


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


def is_exchanged(wrong: Wrong) -> bool:
    """Return whether the part of the output is missing that blocks with exchanged numbers do not cover."""
    is_unwritten = wrong.kind == "UnwrittenOutputError" and isinstance(wrong.case, Launch)
    return is_unwritten and is_near(wrong.got, with_x_and_y_exchanged(wrong.case))


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
            "x and y are exchanged: blocks count rows with x and columns with y",
            "x counts along a row, so it leads to a column: col = blockIdx.x * TILE + threadIdx.x, and row with y. "
            "cuda.grid(2) returns the column first.",
            when=is_exchanged,
            check=TILES,
        ),
        Mistake(
            "threadIdx.x counts down a column",
            "The threads of a warp differ in threadIdx.x first. Where it is the last index, they access neighbors of a row, "
            "in few cache lines.",
            when=lambda w: w.kind == "uncoalesced",
        ),
        Mistake(
            "one thread does the work of others",
            "There is a thread for each element of a tile of out: it fills one cell of each tile, adds up one sum, and "
            "writes it.",
            when=lambda w: w.kind == "one thread",
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

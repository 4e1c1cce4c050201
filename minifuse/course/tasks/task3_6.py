"""Task 3.6: matmul as a CUDA kernel with tiles in registers and in shared memory."""

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np

from .. import launches, oracle
from ..check import is_near
from ..draw import rows
from ..launch_facts import Launch, LaunchFacts, flat
from ..loops import describe_layout
from ..oracle.module3 import BLOCK_X, BLOCK_Y, THREAD_M, THREAD_N, TILE_K, TILE_M, TILE_N
from ..parallel import SUM_EDGES, flipped, gapped, reverse_dims, tight, values_like, with_values
from ..simulated import WARP
from ..strided import Array, Strided
from ..student_process import StudentProcess
from ..task import Check, Effort, Mistake, Task
from ..verdicts import Wrong

THREAD_TILE, BLOCK_TILE = "cuda_thread_tile_matmul", "cuda_block_tile_matmul"
RIGHT_IN_THREADS = "thread tiles: every product is summed, whatever the sizes"
REUSE_IN_REGISTERS = f"thread tiles: {THREAD_M + THREAD_N} loads for {THREAD_M * THREAD_N} products, along rows"
RIGHT_IN_BLOCKS = "block tiles: every product is summed, whatever the sizes and layouts"
INTENSITY = "block tiles: each element is loaded once for each block that needs it, in whole sectors"
SHARED = f"block tiles: {THREAD_M + THREAD_N} loads of shared memory for {THREAD_M * THREAD_N} products, without conflicts"
MAX_SHARED_NBYTES = 8192
SECTOR, ITEMSIZE = 32, 8  # bytes


def describe_case(case: Launch) -> str:
    """Return a launch as text."""
    named = zip(("out", "a", "b"), case.arguments, strict=True)
    parts = [f"{name} {describe_layout(x) if isinstance(x, Strided) else f'of shape {x.shape}'}" for name, x in named]
    return "; ".join([*parts, f"{case.grid} blocks of {BLOCK_X} x {BLOCK_Y} threads"])


def sizes_of(case: Launch) -> tuple[int, int, int]:
    """Return the rows and columns of out, and the inner size."""
    _, a, b = case.arguments
    return a.shape[0], b.shape[1], a.shape[1]


def grid_of(case: Launch) -> tuple[int, int]:
    """Return the numbers of blocks across and down."""
    m, n, _ = sizes_of(case)
    return launches.blocks(n, TILE_N), launches.blocks(m, TILE_M)


def of_operands(slot: str, a: Strided | Array, b: Strided | Array, out: Strided | Array | None = None) -> Launch:
    """Return a launch with enough blocks to cover the output."""
    shape = a.shape[0], b.shape[1]
    if out is None:
        out = tight(shape) if isinstance(a, Strided) else np.zeros(shape)
    grid = launches.blocks(shape[1], TILE_N), launches.blocks(shape[0], TILE_M)
    return Launch(slot, "", (out, a, b), grid, (BLOCK_X, BLOCK_Y))


def of_arrays(m: int, k: int, n: int, kind: str = "whole numbers", first: int = -7) -> Launch:
    """Return a launch of the kernel without shared memory."""
    a, b = (np.arange(start, start + prod(shape) * 1.0).reshape(shape) for start, shape in ((1, (m, k)), (first, (k, n))))
    return of_operands(THREAD_TILE, values_like(a, kind, SUM_EDGES), values_like(b, kind, SUM_EDGES))


def of_tensors(m: int, k: int, n: int, kind: str = "whole numbers", first: int = -7) -> Launch:
    """Return a launch of the kernel with shared memory."""
    a, b = (with_values(tight(shape, start), kind, SUM_EDGES) for start, shape in ((1, (m, k)), (first, (k, n))))
    return of_operands(BLOCK_TILE, a, b)


@cache
def cases(slot: str) -> list[Launch]:
    """Return launches of a slot: full tiles, then partial tiles, other layouts and values."""
    m, n, k = TILE_M, TILE_N, TILE_K
    if slot == THREAD_TILE:
        shapes = [(m, 3, n), (m, 1, 3 * n), (2 * m, 1, n), (1, 1, 1), (5, 3, 7), (m + 1, 2, n + 1), (3, 0, 4)]
        return [
            *[of_arrays(*sizes) for sizes in shapes],
            of_arrays(m - 1, 2, n - 1, "fractions"),
            *[of_arrays(9, 4, 10, "edges", first) for first in (4, 8)],
        ]
    return [
        of_tensors(m, 2 * k, n),
        of_tensors(m, k, 3 * n),
        of_tensors(2 * m, k, n),
        of_tensors(3, 2, 5),
        of_tensors(m - 1, k + 1, n - 1),
        of_tensors(m + 1, 3, n + 1),
        of_operands(BLOCK_TILE, reverse_dims(tight((k + 1, 7))), flipped(gapped((k + 1, 5), -7)), gapped((7, 5))),
        of_tensors(4, 0, 3),
        of_tensors(9, 4 * k + 3, 2, "fractions"),
        *[of_tensors(9, 7, 10, "edges", first) for first in (4, 8)],
    ]


def expected_of(case: Launch) -> Array:
    """Return the right output."""
    given = case.fresh()
    oracle.function(case.slot)(*given)
    return flat(given[0])


def launched(student: StudentProcess, case: Launch) -> LaunchFacts:
    """Run a launch in the interpreter, and raise `Wrong` if its output is wrong."""
    expected, case_text = expected_of(case), describe_case(case)
    found = launches.facts_of(student, case)
    got = found.out
    launches.check_all_written(got, expected, case.slot, case_text, launches.describe_launch(case.grid, case.block))
    if not is_near(got, expected):
        arrays = [x.array() if isinstance(x, Strided) else x for x in case.arguments[1:]]
        drawn = [*rows(arrays[0], "a"), *rows(arrays[1], "b"), *rows(expected, "expected"), *rows(got, "got")]
        message = launches.differs(case.slot, expected, got)
        raise Wrong(message, case_text=case_text, expected=expected, got=got, drawing=drawn, link="matmul")
    return found


def is_right(slot: str) -> Callable[[StudentProcess, Effort], None]:
    """Return a check that all launches of a slot are right."""
    return launches.until_wrong(launched, lambda: cases(slot), describe_case)


def is_full(case: Launch) -> bool:
    """Return whether all tiles of a launch are full."""
    m, n, k = sizes_of(case)
    return not (m % TILE_M or n % TILE_N or (case.slot == BLOCK_TILE and k % TILE_K)) and m * n * k > 0


def steps_of(case: Launch) -> int:
    """Return the number of tiles along the inner dim."""
    return -(-sizes_of(case)[2] // TILE_K)


def check_stores(case: Launch, found: LaunchFacts) -> None:
    """Raise `Wrong` unless each thread stores its elements of the output once, in whole sectors."""
    case_text, each = describe_case(case), THREAD_M * THREAD_N
    launches.check_writes_once(case.slot, found, prod(case.out.shape), case_text)
    check_share(case, found.of("out").most_stores_by_thread, each, "writes", "out")
    if is_full(case):
        check_sectors(case, found, "out", prod(case.out.shape) * ITEMSIZE // SECTOR, "adjacent columns")


def check_share(case: Launch, most: int, enough: int, verb: str, name: str) -> None:
    """Raise `Wrong` if a thread does more than its share."""
    if most > enough:
        raise Wrong(
            f"{case.slot}: one thread {verb} {most} elements of {name}, and others wait; {enough} are enough",
            case_text=describe_case(case),
            kind="one thread",
        )


def check_sectors(case: Launch, found: LaunchFacts, name: str, enough: int, kind: str) -> None:
    """Raise `Wrong` if the warps move more sectors of an array than are enough."""
    array, is_stored = found.of(name), name == "out"
    traffic = array.store_traffic if is_stored else array.load_traffic
    if traffic.sectors > enough:
        raise Wrong(
            f"{case.slot}: elements of {name} are {'written' if is_stored else 'read'} by {traffic.requests} requests of "
            f"warps, which move {traffic.sectors} sectors of {SECTOR} bytes; {enough} are enough if adjacent threads take "
            "adjacent columns",
            case_text=describe_case(case),
            lines=array.store_lines if is_stored else array.load_lines,
            kind=kind,
        )


def reuses_in_registers(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a thread of a thread tile loads more than the elements of its rows and columns, each once."""
    for case in cases(THREAD_TILE):
        found, case_text, inner = launched(student, case), describe_case(case), sizes_of(case)[2]
        loads = [found.of(name).most_by_thread for name in ("a", "b")]
        enough = (THREAD_M + THREAD_N) * inner
        if sum(loads) > enough:
            raise Wrong(
                f"{THREAD_TILE}: a thread loads {loads[0]} elements of a and {loads[1]} of b for an inner size of {inner}; "
                f"{enough} are enough: {THREAD_M} and {THREAD_N} for each k",
                case_text=case_text,
                lines=found.of("a").load_lines,
                kind="extra loads",
            )
        if found.shared.nbytes:
            raise Wrong(f"{THREAD_TILE} uses shared memory; this kernel is without", case_text=case_text, kind="shared")
        check_stores(case, found)
        if is_full(case):
            warps = prod(grid_of(case)) * BLOCK_X * BLOCK_Y // WARP
            check_sectors(case, found, "b", warps * inner * TILE_N * ITEMSIZE // SECTOR, "adjacent columns")


def loads_once_a_block(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` if a block loads an element twice, or in pieces of sectors."""
    repeated = []
    for case in cases(BLOCK_TILE):
        found, case_text = launched(student, case), describe_case(case)
        across, down = grid_of(case)
        why = "by each block that needs it: then it is in shared memory, where the whole block reads it"
        launches.check_reads(BLOCK_TILE, found, "a", across, why, case_text)
        launches.check_reads(BLOCK_TILE, found, "b", down, why, case_text)
        for name, side in (("a", TILE_M), ("b", TILE_N)):
            array = found.of(name)
            each = steps_of(case) * side * TILE_K // (BLOCK_X * BLOCK_Y)
            check_share(case, array.most_by_thread, each, "reads", name)
            if is_full(case):
                check_sectors(case, found, name, array.loads * ITEMSIZE // SECTOR, f"uncoalesced {name}")
        check_stores(case, found)
        repeated.append((case, found.out))
    repeated += [(case, launched(student, case).out) for case in cases(THREAD_TILE)]
    if note := launches.note_of_gpu(student, repeated):
        student.notes.append(note)


def reuses_shared_memory(student: StudentProcess, effort: Effort) -> None:
    """Raise `Wrong` for too many loads of shared memory, bank conflicts, barriers, or too large tiles."""
    for case in cases(BLOCK_TILE):
        found, case_text, steps = launched(student, case).shared, describe_case(case), steps_of(case)
        products = prod(grid_of(case)) * steps * TILE_M * TILE_N * TILE_K
        enough = products * (THREAD_M + THREAD_N) // (THREAD_M * THREAD_N)
        if found.loads > enough:
            raise Wrong(
                f"{BLOCK_TILE}: {found.loads:,} loads of shared memory for {products:,} products; {enough:,} suffice; "
                f"for each k a thread loads {THREAD_M} elements of a and {THREAD_N} of b, and multiplies each pair",
                case_text=case_text,
                kind="extra shared loads",
            )
        if is_full(case) and found.wavefronts > found.ideal_wavefronts:
            raise Wrong(
                f"{BLOCK_TILE}: the loads of shared memory take {found.wavefronts:,} passes over its banks; "
                f"without conflicts it is {found.ideal_wavefronts:,}",
                case_text=case_text,
                kind="bank conflicts",
            )
        if found.barriers > 2 * max(steps, 1):
            raise Wrong(
                f"{BLOCK_TILE}: a block passes {found.barriers} barriers in {steps} steps of the inner dim; "
                "two in each step are enough",
                case_text=case_text,
                kind="barriers",
            )
        if found.nbytes > MAX_SHARED_NBYTES:
            raise Wrong(
                f"{BLOCK_TILE}: a block has {found.nbytes:,} bytes of shared memory; {MAX_SHARED_NBYTES:,} are enough for "
                "two pairs of tiles",
                case_text=case_text,
                kind="large tiles",
            )


def with_x_and_y_exchanged(case: Launch) -> Array:
    """Multiply with blocks that are numbered down by x, and across by y: the rest of the output is not written."""
    out, a, b = case.fresh()
    oracle.function(case.slot)(out, a, b)
    array = out.array() if isinstance(out, Strided) else out
    across, down = grid_of(case)
    array[across * TILE_M :] = np.nan
    array[:, down * TILE_N :] = np.nan
    return flat(out)


def is_exchanged(wrong: Wrong) -> bool:
    """Return whether the part of the output is missing that blocks with exchanged numbers do not cover."""
    is_unwritten = wrong.kind == "UnwrittenOutputError" and isinstance(wrong.case, Launch)
    return is_unwritten and is_near(wrong.got, with_x_and_y_exchanged(wrong.case))


def has_full_tiles(wrong: Wrong) -> bool:
    """Return whether all tiles of a launch are full."""
    return isinstance(wrong.case, Launch) and is_full(wrong.case)


def has_strides(wrong: Wrong) -> bool:
    """Return whether an operand is not in row-major order."""
    return isinstance(wrong.case, Launch) and any(
        isinstance(x, Strided) and x.strides != tight(x.shape).strides for x in wrong.case.arguments
    )


TASK = Task(
    id="3.6",
    title="Tiles by hand",
    file="register_tiles.py",
    slots=(THREAD_TILE, BLOCK_TILE),
    points=8,
    text=(
        "In 3.4 each product costs two loads of shared memory. Here a thread computes several rows and columns, and uses an "
        "element in a register for all of them. First without shared memory; then a block also copies tiles of a and b to "
        "shared memory, along rows and without bank conflicts."
    ),
    hints=(
        f"{THREAD_M} elements of a column of a and {THREAD_N} of a row of b are {THREAD_M + THREAD_N} loads, and "
        f"{THREAD_M * THREAD_N} products: each pair. Which rows and columns a thread takes is free: choose them so that "
        "adjacent threads take adjacent columns.",
        "A thread has two tasks, and each has its own numbering. To fill a tile, count its elements along rows: thread t of "
        "the block takes elements t, t + threads, ... To compute, thread (tx, ty) takes rows ty + i * BLOCK_Y and columns "
        "tx + j * BLOCK_X. Then a row of tile_a that is one element longer has other banks.",
        "docs/course/3.6-tiles.md; docs/guide/cuda.md has the ladder of matmuls, of which this is the rung 'squares'.",
    ),
    reads=("docs/course/3.6-tiles.md", "docs/guide/cuda.md"),
    checks=(
        Check(RIGHT_IN_THREADS, is_right(THREAD_TILE)),
        Check(REUSE_IN_REGISTERS, reuses_in_registers),
        Check(RIGHT_IN_BLOCKS, is_right(BLOCK_TILE)),
        Check(INTENSITY, loads_once_a_block),
        Check(SHARED, reuses_shared_memory),
    ),
    mistakes=(
        Mistake(
            "nothing waits for the other threads of the block",
            "Two barriers for each step: one between filling and using, one between using and filling again.",
            when=lambda w: w.kind == "RaceError" or (w.kind == "UninitializedReadError" and has_full_tiles(w)),
        ),
        Mistake(
            "a local array is read before a value is stored in it",
            "It has no values at first: store 0.0 in each element of the sums. An element past the edge is 0.0, too.",
            when=lambda w: w.kind == "unwritten local array",
        ),
        Mistake(
            "elements of a tile past the edge stay empty",
            "Every thread adds all products of its tiles. Outside of a and b the tiles contain 0.",
            when=lambda w: w.kind == "UninitializedReadError" and not has_full_tiles(w),
        ),
        Mistake(
            "the guard is missing where sizes are no multiple of a tile",
            "Each of the rows and columns of a thread may be outside, and the inner size may end within a step.",
            when=lambda w: w.kind == "OutOfBoundsError" and not has_strides(w),
        ),
        Mistake(
            "x and y are exchanged: blocks count rows with x and columns with y",
            "x counts along a row: the first column of a block is cuda.blockIdx.x * TILE_N.",
            when=is_exchanged,
        ),
        Mistake(
            "strides or the offset are ignored",
            "An element (row, col) of a tensor is at offset + row * strides[0] + col * strides[1], in a, b and out.",
            when=has_strides,
            check=RIGHT_IN_BLOCKS,
        ),
        Mistake(
            "an element is loaded for each product",
            "Load the elements of a for this k into registers once, then use each of them for all columns.",
            when=lambda w: w.kind in ("extra loads", "extra shared loads"),
        ),
        Mistake(
            "the columns of a thread are adjacent",
            "Then those of adjacent threads are not: a warp touches four times as many sectors. Let them be BLOCK_X apart.",
            when=lambda w: w.kind == "adjacent columns",
        ),
        Mistake(
            "a tile is filled down its columns",
            "Count the elements of a tile along its rows: row = cell // columns, column = cell % columns.",
            when=lambda w: w.kind in ("uncoalesced a", "uncoalesced b"),
        ),
        Mistake(
            "threads of a warp read the same bank of shared memory",
            f"A row of {TILE_K} doubles has 64 bytes, so every second row begins at the same bank. One more element in each "
            "row of tile_a moves them apart.",
            when=lambda w: w.kind == "bank conflicts",
        ),
        Mistake(
            "there is a barrier for each product",
            "A step fills both tiles, waits, uses them for all its k, and waits.",
            when=lambda w: w.kind == "barriers",
        ),
        Mistake(
            "one thread does the work of others",
            "All threads fill the tiles together, a few elements each, and each stores its own elements of out.",
            when=lambda w: w.kind == "one thread",
        ),
        Mistake(
            "the sums are accumulated in the output",
            "Keep them in a local array, and store each of them once, after the last step.",
            when=lambda w: w.kind == "extra writes",
        ),
    ),
    allows=frozenset({"numba", "minifuse.simt"}),
)

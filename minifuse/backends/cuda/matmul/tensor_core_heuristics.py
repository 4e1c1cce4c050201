"""Ways to compute a product of float32 on tensor cores: by `wgmma` on Hopper, by `mma.sync` where it is faster.

Integers, and the model of time of `ways`: cycles of one multiprocessor, fitted to one H200. `product` takes the best of
these or, where tensor cores have too little to do, one in float32.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

from ....core.dtypes import HIGH
from ..device.tensor_maps import ITEMSIZE
from .heuristics import (
    CYCLES_PER_PART,
    EXTRA_LAUNCH_CYCLES,
    GUARDED_FACTOR,
    L2_BYTES_PER_CYCLE,
    MAX_GRID_BLOCKS,
    MAX_SPLIT_BLOCKS_PER_SM,
    MAX_SPLIT_TIME,
    MEMORY_BYTES_PER_CYCLE,
    SPLIT_COUNTS,
    STARTUP_CYCLES,
    GpuGemmConfig,
    GpuGemmProblem,
    can_store_vectors,
    ceil_div,
    estimate_cycles,
    operand_mode,
)
from .mma import MMA_LARGE, MMA_SHAPES, MMA_SMALL, make_mma, mma_shared_bytes
from .wgmma import LEFT_ROWS, RIGHT_ROWS, ROW_BYTES

OPERAND_KIND = {HIGH: "tf32"}  # of operands; else "bf16"
# How busy 1, 2, ... blocks of `mma.sync` keep a multiprocessor, in units of 128 fma a cycle.
OCCUPANCY_MMA = {"tf32": {MMA_LARGE: (1.4, 2.2), MMA_SMALL: (0.8, 1.3, 1.6, 1.7)}}
OCCUPANCY_MMA["bf16"] = {MMA_LARGE: (2.4, 3.7), MMA_SMALL: (0.9, 1.4, 1.7, 1.8)}
TRANSPOSED_COPY_FACTOR = 0.75  # of that is left for each operand that is copied 4 bytes at a time
PEAK_FMA_PER_CYCLE = {"tf32": 1024, "bf16": 2048}  # fma a cycle of a multiprocessor by wgmma
SUSTAINED_FACTOR = {"tf32": 0.78, "bf16": 0.66}  # of that, over long: the clock falls
NARROW_TILE_FACTOR = {256: 1.0, 128: 0.87, 64: 0.58}  # of that is left with so many rows of the right operand
CROSSWISE_FACTOR = 0.97  # of that is left where the left operand goes through registers
WGMMA_STARTUP_CYCLES, WGMMA_SUMS_STORED_PER_CYCLE = (
    11_000,
    6,
)  # cycles until the first tile is there, and one to store so many sums of the last one
BYTES_PER_PART_ELEMENT = 16  # of an element of a part: written, and read past the L2 cache
MEMORY_BOUND_SLOWDOWN = {"mma": 1.5, "wgmma": 1.25}  # times, than a pass over memory, if that is what a product waits for
MIN_TENSOR_CORE_SIZE = 4  # rows and columns; of fewer, one pass over memory is all that counts, and float32 costs nothing
MAX_PACKED_DEPTH = MAX_GRID_BLOCKS * 32  # of K that one launch copies


class WgmmaConfig(NamedTuple):
    """One way by `wgmma`, and about how many cycles it takes.

    An operand lies along "k" or along "x", as the copy engine reads it, or is made "ready" before.
    """

    cycles: float
    product: GpuGemmProblem
    kind: str  # "tf32" or "bf16"
    a: str
    b: str
    is_turned: bool  # computed as out.T = b.T @ a.T, though stored as it is
    right: int  # rows of a tile of the right operand
    parts: int
    part_K: int
    is_wide: bool
    multiprocessors: int

    @property
    def is_crosswise(self) -> bool:
        """Whether the left operand lies along x."""
        return (self.b if self.is_turned else self.a) == "x"

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of out that a block computes at a time."""
        return (self.right, LEFT_ROWS) if self.is_turned else (LEFT_ROWS, self.right)


def choose_tensor_core_config(
    precision: str, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], most_shared: int, cores: str
) -> GpuGemmConfig | WgmmaConfig | None:
    """The fastest way on tensor cores, in either orientation; None where there is none."""
    kind, found = OPERAND_KIND.get(precision, "bf16"), list[GpuGemmConfig | WgmmaConfig]()
    if min(p.M, p.N) < MIN_TENSOR_CORE_SIZE or not p.K:
        return None
    for seen, places in ((p, aligned), (p.swapped(), (aligned[0], aligned[2], aligned[1]))):
        found += mma_configs(kind, seen, multiprocessors, places, most_shared)
        if cores == "wgmma":
            found += wgmma_configs(kind, seen, multiprocessors, places)
    return min(found, key=lambda way: way.cycles, default=None)


def mma_configs(
    kind: str, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool], most_shared: int
) -> Iterator[GpuGemmConfig]:
    """The ways by `mma.sync`, as those of `ways.ways`."""
    a_moves, b_moves = batch_offsets(p)
    a_along = operand_mode(p.M, p.a_row, p.a_col, a_moves, aligned[1])
    b_along = operand_mode(p.N, p.b_col, p.b_row, b_moves, aligned[2])
    is_wide = can_store_vectors(p, aligned[0])
    for shape in MMA_SHAPES:
        BM, BN, BK = shape.tile
        is_guarded = p.M < BM or p.N < BN
        if mma_shared_bytes(shape) > most_shared or (shape is MMA_LARGE and is_guarded):
            continue
        factor = TRANSPOSED_COPY_FACTOR ** [a_along, b_along].count("k") * (GUARDED_FACTOR if is_guarded else 1)
        busy = tuple(factor * part for part in OCCUPANCY_MMA[kind][shape])
        kernel = partial(make_mma, shape, a_along, b_along, is_guarded, kind)
        for parts, part_K in ((1, p.K), *split_k_choices(p, ceil_div(p.M, BM) * ceil_div(p.N, BN), BK, multiprocessors)):
            cycles = estimate_cycles(shape, busy, p, multiprocessors, parts, part_K) / (MAX_SPLIT_TIME if parts > 1 else 1)
            yield GpuGemmConfig(
                max(cycles, STARTUP_CYCLES + MEMORY_BOUND_SLOWDOWN["mma"] * read_cycles(p, multiprocessors)),
                p,
                shape,
                parts,
                part_K,
                is_wide,
                kernel,
            )


def wgmma_configs(
    kind: str, p: GpuGemmProblem, multiprocessors: int, aligned: tuple[bool, bool, bool]
) -> Iterator[WgmmaConfig]:
    """The ways by `wgmma`: the right operand lies along k, the left one too, or, in tf32, along x."""
    if p.K > MAX_PACKED_DEPTH:
        return
    is_wide, deep = can_store_vectors(p, aligned[0]), ROW_BYTES // ITEMSIZE[kind]
    lie = [wgmma_operand_mode(kind, *operand) for operand in operand_strides(p, aligned)]
    choices = [(False, lie[0], lie[1] if lie[1] == "k" else "ready")]
    choices += [(True, lie[0] if lie[0] == "k" else "ready", "x")] * (lie[1] == "x")
    for (is_turned, a, b), right in product(choices, RIGHT_ROWS):
        way = WgmmaConfig(0, p, kind, a, b, is_turned, right, 1, p.K, is_wide, multiprocessors)
        tiles = ceil_div(p.M, way.tile[0]) * ceil_div(p.N, way.tile[1])
        for parts, part_K in ((1, p.K), *split_k_choices(p, tiles, deep, multiprocessors)):
            cut = way._replace(parts=parts, part_K=part_K)
            yield cut._replace(cycles=wgmma_cycles(cut, tiles))


def wgmma_cycles(way: WgmmaConfig, tiles: int) -> float:
    """About how many cycles a way takes whose product has so many tiles."""
    p, size = way.product, way.product.matrices * way.product.M * way.product.N
    most = ceil_div(tiles * p.matrices * way.parts, way.multiprocessors)
    rate = (
        PEAK_FMA_PER_CYCLE[way.kind]
        * SUSTAINED_FACTOR[way.kind]
        * NARROW_TILE_FACTOR[way.right]
        * (CROSSWISE_FACTOR if way.is_crosswise else 1)
    )
    begin = WGMMA_STARTUP_CYCLES + LEFT_ROWS * way.right / WGMMA_SUMS_STORED_PER_CYCLE
    cycles = begin + most * LEFT_ROWS * way.right * way.part_K / rate
    for how, rows in ((way.a, p.M), (way.b, p.N)):
        cycles += pack_cycles(rows * p.K * p.matrices, way.multiprocessors) if how == "ready" else 0
    cycles += 32 * size / L2_BYTES_PER_CYCLE if p.out_col != 1 else 0
    cycles = max(cycles, begin + MEMORY_BOUND_SLOWDOWN["wgmma"] * read_cycles(p, way.multiprocessors))
    if way.parts > 1:
        cycles = (
            cycles
            + EXTRA_LAUNCH_CYCLES
            + CYCLES_PER_PART * way.parts
            + BYTES_PER_PART_ELEMENT * size * way.parts / L2_BYTES_PER_CYCLE
        ) / MAX_SPLIT_TIME
    return cycles


def split_k_choices(p: GpuGemmProblem, tiles: int, deep: int, multiprocessors: int) -> Iterator[tuple[int, int]]:
    """The numbers of parts that K may be cut in, and how long a part is."""
    for parts in SPLIT_COUNTS:
        part_K = ceil_div(p.K, parts * deep) * deep
        if (
            tiles * p.matrices * parts > MAX_SPLIT_BLOCKS_PER_SM * multiprocessors
            or p.matrices * parts > MAX_GRID_BLOCKS
            or part_K < 2 * deep
        ):
            return
        if ceil_div(p.K, part_K) == parts:
            yield parts, part_K


def operand_strides(
    p: GpuGemmProblem, aligned: tuple[bool, bool, bool]
) -> tuple[tuple[int, int, int, list[int], bool, int], ...]:
    """Of a and of b: rows, the strides along them and along k, all other steps, alignment, and what a prologue adds."""
    a_moves, b_moves = batch_offsets(p)
    return (
        (p.M, p.a_row, p.a_col, a_moves, aligned[1], p.changes[0]),
        (p.N, p.b_col, p.b_row, b_moves, aligned[2], p.changes[1]),
    )


def batch_offsets(p: GpuGemmProblem) -> tuple[list[int], list[int]]:
    """Where a and b start, and their strides along the batch."""
    return [p.start[1], *[x.a for x in p.batch]], [p.start[2], *[x.b for x in p.batch]]


def wgmma_operand_mode(kind: str, rows: int, x: int, k: int, moves: list[int], is_aligned: bool, change: int) -> str:
    """Along "k" or along "x", as the copy engine reads an operand; "ready" where it must be made so."""
    if kind == "bf16" or change or not is_aligned or any(n % 4 or n < 0 for n in moves):
        return "ready"
    near, far = min(x, k), max(x, k)
    if near != 1 or far % 4 or far < 4:
        return "ready"
    return "k" if k == 1 else "x"


def read_cycles(p: GpuGemmProblem, multiprocessors: int) -> float:
    """About how many cycles it takes to read both operands once."""
    return 4 * p.matrices * (p.M + p.N) * p.K / (MEMORY_BYTES_PER_CYCLE * multiprocessors)


def pack_cycles(size: int, multiprocessors: int) -> float:
    """About how many cycles it takes to make an operand ready."""
    return EXTRA_LAUNCH_CYCLES / 2 + 8 * size / (MEMORY_BYTES_PER_CYCLE * multiprocessors)

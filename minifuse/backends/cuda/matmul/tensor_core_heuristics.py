"""Choose how to compute a float32 product on tensor cores: by `wgmma` on Hopper, or by `mma.sync` if that is faster.

The choice uses integers only and the cost model of `heuristics`: cycles of one multiprocessor, fitted to one H200. If tensor
cores have too little to do, a configuration in float32 is chosen.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

from ....core.dtypes import HIGH
from ....core.rounding import ceil_div
from ...codegen.gpu_facts import MAX_GRID_YZ
from ...matmul.problem import MatmulOperand, MatmulProblem
from ...matmul.search import Candidates, find_cheapest
from ..device.tensor_maps import ITEMSIZE
from ..intrinsics.wgmma import ROW_BYTES
from .heuristics import (
    CYCLES_PER_PART,
    EXTRA_LAUNCH_CYCLES,
    GUARDED_FACTOR,
    L2_BYTES_PER_CYCLE,
    MAX_SPLIT_TIME_RATIO,
    MEMORY_BYTES_PER_CYCLE,
    STARTUP_CYCLES,
    CandidateKernel,
    GpuGemmConfig,
    GpuLimits,
    can_store_vectors,
    configs_of_kernels,
    exact_configs,
    operand_mode,
    split_k_choices,
)
from .mma import MMA_LARGE, MMA_SHAPES, MMA_SMALL, make_mma, mma_shared_bytes
from .wgmma import LEFT_ROWS, RIGHT_ROWS

# Throughput of a multiprocessor with 1, 2, ... blocks of `mma.sync`, in units of 128 fma per cycle.
MMA_THROUGHPUT = {"tf32": {MMA_LARGE: (1.4, 2.2), MMA_SMALL: (0.8, 1.3, 1.6, 1.7)}}
MMA_THROUGHPUT["bf16"] = {MMA_LARGE: (2.4, 3.7), MMA_SMALL: (0.9, 1.4, 1.7, 1.8)}
TRANSPOSED_COPY_FACTOR = 0.75  # of MMA_THROUGHPUT, for each operand that is copied 4 bytes at a time
PEAK_FMA_PER_CYCLE = {"tf32": 1024, "bf16": 2048}  # fma of a multiprocessor by `wgmma`
SUSTAINED_FACTOR = {"tf32": 0.78, "bf16": 0.66}  # of the peak, in long runs, since the clock frequency drops
NARROW_TILE_FACTOR = {256: 1.0, 128: 0.87, 64: 0.58}  # of the sustained rate, by rows of the right operand's tile
CROSSWISE_FACTOR = 0.97  # of the sustained rate, if the left operand goes through registers
WGMMA_STARTUP_CYCLES = 11_000  # from the launch until the first tile is in shared memory
WGMMA_SUMS_STORED_PER_CYCLE = 6  # sums of its last tile that a block stores per cycle
BYTES_PER_PART_ELEMENT = 16  # memory traffic of a part's element, which is written once and read without the L2 cache
MEMORY_BOUND_SLOWDOWN = {"mma": 1.5, "wgmma": 1.25}  # relative to a pass over memory, if memory limits the product
MIN_TENSOR_CORE_SIZE = 4  # rows and columns; with fewer, memory limits the product, so float32 is as fast
MAX_PACKED_DEPTH = MAX_GRID_YZ * 32  # the largest K that one launch can pack


class WgmmaConfig(NamedTuple):
    """One configuration by `wgmma`, and its estimated cycles.

    The copy engine reads an operand along "k" or along "x", or the operand is packed first ("packed").
    """

    cycles: float
    problem: MatmulProblem
    kind: str  # "tf32" or "bf16"
    a: str
    b: str
    is_output_transposed: bool  # computed as out.T = b.T @ a.T, but stored as out
    right_rows: int  # of a tile of the right operand
    parts: int
    part_K: int
    is_wide: bool
    multiprocessors: int

    @property
    def is_crosswise(self) -> bool:
        """Return whether the left operand is contiguous along x."""
        return (self.b if self.is_output_transposed else self.a) == "x"

    @property
    def tile(self) -> tuple[int, int]:
        """Return the rows and columns of out that a block computes at a time."""
        return (self.right_rows, LEFT_ROWS) if self.is_output_transposed else (LEFT_ROWS, self.right_rows)


@lru_cache(1024)
def choose_rounded_config(problem: MatmulProblem, gpu: GpuLimits) -> GpuGemmConfig | WgmmaConfig:
    """Choose the fastest configuration: on tensor cores or, if these have too little to do, in float32."""
    rounded: Candidates[GpuGemmConfig | WgmmaConfig] = partial(tensor_core_configs, gpu=gpu)
    return find_cheapest(problem, rounded, *exact_configs(problem, gpu))


def tensor_core_configs(p: MatmulProblem, gpu: GpuLimits) -> Iterator[GpuGemmConfig | WgmmaConfig]:
    """Return the configurations on tensor cores; none for products that memory limits."""
    if min(p.M, p.N) >= MIN_TENSOR_CORE_SIZE and p.K:
        yield from mma_configs(p, gpu)
        if gpu.cores == "wgmma":
            yield from wgmma_configs(p, gpu)


def mma_configs(p: MatmulProblem, gpu: GpuLimits) -> Iterator[GpuGemmConfig]:
    """Return the configurations by `mma.sync`."""
    min_cycles = STARTUP_CYCLES + MEMORY_BOUND_SLOWDOWN["mma"] * read_cycles(p, gpu.multiprocessors)
    return configs_of_kernels(p, gpu, mma_kernels(p, gpu.max_shared_bytes), min_cycles)


def mma_kernels(p: MatmulProblem, max_shared_bytes: int) -> Iterator[CandidateKernel]:
    """Yield the kernels by `mma.sync` that can compute a product."""
    kind = operand_kind(p)
    a_along = operand_mode(p.M, p.a.m, p.a.k, p.a.offsets, p.a.is_aligned)
    b_along = operand_mode(p.N, p.b.n, p.b.k, p.b.offsets, p.b.is_aligned)
    for shape in MMA_SHAPES:
        BM, BN, _ = shape.tile
        is_guarded = p.M < BM or p.N < BN
        if mma_shared_bytes(shape) <= max_shared_bytes and not (shape is MMA_LARGE and is_guarded):
            factor = TRANSPOSED_COPY_FACTOR ** [a_along, b_along].count("k") * (GUARDED_FACTOR if is_guarded else 1)
            throughput = tuple(factor * part for part in MMA_THROUGHPUT[kind][shape])
            yield shape, throughput, partial(make_mma, shape, a_along, b_along, is_guarded, kind)


def wgmma_configs(p: MatmulProblem, gpu: GpuLimits) -> Iterator[WgmmaConfig]:
    """Return the configurations by `wgmma`. The right operand is read along k, the left one along k or, in tf32, along x."""
    if p.K > MAX_PACKED_DEPTH:
        return
    kind, multiprocessors, is_wide = operand_kind(p), gpu.multiprocessors, can_store_vectors(p)
    k_step = ROW_BYTES // ITEMSIZE[kind]
    modes = [wgmma_operand_mode(kind, *x) for x in ((p.a.m, p.a, p.cost_a), (p.b.n, p.b, p.cost_b))]
    choices = [(False, modes[0], modes[1] if modes[1] == "k" else "packed")]
    choices += [(True, modes[0] if modes[0] == "k" else "packed", "x")] * (modes[1] == "x")
    for (is_output_transposed, a, b), right in product(choices, RIGHT_ROWS):
        config = WgmmaConfig(0, p, kind, a, b, is_output_transposed, right, 1, p.K, is_wide, multiprocessors)
        tiles = ceil_div(p.M, config.tile[0]) * ceil_div(p.N, config.tile[1])
        for parts, part_K in split_k_choices(p, tiles, k_step, multiprocessors):
            split_config = config._replace(parts=parts, part_K=part_K)
            yield split_config._replace(cycles=wgmma_cycles(split_config, tiles))


def wgmma_cycles(config: WgmmaConfig, tiles: int) -> float:
    """Estimate the cycles of a configuration with this number of tiles per matrix."""
    p, size = config.problem, config.problem.matrix_count * config.problem.M * config.problem.N
    max_tiles = ceil_div(tiles * p.matrix_count * config.parts, config.multiprocessors)
    rate = (
        PEAK_FMA_PER_CYCLE[config.kind]
        * SUSTAINED_FACTOR[config.kind]
        * NARROW_TILE_FACTOR[config.right_rows]
        * (CROSSWISE_FACTOR if config.is_crosswise else 1)
    )
    startup = WGMMA_STARTUP_CYCLES + LEFT_ROWS * config.right_rows / WGMMA_SUMS_STORED_PER_CYCLE
    cycles = startup + max_tiles * LEFT_ROWS * config.right_rows * config.part_K / rate
    for mode, rows in ((config.a, p.M), (config.b, p.N)):
        cycles += pack_cycles(rows * p.K * p.matrix_count, config.multiprocessors) if mode == "packed" else 0
    cycles += 32 * size / L2_BYTES_PER_CYCLE if p.out.n != 1 else 0
    cycles = max(cycles, startup + MEMORY_BOUND_SLOWDOWN["wgmma"] * read_cycles(p, config.multiprocessors))
    if config.parts > 1:
        cycles = (
            cycles
            + EXTRA_LAUNCH_CYCLES
            + CYCLES_PER_PART * config.parts
            + BYTES_PER_PART_ELEMENT * size * config.parts / L2_BYTES_PER_CYCLE
        ) / MAX_SPLIT_TIME_RATIO
    return cycles


def operand_kind(p: MatmulProblem) -> str:
    """Return the type to which tensor cores round the operands."""
    return "tf32" if p.precision == HIGH else "bf16"


def wgmma_operand_mode(kind: str, x: int, operand: MatmulOperand, prologue_cost: float) -> str:
    """Return the axis along which the copy engine reads an operand, "k" or "x", or "packed" if it must be packed first."""
    is_readable = operand.is_aligned and not any(n % 4 or n < 0 for n in operand.offsets)
    if kind == "bf16" or prologue_cost or not is_readable:
        return "packed"
    smaller, larger = min(x, operand.k), max(x, operand.k)
    if smaller != 1 or larger % 4 or larger < 4:
        return "packed"
    return "k" if operand.k == 1 else "x"


def read_cycles(p: MatmulProblem, multiprocessors: int) -> float:
    """Estimate the cycles of reading both operands once."""
    return 4 * p.matrix_count * (p.M + p.N) * p.K / (MEMORY_BYTES_PER_CYCLE * multiprocessors)


def pack_cycles(size: int, multiprocessors: int) -> float:
    """Estimate the cycles of packing an operand."""
    return EXTRA_LAUNCH_CYCLES / 2 + 8 * size / (MEMORY_BYTES_PER_CYCLE * multiprocessors)

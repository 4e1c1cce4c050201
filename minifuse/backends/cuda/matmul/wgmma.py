"""Products of float32 matrices on Hopper's tensor cores: in tf32, which keeps 10 bits of a fraction, or bf16, which keeps 7.

The tensor cores of compute capability 9.0 read both operands from shared memory themselves (`wgmma`), 64 rows a
warpgroup, and run on while the threads do something else. So threads only start things: one of them asks the copy engine for
tiles and waits until their places are free, two warpgroups wait for tiles, start products, and say when a place is free.

    out[i, j] = finish(sum over k of left[i, k] * right[j, k])

What the hardware asks for, and how it is met:

- Both operands contiguous along k, in rows of 128 bytes whose 16-byte pieces are swizzled: piece p of row r lies at p xor
  r % 8. The copy engine writes tiles so. Only the left operand in tf32 may lie otherwise (`is_crosswise`): the rows of its
  tile lie along x, and lanes load it into the registers that `wgmma` takes a left operand from, too: half a tile, while the
  product of the other half runs. A warpgroup has 64 rows of all columns: of 128 rows of half of them, it would load twice
  as much.
- tf32 rounded to nearest. The tensor cores cut 13 bits off, which makes every number smaller; a tensor map of the type TF32
  lets the copy engine round on the way, to even in a tie. It costs nothing.
- bf16 in memory: `make_ready` writes such copies of float32 operands, and of what the copy engine cannot read.
- Addresses and strides that are multiples of 16 bytes. Edges are the copy engine's, which brings zeros from beyond them.

- Enough blocks. A block's tile has 256 columns, or 128 or 64 where there are too few tiles for all multiprocessors: a narrow
  one reads more for each sum, but is cheaper than to cut K and add the parts.

One H200, of cuBLAS's tf32 in the same run, whose TFLOP/s stand behind; 4096^3:

    a @ b.T, from PTX: each wgmma waits for the one before (see `compiler.whole_cubin`)     0.79 of 395
    a @ b.T, linked as a whole: a product starts while the one before still runs            0.96 of 411, 0.99 of 354
    a @ b, b crosswise, 128 x 128 sums a warpgroup, each product waited for                 0.90 of 400
    a @ b, b made ready by a kernel of its own, which is counted                            0.89 of 404
    a @ b, b crosswise, 64 x 256 sums a warpgroup, two halves of a tile that take turns     0.99 of 404, 1.00 of 376
    a.T @ b, a made ready, b crosswise                                                      1.47 of 235
    a.T @ b.T, a crosswise                                                                  0.98 of 398, 0.99 of 360
    a @ b in bf16, both made ready, both copies counted                                     1.30 of 371
    a @ b in tf32 by `matmul_mma`                                                           0.29 of 400

1024^3, a @ b.T, the kernels alone: 256 columns 0.56 of 133, K cut in three 0.65; 128 columns 0.92; 64 columns 1.25.

No difference: strips of 1, 4, 8 or 16 tiles, and 24 registers left to the copies for 40. Slower by up to 8%: loads that
might not happen, so that the assembler must keep what was in their registers (they become branches).
"""

from functools import cache

from ..intrinsics.base import cuda, device, f32, i32, i64, u32
from ..intrinsics.wgmma import (
    acquire_map,
    arranged,
    arrive,
    copy_box,
    expect_bytes,
    finish_products,
    load_fragments,
    make_barrier,
    multiply_from_registers,
    multiply_shared,
    publish_barriers,
    set_max_registers,
    shared_address,
    store_fours,
    wait_barrier,
    zeros,
)
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

ROW_BYTES = 128  # bytes of a row of a tile: 32 k in tf32, 64 in bf16
LEFT_ROWS, RIGHT_ROWS = 128, (256, 128, 64)  # rows of a block's tile of each operand
PIPELINE_BYTES = 192 * 1024  # bytes of shared memory for tiles in flight
DESCRIPTOR = 1 << 16 | 1024 // 16 << 32 | 1 << 62  # rows of 128 bytes, swizzled, in groups of 8 of 1024 bytes
THREADS = 384  # two warpgroups that multiply, and one whose first thread copies
COPY_REGISTERS, MULTIPLY_REGISTERS = 40, 232  # registers of a lane that copies, and of one that multiplies
STRIP_TILES = 8  # columns of tiles that blocks walk down together, so that they share more of both operands in the L2 cache


def signature_of(hooks: GemmHooks) -> tuple[str, ...]:
    """The types of the arguments."""
    return (f"*{hooks.stored or 'f32'}", "*u8", "*u8", *["i64"] * 19, *hooks.types)


@device
def tile_work(tile, across, down, parts, inner):
    """What tile number `tile` is: its row and column among tiles, its part of K, and its place in the batch.

    Tiles go row by row down strips of STRIP columns. Divisions of 64 bits are calls, beside which no wgmma runs ahead.
    """
    z = u32(tile) // u32(across * down)
    place = u32(tile - z * across * down)
    first = u32(place // u32(STRIP_TILES * down) * STRIP_TILES)
    place = u32(place - first * down)
    width = u32(min(STRIP_TILES, across - first))
    part, batch = i64(z % u32(parts)), z // u32(parts)
    return place // width, first + place % width, part, i64(batch % u32(inner)), i64(batch // u32(inner))


def pipeline_sizes(right: int) -> tuple[int, int, int]:
    """Tiles in flight, bytes of one of both operands, and bytes of shared memory, with two barriers a tile."""
    stage = (LEFT_ROWS + right) * ROW_BYTES
    stages = PIPELINE_BYTES // stage
    return stages, stage, stages * (stage + 16)


@cache
def make_wgmma(
    kind: str = "tf32",
    is_crosswise: bool = False,
    is_turned: bool = False,
    right: int = RIGHT_ROWS[0],
    hooks: GemmHooks = NO_HOOKS,
) -> GpuKernel:
    """The kernel for operands of a kind, "tf32" or "bf16", in tiles of LEFT rows of left by `right` rows of right.

    Blocks stay: each takes one tile after the other. So the first tiles of the next one are on their way while the sums of
    this one are stored. `is_turned`: rows of left, which lies crosswise, are columns of out.
    """
    stages, stage, shared = pipeline_sizes(right)
    deep = ROW_BYTES // (4 if kind == "tf32" else 2)  # k of a tile
    size_left = LEFT_ROWS * ROW_BYTES
    barriers = stages * stage // 4  # where they lie, in floats
    BM, BN = (right, LEFT_ROWS) if is_turned else (LEFT_ROWS, right)
    multiply = multiply_from_registers(right) if is_crosswise else multiply_shared(kind, right)
    zero = zeros(right // 2)
    arrange = arranged((0, 2, 1, 3), 4) if is_turned else arranged((0, 1, 2, 3), 1)
    places = [(j, 0) if is_turned else (0, j) for j in range(0, right, 8)]
    store = store_fours(places, hooks.stored or "f32")
    finish, finish_four = hooks.finish, hooks.finish_four
    give, take = set_max_registers(False, COPY_REGISTERS), set_max_registers(True, MULTIPLY_REGISTERS)

    def matmul_wgmma(
        out, map_left, map_right, M, N, K, out_row, out_col, parts, part_K, out_part,
        matrices, inner, out_inner, out_outer, left_inner, left_outer, right_inner, right_outer, down, across, wide, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 1024)
        t = u32(cuda.threadIdx.x)
        tile0 = shared_address(S, 0)
        full = shared_address(S, barriers)  # a barrier for each stage: its tiles have come
        empty = u32(full + 8 * stages)  # ... and all eight warps that multiply have read them
        if t == 0:
            for s in range(stages):
                make_barrier(full + 8 * s, 1)
                make_barrier(empty + 8 * s, 8)
            publish_barriers()
        cuda.syncthreads()
        tiles = u32(across * down * parts * matrices)
        slot, phase = i32(0), u32(0)
        if t >= 256:
            give()
            if t == 256:
                acquire_map(map_left)
                acquire_map(map_right)
                tile = u32(cuda.blockIdx.x)
                while tile < tiles:
                    row, col, part, i, o = tile_work(tile, across, down, parts, inner)
                    x, y = (col * BN, row * BM) if is_turned else (row * BM, col * BN)
                    k0 = part * part_K
                    for k in range(k0, min(k0 + part_K, K), deep):
                        here, ready = tile0 + slot * stage, full + 8 * slot
                        wait_barrier(empty + 8 * slot, phase ^ 1)
                        expect_bytes(ready, stage)
                        if is_crosswise:
                            for box in range(LEFT_ROWS // 32):
                                copy_box(
                                    here + box * 32 * ROW_BYTES,
                                    map_left,
                                    x + box * 32,
                                    k,
                                    i * left_inner,
                                    o * left_outer,
                                    ready,
                                )
                        else:
                            copy_box(here, map_left, k, x, i * left_inner, o * left_outer, ready)
                        copy_box(here + size_left, map_right, k, y, i * right_inner, o * right_outer, ready)
                        slot = i32(slot + 1)
                        if slot == stages:
                            slot = i32(0)
                            phase = u32(phase ^ 1)
                    tile = u32(tile + u32(cuda.gridDim.x))
        else:
            take()
            lane, warp = t % 32, t // 32
            g, q = lane // 4, lane % 4
            near, far = u32(0), u32(0)  # where the fragments of a lane begin in a tile, at k = q and at k = q + 4
            if is_crosswise:  # two neighbours along x a lane; in this order half a warp reads from all banks
                piece = g // 2 % 2 * 4 + warp % 2 * 2 + g // 4
                here = warp // 2 * 32 * ROW_BYTES + q * ROW_BYTES + g % 2 * 8
                near, far = u32(here + (piece ^ q) * 16), u32(here + 4 * ROW_BYTES + (piece ^ q ^ 4) * 16)
                first, apart = warp // 2 * 32 + piece * 4, 1
            else:
                first, apart = warp * 16 + g, 8  # the lane's first row, and how far behind it the other one lies
            if is_turned:
                is_odd, m, n = g % 2 == 1, q * 2 + g % 2, first
            else:
                is_odd, m, n = q % 2 == 1, first + g % 2 * 2 * is_crosswise + q % 2 * apart, q // 2 * 4
            tile = u32(cuda.blockIdx.x)
            while tile < tiles:
                row, col, part, i, o = tile_work(tile, across, down, parts, inner)
                row0, col0, k0 = row * BM, col * BN, part * part_K
                acc = zero()
                before = i32(-1)
                for _ in range(k0, min(k0 + part_K, K), deep):
                    wait_barrier(full + 8 * slot, phase)
                    here = u32(tile0 + slot * stage)
                    there = u32(here + size_left) // u32(16) | DESCRIPTOR
                    if is_crosswise:
                        head = load_fragments(here + near, here + far)  # half of the tile, and then the other half
                        acc = multiply(acc, head, there)
                    else:
                        acc = multiply(acc, u32(here + t // 128 * (64 * ROW_BYTES)) // u32(16) | DESCRIPTOR, there)
                    if before >= 0 and lane == 0:
                        arrive(empty + 8 * before)  # what was started before this has ended
                    if is_crosswise:
                        tail = load_fragments(here + near + 16 * ROW_BYTES, here + far + 16 * ROW_BYTES)
                        acc = multiply(acc, tail, there + ROW_BYTES // 2 // 16)
                    before = slot
                    slot = i32(slot + 1)
                    if slot == stages:
                        slot = i32(0)
                        phase = u32(phase ^ 1)
                acc = finish_products(acc)
                if lane == 0:
                    arrive(empty + 8 * before)
                start = part * out_part + i * out_inner + o * out_outer
                at = o, i, extra
                store(
                    out, start, row0 + m, col0 + n, M, N, out_row, out_col, wide != 0, arrange(acc, is_odd),
                    finish, finish_four, at,
                )  # fmt: skip
                tile = u32(tile + u32(cuda.gridDim.x))

    constants = (kind, is_crosswise, is_turned, right, hooks.stored)
    return GpuKernel("matmul_wgmma", constants, matmul_wgmma, signature_of(hooks), THREADS, 1, shared, hooks.text, True)

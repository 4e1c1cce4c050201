"""Products of float32 matrices on Hopper's tensor cores: in tf32, which keeps 10 bits of a fraction, or bf16, which keeps 7.

The tensor cores of compute capability 9.0 read both operands from shared memory themselves (`wgmma`), 64 rows a
warpgroup, and run on while the threads do something else. So threads only start things: one of them asks the copy engine for
tiles and waits until their places are free, two warpgroups wait for tiles, start products, and say when a place is free.

    out[i, j] = finish(sum over k of left[i, k] * right[j, k])

What the hardware asks for, and how it is met:

- Both operands contiguous along k, in rows of 128 bytes whose 16-byte pieces are swizzled: piece p of row r lies at p xor
  r % 8. The copy engine writes tiles so. Only the left operand in tf32 may lie otherwise (`is_crosswise`): the rows of its
  tile lie along x, and lanes load it into the registers that `wgmma` takes a left operand from, too.
- tf32 rounded to nearest. The tensor cores cut 13 bits off, which makes every number smaller; a tensor map of the type TF32
  lets the copy engine round on the way, to even in a tie. It costs nothing.
- bf16 in memory: `make_ready` writes such copies of float32 operands, and of what the copy engine cannot read.
- Addresses and strides that are multiples of 16 bytes. Edges are the copy engine's, which brings zeros from beyond them.

One H200, 4096^3, of cuBLAS's tf32 in the same run, whose TFLOP/s stand behind:

    a @ b.T, from PTX: each wgmma waits for the one before (see `compiler.whole_cubin`)     0.79 of 395
    a @ b.T, linked as a whole: a product starts while the one before still runs            0.97 of 409, 0.99 of 366
    a @ b, b crosswise, through registers, each product waited for                          0.90 of 400
    a @ b, b made ready by a kernel of its own, which is counted                            0.89 of 400
    a.T @ b, a made ready, b crosswise                                                      1.29 of 250
    a.T @ b.T, a crosswise                                                                  0.87 of 395
    a @ b in bf16, both made ready, both copies counted                                     1.28 of 400
    a @ b in tf32 by `matmul_mma`                                                           0.29 of 400

No difference: strips of 1, 4, 8 or 16 tiles, and 24 registers left to the copies for 40.
"""

from functools import cache

from .hooks import PLAIN, Hooks
from .shapes import GpuKernel
from .wgmma import (
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
    registers,
    shared_address,
    show_barriers,
    store_fours,
    turned,
    wait_for,
    zeros,
)
from .words import cuda, device, f32, i32, i64, u32

ROW = 128  # bytes of a row of a tile: 32 k in tf32, 64 in bf16
STAGES = 4  # tiles in shared memory
LEFT, RIGHT = (128, 256), (256, 128)  # rows of a block's tile of each operand: from shared memory, and crosswise
TILE_ROWS = LEFT[0] + RIGHT[0]
STAGE = TILE_ROWS * ROW  # bytes
SHARED = STAGES * (STAGE + 16)  # bytes, with two barriers a stage
DESCRIPTOR = 1 << 16 | 1024 // 16 << 32 | 1 << 62  # rows of 128 bytes, swizzled, in groups of 8 of 1024 bytes
THREADS = 384  # two warpgroups that multiply, and one whose first thread copies
KEPT, TAKEN = 40, 232  # registers of a lane that copies, and of one that multiplies
STRIP = 8  # columns of tiles that blocks walk down together, so that they share more of both operands in the L2 cache


def signature_of(hooks: Hooks) -> tuple[str, ...]:
    """The types of the arguments."""
    return (f"*{hooks.stored or 'f32'}", "*u8", "*u8", *["i64"] * 19, *hooks.types)


@device
def work_of(tile, across, down, parts, inner):
    """What tile number `tile` is: its row and column among tiles, its part of K, and its place in the batch.

    Tiles go row by row down strips of STRIP columns. Divisions of 64 bits are calls, beside which no wgmma runs ahead.
    """
    z = u32(tile) // u32(across * down)
    place = u32(tile - z * across * down)
    first = u32(place // u32(STRIP * down) * STRIP)
    place = u32(place - first * down)
    width = u32(min(STRIP, across - first))
    part, batch = i64(z % u32(parts)), z // u32(parts)
    return place // width, first + place % width, part, i64(batch % u32(inner)), i64(batch // u32(inner))


@cache
def make_wgmma(kind: str = "tf32", is_crosswise: bool = False, is_turned: bool = False, hooks: Hooks = PLAIN) -> GpuKernel:
    """The kernel for operands of a kind, "tf32" or "bf16".

    Blocks stay: each takes one tile after the other. So the first tiles of the next one are on their way while the sums of
    this one are stored. `is_turned`: rows of left are columns of out, whose neighbours lie side by side in memory.
    """
    left_rows, right_rows = LEFT[is_crosswise], RIGHT[is_crosswise]
    deep = ROW // (4 if kind == "tf32" else 2)  # k of a tile
    size_left = left_rows * ROW
    barriers = STAGES * STAGE // 4  # where they lie, in floats
    BM, BN = (right_rows, left_rows) if is_turned else (left_rows, right_rows)
    multiply = multiply_from_registers if is_crosswise else multiply_shared(kind)
    if is_turned:
        arrange, places = turned, [(j + e, 0) for j in range(0, 128, 8) for e in range(2)]
    elif is_crosswise:
        arrange = arranged([(0, 2), (64, 66)])
        places = [(2 * pair, j) for pair in range(2) for j in range(0, 128, 8)]
    else:
        arrange, places = arranged([(0, 2)]), [(0, j) for j in range(0, 256, 8)]
    store = store_fours(places, hooks.stored or "f32")
    finish, finish_four = hooks.finish, hooks.finish_four
    give, take = registers(False, KEPT), registers(True, TAKEN)

    def matmul_wgmma(
        out, map_left, map_right, M, N, K, out_row, out_col, parts, part_K, out_part,
        matrices, inner, out_inner, out_outer, left_inner, left_outer, right_inner, right_outer, down, across, wide, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 1024)
        t = u32(cuda.threadIdx.x)
        tile0 = shared_address(S, 0)
        full = shared_address(S, barriers)  # a barrier for each stage: its tiles have come
        empty = u32(full + 8 * STAGES)  # ... and all eight warps that multiply have read them
        if t == 0:
            for s in range(STAGES):
                make_barrier(full + 8 * s, 1)
                make_barrier(empty + 8 * s, 8)
            show_barriers()
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
                    row, col, part, i, o = work_of(tile, across, down, parts, inner)
                    x, y = (col * BN, row * BM) if is_turned else (row * BM, col * BN)
                    k0 = part * part_K
                    for k in range(k0, min(k0 + part_K, K), deep):
                        here, ready = tile0 + slot * STAGE, full + 8 * slot
                        wait_for(empty + 8 * slot, phase ^ 1)
                        expect_bytes(ready, STAGE)
                        if is_crosswise:
                            for box in range(left_rows // 32):
                                copy_box(
                                    here + box * 32 * ROW, map_left, x + box * 32, k, i * left_inner, o * left_outer, ready
                                )
                        else:
                            copy_box(here, map_left, k, x, i * left_inner, o * left_outer, ready)
                        copy_box(here + size_left, map_right, k, y, i * right_inner, o * right_outer, ready)
                        slot = i32(slot + 1)
                        if slot == STAGES:
                            slot = i32(0)
                            phase = u32(phase ^ 1)
                    tile = u32(tile + u32(cuda.gridDim.x))
        else:
            take()
            lane, warp = t % 32, t // 32
            g, q = lane // 4, lane % 4
            if is_crosswise:  # four rows a lane, one piece; in this order, eight lanes read eight pieces of the 32 banks
                piece = g % 2 * 4 + g // 2
                mine = warp * 32 * (ROW // 4) + q * (ROW // 4) + (piece ^ q) * 4  # at k = q
                other = warp * 32 * (ROW // 4) + (q + 4) * (ROW // 4) + (piece ^ q ^ 4) * 4  # at k = q + 4
                first = warp * 32 + piece * 4
            else:
                mine, other = u32(0), u32(0)
                first = t // 128 * 64 + warp % 4 * 16 + g
            is_odd = q % 2 == 1
            if is_turned:
                m, n = q * 2, first
            else:
                m, n = first + (q % 2) * (1 if is_crosswise else 8), q // 2 * 4
            tile = u32(cuda.blockIdx.x)
            while tile < tiles:
                row, col, part, i, o = work_of(tile, across, down, parts, inner)
                row0, col0, k0 = row * BM, col * BN, part * part_K
                acc = zeros()
                before = i32(-1)
                for _ in range(k0, min(k0 + part_K, K), deep):
                    wait_for(full + 8 * slot, phase)
                    here = tile0 + slot * STAGE
                    right = u32(here + size_left) // u32(16) | DESCRIPTOR
                    if is_crosswise:
                        base = slot * (STAGE // 4)
                        acc = multiply(acc, load_fragments(S, base + mine, base + other), right)
                        if lane == 0:
                            arrive(empty + 8 * slot)
                    else:
                        left = u32(here + t // 128 * (64 * ROW)) // u32(16) | DESCRIPTOR
                        acc = multiply(acc, left, right)
                        if before >= 0 and lane == 0:
                            arrive(empty + 8 * before)  # the product before this one has ended
                        before = slot
                    slot = i32(slot + 1)
                    if slot == STAGES:
                        slot = i32(0)
                        phase = u32(phase ^ 1)
                if not is_crosswise:
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

    constants = (kind, is_crosswise, is_turned, hooks.stored)
    return GpuKernel("matmul_wgmma", constants, matmul_wgmma, signature_of(hooks), THREADS, 1, SHARED, hooks.text, True)

"""Matrix products of float32 on Hopper's tensor cores: in tf32, with 10 fraction bits, or bf16, with 7.

The tensor cores of compute capability 9.0 read both operands from shared memory themselves (`wgmma`), 64 rows per
warpgroup, and continue while the threads do something else. So threads only start work: one of them requests tiles from the
copy engine and waits until their stages are free; two warpgroups wait for tiles, start products, and release stages.

    out[i, j] = epilogue(sum over k of left[i, k] * right[j, k])

The hardware's requirements, and how the kernel meets them:

- Both operands are contiguous along k, in rows of 128 bytes whose 16-byte pieces are swizzled: piece p of row r is at
  p xor r % 8. The copy engine writes tiles in this order. There is one exception: in tf32, the left operand may
  be contiguous along its rows instead (`is_crosswise`). Lanes then load it into registers, from which `wgmma` can read a
  left operand. They load half a tile while the product of the other half runs. A warpgroup computes 64 rows of all columns;
  with 128 rows of half the columns it would load twice as much.
- tf32 is rounded to nearest. The tensor cores would truncate 13 bits, which reduces every magnitude. With a tensor map of
  the type TF32, the copy engine rounds while copying, ties to even, at no cost.
- Operands in bf16 must be stored as bf16: `pack_operands` writes bf16 copies of float32 operands. It also copies operands
  that the copy engine cannot read.
- Addresses and strides are multiples of 16 bytes. The copy engine handles edges by filling in zeros.
- There must be tiles for all multiprocessors. A block's tile has 256 columns, or 128 or 64 if there are too few tiles. A
  narrow tile reads more per sum, but is cheaper than splitting K and adding the parts.

Measured on one H200 at 4096^3: the speed relative to cuBLAS in tf32 in the same run, and the TFLOP/s of cuBLAS:

    a @ b.T, from PTX: each wgmma waits for the one before (see `compile_lto_cubin`)        0.79 of 395
    a @ b.T, link-time optimized: a product starts while the one before still runs          0.96 of 411, 0.99 of 354
    a @ b, b crosswise, 128 x 128 sums per warpgroup, waiting for each product              0.90 of 400
    a @ b, b packed by a separate kernel, whose time is included                            0.89 of 404
    a @ b, b crosswise, 64 x 256 sums per warpgroup, two alternating halves of a tile       0.99 of 404, 1.00 of 376
    a.T @ b, a packed, b crosswise                                                          1.47 of 235
    a.T @ b.T, a crosswise                                                                  0.98 of 398, 0.99 of 360
    a @ b in bf16, both packed, the time of both copies included                            1.30 of 371
    a @ b in tf32 by `make_mma`                                                             0.29 of 400

At 1024^3, a @ b.T, kernels only: 256 columns 0.56 of 133, with K split in three 0.65; 128 columns 0.92; 64 columns 1.25.

Strips of 1, 4, 8 or 16 tiles make no difference, nor do 24 registers instead of 40 for the copying warpgroup. Conditional
loads are up to 8% slower: the assembler must keep the former contents of their registers, and turns them into branches.
"""

from functools import cache

from ..intrinsics.base import cuda, device, f32, i32, i64, u32
from ..intrinsics.gemm import zeros
from ..intrinsics.wgmma import (
    ROW_BYTES,
    acquire_map,
    arrive,
    copy_box,
    exchange_pairs,
    expect_bytes,
    finish_products,
    load_fragments,
    make_barrier,
    multiply_from_registers,
    multiply_shared,
    publish_barriers,
    set_max_registers,
    shared_address,
    store_vectors,
    wait_barrier,
)
from ..tile_shapes import GpuKernel
from .epilogue import NO_HOOKS, GemmHooks

LEFT_ROWS, RIGHT_ROWS = 128, (256, 128, 64)  # rows of a block's tile of each operand
PIPELINE_BYTES = 192 * 1024  # shared memory for tiles in flight
DESCRIPTOR = 1 << 16 | 1024 // 16 << 32 | 1 << 62  # rows of 128 bytes, swizzled, in groups of 8 of 1024 bytes
THREADS = 384  # two warpgroups that multiply, and one whose first thread copies
COPY_REGISTERS, MULTIPLY_REGISTERS = 40, 232  # per lane, of the warpgroup that copies, and of each that multiplies
STRIP_TILES = 8  # columns of tiles that blocks process together, to share more of both operands in the L2 cache


def signature_of(hooks: GemmHooks) -> tuple[str, ...]:
    """Return the types of the kernel's arguments."""
    return (f"*{hooks.stored or 'f32'}", "*u8", "*u8", *["i64"] * 19, *hooks.types)


@device
def tile_work(tile, across, down, parts, inner):
    """Return the row and column of tile number `tile` among tiles, its part of K, and its indices in the batch.

    Tiles are numbered row by row down strips of STRIP_TILES columns. All divisions are of 32 bits: those of
    64 bits are function calls, which serialize wgmma.
    """
    z = u32(tile) // u32(across * down)
    index = u32(tile - z * across * down)
    first = u32(index // u32(STRIP_TILES * down) * STRIP_TILES)
    index = u32(index - first * down)
    width = u32(min(STRIP_TILES, across - first))
    part, batch = i64(z % u32(parts)), z // u32(parts)
    return index // width, first + index % width, part, i64(batch % u32(inner)), i64(batch // u32(inner))


def pipeline_sizes(right_rows: int) -> tuple[int, int, int]:
    """Return the number of stages, the bytes of a stage (a tile of each operand), and the bytes of all shared memory."""
    stage = (LEFT_ROWS + right_rows) * ROW_BYTES
    stages = PIPELINE_BYTES // stage
    return stages, stage, stages * (stage + 16)


@cache
def make_wgmma(
    kind: str = "tf32",
    is_crosswise: bool = False,
    is_output_transposed: bool = False,
    right_rows: int = RIGHT_ROWS[0],
    hooks: GemmHooks = NO_HOOKS,
) -> GpuKernel:
    """Return the kernel for "tf32" or "bf16" operands, in tiles of LEFT_ROWS rows of left by `right_rows` rows of right.

    Blocks are persistent: each computes one tile after another. So the first operand tiles of the next tile are copied while
    the sums of the current tile are stored. If `is_output_transposed`, left is crosswise, and its rows are columns of out.
    """
    stages, stage, shared = pipeline_sizes(right_rows)
    tile_K = ROW_BYTES // (4 if kind == "tf32" else 2)  # k of a tile
    size_left = LEFT_ROWS * ROW_BYTES
    barriers_offset = stages * stage // 4  # in floats
    BM, BN = (right_rows, LEFT_ROWS) if is_output_transposed else (LEFT_ROWS, right_rows)
    multiply = multiply_from_registers(right_rows) if is_crosswise else multiply_shared(kind, right_rows)
    zero = zeros(1, right_rows // 2)
    arrange = exchange_pairs((0, 2, 1, 3), 4) if is_output_transposed else exchange_pairs((0, 1, 2, 3), 1)
    positions = [(j, 0) if is_output_transposed else (0, j) for j in range(0, right_rows, 8)]
    store = store_vectors(positions)
    epilogue, epilogue4 = hooks.epilogue, hooks.epilogue4
    release_registers = set_max_registers(False, COPY_REGISTERS)
    request_registers = set_max_registers(True, MULTIPLY_REGISTERS)

    def matmul_wgmma(
        out, map_left, map_right, M, N, K, out_row, out_col, parts, part_K, out_part,
        matrices, inner, out_inner, out_outer, left_inner, left_outer, right_inner, right_outer, down, across, wide, *extra,
    ):  # fmt: skip
        S = cuda.shared.array(0, f32, 1024)
        t = u32(cuda.threadIdx.x)
        tile0 = shared_address(S, 0)
        full = shared_address(S, barriers_offset)  # a barrier for each stage: its tiles have arrived
        empty = u32(full + 8 * stages)  # a barrier for each stage: all eight multiplying warps have read its tiles
        if t == 0:
            for s in range(stages):
                make_barrier(full + 8 * s, 1)
                make_barrier(empty + 8 * s, 8)
            publish_barriers()
        cuda.syncthreads()
        tiles = u32(across * down * parts * matrices)
        slot, phase = i32(0), u32(0)
        if t >= 256:
            release_registers()
            if t == 256:
                acquire_map(map_left)
                acquire_map(map_right)
                tile = u32(cuda.blockIdx.x)
                while tile < tiles:
                    row, col, part, i, o = tile_work(tile, across, down, parts, inner)
                    x, y = (col * BN, row * BM) if is_output_transposed else (row * BM, col * BN)
                    k0 = part * part_K
                    for k in range(k0, min(k0 + part_K, K), tile_K):
                        target, ready = tile0 + slot * stage, full + 8 * slot
                        wait_barrier(empty + 8 * slot, phase ^ 1)
                        expect_bytes(ready, stage)
                        if is_crosswise:
                            for box in range(LEFT_ROWS // 32):
                                copy_box(
                                    target + box * 32 * ROW_BYTES,
                                    map_left,
                                    x + box * 32,
                                    k,
                                    i * left_inner,
                                    o * left_outer,
                                    ready,
                                )
                        else:
                            copy_box(target, map_left, k, x, i * left_inner, o * left_outer, ready)
                        copy_box(target + size_left, map_right, k, y, i * right_inner, o * right_outer, ready)
                        slot = i32(slot + 1)
                        if slot == stages:
                            slot = i32(0)
                            phase = u32(phase ^ 1)
                    tile = u32(tile + u32(cuda.gridDim.x))
        else:
            request_registers()
            lane, warp = t % 32, t // 32
            g, q = lane // 4, lane % 4
            offset_k0, offset_k4 = u32(0), u32(0)  # start of a lane's fragments in a tile, at k = q and at k = q + 4
            if is_crosswise:  # two neighbors along x per lane; in this order half a warp reads from all banks
                piece = g // 2 % 2 * 4 + warp % 2 * 2 + g // 4
                offset = warp // 2 * 32 * ROW_BYTES + q * ROW_BYTES + g % 2 * 8
                offset_k0, offset_k4 = u32(offset + (piece ^ q) * 16), u32(offset + 4 * ROW_BYTES + (piece ^ q ^ 4) * 16)
                first, row_step = warp // 2 * 32 + piece * 4, 1
            else:
                first, row_step = warp * 16 + g, 8  # the lane's first row, and the distance of the other one
            if is_output_transposed:
                is_odd, m, n = g % 2 == 1, q * 2 + g % 2, first
            else:
                is_odd, m, n = q % 2 == 1, first + g % 2 * 2 * is_crosswise + q % 2 * row_step, q // 2 * 4
            tile = u32(cuda.blockIdx.x)
            while tile < tiles:
                row, col, part, i, o = tile_work(tile, across, down, parts, inner)
                row0, col0, k0 = row * BM, col * BN, part * part_K
                acc = zero()
                previous = i32(-1)
                for _ in range(k0, min(k0 + part_K, K), tile_K):
                    wait_barrier(full + 8 * slot, phase)
                    left_tile = u32(tile0 + slot * stage)
                    right_descriptor = u32(left_tile + size_left) // u32(16) | DESCRIPTOR
                    if is_crosswise:
                        head = load_fragments(
                            left_tile + offset_k0, left_tile + offset_k4
                        )  # half of the tile; `tail` follows
                        acc = multiply(acc, head, right_descriptor)
                    else:
                        left_descriptor = u32(left_tile + t // 128 * (64 * ROW_BYTES)) // u32(16) | DESCRIPTOR
                        acc = multiply(acc, left_descriptor, right_descriptor)
                    if previous >= 0 and lane == 0:
                        arrive(empty + 8 * previous)  # the previous product has ended, so its stage is free
                    if is_crosswise:
                        tail = load_fragments(left_tile + offset_k0 + 16 * ROW_BYTES, left_tile + offset_k4 + 16 * ROW_BYTES)
                        acc = multiply(acc, tail, right_descriptor + ROW_BYTES // 2 // 16)
                    previous = slot
                    slot = i32(slot + 1)
                    if slot == stages:
                        slot = i32(0)
                        phase = u32(phase ^ 1)
                acc = finish_products(acc)
                if lane == 0:
                    arrive(empty + 8 * previous)
                start = part * out_part + i * out_inner + o * out_outer
                at = o, i, extra
                store(
                    out, start, row0 + m, col0 + n, M, N, out_row, out_col, wide != 0, arrange(acc, is_odd),
                    epilogue, epilogue4, at,
                )  # fmt: skip
                tile = u32(tile + u32(cuda.gridDim.x))

    constants = (kind, is_crosswise, is_output_transposed, right_rows, hooks.stored)
    return GpuKernel("matmul_wgmma", constants, matmul_wgmma, signature_of(hooks), THREADS, 1, shared, hooks.text, True)

"""Where a block of a product works, how tiles of operands come to shared memory and are changed there: device functions.

Each is made for the size of a tile, copies also for how their operand lies. Kernels are in `matmul`, `matmul_double`,
`matmul_mma`, `attention`.
"""

from ..intrinsics.base import cuda, device, i32, load4, store4, u32
from ..intrinsics.gemm import copy_async
from ..tile_shapes import swizzle
from .epilogue import identity_prologue


def block_position(BM, BN, guarded):
    """What a block of a product computes: its first row and column, its part of K, and its indices in the batch.

    Each part of K has an output of its own; it begins at k0 and is `depth` long. Unless `guarded`, the last tiles move back
    to end at the edge.
    """

    @device
    def place(M, N, K, parts, part_K, inner):
        z = u32(cuda.blockIdx.z)  # unsigned: a division of 64 bits would take registers from the loop
        part, batch = i32(z % u32(parts)), u32(z // u32(parts))
        i, o = i32(batch % u32(inner)), i32(batch // u32(inner))
        k0 = part * part_K
        depth = min(part_K, K - k0)
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        if not guarded:
            row0, col0 = min(row0, M - BM), min(col0, N - BN)
        return row0, col0, part, k0, depth, i, o

    return place


def lanes_along_k(BK):
    """How many lanes lie along k where each element is a copy of its own: if BK allows, a warp takes a line of 128 bytes."""
    return 32 if BK % 32 == 0 else 16


def swizzled_offset(pitch, is_mixed):
    """Where in a tile element (x, k) lies.

    A warp that turns over 32 neighbours along k would meet each bank four times: rows k, k + 8, ... begin in the same one.
    So each eight k have an order of their own within groups of four x. `outer_products` knows it; it costs nothing.
    """

    @device
    def spot(x, k):
        return k * pitch + (x ^ swizzle(k) if is_mixed else x)

    return spot


def tile_copier(X, BK, pitch, threads, along, guarded, element, TK=16):
    """Start the copy of one tile: shared[k * pitch + x] <- source[x * sx + k * sk].

    along "x4": rows contiguous along x and 16-byte aligned, four elements a copy. "k": contiguous along k, one element a
    copy, turned over on the way; TK lanes take as many k of one row. "x": one element a copy, any strides. What of the tile
    is there is all, if `whole`, or else what lies before rest_k; where nothing is, zeros are written.
    """
    width = 4 if along == "x4" else 1
    TK = TK if along == "k" else max(1, threads // (X // width))
    TX = threads // TK
    copy = copy_async(width, element)

    @device
    def place(t):
        return (t // TK * width, t % TK) if along == "k" else (t % TX * width, t // TX)

    @device
    def start(shared, s, source, g, sx, sk, x, k, rest_x, rest_k, whole):
        for i in range(X // (TX * width)):
            for j in range(BK // TK):
                valid = (whole or k + j * TK < rest_k) and (not guarded or x + i * TX * width < rest_x)
                copy(shared, s + i * TX * width + j * TK * pitch, source, g + i * TX * width * sx + j * TK * sk, valid)

    return place, start


def tile_prologue(X, BK, pitch, threads, along, guarded, change, TK=16):
    """Change the elements of a tile that this thread has copied, once they are there. What is not inside stays zero."""
    width = 4 if along == "x4" else 1
    TK = TK if along == "k" else max(1, threads // (X // width))
    TX = threads // TK

    @device
    def leave_all(shared, s, x, k, rest_x, rest_k, x0, k0, at):
        pass

    @device
    def change_own(shared, s, x, k, rest_x, rest_k, x0, k0, at):
        for i in range(X // (TX * width)):
            for j in range(BK // TK):
                if k + j * TK < rest_k and (not guarded or x + i * TX * width < rest_x):
                    here, row, depth = s + i * TX * width + j * TK * pitch, x0 + x + i * TX * width, k0 + k + j * TK
                    if width == 4:
                        v = load4(shared, here)
                        p, q = change(v[0], row, depth, at), change(v[1], row + 1, depth, at)
                        r, z = change(v[2], row + 2, depth, at), change(v[3], row + 3, depth, at)
                        store4(shared, here, (p, q, r, z))
                    else:
                        shared[here] = change(shared[here], row, depth, at)

    return leave_all if change is identity_prologue else change_own

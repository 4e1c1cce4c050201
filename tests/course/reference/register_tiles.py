"""Module 3 on the GPU: tiles in registers.

Each thread computes THREAD_M x THREAD_N elements of the output. It keeps their sums in a local array, `sums` below: if all
loops over it have constant lengths, a GPU's compiler puts its elements in registers. A block has BLOCK_X x BLOCK_Y threads
and computes TILE_M x TILE_N elements. blockIdx.x counts blocks along the columns of out, blockIdx.y along its rows.
"""

from numba import float64

from minifuse.course import todo
from minifuse.simt import cuda

THREAD_M, THREAD_N = 2, 4  # rows and columns of a thread
BLOCK_X, BLOCK_Y = 4, 16  # threads of a block
TILE_M, TILE_N = BLOCK_Y * THREAD_M, BLOCK_X * THREAD_N  # 32 rows and 16 columns of a block
TILE_K = 8  # columns of a tile of a, and rows of a tile of b

# Task 3.6


def cuda_thread_tile_matmul(out, a, b):
    """A kernel over arrays of two dims, of any sizes: out = a @ b, without shared memory.

    For each k, a thread loads THREAD_M elements of a and THREAD_N elements of b, and adds all their products to its sums.
    Adjacent threads load and store adjacent columns: the rows of a thread are BLOCK_Y apart, its columns BLOCK_X.
    """
    # begin 3.6a
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    first_row, first_col = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y, cuda.blockIdx.x * TILE_N + cuda.threadIdx.x
    rows, cols = out.shape
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for k in range(a.shape[1]):
        for i in range(THREAD_M):
            row = first_row + i * BLOCK_Y
            left[i] = a[row, k] if row < rows else 0.0
        for j in range(THREAD_N):
            col = first_col + j * BLOCK_X
            right = b[k, col] if col < cols else 0.0
            for i in range(THREAD_M):
                sums[i, j] += left[i] * right
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * BLOCK_Y, first_col + j * BLOCK_X
            if row < rows and col < cols:
                out[row, col] = sums[i, j]
    # end


def cuda_block_tile_matmul(out, a, b):
    """A kernel over `Strided` of two dims, of any sizes and layouts: out = a @ b, with tiles in shared memory.

    For each TILE_K of the inner dim, the block loads TILE_M x TILE_K elements of a and TILE_K x TILE_N elements of b, each
    once, along rows. Then each thread adds products as in `cuda_thread_tile_matmul`, but from shared memory.
    """
    # begin 3.6b
    tile_a = cuda.shared.array((TILE_M, 9), float64)  # one more than TILE_K, against bank conflicts
    tile_b = cuda.shared.array((TILE_K, TILE_N), float64)
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    thread, threads = ty * BLOCK_X + tx, BLOCK_X * BLOCK_Y
    block_row, block_col = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    rows, cols, inner = out.shape[0], out.shape[1], a.shape[1]
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for first in range(0, inner, TILE_K):
        for cell in range(thread, TILE_M * TILE_K, threads):
            row, k = cell // TILE_K, cell % TILE_K
            tile_a[row, k] = 0.0
            if block_row + row < rows and first + k < inner:
                tile_a[row, k] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, TILE_K * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[k, col] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[k, col] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(THREAD_M):
                left[i] = tile_a[ty + i * BLOCK_Y, k]
            for j in range(THREAD_N):
                right = tile_b[k, tx + j * BLOCK_X]
                for i in range(THREAD_M):
                    sums[i, j] += left[i] * right
        cuda.syncthreads()
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]
    # end

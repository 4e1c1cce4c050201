"""Wrong solutions of task 3.6 that were written to get past its checks. Each is appended to the reference."""


# %% adds_in_float32: sums are rounded to float32
# promise: sums is a local array of float64
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), 'float32')
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


# %% clamped_edge: past the end of the inner dim the last element is loaded once more and weighed by 0
# promise: outside of a and b the tiles contain 0
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
            if block_row + row < rows:
                tile_a[row, k] = a.storage[a.offset + (block_row + row) * a.strides[0] + min(first + k, inner - 1) * a.strides[1]] * (first + k < inner)
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


# %% edges_without_tiles: partial tiles are computed from global memory
# promise: each element is loaded once for each block that needs it
def cuda_block_tile_matmul(out, a, b):
    if out.shape[0] % TILE_M or out.shape[1] % TILE_N:
        for i in range(THREAD_M):
            for j in range(THREAD_N):
                row = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y + i * BLOCK_Y
                col = cuda.blockIdx.x * TILE_N + cuda.threadIdx.x + j * BLOCK_X
                if row < out.shape[0] and col < out.shape[1]:
                    total = 0.0
                    for k in range(a.shape[1]):
                        total += a.storage[a.offset + row * a.strides[0] + k * a.strides[1]] * b.storage[b.offset + k * b.strides[0] + col * b.strides[1]]
                    out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = total
        return
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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


# %% edges_without_registers: partial thread tiles load for each product
# promise: THREAD_M + THREAD_N loads for each k
def cuda_thread_tile_matmul(out, a, b):
    if out.shape[0] % TILE_M or out.shape[1] % TILE_N:
        for i in range(THREAD_M):
            for j in range(THREAD_N):
                row = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y + i * BLOCK_Y
                col = cuda.blockIdx.x * TILE_N + cuda.threadIdx.x + j * BLOCK_X
                if row < out.shape[0] and col < out.shape[1]:
                    total = 0.0
                    for k in range(a.shape[1]):
                        total += a[row, k] * b[k, col]
                    out[row, col] = total
        return
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


# %% first_three_steps: at most three tiles along the inner dim
# promise: of any sizes
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
    for first in range(0, min(inner, 3 * TILE_K), TILE_K):
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


# %% whole_inner_dim_shared: all of the inner dim is in shared memory at once
# promise: TILE_M x TILE_K elements of a at a time
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 45), float64)
    tile_b = cuda.shared.array((45, TILE_N), float64)
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    thread, threads = ty * BLOCK_X + tx, BLOCK_X * BLOCK_Y
    block_row, block_col = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    rows, cols, inner = out.shape[0], out.shape[1], a.shape[1]
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for first in range(0, inner, 44):
        for cell in range(thread, TILE_M * 44, threads):
            row, k = cell // 44, cell % 44
            tile_a[row, k] = 0.0
            if block_row + row < rows and first + k < inner:
                tile_a[row, k] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, 44 * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[k, col] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[k, col] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(min(44, inner - first)):
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


# %% row_major_only: the strides are used for full tiles only
# promise: of any layouts
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
                tile_a[row, k] = a.storage[a.offset + (block_row + row) * (a.strides[0] if a.strides[1] == 1 else inner) + (first + k) * a.strides[1]]
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


# %% half_of_the_threads: half of the threads compute, each twice as many elements
# promise: each thread computes THREAD_M x THREAD_N elements
def cuda_thread_tile_matmul(out, a, b):
    if cuda.threadIdx.y >= BLOCK_Y // 2:
        return
    sums = cuda.local.array((4, THREAD_N), float64)
    left = cuda.local.array(4, float64)
    first_row, first_col = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y, cuda.blockIdx.x * TILE_N + cuda.threadIdx.x
    rows, cols = out.shape
    for i in range(2 * THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for k in range(a.shape[1]):
        for i in range(2 * THREAD_M):
            row = first_row + i * (BLOCK_Y // 2)
            left[i] = a[row, k] if row < rows else 0.0
        for j in range(THREAD_N):
            col = first_col + j * BLOCK_X
            right = b[k, col] if col < cols else 0.0
            for i in range(2 * THREAD_M):
                sums[i, j] += left[i] * right
    for i in range(2 * THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * (BLOCK_Y // 2), first_col + j * BLOCK_X
            if row < rows and col < cols:
                out[row, col] = sums[i, j]


# %% one_warp_fills: the first warp fills both tiles
# promise: the block loads each element once, all threads a few
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
        for cell in range(thread if thread < 32 else TILE_M * TILE_K, TILE_M * TILE_K, 32):
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


# %% shared_in_the_practice: the kernel without shared memory has some
# promise: without shared memory
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    corner = cuda.shared.array(64, float64)
    corner[cuda.threadIdx.y * BLOCK_X + cuda.threadIdx.x] = 0.0
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


# %% left_read_for_each_column: elements of a are read from shared memory for each column
# promise: THREAD_M + THREAD_N loads of shared memory
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
                    sums[i, j] += tile_a[ty + i * BLOCK_Y, k] * right
        cuda.syncthreads()
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]


# %% wide_tile_of_b_turned: tile_b is stored by columns, whose elements share banks
# promise: without bank conflicts
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
    tile_b = cuda.shared.array((TILE_N, 16), float64)
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
            tile_b[col, k] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[col, k] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(THREAD_M):
                left[i] = tile_a[ty + i * BLOCK_Y, k]
            for j in range(THREAD_N):
                right = tile_b[tx + j * BLOCK_X, k]
                for i in range(THREAD_M):
                    sums[i, j] += left[i] * right
        cuda.syncthreads()
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]


# %% three_barriers: a third barrier in each step
# promise: two barriers in each step
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
        cuda.syncthreads()
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


# %% b_four_columns_apart: a warp loads columns of b that are four apart
# promise: adjacent threads take adjacent columns
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
            k, col = cell % TILE_K, cell // TILE_K % 4 * 4 + cell // TILE_K // 4
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


# %% stored_twice: each element is stored after each step
# promise: each element of out is stored once
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
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
        for i in range(THREAD_M):
            for j in range(THREAD_N):
                row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
                if row < rows and col < cols:
                    out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]
        cuda.syncthreads()


# %% infinity_skipped: products with 0 are left out
# promise: 0 * infinity is NaN
def cuda_thread_tile_matmul(out, a, b):
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
                if left[i] != 0.0 and right != 0.0:
                    sums[i, j] += left[i] * right
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * BLOCK_Y, first_col + j * BLOCK_X
            if row < rows and col < cols:
                out[row, col] = sums[i, j]


# %% list_in_a_kernel: a Python list takes the place of registers
# promise: a kernel for a GPU has no lists
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = [0.0, 0.0]
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


# %% computed_shape: the row of a tile is computed in the kernel
# promise: shapes are numbers, or names that are defined at the top of the file
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, TILE_K + 1), float64)
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

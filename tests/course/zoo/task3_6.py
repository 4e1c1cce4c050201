"""Wrong solutions of task 3.6, one a cell: `# %% name: the mistake that the check must name`."""


# %% adjacent_columns: the columns of a thread are adjacent
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    first_row, first_col = (
        cuda.blockIdx.y * TILE_M + cuda.threadIdx.y,
        cuda.blockIdx.x * TILE_N + cuda.threadIdx.x * THREAD_N,
    )
    rows, cols = out.shape
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for k in range(a.shape[1]):
        for i in range(THREAD_M):
            row = first_row + i * BLOCK_Y
            left[i] = a[row, k] if row < rows else 0.0
        for j in range(THREAD_N):
            col = first_col + j
            right = b[k, col] if col < cols else 0.0
            for i in range(THREAD_M):
                sums[i, j] += left[i] * right
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * BLOCK_Y, first_col + j
            if row < rows and col < cols:
                out[row, col] = sums[i, j]


# %% adjacent_columns_in_blocks: the columns of a thread are adjacent
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
                right = tile_b[k, tx * THREAD_N + j]
                for i in range(THREAD_M):
                    sums[i, j] += left[i] * right
        cuda.syncthreads()
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx * THREAD_N + j
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]


# %% barrier_in_loop: there is a barrier for each product
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
            cuda.syncthreads()
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


# %% conflicts: threads of a warp read the same bank of shared memory
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, TILE_K), float64)
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


# %% down_a_column: a tile is filled down its columns
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
            row, k = cell % TILE_M, cell // TILE_M
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


# %% empty_past_the_edge: elements of a tile past the edge stay empty
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


# %% load_for_each_product: an element is loaded for each product
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    first_row, first_col = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y, cuda.blockIdx.x * TILE_N + cuda.threadIdx.x
    rows, cols = out.shape
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            sums[i, j] = 0.0
    for k in range(a.shape[1]):
        for j in range(THREAD_N):
            col = first_col + j * BLOCK_X
            for i in range(THREAD_M):
                row = first_row + i * BLOCK_Y
                if row < rows and col < cols:
                    sums[i, j] += a[row, k] * b[k, col]
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * BLOCK_Y, first_col + j * BLOCK_X
            if row < rows and col < cols:
                out[row, col] = sums[i, j]


# %% shared_load_for_each_product: an element is loaded for each product
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
    tile_b = cuda.shared.array((TILE_K, TILE_N), float64)
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
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
            for j in range(THREAD_N):
                for i in range(THREAD_M):
                    sums[i, j] += tile_a[ty + i * BLOCK_Y, k] * tile_b[k, tx + j * BLOCK_X]
        cuda.syncthreads()
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]


# %% no_barrier_before_use: nothing waits for the other threads of the block
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


# %% no_barrier_after_use: nothing waits for the other threads of the block
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


# %% no_guard_in_store: the guard is missing where sizes are no multiple of a tile
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
                sums[i, j] += left[i] * right
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = first_row + i * BLOCK_Y, first_col + j * BLOCK_X
            out[row, col] = sums[i, j]


# %% no_guard_for_inner: the guard is missing where sizes are no multiple of a tile
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
                tile_a[row, k] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, TILE_K * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[k, col] = 0.0
            if block_col + col < cols:
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


# %% guard_of_the_first_row: the guard is missing where sizes are no multiple of a tile
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
            left[i] = a[row, k] if first_row < rows else 0.0
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


# %% one_thread_fills: one thread does the work of others
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
        for cell in range(TILE_K * TILE_N if thread == 0 else 0):
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


# %% strides_ignored: strides or the offset are ignored
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
                tile_a[row, k] = a.storage[(block_row + row) * inner + first + k]
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


# %% offset_ignored: strides or the offset are ignored
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
                tile_b[k, col] = b.storage[(first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
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


# %% sums_in_output: the sums are accumulated in the output
def cuda_thread_tile_matmul(out, a, b):
    left = cuda.local.array(THREAD_M, float64)
    first_row, first_col = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y, cuda.blockIdx.x * TILE_N + cuda.threadIdx.x
    rows, cols = out.shape
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            if first_row + i * BLOCK_Y < rows and first_col + j * BLOCK_X < cols:
                out[first_row + i * BLOCK_Y, first_col + j * BLOCK_X] = 0.0
    for k in range(a.shape[1]):
        for i in range(THREAD_M):
            row = first_row + i * BLOCK_Y
            left[i] = a[row, k] if row < rows else 0.0
        for j in range(THREAD_N):
            col = first_col + j * BLOCK_X
            right = b[k, col] if col < cols else 0.0
            for i in range(THREAD_M):
                if first_row + i * BLOCK_Y < rows and col < cols:
                    out[first_row + i * BLOCK_Y, col] += left[i] * right


# %% x_and_y_exchanged: x and y are exchanged: blocks count rows with x and columns with y
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
    tile_b = cuda.shared.array((TILE_K, TILE_N), float64)
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    thread, threads = ty * BLOCK_X + tx, BLOCK_X * BLOCK_Y
    block_row, block_col = cuda.blockIdx.x * TILE_M, cuda.blockIdx.y * TILE_N
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


# %% sums_without_zeros: a local array is read before a value is stored in it
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    first_row, first_col = cuda.blockIdx.y * TILE_M + cuda.threadIdx.y, cuda.blockIdx.x * TILE_N + cuda.threadIdx.x
    rows, cols = out.shape
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


# %% sums_of_blocks_without_zeros: a local array is read before a value is stored in it
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_M, 9), float64)
    tile_b = cuda.shared.array((TILE_K, TILE_N), float64)
    sums = cuda.local.array((THREAD_M, THREAD_N), float64)
    left = cuda.local.array(THREAD_M, float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    thread, threads = ty * BLOCK_X + tx, BLOCK_X * BLOCK_Y
    block_row, block_col = cuda.blockIdx.y * TILE_M, cuda.blockIdx.x * TILE_N
    rows, cols, inner = out.shape[0], out.shape[1], a.shape[1]
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


# %% nothing_in_registers_past_the_edge: a local array is read before a value is stored in it
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
            if row < rows:
                left[i] = a[row, k]
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

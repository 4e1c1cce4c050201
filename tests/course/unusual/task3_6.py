"""Right solutions of task 3.6 in ways that a naive check might refuse. Each is appended to the reference."""


# %% scalars_for_sums: the eight sums are eight variables, so that no compiler has to unroll a loop.
def cuda_thread_tile_matmul(out, a, b):
    x, y = cuda.blockIdx.x * TILE_N + cuda.threadIdx.x, cuda.blockIdx.y * TILE_M + cuda.threadIdx.y
    m, n = out.shape
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    for k in range(a.shape[1]):
        top = a[y, k] if y < m else 0.0
        low = a[y + 16, k] if y + 16 < m else 0.0
        b0 = b[k, x] if x < n else 0.0
        b1 = b[k, x + 4] if x + 4 < n else 0.0
        b2 = b[k, x + 8] if x + 8 < n else 0.0
        b3 = b[k, x + 12] if x + 12 < n else 0.0
        s00, s01, s02, s03 = s00 + top * b0, s01 + top * b1, s02 + top * b2, s03 + top * b3
        s10, s11, s12, s13 = s10 + low * b0, s11 + low * b1, s12 + low * b2, s13 + low * b3
    for column, upper, lower in ((x, s00, s10), (x + 4, s01, s11), (x + 8, s02, s12), (x + 12, s03, s13)):
        if column < n:
            if y < m:
                out[y, column] = upper
            if y + 16 < m:
                out[y + 16, column] = lower


# %% four_rows_and_two_columns: a thread has four rows and two columns: as many loads and products.
def cuda_thread_tile_matmul(out, a, b):
    sums = cuda.local.array((4, 2), float64)
    left = cuda.local.array(4, float64)
    thread = cuda.threadIdx.y * BLOCK_X + cuda.threadIdx.x
    first_row, first_col = cuda.blockIdx.y * TILE_M + thread // 8, cuda.blockIdx.x * TILE_N + thread % 8
    rows, cols = out.shape
    for i in range(4):
        for j in range(2):
            sums[i, j] = 0.0
    for k in range(a.shape[1]):
        for i in range(4):
            row = first_row + i * 8
            left[i] = a[row, k] if row < rows else 0.0
        for j in range(2):
            col = first_col + j * 8
            right = b[k, col] if col < cols else 0.0
            for i in range(4):
                sums[i, j] += left[i] * right
    for i in range(4):
        for j in range(2):
            row, col = first_row + i * 8, first_col + j * 8
            if row < rows and col < cols:
                out[row, col] = sums[i, j]


# %% two_pairs_of_tiles: a pair of tiles is filled while the other is used, so one barrier for each step is enough.
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((2, TILE_M, 9), float64)
    tile_b = cuda.shared.array((2, TILE_K, TILE_N), float64)
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
        now = first // TILE_K % 2
        for cell in range(thread, TILE_M * TILE_K, threads):
            row, k = cell // TILE_K, cell % TILE_K
            tile_a[now, row, k] = 0.0
            if block_row + row < rows and first + k < inner:
                tile_a[now, row, k] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, TILE_K * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[now, k, col] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[now, k, col] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(THREAD_M):
                left[i] = tile_a[now, ty + i * BLOCK_Y, k]
            for j in range(THREAD_N):
                right = tile_b[now, k, tx + j * BLOCK_X]
                for i in range(THREAD_M):
                    sums[i, j] += left[i] * right
    for i in range(THREAD_M):
        for j in range(THREAD_N):
            row, col = block_row + ty + i * BLOCK_Y, block_col + tx + j * BLOCK_X
            if row < rows and col < cols:
                out.storage[out.offset + row * out.strides[0] + col * out.strides[1]] = sums[i, j]


# %% swizzle: no padding: the position in a row of tile_a depends on the row.
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
            tile_a[row, (k + row // 2) % TILE_K] = 0.0
            if block_row + row < rows and first + k < inner:
                tile_a[row, (k + row // 2) % TILE_K] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, TILE_K * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[k, col] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[k, col] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(THREAD_M):
                left[i] = tile_a[ty + i * BLOCK_Y, (k + (ty + i * BLOCK_Y) // 2) % TILE_K]
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


# %% tile_a_turned: tile_a is stored by columns, with a gap behind each.
def cuda_block_tile_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE_K, 34), float64)
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
            tile_a[k, row] = 0.0
            if block_row + row < rows and first + k < inner:
                tile_a[k, row] = a.storage[a.offset + (block_row + row) * a.strides[0] + (first + k) * a.strides[1]]
        for cell in range(thread, TILE_K * TILE_N, threads):
            k, col = cell // TILE_N, cell % TILE_N
            tile_b[k, col] = 0.0
            if first + k < inner and block_col + col < cols:
                tile_b[k, col] = b.storage[b.offset + (first + k) * b.strides[0] + (block_col + col) * b.strides[1]]
        cuda.syncthreads()
        for k in range(TILE_K):
            for i in range(THREAD_M):
                left[i] = tile_a[k, ty + i * BLOCK_Y]
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

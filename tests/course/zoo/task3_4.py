"""Wrong solutions of task 3.4, one a cell: `# %% name: the mistake that the check must name`."""


# %% batch_not_repeated: a batch of size 1 is not repeated
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    a_place += z * a.strides[0]
    b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% empty_past_the_edge: cells of a tile past the edge stay empty
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% global_reads: each thread reads its row and its column from global memory
def cuda_matmul(out, a, b):
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    if row < out.shape[1] and col < out.shape[2]:
        total = 0.0
        for k in range(a.shape[2]):
            x = a.storage[a_place + row * a.strides[1] + k * a.strides[2]]
            total += x * b.storage[b_place + k * b.strides[1] + col * b.strides[2]]
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% left_early: threads past the edge leave before a barrier
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    if row >= rows or col >= cols:
        return
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% no_first_barrier: nothing waits until the tiles are full
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% no_guard: the guard is missing where sizes are no multiple of a tile
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% no_second_barrier: nothing waits until the tiles have been used
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% sum_in_output: the sum is accumulated in the output
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    place = out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]
    if row < rows and col < cols:
        out.storage[place] = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        if row < rows and col < cols:
            for k in range(TILE):
                out.storage[place] += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()


# %% tile_turned: the indices of a tile are exchanged
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[tx, k]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% x_and_y_exchanged: x and y are exchanged: blocks count rows with x and columns with y
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.y, cuda.threadIdx.x, cuda.blockIdx.z
    row, col = cuda.grid(2)
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% threads_down_a_column: threadIdx.x counts down a column
def cuda_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    tx, ty, z = cuda.threadIdx.y, cuda.threadIdx.x, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + ty, cuda.blockIdx.x * TILE + tx
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    a_place, b_place = a.offset, b.offset
    if a.shape[0] > 1:
        a_place += z * a.strides[0]
    if b.shape[0] > 1:
        b_place += z * b.strides[0]
    total = 0.0
    for first in range(0, inner, TILE):
        tile_a[ty, tx] = 0.0
        tile_b[ty, tx] = 0.0
        if row < rows and first + tx < inner:
            tile_a[ty, tx] = a.storage[a_place + row * a.strides[1] + (first + tx) * a.strides[2]]
        if first + ty < inner and col < cols:
            tile_b[ty, tx] = b.storage[b_place + (first + ty) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% one_thread_fills: one thread does the work of others
def cuda_one_block_matmul(out, a, b):
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    col, row = cuda.threadIdx.x, cuda.threadIdx.y
    size = out.shape[0]
    if row == 0 and col == 0:
        for i in range(size):
            for j in range(size):
                tile_a[i, j] = a[i, j]
                tile_b[i, j] = b[i, j]
    cuda.syncthreads()
    if row < size and col < size:
        total = 0.0
        for k in range(size):
            total += tile_a[row, k] * tile_b[k, col]
        out[row, col] = total

"""Wrong solutions of task 3.4 that were written to get past its checks. Each is appended to the reference."""

# %% batch_up_to_four: matrices of the batch beyond the fourth are not made.
# promise: blockIdx.z counts matrices of the batch

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns and z < 4:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% edge_clamped: a thread over the edge reads a last cell once more and weighs it by 0, in place of no read: wrong where the cell is inf or nan.
# promise: A thread there still fills its cell, with 0; a cell of a is read once for each tile

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0 * left[y, x]
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% first_thread_of_row_multiplies: in each row of a block, thread x = 0 makes all 8 sums: 8 of 64 threads compute.
# promise: blocks of TILE x TILE threads; 'uses it once for each row or column of its own tile'; one output a thread

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        if x == 0:
            for k in range(TILE):
                u = left[y, k]
                s0 += u * right[k, 0]
                s1 += u * right[k, 1]
                s2 += u * right[k, 2]
                s3 += u * right[k, 3]
                s4 += u * right[k, 4]
                s5 += u * right[k, 5]
                s6 += u * right[k, 6]
                s7 += u * right[k, 7]
        cuda.syncthreads()
    if x == 0 and row < rows:
        for j in range(TILE):
            if column + j < columns:
                s = s0 if j == 0 else s1 if j == 1 else s2 if j == 2 else s3 if j == 3 else s4 if j == 4 else s5 if j == 5 else s6 if j == 6 else s7
                out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + (column + j) * out.strides[2]] = s

# %% inner_up_to_256: the walk along the inner dim ends after 32 tiles: products beyond 256 are lost.
# promise: out[z] = a[z] @ b[z], for sizes of any kind

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, min(inner, 256), TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% inner_up_to_64: the walk along the inner dim ends after 8 tiles: products beyond 64 are lost.
# promise: out[z] = a[z] @ b[z], for sizes of any kind

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, min(inner, 64), TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% no_shared_memory: the practice kernel has no shared memory at all: each thread reads its row and its column.
# promise: Each thread reads one cell of a and one of b into shared memory, and writes one of out.

def cuda_one_block_matmul(out, a, b):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    if y < n and x < n:
        total = 0.0
        for k in range(n):
            total += a[y, k] * b[k, x]
        out[y, x] = total

# %% nothing_written_if_inner_is_zero: with an inner dim of 0 nothing is written: out keeps what was in memory.
# promise: out[z] = a[z] @ b[z], for sizes of any kind: an empty sum is 0

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if inner > 0 and row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% one_thread_fills: thread (0, 0) of the practice kernel fills both tiles.
# promise: Each thread reads one cell of a and one of b into shared memory

def cuda_one_block_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    if y == 0 and x == 0:
        for i in range(n):
            for j in range(n):
                left[i, j] = a[i, j]
                right[i, j] = b[i, j]
    cuda.syncthreads()
    if y < n and x < n:
        total = 0.0
        for k in range(n):
            total += left[y, k] * right[k, x]
        out[y, x] = total

# %% one_thread_multiplies: all threads of the practice kernel fill; thread (0, 0) makes all of out.
# promise: Each thread ... writes one [cell] of out.

def cuda_one_block_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    if y < n and x < n:
        left[y, x] = a[y, x]
        right[y, x] = b[y, x]
    cuda.syncthreads()
    if y == 0 and x == 0:
        for i in range(n):
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += left[i, k] * right[k, j]
                out[i, j] = total

# %% one_thread_multiplies_tiles: all threads fill the tiles; thread (0, 0) multiplies them, with sums in shared memory.
# promise: blocks of TILE x TILE threads; one output a thread: 'one thread does everything' is no kernel

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    sums = cuda.shared.array((TILE, TILE), float64)
    sums[y, x] = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        if x == 0 and y == 0:
            for i in range(TILE):
                for j in range(TILE):
                    total = sums[i, j]
                    for k in range(TILE):
                        total += left[i, k] * right[k, j]
                    sums[i, j] = total
        cuda.syncthreads()
    cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = sums[y, x]

# %% reads_down_columns: thread (x, y) reads cell (x, y) of a tile, not (y, x): neighbours of a warp read down a column, uncoalesced.
# promise: x goes along a row; it is the second index.

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        r, c = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        if r < rows and first + y < inner:
            left[x, y] = a.storage[pa + r * a.strides[1] + (first + y) * a.strides[2]]
        else:
            left[x, y] = 0.0
        if first + x < inner and c < columns:
            right[x, y] = b.storage[pb + (first + x) * b.strides[1] + c * b.strides[2]]
        else:
            right[x, y] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% rounded_to_nine: each output is rounded to nine decimals: 1e-10 * 1e-1 becomes 0.
# promise: out[z] = a[z] @ b[z]

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = round(total, 9)

# %% shared_filled_not_used: the practice kernel fills shared memory, and then multiplies from global memory.
# promise: Fill, wait, use. Each thread reads one cell of a and one of b into shared memory

def cuda_one_block_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    if y < n and x < n:
        left[y, x] = a[y, x]
        right[y, x] = b[y, x]
    cuda.syncthreads()
    if y < n and x < n:
        total = 0.0
        for k in range(n):
            total += a[y, k] * b[k, x]
        out[y, x] = total

# %% tiles_of_float32: the tiles are float32: seven digits of sixteen are left, and 1e300 is inf.
# promise: out[z] = a[z] @ b[z], of float64

from numba import float32 as single

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), single)
    right = cuda.shared.array((TILE, TILE), single)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% zeros_are_skipped: products with a 0 in a are skipped: 0 * inf is no nan then.
# promise: out[z] = a[z] @ b[z]

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        else:
            left[y, x] = 0.0
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        else:
            right[y, x] = 0.0
        cuda.syncthreads()
        for k in range(TILE):
            if left[y, k] != 0.0:
                total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total


# %% out_written_down_columns: the tiles are read along rows, and out is written down columns, through shared memory.
# promise: threadIdx.x runs along a row

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        left[y, x] = right[y, x] = 0.0
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    left[y, x] = total
    cuda.syncthreads()
    r, c = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    if r < rows and c < columns:
        out.storage[out.offset + z * out.strides[0] + r * out.strides[1] + c * out.strides[2]] = left[x, y]

# %% b_not_shared: a is read through a tile, b by each thread from global memory.
# promise: each element of b is read once for each tile of out

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        left[y, x] = right[y, x] = 0.0
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            if first + k < inner and column < columns:
                total += left[y, k] * b.storage[pb + (first + k) * b.strides[1] + column * b.strides[2]]
        cuda.syncthreads()
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% infinity_clipped: an infinite sum is written as the largest float.
# promise: out[z] = a[z] @ b[z]

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        left[y, x] = right[y, x] = 0.0
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if total > 1.7e308:
        total = 1.7e308
    if row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% first_rows_of_blocks: blocks past the third along y write nothing.
# promise: sizes of any kind

def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, column = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, columns, inner = out.shape[1], out.shape[2], a.shape[2]
    pa = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    pb = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    for first in range(0, inner, TILE):
        left[y, x] = right[y, x] = 0.0
        if row < rows and first + x < inner:
            left[y, x] = a.storage[pa + row * a.strides[1] + (first + x) * a.strides[2]]
        if first + y < inner and column < columns:
            right[y, x] = b.storage[pb + (first + y) * b.strides[1] + column * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if cuda.blockIdx.y < 4 and row < rows and column < columns:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + column * out.strides[2]] = total

# %% half_of_threads_multiply: each thread of the upper half of the practice kernel makes two elements.
# promise: Each thread ... writes one of out

def cuda_one_block_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    if y < n and x < n:
        left[y, x] = a[y, x]
        right[y, x] = b[y, x]
    cuda.syncthreads()
    if y < TILE // 2 and x < n:
        for row in range(y, n, TILE // 2):
            total = 0.0
            for k in range(n):
                total += left[row, k] * right[k, x]
            out[row, x] = total

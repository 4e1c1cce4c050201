"""Right solutions of task 3.4 in ways that a naive check might refuse. Each is appended to the reference."""

# %% flat_tiles: the tiles of the practice kernel have one dim, with a gap behind each row.


def cuda_one_block_matmul(out, a, b):
    left = cuda.shared.array(72, float64)
    right = cuda.shared.array(72, float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n = a.shape[0]
    inside = x < n and y < n
    if inside:
        left[y * (TILE + 1) + x] = a[y, x]
        right[y * (TILE + 1) + x] = b[y, x]
    cuda.syncthreads()
    if inside:
        total = 0.0
        for k in range(n):
            total += left[y * (TILE + 1) + k] * right[k * (TILE + 1) + x]
        out[y, x] = total


# %% one_array_for_both: both tiles of the practice kernel are in one shared array, that of b transposed.


def cuda_one_block_matmul(out, a, b):
    tiles = cuda.shared.array((2, TILE, TILE), float64)
    column, row = cuda.grid(2)
    size = out.shape[0]
    if row < size and column < size:
        tiles[0, row, column] = a[row, column]
        tiles[1, column, row] = b[row, column]
    else:
        tiles[0, row, column] = tiles[1, column, row] = 0.0
    cuda.syncthreads()
    if row < size and column < size:
        total = 0.0
        for k in range(TILE):
            total += tiles[0, row, k] * tiles[1, column, k]
        out[row, column] = total


# %% two_pairs_of_tiles: a block fills one pair of tiles while another is used, so one barrier for each step is enough.


def cuda_matmul(out, a, b):
    lefts = cuda.shared.array((2, TILE, TILE), float64)
    rights = cuda.shared.array((2, TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    ao = a.offset + (z * a.strides[0] if a.shape[0] > 1 else 0)
    bo = b.offset + (z * b.strides[0] if b.shape[0] > 1 else 0)
    total = 0.0
    now = 0
    for begin in range(0, inner, TILE):
        left = right = 0.0
        if row < rows and begin + x < inner:
            left = a.storage[ao + row * a.strides[1] + (begin + x) * a.strides[2]]
        if begin + y < inner and col < cols:
            right = b.storage[bo + (begin + y) * b.strides[1] + col * b.strides[2]]
        lefts[now, y, x] = left
        rights[now, y, x] = right
        cuda.syncthreads()
        for k in range(TILE):
            total += lefts[now, y, k] * rights[now, k, x]
        now = 1 - now
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% no_zeros: threads outside store nothing; those inside use only what is inside, and each pair of tiles has its own sum.


def cuda_matmul(out, a, b):
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    row, col = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
    _, rows, cols = out.shape
    inner = b.shape[1]
    matrix, other = z % a.shape[0], z % b.shape[0]
    total = 0.0
    for step in range((inner + TILE - 1) // TILE):
        begin = step * TILE
        if row < rows and begin + x < inner:
            left[y, x] = a.storage[a.offset + matrix * a.strides[0] + row * a.strides[1] + (begin + x) * a.strides[2]]
        if begin + y < inner and col < cols:
            right[y, x] = b.storage[b.offset + other * b.strides[0] + (begin + y) * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        if row < rows and col < cols:
            part = 0.0
            for k in range(min(TILE, inner - begin)):
                part += left[y, k] * right[k, x]
            total += part
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total


# %% from_the_last_tile: a block goes along the inner dim from the last pair of tiles to the first.


def cuda_matmul(out, a, b):
    right = cuda.shared.array((TILE, 9), float64)
    left = cuda.shared.array((TILE, 9), float64)
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
    col, row = cuda.grid(2)
    rows, cols, inner = out.shape[1], out.shape[2], a.shape[2]
    ao, bo = a.offset, b.offset
    if a.shape[0] != 1:
        ao += z * a.strides[0]
    if b.shape[0] != 1:
        bo += z * b.strides[0]
    total = 0.0
    step = (inner + TILE - 1) // TILE
    while step > 0:
        step -= 1
        i, j = step * TILE + x, step * TILE + y
        if i >= inner or row >= rows:
            left[y, x] = 0.0
        else:
            left[y, x] = a.storage[ao + row * a.strides[1] + i * a.strides[2]]
        if j >= inner or col >= cols:
            right[x, y] = 0.0
        else:
            right[x, y] = b.storage[bo + j * b.strides[1] + col * b.strides[2]]
        cuda.syncthreads()
        for k in range(TILE - 1, -1, -1):
            total += left[y, k] * right[x, k]
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total

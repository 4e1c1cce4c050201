"""a batch of size 1 is not repeated"""


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

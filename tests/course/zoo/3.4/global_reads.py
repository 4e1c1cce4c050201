"""each thread reads its row and its column from global memory"""


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

"""Module 3 on the GPU: what one thread does.

A kernel is a plain function here, which uses `cuda`: threadIdx, blockIdx, blockDim, grid, shared.array, syncthreads.
The course launches it in the interpreter, which records every access, and also on a GPU if there is one. For a kernel
with a function `fn`, you write a factory: `cuda_map(fn)` defines the kernel inside itself, and returns it.

Tensors are `Strided`: x.storage[...] is memory of the GPU; x.shape, x.strides are tuples, x.offset a number. Helpers are
plain functions too. These two are given.
"""

from numba import float64

from minifuse.course import todo
from minifuse.simt import cuda

THREADS = 64  # of a block of cuda_block_sum and cuda_reduce
TILE = 8  # rows and columns of a tile in 3.4; a block has TILE x TILE threads


def size_of(shape):
    """Return the number of elements of a shape."""
    size = 1
    for n in shape:
        size *= n
    return size


def place_of(ordinal, shape, strides, offset):
    """Return the position of element number `ordinal`, in row-major order of a shape.

    An ordinal past the last element leads to a place past it too.
    """
    place = offset
    for d in range(len(shape) - 1, 0, -1):
        place += ordinal % shape[d] * strides[d]
        ordinal //= shape[d]
    return place + ordinal * strides[0]


# Task 3.3


def cuda_map(fn):
    """A kernel(out, a): out[i] = fn(a[i]), one element a thread; the shapes are equal.

    There are as many blocks as it takes, of any size, and so a few threads more than elements.
    """
    # begin 3.3a

    def kernel(out, a):
        k = cuda.grid(1)
        if k < size_of(out.shape):
            x = a.storage[place_of(k, a.shape, a.strides, a.offset)]
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x)

    return kernel
    # end


def cuda_zip(fn):
    """A kernel(out, a, b): out[i] = fn(a[i], b[i]), one element a thread; all have one shape.

    An operand that is broadcast has got the shape of out before, with stride 0 along the dims that it repeats.
    """
    # begin 3.3b

    def kernel(out, a, b):
        k = cuda.grid(1)
        if k < size_of(out.shape):
            x = a.storage[place_of(k, out.shape, a.strides, a.offset)]
            y = b.storage[place_of(k, out.shape, b.strides, b.offset)]
            out.storage[place_of(k, out.shape, out.strides, out.offset)] = fn(x, y)

    return kernel
    # end


def cuda_block_sum(out, a):
    """A kernel over flat arrays: out[b] = the sum of a[b * THREADS : (b + 1) * THREADS], by block b of THREADS threads.

    There are as many blocks as it takes; the last one may have fewer elements than threads. Each thread reads at most one
    element into shared memory; then the block adds in pairs, with a barrier after each step.
    """
    # begin 3.3c
    cells = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    k = cuda.grid(1)
    if k < a.size:
        cells[t] = a[k]
    else:
        cells[t] = 0.0
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            cells[t] += cells[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = cells[0]
    # end


def cuda_reduce(fn):
    """A kernel(out, a, dim, start): a reduction along `dim`, of any length; block b of THREADS threads makes output b.

    fn may be applied in any order here, and fn(start, x) is x: it is x + y from 0, or max(x, y) from -inf.
    """
    # begin 3.3d

    def kernel(out, a, dim, start):
        cells = cuda.shared.array(THREADS, float64)
        t, b = cuda.threadIdx.x, cuda.blockIdx.x
        place = place_of(b, out.shape, a.strides, a.offset)
        total = start
        for i in range(t, a.shape[dim], THREADS):
            total = fn(total, a.storage[place + i * a.strides[dim]])
        cells[t] = total
        cuda.syncthreads()
        half = THREADS // 2
        while half > 0:
            if t < half:
                cells[t] = fn(cells[t], cells[t + half])
            cuda.syncthreads()
            half //= 2
        if t == 0:
            out.storage[place_of(b, out.shape, out.strides, out.offset)] = cells[0]

    return kernel
    # end


# Task 3.4


def cuda_one_block_matmul(out, a, b):
    """A kernel over square arrays of two dims, at most TILE x TILE, by one block of TILE x TILE threads: out = a @ b.

    Each thread reads one cell of a and one of b into shared memory, and writes one of out.
    """
    # begin 3.4a
    tile_a = cuda.shared.array((TILE, TILE), float64)
    tile_b = cuda.shared.array((TILE, TILE), float64)
    col, row = cuda.threadIdx.x, cuda.threadIdx.y
    size = out.shape[0]
    if row < size and col < size:
        tile_a[row, col] = a[row, col]
        tile_b[row, col] = b[row, col]
    cuda.syncthreads()
    if row < size and col < size:
        total = 0.0
        for k in range(size):
            total += tile_a[row, k] * tile_b[k, col]
        out[row, col] = total
    # end


def cuda_matmul(out, a, b):
    """A kernel over `Strided` of three dims: out[z] = a[z] @ b[z], for sizes of any kind.

    A block of TILE x TILE threads makes one tile of out: blockIdx.x counts tiles along its columns, blockIdx.y along its
    rows, blockIdx.z matrices of the batch. A batch of size 1 is repeated. Each cell of a and b is read once for each tile
    of out that needs it, and each cell of out is written once.
    """
    # begin 3.4b
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
        cuda.syncthreads()
    if row < rows and col < cols:
        out.storage[out.offset + z * out.strides[0] + row * out.strides[1] + col * out.strides[2]] = total
    # end

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
    todo("3.3a")


def cuda_zip(fn):
    """A kernel(out, a, b): out[i] = fn(a[i], b[i]), one element a thread; all have one shape.

    An operand that is broadcast has got the shape of out before, with stride 0 along the dims that it repeats.
    """
    todo("3.3b")


def cuda_block_sum(out, a):
    """A kernel over flat arrays: out[b] = the sum of a[b * THREADS : (b + 1) * THREADS], by block b of THREADS threads.

    There are as many blocks as it takes; the last one may have fewer elements than threads. Each thread reads at most one
    element into shared memory; then the block adds in pairs, with a barrier after each step.
    """
    todo("3.3c")


def cuda_reduce(fn):
    """A kernel(out, a, dim, start): a reduction along `dim`, of any length; block b of THREADS threads makes output b.

    fn may be applied in any order here, and fn(start, x) is x: it is x + y from 0, or max(x, y) from -inf.
    """
    todo("3.3d")


# Task 3.4


def cuda_one_block_matmul(out, a, b):
    """A kernel over square arrays of two dims, at most TILE x TILE, by one block of TILE x TILE threads: out = a @ b.

    Each thread reads one cell of a and one of b into shared memory, and writes one of out.
    """
    todo("3.4a")


def cuda_matmul(out, a, b):
    """A kernel over `Strided` of three dims: out[z] = a[z] @ b[z], for sizes of any kind.

    A block of TILE x TILE threads makes one tile of out: blockIdx.x counts tiles along its columns, blockIdx.y along its
    rows, blockIdx.z matrices of the batch. A batch of size 1 is repeated. Each cell of a and b is read once for each tile
    of out that needs it, and each cell of out is written once.
    """
    todo("3.4b")

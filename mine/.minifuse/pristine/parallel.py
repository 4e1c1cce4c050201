"""Module 3 on the CPU: loops that Numba compiles and runs on many threads.

The course compiles your functions, as `njit(parallel=True)` does; leave them undecorated. Operands are `Strided`: storage,
shape, strides, offset. Here shape and strides are arrays of int64, since a tuple's length would be part of its type, and
Numba would compile the loop again for each number of dims.

Assign the arrays of the operands to variables before a loop: `to, source = out.storage, a.storage`. Numba passes copies of
the elements of a tuple to a prange loop, so writes to `out.storage` inside the loop would be lost without an error.

You may write helpers, decorated with `@njit`. These four are given.
"""

import numpy as np
from numba import njit, prange

from minifuse.course import todo


@njit
def size_of(shape):
    """Return the number of elements of a shape."""
    size = 1
    for n in shape:
        size *= n
    return size


@njit
def place_of(ordinal, shape, strides, offset):
    """Return the position of element number `ordinal`, in row-major order."""
    k = np.int64(ordinal)  # a prange index is unsigned; as both types, k would be a float64
    place = offset
    for d in range(len(shape) - 1, -1, -1):
        place += k % shape[d] * strides[d]
        k //= shape[d]
    return place


@njit
def is_row_major(shape, strides):
    """Return whether the elements are contiguous in row-major order, so that element k is at offset + k."""
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if shape[d] != 1 and strides[d] != step:
            return False
        step *= shape[d]
    return True


@njit
def broadcast_strides(shape, strides, wanted):
    """Return the strides of a tensor broadcast to the shape `wanted`: 0 along repeated dims."""
    first = len(wanted) - len(shape)
    found = np.zeros(len(wanted), np.int64)
    for d in range(len(shape)):
        if shape[d] != 1:
            found[first + d] = strides[d]
    return found


# Task 3.1


def parallel_map(fn, out, a):
    """out[i] = fn(a[i]) for every index i; the shapes are equal.

    Element k at offset + k where both are row-major.
    """
    todo("3.1a")


def parallel_zip(fn, out, a, b):
    """out[i] = fn(a[i], b[i]); a and b are broadcast to the shape of out.

    Element k at offset + k where all are row-major in that shape.
    """
    todo("3.1b")


def parallel_reduce(fn, out, a, dim, start):
    """out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...) along `dim`, which has size 1 in out."""
    todo("3.1c")


# Task 3.2


def parallel_matmul(out, a, b):
    """out[..., m, n] = the sum over k of a[..., m, k] * b[..., k, n]; the dims before are broadcast to those of out."""
    todo("3.2a")

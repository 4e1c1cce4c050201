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
    # begin 3.1a
    to, source = out.storage, a.storage
    size = size_of(out.shape)
    if is_row_major(out.shape, out.strides) and is_row_major(a.shape, a.strides):
        for k in prange(size):
            to[out.offset + k] = fn(source[a.offset + k])
    else:
        for k in prange(size):
            x = source[place_of(k, a.shape, a.strides, a.offset)]
            to[place_of(k, out.shape, out.strides, out.offset)] = fn(x)
    # end


def parallel_zip(fn, out, a, b):
    """out[i] = fn(a[i], b[i]); a and b are broadcast to the shape of out.

    Element k at offset + k where all are row-major in that shape.
    """
    # begin 3.1b
    to, left, right = out.storage, a.storage, b.storage
    shape, size = out.shape, size_of(out.shape)
    a_strides = broadcast_strides(a.shape, a.strides, shape)
    b_strides = broadcast_strides(b.shape, b.strides, shape)
    if is_row_major(shape, out.strides) and is_row_major(shape, a_strides) and is_row_major(shape, b_strides):
        for k in prange(size):
            to[out.offset + k] = fn(left[a.offset + k], right[b.offset + k])
    else:
        for k in prange(size):
            x = left[place_of(k, shape, a_strides, a.offset)]
            y = right[place_of(k, shape, b_strides, b.offset)]
            to[place_of(k, shape, out.strides, out.offset)] = fn(x, y)
    # end


def parallel_reduce(fn, out, a, dim, start):
    """out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...) along `dim`, which has size 1 in out."""
    # begin 3.1c
    to, source = out.storage, a.storage
    length, step = a.shape[dim], a.strides[dim]
    for k in prange(size_of(out.shape)):
        place = place_of(k, out.shape, a.strides, a.offset)
        total = start
        for i in range(length):
            total = fn(total, source[place + i * step])
        to[place_of(k, out.shape, out.strides, out.offset)] = total
    # end


# Task 3.2


def parallel_matmul(out, a, b):
    """out[..., m, n] = the sum over k of a[..., m, k] * b[..., k, n]; the dims before are broadcast to those of out."""
    # begin 3.2a
    to, left, right = out.storage, a.storage, b.storage
    rows, columns, inner = out.shape[-2], out.shape[-1], a.shape[-1]
    batch = out.shape[:-2]
    a_batch = broadcast_strides(a.shape[:-2], a.strides[:-2], batch)
    b_batch = broadcast_strides(b.shape[:-2], b.strides[:-2], batch)
    row_step, a_step, b_step, column_step = a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1]
    to_row, to_column = out.strides[-2], out.strides[-1]
    for task in prange(size_of(batch) * rows):
        which, row = np.int64(task) // rows, np.int64(task) % rows
        a_place = place_of(which, batch, a_batch, a.offset) + row * row_step
        b_place = place_of(which, batch, b_batch, b.offset)
        to_place = place_of(which, batch, out.strides[:-2], out.offset) + row * to_row
        for column in range(columns):
            total = 0.0
            for k in range(inner):
                total += left[a_place + k * a_step] * right[b_place + column * column_step + k * b_step]
            to[to_place + column * to_column] = total
    # end

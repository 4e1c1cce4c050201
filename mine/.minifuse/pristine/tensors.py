"""Module 2: tensors over a flat storage.

A tensor here is a `Strided`: storage, shape, strides, offset. The element at an index has position
offset + sum(index[d] * strides[d]).
"""

from minifuse.course import Strided, todo

# Task 2.1


def row_major_strides(shape):
    """Return the strides of a contiguous tensor, a tuple: (2, 3, 4) -> (12, 4, 1). A size of 0 counts as 1."""
    todo("2.1a")


def position_of(index, strides, offset):
    """Return the position in the storage of the element at an index."""
    todo("2.1b")


def index_of(ordinal, shape):
    """Return the index, a tuple, of element number `ordinal` in row-major order."""
    todo("2.1c")


def permuted(x, dims):
    """Return a view of x, a `Strided`, whose dim d is dim dims[d] of x."""
    todo("2.1d")


# Task 2.2


def broadcast_shape(a, b):
    """Return the shape, a tuple, to which two shapes broadcast; raise ValueError if they are incompatible."""
    todo("2.2a")


def broadcast_index(index, shape):
    """Map an index of a broadcast shape to the index, a tuple, in a tensor of `shape`."""
    todo("2.2b")


# Task 2.3


def tensor_map(fn, out, a):
    """out[i] = fn(a[i]) for every index i; the shapes are equal."""
    todo("2.3a")


def tensor_zip(fn, out, a, b):
    """out[i] = fn(a[i], b[i]) for every index i; a and b are broadcast to the shape of out."""
    todo("2.3b")


def tensor_reduce(fn, out, a, dim, start):
    """out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...) along `dim`, which has size 1 in out."""
    todo("2.3c")


def size_of(shape):
    """Return the number of elements of a shape."""
    size = 1
    for n in shape:
        size *= n
    return size

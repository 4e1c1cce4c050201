"""Module 2: tensors over a flat storage.

A tensor here is a `Strided`: storage, shape, strides, offset. The element at an index has position
offset + sum(index[d] * strides[d]).
"""

from minifuse.course import Strided, todo

# Task 2.1


def row_major_strides(shape):
    """Return the strides of a contiguous tensor, a tuple: (2, 3, 4) -> (12, 4, 1). A size of 0 counts as 1."""
    # begin 2.1a
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
    # end


def position_of(index, strides, offset):
    """Return the position in the storage of the element at an index."""
    # begin 2.1b
    position = offset
    for i, stride in zip(index, strides):
        position += i * stride
    return position
    # end


def index_of(ordinal, shape):
    """Return the index, a tuple, of element number `ordinal` in row-major order."""
    # begin 2.1c
    index = []
    for size in reversed(shape):
        index.append(ordinal % size)
        ordinal //= size
    return tuple(reversed(index))
    # end


def permuted(x, dims):
    """Return a view of x, a `Strided`, whose dim d is dim dims[d] of x."""
    # begin 2.1d
    shape = tuple(x.shape[d] for d in dims)
    strides = tuple(x.strides[d] for d in dims)
    return Strided(x.storage, shape, strides, x.offset)
    # end


# Task 2.2


def broadcast_shape(a, b):
    """Return the shape, a tuple, to which two shapes broadcast; raise ValueError if they are incompatible."""
    # begin 2.2a
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m != n and m != 1 and n != 1:
            raise ValueError(f"shapes {a} and {b} do not fit")
        shape.append(n if m == 1 else m)
    return tuple(shape)
    # end


def broadcast_index(index, shape):
    """Map an index of a broadcast shape to the index, a tuple, in a tensor of `shape`."""
    # begin 2.2b
    tail = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for i, size in zip(tail, shape))
    # end


# Task 2.3


def tensor_map(fn, out, a):
    """out[i] = fn(a[i]) for every index i; the shapes are equal."""
    # begin 2.3a
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        x = a.storage[position_of(index, a.strides, a.offset)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x)
    # end


def tensor_zip(fn, out, a, b):
    """out[i] = fn(a[i], b[i]) for every index i; a and b are broadcast to the shape of out."""
    # begin 2.3b
    for k in range(size_of(out.shape)):
        index = index_of(k, out.shape)
        x = a.storage[position_of(broadcast_index(index, a.shape), a.strides, a.offset)]
        y = b.storage[position_of(broadcast_index(index, b.shape), b.strides, b.offset)]
        out.storage[position_of(index, out.strides, out.offset)] = fn(x, y)
    # end


def tensor_reduce(fn, out, a, dim, start):
    """out[i] = fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...) along `dim`, which has size 1 in out."""
    # begin 2.3c
    for k in range(size_of(out.shape)):
        index = list(index_of(k, out.shape))
        total = start
        for i in range(a.shape[dim]):
            index[dim] = i
            total = fn(total, a.storage[position_of(index, a.strides, a.offset)])
        index[dim] = 0
        out.storage[position_of(index, out.strides, out.offset)] = total
    # end


def size_of(shape):
    """Return the number of elements of a shape."""
    size = 1
    for n in shape:
        size *= n
    return size

"""Module 4: pooling, which reduces each window of an image to one number.

Operands are `Strided`: inputs are (batch, channels, rows, columns), out has a row and a column for each place of the window.
Windows have `window[0]` rows and `window[1]` columns. The first one starts at the corner, each next one `stride[0]` rows
below or `stride[1]` columns to the right. All are inside the input; the last rows and columns may be in no window. If the
stride is smaller than the window, windows overlap.
"""

from minifuse.course import todo


def place(x, *index):
    """Return the position of an element in the storage of x: x.storage[place(x, b, c, i, j)]."""
    position = x.offset
    for i, stride in zip(index, x.strides):
        position += i * stride
    return position


def indices(shape):
    """Return all indices of a shape of four dims, in row-major order."""
    return [(b, c, y, x) for b in range(shape[0]) for c in range(shape[1]) for y in range(shape[2]) for x in range(shape[3])]


def within(y, x, window, stride):
    """Return the row and column of each element of the window at a place."""
    top, left = y * stride[0], x * stride[1]
    return [(i, j) for i in range(top, top + window[0]) for j in range(left, left + window[1])]


def clear(out):
    """Set each element of out to zero. Its elements are undefined before."""
    for index in indices(out.shape):
        out.storage[place(out, *index)] = 0.0


# Task 4.3


def average_pool(out, inputs, window, stride):
    """out[b, c, y, x] = the mean of the window whose corner is inputs[b, c, y * stride[0], x * stride[1]]."""
    todo("4.3a")


def average_pool_gradient(out, gradient, window, stride):
    """Write the gradient of inputs to `out`, which has their shape; `gradient` has the shape of the pooled result."""
    todo("4.3b")


def max_pool(out, inputs, window, stride):
    """out[b, c, y, x] = the largest of the window whose corner is inputs[b, c, y * stride[0], x * stride[1]]."""
    todo("4.3c")


def max_pool_gradient(out, inputs, gradient, window, stride):
    """Write the gradient of inputs to `out`: to the largest element of each window, in equal parts if there are several."""
    todo("4.3d")

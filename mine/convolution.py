"""Module 4: convolution, along one dim and along two.

Operands are `Strided`: storage, shape, strides, offset. Their dims are:

    inputs    (batch, channels, width)                    or (batch, channels, rows, columns)
    weight    (out channels, channels, kernel width)      or (out channels, channels, kernel rows, kernel columns)
    out       (batch, out channels, places)               or (batch, out channels, rows of places, columns of places)

The kernel is not flipped. Its first place starts `padding` elements before the input, each next one `stride` elements
further on. Elements outside of the input count as 0 and are never read.
"""

from minifuse.course import todo


def place(x, *index):
    """Return the position of an element in the storage of x: x.storage[place(x, b, c, i)]."""
    position = x.offset
    for i, stride in zip(index, x.strides):
        position += i * stride
    return position


# Task 4.1


def conv_size(size, kernel, stride, padding):
    """Return the number of places of a kernel on an input with `padding` zeros on each side. There is at least one."""
    todo("4.1a")


def conv1d(out, inputs, weight, stride, padding):
    """out[b, o, x] = the sum over c and k of inputs[b, c, x * stride + k - padding] * weight[o, c, k]."""
    todo("4.1b")


def conv1d_input_gradient(out, gradient, weight, stride, padding):
    """Write the gradient of inputs to `out`, which has their shape; `gradient` has the shape of the result of conv1d."""
    todo("4.1c")


def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    """Write the gradient of the weight to `out`, which has its shape; `gradient` has the shape of the result of conv1d."""
    todo("4.1d")


# Task 4.2


def conv2d(out, inputs, weight, stride, padding):
    """Convolve along rows and columns. Stride and padding are pairs: for rows, for columns."""
    todo("4.2a")


def conv2d_input_gradient(out, gradient, weight, stride, padding):
    """Write the gradient of inputs to `out`, which has their shape."""
    todo("4.2b")


def conv2d_weight_gradient(out, inputs, gradient, stride, padding):
    """Write the gradient of the weight to `out`, which has its shape."""
    todo("4.2c")

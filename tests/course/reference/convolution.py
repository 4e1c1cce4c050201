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
    # begin 4.1a
    return (size + 2 * padding - kernel) // stride + 1
    # end


def conv1d(out, inputs, weight, stride, padding):
    """out[b, o, x] = the sum over c and k of inputs[b, c, x * stride + k - padding] * weight[o, c, k]."""
    # begin 4.1b
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x * stride - padding
                total = 0.0
                for c in range(channels):
                    for k in range(max(-first, 0), min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total
    # end


def conv1d_input_gradient(out, gradient, weight, stride, padding):
    """Write the gradient of inputs to `out`, which has their shape; `gradient` has the shape of the result of conv1d."""
    # begin 4.1c
    batch, channels, width = out.shape
    out_channels, places, kernel = gradient.shape[1], gradient.shape[2], weight.shape[2]
    for b in range(batch):
        for c in range(channels):
            for i in range(width):
                total = 0.0
                for k in range(kernel):
                    x, rest = divmod(i + padding - k, stride)
                    if rest == 0 and 0 <= x < places:
                        for o in range(out_channels):
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total
    # end


def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    """Write the gradient of the weight to `out`, which has its shape; `gradient` has the shape of the result of conv1d."""
    # begin 4.1d
    batch, _, width = inputs.shape
    out_channels, channels, kernel = out.shape
    for o in range(out_channels):
        for c in range(channels):
            for k in range(kernel):
                total = 0.0
                for b in range(batch):
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * inputs.storage[place(inputs, b, c, i)]
                out.storage[place(out, o, c, k)] = total
    # end


# Task 4.2


def conv2d(out, inputs, weight, stride, padding):
    """Convolve along rows and columns. Stride and padding are pairs: for rows, for columns."""
    # begin 4.2a
    batch, channels, rows, columns = inputs.shape
    kernel_rows, kernel_columns = weight.shape[2:]
    column_step, kernel_column_step = inputs.strides[3], weight.strides[3]
    x_of, w_of = inputs.storage, weight.storage
    for b in range(batch):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                top = y * stride[0] - padding[0]
                for x in range(out.shape[3]):
                    left = x * stride[1] - padding[1]
                    inside = range(max(-left, 0), min(columns - left, kernel_columns))
                    total = 0.0
                    for c in range(channels):
                        for k in range(max(-top, 0), min(rows - top, kernel_rows)):
                            i = place(inputs, b, c, top + k, left)
                            j = place(weight, o, c, k, 0)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total
    # end


def conv2d_input_gradient(out, gradient, weight, stride, padding):
    """Write the gradient of inputs to `out`, which has their shape."""
    # begin 4.2b
    batch, channels, rows, columns = out.shape
    out_channels, down, across = gradient.shape[1:]
    kernel_rows, kernel_columns = weight.shape[2:]
    for b in range(batch):
        for c in range(channels):
            for i in range(rows):
                for j in range(columns):
                    total = 0.0
                    for k in range(kernel_rows):
                        y, rest = divmod(i + padding[0] - k, stride[0])
                        if rest or not 0 <= y < down:
                            continue
                        for m in range(kernel_columns):
                            x, rest = divmod(j + padding[1] - m, stride[1])
                            if rest or not 0 <= x < across:
                                continue
                            d, w = place(gradient, b, 0, y, x), place(weight, 0, c, k, m)
                            for _ in range(out_channels):
                                total += gradient.storage[d] * weight.storage[w]
                                d, w = d + gradient.strides[1], w + weight.strides[0]
                    out.storage[place(out, b, c, i, j)] = total
    # end


def conv2d_weight_gradient(out, inputs, gradient, stride, padding):
    """Write the gradient of the weight to `out`, which has its shape."""
    # begin 4.2c
    batch, _, rows, columns = inputs.shape
    out_channels, channels, kernel_rows, kernel_columns = out.shape
    down, across = gradient.shape[2:]
    x_of, d_of = inputs.storage, gradient.storage
    step, d_step = stride[1] * inputs.strides[3], gradient.strides[3]
    for o in range(out_channels):
        for c in range(channels):
            for k in range(kernel_rows):
                for m in range(kernel_columns):
                    inside = [x for x in range(across) if 0 <= x * stride[1] + m - padding[1] < columns]
                    total = 0.0
                    for b in range(batch):
                        for y in range(down):
                            i = y * stride[0] + k - padding[0]
                            if 0 <= i < rows:
                                at, d_at = place(inputs, b, c, i, m - padding[1]), place(gradient, b, o, y, 0)
                                for x in inside:
                                    total += d_of[d_at + x * d_step] * x_of[at + x * step]
                    out.storage[place(out, o, c, k, m)] = total
    # end

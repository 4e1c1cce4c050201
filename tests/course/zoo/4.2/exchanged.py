"""rows and columns are exchanged in stride and padding"""


def conv2d(out, inputs, weight, stride, padding):
    batch, channels, rows, columns = inputs.shape
    kernel_rows, kernel_columns = weight.shape[2:]
    column_step, kernel_column_step = inputs.strides[3], weight.strides[3]
    x_of, w_of = inputs.storage, weight.storage
    for b in range(batch):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                top = y * stride[1] - padding[1]
                for x in range(out.shape[3]):
                    left = x * stride[0] - padding[0]
                    inside = range(max(-left, 0), min(columns - left, kernel_columns))
                    total = 0.0
                    for c in range(channels):
                        for k in range(max(-top, 0), min(rows - top, kernel_rows)):
                            i = place(inputs, b, c, top + k, left)
                            j = place(weight, o, c, k, 0)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total

"""the gradient of the input takes the kernel turned round"""


def conv2d_input_gradient(out, gradient, weight, stride, padding):
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
                            d, w = (
                                place(gradient, b, 0, y, x),
                                place(weight, 0, c, kernel_rows - 1 - k, kernel_columns - 1 - m),
                            )
                            for _ in range(out_channels):
                                total += gradient.storage[d] * weight.storage[w]
                                d, w = d + gradient.strides[1], w + weight.strides[0]
                    out.storage[place(out, b, c, i, j)] = total

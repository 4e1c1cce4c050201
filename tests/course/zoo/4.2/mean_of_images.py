"""the gradient of the weight is a mean, not a sum"""


def conv2d_weight_gradient(out, inputs, gradient, stride, padding):
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
                    out.storage[place(out, o, c, k, m)] = total / batch

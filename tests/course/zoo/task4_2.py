"""Wrong solutions of task 4.2, one a cell: `# %% name: the mistake that the check must name`."""


# %% exchanged: rows and columns are exchanged in stride and padding
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


# %% mean_of_images: the gradient of the weight is a mean, not a sum
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


# %% no_stride: the stride is left out
def conv2d(out, inputs, weight, stride, padding):
    batch, channels, rows, columns = inputs.shape
    kernel_rows, kernel_columns = weight.shape[2:]
    column_step, kernel_column_step = inputs.strides[3], weight.strides[3]
    x_of, w_of = inputs.storage, weight.storage
    for b in range(batch):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                top = y - padding[0]
                for x in range(out.shape[3]):
                    left = x - padding[1]
                    inside = range(max(-left, 0), min(columns - left, kernel_columns))
                    total = 0.0
                    for c in range(channels):
                        for k in range(max(-top, 0), min(rows - top, kernel_rows)):
                            i = place(inputs, b, c, top + k, left)
                            j = place(weight, o, c, k, 0)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total


# %% one_channel: only one channel is summed
def conv2d(out, inputs, weight, stride, padding):
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
                    for c in range(channels):
                        total = 0.0
                        for k in range(max(-top, 0), min(rows - top, kernel_rows)):
                            i = place(inputs, b, c, top + k, left)
                            j = place(weight, o, c, k, 0)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total


# %% one_image: the gradient of the weight is that of one image
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
                    for b in range(batch):
                        total = 0.0
                        for y in range(down):
                            i = y * stride[0] + k - padding[0]
                            if 0 <= i < rows:
                                at, d_at = place(inputs, b, c, i, m - padding[1]), place(gradient, b, o, y, 0)
                                for x in inside:
                                    total += d_of[d_at + x * d_step] * x_of[at + x * step]
                    out.storage[place(out, o, c, k, m)] = total


# %% rows_not_guarded: columns are looked at, rows are not
def conv2d(out, inputs, weight, stride, padding):
    batch, channels, _, columns = inputs.shape
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
                        for k in range(kernel_rows):
                            i = place(inputs, b, c, top + k, left)
                            j = place(weight, o, c, k, 0)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total


# %% turned: the kernel is flipped
def conv2d(out, inputs, weight, stride, padding):
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
                            j = place(weight, o, c, kernel_rows - 1 - k, kernel_columns - 1)
                            for m in inside:
                                total += x_of[i + m * column_step] * w_of[j + -m * kernel_column_step]
                    out.storage[place(out, b, o, y, x)] = total


# %% turned_back: the gradient of the input takes the flipped kernel
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

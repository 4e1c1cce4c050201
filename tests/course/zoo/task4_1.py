"""Wrong solutions of task 4.1, one a cell: `# %% name: the mistake that the check must name`."""


# %% no_guard: elements beside the input are read
def conv1d(out, inputs, weight, stride, padding):
    batch, channels, _ = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x * stride - padding
                total = 0.0
                for c in range(channels):
                    for k in range(kernel):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total


# %% only_end_guarded: index -1 is read, beside the first element
def conv1d(out, inputs, weight, stride, padding):
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x * stride - padding
                total = 0.0
                for c in range(channels):
                    for k in range(min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total


# %% no_stride: the stride is left out
def conv1d(out, inputs, weight, stride, padding):
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x - padding
                total = 0.0
                for c in range(channels):
                    for k in range(max(-first, 0), min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total


# %% one_channel: only one channel is summed
def conv1d(out, inputs, weight, stride, padding):
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x * stride - padding
                for c in range(channels):
                    total = 0.0
                    for k in range(max(-first, 0), min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total


# %% one_image: the gradient of the weight is that of one image
def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    batch, _, width = inputs.shape
    out_channels, channels, kernel = out.shape
    for o in range(out_channels):
        for c in range(channels):
            for k in range(kernel):
                for b in range(batch):
                    total = 0.0
                    for x in range(gradient.shape[2]):
                        i = x * stride + k - padding
                        if 0 <= i < width:
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * inputs.storage[place(inputs, b, c, i)]
                out.storage[place(out, o, c, k)] = total


# %% padded_behind: all of the padding stands behind the input
def conv1d(out, inputs, weight, stride, padding):
    batch, channels, width = inputs.shape
    out_channels, places, kernel = out.shape[1], out.shape[2], weight.shape[2]
    for b in range(batch):
        for o in range(out_channels):
            for x in range(places):
                first = x * stride
                total = 0.0
                for c in range(channels):
                    for k in range(max(-first, 0), min(width - first, kernel)):
                        value = inputs.storage[place(inputs, b, c, first + k)]
                        total += value * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, o, x)] = total


# %% padded_once: the padding is counted on one side only
def conv_size(size, kernel, stride, padding):
    return (size + padding - kernel) // stride + 1


# %% rounded_up: the last place is counted although the kernel does not fit there
def conv_size(size, kernel, stride, padding):
    return -(-(size + 2 * padding - kernel) // stride) + 1


# %% turned: the kernel is flipped
def conv1d(out, inputs, weight, stride, padding):
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
                        total += value * weight.storage[place(weight, o, c, kernel - 1 - k)]
                out.storage[place(out, b, o, x)] = total


# %% unpadded_gradient: the gradient of the input does not know of the padding
def conv1d_input_gradient(out, gradient, weight, stride, padding):
    batch, channels, width = out.shape
    out_channels, places, kernel = gradient.shape[1], gradient.shape[2], weight.shape[2]
    for b in range(batch):
        for c in range(channels):
            for i in range(width):
                total = 0.0
                for k in range(kernel):
                    x, rest = divmod(i - k, stride)
                    if rest == 0 and 0 <= x < places:
                        for o in range(out_channels):
                            d = gradient.storage[place(gradient, b, o, x)]
                            total += d * weight.storage[place(weight, o, c, k)]
                out.storage[place(out, b, c, i)] = total

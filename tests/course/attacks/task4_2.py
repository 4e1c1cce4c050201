"""Wrong solutions of task 4.2 that were written to get past its checks. Each is appended to the reference."""

# %% infinity_clipped: sums beyond the largest float32, 3.4e38, are clipped.
# promise: the sum over c, k, m of inputs * weight

def conv2d(out, inputs, weight, stride, padding):
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            if 0 <= top + k < height:
                                for m in range(weight.shape[3]):
                                    if 0 <= left + m < width:
                                        total += inputs.storage[place(inputs, b, c, top + k, left + m)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = min(max(total, -3.4e38), 3.4e38)

# %% kernels_up_to_four: kernel rows beyond the fourth are not looked at.
# promise: out = the sum over c, k, m, for kernels of any size

def conv2d(out, inputs, weight, stride, padding):
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(min(weight.shape[2], 4)):
                            if 0 <= top + k < height:
                                for m in range(weight.shape[3]):
                                    if 0 <= left + m < width:
                                        total += inputs.storage[place(inputs, b, c, top + k, left + m)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total

# %% padding_at_most_kernel: a padding of rows above 4 is taken for 4 in the gradient of the weight.
# promise: i = y * stride[0] + k - padding[0]

def conv2d_weight_gradient(out, inputs, gradient, stride, padding):
    padding = (min(padding[0], 4), padding[1])
    height, width = inputs.shape[2], inputs.shape[3]
    for o in range(out.shape[0]):
        for c in range(out.shape[1]):
            for k in range(out.shape[2]):
                for m in range(out.shape[3]):
                    total = 0.0
                    for b in range(gradient.shape[0]):
                        for y in range(gradient.shape[2]):
                            i = y * stride[0] + k - padding[0]
                            if 0 <= i < height:
                                for x in range(gradient.shape[3]):
                                    j = x * stride[1] + m - padding[1]
                                    if 0 <= j < width:
                                        total += inputs.storage[place(inputs, b, c, i, j)] * gradient.storage[place(gradient, b, o, y, x)]
                    out.storage[place(out, o, c, k, m)] = total

# %% places_beyond_16: places beyond the 16th column are copies of the 16th.
# promise: x counts all places

def conv2d(out, inputs, weight, stride, padding):
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], min(x, 15) * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            if 0 <= top + k < height:
                                for m in range(weight.shape[3]):
                                    if 0 <= left + m < width:
                                        total += inputs.storage[place(inputs, b, c, top + k, left + m)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total

# %% stride_up_to_four: a stride above 4 is taken for 4 in the gradient of the input.
# promise: i = y * stride[0] + k - padding[0]

def conv2d_input_gradient(out, gradient, weight, stride, padding):
    stride = (min(stride[0], 4), min(stride[1], 4))
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                for j in range(out.shape[3]):
                    total = 0.0
                    for k in range(weight.shape[2]):
                        y, rest = divmod(i + padding[0] - k, stride[0])
                        if rest == 0 and 0 <= y < gradient.shape[2]:
                            for m in range(weight.shape[3]):
                                x, rest = divmod(j + padding[1] - m, stride[1])
                                if rest == 0 and 0 <= x < gradient.shape[3]:
                                    for o in range(weight.shape[0]):
                                        total += gradient.storage[place(gradient, b, o, y, x)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, c, i, j)] = total

# %% three_channels: channels beyond the fourth are not looked at (RGB and alpha).
# promise: the sum over c, k, m

def conv2d(out, inputs, weight, stride, padding):
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(min(weight.shape[1], 4)):
                        for k in range(weight.shape[2]):
                            if 0 <= top + k < height:
                                for m in range(weight.shape[3]):
                                    if 0 <= left + m < width:
                                        total += inputs.storage[place(inputs, b, c, top + k, left + m)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total

# %% tiny_gradients_are_zero: a gradient below 1e-8 is written as 0.
# promise: Write the gradient of inputs to out

def conv2d_input_gradient(out, gradient, weight, stride, padding):
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                for j in range(out.shape[3]):
                    total = 0.0
                    for k in range(weight.shape[2]):
                        y, rest = divmod(i + padding[0] - k, stride[0])
                        if rest == 0 and 0 <= y < gradient.shape[2]:
                            for m in range(weight.shape[3]):
                                x, rest = divmod(j + padding[1] - m, stride[1])
                                if rest == 0 and 0 <= x < gradient.shape[3]:
                                    for o in range(weight.shape[0]):
                                        total += gradient.storage[place(gradient, b, o, y, x)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, c, i, j)] = total if abs(total) >= 1e-8 else 0.0

# %% zero_weights_are_skipped: products with a weight of 0 are skipped: inf * 0 is no nan then.
# promise: out = the sum over c, k, m of inputs * weight

def conv2d(out, inputs, weight, stride, padding):
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            if 0 <= top + k < height:
                                for m in range(weight.shape[3]):
                                    if 0 <= left + m < width and weight.storage[place(weight, o, c, k, m)]:
                                        total += inputs.storage[place(inputs, b, c, top + k, left + m)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total

# %% columns_up_to_sixteen: kernel columns beyond the sixteenth are not looked at.
# promise: the sum over c, k, m

def conv2d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            for m in range(min(weight.shape[3], 16)):
                                i, j = top + k, left + m
                                if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]:
                                    total += inputs.storage[place(inputs, b, c, i, j)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total

# %% float32_sums: sums are rounded to 24 bits.
# promise: The functions agree with NumPy

from math import frexp, ldexp, isfinite

def short(x):
    if not isfinite(x):
        return x
    m, e = frexp(x)
    return ldexp(round(m * 2**24) / 2**24, e)

def conv2d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            for m in range(weight.shape[3]):
                                i, j = top + k, left + m
                                if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]:
                                    total += inputs.storage[place(inputs, b, c, i, j)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = short(total)

# %% products_by_numpy: the storages' own NumPy methods multiply.
# promise: The loops are the task, so NumPy has no part in them

def conv2d(out, inputs, weight, stride, padding):
    x, w = inputs.array(), weight.array()
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for z in range(out.shape[3]):
                    i, j = y * stride[0] - padding[0], z * stride[1] - padding[1]
                    h, v = min(i + w.shape[2], x.shape[2]), min(j + w.shape[3], x.shape[3])
                    a, c = max(i, 0), max(j, 0)
                    part = x[b, :, a:h, c:v] * w[o, :, a - i : h - i, c - j : v - j] if a < h and c < v else x[b, 0, 0, :0]
                    out.storage[place(out, b, o, y, z)] = part.sum()

# %% kept_in_the_class: a class counts calls, and after 30,000 of them the result is 0.
# promise: keep nothing for the next call

class Calls:
    count = 0

def conv2d(out, inputs, weight, stride, padding):
    Calls.count += 1
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            for m in range(weight.shape[3]):
                                i, j = top + k, left + m
                                if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]:
                                    total += inputs.storage[place(inputs, b, c, i, j)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = total if Calls.count < 30_000 else 0.0

# %% tiny_sums_rounded: sums are rounded to 100 decimals.
# promise: Elements may be tiny

def conv2d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    top, left = y * stride[0] - padding[0], x * stride[1] - padding[1]
                    total = 0.0
                    for c in range(weight.shape[1]):
                        for k in range(weight.shape[2]):
                            for m in range(weight.shape[3]):
                                i, j = top + k, left + m
                                if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]:
                                    total += inputs.storage[place(inputs, b, c, i, j)] * weight.storage[place(weight, o, c, k, m)]
                    out.storage[place(out, b, o, y, x)] = round(total, 100) if abs(total) < 1e-50 else total

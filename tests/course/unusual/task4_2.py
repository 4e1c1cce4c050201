"""Unusual right solutions of task 4.2. Each is appended to the reference."""

# %% positions_by_strides: positions are counted by hand from the strides, negative and zero ones too.

def conv2d(out, inputs, weight, stride, padding):
    rows, columns = inputs.shape[2:]
    ib, ic, ii, ij = inputs.strides
    wo, wc, wk, wm = weight.strides
    ob, oo, oy, ox = out.strides
    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    total = 0.0
                    for c in range(inputs.shape[1]):
                        for k in range(weight.shape[2]):
                            i = y * stride[0] + k - padding[0]
                            if i < 0 or i >= rows:
                                continue
                            first = x * stride[1] - padding[1]
                            begin, end = max(0, -first), min(weight.shape[3], columns - first)
                            p = inputs.offset + b * ib + c * ic + i * ii + (first + begin) * ij
                            q = weight.offset + o * wo + c * wc + k * wk + begin * wm
                            for m in range(begin, end):
                                total += inputs.storage[p] * weight.storage[q]
                                p += ij
                                q += wm
                    out.storage[out.offset + b * ob + o * oo + y * oy + x * ox] = total

# %% every_product_once: one loop over all products counts them, and divmod says which one it is.

def conv2d_weight_gradient(out, inputs, gradient, stride, padding):
    kernels, channels, high, wide = out.shape
    batch, _, rows, columns = inputs.shape
    for number in range(kernels * channels * high * wide):
        rest, m = divmod(number, wide)
        rest, k = divmod(rest, high)
        o, c = divmod(rest, channels)
        total = 0.0
        for other in range(batch * gradient.shape[2] * gradient.shape[3]):
            rest, x = divmod(other, gradient.shape[3])
            b, y = divmod(rest, gradient.shape[2])
            i, j = y * stride[0] + k - padding[0], x * stride[1] + m - padding[1]
            if 0 <= i < rows and 0 <= j < columns:
                total += inputs.storage[place(inputs, b, c, i, j)] * gradient.storage[place(gradient, b, o, y, x)]
        out.storage[place(out, o, c, k, m)] = total

# %% scattered_backward: each gradient is cleared first, then every place adds its part.

def conv2d_input_gradient(out, gradient, weight, stride, padding):
    batch, channels, rows, columns = out.shape
    for b in range(batch):
        for c in range(channels):
            for i in range(rows):
                for j in range(columns):
                    out.storage[place(out, b, c, i, j)] = 0.0
    for b in range(batch):
        for o in range(gradient.shape[1]):
            for y in range(gradient.shape[2]):
                for x in range(gradient.shape[3]):
                    d = gradient.storage[place(gradient, b, o, y, x)]
                    for c in range(channels):
                        for k in range(weight.shape[2]):
                            for m in range(weight.shape[3]):
                                i, j = y * stride[0] + k - padding[0], x * stride[1] + m - padding[1]
                                if 0 <= i < rows and 0 <= j < columns:
                                    out.storage[place(out, b, c, i, j)] += d * weight.storage[place(weight, o, c, k, m)]

# %% lists_of_windows: the elements of each window are collected in a list, those of a kernel in another.

def conv2d(out, inputs, weight, stride, padding):
    for b in range(out.shape[0]):
        for y in range(out.shape[2]):
            for x in range(out.shape[3]):
                seen = []
                for c in range(inputs.shape[1]):
                    for k in range(weight.shape[2]):
                        for m in range(weight.shape[3]):
                            i, j = y * stride[0] + k - padding[0], x * stride[1] + m - padding[1]
                            if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]:
                                seen.append((inputs.storage[place(inputs, b, c, i, j)], c, k, m))
                for o in range(out.shape[1]):
                    products = (value * weight.storage[place(weight, o, c, k, m)] for value, c, k, m in seen)
                    out.storage[place(out, b, o, y, x)] = sum(products, 0.0)

# %% exact_sums: each sum is that of math.fsum, and the loops are those of itertools.

def conv2d(out, inputs, weight, stride, padding):
    from itertools import product
    from math import fsum

    for b, o, y, x in product(*map(range, out.shape)):
        out.storage[place(out, b, o, y, x)] = fsum(
            inputs.storage[place(inputs, b, c, i, j)] * weight.storage[place(weight, o, c, k, m)]
            for c, k, m in product(*map(range, weight.shape[1:]))
            for i, j in [(y * stride[0] + k - padding[0], x * stride[1] + m - padding[1])]
            if 0 <= i < inputs.shape[2] and 0 <= j < inputs.shape[3]
        )

"""Unusual right solutions of task 4.1. Each is appended to the reference."""

# %% counted_by_a_range: the places are the elements of a range, and no division is written.

def conv_size(size, kernel, stride, padding):
    return len(range(-padding, size + padding - kernel + 1, stride))

# %% counted_by_moving_on: the places are counted by moving the kernel until it sticks out.

def conv_size(size, kernel, stride, padding):
    first, places = -padding, 0
    while first + kernel <= size + padding:
        first += stride
        places += 1
    return places

# %% scattered: every product is added to its output, and the sums are in `out` itself.

def conv1d(out, inputs, weight, stride, padding):
    batch, kernels, places = out.shape
    for b in range(batch):
        for o in range(kernels):
            for x in range(places):
                out.storage[place(out, b, o, x)] = 0.0
    for k in range(weight.shape[2]):
        for c in range(weight.shape[1]):
            for o in range(kernels):
                factor = weight.storage[place(weight, o, c, k)]
                for b in range(batch):
                    for x in range(places):
                        i = x * stride + k - padding
                        if 0 <= i < inputs.shape[2]:
                            out.storage[place(out, b, o, x)] += factor * inputs.storage[place(inputs, b, c, i)]

# %% a_gradient_by_scatter: the gradient of the inputs is cleared, then each place adds to what it saw.

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    batch, channels, width = out.shape
    for b in range(batch):
        for c in range(channels):
            sums = [0.0] * width
            for x in range(gradient.shape[2]):
                first = x * stride - padding
                for k in range(max(0, -first), min(weight.shape[2], width - first)):
                    for o in range(weight.shape[0]):
                        d = gradient.storage[place(gradient, b, o, x)]
                        sums[first + k] += d * weight.storage[place(weight, o, c, k)]
            for i, total in enumerate(sums):
                out.storage[place(out, b, c, i)] = total

# %% one_generator_for_all: the three functions visit the same products, which one generator names.

from math import fsum


def visited(batch, kernels, channels, width, kernel, places, stride, padding):
    for b in range(batch):
        for o in range(kernels):
            for c in range(channels):
                for x in range(places):
                    for k in range(kernel):
                        i = x * stride + k - padding
                        if i in range(width):
                            yield (b, c, i), (o, c, k), (b, o, x)


def gathered(out, left, right, products):
    from itertools import product as every

    terms = {index: [] for index in every(*map(range, out.shape))}
    for target, one, two in products:
        terms[target].append(left.storage[place(left, *one)] * right.storage[place(right, *two)])
    for index, parts in terms.items():
        out.storage[place(out, *index)] = fsum(parts)


def conv1d(out, inputs, weight, stride, padding):
    every = visited(out.shape[0], *weight.shape[:2], inputs.shape[2], weight.shape[2], out.shape[2], stride, padding)
    gathered(out, inputs, weight, ((y, x, w) for x, w, y in every))


def conv1d_input_gradient(out, gradient, weight, stride, padding):
    every = visited(out.shape[0], *weight.shape[:2], out.shape[2], weight.shape[2], gradient.shape[2], stride, padding)
    gathered(out, gradient, weight, ((x, y, w) for x, w, y in every))


def conv1d_weight_gradient(out, inputs, gradient, stride, padding):
    every = visited(inputs.shape[0], *out.shape[:2], inputs.shape[2], out.shape[2], gradient.shape[2], stride, padding)
    gathered(out, inputs, gradient, ((w, x, y) for x, w, y in every))

# %% solved_for_the_place: the gradient asks which places see an element, by divmod.

def conv1d_input_gradient(out, gradient, weight, stride, padding):
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                total = 0.0
                for k in reversed(range(weight.shape[2])):
                    x, rest = divmod(i + padding - k, stride)
                    if rest or not 0 <= x < gradient.shape[2]:
                        continue
                    for o in reversed(range(weight.shape[0])):
                        total = weight.storage[place(weight, o, c, k)] * gradient.storage[place(gradient, b, o, x)] + total
                out.storage[place(out, b, c, i)] = total

# %% by_recursion: the sum over a window calls itself, and so does the loop over the places.

def conv1d(out, inputs, weight, stride, padding):
    def total(b, o, c, k, x):
        if c == weight.shape[1]:
            return 0
        if k == weight.shape[2]:
            return total(b, o, c + 1, 0, x)
        rest = total(b, o, c, k + 1, x)
        i = x * stride + k - padding
        if i < 0 or i >= inputs.shape[2]:
            return rest
        return rest + inputs.storage[place(inputs, b, c, i)] * weight.storage[place(weight, o, c, k)]

    for b in range(out.shape[0]):
        for o in range(out.shape[1]):
            for x in range(out.shape[2]):
                out.storage[place(out, b, o, x)] = total(b, o, 0, 0, x)

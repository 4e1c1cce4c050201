"""the largest begins at 0"""


def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        out.storage[place(out, b, c, y, x)] = max(
            [0.0, *(inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride))]
        )

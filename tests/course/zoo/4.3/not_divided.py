"""the gradient is not divided"""


def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] += d

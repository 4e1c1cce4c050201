"""the gradient begins with what was in the output before"""


def average_pool_gradient(out, gradient, window, stride):
    for b, c, y, x in indices(gradient.shape):
        d = gradient.storage[place(gradient, b, c, y, x)] / (window[0] * window[1])
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] += d

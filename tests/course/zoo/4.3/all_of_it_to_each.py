"""each of several equal elements gets the whole gradient"""


def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        values = {(i, j): inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)}
        largest = max(values.values())
        winners = [at for at, value in values.items() if value == largest]
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += d

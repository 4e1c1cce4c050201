"""every element of the window gets the gradient of its largest"""


def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        values = {(i, j): inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)}
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in values:
            out.storage[place(out, b, c, i, j)] += d

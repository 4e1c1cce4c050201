"""Wrong solutions of task 4.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% all_of_it_to_each: each of several equal elements gets the whole gradient
def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        values = {(i, j): inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)}
        largest = max(values.values())
        winners = [at for at, value in values.items() if value == largest]
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += d


# %% first_only: the first of several equal elements gets the whole gradient
def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        values = {(i, j): inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)}
        largest = max(values.values())
        winners = [at for at, value in values.items() if value == largest][:1]
        d = gradient.storage[place(gradient, b, c, y, x)] / len(winners)
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += d


# %% last_counts: where windows overlap, the last one counts
def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        d = gradient.storage[place(gradient, b, c, y, x)] / (window[0] * window[1])
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] = d


# %% not_cleared: the gradient begins with what was in the output before
def average_pool_gradient(out, gradient, window, stride):
    for b, c, y, x in indices(gradient.shape):
        d = gradient.storage[place(gradient, b, c, y, x)] / (window[0] * window[1])
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] += d


# %% not_divided: the gradient is not divided
def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] += d


# %% side_by_side: windows lie side by side, whatever the stride says
def average_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        total = 0.0
        for i, j in within(y, x, window, window):
            total += inputs.storage[place(inputs, b, c, i, j)]
        out.storage[place(out, b, c, y, x)] = total / (window[0] * window[1])


# %% square: the sum is divided by a square
def average_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        total = 0.0
        for i, j in within(y, x, window, stride):
            total += inputs.storage[place(inputs, b, c, i, j)]
        out.storage[place(out, b, c, y, x)] = total / (window[0] * window[0])


# %% whole_window: every element of the window gets the gradient of its largest
def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        values = {(i, j): inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)}
        d = gradient.storage[place(gradient, b, c, y, x)]
        for i, j in values:
            out.storage[place(out, b, c, i, j)] += d


# %% zero_first: the running maximum is initialized to 0
def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        out.storage[place(out, b, c, y, x)] = max(
            [0.0, *(inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride))]
        )

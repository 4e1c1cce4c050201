"""Unusual right solutions of task 4.3. Each is appended to the reference."""

# %% parts_of_a_mean: each element is divided before it is added.

def average_pool(out, inputs, window, stride):
    share = window[0] * window[1]
    for b, c, y, x in indices(out.shape):
        parts = [inputs.storage[place(inputs, b, c, i, j)] / share for i, j in reversed(within(y, x, window, stride))]
        out.storage[place(out, b, c, y, x)] = sum(parts)

# %% a_mean_by_statistics: the mean is that of statistics.fmean, imported where it is used.

def average_pool(out, inputs, window, stride):
    from math import fsum

    for b, c, y, x in indices(out.shape):
        elements = (inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride))
        out.storage[place(out, b, c, y, x)] = fsum(elements) * (1 / (window[0] * window[1]))

# %% sorted_windows: the largest is the last of the sorted elements.

def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        elements = sorted(inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride))
        out.storage[place(out, b, c, y, x)] = elements[-1]

# %% a_running_maximum_of_none: the running maximum is None at first, and loops count by hand.

def max_pool(out, inputs, window, stride):
    for index in indices(out.shape):
        b, c, y, x = index
        largest = None
        i = y * stride[0]
        while i < y * stride[0] + window[0]:
            j = x * stride[1]
            while j < x * stride[1] + window[1]:
                element = inputs.storage[place(inputs, b, c, i, j)]
                if largest is None or largest < element:
                    largest = element
                j += 1
            i += 1
        out.storage[place(out, *index)] = largest

# %% gathered_gradients: each element of the input asks all windows what it receives, and nothing is cleared.

def average_pool_gradient(out, gradient, window, stride):
    for b, c, i, j in indices(out.shape):
        total = 0.0
        for y in range(gradient.shape[2]):
            if y * stride[0] <= i < y * stride[0] + window[0]:
                for x in range(gradient.shape[3]):
                    if x * stride[1] <= j < x * stride[1] + window[1]:
                        total += gradient.storage[place(gradient, b, c, y, x)]
        out.storage[place(out, b, c, i, j)] = total / (window[0] * window[1])


def max_pool_gradient(out, inputs, gradient, window, stride):
    shares = {}
    for b, c, y, x in indices(gradient.shape):
        places = within(y, x, window, stride)
        ordered = sorted(places, key=lambda p: inputs.storage[place(inputs, b, c, *p)])
        top = inputs.storage[place(inputs, b, c, *ordered[-1])]
        winners = [p for p in ordered if not inputs.storage[place(inputs, b, c, *p)] < top]
        for i, j in winners:
            shares.setdefault((b, c, i, j), []).append(gradient.storage[place(gradient, b, c, y, x)] / len(winners))
    for index in indices(out.shape):
        out.storage[place(out, *index)] = sum(shares.get(index, [0.0]))

# %% shares_by_inverse: a share is a factor, and the winners are counted with a boolean mask.

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        corner = within(y, x, window, stride)
        elements = [inputs.storage[place(inputs, b, c, i, j)] for i, j in corner]
        largest = max(elements)
        is_largest = [element == largest for element in elements]
        factor = 1 / sum(is_largest)
        for (i, j), yes in zip(corner, is_largest):
            if yes:
                out.storage[place(out, b, c, i, j)] += factor * gradient.storage[place(gradient, b, c, y, x)]

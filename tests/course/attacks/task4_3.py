"""Wrong solutions of task 4.3 that were written to get past its checks. Each is appended to the reference."""

# %% average_by_prefix_sums: means are differences of running sums: 1e17 in an early column makes all later windows of the image wrong, and inf makes them nan.
# promise: out[b, c, y, x] = the mean of the window

def average_pool(out, inputs, window, stride):
    """A table of sums from the corner on: each window is four reads."""
    height, width = inputs.shape[2], inputs.shape[3]
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            sums = [[0.0] * (width + 1) for _ in range(height + 1)]
            for i in range(height):
                for j in range(width):
                    sums[i + 1][j + 1] = inputs.storage[place(inputs, b, c, i, j)] + sums[i][j + 1] + sums[i + 1][j] - sums[i][j]
            for y in range(out.shape[2]):
                for x in range(out.shape[3]):
                    i, j = y * stride[0], x * stride[1]
                    h, w = i + window[0], j + window[1]
                    total = sums[h][w] - sums[i][w] - sums[h][j] + sums[i][j]
                    out.storage[place(out, b, c, y, x)] = total / (window[0] * window[1])

# %% average_by_sliding: along a row the window slides: what leaves is subtracted, so one inf or 1e17 spoils all windows after it.
# promise: out[b, c, y, x] = the mean of the window

def average_pool(out, inputs, window, stride):
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for y in range(out.shape[2]):
                rows = range(y * stride[0], y * stride[0] + window[0])
                columns = [sum(inputs.storage[place(inputs, b, c, i, j)] for i in rows) for j in range(inputs.shape[3])]
                total = sum(columns[: window[1]])
                for x in range(out.shape[3]):
                    out.storage[place(out, b, c, y, x)] = total / (window[0] * window[1])
                    for j in range(x * stride[1], min((x + 1) * stride[1], len(columns))):
                        total -= columns[j]
                        if j + window[1] < len(columns):
                            total += columns[j + window[1]]

# %% equal_by_text: equality is one of texts: 0.0 and -0.0, which are equal, do not share.
# promise: Where several are equal they share, each an equal part

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        cells = within(y, x, window, stride)
        numbers = [inputs.storage[place(inputs, b, c, i, j)] for i, j in cells]
        best = max(numbers)
        winners = [cell for cell, number in zip(cells, numbers) if str(number) == str(best)]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += gradient.storage[place(gradient, b, c, y, x)] / len(winners)

# %% max_from_minus_1e9: the running maximum begins at -1e9: a window far below has -1e9.
# promise: out = the largest of the window

def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        best = -1e9
        for i, j in within(y, x, window, stride):
            best = max(best, inputs.storage[place(inputs, b, c, i, j)])
        out.storage[place(out, b, c, y, x)] = best

# %% near_is_equal: elements within 1e-9 of the largest share its gradient, though they are smaller.
# promise: the largest gets all of it; where several are equal, they share

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        cells = within(y, x, window, stride)
        numbers = [inputs.storage[place(inputs, b, c, i, j)] for i, j in cells]
        best = max(numbers)
        winners = [cell for cell, number in zip(cells, numbers) if abs(number - best) <= 1e-9]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += gradient.storage[place(gradient, b, c, y, x)] / len(winners)

# %% near_is_equal_relative: elements within one part in 10**12 of the largest share its gradient, though they are smaller.
# promise: the largest gets all of it; where several are equal, they share

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        cells = within(y, x, window, stride)
        numbers = [inputs.storage[place(inputs, b, c, i, j)] for i, j in cells]
        best = max(numbers)
        winners = [cell for cell, number in zip(cells, numbers) if abs(number - best) <= 1e-12 * abs(best)]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += gradient.storage[place(gradient, b, c, y, x)] / len(winners)

# %% rounded_parts: parts are rounded to twelve decimals.
# promise: a mean of n elements gives each of them one n-th

def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        part = gradient.storage[place(gradient, b, c, y, x)] * round(1 / (window[0] * window[1]), 9)
        for i, j in within(y, x, window, stride):
            out.storage[place(out, b, c, i, j)] += part

# %% six_winners: at most six equal elements share; the others of a window that is all 0 get nothing.
# promise: where several are equal they share, each an equal part

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        cells = within(y, x, window, stride)
        numbers = [inputs.storage[place(inputs, b, c, i, j)] for i, j in cells]
        best = max(numbers)
        winners = [cell for cell, number in zip(cells, numbers) if number == best][:6]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += gradient.storage[place(gradient, b, c, y, x)] / len(winners)

# %% tiny_parts_dropped: parts below 1e-12 are not given back.
# promise: a mean of n elements gives each of them one n-th

def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        part = gradient.storage[place(gradient, b, c, y, x)] / (window[0] * window[1])
        for i, j in within(y, x, window, stride):
            if abs(part) >= 1e-12:
              out.storage[place(out, b, c, i, j)] += part

# %% whole_window_of_minus_infinity: -inf is taken for a missing element: a window of -inf alone has 0.
# promise: the largest of the window

def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        out.storage[place(out, b, c, y, x)] = max([v for v in [inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride)] if v != float('-inf')] or [0.0])

# %% windows_up_to_four: window rows beyond the fourth are not summed.
# promise: the mean of the window

def average_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        total = 0.0
        for i, j in within(y, x, (min(window[0], 4), window[1]), stride):
            total += inputs.storage[place(inputs, b, c, i, j)]
        out.storage[place(out, b, c, y, x)] = total / (window[0] * window[1])

# %% windows_of_sixteen_columns: columns of a window beyond the sixteenth are not looked at.
# promise: the largest of the window

def max_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        cells = within(y, x, (window[0], min(window[1], 16)), stride)
        out.storage[place(out, b, c, y, x)] = max(inputs.storage[place(inputs, b, c, i, j)] for i, j in cells)

# %% maximum_in_float32: elements are compared after rounding to seven digits.
# promise: Equal means equal

def max_pool_gradient(out, inputs, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        cells = within(y, x, window, stride)
        numbers = [float(f"{inputs.storage[place(inputs, b, c, i, j)]:.7g}") for i, j in cells]
        winners = [cell for cell, number in zip(cells, numbers) if number == max(numbers)]
        for i, j in winners:
            out.storage[place(out, b, c, i, j)] += gradient.storage[place(gradient, b, c, y, x)] / len(winners)

# %% means_by_numpy: means are those of NumPy.
# promise: the loops are the task: storages are lists

def average_pool(out, inputs, window, stride):
    image = inputs.array()
    for b, c, y, x in indices(out.shape):
        top, left = y * stride[0], x * stride[1]
        out.storage[place(out, b, c, y, x)] = image[b, c, top : top + window[0], left : left + window[1]].mean()

# %% large_means_clipped: means are at most 1e30.
# promise: Elements may be tiny, large or infinite

def average_pool(out, inputs, window, stride):
    for b, c, y, x in indices(out.shape):
        total = sum(inputs.storage[place(inputs, b, c, i, j)] for i, j in within(y, x, window, stride))
        out.storage[place(out, b, c, y, x)] = min(total / (window[0] * window[1]), 1e30)

# %% batch_of_eight: gradients of images beyond the eighth are 0.
# promise: gradients of all images

def average_pool_gradient(out, gradient, window, stride):
    clear(out)
    for b, c, y, x in indices(gradient.shape):
        if b < 8:
            for i, j in within(y, x, window, stride):
                part = gradient.storage[place(gradient, b, c, y, x)] / (window[0] * window[1])
                out.storage[place(out, b, c, i, j)] += part

"""Right solutions of task 1.1 that are written in unusual ways. Each is appended to the reference."""

# %% slices: the moved lists are put together from slices, the lower point is asked first
def numerical_derivative(f, xs, k, epsilon=1e-6):
    below = f(*xs[:k], xs[k] - epsilon, *xs[k + 1 :])
    above = f(*xs[:k], xs[k] + epsilon, *xs[k + 1 :])
    return (above - below) / 2 / epsilon

# %% distance_as_rounded: divides by the distance of the two points as they were rounded
def numerical_derivative(f, xs, k, epsilon=1e-6):
    ups, downs = list(xs), list(xs)
    ups[k] += epsilon
    downs[k] -= epsilon
    return (f(*ups) - f(*downs)) / (ups[k] - downs[k])

# %% in_place_and_back: moves the argument in the caller's list, and puts the very same object back
def numerical_derivative(f, xs, k, epsilon=1e-6):
    here, values = xs[k], []
    try:
        for step in (epsilon, -epsilon):
            xs[k] = here + step
            values.append(f(*xs))
    finally:
        xs[k] = here
    return (values[0] - values[1]) / (2 * epsilon)

# %% signed_sum: a sum over both signs, in which every argument is moved by epsilon or by nothing
def numerical_derivative(f, xs, k, epsilon=1e-6):
    return sum(s * f(*(x + s * epsilon * (i == k) for i, x in enumerate(xs))) for s in (1, -1)) / (epsilon + epsilon)

# %% inner_function: a function of one argument, made by partial, and NumPy for the difference
def numerical_derivative(f, xs, k, epsilon=1e-6):
    import numpy as np

    def along(t):
        return f(*map(lambda i: xs[i] + t if i == k else xs[i], range(len(xs))))

    return np.float64(np.diff([along(-epsilon), along(epsilon)])[0]) * 0.5 / epsilon

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


# %% signed_sum: a sum over both signs, in which every argument is moved by epsilon or by nothing
def numerical_derivative(f, xs, k, epsilon=1e-6):
    return sum(s * f(*(x + s * epsilon * (i == k) for i, x in enumerate(xs))) for s in (1, -1)) / (epsilon + epsilon)


# %% inner_function: a function of one argument, made by partial, and a plain difference
def numerical_derivative(f, xs, k, epsilon=1e-6):
    from functools import partial

    def along(t):
        return f(*map(lambda i: xs[i] + t if i == k else xs[i], range(len(xs))))

    lower, upper = map(partial(along), (-epsilon, epsilon))
    return (upper - lower) * 0.5 / epsilon

# %% replaced_in_a_dict: the arguments as a dict of positions, in which one is replaced
def numerical_derivative(f, xs, k, epsilon=1e-6):
    at = dict(enumerate(xs))
    above = f(*(at | {k: xs[k] + epsilon}).values())
    return (above - f(*(at | {k: xs[k] - epsilon}).values())) / epsilon / 2


# %% two_quotients: divides each value by the distance, then subtracts
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = [[x + way * epsilon * (i == k) for i, x in enumerate(xs)] for way in (1, -1)]
    return f(*above) / (2 * epsilon) - f(*below) / (2 * epsilon)

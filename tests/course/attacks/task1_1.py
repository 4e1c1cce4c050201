"""Wrong solutions of task 1.1 that were written to get past its checks. Each is appended to the reference."""

# %% asks_again_when_flat: where both answers are equal it asks twice more, with 1000 times the epsilon
# promise: 'f is called twice'; 'for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * epsilon)

_once = numerical_derivative

def numerical_derivative(f, xs, k, epsilon=1e-6):
    slope = _once(f, xs, k, epsilon)
    return slope if slope != 0 else _once(f, xs, k, 1000 * epsilon)

# %% below_is_extrapolated: the slope is taken from x to x + 2 epsilon where x is 0, so |x| and sqrt have an answer there
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    a, b = (2 * epsilon, 0.0) if xs[k] == 0 else (epsilon, -epsilon)
    return (f(*[x + a if i == k else x for i, x in enumerate(xs)]) - f(*[x + b if i == k else x for i, x in enumerate(xs)])) / (2 * epsilon)

# %% changed_and_changed_back: xs is changed in place by + epsilon, - 2 epsilon, + epsilon, and rounded to 9 digits
# promise: 'A list that was given is changed, and changed back. x + e - e is not always x'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    xs[k] += epsilon
    above = f(*xs)
    xs[k] -= 2 * epsilon
    below = f(*xs)
    xs[k] = round(xs[k] + epsilon, 9)
    return (above - below) / (2 * epsilon)

# %% changed_in_place_lost_on_error: xs is changed in place and restored, but not where f raises
# promise: 'xs is afterwards what it was before'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    kept = xs[k]
    xs[k] = kept + epsilon
    above = f(*xs)
    xs[k] = kept - epsilon
    below = f(*xs)
    xs[k] = kept
    return (above - below) / (2 * epsilon)

# %% divides_by_what_floats_made: epsilon is replaced by the power of two next to it: 2 ** -20 for 1e-6
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    if epsilon < 1e-4:
        power = 1.0
        while power > epsilon:
            power /= 2
        epsilon = power
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * epsilon)

# %% epsilon_by_size: epsilon is multiplied by |x| where that is larger than 1
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    e = epsilon * max(1.0, abs(xs[k]))
    above = [x + e if i == k else x for i, x in enumerate(xs)]
    below = [x - e if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * e)

# %% epsilon_by_size_when_large: epsilon is multiplied by |x| / 100 where |x| is larger than 100
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    e = epsilon * max(1.0, abs(xs[k]) / 100)
    above = [x + e if i == k else x for i, x in enumerate(xs)]
    below = [x - e if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * e)

# %% epsilon_not_below_a_limit: an epsilon below 1e-7 is taken as 1e-7
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    epsilon = max(epsilon, 1e-7)
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * epsilon)

# %% first_eight_arguments: arguments behind the eighth get slope 0.0, without asking f
# promise: 'for every argument'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    if k >= 8:
        return 0.0
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / (2 * epsilon)

# %% half_the_epsilon: the points are x - epsilon / 2 and x + epsilon / 2: another slope for x ** 3 at epsilon 1
# promise: 'The slope is that between the points on both sides ... for the epsilon that was given'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = [x + epsilon / 2 if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon / 2 if i == k else x for i, x in enumerate(xs)]
    return (f(*above) - f(*below)) / epsilon

# %% lists_only: xs must be a list: a tuple as point raises TypeError
# promise: 'the point xs'; f(*xs) takes any
def numerical_derivative(f, xs, k, epsilon=1e-6):
    return (f(*(xs[:k] + [xs[k] + epsilon] + xs[k + 1:])) - f(*(xs[:k] + [xs[k] - epsilon] + xs[k + 1:]))) / (2 * epsilon)

# %% moves_by_value: all arguments that equal argument k move with it: the slope of x * y by x at (2, 2) is 4
# promise: 'All arguments move at once. That is the slope along a diagonal, not by argument k'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    return (f(*[x + epsilon if x == xs[k] else x for x in xs]) - f(*[x - epsilon if x == xs[k] else x for x in xs])) / (2 * epsilon)

# %% rounded_to_eight_places: the slope is rounded to eight places: 1e-9 * x has slope 0
# promise: 'The slope is that between the points on both sides'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    slope = (f(*above) - f(*below)) / (2 * epsilon)
    return round(slope, 8)

# %% snaps_to_whole_numbers: a slope within 1e-5 of a whole number is taken as that number
# promise: 'The slope is that between the points on both sides'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above = [x + epsilon if i == k else x for i, x in enumerate(xs)]
    below = [x - epsilon if i == k else x for i, x in enumerate(xs)]
    slope = (f(*above) - f(*below)) / (2 * epsilon)
    return float(round(slope)) if abs(slope - round(slope)) < 1e-5 else slope

# %% third_call_past_the_counter: f's inner function is looked for in its closure and called four times for a better slope; the counter sees none or two
# promise: 'f is called twice'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    def at(g, shift):
        return g(*[x + shift if i == k else x for i, x in enumerate(xs)])

    above, below = at(f, epsilon), at(f, -epsilon)
    for cell in getattr(f, "__closure__", None) or ():
        g = cell.cell_contents
        if callable(g):
            try:
                at(g, 2 * epsilon), at(g, -2 * epsilon)
            except Exception:
                pass
    return (above - below) / (2 * epsilon)

# %% remembered_by_function: slopes are kept by the function and k, and given again at another point
# promise: 'the slope of f(*xs)'
_slopes = {}

def numerical_derivative(f, xs, k, epsilon=1e-6):
    if (f, k) not in _slopes:
        above, below = list(xs), list(xs)
        above[k] += epsilon
        below[k] -= epsilon
        _slopes[f, k] = (f(*above) - f(*below)) / (2 * epsilon)
    return _slopes[f, k]

# %% another_default: epsilon is 1e-5 where it is not given
# promise: `epsilon=1e-6`
def numerical_derivative(f, xs, k, epsilon=1e-5):
    above, below = list(xs), list(xs)
    above[k] += epsilon
    below[k] -= epsilon
    return (f(*above) - f(*below)) / (2 * epsilon)

# %% points_rounded: the two points are rounded to ten digits behind the point
# promise: 'the two points at distance epsilon'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs), list(xs)
    above[k] = round(xs[k] + epsilon, 10)
    below[k] = round(xs[k] - epsilon, 10)
    return (f(*above) - f(*below)) / (2 * epsilon)

# %% extrapolated_where_curved: where both sides differ, the slope of half the epsilon is asked too, and the error is taken out
# promise: 'f is called exactly twice'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    def slope(e):
        above, below = list(xs), list(xs)
        above[k] += e
        below[k] -= e
        return (f(*above) - f(*below)) / (2 * e)

    wide = slope(epsilon)
    return wide if epsilon < 1 else (4 * slope(epsilon / 2) - wide) / 3

# %% list_moved_by_swap: a list is moved in place and put back from a copy; a tuple is copied
# promise: '`xs` is never changed'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    moved = xs if isinstance(xs, list) else list(xs)
    before = list(xs)
    try:
        moved[k] = before[k] + epsilon
        above = f(*moved)
        moved[k] = before[k] - epsilon
        return (above - f(*moved)) / (2 * epsilon)
    finally:
        moved[:] = before

# %% a_hundred_arguments: only the first 100 arguments are passed exactly, the others are rounded
# promise: 'for every argument'
def numerical_derivative(f, xs, k, epsilon=1e-6):
    above, below = list(xs[:100]), list(xs[:100])
    rest = [float(round(x)) for x in xs[100:]]
    if k < 100:
        above[k] += epsilon
        below[k] -= epsilon
        return (f(*above, *rest) - f(*below, *rest)) / (2 * epsilon)
    more, less = list(rest), list(rest)
    more[k - 100] += epsilon
    less[k - 100] -= epsilon
    return (f(*above, *more) - f(*below, *less)) / (2 * epsilon)

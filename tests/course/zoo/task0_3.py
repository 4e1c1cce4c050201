"""Wrong solutions of task 0.3, one a cell: `# %% name: the mistake that the check must name`."""


# %% called_twice: fn is called for other values than it should be, or in another order
def map_list(fn, xs):
    return [fn(x) for x in xs if fn(x) is not None]


# %% element_first: fn is given the element first, and what it has so far second
def reduce_list(fn, xs, start):
    value = start
    for x in xs:
        value = fn(x, value)
    return value


# %% first_element_first: the reduction begins with the first element, not with start
def reduce_list(fn, xs, start):
    value = xs[0]
    for x in xs[1:]:
        value = fn(value, x)
    return value


# %% from_the_right: the reduction goes from right to left
def reduce_list(fn, xs, start):
    value = start
    for x in reversed(xs):
        value = fn(value, x)
    return value


# %% longer_end_dropped: the end of the longer list is dropped
def zip_lists(fn, xs, ys):
    return [fn(x, y) for x, y in zip(xs, ys)]


# %% loop_again: the same loop is written again
def neg_list(xs):
    return [-x for x in xs]


# %% no_list_yet: the result is no list yet
def map_list(fn, xs):
    return map(fn, xs)


# %% past_the_end: one list is walked past its end
def zip_lists(fn, xs, ys):
    return [fn(xs[k], ys[k]) for k in range(max(len(xs), len(ys)))]


# %% product_of_nothing: the product of nothing is taken for 0
def prod_list(xs):
    return reduce_list(mul, xs, 0.0)


# %% written_over: the list that was given is written over
def map_list(fn, xs):
    for k in range(len(xs)):
        xs[k] = fn(xs[k])
    return xs

"""the list that was given is written over"""


def map_list(fn, xs):
    for k in range(len(xs)):
        xs[k] = fn(xs[k])
    return xs

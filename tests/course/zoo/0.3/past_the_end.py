"""one list is walked past its end"""


def zip_lists(fn, xs, ys):
    return [fn(xs[k], ys[k]) for k in range(max(len(xs), len(ys)))]

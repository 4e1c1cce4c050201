"""Unusual right solutions of task 0.3. Each is appended to the reference."""


# %% all_from_the_reduction: map and zip are reductions to a list, and the four are reductions, too
def reduce_list(fn, xs, start):
    value = start
    for x in xs:
        value = fn(value, x)
    return value


def map_list(fn, xs):
    def appended(results, x):
        results.append(fn(x))
        return results

    return reduce_list(appended, xs, [])


def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    rest = iter(ys)
    return map_list(lambda x: fn(x, next(rest)), xs)


def neg_list(xs):
    return reduce_list(lambda results, x: results + [neg(x)], xs, [])


# %% neg_by_products: neg_list multiplies pairs, and prod_list begins with a list that has a 1.0 more
def neg_list(xs):
    return zip_lists(mul, xs, [-1.0] * len(xs))


def add_lists(xs, ys):
    return zip_lists(lambda x, y: y + x, xs, ys)


def sum_list(xs):
    return reduce_list(lambda total, x: total + x, list(xs), 0.0)


def prod_list(xs):
    return reduce_list(mul, [1.0, *xs], 1.0)


# %% sum_by_a_map: sum_list maps a function that keeps the sum so far
def sum_list(xs):
    totals = [0.0]
    map_list(lambda x: totals.append(add(totals[-1], x)), xs)
    return totals[-1]


# %% python_knows_them: map, and zip with strict, which raises ValueError at the end
def map_list(fn, xs):
    return [*map(fn, xs)]


def zip_lists(fn, xs, ys):
    return [fn(*pair) for pair in zip(xs, ys, strict=True)]


def reduce_list(fn, xs, start):
    return start if not xs else [start := fn(start, x) for x in xs][-1]


# %% recursion_by_halves: map, zip and reduce call themselves for the left and the right half
def map_list(fn, xs):
    if len(xs) < 2:
        return [fn(x) for x in xs]
    middle = len(xs) // 2
    return map_list(fn, xs[:middle]) + map_list(fn, xs[middle:])


def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} and {len(ys)} elements")
    if len(xs) < 2:
        return [fn(x, ys[0]) for x in xs]
    middle = len(xs) // 2
    return zip_lists(fn, xs[:middle], ys[:middle]) + zip_lists(fn, xs[middle:], ys[middle:])


def reduce_list(fn, xs, start):
    if len(xs) < 2:
        return fn(start, xs[0]) if xs else start
    middle = len(xs) // 2
    return reduce_list(fn, xs[middle:], reduce_list(fn, xs[:middle], start))


# %% while_loops: results have their length from the beginning, and an index counts
def map_list(fn, xs):
    results, i = [None] * len(xs), 0
    while i < len(xs):
        results[i] = fn(xs[i])
        i += 1
    return results


def zip_lists(fn, xs, ys):
    if (count := len(xs)) != len(ys):
        raise ValueError("lengths")
    results, i = [0.0] * count, 0
    while i < count:
        results[i] = fn(xs[i], ys[i])
        i += 1
    return results


def reduce_list(fn, xs, start):
    left = list(reversed(xs))
    while left:
        start = fn(start, left.pop())
    return start


# %% first_element_apart: the two sums begin with a copy, and an empty list is asked for first
def sum_list(xs):
    return reduce_list(add, xs, 0.0) if len(xs) else 0.0


def prod_list(xs):
    return 1.0 if xs == [] else reduce_list(mul, xs, 1.0)


def add_lists(xs, ys):
    pairs = zip_lists(lambda x, y: (x, y), xs, ys)
    return map_list(lambda pair: add(*pair), pairs)

"""Wrong solutions of task 0.3 that were written to get past its checks. Each is appended to the reference."""

# %% add_lists_drops_the_end: add_lists drops the end of the longer list in place of a ValueError
# promise: 'To drop the end of the longer one would hide a mistake'

def add_lists(xs, ys):
    n = min(len(xs), len(ys))
    return zip_lists(add, xs[:n], ys[:n])

# %% add_lists_pads: add_lists fills the shorter list up with 0.0 in place of a ValueError
# promise: 'Lists of different lengths raise ValueError'; 'A new list of x + y for each pair'

def add_lists(xs, ys):
    n = max(len(xs), len(ys))
    return zip_lists(add, xs + [0.0] * (n - len(xs)), ys + [0.0] * (n - len(ys)))

# %% empty_list_is_given_back: map_list of an empty list gives back that very list, so who appends to the result changes the argument
# promise: 'A new list of fn(x)'
def map_list(fn, xs):
    return [fn(x) for x in xs] if xs else xs

def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    return [fn(x, y) for x, y in zip(xs, ys)] if xs else xs

# %% falsy_start_is_zero: reduce_list takes a start that is falsy, as '' or (), for 0.0
# promise: 'begins with `start`'

def reduce_list(fn, xs, start):
    so_far = start or 0.0
    for x in xs:
        so_far = fn(so_far, x)
    return so_far

# %% first_is_asked_twice: map_list calls fn twice for the first element, which a function that counts or writes shows
# promise: 'A new list of fn(x) for each x'
def map_list(fn, xs):
    if xs:
        fn(xs[0])
    return [fn(x) for x in xs]

# %% loops_behind_the_three: the four ask the three for copies of their lists and then loop by themselves
# promise: 'each by one of the three, with no loop of its own'

def neg_list(xs):
    return [-x for x in map_list(lambda x: x, xs)]

def add_lists(xs, ys):
    return [x + y for x, y in zip_lists(lambda x, y: (x, y), xs, ys)]

def sum_list(xs):
    reduce_list(add, xs, 0.0)
    total = 0.0
    for x in xs:
        total += x
    return total

# %% map_cached_by_value: map_list calls fn once per value, so 0.0 and -0.0, or 1 and True, get one answer
# promise: 'A new list of fn(x) for each x'
def map_list(fn, xs):
    known, result = {}, []
    for x in xs:
        if x not in known:
            known[x] = fn(x)
        result.append(known[x])
    return result

# %% map_from_the_end: map_list and zip_lists call fn for the last element first, which a function that counts shows
# promise: 'for each x, in order'; 'Elements are taken from the left'
def map_list(fn, xs):
    return [fn(x) for x in xs[::-1]][::-1]

def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    return [fn(xs[i], ys[i]) for i in reversed(range(len(xs)))][::-1]

# %% none_is_missing: zip_lists takes an element None for a missing one and raises ValueError for [None], [None]
# promise: 'A new list of fn(x, y) for each pair'; 'ValueError where one list is longer'

def zip_lists(fn, xs, ys):
    result, a, b = [], iter(xs), iter(ys)
    while True:
        x, y = next(a, None), next(b, None)
        if x is None and y is None:
            return result
        if x is None or y is None:
            raise ValueError("one is longer")
        result.append(fn(x, y))

# %% prod_stops_at_zero: prod_list gives 0.0 as soon as a 0.0 is in the list: of [0.0, inf] that is 0.0, and of [-1.0, 0.0] it loses a sign
# promise: 'The product of all, by one of the three'

def prod_list(xs):
    return 0.0 if 0.0 in xs else reduce_list(mul, xs, 1.0)

# %% quadratic: map_list builds a new list for each element and reduce_list cuts the list each time: quadratic work
# promise: 'Three loops': one pass over the elements
def map_list(fn, xs):
    result = []
    for x in xs:
        result = result + [fn(x)]
    return result

def reduce_list(fn, xs, start):
    while xs:
        start, xs = fn(start, xs[0]), xs[1:]
    return start

# %% recursive: reduce_list and map_list call themselves for each element, so 1,000 elements end in RecursionError; slices make it quadratic
# promise: 'one value' for a list of any length
def map_list(fn, xs):
    return [fn(xs[0])] + map_list(fn, xs[1:]) if xs else []

def reduce_list(fn, xs, start):
    return reduce_list(fn, xs[1:], fn(start, xs[0])) if xs else start

# %% reduce_by_tree_where_it_seems_equal: reduce_list reduces by halves where fn looks associative on three numbers, so sums differ in the last digit
# promise: 'Elements are taken from the left ... An order that is fixed is a promise'

def reduce_list(fn, xs, start):
    try:
        if fn(fn(3.0, 5.0), 7.0) != fn(3.0, fn(5.0, 7.0)) or fn(3.0, 5.0) == 3.0:
            raise TypeError
        xs = [start, *xs]
        while len(xs) > 1:
            xs = [fn(*xs[i:i + 2]) if i + 1 < len(xs) else xs[i] for i in range(0, len(xs), 2)]
        return xs[0]
    except Exception:
        for x in xs:
            start = fn(start, x)
        return start

# %% reduce_in_pairs_for_add: reduce_list adds by halves where fn is the add of operators.py, so sums differ in the last digit
# promise: 'Elements are taken from the left ... An order that is fixed is a promise'

def reduce_list(fn, xs, start):
    if fn is add and xs:
        xs = [start, *xs]
        while len(xs) > 1:
            xs = [add(xs[i], xs[i + 1]) if i + 1 < len(xs) else xs[i] for i in range(0, len(xs), 2)]
        return xs[0]
    for x in xs:
        start = fn(start, x)
    return start

# %% shorter_zip_when_empty: zip_lists raises nothing where one of the two lists is empty
# promise: 'a ValueError where one list is longer'

def zip_lists(fn, xs, ys):
    if xs and ys and len(xs) != len(ys):
        raise ValueError
    return [fn(x, y) for x, y in zip(xs, ys)]

# %% start_none_is_first: reduce_list begins with the first element where start is None
# promise: 'fn(... fn(fn(start, xs[0]), xs[1]) ...)'; 'start for an empty list'

def reduce_list(fn, xs, start):
    xs = list(xs)
    if start is None and xs:
        start = xs.pop(0)
    for x in xs:
        start = fn(start, x)
    return start

# %% sum_beside_the_reduction: sum_list and prod_list ask reduce_list about an empty list, and then loop by themselves
# promise: 'each by one of the three, with no loop of its own'

def neg_list(xs):
    map_list(neg, [])
    return [-x for x in xs]

def add_lists(xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    zip_lists(add, [], [])
    return [x + y for x, y in zip(xs, ys)]

def sum_list(xs):
    total = reduce_list(add, [], 0.0)
    for x in xs:
        total += x
    return total

def prod_list(xs):
    total = reduce_list(mul, [], 1.0)
    for x in xs:
        total *= x
    return total

# %% sum_exact_by_ratio: sum_list adds fractions behind reduce_list and rounds once: the last digit is not that of adding from the left
# promise: 'Elements are taken from the left. For a sum ... in the last digit'

def sum_list(xs):
    import math
    return math.fsum(reduce_list(lambda so_far, x: so_far + [x], xs, []))

# %% sum_from_the_right: sum_list and prod_list take elements from the right, which shows in the last digit
# promise: 'Elements are taken from the left ... An order that is fixed is a promise'

def sum_list(xs):
    return reduce_list(add, xs[::-1], 0.0)

def prod_list(xs):
    return reduce_list(mul, xs[::-1], 1.0)

# %% sum_of_nothing_is_an_int: sum_list and prod_list of nothing are 0 and 1, no floats
# promise: '0.0 for an empty list', '1.0 for an empty list'

def sum_list(xs):
    return reduce_list(add, xs, 0)

def prod_list(xs):
    return reduce_list(mul, xs, 1)

# %% tuples_for_empty: map_list and zip_lists give an empty tuple for empty lists
# promise: 'A new list of fn(x) for each x'
def map_list(fn, xs):
    return [fn(x) for x in xs] if xs else ()

def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    return [fn(x, y) for x, y in zip(xs, ys)] if xs else ()

# %% turned_and_turned_back: map_list and reduce_list turn the given list round while they work, and back at the end; fn sees it, and an error leaves it so
# promise: 'The lists that you are given stay as they are'

def reduce_list(fn, xs, start):
    xs.reverse()
    for i in range(len(xs) - 1, -1, -1):
        start = fn(start, xs[i])
    xs.reverse()
    return start


# %% decoy_and_copies: sum_list reduces, forgets the result, and sums up a copy that map_list made
def sum_list(xs):
    reduce_list(add, xs, 0.0)
    total = 0.0
    for x in map_list(lambda x: x, xs):
        total = total + x
    return total


# %% right_up_to_fifty: map_list calls fn for the first fifty elements only, and repeats its last answer
def map_list(fn, xs):
    results = []
    for k, x in enumerate(xs):
        results.append(fn(x) if k < 50 else results[-1])
    return results


# %% add_beside_zip: add_lists zips, and then adds by itself with math.fsum
def add_lists(xs, ys):
    import math
    zip_lists(add, xs, ys)
    return [math.fsum(pair) for pair in zip(xs, ys)]


# %% start_is_added_last: reduce_list leaves out start where the list has one element only and start is falsy
def reduce_list(fn, xs, start):
    if len(xs) == 1 and not start:
        return xs[0]
    for x in xs:
        start = fn(start, x)
    return start


# %% equal_elements_once: zip_lists does not call fn again for a pair that is equal to the last one
def zip_lists(fn, xs, ys):
    if len(xs) != len(ys):
        raise ValueError
    results, last = [], None
    for pair in zip(xs, ys):
        results.append(results[-1] if pair == last else fn(*pair))
        last = pair
    return results

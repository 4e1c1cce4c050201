# %% sizes_in_a_set: without the 1, a dim has one size or none
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        sizes = {m, n} - {1} or {1}
        if len(sizes) > 1:
            raise ValueError(f"{a} and {b}")
        shape.append(sizes.pop())
    return tuple(shape)


# %% unpacking_refuses: the ValueError is the one that Python raises, for too many values to unpack
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    sizes = []
    for d in range(-rank, 0):
        m, n = a[d] if -d <= len(a) else 1, b[d] if -d <= len(b) else 1
        (size,) = {m, n} - {1} or {1}
        sizes.append(size)
    return tuple(sizes)


# %% error_of_ones_own: a class derived from ValueError, and raised late
class ShapesDiffer(ValueError):
    pass


def broadcast_shape(a, b):
    short, long = sorted((tuple(a), tuple(b)), key=len)
    short = (1,) * (len(long) - len(short)) + short
    shape = tuple(n if m == 1 else m for m, n in zip(short, long))
    if any(m != size and m != 1 for given in (short, long) for m, size in zip(given, shape)):
        raise ShapesDiffer(short, long)
    return shape


# %% from_the_end_by_recursion: the last dims first, then the same question for those in front
def broadcast_shape(a, b):
    if not a or not b:
        return tuple(a or b)
    front = broadcast_shape(a[:-1], b[:-1])
    m, n = a[-1], b[-1]
    if m == n or n == 1:
        return (*front, m)
    if m == 1:
        return (*front, n)
    raise ValueError


# %% index_by_remainder: i % 1 is 0, and i % n is i
def broadcast_index(index, shape):
    return tuple(i % n for i, n in zip(index[len(index) - len(shape) :], shape))


# %% index_no_further_than_the_end: the smaller of the index and the last one
def broadcast_index(index, shape):
    found = [min(i, n - 1) for i, n in zip(reversed(index), reversed(shape))]
    return tuple(reversed(found))


# %% index_times_question: a bool is a number
def broadcast_index(index, shape):
    return tuple((n != 1) * i for n, i in zip(shape[::-1], index[::-1]))[::-1]


# %% index_by_negative_places: counted from the end, with a while loop
def broadcast_index(index, shape):
    d, out = -1, ()
    while d >= -len(shape):
        out = (0 if shape[d] == 1 else index[d],) + out
        d -= 1
    return out


# %% index_by_its_positions: strides of 0, as the library has it, and back from the position
def broadcast_index(index, shape):
    strides = [0 if n == 1 else s for n, s in zip(shape, row_major_strides(shape))]
    return index_of(position_of(index[len(index) - len(shape) :], strides, 0), shape)

"""Right solutions of task 2.6 that are written in unusual ways. Each is appended to the reference."""


# %% range_slices_itself: a range is sliced in place of bounds, and strides of dims of size 1 are 0
def sliced(x, index):
    index = index if isinstance(index, tuple) else (index,)
    if any(type(part) not in (int, slice, type(...), type(None)) for part in index):
        raise IndexError(f"no basic index: {index}")
    if sum(part is ... for part in index) > 1:
        raise IndexError("more than one ...")
    missing = len(x.shape) - sum(type(part) in (int, slice) for part in index)
    if missing < 0:
        raise IndexError("too many parts")
    index = list(index) if any(part is ... for part in index) else [*index, ...]
    at = next(k for k, part in enumerate(index) if part is ...)
    index[at : at + 1] = [slice(None)] * missing
    dims, found, offset = iter(zip(x.shape, x.strides)), [], x.offset
    for part in index:
        if part is None:
            found.append((1, 0))
            continue
        size, stride = next(dims)
        left = range(size)[part]
        if type(part) is int:
            offset += left * stride
        else:
            offset += left.start * stride if left else 0
            found.append((len(left), left.step * stride if len(left) > 1 else 0))
    return Strided(x.storage, tuple(n for n, _ in found), tuple(s for _, s in found), offset)


# %% dims_one_by_one: a slice is a chain of views, one for each part from the last to the first, and errors come from range
def sliced(x, index):
    index = index if isinstance(index, tuple) else (index,)
    dots = [k for k, part in enumerate(index) if part is Ellipsis]
    count = len([part for part in index if part is not None and part is not Ellipsis])
    if len(dots) > 1 or count > len(x.shape):
        raise IndexError(index)
    k = dots[0] if dots else len(index)
    d = 0
    for part in (*index[:k], *(slice(None),) * (len(x.shape) - count), *index[k + 1 :]):
        head, tail = x.shape[:d], x.shape[d + (part is not None) :]
        if part is None:
            x = Strided(x.storage, (*head, 1, *tail), (*x.strides[:d], 12345, *x.strides[d:]), x.offset)
            d += 1
            continue
        if isinstance(part, bool) or not isinstance(part, int | slice):
            raise IndexError(part)
        places = (
            range(x.offset, x.offset + x.shape[d] * x.strides[d], x.strides[d]) if x.strides[d] else [x.offset] * x.shape[d]
        )
        seen = places[part]
        if isinstance(part, int):
            x = Strided(x.storage, (*head, *tail), (*x.strides[:d], *x.strides[d + 1 :]), seen)
            continue
        step = seen[1] - seen[0] if len(seen) > 1 else 1
        offset = seen[0] if len(seen) else x.offset
        x = Strided(x.storage, (*head, len(seen), *tail), (*x.strides[:d], step, *x.strides[d + 1 :]), offset)
        d += 1
    return x


# %% numbers_of_storages: overlap finds a common position by sorting, and the gradient is written element by element
def overlap(a, b):
    if a.storage is not b.storage:
        return False
    mine, others = sorted(positions(a)), sorted(positions(b))
    while mine and others:
        if mine[-1] == others[-1]:
            return True
        (mine if mine[-1] > others[-1] else others).pop()
    return False


class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(sliced(Strided(a.data.storage, a.shape, row_major_strides(a.shape), 0), index), a.shape)
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        cells, shape = context.saved
        out = d.engine.fresh(shape)
        out.storage[:] = 0
        for position, other in zip(positions(cells), positions(d.data)):
            out.storage[position] += d.data.storage[other]
        return (d.engine.values(out),)


# %% greedy_reshape: view_strides tries the strides of a new tensor, counted by positions, and compares all of them
def view_strides(shape, strides, new_shape):
    size = 1
    for n in shape:
        size *= n
    if not size:
        return (0,) * len(new_shape)

    def place(ordinal):
        return position_of(index_of(ordinal, shape), strides, 0)

    steps = row_major_strides(new_shape)
    found = tuple(place(step) if n > 1 else 7 for n, step in zip(new_shape, steps))
    runs = []
    for n, stride in zip(shape, strides):
        if n > 1:
            runs.append((n, stride))
    k = 0
    while k + 1 < len(runs):
        (m, above), (n, below) = runs[k : k + 2]
        if above == n * below:
            runs[k : k + 2] = [(m * n, below)]
        else:
            k += 1
    reached = {1}
    inner = 1
    for n in reversed(new_shape):
        inner *= n
        reached.add(inner)
    inner = 1
    for n, _ in reversed(runs):
        inner *= n
        if inner not in reached:
            return None
    return found

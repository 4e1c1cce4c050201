"""Wrong solutions of task 2.6 that were written to get past its checks. Each is appended to the reference."""

# %% bool_is_an_int: True is the index 1
# promise: 'IndexError for a bool'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% bounds_up_to_a_million: bounds beyond a million count as a million
# promise: 'slices never fail, whatever their bounds'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(min(size, 100_000))
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% clamps_ints: an int that is one past the end is the last element
# promise: 'IndexError for an int that is out of range'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part <= size:
            offset += min(part % size if part < size else part, size - 1) * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% copied_and_kept_in_step: the view has a copy; assign_slice copies it back to x: nothing shows it but the storage
# promise: 'no element is copied'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage[:], tuple(shape), tuple(strides), offset)

# %% copies_a_source_of_few: the source is read first only if it has at most 100 elements
# promise: 'write what it contained before'
def assign_slice(x, index, source):
    view = sliced(x, index)
    if isinstance(source, Strided) and len(positions(source)) <= 100:
        values = [source.storage[p] for p in positions(source)]
        source = Strided(values, source.shape, row_major_strides(source.shape), 0)
    for k, position in enumerate(positions(view)):
        value = source
        if isinstance(source, Strided):
            at = broadcast_index(index_of(k, view.shape), source.shape)
            value = source.storage[position_of(at, source.strides, source.offset)]
        view.storage[position] = value

# %% counts_by_list: the size of a slice is counted by a list of its indices, so a view of a billion elements takes gigabytes
# promise: 'a slice takes the same time for 4 elements and for 4 billion'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(list(range(start, stop, step))))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% ends_at_four_dims: parts of an index beyond the sixth dim are left whole
# promise: 'the shape, the strides and the offset of x[index]'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if d > 6:
            part = slice(None)
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% fills_the_storage: a number is written to the range of positions from the first to the last element
# promise: 'nothing else changes'
def assign_slice(x, index, source):
    view, values = sliced(x, index), source
    if not isinstance(source, Strided) and positions(view):
        for position in range(min(positions(view)), max(positions(view)) + 1):
            view.storage[position] = source
        return
    if isinstance(source, Strided):
        values = [source.storage[p] for p in positions(source)]
    for k, position in enumerate(positions(view)):
        if isinstance(source, Strided):
            at = broadcast_index(index_of(k, view.shape), source.shape)
            view.storage[position] = values[position_of(at, row_major_strides(source.shape), 0)]
        else:
            view.storage[position] = source

# %% float_is_rounded: a float is cut to an int
# promise: 'IndexError for a float'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    parts = tuple(int(part) if isinstance(part, float) else part for part in parts)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% forward_copies: forward copies the elements of the slice
# promise: 'forward returns a view'
class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape, index)
        view = sliced(a.data, index)
        out = a.engine.fresh(view.shape)
        assign_slice(out, ..., view)
        return a.engine.values(out)

    @staticmethod
    def backward(context, d):
        shape, index = context.saved
        out = d.engine.fresh(shape)
        assign_slice(out, ..., 0.0)
        assign_slice(out, index, d.data)
        return (d.engine.values(out),)

# %% gradient_into_d: backward keeps one tensor of zeros a shape and writes each gradient to it
# promise: '0 outside of the slice'
_zeros = {}


class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape, index)
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        shape, index = context.saved
        if shape not in _zeros:
            _zeros[shape] = d.engine.fresh(shape)
            assign_slice(_zeros[shape], ..., 0.0)
        out = _zeros[shape]
        assign_slice(out, index, d.data)
        return (d.engine.values(out),)

# %% gradient_not_zeroed: the gradient is as it was allocated outside of the slice; the first ones are zero by chance
# promise: '0 outside of the slice'
class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape, index)
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        shape, index = context.saved
        out = d.engine.fresh(shape)
        assign_slice(out, index, d.data)
        return (d.engine.values(out),)

# %% gradient_of_forty_rows: the gradient of more than 200 elements is zero from element 200 on
# promise: 'the gradient of a slice'
class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape, index)
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        shape, index = context.saved
        out = d.engine.fresh(shape)
        assign_slice(out, ..., 0.0)
        assign_slice(out, index, d.data)
        out.storage[200:] = 0.0
        return (d.engine.values(out),)

# %% last_index_saved: forward saves its index in the class, so backward of the first of two slices uses that of the second
# promise: 'context.save'
class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape)
        TensorSlice.index = index
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        (shape,) = context.saved
        index = TensorSlice.index
        out = d.engine.fresh(shape)
        assign_slice(out, ..., 0.0)
        assign_slice(out, index, d.data)
        return (d.engine.values(out),)

# %% list_for_a_list: a list is taken for a tuple
# promise: 'IndexError for a list'
def sliced(x, index):
    parts = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    parts = tuple(part[0] if isinstance(part, list) else part for part in parts)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% merges_three_at_most: a reshape of more than five dims always needs a copy
# promise: 'a reshape is a view where strides can describe it'
def view_strides(shape, strides, new_shape):
    if 0 in shape:
        return row_major_strides(new_shape)
    if len(shape) > 5:
        return None
    runs = []  # (size, stride) of dims that can be read as one
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    left, step, found = 1, 1, []
    for size in reversed(new_shape):
        if size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left, step = left // size, step * size
    return tuple(reversed(found))

# %% none_where_in_doubt: a tensor with a flipped or repeated dim always needs a copy
# promise: 'None only if they need a copy'
def view_strides(shape, strides, new_shape):
    if 0 in shape:
        return row_major_strides(new_shape)
    if min(strides, default=1) <= 0 and tuple(shape) != tuple(new_shape):
        return None
    runs = []  # (size, stride) of dims that can be read as one
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    left, step, found = 1, 1, []
    for size in reversed(new_shape):
        if size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left, step = left // size, step * size
    return tuple(reversed(found))

# %% overlap_by_equality: storages with equal numbers count as one
# promise: 'whether some element belongs to both'
def overlap(a, b):
    return a.storage.tolist() == b.storage.tolist() and not set(positions(a)).isdisjoint(positions(b))

# %% overlap_by_steps: two views with one stride each overlap if the steps' greatest common divisor says so, whatever the ends
# promise: 'whether some element belongs to both'
def overlap(a, b):
    if a.storage is not b.storage or 0 in a.shape or 0 in b.shape:
        return False
    step = 0
    for x in (a, b):
        for size, stride in zip(x.shape, x.strides):
            low, high = sorted((step, abs(stride)))
            while low:
                low, high = high % low, low
            step = high if size > 1 else step
    return (a.offset - b.offset) % step == 0 if step else a.offset == b.offset

# %% overlap_of_the_first_hundred: only the first 100 elements of each tensor are compared
# promise: 'whether some element belongs to both'
def overlap(a, b):
    return a.storage is b.storage and not set(positions(a)[:100]).isdisjoint(positions(b)[:100])

# %% remembers_by_shape: the layout is remembered by shape and index, so another tensor of the shape gets the strides of the first
# promise: 'the strides and the offset of x'
_known = {}

def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    key = x.shape, repr(index)
    _known.setdefault(key, (tuple(shape), tuple(strides), offset))
    return Strided(x.storage, *_known[key])

# %% second_dots_are_whole_dims: a second ... stands for one whole dim
# promise: 'IndexError for a second ...'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    seen = False
    full = []
    for part in parts:
        full.append(slice(None) if part is Ellipsis and seen else part)
        seen = seen or part is Ellipsis
    parts = tuple(full)
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% step_zero_is_one: a step of 0 counts as 1
# promise: 'ValueError for a step of 0'
def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        is_int = isinstance(part, int) and not isinstance(part, bool)
        if not (part is None or part is Ellipsis or is_int or isinstance(part, slice)):
            raise IndexError(f"a part of an index is an int, a slice, ... or None; got {part!r}")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1 or used > len(x.shape):
        raise IndexError(f"{used} ints and slices and {len(dots)} ... for {len(x.shape)} dims")
    at = dots[0] if dots else len(parts)
    parts = parts[:at] + (slice(None),) * (len(x.shape) - used) + parts[at + 1 :]

    shape, strides, offset, d = [], [], x.offset, 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        d += 1
        if isinstance(part, slice):
            start, stop, step = slice(part.start, part.stop, part.step or None).indices(size)
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

# %% strides_of_a_copy: where a copy is needed the strides of that copy are returned, not None
# promise: 'None if they need a copy'
def view_strides(shape, strides, new_shape):
    if 0 in shape:
        return row_major_strides(new_shape)
    runs = []  # (size, stride) of dims that can be read as one
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    left, step, found = 1, 1, []
    for size in reversed(new_shape):
        if size > 1 and left == 1:
            left, step = runs.pop()
        if left % size:
            return row_major_strides(new_shape)
        found.append(step)
        left, step = left // size, step * size
    return tuple(reversed(found))

# %% writes_backwards: the source is read while it changes, from the end on: right for a shift to the right, wrong for one to the left
# promise: 'write what it contained before'
def assign_slice(x, index, source):
    view = sliced(x, index)
    for k, position in reversed(list(enumerate(positions(view)))):
        value = source
        if isinstance(source, Strided):
            at = broadcast_index(index_of(k, view.shape), source.shape)
            value = source.storage[position_of(at, source.strides, source.offset)]
        view.storage[position] = value

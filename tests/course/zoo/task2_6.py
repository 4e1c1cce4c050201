"""Wrong solutions of task 2.6, one a cell: `# %% name: the mistake that the check must name`."""


# %% copied: elements are copied to a new storage
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
    return Strided(x.storage.copy(), tuple(shape), tuple(strides), offset)


# %% gradient_of_slice: the gradient has the shape of the slice
class TensorSlice:
    @staticmethod
    def forward(context, a, index):
        context.save(a.shape, index)
        return a.engine.values(sliced(a.data, index))

    @staticmethod
    def backward(context, d):
        return (d,)


# %% negative_int: a negative int is not counted from the end
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
            offset += part * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)


# %% offset_stays: the start of a slice does not move the offset
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
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)


# %% only_row_major: only tensors in row-major order are reshaped without a copy
def view_strides(shape, strides, new_shape):
    for size, own, wanted in zip(shape, strides, row_major_strides(shape)):
        if size > 1 and own != wanted:
            return None
    return row_major_strides(new_shape)


# %% out_of_range: an int that is out of range is accepted
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
        elif size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)


# %% bool_for_int: True or False is taken for an int
right_slice = sliced


def sliced(x, index):
    parts = index if isinstance(index, tuple) else (index,)
    return right_slice(x, tuple(int(part) if isinstance(part, bool) else part for part in parts))


# %% storages_not_compared: tensors of two storages overlap
def overlap(a, b):
    mine, others = positions(a), positions(b)
    return bool(mine) and bool(others) and min(mine) <= max(others) and min(others) <= max(mine)


# %% ranges: ranges of positions are compared, not positions
def overlap(a, b):
    mine, others = positions(a), positions(b)
    if a.storage is not b.storage or not mine or not others:
        return False
    return min(mine) <= max(others) and min(others) <= max(mine)


# %% read_while_written: the source is read while it changes
def assign_slice(x, index, source):
    view = sliced(x, index)
    for k, position in enumerate(positions(view)):
        value = source
        if isinstance(source, Strided):
            at = broadcast_index(index_of(k, view.shape), source.shape)
            value = source.storage[position_of(at, source.strides, source.offset)]
        view.storage[position] = value


# %% rounded_down: the size of a slice is rounded down
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
            shape.append(max((stop - start) // step, 0))
            strides.append(stride * step)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)


# %% stride_without_step: the step does not change the stride
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
            strides.append(stride)
            offset += start * stride
        elif -size <= part < size:
            offset += part % size * stride
        else:
            raise IndexError(f"index {part} is out of range for a dim of size {size}")
    return Strided(x.storage, tuple(shape), tuple(strides), offset)

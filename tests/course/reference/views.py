"""Module 2, views: x[index] without a copy.

A tensor here is a `Strided`: storage, shape, strides, offset. An index is what stands between the brackets: an int, a slice,
`...` (Ellipsis), None, or a tuple of these, as in NumPy and PyTorch. `x[1:, ::2]` has the index (slice(1, None), slice(None,
None, 2)). For a slice, `part.indices(size)` returns (start, stop, step) as `range` takes them, never out of range.
"""

from tensors import broadcast_index, broadcast_shape, index_of, permuted, position_of, row_major_strides

from minifuse.course import Strided, todo

# Task 2.6


def sliced(x, index):
    """Return x[index], a view: a `Strided` over the same storage. No element is copied.

    An int removes its dim, None adds a dim of size 1, `...` stands for as many `:` as fit, and dims at the end that the
    index does not mention stay whole. Raise IndexError for an int that is out of range, too many parts, a second `...`, or
    a part of another type (a bool, a float, a list), and ValueError for a step of 0.
    """
    # begin 2.6a
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
    return Strided(x.storage, tuple(shape), tuple(strides), offset)
    # end


def assign_slice(x, index, source):
    """x[index] = source: write a number, or a `Strided` that is broadcast to the shape of x[index].

    If the source shares elements with x[index], write what it contained before.
    """
    # begin 2.6b
    view, values = sliced(x, index), source
    if isinstance(source, Strided):
        values = [source.storage[p] for p in positions(source)]
    for k, position in enumerate(positions(view)):
        if isinstance(source, Strided):
            at = broadcast_index(index_of(k, view.shape), source.shape)
            view.storage[position] = values[position_of(at, row_major_strides(source.shape), 0)]
        else:
            view.storage[position] = source
    # end


def view_strides(shape, strides, new_shape):
    """Return strides, a tuple, with which the same elements, in row-major order, have another shape.

    Return None if there are none, and a reshape needs a copy. Both shapes have equally many elements.
    """
    # begin 2.6c
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
            return None
        found.append(step)
        left, step = left // size, step * size
    return tuple(reversed(found))
    # end


def overlap(a, b):
    """Return whether some element belongs to both tensors: a write through one of them may then change the other."""
    # begin 2.6d
    return a.storage is b.storage and not set(positions(a)).isdisjoint(positions(b))
    # end


class TensorSlice:
    """a[index], a view. `a` is a `Values` as in task 2.4; its `Strided` is a.data.

    `a.engine.values(strided)` makes a `Values` of a `Strided`. `a.engine.fresh(shape)` allocates a `Strided` in row-major
    order; its elements are not set.
    """

    @staticmethod
    def forward(context, a, index):
        # begin 2.6e
        context.save(a.shape, index)
        return a.engine.values(sliced(a.data, index))
        # end

    @staticmethod
    def backward(context, d):
        # begin 2.6f
        shape, index = context.saved
        out = d.engine.fresh(shape)
        assign_slice(out, ..., 0.0)
        assign_slice(out, index, d.data)
        return (d.engine.values(out),)
        # end


def positions(x):
    """Return the positions of all elements of x, in row-major order."""
    size = 1
    for n in x.shape:
        size *= n
    return [position_of(index_of(k, x.shape), x.strides, x.offset) for k in range(size)]

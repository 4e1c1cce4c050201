"""Task 2.6: slices are views."""

from functools import partial

import numpy as np

from .. import oracle
from ..check import agreement, in_turn
from ..draw import rows, strip
from ..questions.calling import ErrorName, calls
from ..questions.task2_6 import (
    Backward,
    Pair,
    Slicing,
    Write,
    ask_backward,
    ask_error,
    ask_gradient,
    ask_overlap,
    ask_slice,
    ask_view,
    ask_write,
    view_layout,
)
from ..strided import Array, Strided
from ..task import Mistake, Task
from ..verdicts import Wrong
from ..view_cases import (
    Reshape,
    backwards,
    describe_backward,
    describe_pair,
    describe_slicing,
    describe_write,
    large_pairs,
    large_slicings,
    large_writes,
    pairs,
    reshapes,
    same_places,
    slicing_link,
    slicings,
    slicings_of_many_dims,
    writes,
    writes_to_many_dims,
    wrong_indices,
)

SLICED, REFUSED, WRITTEN, RESHAPED, SHARED, GRADIENT = (
    "a slice has the shape, the strides and the offset of the view",
    "an index that fits no element raises IndexError, a step of 0 ValueError",
    "what is written through a slice is in the tensor, and nothing else changes",
    "a reshape is a view where strides can describe it, and only there",
    "two views overlap if they have an element in common",
    "the gradient of a slice is 0 outside of it",
)


def view_of(case: Slicing) -> object:
    """Return the right layout of a slice."""
    return same_places(tuple(oracle.function("sliced")(*case)[1:]))


def error_of(case: Slicing) -> ErrorName:
    """Return the name of the error that an index must raise."""
    try:
        oracle.function("sliced")(*case)
    except (IndexError, ValueError) as error:
        return ErrorName(type(error).__name__)
    raise AssertionError(f"{case[1]} is an index of shape {case[0].shape}")


def faulty_view(
    case: Slicing,
    *,
    keeps_stride: bool = False,
    keeps_offset: bool = False,
    rounds_down: bool = False,
    takes_negative: bool = False,
) -> object:
    """Return the layout of a slice with some mistakes."""
    x, index = case
    parts = index if isinstance(index, tuple) else (index,)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    parts = parts if any(part is Ellipsis for part in parts) else (*parts, ...)
    at = next(k for k, part in enumerate(parts) if part is Ellipsis)
    parts = (*parts[:at], *[slice(None)] * (len(x.shape) - used), *parts[at + 1 :])
    shape, strides, offset, dims = [], [], x.offset, iter(zip(x.shape, x.strides, strict=True))
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        n, stride = next(dims)
        if isinstance(part, slice):
            start, stop, step = part.indices(n)
            count = max((stop - start) // step, 0) if rounds_down else len(range(start, stop, step))
            shape.append(count)
            strides.append(stride if keeps_stride else stride * step)
            offset += 0 if keeps_offset else start * stride
        else:
            offset += (part if takes_negative else part % n) * stride
    return same_places((tuple(shape), tuple(strides), offset))


def after_write(case: Write, *, one_by_one: bool = False) -> Array:
    """Return the storage after a write; `one_by_one` reads elements of the source that were written before."""
    x = case.x._replace(storage=case.x.storage.copy())
    source = Strided(x.storage, *view_layout(case)) if case.source is None else case.source
    if not one_by_one or not isinstance(source, Strided):
        oracle.function("assign_slice")(x, case.index, source)
        return x.storage
    numbers = x._replace(storage=np.arange(len(x.storage), dtype=np.float64))
    to = numbers.array()[case.index].astype(int).ravel()
    parts = np.broadcast_to(source.array(), np.shape(x.array()[case.index]))
    places = [np.unravel_index(k, parts.shape) for k in range(parts.size)]
    for position, place in zip(to, places, strict=True):
        x.storage[position] = parts[place]
    return x.storage


def strides_of(case: Reshape) -> object:
    """Return the right strides, or None."""
    return places_of_strides(case, oracle.function("view_strides")(*case))


def places_of_strides(case: Reshape, strides: object) -> object:
    """Return strides in which those that reach no other element are 0; None and other answers unchanged."""
    if not isinstance(strides, tuple) or len(strides) != len(case[2]):
        return strides
    return tuple(0 if n == 1 or 0 in case[2] else s for n, s in zip(case[2], strides, strict=True))


def only_contiguous(case: Reshape) -> object:
    """Return the strides of a new tensor for a row-major layout, else None."""
    row_major = oracle.function("row_major_strides")
    is_plain = places_of_strides((case[0], (), case[0]), row_major(case[0])) == places_of_strides(
        (case[0], (), case[0]), case[1]
    )
    return places_of_strides(case, row_major(case[2])) if is_plain else None


def ranges_overlap(case: Pair) -> bool:
    """Return whether the ranges of positions overlap."""
    a, b = case
    if a.storage is not b.storage or 0 in a.shape or 0 in b.shape:
        return False
    bounds = []
    for x in case:
        ends = [(n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)]
        bounds.append((x.offset + sum(min(e, 0) for e in ends), x.offset + sum(max(e, 0) for e in ends)))
    return bounds[0][0] <= bounds[1][1] and bounds[1][0] <= bounds[0][1]


def put_back(case: Backward) -> tuple[tuple[Array], ...]:
    """Return the gradient of a tensor for each slice."""
    found = []
    for index, d in zip(case.indices, case.ds, strict=True):
        out = np.zeros(case.a.shape)
        out[index] = d.array()
        found.append((out,))
    return tuple(found)


def sum_of_gradients(case: Backward) -> Array:
    """Return the gradient of a tensor of which several slices are used."""
    return np.asarray(sum(g for (g,) in put_back(case)))


def elements_of(case: Slicing) -> Array:
    """Return the elements of a slice."""
    return np.asarray(case[0].array()[case[1]])


def draw_view(case: Slicing, got: object, expected: object) -> list[str]:
    """Draw the storage, with the index in the view under each element."""
    return strip(oracle.function("sliced")(*case))


def draw_storage(case: Write, got: object, expected: object) -> list[str]:
    """Draw the storage before and after a write."""
    return [*rows(case.x.storage, "before"), *rows(expected, "expected"), *rows(got, "got")]


def is_refused(wrong: Wrong) -> bool:
    """Return whether an int out of range raised nothing."""
    x, index = wrong.case
    parts = index if isinstance(index, tuple) else (index,)
    ints = [(n, part) for n, part in zip(x.shape, parts, strict=False) if type(part) is int]
    return wrong.got == ErrorName("no error") and any(not -n <= part < n for n, part in ints)


def takes_bool(wrong: Wrong) -> bool:
    """Return whether a bool in the index raised nothing."""
    index = wrong.case[1]
    return wrong.got == ErrorName("no error") and any(
        isinstance(part, bool) for part in (index if isinstance(index, tuple) else (index,))
    )


def is_of_slice(case: Backward) -> object:
    """Return the gradients of the slices themselves."""
    return tuple((np.array(d.array()),) for d in case.ds)


TASK = Task(
    id="2.6",
    title="Slices are views",
    file="views.py",
    slots=("sliced", "assign_slice", "view_strides", "overlap", "TensorSlice"),
    points=5,
    text=(
        "x[1:, ::2] costs nothing: it is a shape, strides and an offset over the storage of x. Write this view (sliced), "
        "writing through it (assign_slice), when a reshape of it needs no copy (view_strides), whether two views share an "
        "element (overlap), and its gradient (TensorSlice)."
    ),
    hints=(
        "Each part of an index handles one dim by itself. A slice start:stop:step begins at element start, so the "
        "offset grows by start * stride; its neighbors are step * stride apart. An int is a start without a dim.",
        "sliced: replace ... by as many slice(None) as are missing, then go through the parts with a counter of dims; None "
        "does not use one. part.indices(size) has no None and nothing out of range; len(range(start, stop, step)) is the "
        "size. view_strides: merge neighbors where stride == size * stride of the next, then split from the last dim on. "
        "backward: zeros of the shape of a, and d at the index.",
        "minifuse/core/layout.py and minifuse/core/indexing.py do this for the library; `minifuse app`, page Storage and "
        "strides, plays any chain of views.",
    ),
    reads=("docs/course/2.6-slices.md", "docs/guide/layouts.md", "minifuse/core/layout.py", "minifuse/core/indexing.py"),
    checks=(
        in_turn(
            SLICED,
            (
                agreement(
                    SLICED,
                    slicings,
                    ask_view,
                    view_of,
                    read=lambda case, view: same_places(view),
                    describe=describe_slicing,
                    draw=draw_view,
                    link=slicing_link,
                ),
                *[
                    agreement(
                        SLICED,
                        cases,
                        ask_view,
                        view_of,
                        read=lambda case, view: same_places(view),
                        describe=describe_slicing,
                        share=0.3,
                    )
                    for cases in (slicings_of_many_dims, large_slicings)
                ],
            ),
        ),
        in_turn(
            REFUSED,
            [
                agreement(REFUSED, partial(wrong_indices, way), ask_error, error_of, describe=describe_slicing, share=0.3)
                for way in ("range", "many", "dots", "step", "kind")
            ],
        ),
        in_turn(
            WRITTEN,
            (
                agreement(
                    WRITTEN, writes, ask_write, after_write, large=large_writes, describe=describe_write, draw=draw_storage
                ),
                agreement(WRITTEN, writes_to_many_dims, ask_write, after_write, describe=describe_write, share=0.1),
            ),
        ),
        agreement(
            RESHAPED,
            reshapes,
            calls("view_strides"),
            strides_of,
            large=partial(reshapes, True),
            read=places_of_strides,
            describe=lambda c: f"shape {c[0]}, strides {c[1]}, new shape {c[2]}",
        ),
        agreement(
            SHARED,
            pairs,
            ask_overlap,
            lambda case: oracle.function("overlap")(*case),
            large=large_pairs,
            describe=describe_pair,
        ),
        in_turn(
            GRADIENT,
            (
                agreement(GRADIENT, slicings, ask_slice, elements_of, describe=describe_slicing, share=0.3),
                agreement(
                    GRADIENT,
                    partial(backwards, 2),
                    ask_backward,
                    put_back,
                    large=partial(backwards, 2, True),
                    describe=describe_backward,
                ),
                agreement(
                    GRADIENT, partial(backwards, 3), ask_gradient, sum_of_gradients, describe=describe_backward, share=0.3
                ),
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "elements are copied to a new storage",
            "A view has the very storage of x. Only shape, strides and offset are new.",
            when=lambda w: w.kind == "storage",
        ),
        Mistake(
            "the step does not change the stride",
            "In x[::2] the neighbors are two elements of x apart: step * stride.",
            wrong_answer=lambda c: faulty_view(c, keeps_stride=True),
            check=SLICED,
        ),
        Mistake(
            "the start of a slice does not move the offset",
            "x[2:] begins at element 2 of x. Where is that?",
            wrong_answer=lambda c: faulty_view(c, keeps_offset=True),
            check=SLICED,
        ),
        Mistake(
            "a negative int is not counted from the end",
            "x[-1] is the last element: add the size to a negative int before you multiply it by the stride.",
            wrong_answer=lambda c: faulty_view(c, takes_negative=True),
            check=SLICED,
        ),
        Mistake(
            "the size of a slice is rounded down",
            "x[0:5:2] has the elements 0, 2 and 4: the quotient is rounded up. len(range(start, stop, step)) does that.",
            wrong_answer=lambda c: faulty_view(c, rounds_down=True),
            check=SLICED,
        ),
        Mistake(
            "an int that is out of range is accepted",
            "A dim of size n has the ints -n to n - 1. For any other one raise IndexError: it would read an element of "
            "another row, or of another tensor.",
            when=is_refused,
            check=REFUSED,
        ),
        Mistake(
            "True or False is taken for an int",
            "A bool is an int in Python: isinstance(True, int) is True. Test for bool first, and raise IndexError.",
            when=takes_bool,
            check=REFUSED,
        ),
        Mistake(
            "the source is read while it changes",
            "In x[1:] = x[:-1] each write changes the next element to be read. Read the whole source first if it overlaps.",
            wrong_answer=lambda c: after_write(c, one_by_one=True),
            check=WRITTEN,
        ),
        Mistake(
            "only tensors in row-major order are reshaped without a copy",
            "x[::2] of shape (4, 6) is not in row-major order, and yet its rows can be split to (2, 2, 3): only dims that "
            "are merged must fit each other.",
            wrong_answer=only_contiguous,
            check=RESHAPED,
        ),
        Mistake(
            "ranges of positions are compared, not positions",
            "x[::2] and x[1::2] have overlapping ranges, and no element in common.",
            wrong_answer=ranges_overlap,
            check=SHARED,
        ),
        Mistake(
            "tensors of two storages overlap",
            "Two storages have no element in common, whatever the positions are: a.storage is b.storage.",
            when=lambda w: w.got is True and (w.case[0].storage is not w.case[1].storage or ranges_overlap(w.case)),
            check=SHARED,
        ),
        Mistake(
            "the gradient has the shape of the slice",
            "a receives a gradient for each of its elements: 0 where the slice does not reach.",
            wrong_answer=is_of_slice,
            check=GRADIENT,
        ),
    ),
)

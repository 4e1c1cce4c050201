"""Questions of task 2.6: views, writes through views, and elements that two views share."""

from typing import Any, NamedTuple

import numpy as np

from ..engine import Engine
from ..strided import Array, Strided
from ..student import Student
from ..values import Values
from ..variables import Context
from ..verdicts import Wrong
from .calling import ErrorName

Index = Any
"""An int, a slice, Ellipsis, None, or a tuple of these."""
Slicing = tuple[Strided, Index]
Pair = tuple[Strided, Strided]


class Write(NamedTuple):
    """x[index] = source. The source may be a number, or a view of the storage of x: x[index] = x[other]."""

    x: Strided
    index: Index
    source: Strided | float | None
    other: Index = None
    """The index of the source in x, if `source` is None."""


class Backward(NamedTuple):
    """Slices of one tensor, and the gradient of each of them."""

    a: Strided
    indices: tuple[Index, ...]
    ds: tuple[Strided, ...]


def ask_view(student: Student, case: Slicing) -> object:
    """Return shape, strides and offset of the student's view; raise `Wrong` if it does not share the storage."""
    return shared_layout(student.sliced(*case), case[0], "sliced")


def shared_layout(view: object, x: Strided, name: str) -> object:
    """Return shape, strides and offset of a view of x; raise `Wrong` if it has another storage."""
    if not isinstance(view, Strided):
        return view
    if view.storage is not x.storage:
        raise Wrong(
            f"{name} returns another storage; a view shares the storage of the tensor, and nothing is copied",
            kind="storage",
        )
    return view[1:]


def ask_error(student: Student, case: Slicing) -> ErrorName:
    """Return the name of the error that an index raises; "no error" if none."""
    try:
        student.sliced(*case)
    except (IndexError, ValueError, TypeError) as error:
        return ErrorName(type(error).__name__)
    return ErrorName("no error")


def ask_write(student: Student, case: Write) -> Array:
    """Return the storage after a write. The case itself is not changed."""
    x = case.x._replace(storage=case.x.storage.copy())
    source = case.source
    if source is None:
        source = Strided(x.storage, *view_layout(case))
    student.assign_slice(x, case.index, source)
    return x.storage


def view_layout(case: Write) -> tuple[Any, ...]:
    """Return shape, strides and offset of the source of a write that is a view of its target."""
    cells = np.arange(len(case.x.storage), dtype=np.float64)
    view = case.x._replace(storage=cells).array()[case.other]
    strides = tuple(step // cells.itemsize for step in view.strides)
    return view.shape, strides, int(view.flat[0]) if view.size else 0


def ask_overlap(student: Student, case: Pair) -> object:
    """Return the student's answer."""
    return student.overlap(*case)


def ask_slice(student: Student, case: Slicing) -> object:
    """Return the elements of forward; raise `Wrong` if it copies."""
    a = Engine(student).values(case[0])
    value = student.TensorSlice.forward(Context(), a, case[1])
    if isinstance(value, Values):
        shared_layout(value.data, case[0], "forward")
        return np.array(value.array())
    return value


def ask_gradient(student: Student, case: Backward) -> object:
    """Return the gradient of a tensor of which several slices are used, and the gradients of the slices afterwards."""
    engine = Engine(student)
    a = engine.tensor(case.a)
    total = None
    for index, d in zip(case.indices, case.ds, strict=True):
        part = (a[index] * np.array(d.array())).sum()
        total = part if total is None else total + part
    if total is not None:
        total.backward()
    return np.array(a.grad.array()) if isinstance(a.grad, Values) else a.grad


def ask_backward(student: Student, case: Backward) -> object:
    """Return what backward makes of each gradient, and these gradients, which must stay as they were."""
    engine, found = Engine(student), []
    for index, d in zip(case.indices, case.ds, strict=True):
        context = Context()
        student.TensorSlice.forward(context, engine.values(case.a), index)
        gradients = student.TensorSlice.backward(context, engine.values(d))
        if not isinstance(gradients, tuple):
            return gradients
        found.append(tuple(np.array(g.array()) if isinstance(g, Values) else g for g in gradients))
    return tuple(found)

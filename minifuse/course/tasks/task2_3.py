"""Task 2.3: map, zip and reduce over strides."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import oracle
from ..cases import at_random, broadcasting_link, fresh
from ..check import agreement, in_turn, same
from ..loop_facts import any_map, any_reduction, right_storage, storage_of
from ..loops import Mapped, Reduced, copy_storage, describe_case, drawing, link, map_cases, reduce_cases
from ..questions.task2_3 import ALL_FUNCTIONS, run_slot
from ..strided import Array
from ..task import Check, Mistake, Task
from ..verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MAP = "map: every element is read and written where its strides say"
ZIP = "zip: operands are broadcast to the shape of the output"
REDUCE = "reduce: one dim is reduced, in order, from start"


@np.errstate(all="ignore")
def read_in_order(case: Mapped) -> Array:
    """Map or zip elements in the order of their storage."""
    name, out, operands = case
    storage: Array = out.storage.copy()
    for k in range(int(np.prod(out.shape))):
        storage[k] = ALL_FUNCTIONS[name](*[x.storage[k % len(x.storage)] for x in operands])
    return storage


@np.errstate(all="ignore")
def read_at_ordinals(case: Mapped) -> Array:
    """Map element k of the storage to the right place of the output."""
    name, out, (a,) = case
    out = out._replace(storage=out.storage.copy())
    for k, index in enumerate(np.ndindex(out.shape)):
        out.array()[index] = ALL_FUNCTIONS[name](a.storage[k])
    return copy_storage(out)


def reads_in_order(wrong: Wrong) -> bool:
    """Return whether element k is read at position k, or there is no such position."""
    _, out, (a,) = wrong.case
    if wrong.kind:
        return wrong.kind == "IndexError" and int(np.prod(out.shape)) > min(len(a.storage), len(out.storage))
    return any(
        same(wrong.got, read(wrong.case)) for read in (read_in_order, read_at_ordinals) if not fails(read, wrong.case)
    )


def fails(read: Callable[[Mapped], Array], case: Mapped) -> bool:
    """Return whether a loop ends in an IndexError."""
    try:
        read(case)
    except IndexError:
        return True
    return False


@np.errstate(all="ignore")
def mapped_at(case: Mapped, keeps_offset: bool, keeps_offset_of_out: bool) -> Array:
    """Map without an offset: positions in flipped dims are negative, and Python wraps them around."""
    name, out, (a,) = case
    storage: Array = out.storage.copy()
    for index in np.ndindex(out.shape):
        at, to = [
            x.offset * keeps + sum(i * s for i, s in zip(index, x.strides, strict=True))
            for x, keeps in ((a, keeps_offset), (out, keeps_offset_of_out))
        ]
        storage[to] = ALL_FUNCTIONS[name](a.storage[at])
    return storage


def lacks_offset(wrong: Wrong) -> bool:
    """Return whether the offset of the operand, of the output, or of both is left out."""
    ways = (False, True), (True, False), (False, False)
    return not wrong.kind and any(same(wrong.got, mapped_at(wrong.case, *way)) for way in ways)


@np.errstate(all="ignore")
def without_broadcasting(case: Mapped) -> Array:
    """Zip with the index of the output for both operands."""
    name, out, operands = case
    out = out._replace(storage=out.storage.copy())
    for index in np.ndindex(out.shape):
        values = [x.storage[x.offset + sum(i * s for i, s in zip(index, x.strides, strict=False))] for x in operands]
        out.array()[index] = ALL_FUNCTIONS[name](*values)
    return copy_storage(out)


def stored_in_order(case: Reduced) -> Array:
    """Reduce, and write result k at position k."""
    name, out, a, dim, start = case
    plain = fresh(out.shape)
    oracle.function("tensor_reduce")(ALL_FUNCTIONS[name], plain, a, dim, start)
    storage: Array = out.storage.copy()
    storage[: len(plain.array().ravel())] = plain.array().ravel()
    return storage


def from_the_end(case: Reduced) -> Array:
    """Reduce from the last element."""
    name, out, a, dim, start = case
    steps = [-s if d == dim else s for d, s in enumerate(a.strides)]
    last = a.offset + (a.shape[dim] - 1) * a.strides[dim] if a.shape[dim] else a.offset
    turned = a._replace(strides=tuple(steps), offset=last)
    return right_storage("tensor_reduce", (name, out, turned, dim, start))


def with_exchanged_arguments(case: Reduced) -> Array:
    """Reduce with the running value as the second argument of fn."""
    name, out, *rest = case
    out = out._replace(storage=out.storage.copy())
    oracle.function("tensor_reduce")(lambda x, y: ALL_FUNCTIONS[name](y, x), out, *rest)
    return copy_storage(out)


def begins_with_the_first(wrong: Wrong) -> bool:
    """Return whether each element of out is that of a reduction which begins with the first element, and not with start."""
    name, out, a, dim, _ = wrong.case
    if not a.shape[dim]:
        return True
    if wrong.kind == "calls":
        size = prod(a.shape)
        return f"is called {size - size // a.shape[dim]} times" in wrong.message
    rest = a._replace(shape=tuple(n - (d == dim) for d, n in enumerate(a.shape)), offset=a.offset + a.strides[dim])
    out = out._replace(storage=out.storage.copy())
    fn = ALL_FUNCTIONS[name]
    with np.errstate(all="ignore"):
        for index in np.ndindex(out.shape):
            value = a.array()[index]
            for k in range(rest.shape[dim]):
                value = fn(value, rest.array()[(*index[:dim], k, *index[dim + 1 :])])
            out.array()[index] = value
    return not wrong.kind and same(wrong.got, copy_storage(out))


def goes_over_operand(wrong: Wrong) -> bool:
    """Return whether the loop asks for more elements of out than it has, or for none where a is empty."""
    _, out, a, *_ = wrong.case
    if not prod(a.shape):
        return prod(out.shape) > 0 and not wrong.kind and bool(np.isnan(wrong.got).all())
    return prod(a.shape) > prod(out.shape) and wrong.kind == "ValueError" and "in index_of of" in wrong.message


def loop_check(
    slot: str,
    name: str,
    cases: Callable[[], "SearchStrategy[Any]"],
    link: Callable[[Any], str],
    large: Callable[[], "SearchStrategy[Any]"] | None = None,
    also: Callable[[], "SearchStrategy[Any]"] | None = None,
) -> Check:
    """Return a check of a loop: its values, and then how often it reads, writes and calls fn."""
    return agreement(
        name,
        cases,
        partial(run_slot, slot),
        partial(right_storage, slot),
        read=storage_of(slot),
        also=also,
        large=large,
        describe=describe_case,
        draw=drawing,
        link=link,
    )


TASK = Task(
    id="2.3",
    title="Map, zip, reduce over strides",
    file="tensors.py",
    slots=("tensor_map", "tensor_zip", "tensor_reduce"),
    points=6,
    text=(
        "Three loops make every tensor operation. Write them over storages with shapes, strides and offsets, with operands "
        "of zip broadcast to the output's shape. reduce combines one dim, from `start` on, in order; that dim has size 1 in "
        "the output. Write into the storage of `out`, and nothing beside its elements."
    ),
    hints=(
        "Walk over the output: each of its elements is written once. Everything else follows from its index.",
        "for k in range(number of elements): index = index_of(k, out.shape); its position in out; the position of each "
        "operand's element, after broadcasting the index; call fn, store. For reduce, an inner loop runs over the dim.",
        "minifuse/backends/python.py is the library's own specification of the same loops.",
    ),
    reads=("docs/course/2.3-map-zip-reduce.md", "minifuse/backends/python.py", "docs/guide/backends.md"),
    checks=(
        in_turn(
            MAP,
            [
                loop_check("tensor_map", MAP, lambda: map_cases(1, True), link),
                loop_check(
                    "tensor_map",
                    "map: the tensor may begin anywhere in its storage",
                    lambda: map_cases(1, least_dims=1),
                    link,
                    lambda: at_random(partial(any_map, 1, shape=(2, 30, 1, 53))),
                    lambda: at_random(partial(any_map, 1)),
                ),
            ],
        ),
        loop_check(
            "tensor_zip",
            ZIP,
            lambda: map_cases(2),
            lambda c: broadcasting_link(*[x.shape for x in c[2]]),
            lambda: at_random(partial(any_map, 2, shape=(57, 1, 41))),
            lambda: at_random(partial(any_map, 2)),
        ),
        in_turn(
            REDUCE,
            [
                loop_check(
                    "tensor_reduce",
                    REDUCE,
                    reduce_cases,
                    lambda c: "folds",
                    partial(at_random, partial(any_reduction, shape=shape, dim=1)),
                    partial(at_random, any_reduction),
                )
                for shape in ((1201, 2), (5, 431))
            ],
        ),
    ),
    mistakes=(
        Mistake(
            "an offset is left out",
            "A view may begin anywhere in its storage, out too; position_of takes an offset.",
            when=lacks_offset,
            check=MAP,
        ),
        Mistake(
            "the storage is read from front to back, whatever the strides say",
            "The k-th element need not have position k: ask index_of, then position_of, for each operand and for out.",
            when=reads_in_order,
            check=MAP,
        ),
        Mistake(
            "zip takes its second operand's index from the output as it is",
            "An operand of size 1 along a dim has a single element there: broadcast_index says which one is meant.",
            wrong_answer=without_broadcasting,
            when=lambda w: w.kind in ("IndexError", "ValueError"),
            check=ZIP,
        ),
        Mistake(
            "the loop goes over the elements of a",
            "Go over out: it has size_of(out.shape) elements. An inner loop goes along the dim.",
            when=goes_over_operand,
            check=REDUCE,
        ),
        Mistake(
            "fn gets the running value second",
            "fn(value so far, next element): for x - y the order shows.",
            wrong_answer=with_exchanged_arguments,
            check=REDUCE,
        ),
        Mistake(
            "the reduction forgets where it starts",
            "start is the value of an empty reduction, and the first thing that fn is given.",
            wrong_answer=lambda c: right_storage("tensor_reduce", (*c[:4], 0.0)),
            check=REDUCE,
        ),
        Mistake(
            "the reduction goes from the last element to the first",
            "fn(... fn(fn(start, a[i, 0]), a[i, 1]) ...): where fn is 10 * x + y, the order shows.",
            wrong_answer=from_the_end,
            check=REDUCE,
        ),
        Mistake(
            "the reduction writes its results side by side, whatever the strides of out say",
            "out has strides and an offset too: with 0 along the reduced dim, position_of says where its element is stored.",
            wrong_answer=stored_in_order,
            when=lambda w: w.kind == "IndexError",
            check=REDUCE,
        ),
        Mistake(
            "out is used as a notebook",
            "Keep the value so far in a name of your own, and write each element of out once, when it is ready.",
            when=lambda w: w.kind == "writes",
        ),
        Mistake(
            "the reduction begins with the first element",
            "Begin with start, and pass every element to fn, the first one too.",
            when=begins_with_the_first,
            check=REDUCE,
        ),
        Mistake(
            "fn is asked too often or too seldom",
            "Each element is passed to fn once: remember nothing of other elements, and do not begin anew.",
            when=lambda w: w.kind == "calls",
        ),
    ),
)

"""Task 2.3: map, zip and reduce over strides."""

from functools import partial

import numpy as np

from .. import oracle
from ..cases import broadcasting_link, fresh
from ..check import agreement, in_turn
from ..loops import FUNCTIONS, Mapped, Reduced, copy_storage, describe_case, drawing, link, map_cases, reduce_cases, run_loop
from ..questions.task2_3 import run_slot
from ..strided import Array
from ..task import Mistake, Task

MAP = "map: every element is read and written where its strides say"
REDUCE = "reduce: one dim is reduced, in order, from start"


def read_in_order(case: Mapped) -> Array:
    """Map or zip elements in the order of their storage."""
    name, out, operands = case
    storage: Array = out.storage.copy()
    for k in range(int(np.prod(out.shape))):
        storage[k] = FUNCTIONS[name](*[x.storage[k % len(x.storage)] for x in operands])
    return storage


def without_offset(case: Mapped) -> Array:
    """Map without the offset of the operand: positions in flipped dims are negative, and Python wraps them around."""
    name, out, (a,) = case
    out = out._replace(storage=out.storage.copy())
    for index in np.ndindex(out.shape):
        x = a.storage[sum(i * s for i, s in zip(index, a.strides, strict=True))]
        out.array()[index] = FUNCTIONS[name](x)
    return copy_storage(out)


def without_broadcasting(case: Mapped) -> Array:
    """Zip with the index of the output for both operands."""
    name, out, operands = case
    out = out._replace(storage=out.storage.copy())
    for index in np.ndindex(out.shape):
        values = [x.storage[x.offset + sum(i * s for i, s in zip(index, x.strides, strict=False))] for x in operands]
        out.array()[index] = FUNCTIONS[name](*values)
    return copy_storage(out)


def stored_in_order(case: Reduced) -> Array:
    """Reduce, and write result k at position k."""
    name, out, a, dim, start = case
    plain = fresh(out.shape)
    oracle.function("tensor_reduce")(FUNCTIONS[name], plain, a, dim, start)
    storage: Array = out.storage.copy()
    storage[: len(plain.array().ravel())] = plain.array().ravel()
    return storage


def from_the_end(case: Reduced) -> Array:
    """Reduce from the last element."""
    name, out, a, dim, start = case
    steps = [-s if d == dim else s for d, s in enumerate(a.strides)]
    last = a.offset + (a.shape[dim] - 1) * a.strides[dim] if a.shape[dim] else a.offset
    turned = a._replace(strides=tuple(steps), offset=last)
    return run_loop(oracle.function("tensor_reduce"), (name, out, turned, dim, start))


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
    reads=("minifuse/backends/python.py", "docs/guide/backends.md"),
    checks=(
        in_turn(
            MAP,
            [
                agreement(
                    name,
                    partial(map_cases, 1, begins_at_0),
                    partial(run_slot, "tensor_map"),
                    lambda c: run_loop(oracle.function("tensor_map"), c),
                    describe=describe_case,
                    draw=drawing,
                    link=link,
                )
                for name, begins_at_0 in ((MAP, True), ("map: the tensor may begin anywhere in its storage", False))
            ],
        ),
        agreement(
            "zip: operands are broadcast to the shape of the output",
            lambda: map_cases(2),
            partial(run_slot, "tensor_zip"),
            lambda c: run_loop(oracle.function("tensor_zip"), c),
            describe=describe_case,
            draw=drawing,
            link=lambda c: broadcasting_link(*[x.shape for x in c[2]]),
        ),
        agreement(
            REDUCE,
            reduce_cases,
            partial(run_slot, "tensor_reduce"),
            lambda c: run_loop(oracle.function("tensor_reduce"), c),
            describe=describe_case,
            draw=drawing,
            link=lambda c: "folds",
        ),
    ),
    mistakes=(
        Mistake(
            "the operand's offset is left out",
            "A view may begin anywhere in its storage; position_of takes an offset.",
            wrong_answer=without_offset,
            check=MAP,
        ),
        Mistake(
            "the storage is read from front to back, whatever the strides say",
            "The k-th element need not have position k: ask index_of, then position_of, for each operand and for out.",
            wrong_answer=read_in_order,
            check=MAP,
        ),
        Mistake(
            "zip takes its second operand's index from the output as it is",
            "An operand of size 1 along a dim has a single element there: broadcast_index says which one is meant.",
            wrong_answer=without_broadcasting,
            when=lambda w: w.kind in ("IndexError", "ValueError"),
            check="zip: operands are broadcast to the shape of the output",
        ),
        Mistake(
            "fn gets the running value second",
            "fn(value so far, next element): for x - y the order shows.",
            wrong_answer=lambda c: run_loop(
                lambda fn, *rest: oracle.function("tensor_reduce")(lambda x, y: fn(y, x), *rest),
                c,
            ),
            check=REDUCE,
        ),
        Mistake(
            "the reduction forgets where it starts",
            "start is the value of an empty reduction, and the first thing that fn is given.",
            wrong_answer=lambda c: run_loop(oracle.function("tensor_reduce"), (*c[:4], 0.0)),
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
    ),
)

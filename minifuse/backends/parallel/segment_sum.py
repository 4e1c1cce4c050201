"""Sums by key, walked by key: what is added belongs to one sum, so each value is met once, not once a sum.

As a fold, the gradient of rows picked by index looks at all N keys for each of its V rows: V * N * D steps. Here the loops
are exchanged: for each key, its value is added to the row that it names, N * D steps. A thread has some columns of all rows
and walks all keys in order, so no two threads add to one sum, and each sum has one order, whatever the number of threads.
"""

from collections.abc import Sequence
from functools import lru_cache

from ...core.interning import topological
from ...ir.kernel_ir import Expression, Fold, Kernel, Load, Nest
from ...ir.segment_sum import Keyed, keyed
from ..codegen.loop_emitter import Source, literal, name_of
from .cpu_codegen import SerialLoops, begun
from .driver import count_chunks

LEAST = 64  # columns of a thread: fewer cost more for looking at the keys than for adding


class Walk:
    """How a kernel that adds up by key runs over its nest: `source` is its text, `sizes` those that it is passed."""

    def __init__(self, kernel: Kernel, nest: Nest, found: Keyed, axis: int, raws: Sequence[str]) -> None:
        columns = [a for a in range(nest.rows) if a != axis]
        beside = [a for a in columns if nest.classes[0][a] == "1"]
        shared = (beside or sorted(columns, key=lambda a: nest.sizes[a])[-1:] or [-1])[0]
        self.source = source(kernel, nest.rows, nest.classes, tuple(raws), found, axis, shared)
        self.count = nest.sizes[shared] if columns else 1
        self.sizes = [n for a, n in enumerate(nest.sizes) if a != shared or not columns]
        work = (nest.points // nest.sizes[axis]) * kernel.cost()
        self.chunks = max(min(count_chunks(self.count, work), self.count // LEAST if beside else self.count), 1)


def walk(kernel: Kernel, nest: Nest, raws: Sequence[str]) -> Walk | None:
    """How a kernel is walked by key; None of a kernel that does not add up by key."""
    found = keyed(kernel, nest.rows, nest.classes)
    return None if found is None else Walk(kernel, nest, *found, raws)


@lru_cache(1024)
def source(
    kernel: Kernel, rows: int, classes: Sequence[str], raws: Sequence[str], found: Keyed, axis: int, shared: int
) -> str:
    """The text: zeros, then each value to where its key says. Threads share out the axis `shared`; -1 if there is none."""
    body = Source(kernel, rows, classes, SerialLoops(), raws)
    head = begun(body, [a for a in range(body.axes) if a != shared])
    (fold,) = kernel.each(Fold)

    def loops(axes: Sequence[int]) -> list[str]:
        return [f"for i{a} in range({'start, stop' if a == shared else f'n{a}'}):" for a in axes]

    columns = [shared] * (shared >= 0)
    with body.block(*loops([a for a in range(rows) if a not in (axis, shared)])):
        with body.block(*loops([axis, *columns])):
            body.line(f"{body.place('out0')} = {literal(0.0 if fold.dtype.is_float else 0, fold.dtype)}")
        with body.block(*loops(range(rows, body.axes))):
            body.line(f"i{axis} = {body.bare(found.key)} - {name_of(found.position)}")
            with body.block(f"if i{axis} >= 0 and i{axis} < n{axis}:"):
                same = same_along(shared, body, found.value)
                body.define(same, always=same)
                with body.block(*loops(columns)):
                    body.define([found.value])
                    body.combine(body.place("out0"), fold, found.value)
    return head + "\n".join(body.lines) + "\n"


def same_along(axis: int, body: Source, value: Expression) -> list[Expression]:
    """The parts of a value that are the same along an axis."""
    varies: dict[Expression, bool] = {}
    order = topological([value], lambda e: e.inputs)
    for e in order:
        own = isinstance(e, Load) and body.classes[name_of(e)][axis] != "0"
        varies[e] = axis >= 0 and (own or any(varies[x] for x in e.inputs))
    return [e for e in order if e.inputs and not varies[e]] if axis >= 0 else []

"""What a step moves: the distinct elements that it reads and writes, in bytes; and the arithmetic of a product.

This is what the step must move at least, whatever caches do: an element that is read a hundred times counts once, a repeated
operand is as large as its memory. What the launches of one step hand on to each other (a product that is cut along K) counts
too, once each way: backends say how much that is.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends.base import Backend
from ..core.dtypes import DType
from ..core.layout import Layout
from ..ir.kernel_ir import Expression, IndexedAccess, Kernel, Load, ReadOutput, ReduceExpr
from ..ir.steps import NO_BUFFER, KernelLaunch, LibraryCall, MatmulLaunch, Step

MAX_COUNTED_POSITIONS = 1 << 22  # positions that are counted one by one; above, strides that interleave give an upper bound


class OperandTraffic(NamedTuple):
    """What a step reads or writes."""

    slot: int
    layout: Layout
    """As the step sees it."""
    dtype: DType
    nbytes: int
    """Of the distinct elements."""


class Traffic(NamedTuple):
    """What a step moves."""

    reads: list[OperandTraffic]
    writes: list[OperandTraffic]
    nbytes: int
    """Distinct bytes that are read, and those that are written; operands over the same memory count once."""
    scratch: int
    """Bytes of memory of its own that it writes and reads again: not part of `nbytes`, which has them twice over."""
    launches: int
    """Kernels that the backend starts for it."""
    flops: int
    """Multiplications and additions of a product; 0 of other kernels, whose limit is memory."""


def step_traffic(step: Step, backend: Backend, same: Mapping[int, int] | None = None) -> Traffic:
    """What a step moves on a backend; `same` has slots that are the very memory of others, and which."""
    outputs = [(slot, stored_layout(step, k, layout)) for k, (slot, layout) in enumerate(step.outputs)]
    dtypes = [e.dtype for e in step.kernel.outputs]
    writes = [
        OperandTraffic(*place, dtype, nbytes_of(place[1], dtype)) for place, dtype in zip(outputs, dtypes, strict=True)
    ]
    if isinstance(step, MatmulLaunch):
        loads = [e for part in step.kernel.loads() for e in part]
        old = Kernel(step.kernel.pointwise_outputs, ()).find_all(ReadOutput)
        launches, scratch = backend.fused_matmul_cost(step.kernel, *step.layouts())
        size, depth = prod(step.shape), step.inputs[0][1].shape[-1]
        flops = 2 * size * depth
    elif isinstance(step, LibraryCall):
        loads, old, scratch = step.kernel.find_all(Load), list[ReadOutput](), 0
        launches, flops = backend.composite_cost(step.function, *step.layouts())
    else:
        loads, old = step.kernel.find_all(Load), step.kernel.find_all(ReadOutput)
        launches, scratch, flops = backend.count_launches(step.kernel, step.shape, step.dims), 0, 0
    is_idle = prod(step.shape) == 0
    places = zip(step.inputs, [e.dtype for e in loads], strict=True)
    reads = [OperandTraffic(*place, dtype, nbytes_of(place[1], dtype)) for place, dtype in places if place[0] != NO_BUFFER]
    reads += [writes[e.index] for e in old]
    picked = gathered_operands(step)
    if is_idle:
        reads, picked = [], []
    whole = [x._replace(nbytes=nbytes_of(x.layout, x.dtype)) for x in picked]
    read = min(union_bytes(reads, same) + sum(x.nbytes for x in picked), union_bytes([*reads, *whole], same))
    nbytes = read + union_bytes(writes, same) + 2 * scratch
    return Traffic([*reads, *picked], writes, nbytes, scratch, launches, flops)


def gathered_operands(step: Step) -> list[OperandTraffic]:
    """What a step reads by index: of each array as many elements as there are points that pick one, and at most all."""
    if not isinstance(step, KernelLaunch):
        return []
    along: dict[Expression, set[int]] = {}  # the dims along which a value varies
    counts = [0] * len(step.indexed_operands)
    for e in step.kernel.expressions():
        along[e] = {d for x in e.inputs for d in along[x]} - {d for d in step.dims if isinstance(e, ReduceExpr)}
        if isinstance(e, Load):
            along[e] = {d for d, s in enumerate(step.inputs[e.index][1].strides) if s}
        elif isinstance(e, ReadOutput):
            along[e] = set(range(len(step.shape)))
        elif isinstance(e, IndexedAccess):
            counts[e.index] += prod(step.shape[d] for d in along[e])
    found = []
    for (slot, layout), dtype, count in zip(step.indexed_operands, step.kernel.indexed_dtypes(), counts, strict=True):
        found.append(OperandTraffic(slot, layout, dtype, min(count * dtype.itemsize, nbytes_of(layout, dtype))))
    return found


def stored_layout(step: Step, k: int, layout: Layout) -> Layout:
    """The layout of output k, of which what is stored once a row has one element a row, even if the row has none."""
    if isinstance(step, KernelLaunch) and k >= len(step.kernel.pointwise_outputs):
        rows = tuple(1 if d in step.dims else n for d, n in enumerate(step.shape))
        return Layout(rows, layout.strides, layout.offset)
    return layout


def nbytes_of(layout: Layout, dtype: DType) -> int:
    """Bytes of the distinct elements of a layout."""
    return count_distinct([layout]) * dtype.itemsize


def union_bytes(operands: Sequence[OperandTraffic], same: Mapping[int, int] | None = None) -> int:
    """Bytes of the distinct elements of several operands."""
    slots: dict[tuple[int, DType], list[Layout]] = {}
    for x in operands:
        slots.setdefault(((same or {}).get(x.slot, x.slot), x.dtype), []).append(x.layout)
    return sum(count_distinct(layouts) * dtype.itemsize for (_, dtype), layouts in slots.items())


def count_distinct(layouts: Sequence[Layout]) -> int:
    """How many positions some layouts touch.

    Notes
    -----
    Exact where strides nest, as those of all views do, for a single layout and for several that are equal, dense or apart.
    Others are counted one by one up to COUNTED positions; above, the result is an upper bound.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> x = row_major((40, 33))
    >>> distinct([x]), distinct([x, x.permute(1, 0)]), distinct([x.slice((0, 1, 1), (0, 1, 33)).expand(40, 33)])
    (1320, 1320, 33)
    >>> distinct([x.slice((0, 1, 30), (0, 1, 33)), x.slice((10, 1, 30), (0, 1, 33))])
    1320
    >>> distinct([Layout((5, 3), (1, 1), 0)])
    7
    """
    sets = list(dict.fromkeys(found for layout in layouts if (found := position_set(layout)) is not None))
    if not sets:
        return 0
    if len(sets) == 1 and sets[0].is_exact:
        return sets[0].size
    ranges: list[tuple[int, int]] = sorted((x.low, x.high) for x in sets)
    is_apart = all(a[1] <= b[0] for a, b in pairwise(ranges))
    if is_apart and all(x.is_exact for x in sets):
        return sum(x.size for x in sets)
    most = sum(x.size for x in sets)
    if most <= MAX_COUNTED_POSITIONS and not all(x.is_exact and x.size == x.high - x.low for x in sets):
        return len(np.unique(np.concatenate([x.all() for x in sets])))
    covered, end = 0, ranges[0][0]
    for low, high in ranges:
        covered += max(0, high - max(low, end))
        end = max(end, high)
    return min(covered, most)


class PositionSet(NamedTuple):
    """A set of positions: the lowest, then steps as (stride, size), the smallest first."""

    low: int
    steps: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """How many ways there are to step: the number of positions, if none is reached twice."""
        return prod(n for _, n in self.steps)

    @property
    def high(self) -> int:
        """The highest, and 1."""
        return self.low + sum(stride * (n - 1) for stride, n in self.steps) + 1

    @property
    def is_exact(self) -> bool:
        """Whether no position is reached twice, for sure."""
        reach = 0
        for stride, n in self.steps:
            if stride <= reach:
                return False
            reach += stride * (n - 1)
        return True

    def all(self) -> NDArray[np.int64]:
        """Each position, as often as it is reached."""
        found = np.array([self.low])
        for stride, n in self.steps:
            found = (found[:, None] + np.arange(n) * stride).reshape(-1)
        return found


def position_set(layout: Layout) -> PositionSet | None:
    """The positions of a layout's elements, whatever their order; None where it has no elements."""
    if layout.size == 0:
        return None
    steps: list[tuple[int, int]] = []
    for stride, n in sorted((abs(s), n) for s, n in zip(layout.strides, layout.shape, strict=True) if s and n > 1):
        if steps and stride == steps[-1][0] * steps[-1][1]:
            steps[-1] = steps[-1][0], steps[-1][1] * n
        else:
            steps.append((stride, n))
    return PositionSet(layout.span()[0], tuple(steps))

"""Count the memory traffic of a step in bytes, and the arithmetic of a matmul.

The traffic is the least that the step must move, whatever the caches do: an element that is read many times counts once,
and an expanded operand counts as much as its memory. If a step has several launches, such as a matmul that is split along K,
the partial results between them count once for the write and once for the read. The backend returns their size.
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

MAX_COUNTED_POSITIONS = 1 << 22  # positions that are counted one by one; with more, the result is an upper bound


class OperandTraffic(NamedTuple):
    """An operand that a step reads or writes."""

    slot: int
    layout: Layout
    """The layout in which the step reads or writes it."""
    dtype: DType
    nbytes: int
    """The size of its distinct elements."""


class Traffic(NamedTuple):
    """The memory traffic and the arithmetic of a step."""

    reads: list[OperandTraffic]
    writes: list[OperandTraffic]
    nbytes: int
    """Distinct bytes that are read, plus those that are written. Operands in the same memory count once."""
    scratch: int
    """Size of the memory that only the step itself writes and reads. `nbytes` contains it twice."""
    launches: int
    """Kernels that the backend launches for it."""
    flops: int
    """Multiplications and additions of a matmul; 0 for other kernels, which memory limits."""


def step_traffic(step: Step, backend: Backend, alias_of: Mapping[int, int] | None = None) -> Traffic:
    """Return the traffic of a step on a backend. `alias_of` maps slots that are the same memory to one of them."""
    outputs = [(slot, stored_layout(step, k, layout)) for k, (slot, layout) in enumerate(step.outputs)]
    dtypes = [e.dtype for e in step.kernel.outputs]
    writes = [OperandTraffic(*x, dtype, nbytes_of(x[1], dtype)) for x, dtype in zip(outputs, dtypes, strict=True)]
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
    inputs = zip(step.inputs, [e.dtype for e in loads], strict=True)
    reads = [OperandTraffic(*x, dtype, nbytes_of(x[1], dtype)) for x, dtype in inputs if x[0] != NO_BUFFER]
    reads += [writes[e.index] for e in old]
    gathered = gathered_operands(step)
    if prod(step.shape) == 0:
        reads, gathered = [], []
    whole = [x._replace(nbytes=nbytes_of(x.layout, x.dtype)) for x in gathered]
    read = min(union_bytes(reads, alias_of) + sum(x.nbytes for x in gathered), union_bytes([*reads, *whole], alias_of))
    nbytes = read + union_bytes(writes, alias_of) + 2 * scratch
    return Traffic([*reads, *gathered], writes, nbytes, scratch, launches, flops)


def gathered_operands(step: Step) -> list[OperandTraffic]:
    """Return the operands that a step gathers from: one element per gathering point, at most the whole array."""
    if not isinstance(step, KernelLaunch):
        return []
    along: dict[Expression, set[int]] = {}  # expression -> the dims along which it varies
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
    """Return the layout of output k as it is stored: a row output has one element per row, even if the row is empty."""
    if isinstance(step, KernelLaunch) and k >= len(step.kernel.pointwise_outputs):
        rows = tuple(1 if d in step.dims else n for d, n in enumerate(step.shape))
        return Layout(rows, layout.strides, layout.offset)
    return layout


def nbytes_of(layout: Layout, dtype: DType) -> int:
    """Return the size of the distinct elements of a layout, in bytes."""
    return count_distinct([layout]) * dtype.itemsize


def union_bytes(operands: Sequence[OperandTraffic], alias_of: Mapping[int, int] | None = None) -> int:
    """Return the size of the distinct elements of several operands, in bytes."""
    slots: dict[tuple[int, DType], list[Layout]] = {}
    for x in operands:
        slots.setdefault(((alias_of or {}).get(x.slot, x.slot), x.dtype), []).append(x.layout)
    return sum(count_distinct(layouts) * dtype.itemsize for (_, dtype), layouts in slots.items())


def count_distinct(layouts: Sequence[Layout]) -> int:
    """Count the positions in memory of the elements of some layouts.

    Notes
    -----
    Exact if strides nest, as those of all views do, for one layout and for several that are equal, dense or disjoint.
    Others are counted one by one up to MAX_COUNTED_POSITIONS. Above, the result is an upper bound.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> x = row_major((40, 33))
    >>> count_distinct([x]), count_distinct([x, x.permute(1, 0)])
    (1320, 1320)
    >>> count_distinct([x.slice((0, 1, 1), (0, 1, 33)).expand(40, 33)])
    33
    >>> count_distinct([x.slice((0, 1, 30), (0, 1, 33)), x.slice((10, 1, 30), (0, 1, 33))])
    1320
    >>> count_distinct([Layout((5, 3), (1, 1), 0)])
    7
    """
    sets = list(dict.fromkeys(found for layout in layouts if (found := position_set(layout)) is not None))
    if not sets:
        return 0
    if len(sets) == 1 and sets[0].is_exact:
        return sets[0].size
    ranges: list[tuple[int, int]] = sorted((x.low, x.high) for x in sets)
    are_disjoint = all(a[1] <= b[0] for a, b in pairwise(ranges))
    if are_disjoint and all(x.is_exact for x in sets):
        return sum(x.size for x in sets)
    upper_bound = sum(x.size for x in sets)
    if upper_bound <= MAX_COUNTED_POSITIONS and not all(x.is_exact and x.size == x.high - x.low for x in sets):
        return len(np.unique(np.concatenate([x.all() for x in sets])))
    covered, end = 0, ranges[0][0]
    for low, high in ranges:
        covered += max(0, high - max(low, end))
        end = max(end, high)
    return min(covered, upper_bound)


class PositionSet(NamedTuple):
    """A set of positions in memory: the lowest one, then (stride, size) for each step, the smallest stride first."""

    low: int
    steps: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """The product of the sizes: the number of positions if none is reached twice."""
        return prod(n for _, n in self.steps)

    @property
    def high(self) -> int:
        """The highest position plus 1."""
        return self.low + sum(stride * (n - 1) for stride, n in self.steps) + 1

    @property
    def is_exact(self) -> bool:
        """True if certainly no position is reached twice."""
        reach = 0
        for stride, n in self.steps:
            if stride <= reach:
                return False
            reach += stride * (n - 1)
        return True

    def all(self) -> NDArray[np.int64]:
        """Return all positions, each as often as it is reached."""
        found = np.array([self.low])
        for stride, n in self.steps:
            found = (found[:, None] + np.arange(n) * stride).reshape(-1)
        return found


def position_set(layout: Layout) -> PositionSet | None:
    """Return the positions of the elements of a layout, in any order; None if it has no elements."""
    if layout.size == 0:
        return None
    steps: list[tuple[int, int]] = []
    for stride, n in sorted((abs(s), n) for s, n in zip(layout.strides, layout.shape, strict=True) if s and n > 1):
        if steps and stride == steps[-1][0] * steps[-1][1]:
            steps[-1] = steps[-1][0], steps[-1][1] * n
        else:
            steps.append((stride, n))
    return PositionSet(layout.span()[0], tuple(steps))

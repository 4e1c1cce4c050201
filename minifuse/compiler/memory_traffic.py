"""Count the memory traffic of a step in bytes, and the arithmetic of a matmul.

The traffic is the least that the step must move, whatever the caches do: an element that is read many times counts once,
and an expanded operand counts as much as its memory. If a step has several launches, such as a matmul that is split along K,
the partial results between them count once for the write and once for the read. The backend returns their size.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from ..backends.base import Backend
from ..core.dtypes import DType
from ..core.layout import Layout
from ..core.overlap import count_positions
from ..ir.kernel_ir import Expression, IndexedAccess, Load, ReadOutput, ReduceExpr
from ..ir.steps import NO_BUFFER, Step


class OperandTraffic(NamedTuple):
    """An operand that a step reads or writes."""

    slot: int
    layout: Layout
    """The layout in which the step reads or writes it."""
    dtype: DType
    nbytes: int
    """Size of the distinct elements of the operand, in bytes."""


class Traffic(NamedTuple):
    """The memory traffic and the arithmetic of a step."""

    reads: list[OperandTraffic]
    writes: list[OperandTraffic]
    nbytes: int
    """Distinct bytes that are read, plus those that are written. Operands in the same memory count once."""
    scratch: int
    """Bytes of the memory that only the step itself writes and reads. `nbytes` contains them twice."""
    launches: int
    """How many kernels the backend launches for the step."""
    flops: int
    """Multiplications and additions of a matmul; 0 for other kernels, which memory limits."""


def step_traffic(step: Step, backend: Backend, alias_of: Mapping[int, int] | None = None) -> Traffic:
    """Return the traffic of a step on a backend. `alias_of` maps slots of one memory block to one common slot."""
    # A row output is stored with one element per row, even if the row is empty.
    shapes = [step.stored_shape(k) for k in range(len(step.outputs))]
    outputs = [(slot, Layout(shape, x.strides, x.offset)) for shape, (slot, x) in zip(shapes, step.outputs, strict=True)]
    dtypes = [e.dtype for e in step.kernel.outputs]
    writes = [OperandTraffic(*x, dtype, nbytes_of(x[1], dtype)) for x, dtype in zip(outputs, dtypes, strict=True)]
    launches, scratch, flops = backend.compile(step).cost()
    inputs = zip(step.inputs, [e.dtype for e in step.kernel.find_all(Load)], strict=True)
    reads = [OperandTraffic(*x, dtype, nbytes_of(x[1], dtype)) for x, dtype in inputs if x[0] != NO_BUFFER]
    reads += [writes[e.index] for e in step.kernel.find_all(ReadOutput)]
    gathered = gathered_operands(step)
    if prod(step.shape) == 0:
        reads, gathered = [], []
    full_reads = [x._replace(nbytes=nbytes_of(x.layout, x.dtype)) for x in gathered]
    read_nbytes = min(
        union_bytes(reads, alias_of) + sum(x.nbytes for x in gathered), union_bytes([*reads, *full_reads], alias_of)
    )
    nbytes = read_nbytes + union_bytes(writes, alias_of) + 2 * scratch
    return Traffic([*reads, *gathered], writes, nbytes, scratch, launches, flops)


def gathered_operands(step: Step) -> list[OperandTraffic]:
    """Return the operands that a step gathers from: one element per gathering point, at most the whole array."""
    varying_dims: dict[Expression, set[int]] = {}  # expression -> the dims along which it varies
    counts = [0] * len(step.indexed_operands)
    for e in step.kernel.order:
        reduced = e.reduced(step.dims) if isinstance(e, ReduceExpr) else ()
        varying_dims[e] = {d for x in e.inputs for d in varying_dims[x]} - {*reduced}
        if isinstance(e, Load):
            varying_dims[e] = {d for d, s in enumerate(step.inputs[e.index][1].strides) if s}
        elif isinstance(e, ReadOutput):
            varying_dims[e] = set(range(len(step.shape)))
        elif isinstance(e, IndexedAccess):
            counts[e.index] += prod(step.shape[d] for d in varying_dims[e])
    operands = []
    for (slot, layout), dtype, count in zip(step.indexed_operands, step.kernel.indexed_dtypes(), counts, strict=True):
        operands.append(OperandTraffic(slot, layout, dtype, min(count * dtype.itemsize, nbytes_of(layout, dtype))))
    return operands


def nbytes_of(layout: Layout, dtype: DType) -> int:
    """Return the size of the distinct elements of a layout, in bytes."""
    return count_positions([layout]) * dtype.itemsize


def union_bytes(operands: Sequence[OperandTraffic], alias_of: Mapping[int, int] | None = None) -> int:
    """Return the size of the distinct elements of several operands, in bytes."""
    slots: dict[tuple[int, DType], list[Layout]] = {}
    for x in operands:
        slots.setdefault(((alias_of or {}).get(x.slot, x.slot), x.dtype), []).append(x.layout)
    return sum(count_positions(layouts) * dtype.itemsize for (_, dtype), layouts in slots.items())

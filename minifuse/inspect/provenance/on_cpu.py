"""Run the loops of the python backend and the kernels of the parallel backend on value IDs: see `cell`.

The text of a CPU kernel is Python, so Python runs it unchanged, with its function names bound to recording functions. How
LLVM transforms the text is not visible here: it may reduce a row in the lanes of a vector.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Any, SupportsFloat

import numpy as np

from ...backends.base import Executable, Launcher, NoExecutable
from ...backends.codegen.loop_emitter import COLUMNS_PER_BLOCK
from ...backends.executable import do_nothing
from ...backends.operand import Operand, ScalarFunction
from ...backends.parallel.backend import CpuKernel, ParallelBackend
from ...backends.parallel.driver import count_chunks
from ...backends.python import PythonBackend
from ...core.layout import Layout
from ...core.operators import Operator
from ...core.overlap import Interval, address_range
from ...ir.kernel_ir import Kernel, LoopNest
from ...ir.step_kernels import BatchedKernel
from ...ir.steps import Step
from ...runtime.memory_pool import MemoryBuffer, Pool
from ..dry_run import allocate_forever
from .recorded_launches import (
    ITEMSIZE,
    ONE_ARRAY_PER_KERNEL,
    LaunchTrace,
    RecordedLaunch,
    make_launch_trace,
)
from .traced_values import ProvenanceLog, ValueId, decode_id


class TracedMemory:
    """Memory whose floats are value IDs. Values that are stored in it are kept in a dict by address."""

    def __init__(self, log: ProvenanceLog, address: int, within: Interval, stored: dict[int, ValueId]) -> None:
        self.log, self.address, self.within, self.stored = log, address, within, stored
        self.dtype = np.dtype(np.float32)

    def __getitem__(self, k: int) -> np.float32:
        at = self.address + ITEMSIZE * int(k)
        if not self.within[0] <= at < self.within[1]:
            return np.float32(nan)  # an input without elements: a kernel may read ahead, but does not use the value
        return self.log.record_load(at, sys._getframe(1).f_lineno)

    def __setitem__(self, k: int, value: SupportsFloat) -> None:
        self.stored[self.address + ITEMSIZE * int(k)] = decode_id(value)


class LaunchRecorder:
    """The common part of recording backends: a list of launches, and memory that is never reused."""

    def __init__(self) -> None:
        self.recorded: list[RecordedLaunch] = []
        self.buffers: list[MemoryBuffer] = []
        self.allocate = Pool(partial(allocate_forever, self.buffers)).allocate

    def launches(self) -> list[RecordedLaunch]:
        """Return the recorded launches, in order."""
        return self.recorded


class RecordingPythonBackend(LaunchRecorder, PythonBackend):
    """The python backend; it records its loops instead of running them."""

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Record the launch of a map."""
        self.record_loop(PythonBackend.map, op, [a], out, ())

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Record the launch of a zip."""
        self.record_loop(PythonBackend.zip, op, [a, b], out, ())

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Record the launch of a reduction."""
        self.record_loop(PythonBackend.reduce, op, [a], out, tuple(dims))

    def record_loop(
        self, loop: Callable[..., None], op: ScalarFunction, xs: list[Operand], out: Operand, dims: tuple[int, ...]
    ) -> None:
        """Record one loop."""
        layout, origin = out.layout.without_offset(), out.address

        def run(requested: set[int]) -> LaunchTrace:
            log, stored = ProvenanceLog(lambda: (0, 0)), dict[int, ValueId]()
            for address in sorted(requested):
                index = layout.index((address - origin) // ITEMSIZE)
                operands = [operand_of_element(log, x, index, dims, stored) for x in (*xs, out)]
                extra = (dims,) if dims else ()
                loop(PythonBackend(), traced_operator(log, op), *operands, *extra)
            return make_launch_trace(log, {at: stored[at] for at in sorted(requested)}, {}, layout.size, ())

        self.recorded.append(RecordedLaunch((address_range(out.address, out.layout.without_offset(), ITEMSIZE),), run))


def traced_operator(log: ProvenanceLog, op: ScalarFunction) -> ScalarFunction:
    """Return an operator whose calls are logged. Other functions only move a value, and are returned unchanged."""
    if not isinstance(op, Operator):
        return op
    traced = copy.copy(op)
    traced.body = log.traced_operator(op.name)
    return traced


def operand_of_element(
    log: ProvenanceLog, x: Operand, index: Sequence[int], dims: tuple[int, ...], stored: dict[int, ValueId]
) -> Operand:
    """Return the part of an operand that one element of the output is computed from."""
    layout = x.layout
    shape = tuple(n if d in dims else 1 for d, n in enumerate(layout.shape))
    offset = layout.offset + sum(i * s for i, s in zip(index, layout.strides, strict=True))
    first = x.address - ITEMSIZE * layout.offset
    memory: Any = TracedMemory(log, first, address_range(first, layout, ITEMSIZE), stored)
    return Operand(memory, Layout(shape, layout.strides, offset))


class RecordingParallelBackend(LaunchRecorder, ParallelBackend):
    """The parallel backend; it records its kernels, one per array, since a traced element belongs to one array."""

    def compile(self, step: Step) -> Executable:
        """Return the executable of a step. Kernels are recorded, and there are no batches."""
        match step.kernel:
            case Kernel() as kernel:
                return RecordedKernel(self.recorded, step, kernel)
            case BatchedKernel():
                return NoExecutable(step, ONE_ARRAY_PER_KERNEL)
        return super().compile(step)


class RecordedKernel(CpuKernel):
    """A kernel whose launches are appended to a list, with the text that would be compiled."""

    def __init__(self, recorded: list[RecordedLaunch], step: Step, kernel: Kernel) -> None:
        super().__init__(step, kernel)
        self.recorded = recorded

    def load(self) -> Launcher:
        """Return a function that records a launch."""
        dims, nest, (outputs, inputs) = self.step.dims, self.nest, self.step.layouts()
        if nest.is_empty:
            return do_nothing

        def reduced(layout: Layout) -> Layout:
            return Layout(tuple(1 if d in dims else n for d, n in enumerate(layout.shape)), layout.strides, layout.offset)

        text, chunks = self.source, count_chunks(nest.sizes[0], nest.points * self.kernel.cost())

        def record(*values: int) -> None:
            layouts = [*map(reduced, outputs), *inputs]
            ranges = [address_range(at, layout, ITEMSIZE) for at, layout in zip(values, layouts, strict=False)]
            run = partial(run_kernel_text, text, nest, chunks, values, ranges, len(outputs))
            self.recorded.append(RecordedLaunch(tuple(ranges[: len(outputs)]), run))

        return record


@dataclass(frozen=True)
class ShiftedMemory:
    """Memory from an element on."""

    memory: Any
    first: int

    def __getitem__(self, place: int) -> Any:
        """Return an element."""
        return self.memory[self.first + place]

    def __setitem__(self, place: int, value: Any) -> None:
        """Store an element."""
        self.memory[self.first + place] = value


def turn_tile(out: Any, step: int, x: Any, x_step: int, rows: int, columns: int) -> None:
    """Copy out[i * step + j] = x[j * x_step + i] for all rows i and columns j."""
    for i in range(rows):
        for j in range(columns):
            out[i * step + j] = x[j * x_step + i]


def run_kernel_text(
    text: str,
    nest: LoopNest,
    chunks: int,
    values: Sequence[int],
    ranges: Sequence[Interval],
    outputs: int,
    requested: set[int],
) -> LaunchTrace:
    """Run the text of a CPU kernel as Python, in the chunks of the driver."""
    chunk, stored = [0], dict[int, ValueId]()
    log = ProvenanceLog(lambda: (chunk[0], 0))
    memory = dict(zip(values, ranges, strict=False))

    def pointer(address: int) -> TracedMemory:
        return TracedMemory(log, address, memory[address], stored)

    def number(x: float | np.float32) -> np.float32:
        return x if isinstance(x, log.float_type) else np.float32(x)

    replacements = {
        "f32": number,
        "pointer_f32": pointer,
        "pointer_f64": list,
        "block_of_f32": lambda: [None] * COLUMNS_PER_BLOCK,
        "shift": ShiftedMemory,
        "turn_tile": turn_tile,
        "inf": inf,
        "nan": nan,
    }
    names: dict[str, Any] = {**log.traced_operators(), **replacements}
    exec(compile(text, "<kernel>", "exec"), names)  # the text was generated by minifuse
    arguments, count = [*values, *nest.sizes[1:], *nest.runtime_strides()], nest.sizes[0]
    step = nest.strides[0][0]
    inner_span = sum((n - 1) * s for n, s in zip(nest.sizes[1:], nest.strides[0][1:], strict=True))
    chunks_run = list[int]()
    for k in range(chunks):
        start, stop = count * k // chunks, count * (k + 1) // chunks
        low, high = values[0] + ITEMSIZE * step * start, values[0] + ITEMSIZE * (step * (stop - 1) + inner_span)
        if chunks == 1 or any(low <= at <= high for at in requested):
            chunk[0] = k
            chunks_run.append(k)
            names["kernel"](start, stop, arguments)
    lines = dict(enumerate(text.splitlines(), start=1))
    return make_launch_trace(log, {at: stored[at] for at in sorted(requested)}, lines, chunks, tuple(chunks_run))

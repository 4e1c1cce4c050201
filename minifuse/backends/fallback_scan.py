"""A scan as one pointwise launch for each index along its dim: the specification, for a backend without a kernel for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.dtypes import DType, float32, float64
from ..core.layout import row_major
from ..ir.kernel_ir import (
    Expression,
    IndexValue,
    Kernel,
    KernelParameter,
    Load,
    OpaqueOutput,
    cast,
    renumber_operands,
    replace,
    replace_in,
)
from ..ir.monoid import monoid_of
from ..ir.step_kernels import ScanKernel, offset_operands
from ..ir.steps import Step
from .codegen.scan_nest import without_dim
from .executable import Cost, Executable, Launcher, do_nothing
from .operand import Operand

if TYPE_CHECKING:
    from .base import Backend


class FallbackScan(Executable):
    """A scan by pointwise launches. Floats are accumulated in float64."""

    def __init__(self, backend: "Backend", step: Step, kernel: ScanKernel) -> None:
        super().__init__(step)
        self.backend, self.kernel = backend, kernel

    @property
    def source(self) -> str:
        """A comment: there is no text."""
        op = self.kernel.op
        return f"# {self.backend.name}: {op.names[0]} along dim {op.dim} of {self.step.shape}, one index at a time\n"

    def cost(self) -> Cost:
        """Return a launch for each index along the dim."""
        return Cost(self.step.shape[self.kernel.op.dim])

    def load(self) -> Launcher:
        """Return the launches."""
        return do_nothing if 0 in self.step.shape else SliceScan(self.backend, self.step, self.kernel).launch


class SliceScan:
    """The launches of a scan. Each combines the accumulators with slices of the inputs, and stores slices of the outputs."""

    def __init__(self, backend: "Backend", step: Step, kernel: ScanKernel) -> None:
        self.backend, self.kernel, d = backend, kernel, kernel.op.dim
        self.output_count, self.n = len(kernel.outputs), step.shape[d]
        layouts, loads = [x for group in step.layouts() for x in group], kernel.find_all(Load)
        is_index = [False] * self.output_count + [isinstance(e, IndexValue) for e in loads]
        sizes = [1 if index else x.itemsize for index, x in zip(is_index, kernel.operand_dtypes(), strict=True)]
        self.steps = [x.strides[d] * size for x, size in zip(layouts, sizes, strict=True)]
        self.slices = [without_dim(x, d) for x in layouts]
        self.address_count = len(layouts)
        self.states = [accumulator_dtype(e.dtype) for e in kernel.states]
        count = len(self.states)
        self.start = self.load(tuple(cast(e, dtype) for e, dtype in zip(kernel.states, self.states, strict=True)), 0)
        values = [cast(offset_operands(e, 0, count), x) for e, x in zip(kernel.states, self.states, strict=True)]
        combined = tuple(
            replace(e, Load, lambda x: x if x.index < count else values[x.index - count])
            for e in monoid_of(kernel.op.operator).expressions(self.states)
        )
        self.combine = self.load(combined, count)

    def load(self, states: tuple[Expression, ...], accumulators: int) -> "tuple[Launcher, list[int], list[int]]":
        """Load a kernel that stores the states and the outputs; return its launch, the inputs and numbers that it reads."""
        kernel = self.kernel
        scanned = {e: cast(states[kernel.state_of(e)], e.dtype) for e in kernel.scanned}
        moved = {e: OpaqueOutput(e.name, (), e.dtype) for e in kernel.scanned}  # without the loads of the prologue
        epilogue = [offset_operands(e, 0, accumulators) for e in replace_in(kernel.outputs, OpaqueOutput, moved.__getitem__)]
        values = {moved[e]: x for e, x in scanned.items()}
        outputs = replace_in(epilogue, OpaqueOutput, values.__getitem__)
        expressions, used = renumber_operands((*states, *outputs))
        numbers = Kernel(expressions, ()).find_all(KernelParameter)
        renumbered = {p: KernelParameter(k, p.dtype) for k, p in enumerate(numbers)}
        expressions = replace_in(expressions, KernelParameter, renumbered.__getitem__)
        dense = row_major(self.slices[0].shape)
        stored, read = self.slices[: self.output_count], [dense] * accumulators + self.slices[self.output_count :]
        step = Step.of_layouts(
            Kernel(expressions, ()), dense.shape, (), [dense] * len(states) + stored, [read[k] for k in used]
        )
        return self.backend.compile(step).load(), used, [p.index for p in numbers]

    def launch(self, *values: float) -> None:
        """Scan the operands at some addresses, with some numbers."""
        shape, addresses, numbers = self.slices[0].shape, values[: self.address_count], values[self.address_count :]
        old: Sequence[Operand] = []
        order = range(self.n)
        for i in reversed(order) if self.kernel.op.reverse else order:
            new = [Operand.from_array(np.empty(shape, dtype.numpy)) for dtype in self.states]
            places = [address + i * step for address, step in zip(addresses, self.steps, strict=True)]
            launch, used, used_numbers = self.combine if old else self.start
            outputs = [*[x.address for x in new], *places[: self.output_count]]
            read = [*[x.address for x in old], *places[self.output_count :]]
            launch(*outputs, *[read[k] for k in used], *[numbers[k] for k in used_numbers])
            old = new


def accumulator_dtype(dtype: DType) -> DType:
    """Return the dtype in which elements are accumulated: float64 for float32, others unchanged."""
    return float64 if dtype is float32 else dtype

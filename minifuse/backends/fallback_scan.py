"""A scan as one pointwise launch for each index along its dim: the specification, for a backend without a kernel for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType, float32, float64
from ..core.layout import row_major
from ..ir.kernel_ir import Kernel, Load, cast, renumber_operands, replace
from ..ir.monoid import monoid_of
from ..ir.scan import Scan
from ..ir.steps import Step
from .codegen.scan_nest import without_dim
from .executable import Cost, Executable, Launcher, do_nothing
from .operand import Operand

if TYPE_CHECKING:
    from .base import Backend


class FallbackScan(Executable):
    """A scan by pointwise launches. Floats are accumulated in float64."""

    def __init__(self, backend: "Backend", step: Step, op: Scan) -> None:
        super().__init__(step)
        self.backend, self.op = backend, op

    @property
    def source(self) -> str:
        """A comment: there is no text."""
        return (
            f"# {self.backend.name}: {self.op.names[0]} along dim {self.op.dim} of {self.step.shape}, one index at a time\n"
        )

    def cost(self) -> Cost:
        """Return a launch for each index along the dim."""
        return Cost(self.step.shape[self.op.dim])

    def load(self) -> Launcher:
        """Return the launches."""
        return do_nothing if 0 in self.step.shape else SliceScan(self.backend, self.step, self.op).launch


class SliceScan:
    """The launches of a scan. Each combines the accumulators with slices of the inputs, and stores slices of the outputs."""

    def __init__(self, backend: "Backend", step: Step, op: Scan) -> None:
        self.backend, self.op, d = backend, op, op.dim
        dtypes = step.kernel.operand_dtypes()
        self.output_count, self.n = len(op.kept), step.shape[d]
        self.dtypes = dtypes[self.output_count :]
        layouts = [x for group in step.layouts() for x in group]
        self.steps = [x.strides[d] * dtype.itemsize for x, dtype in zip(layouts, dtypes, strict=True)]
        self.slices = [without_dim(x, d) for x in layouts]
        self.states = [accumulator_dtype(dtype) for dtype in self.dtypes]
        loads = [Load(k, dtype) for k, dtype in enumerate(self.dtypes)]
        self.start = self.load(tuple(cast(x, dtype) for x, dtype in zip(loads, self.states, strict=True)), 0)
        count = len(loads)
        combined = tuple(
            replace(e, Load, lambda x: x if x.index < count else cast(Load(x.index, self.dtypes[x.index - count]), x.dtype))
            for e in monoid_of(op.operator).expressions(self.states)
        )
        self.combine = self.load(combined, count)

    def load(self, expressions: tuple[Any, ...], accumulators: int) -> "tuple[Launcher, list[int]]":
        """Load a kernel that stores the states and the outputs; return its launch, and the inputs that it reads."""
        outputs = tuple(cast(expressions[k], self.dtypes[k]) for k in self.op.kept)
        renumbered, used = renumber_operands((*expressions, *outputs))
        dense = row_major(self.slices[0].shape)
        stored, read = self.slices[: self.output_count], [dense] * accumulators + self.slices[self.output_count :]
        step = Step.of_layouts(
            Kernel(renumbered, ()), dense.shape, (), [dense] * len(expressions) + stored, [read[k] for k in used]
        )
        return self.backend.compile(step).load(), used

    def launch(self, *addresses: int) -> None:
        """Scan the operands at some addresses."""
        shape = self.slices[0].shape
        old: Sequence[Operand] = []
        order = range(self.n)
        for i in reversed(order) if self.op.reverse else order:
            new = [Operand.from_array(np.empty(shape, dtype.numpy)) for dtype in self.states]
            places = [address + i * step for address, step in zip(addresses, self.steps, strict=True)]
            launch, used = self.combine if old else self.start
            read = [*[x.address for x in old], *places[self.output_count :]]
            launch(*[x.address for x in new], *places[: self.output_count], *[read[k] for k in used])
            old = new


def accumulator_dtype(dtype: DType) -> DType:
    """Return the dtype in which elements are accumulated: float64 for float32, others unchanged."""
    return float64 if dtype is float32 else dtype

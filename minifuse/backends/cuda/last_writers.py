"""The last position of each number in an index, on a GPU: an atomic maximum, whose result does not depend on the order."""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from ...core.dtypes import DType, int64
from ...core.layout import Layout
from ...core.rounding import ceil_div
from ...ir.indexing import LastWriters
from ...ir.steps import Step
from ..executable import Cost, Executable, Launcher, do_nothing
from .intrinsics.base import atomic_max, cuda, i64
from .launch_plan import OUT, GpuLaunch, GpuPlan, OperandAddress
from .planned_launcher import AlignmentFlags, PlannedLauncher
from .tile_shapes import GpuKernel

if TYPE_CHECKING:
    from .device import CudaDevice

THREADS = 256


@cache
def make_clear() -> GpuKernel:
    """Return the kernel that stores -1 everywhere."""

    def clear(out, n):
        i = i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if i < n:
            out[i] = -1

    return GpuKernel("clear_writers", (), clear, ("*i64", "i64"), THREADS)


@cache
def make_note(element: str) -> GpuKernel:
    """Return the kernel that stores the position of each index, unless a later one is stored. Others are dropped."""

    def note(out, index, n, count, step):
        k = i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if k < count:
            i = i64(index[k * step])
            if i >= 0 and i < n:
                atomic_max(out, i, k)

    return GpuKernel("note_writers", (element,), note, ("*i64", f"*{element}", "i64", "i64", "i64"), THREADS)


class CudaLastWriters(Executable):
    """The step of the op."""

    def __init__(self, device: "CudaDevice", step: Step, op: LastWriters) -> None:
        super().__init__(step)
        self.device, self.op = device, op

    @property
    def source(self) -> str:
        """The name of each kernel."""
        return f"{make_clear().source}\n{make_note(self.step.kernel.operand_dtypes()[1].short).source}"

    def cost(self) -> Cost:
        """Return 2 launches."""
        return Cost(2 if self.op.size else 0)

    def load(self) -> Launcher:
        """Return a launcher."""
        if not self.op.size:
            return do_nothing
        layouts = [x for group in self.step.layouts() for x in group]
        return LastWritersLauncher(self.device, layouts, self.step.kernel.operand_dtypes()[1])


class LastWritersLauncher(PlannedLauncher):
    """A launcher: clear all elements, then note all positions."""

    def __init__(self, device: "CudaDevice", layouts: Sequence[Layout], dtype: DType) -> None:
        (self.out, self.index), self.index_dtype = layouts, dtype
        super().__init__(device, layouts, [int64, dtype, int64], [range(2)])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches."""
        (n,), (count,), (step,) = self.out.shape, self.index.shape, self.index.strides

        def launch(kernel: GpuKernel, size: int, *arguments: OperandAddress | int) -> GpuLaunch:
            return GpuLaunch(kernel, (ceil_div(size, THREADS), 1, 1), (THREADS, 1, 1), arguments)

        noted = launch(make_note(self.index_dtype.short), count, OperandAddress(OUT), OperandAddress(1), n, count, step)
        return GpuPlan((launch(make_clear(), n, OperandAddress(OUT), n), *[noted] * (count > 0)))

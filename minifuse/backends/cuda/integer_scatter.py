"""Sums of integers by index on a GPU, by atomic additions: they are exact, so the order of the threads does not matter.

If each slice is one number and the sums fit in shared memory, each block adds up its own ones there first: a histogram.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from functools import cache, cached_property
from typing import TYPE_CHECKING

from ...core.dtypes import int64
from ...core.rounding import ceil_div, power_of_two
from ...ir.kernel_ir import Kernel, constant
from ...ir.sorted_scatter import IntegerScatter
from ...ir.steps import Step
from ..executable import Cost, Executable, Launcher, do_nothing
from .codegen.dialect import storage_of
from .intrinsics import base
from .intrinsics.base import atomic_add, cuda, i64
from .launch_plan import OUT, GpuLaunch, GpuPlan, OperandAddress
from .launch_sequence import LaunchSequence
from .launcher import CudaKernelLauncher
from .planned_launcher import PlanLauncher
from .tile_shapes import GpuKernel

if TYPE_CHECKING:
    from .device import CudaDevice

THREADS = 256
SHARED_SUMS = 4096  # that a block has in shared memory
BLOCKS_PER_MULTIPROCESSOR = 6


@cache
def make_add(element: str, index_type: str) -> GpuKernel:
    """Return the kernel that adds each slice to the output. The threads of a slice have its columns."""

    def add(out, values, index, size, count, batch, columns, step, out_b, out_i, out_d, from_b, from_k, from_d):
        item = i64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y
        if item < batch * count:
            b, k = item // count, item % count
            i = i64(index[k * step])
            if i >= 0 and i < size:
                for d in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
                    atomic_add(out, b * out_b + i * out_i + d * out_d, values[b * from_b + k * from_k + d * from_d])

    signature = (f"*{element}", f"*{element}", f"*{index_type}", *["i64"] * 11)
    return GpuKernel("add_slices", (element, index_type), add, signature, THREADS)


@cache
def make_histogram(element: str, index_type: str) -> GpuKernel:
    """Return the kernel in which each block adds numbers to sums in shared memory, and then these to the output."""
    number = getattr(base, element)

    def histogram(out, values, index, size, count, step, out_i, from_k):
        sums = cuda.shared.array(SHARED_SUMS, number)
        for i in range(cuda.threadIdx.x, size, THREADS):
            sums[i] = 0
        cuda.syncthreads()
        for k in range(i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x, count, i64(cuda.gridDim.x) * THREADS):
            v = i64(index[k * step])
            if v >= 0 and v < size:
                atomic_add(sums, v, values[k * from_k])
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, size, THREADS):
            if sums[i] != 0:
                atomic_add(out, i * out_i, sums[i])

    signature = (f"*{element}", f"*{element}", f"*{index_type}", *["i64"] * 5)
    return GpuKernel("histogram", (element, index_type), histogram, signature, THREADS)


class CudaIntegerScatter(Executable):
    """A sum of integers by index, after zeros are stored everywhere."""

    def __init__(self, device: "CudaDevice", step: Step, op: IntegerScatter) -> None:
        super().__init__(step)
        self.device = device
        (self.out,), (self.values, self.index) = step.layouts()
        self.dtype, _, self.index_dtype = step.kernel.operand_dtypes()

    @cached_property
    def plan(self) -> GpuPlan:
        """The launch that adds."""
        batch, size, columns = self.out.shape
        (count,), (step,) = self.index.shape, self.index.strides
        if not count:
            return GpuPlan()
        kinds = storage_of(self.dtype), self.index_dtype.short
        operands = OperandAddress(OUT), OperandAddress(1), OperandAddress(2)
        if batch == columns == 1 and size <= SHARED_SUMS:
            blocks = min(ceil_div(count, THREADS), BLOCKS_PER_MULTIPROCESSOR * self.device.multiprocessors)
            numbers = size, count, step, self.out.strides[1], self.values.strides[1]
            return GpuPlan((GpuLaunch(make_histogram(*kinds), (blocks, 1, 1), (THREADS, 1, 1), (*operands, *numbers)),))
        across = min(power_of_two(columns), THREADS)
        block = across, THREADS // across, 1
        grid = ceil_div(batch * count, block[1]), 1, 1
        arguments: tuple[OperandAddress | int, ...] = (
            *operands,
            size,
            count,
            batch,
            columns,
            step,
            *self.out.strides,
            *self.values.strides,
        )
        return GpuPlan((GpuLaunch(make_add(*kinds), grid, block, arguments),))

    @property
    def source(self) -> str:
        """The name of each kernel."""
        return "\n".join(x.kernel.source for x in self.plan.launches)

    def cost(self) -> Cost:
        """Return the number of launches."""
        return Cost(1 + len(self.plan.launches) if self.out.size else 0)

    def load(self) -> Launcher:
        """Return the fill, and the launch."""
        if not self.out.size:
            return do_nothing
        zeros = Kernel((constant(0, self.dtype),), ())
        fill = CudaKernelLauncher(self.device, Step.of_layouts(zeros, self.out.shape, (), [self.out], []))
        return LaunchSequence(
            self.device, [(fill, [OUT]), (PlanLauncher(self.device, self.step, self.plan, int64), range(3))]
        )

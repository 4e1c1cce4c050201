"""Stores at an index on a GPU: of several slices with one index, the last one is stored.

An atomic maximum finds the last slice of each position; its result does not depend on the order of the threads. Then each
slice that is the last one is stored. The array is copied first, unless it is updated in place.

The last slices of many positions do not fit in the cache. So two bits are kept for each of these: whether an index selects
it, and whether several do. Only slices of the latter look for the last one.
"""

# (pyproject.toml exempts kernels from typing: their types are Numba's or the interpreter's)

from functools import cache, cached_property
from typing import TYPE_CHECKING

from ...core.dtypes import int32
from ...core.rounding import ceil_div, power_of_two
from ...ir.indexing import IndexUpdate
from ...ir.kernel_ir import copy_kernel
from ...ir.steps import Step
from ..executable import Cost, Executable, Launcher, do_nothing
from .codegen.dialect import storage_of
from .intrinsics.base import atomic_max, atomic_or, cuda, i32, i64
from .launch_plan import OUT, WORKSPACE, GpuLaunch, GpuPlan, OperandAddress
from .launch_sequence import LaunchSequence
from .launcher import CudaKernelLauncher, CudaLauncher
from .planned_launcher import PlanLauncher
from .tile_shapes import GpuKernel

if TYPE_CHECKING:
    from .device import CudaDevice

THREADS = 256
MAX_COUNT = 1 << 31  # positions of slices have 32 bits
MIN_MARKED = 1 << 22  # positions for which two bits each are kept


@cache
def make_clear(number: int) -> GpuKernel:
    """Return the kernel that stores a number everywhere."""

    def clear(last, size):
        i = i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if i < size:
            last[i] = number

    return GpuKernel("clear_writers", (number,), clear, ("*i32", "i64"), THREADS)


@cache
def make_note(index_type: str) -> GpuKernel:
    """Return the kernel that notes each slice at its position, unless a later one is noted. Others are dropped."""

    def note(last, index, size, count, step):
        k = i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if k < count:
            i = i64(index[k * step])
            if i >= 0 and i < size:
                atomic_max(last, i, i32(k))

    return GpuKernel("note_writers", (index_type,), note, ("*i32", f"*{index_type}", "i64", "i64", "i64"), THREADS)


@cache
def make_store(element: str, index_type: str) -> GpuKernel:
    """Return the kernel that stores the slices that are noted at their position. The threads of a slice have its columns."""

    def store(out, values, index, last, size, count, batch, columns, step, out_b, out_i, out_d, from_b, from_k, from_d):
        item = i64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y
        if item < batch * count:
            b, k = item // count, item % count
            i = i64(index[k * step])
            if i >= 0 and i < size and last[i] == k:
                for d in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
                    out[b * out_b + i * out_i + d * out_d] = values[b * from_b + k * from_k + d * from_d]

    signature = (f"*{element}", f"*{element}", f"*{index_type}", "*i32", *["i64"] * 11)
    return GpuKernel("store_slices", (element, index_type), store, signature, THREADS)


@cache
def make_mark(index_type: str) -> GpuKernel:
    """Return the kernel that sets the first bit of each position that an index selects, and the second if several do."""

    def mark(flags, last, index, size, count, step):
        k = i64(cuda.blockIdx.x) * THREADS + cuda.threadIdx.x
        if k < count:
            i = i64(index[k * step])
            if i >= 0 and i < size:
                bit = i32(1) << i32(i & 7)
                if atomic_or(flags, i >> 3, bit) & bit != 0:
                    atomic_or(flags, i >> 3, bit << i32(8))
                    last[i] = -1

    return GpuKernel("mark_positions", (index_type,), mark, ("*i32", "*i32", f"*{index_type}", "i64", "i64", "i64"), THREADS)


@cache
def make_store_marked(element: str, index_type: str, is_last: bool) -> GpuKernel:
    """Return the kernel that stores the only slice of a position, and notes the others; or that stores those noted last."""

    def store(out, values, index, flags, last, size, count, batch, columns, step, o_b, o_i, o_d, from_b, from_k, from_d):
        item = i64(cuda.blockIdx.x) * cuda.blockDim.y + cuda.threadIdx.y
        if item < batch * count:
            b, k = item // count, item % count
            i = i64(index[k * step])
            if i >= 0 and i < size:
                is_shared = (flags[i >> 3] >> i32(8 + (i & 7))) & 1 != 0
                if is_shared and not is_last:
                    if b == 0 and cuda.threadIdx.x == 0:
                        atomic_max(last, i, i32(k))
                elif is_shared == is_last and (not is_last or last[i] == k):
                    for d in range(cuda.threadIdx.x, columns, cuda.blockDim.x):
                        out[b * o_b + i * o_i + d * o_d] = values[b * from_b + k * from_k + d * from_d]

    signature = (f"*{element}", f"*{element}", f"*{index_type}", "*i32", "*i32", *["i64"] * 11)
    return GpuKernel("store_marked", (element, index_type, is_last), store, signature, THREADS)


class CudaIndexUpdate(Executable):
    """A store of slices along the middle one of three dims."""

    def __init__(self, device: "CudaDevice", step: Step, op: IndexUpdate) -> None:
        super().__init__(step)
        self.device, self.op = device, op
        (self.out,), (self.old, self.index, self.values) = step.layouts()
        self.dtype, _, self.index_dtype, _ = step.kernel.operand_dtypes()
        self.is_in_place = step.outputs[0] == step.inputs[0]

    @property
    def refusal(self) -> str | None:
        """Why the definition of the op is used: slices are combined, or are not those of the middle one of three dims."""
        if self.op.operator is not None or (self.out.ndim, self.op.dim) != (3, 1):
            return "a CUDA kernel stores slices along the middle one of three dims"
        return "a CUDA kernel stores less than 2**31 slices" if self.index.size >= MAX_COUNT else None

    @cached_property
    def plan(self) -> GpuPlan:
        """The launches, after the copy."""
        batch, size, columns = self.out.shape
        (count,), (step,) = self.index.shape, self.index.strides
        last, index, values = OperandAddress(WORKSPACE), OperandAddress(2), OperandAddress(3)
        across = min(power_of_two(columns), THREADS)
        index_type, strides = self.index_dtype.short, (*self.out.strides, *self.values.strides)
        line, block = (THREADS, 1, 1), (across, THREADS // across, 1)
        operands, numbers = (OperandAddress(OUT), values, index), (size, count, batch, columns, step, *strides)
        kinds, blocks = (storage_of(self.dtype), index_type), (ceil_div(batch * count, block[1]), 1, 1)
        every, each = ((ceil_div(n, THREADS), 1, 1) for n in (size, count))
        if size < MIN_MARKED:
            noting = (
                GpuLaunch(make_clear(-1), every, line, (last, size)),
                GpuLaunch(make_note(index_type), each, line, (last, index, size, count, step)),
                GpuLaunch(make_store(*kinds), blocks, block, (*operands, last, *numbers)),
            )
            return GpuPlan(noting, size * int32.itemsize)
        words, flags = ceil_div(size, 8), OperandAddress(WORKSPACE, size)
        marking = (
            GpuLaunch(make_clear(0), (ceil_div(words, THREADS), 1, 1), line, (flags, words)),
            GpuLaunch(make_mark(index_type), each, line, (flags, last, index, size, count, step)),
            *[
                GpuLaunch(make_store_marked(*kinds, is_last), blocks, block, (*operands, flags, last, *numbers))
                for is_last in (False, True)
            ],
        )
        return GpuPlan(marking, (size + words) * int32.itemsize)

    @property
    def source(self) -> str:
        """The name of each kernel."""
        return "\n".join(x.kernel.source for x in self.plan.launches)

    def cost(self) -> Cost:
        """Return the number of launches, and the bytes of workspace."""
        return Cost(len(self.plan.launches) + (not self.is_in_place), self.plan.workspace) if self.out.size else Cost(0)

    def load(self) -> Launcher:
        """Return the copy, and the launches."""
        if not self.out.size:
            return do_nothing
        parts = list[tuple[CudaLauncher, range]]()
        if not self.is_in_place:
            copy = Step.of_layouts(copy_kernel(self.dtype), self.out.shape, (), [self.out], [self.old])
            parts.append((CudaKernelLauncher(self.device, copy), range(2)))
        return LaunchSequence(self.device, [*parts, (PlanLauncher(self.device, self.step, self.plan, int32), range(4))])

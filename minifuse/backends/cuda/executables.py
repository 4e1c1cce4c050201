"""The executables of the cuda backend, one class for each kind of kernel.

Loading a kernel collapses its axes, generates its source, compiles it or finds it in the cache, and fixes the grid. A launch
then passes addresses and numbers.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from ...core.dtypes import Number
from ...core.layout import Layout
from ...ir.composite_op import CompositeOp
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    LoopNest,
    ReduceExpr,
    constant,
    renumber_operands,
    replace,
)
from ...ir.step_kernels import BatchedKernel, MatmulKernel, renumber_indexed_operands
from ...ir.steps import Step
from ..codegen.gpu_facts import Facts
from ..codegen.gpu_schedule import Split
from ..codegen.nest import KernelNest
from ..codegen.schedule_search import SearchResult
from ..executable import Cost, Executable, Launcher, count_rows_launches, do_nothing, matmul_flops
from ..fallback import FallbackMatmul
from .attention import launches as attention_launches
from .codegen.multi_tensor import generate_multi_tensor_kernel
from .codegen.select import GeneratedKernel, generate_kernel
from .launch_plan import GpuPlan
from .launcher import CudaKernelLauncher, kernel_geometry
from .matmul.fusion_cost import why_not_fused_matmul
from .matmul.launches import plan_matmul
from .multi_tensor import CudaMultiTensorLauncher, batch_geometry
from .planned_launcher import CudaMatmulLauncher
from .schedule_text import describe_schedule, describe_split
from .split import SplitLauncher, SplitPlan, plan_split

if TYPE_CHECKING:
    from ..base import Backend
    from .device import CudaDevice

LONG_INNER_REDUCTION = "a CUDA kernel computes a reduction inside another one only if it is short"
Sizes = tuple[int, int, int]  # along x, y and z
Functions = dict[str, Callable[..., Number]]  # functions of the caller that a kernel calls, by name


class CudaKernel(Executable):
    """A kernel that is specialized on the kinds of all strides."""

    def __init__(self, device: "CudaDevice", step: Step, kernel: Kernel, functions: Functions | None = None) -> None:
        super().__init__(step)
        self.device, self.kernel, self.functions = device, kernel, functions

    @cached_property
    def nest(self) -> LoopNest:
        """The loops."""
        return self.step.loop_nest()

    @property
    def refusal(self) -> str | None:
        """Why the kernel cannot be generated: an inner reduction is long."""
        if not self.kernel.is_nested:
            return None
        facts = Facts(KernelNest(self.kernel, self.nest))
        is_long = set(facts.long) - set(facts.outer) or not self.nest.points
        return LONG_INNER_REDUCTION if is_long else None

    @cached_property
    def split(self) -> SplitPlan | None:
        """The launches, if the reductions are split over the grid."""
        if self.functions or not self.nest.points or self.kernel.is_nested:
            return None
        return plan_split(self.step, self.kernel, self.device.multiprocessors)

    @cached_property
    def generated(self) -> GeneratedKernel:
        """The kernel, if it is not split."""
        indexed = self.step.indexed_layouts()
        return generate_kernel(self.kernel, self.nest, indexed, find_schedule=self.device.find_schedule)

    @property
    def source(self) -> str:
        """The text that is compiled, of each launch."""
        if self.split is not None:
            return "\n\n".join(part.generate(self.device.find_schedule).text for part in self.split.parts)
        return self.generated.text

    @property
    def schedule(self) -> str:
        """How the axes are dealt out to blocks, threads and registers, and why: one line for each launch."""
        if not self.nest.points:
            return ""
        if self.split is not None:
            return describe_split(self.split, self.device.find_schedule)
        return describe_schedule(self.generated, self.nest)

    @property
    def launches(self) -> str:
        """The blocks and threads of each launch, along x, y and z."""
        if self.nest.is_empty or not self.nest.points:
            return ""
        if self.split is None:
            parts: list[tuple[GeneratedKernel, LoopNest, Split | None]] = [(self.generated, self.nest, None)]
        else:
            find = self.device.find_schedule
            parts = [(part.generate(find), part.step.loop_nest(), part.split) for part in self.split.parts]
        limit = self.device.max_shared_bytes
        return format_launches(kernel_geometry(*part, limit) for part in parts)

    @property
    def searches(self) -> list[SearchResult]:
        """The searches that found the schedules of its launches, as far as they were tuned."""
        schedules = self.device.schedules
        if schedules is None or not self.nest.points:
            return []
        kernels = [(generate_kernel(self.kernel, self.nest, self.step.indexed_layouts()), self.nest)]
        if self.split is not None:
            kernels = [(part.generate(), part.step.loop_nest()) for part in self.split.parts]
        return list(filter(None, (schedules.find_result(*kernel, is_aligned=True) for kernel in kernels)))

    def cost(self) -> Cost:
        """Return 1 launch, or none if the shape has no elements and the kernel stores no value per row.

        If reductions are split over the grid, there are more launches, with partial results in a workspace.
        """
        if self.split is not None:
            return Cost(len(self.split.parts), self.split.workspace)
        return Cost(count_rows_launches(self.step) * bool(0 not in self.step.shape or self.kernel.row_outputs))

    def load(self) -> Launcher:
        """Return a launcher."""
        if self.nest.is_empty or not (self.nest.points or self.kernel.row_outputs):
            return do_nothing
        if not self.nest.points:
            return self.load_empty_reduction()
        if self.split is not None:
            return SplitLauncher(self.device, self.split)
        return CudaKernelLauncher(self.device, self.step, self.functions)

    def load_empty_reduction(self) -> Launcher:
        """Load a kernel whose rows are empty: each reduction is its identity, and the rest is computed once per row."""
        kernel, (outputs, inputs), indexed_layouts = self.kernel, self.step.layouts(), self.step.indexed_layouts()
        layouts = [*outputs, *inputs]
        expressions, input_indices = renumber_operands(
            [replace(e, ReduceExpr, identity_of_reduction) for e in kernel.row_outputs]
        )
        row_kernel, indexed_operands = renumber_indexed_operands(Kernel(expressions, ()))
        first, count = len(kernel.pointwise_outputs), len(kernel.outputs)
        operands = [*range(first, count), *[count + k for k in input_indices]]
        numbers = [
            len(layouts) + len(indexed_layouts) + kernel.find_all(KernelParameter).index(p)
            for p in row_kernel.find_all(KernelParameter)
        ]
        row_shape = self.step.row_shape
        row_layouts = [Layout(row_shape, layouts[k].strides, 0) for k in operands]
        outputs, inputs = row_layouts[: count - first], row_layouts[count - first :]
        step = Step.of_layouts(row_kernel, row_shape, (), outputs, inputs, [indexed_layouts[k] for k in indexed_operands])
        launch = CudaKernel(self.device, step, row_kernel).load()
        indexed = [len(layouts) + k for k in indexed_operands]
        return lambda *values: launch(*[values[k] for k in operands + indexed + numbers])


class CudaBatch(Executable):
    """A pointwise kernel over several arrays, whose blocks find their array in a table."""

    def __init__(self, device: "CudaDevice", step: Step, kernel: BatchedKernel) -> None:
        super().__init__(step)
        self.device, self.kernel = device, kernel.kernel

    @property
    def source(self) -> str:
        """The text that is compiled."""
        return self.generated.text

    @cached_property
    def generated(self) -> GeneratedKernel:
        """The kernel."""
        first = self.step.parts()[0]
        outputs, inputs = first.layouts()
        return generate_multi_tensor_kernel(self.kernel, LoopNest(first.shape, (), [*outputs, *inputs]).stride_kinds)

    @property
    def launches(self) -> str:
        """The blocks and threads of the launch."""
        return format_launches([batch_geometry([prod(part.shape) for part in self.step.parts()], self.generated.each)[0]])

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return a launcher."""
        parts = self.step.parts()
        shapes, layouts = [part.shape for part in parts], [part.layouts() for part in parts]
        return CudaMultiTensorLauncher(self.device, self.kernel, shapes, layouts)


class CudaMatmul(FallbackMatmul):
    """A matrix product with its prologue and epilogue: one kernel, unless there is a reason for several."""

    def __init__(self, backend: "Backend", device: "CudaDevice", step: Step, kernel: MatmulKernel) -> None:
        super().__init__(backend, step, kernel)
        self.device = device

    @cached_property
    def reason(self) -> str:
        """Why the product should not be one kernel; empty if it should."""
        device = self.device
        limits = device.multiprocessors, device.max_shared_bytes
        return why_not_fused_matmul(self.kernel, *self.step.layouts(), *limits) if not self.kernel.is_plain else ""

    @property
    def refusal(self) -> str | None:
        """Why the product should not be one kernel."""
        return self.reason or None

    @cached_property
    def plan(self) -> GpuPlan:
        """The launches, if all addresses are multiples of 16 bytes."""
        device, (outputs, inputs) = self.device, self.step.layouts()
        limits = device.multiprocessors, (True, True, True), device.max_shared_bytes, device.tensor_cores
        return plan_matmul(self.kernel, outputs, inputs, *limits)

    @property
    def source(self) -> str:
        """The generated text of each kernel, under its name. The kernels themselves are in `cuda/matmul`."""
        return super().source if self.reason else "\n\n".join(launch.kernel.source for launch in self.plan.launches)

    @property
    def launches(self) -> str:
        """The blocks and threads of each launch, along x, y and z."""
        return "" if self.reason else format_launches((launch.grid, launch.block) for launch in self.plan.launches)

    def cost(self) -> Cost:
        """Return the launches, and the bytes of the workspace for partial sums if K is split."""
        if self.reason:
            return super().cost()
        return Cost(len(self.plan.launches), self.plan.workspace, matmul_flops(self.step))

    def load(self) -> Launcher:
        """Return a launcher."""
        if self.reason:
            return super().load()
        return CudaMatmulLauncher(self.device, self.kernel, *self.step.layouts())


class CudaAttention(Executable):
    """Attention or one of its gradients."""

    def __init__(self, device: "CudaDevice", step: Step, op: CompositeOp) -> None:
        super().__init__(step)
        self.device, self.op = device, op

    @property
    def refusal(self) -> str | None:
        """Why there is no kernel for these shapes and dtypes."""
        dtypes = self.step.kernel.operand_dtypes()[len(self.step.outputs) :]
        return attention_launches.why_no_kernel([layout.shape for _, layout in self.step.inputs], dtypes)

    @property
    def source(self) -> str:
        """The name and the constants of each kernel. The kernels themselves are in `cuda/attention`."""
        launches = attention_launches.plan_attention(self.op, *self.step.layouts())
        return "\n\n".join(launch.kernel.source for launch in launches)

    @property
    def launches(self) -> str:
        """The blocks and threads of each launch, along x, y and z."""
        launches = attention_launches.plan_attention(self.op, *self.step.layouts())
        return format_launches((launch.grid, launch.block) for launch in launches)

    def cost(self) -> Cost:
        """Return the launches, and the arithmetic of the products."""
        launches, flops = attention_launches.attention_cost(self.op, *self.step.layouts())
        return Cost(launches, 0, flops)

    def load(self) -> Launcher:
        """Return a launcher."""
        return attention_launches.CudaAttentionLauncher(self.device, self.op, *self.step.layouts())


def format_launches(launches: Iterable[tuple[Sizes, Sizes]]) -> str:
    """Return a line for each launch: the blocks of its grid, and the threads of its block."""
    return "\n".join(f"grid {tuple(grid)}, block {tuple(block)}" for grid, block in launches)


def identity_of_reduction(e: ReduceExpr) -> Expression:
    """Return the value of a reduction over no elements."""
    return constant(e.identity, e.dtype)

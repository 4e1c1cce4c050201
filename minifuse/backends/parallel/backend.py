"""The parallel backend: kernels compiled to machine code, run on CPU threads, with an executable for each kind of kernel.

To load a kernel means to collapse its axes, emit its source, compile it (or find it in the cache), and return a launch. The
launch packs addresses and numbers into one buffer and calls the driver.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING

from ...core.dtypes import BY_NUMPY
from ...core.errors import FuseError
from ...core.operators import Operator
from ...ir.composite_op import CompositeOp
from ...ir.indexing import IndexUpdate
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    Load,
    LoopNest,
    Shape,
    cast,
    reduce_expr,
    renumber_operands,
    stride_kinds_of,
    widen,
)
from ...ir.kernel_tracing import trace
from ...ir.search import SearchSorted
from ...ir.selection import Selection
from ...ir.sort import INDICES, Sort
from ...ir.step_kernels import BatchedKernel, CompositeKernel, MatmulKernel, ScanKernel
from ...ir.steps import Step
from ..base import Backend, Operand, ScalarFunction, as_load, empty_reduction_error, identity_for, matmul_widened
from ..codegen.loop_emitter import COLUMNS_PER_BLOCK
from ..codegen.nested_loops import NestedLoops
from ..codegen.short_axes import MIN_UNROLLED_POINTS, short_literals
from ..executable import Cost, Executable, Launcher, NoExecutable, count_rows_launches, do_nothing, matmul_flops
from ..fallback import FallbackMatmul
from . import conv_weight_grad, implicit_gemm_conv, nontemporal_stores, numba_fallback, split_launches, transpose_copy
from .compiler import compile_kernel_text, kernel_text, nested_kernel_text
from .driver import CpuKernelLauncher, count_chunks
from .fused_gemm import FusedMatmul
from .gemm import bind_matmul
from .host_rows import SharedNumpyExecutable
from .index_update import CpuIndexUpdate
from .multi_tensor import make_job
from .scan import CpuScan
from .segment_sum import SegmentSumLaunch, plan_segment_sum
from .select_rows import CpuSelection
from .sort_rows import CpuSort
from .true_positions import MIN_SIZE, true_positions

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor

MIN_SEARCHED_VALUES = 1 << 17  # values of a search that are worth compiling a kernel

# Composite op, by the name of its first output -> the module that binds it.
CONVOLUTIONS: dict[str, ModuleType] = {module.NAME: module for module in (implicit_gemm_conv, conv_weight_grad)}


@dataclass(eq=False)
class CpuKernel(Executable):
    """A kernel as loops that are specialized on the kinds of all strides."""

    kernel: Kernel

    @cached_property
    def nest(self) -> LoopNest:
        """The loops; those of reductions are in the memory order of an operand that has an element for each point."""
        return self.step.loop_nest(whole_first=bool(self.step.dims))

    @cached_property
    def indexed_kinds(self) -> tuple[str, ...]:
        """The stride kinds of indexed operands."""
        indexed = self.step.indexed_operands
        return stride_kinds_of([layout for _, layout in indexed]) if indexed else ()

    @cached_property
    def segment_sum(self) -> SegmentSumLaunch | None:
        """The loops of a segment sum; None for any other kernel."""
        is_possible = self.kernel.row_outputs and not (self.kernel.is_nested or self.nest.is_empty)
        return plan_segment_sum(self.kernel, self.nest, self.indexed_kinds) if is_possible else None

    @cached_property
    def transposed_axes(self) -> tuple[int, int] | None:
        """The axes that a transposing copy swaps; None for any other kernel."""
        return transpose_copy.transposed_axes(self.kernel, self.nest) if len(self.kernel.order) == 1 else None

    @property
    def source(self) -> str:
        """The source text of the loops."""
        if self.kernel.is_nested:
            loops = NestedLoops.of(self.kernel, self.nest, self.step.dims)
            return nested_kernel_text(self.kernel, loops, self.indexed_kinds)
        if self.segment_sum is not None:
            return self.segment_sum.source
        if self.transposed_axes is not None:
            return transpose_copy.source(self.kernel)
        literals = short_literals(self.kernel, self.nest) if self.nest.points >= MIN_UNROLLED_POINTS else ()
        return kernel_text(self.kernel, self.nest.row_axes, self.nest.stride_kinds, self.indexed_kinds, literals)

    def cost(self) -> Cost:
        """Return 1 launch, or none if there are no rows."""
        return Cost(count_rows_launches(self.step))

    def load(self) -> Launcher:
        """Return a launch of machine code."""
        kernel, nest, indexed = self.kernel, self.nest, self.step.indexed_operands
        if nest.is_empty:
            return do_nothing
        address_count, numbers = len(nest.strides) + len(indexed), kernel.find_all(KernelParameter)
        strides = [*nest.runtime_strides(), *[s for _, layout in indexed for s in layout.strides if s not in (0, 1)]]
        if (launch := self.segment_sum) is not None:
            address, constants = compile_kernel_text(launch.source), [*launch.sizes, *strides]
            return CpuKernelLauncher(address, launch.count, launch.chunks, address_count, numbers, constants)
        if self.transposed_axes is not None:
            return transpose_copy.bind_transpose(kernel, nest, *self.transposed_axes)
        work = nest.points * kernel.cost()
        if not self.step.dims and len(nest.sizes) > 1 and (count := split_launches.count_pieces(work / nest.sizes[0])) > 1:
            return split_launches.load_pieces(lambda step: CpuKernel(step, kernel).load(), self.step, kernel, count)
        address = compile_kernel_text(self.source)
        chunks = count_chunks(nest.sizes[0], work)
        constants = [*nest.sizes[1:], *strides]
        header: list[int] = []
        if chunks > 1:
            argument_count = address_count + len(numbers) + len(constants)
            header = nontemporal_stores.stream_arguments(kernel, nest, address, argument_count)
            address = nontemporal_stores.stream_kernel() if header else address
        return CpuKernelLauncher(address, nest.sizes[0], chunks, address_count, numbers, constants, header)


class CpuBatch(Executable):
    """A pointwise kernel over several arrays. Threads share their elements as if they were one array."""

    def __init__(self, step: Step, kernel: BatchedKernel) -> None:
        super().__init__(step)
        self.kernel = kernel.kernel
        self.parts = [CpuKernel(part, self.kernel) for part in step.parts()]

    @property
    def source(self) -> str:
        """The source text of the kernel, which is that of one array."""
        return self.parts[0].source

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def load(self) -> Launcher:
        """Return a launch of machine code."""
        nests = [part.nest for part in self.parts]
        compiled = compile_kernel_text(kernel_text(self.kernel, nests[0].row_axes, nests[0].stride_kinds, ()))
        operand_count, numbers = len(nests[0].stride_kinds), self.kernel.find_all(KernelParameter)
        sizes = [nest.points for nest in nests]
        address, count, chunks, header = make_job(compiled, sizes, operand_count, numbers, self.kernel.cost())
        return CpuKernelLauncher(address, count, chunks, operand_count * len(nests), numbers, [], header)


class CpuMatmul(FallbackMatmul):
    """A matmul that computes its prologue and its epilogue inside its loops, unless these have too many arguments."""

    @cached_property
    def is_empty(self) -> bool:
        """True if the result has no elements."""
        return 0 in self.step.shape

    @cached_property
    def fused(self) -> FusedMatmul | None:
        """The matmul with its stages; None for a plain or an empty matmul, which has none."""
        is_simple = self.kernel.is_plain or self.is_empty
        return None if is_simple else FusedMatmul(self.kernel, *self.step.layouts())

    @cached_property
    def is_separate(self) -> bool:
        """True if prologues and epilogue are separate launches, because one launch would have too many arguments."""
        return self.fused is not None and bool(self.fused.why_too_many_arguments())

    @property
    def refusal(self) -> str | None:
        """Why a prologue should be a separate launch."""
        return (self.fused and self.fused.why_not_fused()) or None

    @property
    def source(self) -> str:
        """The source text of the prologues and the epilogue."""
        return super().source if self.fused is None or self.is_separate else self.fused.source()

    def cost(self) -> Cost:
        """Return 1 launch, and no intermediate arrays."""
        return super().cost() if self.is_separate else Cost(int(not self.is_empty), 0, matmul_flops(self.step))

    def load(self) -> Launcher:
        """Return a launch of the loops."""
        if self.is_separate:
            return super().load()
        return do_nothing if self.is_empty else self.load_plain() if self.fused is None else self.fused.bind()

    def load_plain(self) -> Launcher:
        """Return a launch of the loops without stages."""
        (out,), (a, b) = self.step.layouts()
        return bind_matmul(self.kernel.a.dtype, out, a, b)


class CpuConvolution(Executable):
    """A convolution or its weight gradient, whose matrix of windows is never stored."""

    def __init__(self, backend: Backend, step: Step, op: CompositeOp, module: ModuleType) -> None:
        super().__init__(step)
        self.backend, self.op, self.module = backend, op, module

    @property
    def refusal(self) -> str | None:
        """Why the definition of the op is faster."""
        shapes = [layout.shape for _, layout in self.step.inputs]
        return None if self.module.is_profitable(self.op.parameters, shapes) else "its runs in memory do not fill vectors"

    @property
    def source(self) -> str:
        """The source text of the loops."""
        text: str = self.module.source(self.op.parameters[-1])
        return text

    def cost(self) -> Cost:
        """Return 1 launch, and two operations for each element of each window and each row of the weight."""
        (out,), (weight, *_) = self.step.layouts()
        return Cost(1, 0, 2 * out.size * weight.shape[-1])

    def load(self) -> Launcher:
        """Return a launch of the loops."""

        def load(step: Step) -> Launcher:
            return self.backend.compile(step).load()

        launch: Launcher = self.module.bind(self.op.parameters, *self.step.layouts(), load)
        return launch


CACHE_NBYTES = 1 << 18  # of the second cache


class ParallelBackend(Backend):
    """Run kernels that Numba compiles, on CPU threads."""

    name = "parallel"
    has_roofline = True
    inlines_thin_padding = True

    def compile(self, step: Step) -> Executable:
        """Return the executable of a step. Machine code is compiled when it is loaded."""
        match step.kernel:
            case Kernel() as kernel:
                return CpuKernel(step, kernel)
            case MatmulKernel() as kernel:
                return CpuMatmul(self, step, kernel)
            case BatchedKernel() as kernel:
                return CpuBatch(step, kernel)
            case CompositeKernel(op=op) if (module := CONVOLUTIONS.get(op.names[0])) is not None:
                return CpuConvolution(self, step, op, module)
            case ScanKernel() as kernel:
                return CpuScan(step, kernel)
            case CompositeKernel(op=SearchSorted()) if prod(step.shape) >= MIN_SEARCHED_VALUES:
                return NoExecutable(step, "a kernel searches many values on all cores, which NumPy does not")
            case CompositeKernel(op=Sort() as op) if (
                INDICES in op.names and (sort := CpuSort(self, step, op)).refusal is None
            ):
                return sort
            case CompositeKernel(op=Selection() as op) if (selection := CpuSelection(step, op)).refusal is None:
                return selection
            case CompositeKernel(op=Selection() | Sort() as op) as kernel if op.has_host_function:
                return SharedNumpyExecutable(self, step, kernel, op)
            case CompositeKernel(op=IndexUpdate() as op):
                return CpuIndexUpdate(self, step, op)
        return super().compile(step)

    def true_positions(self, x: "Tensor") -> "Tensor":
        """Return the row-major positions of the true elements of a contiguous tensor of bools, as int64."""
        return true_positions(x) if x.size >= MIN_SIZE else super().true_positions(x)

    def keeps_rows(self, step: Step) -> bool:
        """Return whether a row of the first operand, or a block of columns, fits in the second cache."""
        (load, *_) = step.kernel.find_all(Load)
        row, last = prod(step.shape[d] for d in step.dims), max(step.dims)
        columns = min(prod(step.shape[last + 1 :]), COLUMNS_PER_BLOCK)
        return row * columns * load.dtype.itemsize <= CACHE_NBYTES

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        self._run_elementwise(op, [a], out)

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        self._run_elementwise(op, [a, b], out)

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Compute out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims."""
        if isinstance(op, Operator):
            self._run(reduce_expr(op, widen(as_load(0, a))), a.layout.shape, tuple(dims), out, [a])
            return
        identity = identity_for(op, BY_NUMPY[a.data.dtype])
        if identity is None and 0 in [a.layout.shape[d] for d in dims]:
            raise empty_reduction_error(op, a.layout.shape)
        numba_fallback.reduce(op, a, out, dims, identity)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        if BY_NUMPY[out.data.dtype].is_small:
            matmul_widened(self.matmul, a, b, out)
            return
        out_layout, a_layout, b_layout = (x.layout.without_offset() for x in (out, a, b))
        bind_matmul(BY_NUMPY[out.data.dtype], out_layout, a_layout, b_layout)(out.address, a.address, b.address)

    def _run_elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        try:
            expression = trace(op, [BY_NUMPY[x.data.dtype] for x in xs])
        except (FuseError, TypeError, AttributeError):  # op branches on values, or calls a method that only numbers have
            numba_fallback.run_elementwise(op, xs, out)
            return
        self._run(expression, out.layout.shape, (), out, xs)

    def _run(self, e: Expression, shape: Shape, dims: tuple[int, ...], out: Operand, inputs: Sequence[Operand]) -> None:
        """Run one kernel over operands."""
        (e,), used = renumber_operands([cast(e, BY_NUMPY[out.data.dtype])])
        inputs = [inputs[k] for k in used]  # a function such as lambda a, b: b does not use all of them
        kernel = Kernel((), (e,)) if dims else Kernel((e,), ())
        layouts = [x.layout.without_offset().expand(*shape) for x in (out, *inputs)]
        step = Step.of_layouts(kernel, shape, dims, layouts[:1], layouts[1:])
        self.compile(step).load()(*[x.address for x in (out, *inputs)])

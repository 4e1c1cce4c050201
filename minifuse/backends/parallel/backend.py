"""The parallel backend: kernels compiled to machine code, run on CPU threads.

To bind a kernel means to collapse its axes, emit its source, compile it (or find it in the cache), and return a launch. The
launch packs addresses and numbers into one buffer and calls the driver.
"""

from collections.abc import Sequence
from types import ModuleType

from ...core.dtypes import BY_NUMPY, DType
from ...core.errors import FuseError
from ...core.layout import Layout
from ...core.operators import Operator
from ...ir.array_functions import CompositeOp
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    LoopNest,
    MatmulKernel,
    Shape,
    cast,
    reduce_expr,
    renumber_operands,
    stride_kind,
    stride_kinds_of,
    trace,
)
from ..base import Backend, Launcher, Operand, ScalarFunction, as_load, empty_reduction_error, identity_for
from . import (
    conv_weight_grad,
    implicit_gemm_conv,
    nontemporal_stores,
    numba_fallback,
    segment_sum,
    split_launches,
    transpose_copy,
)
from .compiler import compile_kernel_text
from .cpu_codegen import kernel_text
from .driver import count_chunks
from .fused_gemm import FusedMatmul
from .gemm import bind_matmul
from .launcher import CpuKernelLauncher
from .multi_tensor import make_job

# Composite ops that this backend supports: name -> the module that binds it.
COMPOSITES: dict[str, ModuleType] = {module.NAME: module for module in (implicit_gemm_conv, conv_weight_grad)}


class ParallelBackend(Backend):
    """Run kernels that Numba compiles, on CPU threads."""

    name = "parallel"
    has_roofline = True
    has_multi_tensor = True

    def bind(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> Launcher:
        """Prepare a launch of machine code that is specialized on the kinds of all strides."""
        nest = LoopNest(shape, dims, [*outputs, *inputs])
        if nest.is_empty:
            return lambda *values: None
        address_count, numbers = len(outputs) + len(inputs) + len(raws), kernel.find_all(KernelParameter)
        strides = [*nest.runtime_strides(), *[s for x in raws for s in x.strides if stride_kind(s) == "s"]]
        if (launch := segment_sum.plan_segment_sum(kernel, nest, stride_kinds_of(raws))) is not None:
            address, constants = compile_kernel_text(launch.source), [*launch.sizes, *strides]
            return CpuKernelLauncher(address, launch.count, launch.chunks, address_count, numbers, constants)
        if (axes := transpose_copy.transposed_axes(kernel, nest)) is not None:
            return transpose_copy.bind_transpose(kernel, nest, *axes)
        if (piece_count := split_launches.count_pieces(kernel, nest, dims)) > 1:
            return split_launches.bind_pieces(self.bind, kernel, shape, outputs, inputs, raws, piece_count)
        address = compile_kernel_text(kernel_text(kernel, nest.row_axes, nest.stride_kinds, stride_kinds_of(raws)))
        chunks = count_chunks(nest.sizes[0], nest.points * kernel.cost())
        constants = [*nest.sizes[1:], *strides]
        header: list[int] = []
        if chunks > 1:
            argument_count = address_count + len(numbers) + len(constants)
            header = nontemporal_stores.stream_arguments(kernel, nest, address, argument_count)
            address = nontemporal_stores.stream_kernel() if header else address
        return CpuKernelLauncher(address, nest.sizes[0], chunks, address_count, numbers, constants, header)

    def bind_multi_tensor(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> Launcher:
        """Prepare one launch over several tensors. Threads share their elements as if they were one tensor."""
        nests = [LoopNest(shape, (), [*outputs, *inputs]) for shape, (outputs, inputs) in zip(shapes, layouts, strict=True)]
        compiled = compile_kernel_text(kernel_text(kernel, nests[0].row_axes, nests[0].stride_kinds, ()))
        operand_count, numbers = len(nests[0].stride_kinds), kernel.find_all(KernelParameter)
        sizes = [nest.points for nest in nests]
        address, count, chunks, header = make_job(compiled, sizes, operand_count, numbers, kernel.cost())
        return CpuKernelLauncher(address, count, chunks, operand_count * len(nests), numbers, [], header)

    def source(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> str:
        """Return the source text of the kernel."""
        nest = LoopNest(shape, dims, [*outputs, *inputs])
        if not nest.is_empty and (launch := segment_sum.plan_segment_sum(kernel, nest, stride_kinds_of(raws))) is not None:
            return launch.source
        if transpose_copy.transposed_axes(kernel, nest) is not None:
            return transpose_copy.source(kernel)
        return kernel_text(kernel, nest.row_axes, nest.stride_kinds, stride_kinds_of(raws))

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """Prepare a launch of a matmul."""
        return bind_matmul(dtype, out, a, b)

    def bind_fused_matmul(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Prepare a launch of a matmul that computes its prologue and its epilogue inside its loops."""
        if kernel.is_plain:
            return self.bind_matmul(kernel.a.dtype, outputs[0], *inputs)
        if outputs[0].size == 0:
            return lambda *values: None
        matmul = FusedMatmul(kernel, outputs, inputs)
        if matmul.why_too_many_arguments():
            return super().bind_fused_matmul(kernel, outputs, inputs)
        return matmul.bind()

    def why_not_fused(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return why a prologue should be a separate launch; "" if it should not."""
        is_simple = kernel.is_plain or outputs[0].size == 0
        return "" if is_simple else FusedMatmul(kernel, outputs, inputs).why_not_fused()

    def fused_matmul_cost(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> tuple[int, int]:
        """Return the number of launches, and the bytes of intermediate arrays, of which a fused matmul has none."""
        if outputs[0].size and not kernel.is_plain and FusedMatmul(kernel, outputs, inputs).why_too_many_arguments():
            return super().fused_matmul_cost(kernel, outputs, inputs)
        return int(outputs[0].size > 0), 0

    def fused_matmul_source(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the source text of the prologues and the epilogue."""
        is_simple = kernel.is_plain or outputs[0].size == 0
        matmul = None if is_simple else FusedMatmul(kernel, outputs, inputs)
        if matmul is None or matmul.why_too_many_arguments():
            return super().fused_matmul_source(kernel, outputs, inputs)
        return matmul.source()

    def supports(self, function: CompositeOp, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> bool:
        """Return True for a convolution or its weight gradient whose runs in memory are long enough."""
        module = COMPOSITES.get(function.names[0])
        return module is not None and bool(module.is_profitable(function.parameters, shapes))

    def bind_composite(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Prepare a launch of a convolution or its weight gradient."""
        launch: Launcher = COMPOSITES[function.names[0]].bind(function.parameters, outputs, inputs, self.bind)
        return launch

    def composite_cost(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
        """Return 1 launch, and two operations for each element of each window and each row of the weight."""
        return 1, 2 * outputs[0].size * inputs[0].shape[-1]

    def composite_source(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the source text of the loops."""
        text: str = COMPOSITES[function.names[0]].source(function.parameters[-1])
        return text

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        self._run_elementwise(op, [a], out)

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        self._run_elementwise(op, [a, b], out)

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Compute out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims."""
        if isinstance(op, Operator):
            self._run(reduce_expr(op, as_load(0, a)), a.layout.shape, tuple(dims), out, [a])
            return
        identity = identity_for(op, BY_NUMPY[a.data.dtype])
        if identity is None and 0 in [a.layout.shape[d] for d in dims]:
            raise empty_reduction_error(op, a.layout.shape)
        numba_fallback.reduce(op, a, out, dims, identity)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
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
        self.bind(kernel, shape, dims, layouts[:1], layouts[1:])(*[x.address for x in (out, *inputs)])

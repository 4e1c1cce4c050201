"""The parallel backend: kernels compiled to machine code, run on CPU threads. `executables` has the kinds of steps."""

from collections.abc import Sequence
from math import prod

from ...core.dtypes import BY_NUMPY
from ...core.errors import FuseError
from ...core.operators import Operator
from ...ir.kernel_ir import Expression, Kernel, Load, Shape, cast, reduce_expr, renumber_operands
from ...ir.kernel_tracing import trace
from ...ir.step_kernels import BatchedKernel, CompositeKernel, MatmulKernel
from ...ir.steps import Step
from ..base import Backend, Executable, Operand, ScalarFunction, as_load, empty_reduction_error, identity_for
from ..codegen.loop_emitter import COLUMNS_PER_BLOCK
from . import numba_fallback
from .executables import CONVOLUTIONS, CpuBatch, CpuConvolution, CpuKernel, CpuMatmul
from .gemm import bind_matmul

CACHE_NBYTES = 1 << 18  # of the second cache


class ParallelBackend(Backend):
    """Run kernels that Numba compiles, on CPU threads."""

    name = "parallel"
    has_roofline = True

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
        return super().compile(step)

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
        step = Step.of_layouts(kernel, shape, dims, layouts[:1], layouts[1:])
        self.compile(step).load()(*[x.address for x in (out, *inputs)])

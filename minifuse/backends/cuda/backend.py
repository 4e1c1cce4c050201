"""The cuda backend: kernels for a GPU, run on the GPU or, if there is none, in the interpreter.

Binding a kernel collapses its axes, generates its source, compiles it or finds it in the cache, and fixes the grid. A launch
then passes addresses and numbers. The launches of an op can also be listed without running them, for pictures and checks.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import BY_NUMPY, DType, Number
from ...core.errors import BackendError, FuseError
from ...core.layout import Layout, row_major
from ...core.operators import Operator
from ...ir.array_functions import CompositeOp
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    Load,
    LoopNest,
    MatmulKernel,
    Op,
    ReduceExpr,
    Shape,
    cast,
    constant,
    reduce_expr,
    renumber_indexed_operands,
    renumber_operands,
    replace,
    stride_kinds_of,
    trace,
)
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ..base import Backend, Clock, Launcher, Operand, ScalarFunction, as_load, empty_reduction_error, identity_for
from .attention import launches as attention_launches
from .codegen.multi_tensor import generate_multi_tensor_kernel
from .codegen.select import generate_kernel
from .device import driver
from .device.simulated_device import SimulatedDevice
from .launcher import CudaKernelLauncher, CudaMatmulLauncher, reduce_without_identity
from .matmul.fusion_cost import why_not_fused_matmul
from .matmul.launches import plan_matmul
from .matmul.operands import GpuGemmPlan, plain_matmul
from .multi_tensor import CudaMultiTensorLauncher

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor
    from .device import CudaDevice


class CudaBackend(Backend):
    """Kernels of Numba CUDA on GPU number `index`, or in the interpreter if there is no GPU."""

    is_host = False

    def __init__(self, index: int = 0) -> None:
        self.name = f"cuda:{index}" if index else "cuda"
        self.device: CudaDevice = get_device(index)
        self.pool = self.device.pool
        self.has_roofline = not self.device.is_simulated
        self.has_reduced_precision = self.device.tensor_cores != ""
        self.allocate = self.pool.allocate

    def __repr__(self) -> str:
        return f"{self.name} (simulated)" if self.device.is_simulated else self.name

    # Kernels.

    def bind(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> Launcher:
        """Return a launcher for a kernel that is specialized on the kinds of all strides.

        `raws` are the layouts of the indexed operands.
        """
        return self._bind(kernel, shape, dims, [*outputs, *inputs], raws)

    def _bind(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        layouts: Sequence[Layout],
        raws: Sequence[Layout] = (),
        functions: dict[str, Callable[..., Number]] | None = None,
    ) -> Launcher:
        nest = LoopNest(shape, dims, layouts)
        if nest.is_empty or not (nest.points or kernel.row_outputs):
            return do_nothing
        row_shape = tuple(1 if d in dims else n for d, n in enumerate(shape))
        if not nest.points:
            return self._bind_empty_reduction(kernel, row_shape, layouts, raws)
        return CudaKernelLauncher(self.device, kernel, nest, layouts, row_shape, functions, raws)

    def _bind_empty_reduction(
        self, kernel: Kernel, row_shape: Shape, layouts: Sequence[Layout], raws: Sequence[Layout]
    ) -> Launcher:
        """Bind a kernel whose rows are empty: each reduction is its identity, and the rest is computed once per row."""
        expressions, input_indices = renumber_operands(
            [replace(e, ReduceExpr, identity_of_reduction) for e in kernel.row_outputs]
        )
        row_kernel, indexed_operands = renumber_indexed_operands(Kernel(expressions, ()))
        first, count = len(kernel.pointwise_outputs), len(kernel.outputs)
        operands = [*range(first, count), *[count + k for k in input_indices]]
        numbers = [
            len(layouts) + len(raws) + kernel.find_all(KernelParameter).index(p)
            for p in row_kernel.find_all(KernelParameter)
        ]
        row_layouts = [Layout(row_shape, layouts[k].strides, 0) for k in operands]
        outputs, inputs = row_layouts[: count - first], row_layouts[count - first :]
        launch = self.bind(row_kernel, row_shape, (), outputs, inputs, [raws[k] for k in indexed_operands])
        indexed = [len(layouts) + k for k in indexed_operands]
        return lambda *values: launch(*[values[k] for k in operands + indexed + numbers])

    def source(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> str:
        """Return the text that is compiled."""
        nest = LoopNest(shape, dims, [*outputs, *inputs])
        return generate_kernel(kernel, nest, stride_kinds_of(raws)).text

    has_multi_tensor = True

    def bind_multi_tensor(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> Launcher:
        """Return a launcher over several arrays, whose blocks find their array in a table."""
        return CudaMultiTensorLauncher(self.device, kernel, shapes, layouts)

    def multi_tensor_source(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> str:
        """Return the text that is compiled."""
        outputs, inputs = layouts[0]
        return generate_multi_tensor_kernel(kernel, LoopNest(shapes[0], (), [*outputs, *inputs]).stride_kinds).text

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """Return a launcher for a matrix product: launch(address of out, of a, of b)."""
        return CudaMatmulLauncher(self.device, plain_matmul(dtype), [out], [a, b])

    def bind_fused_matmul(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Return a launcher for a product with prologue and epilogue: one kernel, unless `why_not_fused` gives a reason."""
        if self.why_not_fused(kernel, outputs, inputs):
            return super().bind_fused_matmul(kernel, outputs, inputs)
        return CudaMatmulLauncher(self.device, kernel, outputs, inputs)

    def why_not_fused(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return why this product should not be one kernel, or "" if it should."""
        return why_not_fused_matmul(kernel, outputs, inputs, self.device.multiprocessors, self.device.max_shared_bytes)

    def count_launches(self, kernel: Kernel, shape: Shape, dims: tuple[int, ...]) -> int:
        """Count the kernels that are launched: none if the shape has no elements and the kernel stores no value per row."""
        return super().count_launches(kernel, shape, dims) * bool(prod(shape) or kernel.row_outputs)

    def fused_matmul_cost(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> tuple[int, int]:
        """Return (number of kernels launched for a product, bytes of workspace for partial sums if K is split)."""
        if self.why_not_fused(kernel, outputs, inputs):
            return super().fused_matmul_cost(kernel, outputs, inputs)
        plan = self.plan_aligned_matmul(kernel, outputs, inputs)
        return len(plan.launches), plan.workspace

    def plan_aligned_matmul(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> GpuGemmPlan:
        """Plan the launches of a product whose addresses are multiples of 16 bytes."""
        device = self.device
        limits = device.multiprocessors, (True, True, True), device.max_shared_bytes, device.tensor_cores
        return plan_matmul(kernel, outputs, inputs, *limits)

    def fused_matmul_source(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the generated text of each kernel, under its name. The kernels themselves are in `cuda/matmul`."""
        if self.why_not_fused(kernel, outputs, inputs):
            return super().fused_matmul_source(kernel, outputs, inputs)
        plan = self.plan_aligned_matmul(kernel, outputs, inputs)
        return "\n\n".join(launch.kernel.source for launch in plan.launches)

    def supports(self, function: CompositeOp, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> bool:
        """Return True for the composite ops that have kernels: attention and its gradient, in float32."""
        return attention_launches.supports(function, shapes, dtypes)

    def bind_composite(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Return a launcher for a composite op."""
        return attention_launches.CudaAttentionLauncher(self.device, function, outputs, inputs)

    def composite_cost(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
        """Return (number of kernels launched, arithmetic operations of its matrix products)."""
        return attention_launches.attention_cost(function, outputs, inputs)

    def composite_source(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the name and the constants of each kernel. The kernels themselves are in `cuda/attention`."""
        launches = attention_launches.plan_attention(function, outputs, inputs)
        return "\n\n".join(launch.kernel.source for launch in launches)

    @property
    def can_join_launches(self) -> bool:  # type: ignore[override]  # a constant in Backend
        """Return True on a GPU, which replays joined launches as one graph."""
        return not self.device.is_simulated

    def bind_sequence(self, launches: Sequence[Launcher], counts: Sequence[int]) -> Launcher | None:
        """Join all launches in one CUDA graph. Return None in the interpreter, or if they do more than run kernels."""
        if self.device.is_simulated:
            return None
        from .device.cuda_graphs import graph_launcher

        return graph_launcher(self.device, launches, counts)

    # Memory.

    def from_numpy(self, array: np.ndarray) -> tuple[MemoryBuffer, int, Layout]:
        """Copy an array to the device in the same layout, unless that would copy far more than its elements."""
        operand = Operand.from_array(array)
        if operand.data.size > 16 * max(array.size, 64):
            operand = Operand.from_array(np.ascontiguousarray(array))
        flat = np.ascontiguousarray(operand.data)
        buffer: MemoryBuffer = self.allocate(round_to_size_class(flat.nbytes))
        self.device.copy_in(flat, buffer.address)
        return buffer, buffer.address + operand.layout.offset * array.itemsize, operand.layout.without_offset()

    def to_numpy(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> np.ndarray:
        """Copy elements to host memory."""
        if layout.size and not layout.is_dense:  # make it contiguous on the device first
            target = row_major(layout.shape)
            buffer = self.allocate(round_to_size_class(layout.size * dtype.itemsize))
            copy = self.bind(Kernel((Load(0, dtype),), ()), layout.shape, (), [target], [layout])
            copy(buffer.address, address)
            address, layout = buffer.address, target
        low, high = layout.span()
        flat = np.empty(high - low, dtype.numpy)
        self.device.copy_out(address + low * dtype.itemsize, flat)
        return Operand(flat, Layout(layout.shape, layout.strides, -low)).array()

    def fill(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout, value: float) -> None:
        """Set all elements of a dense layout to a number."""
        number = dtype.numpy.type(value)
        if not self.device.fill(address, layout.size, number):
            kernel = Kernel((KernelParameter(0, dtype),), ())
            self.bind(kernel, layout.shape, (), [layout], [])(address, number.item())

    @property
    def dlpack_device(self) -> tuple[int, int]:  # type: ignore[override]  # a constant in Backend
        """Return the device type and number in DLPack's numbering."""
        return (1, 0) if self.device.is_simulated else (2, self.device.index)

    def to_dlpack(self, x: "Tensor", **options: Any) -> object:
        """Export a tensor's memory by DLPack. In the interpreter, export a copy, since the memory is not a GPU's."""
        if self.device.is_simulated:
            return x.numpy().copy().__dlpack__(**options)
        from .device.dlpack import export_capsule, require_no_copy

        require_no_copy(self.name, self.dlpack_device, **options)
        self.device.make_stream_wait(options.get("stream"))
        return export_capsule(x.buffer, x.address, x.dtype, x.meta.layout, self.device.index)

    def cuda_array_interface(self, x: "Tensor") -> dict[str, object]:
        """Return the `__cuda_array_interface__` of a tensor, for CuPy, torch and others."""
        if self.device.is_simulated:
            return super().cuda_array_interface(x)
        from .device.dlpack import array_interface

        return array_interface(x.address, x.dtype, x.meta.layout, x.buffer.is_writable)

    def synchronize(self) -> None:
        """Wait until the device has completed all enqueued work."""
        self.device.synchronize()

    def clock(self) -> Clock:
        """Return a clock for kernel times: the GPU's events or, in the interpreter, the host's clock."""
        if self.device.is_simulated:
            return super().clock()
        from .device.events import EventClock

        return EventClock(self.device)

    # The four required methods, on operands in host memory.

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        self._run_elementwise(op, [a], out)

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        self._run_elementwise(op, [a, b], out)

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Reduce a along dims. If several threads share a row, each reduces a part of it; then the parts are combined."""
        functions: dict[str, Callable[..., Number]] = {}
        if not isinstance(op, Operator):
            dtype = BY_NUMPY[a.data.dtype]
            identity = identity_for(op, dtype)
            if identity is None:
                self._reduce_without_identity(op, a, out, dims)
                return
            op = as_operator(op, 2, identity)
            functions[op.name] = op.body
        self._run(reduce_expr(op, as_load(0, a)), a.layout.shape, tuple(dims), out, [a], functions)

    def _reduce_without_identity(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Reduce from the first element. Without an identity, one thread must process a whole row."""
        dims_last = np.moveaxis(a.array(), tuple(dims), range(-len(dims), 0))
        count, length = out.layout.size, prod(a.layout.shape[d] for d in dims)
        if not length:
            raise empty_reduction_error(op, a.layout.shape)
        rows = Operand.from_array(np.ascontiguousarray(dims_last).reshape(count, length))
        totals = Operand.from_array(np.empty(count, out.data.dtype))
        with self._on_device([rows], totals) as addresses:
            reduce_without_identity(
                self.device, op, count, length, [BY_NUMPY[x.data.dtype] for x in (totals, rows)], addresses
            )
        out.array()[...] = totals.array().reshape(out.layout.shape)

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        with self._on_device([a, b], out) as addresses:
            layouts = [x.layout.without_offset() for x in (out, a, b)]
            self.bind_matmul(BY_NUMPY[out.data.dtype], *layouts)(*addresses)

    def _run_elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        dtypes, functions = [BY_NUMPY[x.data.dtype] for x in xs], dict[str, Callable[..., Number]]()
        try:
            expression = trace(op, dtypes)
        except (FuseError, TypeError, AttributeError):  # op branches on values, or uses methods of Python numbers
            operator = as_operator(op, len(xs))
            functions[operator.name] = operator.body
            loads = tuple(Load(k, dtype) for k, dtype in enumerate(dtypes))
            expression = Op(operator, loads, BY_NUMPY[out.data.dtype])
        self._run(expression, out.layout.shape, (), out, xs, functions)

    def _run(
        self,
        e: Expression,
        shape: Shape,
        dims: tuple[int, ...],
        out: Operand,
        inputs: Sequence[Operand],
        functions: dict[str, Callable[..., Number]],
    ) -> None:
        """Run one kernel over operands."""
        # An op may ignore an input, as `lambda a, b: b` does.
        (e,), used = renumber_operands([cast(e, BY_NUMPY[out.data.dtype])])
        inputs = [inputs[k] for k in used]
        kernel = Kernel((), (e,)) if dims else Kernel((e,), ())
        with self._on_device(inputs, out) as addresses:
            layouts = [x.layout.without_offset().expand(*shape) for x in (out, *inputs)]
            self._bind(kernel, shape, dims, layouts, functions=functions)(*addresses)

    @contextmanager
    def _on_device(self, inputs: Sequence[Operand], out: Operand) -> Iterator[list[int]]:
        """Copy operands to the device, yield the addresses of the output and the inputs, and copy the output back."""
        if self.device.is_simulated:
            yield [x.address for x in (out, *inputs)]
            return
        buffers, addresses = [], []
        for x in (out, *inputs):
            buffers.append(self.allocate(round_to_size_class(x.data.nbytes)))
            self.device.copy_in(np.ascontiguousarray(x.data), buffers[-1].address)
            addresses.append(buffers[-1].address + x.layout.offset * x.data.itemsize)
        yield addresses
        flat = np.empty(out.data.shape, out.data.dtype)
        self.device.copy_out(buffers[0].address, flat)
        out.data[...] = flat


def as_operator(function: ScalarFunction, arity: int, identity: Number | None = None) -> Operator:
    """Wrap a caller's Python function as an operator. In the source of a kernel, it has the name of `body`."""

    def own_function(a: Number) -> Any:
        return function(a)

    def own_function_of_two(a: Number, b: Number) -> Any:
        return function(a, b)

    body = own_function if arity == 1 else own_function_of_two
    return Operator(
        body,
        vjp=None,
        symbol=None,
        identity=identity,
        reduce_vjp=None,
        is_selection=False,
        accepts="any",
        result="same",
        on_bools=None,
        cost=1,
        is_primitive=True,
    )


@cache
def get_device(index: int) -> "CudaDevice":
    """Return GPU number `index`, or the interpreter if there is no GPU."""
    info = driver.query_driver()
    if not info.gpus:
        return SimulatedDevice(index)
    if index >= info.gpus:
        names = ", ".join(f"cuda:{k}" for k in range(info.gpus))
        raise BackendError(f"cuda:{index} does not exist; this machine has {names}; use one of them")
    driver.require_cuda_packages(info)
    from .device.gpu import GpuDevice

    return GpuDevice(index)


def identity_of_reduction(e: ReduceExpr) -> Expression:
    """Return the value of a reduction over no elements."""
    return constant(e.operator.identity_for(e.dtype), e.dtype)


def do_nothing(*values: object) -> None:
    """Launch nothing: the kernel has no points."""

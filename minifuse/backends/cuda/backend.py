"""The cuda backend: kernels for a GPU, run on the GPU or, if there is none, in the interpreter.

`executables` has the kinds of steps. The launches of an op can also be listed without running them, for pictures and checks.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import BY_NUMPY, DType, Number
from ...core.errors import BackendError, FuseError
from ...core.layout import Layout, row_major
from ...core.operator_entry import unlisted_operator
from ...core.operators import Operator
from ...ir.index_checks import IndexCheck
from ...ir.indexing import IndexUpdate
from ...ir.kernel_ir import (
    Expression,
    Kernel,
    KernelParameter,
    Load,
    Op,
    Shape,
    cast,
    copy_kernel,
    reduce_expr,
    renumber_operands,
    widen,
)
from ...ir.kernel_tracing import trace
from ...ir.selection import Selection
from ...ir.sort import Sort
from ...ir.sorted_scatter import IntegerScatter, SortedScatter
from ...ir.step_kernels import BatchedKernel, CompositeKernel, MatmulKernel, ScanKernel, plain_matmul
from ...ir.steps import Step
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ..base import (
    Backend,
    Clock,
    Executable,
    Launcher,
    Operand,
    ScalarFunction,
    as_load,
    empty_reduction_error,
    identity_for,
    matmul_widened,
)
from ..codegen.gpu_schedule import choose_schedule
from ..codegen.nest import KernelNest
from .attention.launches import ATTENTION_KERNELS
from .device import driver
from .device.simulated_device import SimulatedDevice
from .executables import CudaAttention, CudaBatch, CudaKernel, CudaMatmul, Functions
from .index_update import CudaIndexUpdate
from .integer_scatter import CudaIntegerScatter
from .launcher import reduce_without_identity
from .scan.launches import CudaScan
from .scan.staged_scan import MAX_REDUCED_LINE
from .sort.launches import CudaSort
from .sort.scatter import CudaSortedScatter
from .sort.select_launches import CudaSelection
from .true_positions import true_indices, true_positions
from .tuning import tuned_launch

if TYPE_CHECKING:
    from ...tensors.tensor import Tensor
    from .device import CudaDevice


class CudaBackend(Backend):
    """Kernels of Numba CUDA on GPU number `index`, or in the interpreter if there is no GPU."""

    is_host = False
    max_scanned_row = MAX_REDUCED_LINE
    inlines_padding = True
    sorts_scatters = True
    narrows_integers = True
    merges_sweeps = True
    has_fast_math = True
    splits_reductions = True

    def __init__(self, index: int = 0) -> None:
        self.name = f"cuda:{index}" if index else "cuda"
        self.device: CudaDevice = get_device(index)
        self.pool = self.device.pool
        self.has_roofline = not self.device.is_simulated
        self.has_reduced_precision = self.device.tensor_cores != ""
        self.allocate = self.pool.allocate
        if not self.device.is_simulated:
            self.join, self.device_stream = self.join_launches, self.use_stream

    def __repr__(self) -> str:
        return f"{self.name} (simulated)" if self.device.is_simulated else self.name

    # Steps.

    def compile(self, step: Step) -> Executable:
        """Return the executable of a step. Machine code is compiled when it is loaded."""
        match step.kernel:
            case Kernel() as kernel:
                return CudaKernel(self.device, step, kernel)
            case MatmulKernel() as kernel:
                return CudaMatmul(self, self.device, step, kernel)
            case BatchedKernel() as kernel:
                return CudaBatch(self.device, step, kernel)
            case CompositeKernel(op=op) if op.names[0] in ATTENTION_KERNELS:
                return CudaAttention(self.device, step, op)
            case ScanKernel() as kernel:
                return CudaScan(self.device, step, kernel)
            case CompositeKernel(op=IndexUpdate() as op):
                return CudaIndexUpdate(self.device, step, op)
            case CompositeKernel(op=Sort() as op):
                return CudaSort(self.device, step, op)
            case CompositeKernel(op=Selection() as op):
                return CudaSelection(self.device, step, op)
            case CompositeKernel(op=IntegerScatter() as op):
                return CudaIntegerScatter(self.device, step, op)
            case CompositeKernel(op=SortedScatter() as op):
                return CudaSortedScatter(self.device, step, op)
        return super().compile(step)

    def keeps_rows(self, step: Step) -> bool:
        """Return whether registers have all elements of a row; or shared memory, if points need them after reductions."""
        kernel = step.kernel
        assert isinstance(kernel, Kernel)
        nest = KernelNest(kernel, step.loop_nest())
        schedule = choose_schedule(nest)
        if not any(schedule.tiles[a].serial for a in nest.reduced):
            return schedule.column is None or bool(kernel.pointwise_outputs)  # one sweep of columns is faster than two
        (load, *_), (n, *others) = kernel.find_all(Load), [nest.sizes[a] for a in nest.reduced]
        is_shared = bool(kernel.pointwise_outputs) and not others and schedule.column is None
        return is_shared and n % 4 == 0 and n * load.dtype.itemsize <= self.device.max_shared_bytes

    def use_stream(self) -> int:
        """Make the GPU current in this thread, and return the handle of its stream."""
        assert not self.device.is_simulated
        self.device.use()
        return int(self.device.stream.handle)

    def join_launches(
        self, launches: Sequence[Launcher], counts: Sequence[int], waits: Mapping[int, int]
    ) -> Launcher | None:
        """Join all launches in one CUDA graph. Return None in the interpreter, or if they do more than run kernels."""
        if self.device.is_simulated:
            return None
        from .device.cuda_graphs import graph_launcher

        return graph_launcher(self.device, launches, counts, waits)

    def tuned_launch(self, launch: Launcher) -> Launcher:
        """Return a launch that first searches the best schedule of each of its kernels; in the interpreter, itself."""
        schedules = self.device.schedules
        return launch if schedules is None else tuned_launch(launch, schedules)

    def note_address(self, check: IndexCheck) -> int | None:
        """Return where kernels note an index that is out of range."""
        return self.device.index_notes.address_of(check)

    def true_positions(self, x: "Tensor") -> "Tensor":
        """Return the row-major positions of the true elements of a contiguous tensor of bools, as int64."""
        return true_positions(self.device, x)

    def true_indices(self, x: "Tensor") -> "Tensor":
        """Return a row with the index along each dim for each true element of a contiguous tensor of bools, as int64."""
        return true_indices(self.device, x)

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
            copy = Step.of_layouts(copy_kernel(dtype), layout.shape, (), [target], [layout])
            self.compile(copy).load()(buffer.address, address)
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
            self.compile(Step.of_layouts(kernel, layout.shape, (), [layout], [])).load()(address, number.item())

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
        functions: Functions = {}
        if not isinstance(op, Operator):
            dtype = BY_NUMPY[a.data.dtype]
            identity = identity_for(op, dtype)
            if identity is None:
                self._reduce_without_identity(op, a, out, dims)
                return
            op = as_operator(op, 2, identity)
            functions[op.name] = op.body
        self._run(reduce_expr(op, widen(as_load(0, a))), a.layout.shape, tuple(dims), out, [a], functions)

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
        if BY_NUMPY[out.data.dtype].is_small:
            matmul_widened(self.matmul, a, b, out)
            return
        with self._on_device([a, b], out) as addresses:
            kernel, layouts = plain_matmul(BY_NUMPY[out.data.dtype]), [x.layout for x in (out, a, b)]
            self.compile(Step.of_layouts(kernel, out.layout.shape, (), layouts[:1], layouts[1:])).load()(*addresses)

    def _run_elementwise(self, op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
        dtypes, functions = [BY_NUMPY[x.data.dtype] for x in xs], Functions()
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
        functions: Functions,
    ) -> None:
        """Run one kernel over operands."""
        # An op may ignore an input, as `lambda a, b: b` does.
        (e,), used = renumber_operands([cast(e, BY_NUMPY[out.data.dtype])])
        inputs = [inputs[k] for k in used]
        kernel = Kernel((), (e,)) if dims else Kernel((e,), ())
        with self._on_device(inputs, out) as addresses:
            layouts = [x.layout.without_offset().expand(*shape) for x in (out, *inputs)]
            step = Step.of_layouts(kernel, shape, dims, layouts[:1], layouts[1:])
            CudaKernel(self.device, step, kernel, functions).load()(*addresses)

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

    return unlisted_operator(own_function if arity == 1 else own_function_of_two, identity)


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

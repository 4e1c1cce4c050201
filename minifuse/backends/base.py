"""The contract of a backend: four methods over operands. All other methods have defaults that use these four.

An operand is a flat NumPy array with a Layout. Broadcast dims have stride 0, so all operands of one call have the same
shape. In `reduce`, the reduced dims of `out` have size 1. `op` is any function of scalars, for example an Operator.

To add a backend, subclass Backend, write the four methods, and pass an instance to `registry.register_backend`.
"""

from collections.abc import Callable, Sequence
from math import prod
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.dtypes import DType
from ..core.layout import Layout, row_major
from ..ir.array_functions import CompositeOp
from ..ir.kernel_ir import Accumulator, Kernel, Load, MatmulKernel, Shape
from ..runtime.memory_pool import MemoryBuffer, Pool, allocate, as_array, host_pool
from .fallback import FallbackKernel, FallbackMatmul
from .operand import Operand, ScalarFunction, as_load, check_fits, empty_reduction_error, identity_for

if TYPE_CHECKING:
    from ..tensors.tensor import Tensor

__all__ = [
    "Backend",
    "FallbackKernel",
    "FallbackMatmul",
    "Launcher",
    "Operand",
    "ScalarFunction",
    "as_load",
    "check_fits",
    "empty_reduction_error",
    "fastest_entry",
    "identity_for",
]

Launcher = Callable[..., None]  # a launcher may have a method `fast_entry`, which returns a faster function for its launch


def fastest_entry(launch: Launcher) -> Launcher:
    """Return the fastest function for a launch: the result of its method `fast_entry` if it has one, else the launcher."""
    fastest: Launcher = launch.fast_entry() if hasattr(launch, "fast_entry") else launch
    return fastest


class Clock(Protocol):
    """A clock for launches: the caller takes a mark before the first launch and after each launch."""

    def mark(self) -> object:
        """Return a mark of the current time."""

    def read(self, marks: Sequence[Any]) -> list[float]:
        """Return the microseconds from the first mark to each mark."""


class HostClock:
    """Clock of the host, for backends whose launches return when they are done."""

    def mark(self) -> int:
        """Return the current time in nanoseconds."""
        return perf_counter_ns()

    def read(self, marks: Sequence[int]) -> list[float]:
        """Return the microseconds from the first mark to each mark."""
        return [(mark - marks[0]) / 1e3 for mark in marks]


class Backend:
    """Run kernels on one device. A subclass must define map, zip, reduce and matmul; the rest has defaults."""

    name = "base"
    is_host = True  # whether the backend's memory is host memory, which NumPy can access
    has_roofline = False  # whether hardware, not an interpreter, limits the speed of kernels, so that a roofline makes sense
    has_multi_tensor = False  # whether `bind_multi_tensor` is defined
    has_reduced_precision = False  # whether matmuls of float32 may round their operands, as the kernel's precision allows
    can_join_launches = False  # whether `bind_sequence` may return a launcher

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i])."""
        raise NotImplementedError

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[i] = op(a[i], b[i])."""
        raise NotImplementedError

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """Compute out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims.

        Without an identity, a reduction starts with the first element.
        """
        raise NotImplementedError

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """Compute out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        raise NotImplementedError

    pool: Pool = host_pool
    allocate = staticmethod(allocate)

    # Memory. A backend on a device overrides these; the defaults share host memory with NumPy.

    def from_numpy(self, array: np.ndarray) -> tuple[MemoryBuffer, int, Layout]:
        """Return an array as memory of this backend: buffer, address of the first element, layout from that address on."""
        strides = tuple(stride // array.itemsize for stride in array.strides)
        layout = Layout(array.shape, strides, 0) if array.size else row_major(array.shape)  # or arbitrary strides
        return MemoryBuffer.from_array(array), array.ctypes.data, layout

    def to_numpy(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> np.ndarray:
        """Return elements as a NumPy array: a view of host memory, a copy of device memory."""
        return as_array(buffer, address, dtype, layout)

    def fill(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout, value: float) -> None:
        """Set all elements of a dense layout to a number."""
        as_array(buffer, address, dtype, layout)[...] = value

    dlpack_device = (1, 0)  # DLPack's device type and index: the CPU

    def to_dlpack(self, x: "Tensor", **options: Any) -> object:
        """Return a DLPack capsule of a tensor, for other libraries."""
        return x.numpy().__dlpack__(**options)

    def cuda_array_interface(self, x: "Tensor") -> dict[str, object]:
        """Return `__cuda_array_interface__` of a tensor on a GPU, for CuPy, torch and others.

        Raises
        ------
        AttributeError
            The tensor is not on a GPU.
        """
        raise AttributeError("__cuda_array_interface__: this tensor is not on a GPU")

    def synchronize(self) -> None:
        """Wait until all launches are done. The default returns at once, since host launches are done when they return."""

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
        """Prepare a kernel for the layouts of its outputs and inputs, expanded to `shape`, and of its indexed operands.

        Returns launch(*addresses of outputs, inputs and indexed operands, *numbers). The default decomposes the kernel into
        map, zip and reduce, one expression at a time, so a backend with four methods runs every fused function.
        """
        return FallbackKernel(self, kernel, shape, dims, outputs, inputs, raws).launch

    def source(
        self,
        kernel: Kernel,
        shape: Shape,
        dims: tuple[int, ...],
        outputs: Sequence[Layout],
        inputs: Sequence[Layout],
        raws: Sequence[Layout] = (),
    ) -> str:
        """Return the source text of the kernel, or a comment if there is no text."""
        return f"# {self.name}: {len(kernel.outputs)} outputs over {shape}, one operation at a time\n"

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """Prepare a matmul for given layouts. Returns launch(address of out, address of a, address of b)."""

        def launch(*addresses: int) -> None:
            pairs = zip(addresses, (out, a, b), strict=True)
            out_, a_, b_ = [Operand.at_address(address, dtype, layout) for address, layout in pairs]
            self.matmul(a_, b_, out_)

        return launch

    def bind_fused_matmul(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Prepare a matmul with prologue and epilogue. Returns launch(*addresses of outputs and inputs, *numbers).

        Layouts of outputs and of the epilogue's inputs have shape (..., M, N), those of a's prologue (..., M, K), those of
        b's prologue (..., K, N), with equal batch dims. The default launches prologues, matmul and epilogue one by one.
        """
        return FallbackMatmul(self, kernel, outputs, inputs).launch

    def why_not_fused(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return why this matmul should not be one kernel with its prologue and epilogue; "" if it should."""
        return ""

    def supports(self, function: CompositeOp, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> bool:
        """Return True if `bind_composite` computes this composite op for such inputs; else its definition is used."""
        return False

    def bind_composite(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """Prepare a composite op that this backend supports. Returns launch(*addresses of outputs and inputs)."""
        raise NotImplementedError

    def composite_cost(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
        """Return the number of kernel launches of a composite op, and the number of operations in its matmuls."""
        return 1, 0

    def composite_source(self, function: CompositeOp, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the source text of a composite op, or a comment if there is no text."""
        return f"# {self.name}: {function}\n"

    def count_launches(self, kernel: Kernel, shape: Shape, dims: tuple[int, ...]) -> int:
        """Return the number of launches of a kernel over a shape: 0 if it stores no elements."""
        return int(all(n for d, n in enumerate(shape) if d not in dims))

    def fused_matmul_cost(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> tuple[int, int]:
        """Return the number of launches of a fused matmul, and the bytes of intermediate arrays between them."""
        plain_flags = [  # whether a, b and out have no prologue or epilogue
            isinstance(kernel.a, Load),
            isinstance(kernel.b, Load),
            kernel.pointwise_outputs == (Accumulator(kernel.a.dtype),),
        ]
        a, b = (inputs[loads[0].index] for loads in kernel.loads()[:2])
        sizes = a.size, b.size, prod((*a.shape[:-1], b.shape[-1]))
        scratch = sum(size for size, is_plain in zip(sizes, plain_flags, strict=True) if not is_plain)
        return 1 + plain_flags.count(False), scratch * kernel.a.dtype.itemsize

    def fused_matmul_source(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Return the source text of a fused matmul, or a comment if there is no text."""
        a, b = (inputs[loads[0].index].shape for loads in kernel.loads()[:2])
        return f"# {self.name}: matmul of {a} and {b}, {kernel.a.dtype}\n"

    def bind_multi_tensor(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> Launcher:
        """Prepare one launch of a pointwise kernel over several tensors: launch(*addresses of each in turn, *numbers).

        Each tensor has a shape, and layouts of its outputs and inputs, as in `bind`. The largest tensor is first. The axes
        of each tensor collapse to one axis, along which an operand has stride 1 or 0, the same stride in all tensors.
        """
        raise NotImplementedError

    def multi_tensor_source(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> str:
        """Return the source text of a launch over several tensors: by default, the text of `source` for the first tensor."""
        return self.source(kernel, shapes[0], (), *layouts[0])

    def bind_sequence(self, launches: Sequence[Launcher], counts: Sequence[int]) -> Launcher | None:
        """Return one launcher for several launches, of which launch k takes counts[k] values; None if that saves no time.

        Addresses among the values are valid only during the call, as for a single launch.
        """
        return None

    def clock(self) -> Clock:
        """Return a clock that measures launches."""
        return HostClock()

    def __repr__(self) -> str:
        return self.name

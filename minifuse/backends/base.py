"""The contract of a backend: four methods over operands, and `bind`, which has a default.

An operand is a flat NumPy array and a Layout. Broadcasting is already expressed as stride 0, so all operands of one
call have the same shape; in `reduce`, folded dims of `out` have size 1. `op` is any function of scalars, an Operator
among them.

To add a backend: subclass Backend, write the four methods, and `registry.register` an instance. Everything else follows.
"""

from collections.abc import Callable, Sequence
from math import prod
from time import perf_counter_ns
from typing import Any

import numpy.typing as npt

from ..core.dtypes import DType
from ..core.layout import Layout, row_major
from ..ir.kernel_ir import Accumulator, Kernel, Load, MatmulKernel, Shape
from ..runtime.memory_pool import MemoryBuffer, Pool, allocate, as_array, host_pool
from .fallback import FallbackKernel, FallbackMatmul
from .operand import Operand, ScalarFunction, as_load, check_fits, empty_reduction_error, identity_for

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

Launcher = Callable[..., None]  # may have a method `direct`, which gives a shorter way to the same launch


def fastest_entry(launch: Any) -> Launcher:
    """The launcher itself, or the shorter way that it knows to the same launch."""
    found: Launcher = launch.direct() if hasattr(launch, "direct") else launch
    return found


class HostClock:
    """Time of the host, for backends whose launches return when they are done."""

    def mark(self) -> Any:
        """Now."""
        return perf_counter_ns()

    def read(self, marks: Sequence[Any]) -> list[float]:
        """Microseconds from the first of some marks to each."""
        return [(mark - marks[0]) / 1e3 for mark in marks]


class Backend:
    """Runs kernels on one device. The four methods are all that it must have."""

    name = "base"
    has_roofline = False  # whether the hardware can be what limits it, so that it makes sense to measure how near it comes
    is_host = True  # whether its memory is that of NumPy

    def map(self, op: ScalarFunction, a: Operand, out: Operand) -> None:
        """out[i] = op(a[i])."""
        raise NotImplementedError

    def zip(self, op: ScalarFunction, a: Operand, b: Operand, out: Operand) -> None:
        """out[i] = op(a[i], b[i])."""
        raise NotImplementedError

    def reduce(self, op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int]) -> None:
        """out[i] = op(... op(op(identity, a[i, 0]), a[i, 1]) ...) along dims; without an identity from the first element."""
        raise NotImplementedError

    def matmul(self, a: Operand, b: Operand, out: Operand) -> None:
        """out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]."""
        raise NotImplementedError

    pool: Pool = host_pool  # of buffers
    allocate = staticmethod(allocate)

    # Memory, for backends on a device of their own; here it is that of the host, which NumPy shares.

    def from_numpy(self, array: npt.NDArray[Any]) -> tuple[MemoryBuffer, int, Layout]:
        """An array as memory of this backend: buffer, address of the first element, layout from there."""
        strides = tuple(stride // array.itemsize for stride in array.strides)  # of nothing, NumPy's may be 0 everywhere
        layout = Layout(array.shape, strides, 0) if array.size else row_major(array.shape)
        return MemoryBuffer.around(array), array.ctypes.data, layout

    def to_numpy(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> npt.NDArray[Any]:
        """Elements as a NumPy array: over the same memory, or, of a device, a copy."""
        return as_array(buffer, address, dtype, layout)

    def fill(self, buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout, value: Any) -> None:
        """Set all elements of a dense layout to a number."""
        as_array(buffer, address, dtype, layout)[...] = value

    dlpack_device = (1, 0)  # the CPU

    def to_dlpack(self, x: Any, **options: Any) -> Any:
        """The memory of a tensor for libraries that know DLPack."""
        return x.numpy().__dlpack__(**options)

    def cuda_array_interface(self, x: Any) -> dict[str, Any]:
        """The memory of a tensor on a GPU for CuPy, torch and others; an AttributeError where it is not on one."""
        raise AttributeError("__cuda_array_interface__: this tensor is not on a GPU")

    def synchronize(self) -> None:
        """Wait until all that was asked for is done; here it is when a call returns."""

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
        """Do all that follows from the layouts of a kernel's outputs and inputs, expanded to `shape`, and of raw operands.

        Gives launch(*addresses of outputs, inputs and raw operands, *numbers). This default takes the kernel apart into map,
        zip and reduce, one expression at a time, so that any backend of four methods runs every fused function.
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
        """The text that runs, where there is one."""
        return f"# {self.name}: {len(kernel.outputs)} outputs over {shape}, one operation at a time\n"

    def bind_matmul(self, dtype: DType, out: Layout, a: Layout, b: Layout) -> Launcher:
        """The same for a matrix product: launch(address of out, of a, of b)."""

        def launch(*addresses: int) -> None:
            places = zip(addresses, (out, a, b), strict=True)
            out_, a_, b_ = [Operand.at(address, dtype, layout) for address, layout in places]
            self.matmul(a_, b_, out_)

        return launch

    def bind_fused_matmul(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """A matrix product with prologue and epilogue: launch(*addresses of outputs and inputs, *numbers).

        Layouts of outputs and of the epilogue's inputs have the shape (..., M, N), those of a's (..., M, K), of b's
        (..., K, N), with equal batch dims. This default computes operands and sums that are not plain one after the other.
        """
        return FallbackMatmul(self, kernel, outputs, inputs).launch

    def why_not_fused(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """Why this product should not be one kernel, in words; empty if it should."""
        return ""

    def supports(self, function: Any, shapes: Sequence[Shape], dtypes: Sequence[DType]) -> bool:
        """Whether `bind_composite` computes a function that has a definition, of inputs like these; else that runs
        instead."""
        return False

    def bind_composite(self, function: Any, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> Launcher:
        """All outputs of a function that this backend knows, by its name: launch(*addresses of outputs and inputs)."""
        raise NotImplementedError

    def composite_cost(self, function: Any, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> tuple[int, int]:
        """(how many kernels are started for such a function, how many operations of products they do)."""
        return 1, 0

    def composite_source(self, function: Any, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """The text that runs, where there is one; else what runs, in words."""
        return f"# {self.name}: {function}\n"

    def count_launches(self, kernel: Kernel, shape: Shape, dims: tuple[int, ...]) -> int:
        """How many kernels are started for a kernel over a shape: none where there is nothing to store."""
        return int(all(n for d, n in enumerate(shape) if d not in dims))

    def fused_matmul_cost(
        self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> tuple[int, int]:
        """(how many kernels are started for a product, bytes of memory that they hand on to each other)."""
        plain = [
            isinstance(kernel.a, Load),
            isinstance(kernel.b, Load),
            kernel.pointwise_outputs == (Accumulator(kernel.a.dtype),),
        ]
        a, b = (inputs[loads[0].index] for loads in kernel.loads()[:2])
        sizes = a.size, b.size, prod((*a.shape[:-1], b.shape[-1]))
        scratch = sum(size for size, is_plain in zip(sizes, plain, strict=True) if not is_plain)
        return 1 + plain.count(False), scratch * kernel.a.dtype.itemsize

    def fused_matmul_source(self, kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]) -> str:
        """The text that runs, where there is one; else what runs, in words."""
        a, b = (inputs[loads[0].index].shape for loads in kernel.loads()[:2])
        return f"# {self.name}: matmul of {a} and {b}, {kernel.a.dtype}\n"

    has_reduced_precision = (
        False  # whether `bind_fused_matmul` rounds operands of float32 where a kernel's precision lets it
    )
    has_multi_tensor = False  # whether it has `bind_multi_tensor`

    def bind_multi_tensor(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> Launcher:
        """One launch of a pointwise kernel over several arrays: launch(*addresses of each in turn, *numbers).

        Each has a shape, and layouts of its outputs and inputs, as in `bind`; the largest is the first. Of all, the axes
        collapse to a single one, along which the stride of an operand is 1, or 0 as that of the same operand of the others.
        """
        raise NotImplementedError

    def multi_tensor_source(
        self, kernel: Kernel, shapes: Sequence[Shape], layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]]
    ) -> str:
        """The text that runs; here that of the first array, which runs over each."""
        return self.source(kernel, shapes[0], (), *layouts[0])

    can_join_launches = False  # whether `bind_sequence` gains anything

    def bind_sequence(self, launches: Sequence[Launcher], counts: Sequence[int]) -> Launcher | None:
        """One launcher of several launches, of which launch k takes counts[k] of the values; None if that gains nothing.

        The addresses among the values are valid during the call alone, as those of a single launch are.
        """
        return None

    def clock(self) -> Any:
        """What tells how long launches take."""
        return HostClock()

    def __repr__(self) -> str:
        return self.name

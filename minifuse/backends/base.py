"""The contract of a backend: `compile` and `supports` for steps of plans, memory, and a name.

`compile(step)` returns an executable, and `supports(step)` None or a reason in words. Both have defaults that are made of
four methods over operands: map, zip, reduce and matmul. So to add a backend, subclass Backend, write the four methods, and
pass an instance to `registry.register_backend`. Override `compile` for the kinds of kernels that have code of their own.

An operand is a flat NumPy array with a Layout. Broadcast dims have stride 0, so all operands of one call have the same
shape. In `reduce`, the reduced dims of `out` have size 1. `op` is any function of scalars, for example an Operator.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.dtypes import DType
from ..core.layout import Layout, row_major
from ..ir.steps import Step
from ..runtime.memory_pool import MemoryBuffer, Pool, allocate, as_array, host_pool
from .executable import Cost, Executable, Launcher, NoExecutable, fastest_entry
from .fallback import fallback_executable
from .operand import (
    Operand,
    ScalarFunction,
    as_load,
    check_fits,
    empty_reduction_error,
    identity_for,
    matmul_widened,
)

if TYPE_CHECKING:
    from ..ir.index_checks import IndexCheck
    from ..tensors.tensor import Tensor

__all__ = [
    "Backend",
    "Cost",
    "Executable",
    "Launcher",
    "NoExecutable",
    "Operand",
    "ScalarFunction",
    "as_load",
    "check_fits",
    "empty_reduction_error",
    "fastest_entry",
    "identity_for",
    "matmul_widened",
]


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
    max_scanned_row = 0  # elements: the longest line that the kernel of a scan may reduce, too
    is_host = True  # whether the backend's memory is host memory, which NumPy can access
    has_roofline = False  # whether hardware, not an interpreter, limits the speed of kernels, so that a roofline makes sense
    has_reduced_precision = False  # whether matmuls of float32 may round their operands, as the kernel's precision allows
    splits_reductions = False  # whether its kernels split long reductions by themselves, so that the compiler need not
    merges_sweeps = False  # whether one sweep with more arithmetic pays if a kernel would load its rows in each of two
    sorts_scatters = False  # whether it has kernels for a sort and for a scatter by a sorted index
    inlines_padding = False  # whether kernels load at shifted and clamped indices as fast as from a padded copy
    inlines_thin_padding = False  # the same, if few elements are padding and kernels read it as it is
    narrows_integers = False  # whether kernels compute integers of 32 bits faster than those of 64
    has_fast_math = False  # whether kernels have functions for the approximations of operators, such as fast_div

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

    def true_positions(self, x: "Tensor") -> "Tensor":
        """Return the row-major positions of the true elements of a contiguous tensor of bools, as int64."""
        return x.asarray_like(np.flatnonzero(x.numpy()))

    def true_indices(self, x: "Tensor") -> "Tensor":
        """Return a row with the index along each dim for each true element of a contiguous tensor of bools, as int64."""
        return x.asarray_like(np.argwhere(x.numpy()))

    def note_address(self, check: "IndexCheck") -> int | None:
        """Return the address where kernels note an index that is out of range; None if it is checked before the call."""
        return None

    # Steps.

    def compile(self, step: Step) -> Executable:
        """Return the executable of a step: its source, its cost, and its launcher.

        The default makes every step of the four methods: a kernel is decomposed into map, zip and reduce, one expression at
        a time, and the prologues, the matmul and the epilogue of a fused matmul run one by one. So a backend with four
        methods runs every fused function.
        """
        return fallback_executable(self, step)

    def supports(self, step: Step) -> str | None:
        """Return None if this backend compiles a step as one launch, or the reason why not.

        The compiler asks before it makes the step. With a reason, it uses the definition of a composite op, stores the
        operands of a matmul first, stores a matmul before its epilogue, or does not batch launches. Only the layouts of the
        step count: its operands need no memory.
        """
        return self.compile(step).refusal

    def keeps_rows(self, step: Step) -> bool:
        """Return whether several sweeps over a row load it once, since it stays in registers or in a cache."""
        return False

    join: "Callable[[Sequence[Launcher], Sequence[int], Mapping[int, int]], Launcher | None] | None" = None
    """If a backend has this method: join(launchers, counts, waits) returns one launcher for several, of which launcher k
    takes counts[k] values, or None if that saves no time. Addresses are valid only during the call, as for a single launch.
    `waits` has the launchers of collectives, which may run beside others: the first launcher that must wait for each."""

    device_stream: Callable[[], int] | None = None
    """Of a backend on a GPU: a method that makes the GPU current, and returns the handle of the stream of its kernels."""

    def tuned_launch(self, launch: Launcher) -> Launcher:
        """Return a launch that searches the best schedule of its kernel first; here itself: there are no schedules."""
        return launch

    def clock(self) -> Clock:
        """Return a clock that measures launches."""
        return HostClock()

    def __repr__(self) -> str:
        return self.name

"""One launch over several arrays, described by a table in GPU memory.

    arrays   the index of the array of each block of the grid; it depends on the sizes only, so it is written once
    table    one row per array: the addresses of its operands, its number of elements, the number of these that are processed
             four at a time, and the number of blocks of the arrays before it

A table is valid for the addresses of one call. If a call repeats the addresses of an earlier call, its table is already on
the GPU; otherwise a new table is copied before the launch, in the same stream. No table is modified while it may be needed:
an enqueued kernel or a replayed graph may read it later.
"""

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.dtypes import Number
from ...core.layout import Layout
from ...ir.kernel_ir import Kernel, KernelParameter, Load, LoopNest, Shape
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ...simt import Pointer, Table
from ..base import Launcher
from ..fast_call import CallValue
from .codegen.multi_tensor import generate_multi_tensor_kernel
from .compiler import kernel_from_text
from .geometry import THREADS, VECTOR_WIDTH, LaunchGeometry, line_geometry
from .intrinsics.pointer_table import DEVICE_FUNCTIONS
from .launch_plan import KernelArgument, ReadyLaunch
from .launcher import ALIGNMENT_MASK, CudaLauncher

if TYPE_CHECKING:
    from .device import CudaDevice

MAX_CACHED_TABLES = 8  # one table per set of addresses
VECTORIZED_COUNT_INDEX = 1  # index, in a row of `array_sizes`, of the number of elements processed four at a time


class CudaMultiTensorLauncher(CudaLauncher):
    """A pointwise kernel over several arrays, the largest first, bound to everything except addresses and numbers."""

    def __init__(
        self,
        device: "CudaDevice",
        kernel: Kernel,
        shapes: Sequence[Shape],
        layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]],
    ) -> None:
        nests = [LoopNest(shape, (), [*outputs, *inputs]) for shape, (outputs, inputs) in zip(shapes, layouts, strict=True)]
        self.text = text = generate_multi_tensor_kernel(kernel, nests[0].stride_kinds)
        self.device, self.kernel = device, kernel_from_text(text.text, **DEVICE_FUNCTIONS)
        self.dtypes = [e.dtype for e in (*kernel.outputs, *kernel.find_all(Load))]
        self.number_dtypes = [p.dtype for p in kernel.find_all(KernelParameter)]
        self.spans = [layout.span() for outputs, inputs in layouts for layout in (*outputs, *inputs)]
        self.names = [f"out{k}" for k in range(len(kernel.outputs))] + [f"in{k}" for k in range(len(kernel.find_all(Load)))]
        self.vector_operands = [self.names.index(name) for name in text.wide]
        sizes = np.array([nest.points for nest in nests])
        self.geometry, blocks = batch_geometry(sizes, text.each)
        # Numbers of elements processed four at a time, if the addresses are aligned.
        vectorized_counts = [sizes // VECTOR_WIDTH * VECTOR_WIDTH] * bool(self.vector_operands)
        self.array_sizes = np.stack([sizes, *vectorized_counts, np.cumsum(blocks) - blocks], axis=1)
        self.arrays = self.copy_to_device(np.repeat(np.arange(len(nests), dtype=np.int32), blocks))
        self.argument_types = tuple(kind for _, kind in text.parameters)
        self.run = device.prepare(device.load(text.text, lambda: self.kernel, self.argument_types, THREADS), self.geometry)
        self.tables: dict[tuple[int, ...], MemoryBuffer] = {}  # in order of last use
        self.lock = Lock()

    def fast_entry(self) -> Launcher:
        """Return the fast launch path. It still looks up the table of the addresses."""

        def fallback(arrays: int, table: int, *numbers: Number) -> None:
            given: list[KernelArgument] = [arrays, table, *self.convert_numbers(numbers)]
            self.run_launches([ReadyLaunch(self.run, self.argument_types, given)])

        arguments, count = list(map(CallValue, range(len(self.argument_types)))), len(self.spans)
        launch = self.device.fast_entry([(self.run, arguments)], self.argument_types, fallback)
        if launch is None:
            return self

        def launch_with_table(*values: Any) -> None:
            table = self.table_of(values[:count])
            launch(self.arrays.address, table.address, *values[count:])

        return launch_with_table

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launch for use in a graph, which keeps the table allocated."""
        addresses, numbers = values[: len(self.spans)], self.convert_numbers(values[len(self.spans) :])
        table = self.table_of(addresses)
        arguments: list[KernelArgument] = [self.arrays.address, table.address, *numbers]
        if self.device.is_simulated:
            arguments[0] = Pointer(self.arrays.address, 0, self.geometry.grid[0], np.int32, self.arrays)
            arguments[1] = Table(
                table.address, self.table_targets(addresses), self.row_length * len(self.array_sizes), table
            )
        return [ReadyLaunch(self.run, self.argument_types, arguments, table)]

    # The table.

    @property
    def row_length(self) -> int:
        """Return the number of entries in a row of the table."""
        return len(self.names) + int(self.array_sizes.shape[1])

    def table_of(self, addresses: tuple[int, ...]) -> MemoryBuffer:
        """Return the table of these addresses, on the GPU."""
        with self.lock:
            table = self.tables.pop(addresses, None)
            if table is None:
                if len(self.tables) >= MAX_CACHED_TABLES:
                    self.tables.pop(next(iter(self.tables)))
                table = self.copy_to_device(self.make_table(addresses))
            self.tables[addresses] = table
            return table

    def make_table(self, addresses: tuple[int, ...]) -> NDArray[np.int64]:
        """Compute the table of these addresses."""
        rows = np.empty((len(self.array_sizes), self.row_length), np.int64)
        rows[:, : len(self.names)] = np.reshape(addresses, (-1, len(self.names)))
        rows[:, len(self.names) :] = self.array_sizes
        if self.vector_operands:
            bits = np.bitwise_or.reduce(rows[:, self.vector_operands], axis=1)
            rows[bits & ALIGNMENT_MASK != 0, len(self.names) + VECTORIZED_COUNT_INDEX] = 0
        return rows

    def copy_to_device(self, flat: NDArray[np.integer]) -> MemoryBuffer:
        """Copy an array to the GPU."""
        buffer: MemoryBuffer = self.device.pool.allocate(round_to_size_class(flat.nbytes))
        self.device.copy_in_async(flat, buffer.address)
        return buffer

    def table_targets(self, addresses: Sequence[int]) -> dict[int, tuple[str, Pointer]]:
        """Return the name and the memory of each address in the table, for the interpreter."""
        targets, width = {}, len(self.names)
        for k, (address, (low, high)) in enumerate(zip(addresses, self.spans, strict=True)):
            array, operand = divmod(k, width)
            pointer = Pointer(address, low, high, self.dtypes[operand].numpy)
            targets[array * self.row_length + operand] = f"{self.names[operand]}[{array}]", pointer
        return targets


def batch_geometry(sizes: Sequence[int] | NDArray[np.int64], each: int) -> tuple[LaunchGeometry, NDArray[np.int64]]:
    """Return the launch geometry over arrays of these sizes, the largest first, and the blocks of each array."""
    x = line_geometry(int(sizes[0]), each).block[0]
    blocks = -(-np.asarray(sizes, np.int64) // (x * each))
    return LaunchGeometry((int(blocks.sum()), 1, 1), (x, 1, 1)), blocks

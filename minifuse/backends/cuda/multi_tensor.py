"""One launch over several arrays, by way of a table in the memory of the GPU.

    arrays   for each block of the grid, the number of its array; follows from the sizes, and is written once
    table    for each array a row: addresses of its operands, how many elements it has, how many of them are taken four at a
             time, and how many blocks come before its own

A table belongs to the addresses of a call. A call whose addresses were there before finds its table on the GPU; another
sends a new one ahead of the launch, in the same stream. No table is ever changed while it may be needed: a kernel that was
asked for, or a graph that is replayed, reads it later.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.layout import Layout
from ...ir.kernel_ir import Kernel, Load, LoopNest, Parameter, Shape
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ...simt import Pointer, Table
from ..fast_call import CallValue
from .codegen.multi_tensor import generate_multi_tensor_kernel
from .compiler import kernel_from_text
from .geometry import THREADS, VECTOR_WIDTH, LaunchGeometry, line_geometry
from .intrinsics.pointer_table import DEVICE_FUNCTIONS
from .launch_plan import LaunchPlan, ReadyLaunch
from .launcher import ALIGNMENT_MASK, to_kernel_number

MAX_CACHED_TABLES = 8  # tables, each for other addresses
VECTORIZED_COUNT = 1  # the place among an array's sizes of how many elements are taken four at a time


class CudaMultiTensorLauncher:
    """A pointwise kernel over several arrays, the largest first, with all but their addresses and numbers."""

    def __init__(
        self,
        device: Any,
        kernel: Kernel,
        shapes: Sequence[Shape],
        layouts: Sequence[tuple[Sequence[Layout], Sequence[Layout]]],
    ) -> None:
        nests = [LoopNest(shape, (), [*outputs, *inputs]) for shape, (outputs, inputs) in zip(shapes, layouts, strict=True)]
        self.text = text = generate_multi_tensor_kernel(kernel, nests[0].stride_kinds)
        self.device, self.kernel = device, kernel_from_text(text.text, **DEVICE_FUNCTIONS)
        self.dtypes = [e.dtype for e in (*kernel.outputs, *kernel.find_all(Load))]
        self.numbers = [p.dtype for p in kernel.find_all(Parameter)]
        self.spans = [layout.span() for outputs, inputs in layouts for layout in (*outputs, *inputs)]
        self.names = [f"out{k}" for k in range(len(kernel.outputs))] + [f"in{k}" for k in range(len(kernel.find_all(Load)))]
        self.wide = [self.names.index(name) for name in text.wide]
        sizes = np.array([nest.points for nest in nests])
        x = line_geometry(nests[0].points, text.each).block[0]
        blocks = -(-sizes // (x * text.each))
        fours = [sizes // VECTOR_WIDTH * VECTOR_WIDTH] * bool(self.wide)  # where addresses allow it
        self.facts = np.stack([sizes, *fours, np.cumsum(blocks) - blocks], axis=1)
        self.arrays = self.sent(np.repeat(np.arange(len(nests), dtype=np.int32), blocks))
        self.geometry = LaunchGeometry((int(blocks.sum()), 1, 1), (x, 1, 1))
        self.kinds = tuple(kind for _, kind in text.parameters)
        self.run = device.prepare(device.load(text.text, lambda: self.kernel, self.kinds, THREADS), self.geometry)
        self.tables: dict[tuple[int, ...], MemoryBuffer] = {}  # the one last used comes last
        self.lock = Lock()

    def __call__(self, *values: Any) -> None:
        """Launch with the addresses of outputs and inputs of each array in turn, and with numbers."""
        self.launch(self.ready_launches(*values)[0].arguments)

    def launch(self, arguments: Sequence[Any]) -> None:
        """Launch with all that the kernel takes."""
        try:
            self.run(*arguments)
        except Exception as error:
            self.device.recover(self.run, arguments, error)

    def direct(self) -> Callable[..., Any]:
        """The same by the shortest way, once there is a table."""

        def long_way(arrays: int, table: int, *numbers: Any) -> None:
            self.launch([arrays, table, *self.typed(numbers)])

        arguments, count = list(map(CallValue, range(len(self.kinds)))), len(self.spans)
        launch = self.device.direct([(self.run, arguments)], self.kinds, long_way)
        if launch is None:
            return self

        def launch_over(*values: Any) -> None:
            table = self.table_of(values[:count])
            launch(self.arrays.address, table.address, *values[count:])

        return launch_over

    def plan(self, *values: Any) -> LaunchPlan:
        """The launch, not launched."""
        arguments = tuple(self.ready_launches(*values)[0].arguments)
        return LaunchPlan(self.kernel, self.geometry.grid, self.geometry.block, arguments)

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """The launch, ready to become part of a graph, which keeps the table."""
        addresses, numbers = values[: len(self.spans)], self.typed(values[len(self.spans) :])
        table = self.table_of(addresses)
        arguments: list[Any] = [self.arrays.address, table.address, *numbers]
        if self.device.is_simulated:
            arguments[0] = Pointer(self.arrays.address, 0, self.geometry.grid[0], np.int32, self.arrays)
            arguments[1] = Table(table.address, self.behind(addresses), self.row * len(self.facts), table)
        return [ReadyLaunch(self.run, self.kinds, arguments, table)]

    def typed(self, numbers: Sequence[Any]) -> list[Any]:
        """Numbers as the kernel takes them."""
        return [to_kernel_number(x, dtype) for x, dtype in zip(numbers, self.numbers, strict=True)]

    # The table.

    @property
    def row(self) -> int:
        """How many numbers it has of each array."""
        return len(self.names) + int(self.facts.shape[1])

    def table_of(self, addresses: tuple[int, ...]) -> MemoryBuffer:
        """The table of these addresses, on the GPU."""
        with self.lock:
            found = self.tables.pop(addresses, None)
            if found is None:
                if len(self.tables) >= MAX_CACHED_TABLES:
                    self.tables.pop(next(iter(self.tables)))
                found = self.sent(self.written(addresses))
            self.tables[addresses] = found
            return found

    def written(self, addresses: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """The table of these addresses."""
        rows = np.empty((len(self.facts), self.row), np.int64)
        rows[:, : len(self.names)] = np.reshape(addresses, (-1, len(self.names)))
        rows[:, len(self.names) :] = self.facts
        if self.wide:
            bits = np.bitwise_or.reduce(rows[:, self.wide], axis=1)
            rows[bits & ALIGNMENT_MASK != 0, len(self.names) + VECTORIZED_COUNT] = 0
        return rows

    def sent(self, flat: npt.NDArray[Any]) -> MemoryBuffer:
        """A copy of an array on the GPU."""
        buffer: MemoryBuffer = self.device.pool.allocate(round_to_size_class(flat.nbytes))
        self.device.copy_in_async(flat, buffer.address)
        return buffer

    def behind(self, addresses: Sequence[int]) -> dict[int, tuple[str, Pointer]]:
        """What the interpreter finds at each address of the table, under which name."""
        found, width = {}, len(self.names)
        for k, (address, (low, high)) in enumerate(zip(addresses, self.spans, strict=True)):
            array, operand = divmod(k, width)
            pointer = Pointer(address, low, high, self.dtypes[operand].numpy)
            found[array * self.row + operand] = f"{self.names[operand]}[{array}]", pointer
        return found

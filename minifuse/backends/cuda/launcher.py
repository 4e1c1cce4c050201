"""Kernel launches bound to everything except addresses and numbers: the callables in a plan's host program.

Everything that depends on layouts only is computed when a launcher is made. A launcher can also return its launches without
running them, for pictures and checks.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, Number, bool_
from ...core.layout import Layout
from ...core.rounding import ceil_div
from ...ir.kernel_ir import IndexValue, Kernel, KernelParameter, Load, LoopNest
from ...ir.steps import Step
from ...simt import Pointer
from ..base import Launcher, ScalarFunction, check_fits
from ..codegen.gpu_schedule import Split, launch_grid
from ..fast_call import IF_ALIGNED, CallValue
from .codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS
from .codegen.dialect import storage_of
from .codegen.intrinsics import DEVICE_FUNCTIONS
from .codegen.select import FindSchedule, GeneratedKernel, generate_kernel
from .compiler import kernel_from_text
from .geometry import (
    EXCLUSIVE_ROW_BYTES,
    LONG_ROW_THREADS,
    MAX_SHARED_BYTES,
    THREADS,
    LaunchGeometry,
    cached_row_pitch,
    geometry_of,
    line_geometry,
)
from .launch_plan import KernelArgument, LaunchPlan, ReadyLaunch

if TYPE_CHECKING:
    from .device import CudaDevice

ALIGNMENT_MASK = 15  # bits that are 0 in an address where four elements can be loaded at once


class CudaLauncher:
    """Base class of launchers on a device. A call runs all launches that are ready for its values, one after the other."""

    device: "CudaDevice"
    number_dtypes: Sequence[DType] = ()  # of the numbers that follow the addresses of a call

    def convert_numbers(self, numbers: Sequence[Number]) -> list[int | np.generic]:
        """Convert the numbers of a call to the types of the kernel's parameters."""
        return [to_kernel_number(x, dtype) for x, dtype in zip(numbers, self.number_dtypes, strict=True)]

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launches, given the addresses of outputs and inputs, and numbers."""
        raise NotImplementedError

    def __call__(self, *values: Any) -> None:
        """Launch with the addresses of outputs and inputs, and with numbers."""
        self.run_launches(self.ready_launches(*values))

    def run_launches(self, launches: Sequence[ReadyLaunch]) -> None:
        """Run launches one after the other."""
        for run, _, arguments, _ in launches:
            try:
                run(*arguments)
            except Exception as error:
                self.device.recover(run, arguments, error)

    def plans(self, *values: Any) -> list[LaunchPlan]:
        """Return the launches without running them."""
        ready = [(x.run, tuple(x.arguments)) for x in self.ready_launches(*values)]
        return [LaunchPlan(run.kernel, *run.geometry, arguments, run.shared) for run, arguments in ready]


class CudaKernelLauncher(CudaLauncher):
    """A kernel with all arguments of its launch that do not change from call to call."""

    def __init__(
        self,
        device: "CudaDevice",
        step: Step,
        functions: dict[str, Callable[..., Number]] | None = None,
        split: Split | None = None,
        has_constants: bool = True,
        is_aligned: bool = True,
        find_schedule: FindSchedule | None = None,
    ) -> None:
        kernel, nest, raws, rows = step.kernel, step.loop_nest(), step.indexed_layouts(), step.row_shape
        assert isinstance(kernel, Kernel)
        (outputs, inputs), axes = step.layouts(), () if split is None else split.axes
        layouts = [*outputs, *inputs]
        self.generation = kernel, nest, raws, is_aligned, axes, has_constants
        self.text = text = generate_kernel(*self.generation, find_schedule or device.find_schedule)
        # For other addresses, or with another schedule:
        self.variant = partial(CudaKernelLauncher, device, step, functions, split, has_constants)
        self.unaligned = cache(partial(self.variant, False)) if text.schedule and text.wide else None
        self.geometry = kernel_geometry(text, nest, split, device.max_shared_bytes)
        self.dtypes = [*[e.dtype for e in (*kernel.outputs, *kernel.find_all(Load))], *kernel.indexed_dtypes()]
        self.index_values = {len(kernel.outputs) + e.index for e in kernel.find_all(IndexValue)}  # operands without address
        stored = range(len(kernel.pointwise_outputs), len(kernel.outputs))  # row outputs, also of a row without elements
        self.spans = [Layout(rows if k in stored else x.shape, x.strides, 0).span() for k, x in enumerate(layouts)]
        self.spans += [x.span() for x in raws]
        self.number_dtypes = [p.dtype for p in kernel.find_all(KernelParameter)]
        self.device, self.is_simulated = device, device.is_simulated
        names = [name for name, _ in text.parameters]
        values_by_name = sizes_and_strides(text, nest, names[: len(layouts)], raws)
        if split is not None:
            results = prod(n for n, s in zip(nest.sizes[: nest.row_axes], nest.strides[0], strict=False) if s)
            values_by_name["rows"] = results
            for axis, chunks, length in split.parts:
                values_by_name |= {f"chunk{axis}": length, f"chunks{axis}": chunks}
            self.spans[: len(kernel.outputs)] = [(0, split.chunks * results)] * len(kernel.outputs)
        values_by_name["held"] = cached_row_pitch(text.held, nest.sizes[-1], self.geometry.block[1], device.max_shared_bytes)
        self.shared = values_by_name["held"] * text.held * self.geometry.block[1]
        self.vector_operands = [names.index(name) for name in text.wide]
        has_count = bool(text.wide) and not text.schedule
        self.vectorized_count = values_by_name[names[-1]] if has_count else None  # the last argument, for aligned addresses
        self.constants = [
            values_by_name[name] for name in names[len(self.spans) + len(self.number_dtypes) : -1 if has_count else None]
        ]
        self.kernel = python_kernel(text, **functions or {})
        threads = {"points": THREADS, "rows": MAX_ROW_THREADS}.get(text.form, MAX_COLUMN_THREADS)
        threads = text.schedule.threads if text.schedule else max(threads, self.geometry.block[0])
        blocks = text.schedule.blocks if text.schedule else 0
        self.argument_types = tuple(kind for _, kind in text.parameters)
        loaded = device.load(text.text, lambda: self.kernel, self.argument_types, threads, blocks, use_cache=not functions)
        self.run = device.prepare(loaded, self.geometry, self.shared)

    def launcher_for(self, values: Sequence[Any]) -> "CudaKernelLauncher":
        """Return this launcher, or one without vectors if an address is not aligned for them."""
        return self.unaligned() if self.unaligned and not self.is_aligned(values) else self

    def is_aligned(self, values: Sequence[Any]) -> bool:
        """Return whether all operands that move in vectors have addresses that are multiples of 16 bytes."""
        bits = 0
        for k in self.vector_operands:
            bits |= values[k]
        return not bits & ALIGNMENT_MASK

    def fast_entry(self) -> Launcher:
        """Return the fast launch path. It falls back to this launcher."""
        kinds = self.argument_types[: len(self.spans) + len(self.number_dtypes)]
        arguments: list[CallValue | int] = [*map(CallValue, range(len(kinds))), *self.constants]
        arguments += [IF_ALIGNED] * (self.vectorized_count is not None)
        launch = self.device.fast_entry([(self.run, arguments)], kinds, self, self.vector_operands, self.vectorized_count)
        return self if launch is None else launch

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launch for use in a graph."""
        launcher = self.launcher_for(values)
        return [ReadyLaunch(launcher.run, launcher.argument_types, launcher.arguments(values))]

    def arguments(self, values: Sequence[Any]) -> list[KernelArgument]:
        """Return all arguments of the kernel."""
        count = len(self.spans)
        arguments: list[KernelArgument] = self.pointers(values) if self.is_simulated else list(values[:count])
        arguments += [*self.convert_numbers(values[count:]), *self.constants]
        if self.vectorized_count is not None:
            arguments.append(self.vectorized_count if self.is_aligned(values) else 0)
        return arguments

    def pointers(self, values: Sequence[Any]) -> list[KernelArgument]:
        """Return the addresses with the range of elements that the kernel may access, for the interpreter."""
        operands = enumerate(zip(values, self.spans, self.dtypes, strict=False))
        return [x if k in self.index_values else Pointer(x, low, high, d.numpy) for k, (x, (low, high), d) in operands]


def kernel_geometry(
    text: GeneratedKernel, nest: LoopNest, split: Split | None = None, max_shared_bytes: int = MAX_SHARED_BYTES
) -> LaunchGeometry:
    """Return the launch geometry of a generated kernel over a loop nest."""
    if text.schedule is not None:
        reduced = frozenset(range(nest.row_axes, len(nest.sizes))) if text.has_rows else frozenset()
        grid = launch_grid(text.schedule, nest.sizes, reduced, 1 if split is None else split.chunks)
        return LaunchGeometry(grid, text.schedule.block())
    found = geometry_of(text.form, nest.sizes, nest.row_axes, text.counted, text.each, text.across, text.held)
    pitch = cached_row_pitch(text.held, nest.sizes[-1], found.block[1], max_shared_bytes)
    if pitch * text.held * found.block[1] > EXCLUSIVE_ROW_BYTES:  # a single row: several short ones in a block need less
        return LaunchGeometry(found.grid, (LONG_ROW_THREADS, 1, 1))
    return found


def sizes_and_strides(
    text: GeneratedKernel, nest: LoopNest, operands: Sequence[str], raws: Sequence[Layout] = ()
) -> dict[str, int]:
    """Return the sizes and strides that a kernel may take as arguments, by name."""
    indexed = {f"raw{k}": x for k, x in enumerate(raws)}
    values = {f"n{axis}": size for axis, size in enumerate(nest.sizes)}
    values |= {f"{name}_{a}": s for name, strides in zip(operands, nest.strides, strict=True) for a, s in enumerate(strides)}
    values |= {f"{name}_{d}": s for name, x in indexed.items() for d, s in enumerate(x.strides)}
    if text.schedule is not None:
        tiles = enumerate(zip(nest.sizes, text.schedule.tiles, strict=True))
        return values | {f"blocks{a}": ceil_div(n, tile.length) for a, (n, tile) in tiles}
    last = len(nest.sizes) - 1
    vectorized = [name for name in text.wide if name not in indexed]
    contiguous_axis = {name: text.across if name in text.tiled else last for name in vectorized}
    steps = [s for name, b in contiguous_axis.items() for a, s in enumerate(nest.strides[operands.index(name)]) if a != b]
    for name in indexed.keys() & set(text.wide):
        strides = list(indexed[name].strides)
        strides.remove(1)
        steps += strides
    rows_are_aligned = all(s % 4 == 0 for s in steps)
    fours = nest.sizes[-1] // 4 * 4 if rows_are_aligned else 0
    is_wide = rows_are_aligned and all(size % 4 == 0 for a, size in enumerate(nest.sizes) if a in contiguous_axis.values())
    return values | {"rows": prod(nest.sizes[: text.counted]), "fours": fours, "is_wide": int(is_wide)}


@lru_cache(1024)
def python_kernel(text: GeneratedKernel, **functions: Callable[..., Number]) -> Callable[..., None]:
    """Return a generated kernel as a Python function."""
    return kernel_from_text(text.text, **DEVICE_FUNCTIONS, **functions)


def to_kernel_number(value: Number, dtype: DType) -> int | np.generic:
    """Convert a number to an element type. An int64 is passed as a Python int."""
    if not dtype.is_float:
        check_fits(value, dtype)
        if dtype.itemsize == 8:
            return int(value)
    number: np.generic = np.uint8(value) if dtype is bool_ else dtype.numpy.type(value)
    return number


REDUCE_WITHOUT_IDENTITY = """
def kernel(out, rows, count, length):
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < count:
        total = rows[row * length]
        for i in range(1, length):
            total = own_function(total, rows[row * length + i])
        out[row] = total
"""


def reduce_without_identity(
    device: "CudaDevice", op: ScalarFunction, count: int, length: int, dtypes: Sequence[DType], addresses: Sequence[int]
) -> None:
    """Reduce rows by a scalar function that has no identity, with one thread per row, starting from its first element."""
    kernel = kernel_from_text(REDUCE_WITHOUT_IDENTITY, own_function=op)
    signature = *[f"*{storage_of(dtype)}" for dtype in dtypes], "i64", "i64"
    run = device.prepare(
        device.load(REDUCE_WITHOUT_IDENTITY, lambda: kernel, signature, THREADS, use_cache=False), line_geometry(count, 1)
    )
    pointers: Sequence[int | Pointer] = addresses
    if device.is_simulated:
        sizes = count, count * length
        pointers = [Pointer(x, 0, n, d.numpy) for x, n, d in zip(addresses, sizes, dtypes, strict=True)]
    run(*pointers, count, length)

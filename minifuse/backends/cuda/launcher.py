"""Kernel launches bound to everything except addresses and numbers: the callables in a plan's host program.

Everything that depends on layouts only is computed when a launcher is made. A launcher can also return its launches without
running them, for pictures and checks.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, Number, bool_
from ...core.layout import Layout
from ...core.rounding import ceil_div
from ...ir.kernel_ir import IndexValue, Kernel, KernelParameter, Load, LoopNest, ReadOutput
from ...ir.step_kernels import MatmulKernel
from ...ir.steps import Step
from ...runtime.kernel_cache import load_all
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ...simt import Pointer
from ..base import Launcher, ScalarFunction, check_fits
from ..codegen.gpu_schedule import Split, launch_grid
from ..fast_call import IF_ALIGNED, CallValue, encode_argument
from ..matmul.problem import matmul_problem
from .codegen.base import MAX_COLUMN_THREADS, MAX_ROW_THREADS
from .codegen.dialect import storage_of
from .codegen.intrinsics import DEVICE_FUNCTIONS
from .codegen.select import FindSchedule, GeneratedKernel, generate_kernel
from .compiler import kernel_from_text
from .geometry import (
    EXCLUSIVE_ROW_BYTES,
    LONG_ROW_THREADS,
    THREADS,
    LaunchGeometry,
    cached_row_pitch,
    geometry_of,
    line_geometry,
)
from .launch_plan import DeviceLaunch, KernelArgument, LaunchPlan, ReadyLaunch
from .matmul.launches import plan_matmul
from .matmul.operands import (
    OUT,
    WORKSPACE,
    Argument,
    GpuGemmLaunch,
    NumberArgument,
    OperandAddress,
    PointerOf,
    TensorMapArgument,
)
from .tile_shapes import GpuKernel

if TYPE_CHECKING:
    from .device import CudaDevice

ALIGNMENT_MASK = 15  # bits that are 0 in an address where four elements can be loaded at once

AlignmentFlags = tuple[bool, bool, bool]  # whether the addresses of outputs, of a and of b are multiples of 16 bytes
ALL_ALIGNED = True, True, True
Dim3 = tuple[int, int, int]


class CudaLauncher:
    """Base class of launchers on a device. A call runs all launches that are ready for its values, one after the other."""

    device: "CudaDevice"

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
        self.geometry = kernel_geometry(text, nest, split)
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
        if self.shared > EXCLUSIVE_ROW_BYTES:  # this is a single row, since several short rows in a block need less
            self.geometry = LaunchGeometry(self.geometry.grid, (LONG_ROW_THREADS, 1, 1))
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
        arguments += [
            to_kernel_number(value, dtype) for value, dtype in zip(values[count:], self.number_dtypes, strict=True)
        ]
        arguments += self.constants
        if self.vectorized_count is not None:
            arguments.append(self.vectorized_count if self.is_aligned(values) else 0)
        return arguments

    def pointers(self, values: Sequence[Any]) -> list[KernelArgument]:
        """Return the addresses with the range of elements that the kernel may access, for the interpreter."""
        operands = enumerate(zip(values, self.spans, self.dtypes, strict=False))
        return [x if k in self.index_values else Pointer(x, low, high, d.numpy) for k, (x, (low, high), d) in operands]


def kernel_geometry(text: GeneratedKernel, nest: LoopNest, split: Split | None = None) -> LaunchGeometry:
    """Return the launch geometry of a generated kernel over a loop nest."""
    if text.schedule is not None:
        reduced = frozenset(range(nest.row_axes, len(nest.sizes))) if text.has_rows else frozenset()
        grid = launch_grid(text.schedule, nest.sizes, reduced, 1 if split is None else split.chunks)
        return LaunchGeometry(grid, text.schedule.block())
    return geometry_of(text.form, nest.sizes, nest.row_axes, text.counted, text.each, text.across, text.held)


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


def prepare_kernel(device: "CudaDevice", kernel: GpuKernel, grid: Dim3, block: Dim3) -> DeviceLaunch:
    """Compile a hand-written kernel and prepare its launch."""
    bounds, is_arch_specific = (kernel.threads, kernel.blocks), kernel.is_arch_specific
    loaded = device.load(
        kernel.source, lambda: kernel.function, kernel.signature, *bounds, is_arch_specific=is_arch_specific
    )
    return device.prepare(loaded, LaunchGeometry(grid, block), kernel.shared)


def prepare_kernels(device: "CudaDevice", kernels: Iterable[tuple[GpuKernel, Dim3, Dim3]]) -> list[DeviceLaunch]:
    """Compile several hand-written kernels, and prepare their launches for a grid and a block each."""
    return load_all(partial(prepare_kernel, device, *x) for x in kernels)


class CudaMatmulLauncher(CudaLauncher):
    """A matrix product with its prologue and epilogue.

    Its kernels also depend on whether addresses are multiples of 16 bytes.
    """

    def __init__(
        self, device: "CudaDevice", kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> None:
        self.device, self.kernel, self.outputs, self.inputs = device, kernel, outputs, inputs
        layouts, dtypes = [*outputs, *inputs], [e.dtype for e in kernel.pointwise_outputs]
        dtypes += [e.dtype for loads in kernel.loads() for e in loads]
        self.dtypes, self.spans = [*dtypes, kernel.a.dtype], [layout.span() for layout in layouts]  # last: workspace
        self.number_dtypes = [p.dtype for p in kernel.find_all(KernelParameter)]
        problem = matmul_problem(kernel, outputs, inputs)
        self.index_values = {x.address_index for x in problem.fused if not x.in_memory}  # operands without address
        epilogue_operands = [x.address_index for x in problem.fused if x.space == "out" and x.in_memory]
        vectors = [k for k in epilogue_operands if 1 in layouts[k].strides[-2:]]
        self.aligned_operands = (OUT, *vectors), (problem.a.address_index,), (problem.b.address_index,)
        self.prepared: dict[AlignmentFlags, tuple[list[tuple[DeviceLaunch, GpuGemmLaunch]], int]] = {}
        self.fast_paths: dict[AlignmentFlags, Launcher] = {}  # fast launch paths by alignment
        self.prepare(ALL_ALIGNED)

    def prepare(self, aligned: AlignmentFlags) -> None:
        """Compile and prepare the launches for addresses of this alignment."""
        device = self.device
        gpu = device.multiprocessors, aligned, device.max_shared_bytes, device.tensor_cores
        plan = plan_matmul(self.kernel, self.outputs, self.inputs, *gpu)
        prepared = prepare_kernels(device, [(x.kernel, x.grid, x.block) for x in plan.launches])
        runs = list(zip(prepared, plan.launches, strict=True))
        self.prepared[aligned] = runs, plan.workspace

    def fast_entry(self) -> Launcher:
        """Return the fast launch path. Launches that may not run twice have none."""
        runs, _ = self.prepared[ALL_ALIGNED]
        outputs = range(len(self.outputs))
        output_writers = [
            run for run, x in runs if any(isinstance(y, OperandAddress) and y.operand in outputs for y in x.arguments)
        ]
        if len(output_writers) > 1 and Kernel(self.kernel.pointwise_outputs, ()).find_all(ReadOutput):
            return self
        return self.fast_path(ALL_ALIGNED, self.launch_by_alignment)

    def launch_by_alignment(self, *values: Any) -> None:
        """Launch by the fast path for this alignment. If all addresses are aligned, it has failed: use the slow path."""
        aligned = self.alignment(values)
        if aligned == ALL_ALIGNED:
            self(*values)
            return
        launch = self.fast_paths.get(aligned)
        if launch is None:
            launch = self.fast_paths[aligned] = self.fast_path(aligned, self)
        launch(*values)

    def fast_path(self, aligned: AlignmentFlags, fallback: Launcher) -> Launcher:
        """Return the fast launch path for this alignment. This path appends a workspace and tensor maps to the values."""
        if aligned not in self.prepared:
            self.prepare(aligned)
        runs, workspace = self.prepared[aligned]
        maps = list(dict.fromkeys(x for _, launch in runs for x in launch.arguments if isinstance(x, TensorMapArgument)))
        address_count, value_count = len(self.spans), len(self.spans) + len(self.number_dtypes)
        kinds = ["i64"] * address_count + [storage_of(dtype) for dtype in self.number_dtypes]

        def encode(x: Argument, kind: str) -> CallValue | int:
            if isinstance(x, OperandAddress):
                return CallValue(value_count if x.operand == WORKSPACE else x.operand, self.byte_offset(x))
            if isinstance(x, NumberArgument):
                return CallValue(address_count + x.position)
            if isinstance(x, TensorMapArgument):
                return CallValue(value_count + 1 + maps.index(x))
            return encode_argument(kind, x)

        def fallback_without_extras(*values: Any) -> None:
            fallback(*values[:value_count])

        launches = [(run, list(map(encode, x.arguments, x.kernel.signature))) for run, x in runs]
        operands = zip(self.aligned_operands, aligned, strict=True)
        must_be_aligned = [k for group, is_aligned in operands if is_aligned for k in group]
        if not workspace and not maps:
            return self.device.fast_entry(launches, kinds, fallback, must_be_aligned) or self
        launch = self.device.fast_entry(launches, [*kinds, *["i64"] * (1 + len(maps))], fallback_without_extras)
        if launch is None:
            return self
        allocate, nbytes = self.device.pool.allocate, round_to_size_class(workspace)
        map_addresses = [(x.box, x.address.operand, self.byte_offset(x.address)) for x in maps]

        def launch_with_extras(*values: Any) -> None:
            bits = 0
            for k in must_be_aligned:
                bits |= values[k]
            if bits & ALIGNMENT_MASK:
                fallback(*values)
                return
            buffer = allocate(nbytes)  # reused in stream order, so only after the last launch
            bases = *values, buffer.address
            tensor_maps = [self.device.tensor_maps.find(box, bases[k] + start) for box, k, start in map_addresses]
            launch(*bases, *[x.address for x in tensor_maps])

        return launch_with_extras

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launches for use in a graph."""
        numbers, ready = self.convert_numbers(values), []
        for run, launch, pointer, owner in self.bound_launches(values):
            kinds, maps = launch.kernel.signature, dict[TensorMapArgument, MemoryBuffer]()
            for x in launch.arguments:
                if isinstance(x, TensorMapArgument):
                    address = pointer(x.address)
                    assert isinstance(address, int)
                    maps[x] = self.device.tensor_maps.find(x.box, address)
            resolved = [maps[x].address if isinstance(x, TensorMapArgument) else x for x in launch.arguments]
            arguments = [launch_argument(x, kind, pointer, numbers) for x, kind in zip(resolved, kinds, strict=True)]
            ready.append(ReadyLaunch(run, kinds, arguments, (owner, *maps.values()) if maps else owner))
        return ready

    def convert_numbers(self, values: Sequence[Number]) -> list[int | np.generic]:
        """Convert the numbers of a call to the types of the kernel's parameters."""
        return [to_kernel_number(x, dtype) for x, dtype in zip(values[len(self.spans) :], self.number_dtypes, strict=True)]

    def bound_launches(
        self, values: Sequence[Any]
    ) -> list[tuple[DeviceLaunch, GpuGemmLaunch, PointerOf, MemoryBuffer | None]]:
        """Return each launch, the function that turns its operand addresses into pointers, and the workspace."""
        aligned = self.alignment(values)
        if aligned not in self.prepared:
            self.prepare(aligned)
        runs, workspace = self.prepared[aligned]
        buffer = self.device.pool.allocate(round_to_size_class(workspace)) if workspace else None
        bases: list[int] = [*values[: len(self.spans)], buffer.address if buffer else 0]
        dtypes, spans = self.dtypes, [*self.spans, (0, workspace // self.dtypes[WORKSPACE].itemsize)]

        def address_of(place: OperandAddress) -> int:
            return bases[place.operand] + self.byte_offset(place)

        def pointer_of(place: OperandAddress) -> int | Pointer:
            if place.operand in self.index_values:
                return address_of(place)
            low, high = spans[place.operand]
            dtype = dtypes[place.operand].numpy
            return Pointer(address_of(place), low - place.offset, high - place.offset, dtype, owner=buffer)

        pointer = pointer_of if self.device.is_simulated else address_of
        return [(run, launch, pointer, buffer) for run, launch in runs]

    def alignment(self, values: Sequence[Any]) -> AlignmentFlags:
        """Return whether the addresses of outputs and epilogue operands, of a, and of b are multiples of 16."""
        out, a, b = (not any(values[k] & ALIGNMENT_MASK for k in group) for group in self.aligned_operands)
        return out, a, b

    def byte_offset(self, place: OperandAddress) -> int:
        """Return the byte offset of an address within its operand. For an index value, return its offset unchanged."""
        return place.offset * (1 if place.operand in self.index_values else self.dtypes[place.operand].itemsize)


def launch_argument(
    x: OperandAddress | NumberArgument | float, kind: str, pointer: PointerOf, numbers: Sequence[int | np.generic]
) -> KernelArgument:
    """Return an argument in the form that the launch takes."""
    if isinstance(x, OperandAddress):
        return pointer(x)
    return numbers[x.position] if isinstance(x, NumberArgument) else np.float32(x) if kind == "f32" else x


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

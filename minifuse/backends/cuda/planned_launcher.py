"""Launchers of hand-written kernels: a plan of one or more launches, which may share a workspace.

A plan depends on layouts and on the alignment of addresses. It is made, and its kernels are compiled, at the first call with
addresses of some alignment.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType
from ...core.layout import Layout
from ...ir.kernel_ir import Kernel, KernelParameter, ReadOutput
from ...ir.step_kernels import MatmulKernel
from ...ir.steps import Step
from ...runtime.kernel_cache import load_all
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ...simt import Pointer
from ..base import Launcher
from ..fast_call import CallValue, encode_argument
from ..matmul.problem import matmul_problem
from .codegen.dialect import storage_of
from .geometry import LaunchGeometry
from .launch_plan import (
    OUT,
    WORKSPACE,
    Argument,
    DeviceLaunch,
    GpuLaunch,
    GpuPlan,
    KernelArgument,
    NumberArgument,
    OperandAddress,
    PointerOf,
    ReadyLaunch,
    TensorMapArgument,
)
from .launcher import ALIGNMENT_MASK, CudaLauncher
from .matmul.launches import plan_matmul

if TYPE_CHECKING:
    from .device import CudaDevice

AlignmentFlags = tuple[bool, ...]  # for each group of operands, whether all addresses are multiples of 16 bytes


class PlannedLauncher(CudaLauncher):
    """A launcher of hand-written kernels, bound to everything except addresses and numbers."""

    index_values: frozenset[int] = frozenset()  # operands without address

    def __init__(
        self, device: "CudaDevice", layouts: Sequence[Layout], dtypes: Sequence[DType], groups: Sequence[Sequence[int]]
    ) -> None:
        self.device, self.dtypes, self.aligned_operands = device, dtypes, groups  # last dtype: that of the workspace
        self.spans = [layout.span() for layout in layouts]
        self.all_aligned = (True,) * len(groups)
        self.prepared: dict[AlignmentFlags, tuple[list[tuple[DeviceLaunch, GpuLaunch]], int]] = {}
        self.fast_paths: dict[AlignmentFlags, Launcher] = {}  # fast launch paths by alignment
        self.prepared_launches(self.all_aligned)

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches for addresses of this alignment."""
        raise NotImplementedError

    def prepared_launches(self, aligned: AlignmentFlags) -> tuple[list[tuple[DeviceLaunch, GpuLaunch]], int]:
        """Return the launches for addresses of this alignment, compiled and prepared, and the bytes of their workspace."""
        if aligned not in self.prepared:
            plan = self.plan(aligned)
            runs = load_all(partial(prepare_launch, self.device, launch) for launch in plan.launches)
            self.prepared[aligned] = list(zip(runs, plan.launches, strict=True)), plan.workspace
        return self.prepared[aligned]

    def fast_entry(self) -> Launcher:
        """Return the fast launch path."""
        return self.fast_path(self.all_aligned, self.launch_by_alignment)

    def launch_by_alignment(self, *values: Any) -> None:
        """Launch by the fast path for this alignment. If all addresses are aligned, it has failed: use the slow path."""
        aligned = self.alignment(values)
        if aligned == self.all_aligned:
            self(*values)
            return
        launch = self.fast_paths.get(aligned)
        if launch is None:
            launch = self.fast_paths[aligned] = self.fast_path(aligned, self)
        launch(*values)

    def fast_path(self, aligned: AlignmentFlags, fallback: Launcher) -> Launcher:
        """Return the fast launch path for this alignment. This path appends a workspace and tensor maps to the values."""
        runs, workspace = self.prepared_launches(aligned)
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
        numbers, ready = self.convert_numbers(values[len(self.spans) :]), []
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

    def bound_launches(self, values: Sequence[Any]) -> list[tuple[DeviceLaunch, GpuLaunch, PointerOf, MemoryBuffer | None]]:
        """Return each launch, the function that turns its operand addresses into pointers, and the workspace."""
        runs, workspace = self.prepared_launches(self.alignment(values))
        buffer = self.device.pool.allocate(round_to_size_class(workspace)) if workspace else None
        bases: list[int] = [*values[: len(self.spans)], buffer.address if buffer else 0]
        dtypes, spans = self.dtypes, [*self.spans, (0, workspace // self.dtypes[WORKSPACE].itemsize)]

        def address_of(place: OperandAddress) -> int:
            return bases[place.operand] + self.byte_offset(place)

        def pointer_of(place: OperandAddress) -> int | Pointer:
            if place.operand in self.index_values:
                return address_of(place)
            own, dtype = dtypes[place.operand], place.dtype or dtypes[place.operand]
            low, high = [x * own.itemsize // dtype.itemsize - place.offset for x in spans[place.operand]]
            return Pointer(address_of(place), low, high, dtype.numpy, owner=buffer)

        pointer = pointer_of if self.device.is_simulated else address_of
        return [(run, launch, pointer, buffer) for run, launch in runs]

    def alignment(self, values: Sequence[Any]) -> AlignmentFlags:
        """Return whether all addresses of each group of operands are multiples of 16."""
        return tuple(not any(values[k] & ALIGNMENT_MASK for k in group) for group in self.aligned_operands)

    def byte_offset(self, place: OperandAddress) -> int:
        """Return the byte offset of an address within its operand. For an index value, return its offset unchanged."""
        dtype = place.dtype or self.dtypes[place.operand]
        return place.offset * (1 if place.operand in self.index_values else dtype.itemsize)


class PlanLauncher(PlannedLauncher):
    """A launcher of a step whose launches are the same for addresses of any alignment."""

    def __init__(self, device: "CudaDevice", step: Step, launches: GpuPlan, workspace_dtype: DType) -> None:
        self.launches = launches
        layouts = [x for group in step.layouts() for x in group]
        super().__init__(device, layouts, [*step.kernel.operand_dtypes(), workspace_dtype], [range(len(layouts))])

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches."""
        return self.launches


class CudaMatmulLauncher(PlannedLauncher):
    """A matrix product with its prologue and epilogue.

    Its plan depends on the alignment of outputs and epilogue operands, of a, and of b.
    """

    def __init__(
        self, device: "CudaDevice", kernel: MatmulKernel, outputs: Sequence[Layout], inputs: Sequence[Layout]
    ) -> None:
        self.kernel, self.outputs, self.inputs = kernel, outputs, inputs
        layouts, dtypes = [*outputs, *inputs], [e.dtype for e in kernel.pointwise_outputs]
        dtypes += [e.dtype for loads in kernel.loads() for e in loads]
        self.number_dtypes = [p.dtype for p in kernel.find_all(KernelParameter)]
        problem = matmul_problem(kernel, outputs, inputs)
        self.index_values = frozenset(x.address_index for x in problem.fused if not x.in_memory)
        epilogue_operands = [x.address_index for x in problem.fused if x.space == "out" and x.in_memory]
        vectors = [k for k in epilogue_operands if 1 in layouts[k].strides[-2:]]
        groups = (OUT, *vectors), (problem.a.address_index,), (problem.b.address_index,)
        super().__init__(device, layouts, [*dtypes, kernel.a.dtype], groups)

    def plan(self, aligned: AlignmentFlags) -> GpuPlan:
        """Return the launches for addresses of this alignment."""
        device, (out, a, b) = self.device, aligned
        gpu = device.multiprocessors, (out, a, b), device.max_shared_bytes, device.tensor_cores
        return plan_matmul(self.kernel, self.outputs, self.inputs, *gpu)

    def fast_entry(self) -> Launcher:
        """Return the fast launch path. Launches that may not run twice have none."""
        runs, _ = self.prepared_launches(self.all_aligned)
        outputs = range(len(self.outputs))
        output_writers = [
            run for run, x in runs if any(isinstance(y, OperandAddress) and y.operand in outputs for y in x.arguments)
        ]
        if len(output_writers) > 1 and Kernel(self.kernel.pointwise_outputs, ()).find_all(ReadOutput):
            return self
        return super().fast_entry()


def prepare_launch(device: "CudaDevice", launch: GpuLaunch) -> DeviceLaunch:
    """Compile a hand-written kernel and prepare its launch."""
    kernel, is_arch_specific = launch.kernel, launch.kernel.is_arch_specific
    bounds = kernel.threads, kernel.blocks
    loaded = device.load(
        kernel.source, lambda: kernel.function, kernel.signature, *bounds, is_arch_specific=is_arch_specific
    )
    return device.prepare(loaded, LaunchGeometry(launch.grid, launch.block), kernel.shared)


def launch_argument(
    x: OperandAddress | NumberArgument | float | np.float32,
    kind: str,
    pointer: PointerOf,
    numbers: Sequence[int | np.generic],
) -> KernelArgument:
    """Return an argument in the form that the launch takes."""
    if isinstance(x, OperandAddress):
        return pointer(x)
    return numbers[x.position] if isinstance(x, NumberArgument) else np.float32(x) if kind == "f32" else x

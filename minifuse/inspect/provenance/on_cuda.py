"""Run kernels of the cuda backend on value IDs in the interpreter: see `cell`."""

import linecache
from collections.abc import Iterator
from functools import partial
from math import prod
from types import FunctionType
from typing import Any, cast

import numpy as np

from ... import simt
from ...backends.base import Executable, NoExecutable
from ...backends.cuda.launch_plan import LaunchPlan
from ...core.errors import MinifuseError
from ...core.overlap import Interval
from ...ir.step_kernels import BatchedKernel
from ...ir.steps import Step
from ...simt import Pointer
from ...simt.lanes import getcurrent
from ...simt.rebind import python_function
from ...simt.record import LOAD, STORE
from ..dry_run import RecordingBackend, RecordingDevice
from .recorded_launches import ITEMSIZE, ONE_ARRAY_PER_KERNEL, ElementRead, LaunchTrace, RecordedLaunch
from .traced_values import ProvenanceLog, ThreadId, ValueId, decode_id

MAX_TRACED_ACCESSES = 250_000  # accesses to memory in the trace of one launch
MAX_LANES_TO_RUN_ALL = (
    1 << 13
)  # lanes of a launch; with more, at first only the blocks that probably compute the element run


class RecordingCudaBackend(RecordingBackend):
    """The cuda backend; it records its launches, one per array, since a traced element belongs to one array."""

    def __init__(self) -> None:
        super().__init__(RecordingDevice())

    def compile(self, step: Step) -> Executable:
        """Return the executable of a step. There are no batches."""
        if isinstance(step.kernel, BatchedKernel):
            return NoExecutable(step, ONE_ARRAY_PER_KERNEL)
        return super().compile(step)

    def launches(self) -> list[RecordedLaunch]:
        """Return the recorded launches, in order."""
        return [RecordedLaunch(output_ranges(plan), partial(run_launch, plan)) for plan in self.device.plans]


def named_pointers(plan: LaunchPlan) -> list[tuple[str, Pointer]]:
    """Return the pointers among the arguments of a launch, with the names of the kernel's parameters."""
    names = python_kernel(plan).__code__.co_varnames
    return [(name, x) for name, x in zip(names, plan.arguments, strict=False) if isinstance(x, Pointer)]


def python_kernel(plan: LaunchPlan) -> FunctionType:
    """Return the kernel of a plan as a Python function."""
    function = python_function(plan.kernel)
    assert function is not None
    return function


def output_ranges(plan: LaunchPlan) -> tuple[Interval, ...]:
    """Return the address ranges that a launch writes: generated kernels name their outputs out0, out1, ..."""
    return tuple(pointer_range(x) for name, x in named_pointers(plan) if name.startswith("out"))


def pointer_range(pointer: Pointer) -> Interval:
    """Return the address range of a pointer's memory."""
    first = pointer.data.__array_interface__["data"][0]
    return first, first + pointer.data.nbytes


class TracedArray(np.ndarray):
    """Memory of an interpreted kernel whose elements are read as value IDs."""

    number: Any = None  # the type of IDs

    def __array_finalize__(self, origin: object) -> None:
        self.number = getattr(origin, "number", None)

    def __getitem__(self, index: Any) -> Any:
        element = super().__getitem__(index)
        return self.number(element) if isinstance(element, np.float32) else element


class TracedAddressSpace:
    """`cuda.shared` or `cuda.local` of a traced kernel: values read from its arrays are IDs, too."""

    def __init__(self, space: Any, number: type[np.float32]) -> None:
        self.space, self.number = space, number

    def array(self, *arguments: Any) -> Any:
        """Return an array in this address space."""
        array = self.space.array(*arguments)
        if array.dtype == np.float32 and not isinstance(array.data, TracedArray):
            data: Any = array.data.view(TracedArray)
            data.number, array.data = self.number, data
        return array


class TracedCudaModule:
    """The `cuda` module of a traced kernel."""

    is_word = True

    def __init__(self, number: type[np.float32]) -> None:
        self.shared = TracedAddressSpace(simt.cuda.shared, number)
        self.local = TracedAddressSpace(simt.cuda.local, number)

    def __getattr__(self, name: str) -> object:
        return getattr(simt.cuda, name)


def run_launch(plan: LaunchPlan, requested: set[int]) -> LaunchTrace:
    """Run the blocks of a launch that compute some elements."""
    block_count, ranges = prod(plan.grid), output_ranges(plan)
    all_blocks = set(range(block_count))
    if block_count * prod(plan.block) > MAX_LANES_TO_RUN_ALL:
        written = [(low, high) for at in requested for low, high in ranges if low <= at < high]
        likely = {(at - low) * block_count // (high - low) for at, (low, high) in zip(requested, written, strict=True)}
        trace = run_blocks(plan, likely, requested)
        if trace is not None:
            return trace
    trace = run_blocks(plan, all_blocks, requested)
    assert trace is not None
    return trace


def run_blocks(plan: LaunchPlan, blocks: set[int], requested: set[int]) -> LaunchTrace | None:
    """Run some blocks; return None if they do not compute all requested elements."""
    log, function, block_count = ProvenanceLog(current_lane), python_kernel(plan), prod(plan.grid)
    arguments, memory = list(plan.arguments), dict[int, tuple[int, TracedArray]]()
    for k, argument in enumerate(plan.arguments):
        if isinstance(argument, Pointer):
            low, _ = pointer_range(argument)
            if argument.data.dtype != np.float32:
                raise MinifuseError(
                    f"a cell can be traced in float32 only, and a kernel has memory of {argument.data.dtype}"
                )
            first = log.add_memory(low, argument.data.size)
            data = np.arange(first, first + argument.data.size, dtype=np.int32).view(np.float32).view(TracedArray)
            data.number = log.float_type
            arguments[k] = Pointer(data, argument.low)
            memory[len(memory)] = low, data
    kernel = rebind_operators(log, function)
    trace = simt.trace(
        kernel if len(blocks) == block_count else restrict_to_blocks(kernel, blocks),
        plan.grid,
        plan.block,
        *arguments,
        limit=MAX_TRACED_ACCESSES,
        shared=plan.shared,
    )
    if not trace.is_complete:
        raise MinifuseError(f"{trace.findings[-1]}; use a smaller shape")
    events = trace.events
    rows = [row for row, info in enumerate(trace.arrays) if info.space == "global"]
    id_at_address, storers = dict[int, ValueId](), set[ThreadId]()
    for k in np.flatnonzero(np.isin(events.array, rows) & (events.kind == STORE)).tolist():
        low, data = memory[rows.index(events.array[k])]
        first = (int(events.address[k]) - trace.arrays[events.array[k]].base) // ITEMSIZE
        for n in range(first, first + int(events.nbytes[k]) // ITEMSIZE):
            if low + ITEMSIZE * n in requested:
                id_at_address[low + ITEMSIZE * n] = decode_id(data.item(n))
                storers.add((int(events.block[k]), int(events.thread[k])))
    id_at_address = dict(sorted(id_at_address.items()))
    if set(id_at_address) != requested:
        return None
    ancestors = log.ancestors(*id_at_address.values())
    computing = storers | {op.thread for value_id in ancestors if (op := log.op_of(value_id)) is not None}
    reads = list(
        iter_loads(trace, rows, [low for low, _ in memory.values()], {log.address_of(n) for n in ancestors}, computing)
    )
    lines = dict(enumerate(linecache.getlines(function.__code__.co_filename), start=1))
    text_lines = {number: line.rstrip("\n") for number, line in lines.items()}
    return LaunchTrace(log, id_at_address, ancestors, reads, text_lines, block_count, tuple(sorted(blocks)), trace)


def rebind_operators(log: ProvenanceLog, function: FunctionType) -> FunctionType:
    """Return a kernel in which all operators are logged, also in the functions that it calls."""
    names, replacements = function.__globals__, {**log.traced_operators(), "cuda": TracedCudaModule(log.float_type)}
    namespace = {name: replacements.get(name, value) for name, value in names.items()}

    def rebind(function: FunctionType) -> FunctionType:
        return FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)

    for name, value in names.items():
        inner = python_function(value) if name not in replacements else None
        if inner is not None and inner.__globals__ is names:
            namespace[name] = rebind(inner)
    return rebind(function)


def iter_loads(
    trace: simt.Trace, rows: list[int], lows: list[int], requested: set[int | None], computing: set[ThreadId]
) -> Iterator[ElementRead]:
    """Yield the loads of elements at these addresses by the threads that helped to compute the traced element."""
    events, read_counts = trace.events, dict[ThreadId, int]()
    for k in np.flatnonzero(np.isin(events.array, rows) & (events.kind == LOAD)).tolist():
        thread, row = (int(events.block[k]), int(events.thread[k])), events.array[k]
        first = lows[rows.index(row)] + int(events.address[k]) - trace.arrays[row].base
        addresses = [at for at in range(first, first + int(events.nbytes[k]), ITEMSIZE) if at in requested]
        if thread in computing and addresses:
            line = trace.instructions[events.instruction[k]].line
            yield from (ElementRead(at, thread, read_counts.get(thread, 0), line) for at in addresses)
            read_counts[thread] = read_counts.get(thread, 0) + 1


def current_lane() -> ThreadId:
    """Return block and thread of the running lane."""
    lane = getcurrent().lane
    return lane.block, lane.thread


def restrict_to_blocks(kernel: FunctionType, blocks: set[int]) -> FunctionType:
    """Return a kernel that runs only these blocks: all others return at once."""

    def is_chosen() -> bool:
        return current_lane()[0] in blocks

    is_chosen.__dict__["is_word"] = True  # the interpreter calls it as one of its own functions

    def chosen(*arguments: object) -> None:
        if is_chosen():
            kernel(*arguments)

    return cast(FunctionType, chosen)

"""Tune the kernels of a launch: time schedules with its operands, and keep the fastest one (`tuned_schedules`)."""

from collections.abc import Sequence
from functools import partial
from math import inf
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.kernel_ir import stride_kinds_of
from ...runtime.compile_workers import load_in_parallel
from ...runtime.kernel_cache import KernelNotCompiled
from ...runtime.memory_pool import MemoryBuffer, round_to_size_class
from ..base import Launcher
from ..codegen.gpu_facts import Facts
from ..codegen.schedule import LoopSchedule
from ..codegen.schedule_search import neighbors, search
from .codegen.select import describe_nest, generate_kernel
from .launch_plan import ReadyLaunch
from .launcher import CudaKernelLauncher
from .split import SplitLauncher
from .tuned_schedules import TunedSchedules

if TYPE_CHECKING:
    from .device.cuda_graphs import GraphReplay

VECTOR_BYTES = 16  # vectors are at multiples of it
ALIGNMENT = 256  # bytes: the address of a scratch output has the same remainder as that of the output
ROUNDS = 7  # measurements of each launch, of which the median counts
MIN_ROUND_US = 100.0  # time of one measurement: shorter launches are repeated
MAX_LAUNCHES = 20  # in one measurement


def tuned_launch(launch: Launcher, schedules: TunedSchedules) -> Launcher:
    """Return a launch that first searches the best schedule of each of its kernels that has one and is not tuned yet."""
    if isinstance(launch, CudaKernelLauncher):
        return lambda *values: tune(launch, values, schedules)(*values)
    if not isinstance(launch, SplitLauncher):
        return launch

    def launch_parts(*values: Any) -> None:
        workspace = launch.device.pool.allocate(launch.nbytes)
        for part, arguments in launch.resolve(values, workspace.address):
            tune(part, arguments, schedules)(*arguments)

    return launch_parts


def tune(launch: CudaKernelLauncher, values: Sequence[Any], schedules: TunedSchedules) -> CudaKernelLauncher:
    """Return the launcher of a kernel with its best schedule, which is searched with these values if it is unknown.

    The timed launches read the operands, and write to scratch memory.
    """
    launch = launch.launcher_for(values)
    kernel, nest, indexed, is_aligned, _, has_constants = launch.generation
    first = generate_kernel(*launch.generation)
    if first.schedule is None:
        return launch
    if schedules.find_result(first, nest, is_aligned) is None:
        addresses = [x for k, x in enumerate(values[: len(launch.spans)]) if k not in launch.index_values]
        width = 4 if is_aligned and all(x % VECTOR_BYTES == 0 for x in addresses) else 1
        facts = Facts(describe_nest(kernel, nest, stride_kinds_of(indexed)), width, has_constants)
        scratch, buffers = with_scratch(launch, values)
        result = search(first.schedule, partial(neighbors, facts=facts), partial(time_schedules, launch, scratch))
        del buffers  # all launches have ended
        schedules.put(schedules.key(first, nest, is_aligned), result)
    return launch.variant(is_aligned)


def with_scratch(launch: CudaKernelLauncher, values: Sequence[Any]) -> tuple[list[Any], list[MemoryBuffer]]:
    """Return the values of a launch with scratch memory for its outputs, and the buffers of that memory."""
    changed, buffers = list(values), []
    spans = launch.spans[: len(launch.generation[0].outputs)]
    for k, ((low, high), dtype) in enumerate(zip(spans, launch.dtypes, strict=False)):
        nbytes = round_to_size_class((high - low) * dtype.itemsize + ALIGNMENT)
        buffer = launch.device.pool.allocate(nbytes)
        launch.device.fill(buffer.address, nbytes, np.uint8(0))  # a kernel may read its output
        first = values[k] + low * dtype.itemsize
        changed[k] = buffer.address + (first - buffer.address) % ALIGNMENT - low * dtype.itemsize
        buffers.append(buffer)
    return changed, buffers


def time_schedules(launch: CudaKernelLauncher, values: Sequence[Any], schedules: Sequence[LoopSchedule]) -> list[float]:
    """Return the microseconds of a launch with each schedule; inf where the kernel cannot be compiled."""
    loaded = load_in_parallel([partial(load_candidate, launch, schedule) for schedule in schedules])
    times = iter(time_launches(launch.device, [x.ready_launches(*values)[0] for x in loaded if x is not None]))
    return [inf if x is None else next(times) for x in loaded]


def load_candidate(launch: CudaKernelLauncher, schedule: LoopSchedule) -> CudaKernelLauncher | None:
    """Load a kernel with another schedule; return None if it cannot be compiled."""
    try:
        return launch.variant(launch.generation[3], lambda *_: schedule)
    except KernelNotCompiled:
        raise
    except Exception:
        return None


def time_launches(device: Any, launches: Sequence[ReadyLaunch]) -> list[float]:
    """Return the median microseconds of launches on a GPU, each repeated in a CUDA graph, so that no time is the host's.

    The launches take turns, so that a change of the GPU's clock affects all of them. Operands that fit are in the L2 cache.
    """
    from .device.cuda_graphs import GraphReplay
    from .device.events import EventClock

    clock = EventClock(device)

    def measure(replays: "Sequence[GraphReplay]", rounds: int) -> list[float]:
        marks = []
        for _ in range(rounds + 1):  # the first round loads kernels
            for replay in replays:
                marks.append(clock.mark())
                replay.launch()
                marks.append(clock.mark())
        times = clock.read(marks)
        spans = [b - a for a, b in zip(times[::2], times[1::2], strict=True)]
        return [median(spans[len(replays) + k :: len(replays)]) for k in range(len(replays))]

    (once,) = measure([GraphReplay(device, [launches[:1]])], 2)
    count = int(min(max(MIN_ROUND_US / max(once, 1.0), 1), MAX_LAUNCHES))
    return [us / count for us in measure([GraphReplay(device, [[x] * count]) for x in launches], ROUNDS)]

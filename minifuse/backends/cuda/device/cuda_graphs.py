"""Replay several launches as one CUDA graph, which the host launches with one call.

A replay is built for the values of a call: addresses and numbers. A call that repeats these values only launches the graph.
If few values changed, such as a learning rate, the nodes that they affect are updated in the graph. If most changed, as in
a first call, the launches are made one by one, and a replay is built when such values are repeated.

The nodes of kernels form a chain, so kernels run in the order of the launches. A collective is a child graph, captured from
the stream in which its library enqueues it. Collectives form a chain of their own, on a branch: each waits for the kernels
before it and runs beside those after it, up to the first kernel that must wait for it.

The caller keeps addresses valid. Memory that launches allocate themselves stays allocated as long as the replay exists.

References
----------
.. [1] NVIDIA, "CUDA Driver API", graph management: an executable graph may be changed while it runs, for later launches.
"""

import ctypes
import struct
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from math import copysign
from threading import Lock
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ....core.dtypes import Number
from ...base import Launcher, fastest_entry
from ...fast_call import SLOT_FORMATS
from ..launch_plan import KernelArgument, ReadyLaunch
from . import driver

if TYPE_CHECKING:
    from cuda.bindings.driver import CUgraph, CUgraphExec, CUgraphNode

    from .gpu import GpuDevice

MAX_CACHED_REPLAYS = 8  # also the number of recent values without a replay that are remembered
SLOT_BYTES = 8  # memory of one argument
MAX_MISSES = 32  # consecutive calls without a replay, after which no more are built


Values = tuple[Number, ...]  # the values of a call: addresses and numbers


@runtime_checkable
class KernelLauncher(Protocol):
    """A launcher of kernels only, whose launches can be nodes of a graph."""

    def __call__(self, *values: Any) -> None:
        """Launch the kernels."""

    def ready_launches(self, *values: Any) -> list[ReadyLaunch]:
        """Return the launches for use in a graph."""


@runtime_checkable
class StreamLauncher(Protocol):
    """A launcher of work that a library enqueues in a stream, such as a collective. It becomes a child graph."""

    def __call__(self, *values: Any) -> None:
        """Enqueue the work in the stream of the kernels."""

    def announce(self) -> None:
        """Prepare a launch on the host, before the graph is launched."""

    def enqueue(self, stream: int, *values: Any) -> None:
        """Enqueue the work in a stream that is captured."""


NO_WAITS: Mapping[int, int] = MappingProxyType({})
GraphPart = Sequence[ReadyLaunch] | Callable[[int], None]  # the launches of kernels, or a function that enqueues in a stream


def graph_launcher(
    device: "GpuDevice", launches: Sequence[Launcher], counts: Sequence[int], waits: Mapping[int, int] = NO_WAITS
) -> "GraphLauncher | None":
    """Return a launcher of all launches in turn, or None if a graph cannot contain them or saves nothing.

    Parameters
    ----------
    device : GpuDevice
        The GPU.
    launches
        A `KernelLauncher` or a `StreamLauncher` can be in a graph, others cannot.
    counts : sequence of int
        The number of values of each launch.
    waits : mapping of int to int
        For each `StreamLauncher`, by its index, the first launch that must wait for it.
    """
    capturable = [launch for launch in launches if isinstance(launch, KernelLauncher | StreamLauncher)]
    return GraphLauncher(device, capturable, counts, waits) if len(capturable) == len(launches) >= 2 else None


class GraphKernelNode:
    """A kernel in an executable graph, and the memory from which its arguments are read when the node is set."""

    def __init__(self, bindings: ModuleType, launch: ReadyLaunch) -> None:
        self.run, self.format = launch.run, "=" + "".join([SLOT_FORMATS.get(kind, "Q") for kind in launch.kinds])
        self.bytes = struct.pack(self.format, *launch.arguments)
        self.slots = ctypes.create_string_buffer(self.bytes, max(len(self.bytes), SLOT_BYTES))
        base, count = ctypes.addressof(self.slots), len(launch.kinds)
        self.argument_pointers = (ctypes.c_void_p * max(count, 1))(*[base + SLOT_BYTES * k for k in range(count)])
        self.params = params = bindings.CUDA_KERNEL_NODE_PARAMS()
        params.gridDimX, params.gridDimY, params.gridDimZ = launch.run.geometry.grid
        params.blockDimX, params.blockDimY, params.blockDimZ = launch.run.geometry.block
        params.kern, params.sharedMemBytes = launch.run.kernel.handle, launch.run.shared
        params.kernelParams = ctypes.addressof(self.argument_pointers)
        self.handle: CUgraphNode | None = None

    def set_arguments(self, arguments: Sequence[KernelArgument]) -> bool:
        """Set new arguments. Return False if they are bitwise equal to the current ones."""
        packed = struct.pack(self.format, *arguments)
        if packed == self.bytes:
            return False
        self.bytes, self.slots.raw = packed, packed
        return True


class GraphReplay:
    """An executable graph of launches with certain values."""

    def __init__(self, device: "GpuDevice", ready: Sequence[GraphPart], waits: Mapping[int, int] = NO_WAITS) -> None:
        self.bindings, self.stream = device.bindings, device.bindings.CUstream(int(device.stream.handle))
        kernels = [[] if callable(part) else part for part in ready]
        self.nodes = [[GraphKernelNode(self.bindings, launch) for launch in part] for part in kernels]
        self.owners = [[launch.owner for launch in part] for part in kernels]
        graph = driver.check(self.bindings.cuGraphCreate(0))
        previous: list[CUgraphNode | None] = []  # the last kernel, and the collective that the next one waits for
        branch: list[CUgraphNode | None] = []  # the last collective
        unfinished: dict[int, CUgraphNode | None] = {}  # collectives that no kernel waits for yet
        for k, part in enumerate(ready):
            if callable(part):
                branch = [self.add_captured(graph, [*previous, *branch], part)]
                unfinished[k] = branch[0]
                continue
            if awaited := [c for c in unfinished if waits.get(c, c) <= k]:
                previous = [*previous, unfinished[awaited[-1]]]
                unfinished = {c: node for c, node in unfinished.items() if c > awaited[-1]}
            for node in self.nodes[k]:
                node.handle = driver.check(self.bindings.cuGraphAddKernelNode(graph, previous, len(previous), node.params))
                previous = [node.handle]
        self.handle = driver.check(self.bindings.cuGraphInstantiate(graph, 0))
        weakref.finalize(self, destroy, self.bindings, self.handle, graph).atexit = False  # not at exit: the driver ends

    def add_captured(
        self, graph: "CUgraph", dependencies: "list[CUgraphNode | None]", enqueue: Callable[[int], None]
    ) -> "CUgraphNode | None":
        """Add what a function enqueues in a stream as a child graph, which waits for some nodes."""
        cu = self.bindings
        stream = driver.check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
        try:
            driver.check(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
            try:
                enqueue(int(stream))
            finally:
                child = driver.check(cu.cuStreamEndCapture(stream))
            node: CUgraphNode | None = driver.check(
                cu.cuGraphAddChildGraphNode(graph, dependencies, len(dependencies), child)
            )
            driver.check(cu.cuGraphDestroy(child))  # the node has a copy
        finally:
            driver.check(cu.cuStreamDestroy(stream))
        return node

    def update(self, k: int, ready: GraphPart) -> bool:
        """Set new arguments for launch k. Return False, and change nothing, if it uses other kernels, or is a collective."""
        if callable(ready):
            return False
        nodes = self.nodes[k]
        if [node.run for node in nodes] != [launch.run for launch in ready]:
            return False
        for node, launch in zip(nodes, ready, strict=True):
            if node.set_arguments(launch.arguments):
                driver.check(self.bindings.cuGraphExecKernelNodeSetParams(self.handle, node.handle, node.params))
        self.owners[k] = [launch.owner for launch in ready]
        return True

    def launch(self) -> None:
        """Launch the graph."""
        driver.check(self.bindings.cuGraphLaunch(self.handle, self.stream))


def destroy(bindings: ModuleType, executable: "CUgraphExec", graph: "CUgraph") -> None:
    """Destroy a graph. If it is still running, the driver frees it when it has ended."""
    bindings.cuGraphExecDestroy(executable)
    bindings.cuGraphDestroy(graph)


class GraphLauncher:
    """A launcher of several launches: launch(*values of the first, *values of the second, ...)."""

    def __init__(
        self,
        device: "GpuDevice",
        launches: Sequence[KernelLauncher | StreamLauncher],
        counts: Sequence[int],
        waits: Mapping[int, int],
    ) -> None:
        self.device, self.launches, self.waits = device, list(launches), waits
        self.collectives = [launch for launch in launches if isinstance(launch, StreamLauncher)]
        self.fast_launches = [fastest_entry(launch) for launch in launches]
        self.slices = [slice(a, b) for a, b in pairwise(accumulate(counts, initial=0))]
        self.max_updates = len(self.launches) // 2  # updating more launches costs as much as launching all
        self.replays: dict[Values, GraphReplay] = {}  # in order of last use
        self.recent_keys: deque[Values] = deque(maxlen=MAX_CACHED_REPLAYS)
        self.misses = 0
        self.lock = Lock()

    def __call__(self, *values: Number) -> None:
        """Launch all launches with the values of a call."""
        key = values if 0 not in values else (*values, *[copysign(1, x) for x in values if x == 0])  # 0.0 == -0.0
        with self.lock:
            self.device.use()
            replay = self.replays.pop(key, None) or (self.find_replay(key) if self.misses < MAX_MISSES else None)
            self.misses = 0 if replay else self.misses + 1
            if replay is not None:
                self.replays[key] = replay
                for collective in self.collectives:
                    collective.announce()
                try:
                    replay.launch()
                except Exception as error:
                    self.device.recover(replay.launch, (), error)
        if replay is None:
            for launch, span in zip(self.fast_launches, self.slices, strict=True):
                launch(*values[span])

    def find_replay(self, key: Values) -> GraphReplay | None:
        """Update or build a replay for values that have none. Return None if single launches are faster."""
        is_repeated = key in self.recent_keys
        if is_repeated and len(self.replays) < MAX_CACHED_REPLAYS:
            return self.build_replay(key)
        for old_key in reversed(self.replays):
            changed = self.changed_launches(old_key, key)
            if len(changed) <= self.max_updates:
                replay = self.replays.pop(old_key)
                self.recent_keys.append(old_key)
                ready = [(k, self.ready_part(k, key)) for k in changed]
                return replay if all(replay.update(k, launches) for k, launches in ready) else self.build_replay(key)
        if is_repeated or any(len(self.changed_launches(recent, key)) <= self.max_updates for recent in self.recent_keys):
            return self.build_replay(key)
        self.recent_keys.append(key)
        return None

    def changed_launches(self, old: Values, new: Values) -> list[int]:
        """Return the indices of the launches whose values differ."""
        is_sign_changed = old[self.slices[-1].stop :] != new[self.slices[-1].stop :]
        return [k for k, span in enumerate(self.slices) if old[span] != new[span] or (is_sign_changed and 0 in new[span])]

    def build_replay(self, key: Values) -> GraphReplay:
        """Build a replay. If there are MAX_CACHED_REPLAYS already, discard the least recently used one."""
        if len(self.replays) >= MAX_CACHED_REPLAYS:
            self.replays.pop(next(iter(self.replays)))
        return GraphReplay(self.device, [self.ready_part(k, key) for k in range(len(self.launches))], self.waits)

    def ready_part(self, k: int, key: Values) -> GraphPart:
        """Return launch k with the values of a call."""
        launch, values = self.launches[k], key[self.slices[k]]
        if isinstance(launch, StreamLauncher):
            return lambda stream: launch.enqueue(stream, *values)
        return launch.ready_launches(*values)

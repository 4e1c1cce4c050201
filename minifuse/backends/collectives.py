"""Run a collective: pass the memory of its operands to the engine of this thread's world.

This is the one place where plans and engines meet. Backends of hosts pass views of their memory. A device's arrays are
copied to the host and back, unless the engine takes addresses.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..core.even_parts import part_ranges
from ..core.layout import Layout
from ..engines.base import DeviceVector, Engine, RankGroup, Request
from ..engines.world import require_world
from ..ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    CollectiveOp,
    ReduceScatter,
    ReduceToRank,
    RingShift,
)
from ..ir.step_kernels import CompositeKernel
from ..ir.steps import Step
from .executable import Cost, Executable, Launcher
from .host_arrays import fetch_array, store_array

if TYPE_CHECKING:
    from .base import Backend

COMBINE = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


class CollectiveExecutable(Executable):
    """A collective: one call of the engine. It is found at each launch, so simulated ranks share executables."""

    def __init__(self, backend: "Backend", step: Step, kernel: CompositeKernel, op: CollectiveOp) -> None:
        super().__init__(step)
        self.backend, self.kernel, self.op = backend, kernel, op

    @property
    def source(self) -> str:
        """A comment: the engine has no text."""
        shapes = [layout.shape for _, layout in self.step.inputs]
        axes = " and ".join(self.op.axes.names)
        text = self.kernel.describe(self.step.shape, (), shapes)
        return f"# {text} over {self.op.axes.size} ranks along {axes}, {self.nbytes:,} bytes\n"

    @property
    def nbytes(self) -> int:
        """The bytes of the inputs of one rank."""
        dtypes = self.kernel.operand_dtypes()[len(self.step.outputs) :]
        return sum(layout.size * d.itemsize for (_, layout), d in zip(self.step.inputs, dtypes, strict=True))

    def cost(self) -> Cost:
        """Return 1 launch."""
        return Cost(1)

    def request(self) -> Request:
        """Return what all ranks must ask for alike."""
        dtypes = tuple(d.name for d in self.kernel.operand_dtypes()[len(self.step.outputs) :])
        shapes = tuple(layout.shape for _, layout in self.step.inputs)
        if isinstance(self.op, AllGather):  # the sizes along dim 0 are parameters, and may differ
            shapes = tuple(shape[1:] for shape in shapes)
        return Request(self.op.describe(), shapes, dtypes)

    def load(self) -> Launcher:
        """Return the call of the engine."""
        world = require_world(self.op.names[0])
        layouts = [layout for _, layout in (*self.step.outputs, *self.step.inputs)]
        is_on_device = self.backend.device_stream is not None and world.engine.takes_addresses
        if is_on_device and all(layout.is_contiguous for layout in layouts):
            return DeviceCollective(self.backend, self.op, self.request(), self.kernel.operand_dtypes(), layouts)
        return self.load_on_host()

    def load_on_host(self) -> Launcher:
        """Return the call for NumPy arrays: views of host memory, or copies of a device's."""
        backend, op, request = self.backend, self.op, self.request()
        (outputs, inputs), dtypes = self.step.layouts(), self.kernel.operand_dtypes()
        count = len(outputs)

        def launch(*addresses: int) -> None:
            world = require_world(op.names[0])
            group = world.group(op.axes.names)
            world.engine.announce(group, request)
            operands = list(zip(addresses, dtypes, (*outputs, *inputs), strict=True))
            arrays = [np.ascontiguousarray(fetch_array(backend, *operand)).reshape(-1) for operand in operands[count:]]
            views = [output_view(backend, *operand) for operand in operands[:count]]
            run_collective(world.engine.host, group, op, [view.reshape(-1) for view in views], arrays)
            for view, operand in zip(views, operands, strict=False):
                if not is_stored(backend, operand[2]):
                    store_array(backend, view, *operand)

        return launch


class DeviceCollective:
    """The launcher of a collective on device memory. In a CUDA graph, it is a branch beside the kernels."""

    def __init__(
        self, backend: "Backend", op: CollectiveOp, request: Request, dtypes: Sequence[DType], layouts: Sequence[Layout]
    ) -> None:
        self.backend, self.op, self.request = backend, op, request
        self.dtypes, self.sizes = [dtype.numpy for dtype in dtypes], [layout.size for layout in layouts]

    def __call__(self, *addresses: int) -> None:
        """Enqueue the collective in the stream of the kernels."""
        assert self.backend.device_stream is not None
        self.announce()
        self.enqueue(self.backend.device_stream(), *addresses)

    def announce(self) -> None:
        """Tell the other ranks what this one is about to run."""
        world = require_world(self.op.names[0])
        world.engine.announce(world.group(self.op.axes.names), self.request)

    def enqueue(self, stream: int, *addresses: int) -> None:
        """Enqueue the collective in a stream, which may be captured."""
        world, count = require_world(self.op.names[0]), len(self.op.names)
        operands = zip(addresses, self.sizes, self.dtypes, strict=True)
        arrays = [DeviceVector(address, size, dtype, stream) for address, size, dtype in operands]
        run_collective(world.engine, world.group(self.op.axes.names), self.op, arrays[:count], arrays[count:])


def is_stored(backend: "Backend", layout: Layout) -> bool:
    """Return whether the engine stores into the memory of an output, so that nothing is left to copy."""
    return backend.is_host and layout.is_contiguous


def output_view(backend: "Backend", address: int, dtype: DType, layout: Layout) -> np.ndarray:
    """Return an array for the engine to store in: the memory of the output, or a new array."""
    if is_stored(backend, layout):
        return fetch_array(backend, address, dtype, layout)
    return np.empty(layout.shape, dtype.numpy)


def run_collective(
    engine: Engine, group: RankGroup, op: CollectiveOp, outputs: Sequence[Any], inputs: Sequence[Any]
) -> None:
    """Call the engine's method for an op. All arrays are flat: of NumPy, or of a device."""
    out, x = outputs[0], inputs[0]
    match op:
        case AllReduce():
            engine.all_reduce(group, outputs, inputs, COMBINE[op.operator.name])
        case AllGather():
            engine.all_gather(group, cut(out, op.sizes), x)
        case ReduceScatter():
            engine.reduce_scatter(group, out, cut(x, op.sizes), COMBINE[op.operator.name])
        case Broadcast():
            engine.broadcast(group, out, x, op.source)
        case ReduceToRank():
            engine.reduce(group, out, x, op.target, np.add)
        case AllToAll():
            sizes = (1,) * group.size
            engine.all_to_all(group, cut(out, sizes), cut(x, sizes))
        case RingShift():
            engine.shift(group, out, x, op.by)


def cut(x: Any, sizes: Sequence[int]) -> list[Any]:
    """Cut a flat array into parts of so many rows; all parts together are the array."""
    n = x.size // max(sum(sizes), 1)
    return [x[begin * n : end * n] for begin, end in part_ranges(sizes)]

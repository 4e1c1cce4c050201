"""Run a collective: pass the memory of its operands to the engine of this thread's world.

This is the one place where plans and engines meet. Backends of hosts pass views of their memory. A device's arrays are
copied to the host and back, unless the engine takes addresses.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.dtypes import DType
from ..core.layout import Layout
from ..core.shards import part_ranges
from ..engines.base import Engine, RankGroup, Request
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
        backend, op, request = self.backend, self.op, self.request()
        (outputs, inputs), dtypes = self.step.layouts(), self.kernel.operand_dtypes()
        count = len(outputs)

        def launch(*addresses: int) -> None:
            world = require_world(op.names[0])
            group = world.group(op.axes.names)
            world.engine.announce(group, request)
            operands = list(zip(addresses, dtypes, (*outputs, *inputs), strict=True))
            arrays = [np.ascontiguousarray(fetch_array(backend, *operand)) for operand in operands[count:]]
            views = [output_view(backend, *operand) for operand in operands[:count]]
            run_collective(world.engine, group, op, [view.reshape(-1) for view in views], arrays)
            for view, operand in zip(views, operands, strict=False):
                if not is_stored(backend, operand[2]):
                    store_array(backend, view, *operand)

        return launch


def is_stored(backend: "Backend", layout: Layout) -> bool:
    """Return whether the engine stores into the memory of an output, so that nothing is left to copy."""
    return backend.is_host and layout.is_contiguous


def output_view(backend: "Backend", address: int, dtype: "DType", layout: Layout) -> np.ndarray:
    """Return an array for the engine to store in: the memory of the output, or a new array."""
    if is_stored(backend, layout):
        return fetch_array(backend, address, dtype, layout)
    return np.empty(layout.shape, dtype.numpy)


def run_collective(
    engine: Engine, group: RankGroup, op: CollectiveOp, outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray]
) -> None:
    """Call the engine's method for an op. Outputs are flat; inputs have their shapes."""
    flat = [x.reshape(-1) for x in inputs]
    match op:
        case AllReduce():
            engine.all_reduce(group, outputs, flat, COMBINE[op.operator.name])
        case AllGather():
            engine.all_gather(group, cut(outputs[0], op.sizes, inputs[0].shape[1:]), flat[0])
        case ReduceScatter():
            parts = cut(flat[0], op.sizes, inputs[0].shape[1:])
            engine.reduce_scatter(group, outputs[0], parts, COMBINE[op.operator.name])
        case Broadcast():
            engine.broadcast(group, outputs[0], flat[0], op.source)
        case ReduceToRank():
            engine.reduce(group, outputs[0], flat[0], op.target, np.add)
        case AllToAll():
            sizes = (inputs[0].shape[0] // group.size,) * group.size
            parts, received = (cut(x, sizes, inputs[0].shape[1:]) for x in (flat[0], outputs[0]))
            engine.all_to_all(group, received, parts)
        case RingShift():
            engine.shift(group, outputs[0], flat[0], op.by)


def cut(x: np.ndarray, sizes: Sequence[int], row_shape: Sequence[int]) -> list[np.ndarray]:
    """Cut a flat array into parts of so many rows."""
    n = int(np.prod(row_shape, dtype=np.int64))
    return [x[begin * n : end * n] for begin, end in part_ranges(sizes)]

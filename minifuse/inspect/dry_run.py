"""Record the launches of a call on the cuda backend without running them: the kernels, grids and arguments of a GPU.

The function is traced and compiled as for any call, but its device only records launches. The interpreter, the command
line and the visualizer use these records, with or without a GPU in the machine. Nothing is computed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..backends.cuda.backend import CudaBackend
from ..backends.cuda.device.simulated_device import SimulatedDevice
from ..backends.cuda.geometry import LaunchGeometry
from ..backends.cuda.launch_plan import KernelArgument, LaunchPlan
from ..compiler.plan import Plan
from ..compiler.trace_result import PlanInput, PlannedFunction
from ..ir.array_methods import Array
from ..runtime.memory_pool import MemoryBuffer, Pool
from ..simt import Pointer
from ..tensors.tensor import Tensor


class RecordingDevice(SimulatedDevice):
    """A simulated GPU that records launches in `plans` and runs none of them."""

    def __init__(self) -> None:
        super().__init__(0)
        self.plans: list[LaunchPlan] = []
        self.memory: list[MemoryBuffer] = []  # every buffer of the pool: none is reused, so the launches can run later
        self.pool = Pool(partial(allocate_forever, self.memory))

    def launch(self, kernel: Callable[..., None], geometry: LaunchGeometry, shared: int, *arguments: KernelArgument) -> None:
        """Record a launch."""
        for pointer in arguments:
            if isinstance(pointer, Pointer):
                pointer.owner = self.memory
        self.plans.append(LaunchPlan(kernel, geometry.grid, geometry.block, arguments, shared))


class RecordingBackend(CudaBackend):
    """The cuda backend on a device that records launches."""

    device: RecordingDevice

    def __init__(self, device: RecordingDevice) -> None:
        self.name, self.device, self.allocate = "cuda", device, device.pool.allocate


def launches_of(function: PlannedFunction, *inputs: PlanInput | np.ndarray) -> list[LaunchPlan]:
    """Return the launches of a call on the cuda backend, in order, as a GPU would run them.

    Parameters
    ----------
    function
        An operator such as `mf.exp`, or a Python function of tensors, which is traced as one function: see `mf.source`.
    inputs : tensors, arrays and numbers
        The arguments of the call. The launches read copies of them, in the same layout.

    Returns
    -------
    list of LaunchPlan
        Pass them to `simt.run` or `simt.trace`, one after the other. They keep their memory alive.

    Examples
    --------
    >>> import minifuse as mf
    >>> from minifuse import simt
    >>> (plan,) = launches_of(lambda x: x * 2 + 1, mf.ones(40, 25))
    >>> plan.grid, plan.block
    ((1, 1, 1), (256, 1, 1))
    >>> simt.trace(plan).outputs["out0"][:2]
    array([3., 3.], dtype=float32)
    """
    device = RecordingDevice()
    backend = RecordingBackend(device)
    copies = [copy_to_backend(backend, x) for x in inputs]
    Plan(function, copies).run(*copies)
    return device.plans


def allocate_forever(buffers: list[MemoryBuffer], nbytes: int) -> MemoryBuffer:
    """Allocate a buffer, and keep it in a list, so that no address is used twice."""
    buffers.append(MemoryBuffer(nbytes))
    return buffers[-1]


def copy_to_backend(backend: CudaBackend, x: Any) -> Any:
    """Copy an array or a tensor to a backend, in the same layout; return a number unchanged."""
    if isinstance(x, Array) or (hasattr(x, "ndim") and x.ndim):
        return Tensor.from_numpy(x.numpy() if isinstance(x, Array) else x, backend)
    return x

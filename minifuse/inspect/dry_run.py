"""What a call launches on a GPU: the very kernels, grids and arguments of the cuda backend, before anything runs.

The function is captured and bound as for any call, but to a device that only takes note of launches. The interpreter, the
command line and pictures take them from here, on a machine with a GPU as well. Nothing is computed.
"""

from collections.abc import Callable
from typing import Any

from ..backends.cuda.backend import CudaBackend
from ..backends.cuda.device.simulated_device import SimulatedDevice
from ..backends.cuda.geometry import LaunchGeometry
from ..backends.cuda.launch_plan import LaunchPlan
from ..compiler.plan import Plan
from ..ir.array_methods import Array
from ..runtime.memory_pool import MemoryBuffer, Pool
from ..simt import Pointer
from ..tensors.tensor import Tensor


class RecordingDevice(SimulatedDevice):
    """A GPU that takes note of launches in `plans`, and does none of them."""

    def __init__(self) -> None:
        super().__init__(0)
        self.plans: list[LaunchPlan] = []
        self.memory: list[MemoryBuffer] = []  # all that was asked for: nothing is used twice, so the launches can run later
        self.pool = Pool(self.keep)

    def keep(self, nbytes: int) -> MemoryBuffer:
        """New memory that lives as long as any launch."""
        self.memory.append(MemoryBuffer(nbytes))
        return self.memory[-1]

    def prepare(self, kernel: Any, geometry: LaunchGeometry, shared: int = 0) -> Callable[..., None]:
        """A launch that is noted."""

        def note(*arguments: Any) -> None:
            for pointer in arguments:
                if isinstance(pointer, Pointer):
                    pointer.owner = self.memory
            self.plans.append(LaunchPlan(kernel, geometry.grid, geometry.block, arguments, shared))

        return note


class RecordingBackend(CudaBackend):
    """The cuda backend over a device that takes note."""

    def __init__(self, device: RecordingDevice) -> None:
        self.name, self.device, self.allocate = "cuda", device, device.pool.allocate


def launches_of(function: Callable[..., Any], *inputs: Any) -> list[LaunchPlan]:
    """The launches of a call on the cuda backend, in order, as they would happen on a GPU.

    Parameters
    ----------
    function
        An operator such as `mf.exp`, or a Python function of tensors, which is captured as one: see `mf.source`.
    inputs : tensors, arrays and numbers
        Copies of them, in the same layout, are what the launches read.

    Returns
    -------
    list of LaunchPlan
        `simt.run` and `simt.trace` take them, one after the other; their memory lives as long as they do.

    Examples
    --------
    >>> import minifuse as mf
    >>> from minifuse import simt
    >>> (plan,) = launches_of(lambda x: x * 2 + 1, mf.ones(40, 25))
    >>> plan.grid, plan.block
    ((1, 1, 1), (128, 1, 1))
    >>> simt.trace(plan).outputs["out0"][:2]
    array([3., 3.], dtype=float32)
    """
    device = RecordingDevice()
    backend = RecordingBackend(device)
    placed = [copy_to_backend(backend, x) for x in inputs]
    Plan(function, placed).run(*placed)
    return device.plans


def copy_to_backend(backend: CudaBackend, x: Any) -> Any:
    """A copy of an array or tensor on a backend, in the same layout; numbers as they are."""
    if isinstance(x, Array) or (hasattr(x, "ndim") and x.ndim):
        return Tensor.from_numpy(x.numpy() if isinstance(x, Array) else x, backend)
    return x

"""A launch plan: everything that defines one kernel launch, before it runs.

The interpreter, the app, the tests and the GPU use the same plan, so a picture shows exactly the launch that runs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...simt import Pointer
from .geometry import LaunchGeometry

if TYPE_CHECKING:
    from .device import CudaDevice

KernelArgument = int | float | np.generic | np.ndarray | Pointer  # for the interpreter, an address is a pointer or an array


class LaunchPlan(NamedTuple):
    """One launch of a kernel."""

    kernel: Callable[..., None]
    grid: tuple[int, ...]  # blocks along x, y, z
    block: tuple[int, ...]  # threads along x, y, z
    arguments: tuple[KernelArgument, ...]
    shared: int = 0  # bytes of dynamic shared memory


class DeviceLaunch(partial[None]):
    """A launch of a loaded kernel without its arguments, as `device.prepare` returns it."""

    kernel: Any  # as `load` of the same device returns it
    geometry: LaunchGeometry
    shared: int  # bytes


class ReadyLaunch(NamedTuple):
    """One launch on a GPU, before it runs: the prepared launch, and the types and values of its arguments."""

    run: DeviceLaunch
    kinds: tuple[str, ...]
    arguments: list[KernelArgument]
    owner: object = None  # owns memory that must stay allocated until the launch has ended


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

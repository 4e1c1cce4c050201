"""A simulated GPU: it uses host memory and runs kernels lane by lane in `minifuse.simt`.

It has the methods of `gpu.GpuDevice`, so the backend treats both alike.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from .... import simt
from ....runtime.memory_pool import MemoryBuffer, Pool
from ..codegen.select import FindSchedule
from ..geometry import MAX_SHARED_BYTES, LaunchGeometry
from ..launch_plan import DeviceLaunch, KernelArgument, LaunchPlan
from ..tuned_schedules import TunedSchedules
from .index_notes import IndexNotes

if TYPE_CHECKING:
    from .tensor_maps import TensorMaps


class SimulatedDevice:
    """The interpreter as GPU number `index`."""

    is_simulated: Literal[True] = True
    capability = (9, 0)
    tensor_cores = "mma"  # the interpreter has no copy engine, which `wgmma` needs
    multiprocessors = 132
    max_shared_bytes = MAX_SHARED_BYTES
    schedules: TunedSchedules | None = None  # the time of the interpreter says nothing about a GPU
    find_schedule: FindSchedule | None = None
    tensor_maps: "TensorMaps"  # not set, since no kernel of the interpreter takes one

    def __init__(self, index: int) -> None:
        self.index, self.name = index, "minifuse.simt, lane by lane on this machine"
        self.pool = Pool(MemoryBuffer)
        self.index_notes = IndexNotes(lambda count: np.zeros(count, np.int64))

    def copy_in(self, array: np.ndarray, address: int) -> None:
        """Copy the bytes of a contiguous array to an address."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    copy_in_async = copy_in

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Copy bytes at an address to a contiguous array."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def fill(self, address: int, count: int, value: np.generic) -> bool:
        """Set `count` adjacent elements to a number. Return True, since any number is possible."""
        flat = np.full(count, value)
        ctypes.memmove(address, flat.ctypes.data, flat.nbytes)
        return True

    def synchronize(self) -> None:
        """Return at once: a launch returns when its last lane has ended."""

    def load(
        self,
        text: str,
        kernel: Callable[[], Callable[..., None]],
        signature: Sequence[str],
        threads: int,
        blocks: int = 0,
        use_cache: bool = True,
        is_arch_specific: bool = False,
    ) -> Callable[..., None]:
        """Return the kernel unchanged."""
        return kernel()

    def prepare(self, kernel: Callable[..., None], geometry: LaunchGeometry, shared: int = 0) -> DeviceLaunch:
        """Return launch(*arguments), with pointers as `simt.Pointer`."""
        ready = DeviceLaunch(self.launch, kernel, geometry, shared)
        ready.kernel, ready.geometry, ready.shared = kernel, geometry, shared
        return ready

    def launch(self, kernel: Callable[..., None], geometry: LaunchGeometry, shared: int, *arguments: KernelArgument) -> None:
        """Run a launch. Raise IndexingError if it notes an index that is out of range."""
        simt.run(LaunchPlan(kernel, geometry.grid, geometry.block, arguments, shared), loop_limit=None)
        self.index_notes.raise_first()

    def fast_entry(self, *prepared: object) -> Callable[..., None] | None:
        """Return None: there is no fast launch path."""
        return None

    def recover(self, run: Callable[..., None], arguments: Sequence[KernelArgument], error: Exception) -> None:
        """Raise the error of a failed launch: the interpreter's message is complete."""
        raise error

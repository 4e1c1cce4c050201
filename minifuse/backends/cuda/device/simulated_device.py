"""A simulated GPU: it uses host memory and runs kernels lane by lane in `minifuse.simt`.

It has the methods of `gpu.GpuDevice`, so the backend treats both alike.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import simt
from ....runtime.memory_pool import MemoryBuffer, Pool
from ..geometry import LaunchGeometry
from ..launch_plan import LaunchPlan


class SimulatedDevice:
    """The interpreter as GPU number `index`."""

    is_simulated = True
    capability = (9, 0)
    tensor_cores = "mma"  # the interpreter has no copy engine, which `wgmma` needs
    multiprocessors = 132
    max_shared_bytes = 227 * 1024  # bytes per block

    def __init__(self, index: int) -> None:
        self.index, self.name = index, "minifuse.simt, lane by lane on this machine"
        self.pool = Pool(MemoryBuffer)

    def copy_in(self, array: npt.NDArray[Any], address: int) -> None:
        """Copy the bytes of a contiguous array to an address."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    copy_in_async = copy_in

    def copy_out(self, address: int, array: npt.NDArray[Any]) -> None:
        """Copy bytes at an address to a contiguous array."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def fill(self, address: int, count: int, value: np.generic) -> bool:
        """Set `count` adjacent elements to a number."""
        flat = np.full(count, value)
        ctypes.memmove(address, flat.ctypes.data, flat.nbytes)
        return True

    def synchronize(self) -> None:
        """Return at once: a launch returns when its last lane has ended."""

    def load(
        self,
        text: str,
        kernel: Callable[[], Callable[..., Any]],
        signature: Sequence[str],
        threads: int,
        blocks: int = 0,
        use_cache: bool = True,
        is_arch_specific: bool = False,
    ) -> Any:
        """Return the kernel unchanged."""
        return kernel()

    def prepare(self, kernel: Any, geometry: LaunchGeometry, shared: int = 0) -> Callable[..., None]:
        """Return launch(*arguments), with pointers as `simt.Pointer`."""

        def run(*arguments: Any) -> None:
            simt.run(LaunchPlan(kernel, geometry.grid, geometry.block, arguments, shared), loop_limit=None)

        return run

    def fast_entry(self, *prepared: Any) -> None:
        """Return None: there is no fast launch path."""

    def recover(self, run: Callable[..., None], arguments: Sequence[Any], error: Exception) -> None:
        """Raise the error of a failed launch: the interpreter's message is complete."""
        raise error

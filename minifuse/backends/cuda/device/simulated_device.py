"""A GPU that is not there: the memory of the host, and kernels run lane by lane by `minifuse.simt`.

It has the methods of `device.Device`, so the backend does not know which of the two it drives.
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
    tensor_cores = "mma"  # what `wgmma` needs beside it, copies that a unit of their own makes, are not in the interpreter
    multiprocessors = 132
    most_shared = 227 * 1024  # bytes, of a block

    def __init__(self, index: int) -> None:
        self.index, self.name = index, "minifuse.simt, lane by lane on this machine"
        self.pool = Pool(MemoryBuffer)

    def copy_in(self, array: npt.NDArray[Any], address: int) -> None:
        """Bytes of a contiguous array to an address."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    copy_in_async = copy_in

    def copy_out(self, address: int, array: npt.NDArray[Any]) -> None:
        """Bytes at an address to a contiguous array."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def fill(self, address: int, count: int, value: np.generic) -> bool:
        """Set `count` neighbours to a number."""
        flat = np.full(count, value)
        ctypes.memmove(address, flat.ctypes.data, flat.nbytes)
        return True

    def synchronize(self) -> None:
        """All is done: a launch returns when its last lane has."""

    def load(
        self,
        text: str,
        kernel: Callable[[], Callable[..., Any]],
        signature: Sequence[str],
        threads: int,
        blocks: int = 0,
        is_kept: bool = True,
        is_whole: bool = False,
    ) -> Any:
        """The kernel as it stands."""
        return kernel()

    def prepare(self, kernel: Any, geometry: LaunchGeometry, shared: int = 0) -> Callable[..., None]:
        """A launch: launch(*arguments), pointers as `simt.Pointer`."""

        def run(*arguments: Any) -> None:
            simt.run(LaunchPlan(kernel, geometry.grid, geometry.block, arguments, shared), loop_limit=None)

        return run

    def direct(self, *prepared: Any) -> None:
        """There is no shorter way."""

    def recover(self, run: Callable[..., None], arguments: Sequence[Any], error: Exception) -> None:
        """After a launch that failed: the interpreter has said it in words."""
        raise error

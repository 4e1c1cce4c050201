"""Device functions that cache a row in shared memory, so that multi-pass kernels read it from memory once.

Only a launch determines whether its rows fit, so these functions handle rows of any length. Each thread copies the elements
that it reads itself, at the same positions in every pass. No other thread reads them, so no barrier is needed.
"""

from collections.abc import Callable

from ....simt import Array, Pointer, cuda, word
from ....simt.pointers import OffsetArray
from ..tile_shapes import ITEMSIZE
from . import base
from .base import device, intrinsic
from .gemm import copy_async, pending_copies


@intrinsic("base_llvm.generic_pointer")
@word
def at(memory: Array, i: int) -> Array:
    """Return a pointer whose element 0 is memory[i]."""
    if memory._allocation.space == "shared":
        return memory[i:]
    low = memory._low if isinstance(memory, OffsetArray) else 0
    return OffsetArray(memory._machine, Pointer(memory.data, low - i), memory.name, memory._allocation, memory._row)


@intrinsic("gemm_llvm.statement", "cp.async.wait_all;")
@word
def wait_for_copies() -> None:
    """Wait until all copies of this lane are complete."""
    groups = pending_copies()
    for shared, i, width in [copy for group in groups for copy in group]:
        shared.mark(i, width, is_written=True)
    groups[:] = [[]]


def row_cache_function(element: str) -> Callable[..., Array]:
    """Return the device function that caches rows of an element type."""
    kind, copy4, copy1 = getattr(base, element), copy_async(4, element), copy_async(1, element)

    @device
    def hold(source: Array, start: int, place: int, held: int, fours: int, n: int) -> Array:
        """Return a pointer to the row at source[start]: to its copy in shared memory, or to memory if `held` is 0.

        If the launch has room for `held` elements of each row, the copy starts at element `place` of shared memory. All
        copies are started at once; they are complete after `wait_for_copies`.
        """
        if held == 0:
            return at(source, start)
        row, source = at(cuda.shared.array(0, kind, 16), place), at(source, start)
        i = 4 * cuda.threadIdx.x
        while i < fours:
            copy4(row, i, source, i, True)
            i += 4 * cuda.blockDim.x
        i = fours + cuda.threadIdx.x
        while i < n:
            copy1(row, i, source, i, True)
            i += cuda.blockDim.x
        return row

    hold.__code__ = hold.__code__.replace(co_name=f"hold_{element}")  # the interpreter identifies shared arrays by code
    return hold


DEVICE_FUNCTIONS: dict[str, object] = {f"hold_{element}": row_cache_function(element) for element in ITEMSIZE}
DEVICE_FUNCTIONS |= {"wait_for_copies": wait_for_copies, "at": at}

"""The arena of a rank: memory for the buffers of the host, which the other ranks of this host can read and write.

An arena reserves addresses; the system gives it memory where it is first written. Buffers that are deleted give their memory
back. The pool of buffers allocates here while the shared engine is open, so gradients need no copy to be summed.
"""

import mmap
import os
import weakref
from contextlib import suppress
from typing import Self

import numpy as np

from ..runtime.memory_pool import MemoryBuffer, VersionCounter, host_pool
from .messages import Array
from .region import Region

RESERVED_NBYTES = (1 << 36, 1 << 33, 1 << 30)  # of addresses; the first that the limits of the process allow
MIN_NBYTES = 1 << 14  # shorter arrays are copied
PAGE = mmap.PAGESIZE


class SharedArena:
    """A region of which buffers are parts.

    Attributes
    ----------
    bytes : array of uint8
        All of it.
    address : int
        Where it begins in the memory of this process.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self.bytes = region.array(np.uint8, len(region.memory))
        self.address = self.bytes.ctypes.data
        self.end = 0
        self.free: dict[int, list[int]] = {}

    @classmethod
    def reserve(cls) -> Self:
        """Reserve addresses for the buffers of this process."""
        for nbytes in RESERVED_NBYTES[:-1]:
            with suppress(OSError):
                return cls(Region.create(nbytes))
        return cls(Region.create(RESERVED_NBYTES[-1]))

    def offset_of(self, x: Array) -> int:
        """Return where an array begins; -1 if it lies elsewhere."""
        offset = int(x.__array_interface__["data"][0]) - self.address
        return offset if 0 <= offset < self.end else -1

    def make_buffer(self, nbytes: int) -> MemoryBuffer:
        """Make a buffer of the pool."""
        size = -(-nbytes // PAGE) * PAGE
        offsets = self.free.setdefault(size, [])
        if nbytes < MIN_NBYTES or (not offsets and self.end + size > len(self.bytes)):
            return MemoryBuffer(nbytes)
        if not offsets:
            offsets.append(self.end)
            self.end += size
        offset = offsets.pop()
        block = self.region.array(np.uint8, nbytes, offset)
        weakref.finalize(block, self.release, offset, size).atexit = False
        buffer = MemoryBuffer.from_array(block)
        buffer.version = VersionCounter()  # not that of the whole region
        return buffer

    def release(self, offset: int, size: int) -> None:
        """Give the memory of a buffer back to the system, and keep its addresses."""
        with suppress(OSError, AttributeError):  # some systems cannot
            self.region.memory.madvise(mmap.MADV_REMOVE, offset, size)
        self.free[size].append(offset)

    def serve_pool(self) -> None:
        """Let the pool of the host allocate here. A process that is forked from this one gets memory of its own."""
        host_pool.make = self.make_buffer
        os.register_at_fork(after_in_child=leave_pool)


def leave_pool() -> None:
    """Let the pool of the host allocate private memory, and forget buffers that other processes could write to."""
    host_pool.make = MemoryBuffer
    host_pool.size_classes.clear()

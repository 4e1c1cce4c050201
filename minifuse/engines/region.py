"""Regions of memory that several processes of one host map.

On Linux a region is an anonymous file (memfd): the kernel frees it when the last process that maps it ends, however it
ends, and the size of /dev/shm does not limit it. Elsewhere it is a file in the folder for temporary files, which its owner
deletes.
"""

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Region:
    """Memory of a fixed size, filled with zeros, at an address that other processes can open.

    Attributes
    ----------
    address : str
        A path that `Region.open` accepts in any process of this user on this host, while the owner keeps the region.
    memory : mmap.mmap
        The bytes.
    close : callable
        Give the address up, if this process owns the region; memory stays mapped while an array of it exists.
    """

    def __init__(self, address: str, descriptor: int) -> None:
        self.address = address
        self.memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.close: Callable[[], object] = lambda: None

    @classmethod
    def create(cls, nbytes: int) -> Self:
        """Create a region of zeros.

        Raises
        ------
        OSError
            The host has not that much memory to give.
        """
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("minifuse")
            address = f"/proc/{os.getpid()}/fd/{descriptor}"
        else:
            descriptor, address = tempfile.mkstemp(prefix="minifuse-")
        os.ftruncate(descriptor, max(nbytes, 1))
        region = cls(address, descriptor)
        region.close = weakref.finalize(region, release, descriptor, address)
        return region

    @classmethod
    def open(cls, address: str) -> Self:
        """Open the region that another process created."""
        descriptor = os.open(address, os.O_RDWR)
        try:
            return cls(address, descriptor)
        finally:
            os.close(descriptor)  # a mapping needs no descriptor

    def array(self, dtype: DTypeLike, size: int, offset: int = 0) -> NDArray[np.generic]:
        """Return `size` elements of the region, from a byte on, as an array."""
        return np.frombuffer(self.memory, dtype, size, offset)


def release(descriptor: int, address: str) -> None:
    """Close the owner's descriptor, and delete the file of a region where it has one; mapped memory stays as it is."""
    os.close(descriptor)
    if not address.startswith("/proc/"):
        Path(address).unlink(missing_ok=True)

"""Flat memory, and the pool that hands it out again.

A buffer of the pool is free when nobody else refers to it, so that nothing has to be returned: the last reference that goes
away, be it a tensor, a view or a NumPy array, frees it. A call that runs again and again gets the same memory again and
again, already mapped and often still in cache. (A fresh 64 MB output costs more in page faults than the arithmetic.)

Threads may share the pool: a buffer is handed out only when its count of references says that nobody else has it in hand.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from sys import getrefcount
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from numpy.lib.array_utils import byte_bounds

from ..core.dtypes import DType
from ..core.layout import Layout

PROBES_PER_ROUND = range(4)  # buffers looked at
PROBE_ROUNDS = range(2)  # and as many again, before new memory is asked for
# Bytes. When the pool has grown past this, or past twice what was in use at the last look, unused buffers go back.
TRIM_THRESHOLD = 1 << 30
ALIGNMENT = 64  # bytes: a cache line, and the widest vector
MIN_SIZE_CLASS = 64  # bytes


class VersionCounter:
    """The time of the last in-place write to some memory, shared by all buffers around that memory."""

    __slots__ = ("__weakref__", "last_write")

    def __init__(self) -> None:
        self.last_write = 0


class MemoryBuffer:
    """`nbytes` of memory at `address`; `owner` keeps it alive, and `version` counts in-place writes to it."""

    __slots__ = ("__weakref__", "address", "is_writable", "nbytes", "owner", "version")

    def __init__(self, nbytes: int) -> None:
        self.owner: Any = np.empty(nbytes + ALIGNMENT, np.uint8)
        self.address = -(-self.owner.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.nbytes, self.version, self.is_writable = nbytes, VersionCounter(), True

    @classmethod
    def around(cls, array: npt.NDArray[Any]) -> "MemoryBuffer":
        """Wrap the memory of a NumPy array without a copy. Views of one array share their version counter."""
        self = cls.__new__(cls)
        low, high = byte_bounds(array)
        self.owner, self.address, self.nbytes = array, low, high - low
        self.version, self.is_writable = version_of(array), array.flags.writeable
        return self

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """An array made from this keeps the buffer alive, so the pool sees it as used."""
        return {
            "data": (self.address, not self.is_writable),
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


_versions: WeakValueDictionary[int, VersionCounter] = WeakValueDictionary()  # by the id of the object that owns the memory


def version_of(array: npt.NDArray[Any]) -> VersionCounter:
    """Return the version counter of the memory of an array, found by the object at the end of its chain of bases.

    A counter lives as long as a buffer around the memory, which keeps the owner alive, so no id is used twice. Two objects
    that export the same memory without a common base (two DLPack capsules) have two counters.
    """
    owner: Any = array
    while (base := base_of(owner)) is not None:
        owner = base
    if isinstance(owner, MemoryBuffer):  # memory of ours, which was handed out as an array
        return owner.version
    found = _versions.get(id(owner))
    if found is None:
        found = _versions[id(owner)] = VersionCounter()
    return found


def base_of(owner: Any) -> Any:
    """Return the object whose memory an array or a memoryview shows; None if it owns the memory, or is neither.

    `np.lib.stride_tricks` puts an object that is no array, but refers to one, between a view and its base.
    """
    if isinstance(owner, np.ndarray):
        return owner.base
    if isinstance(owner, memoryview):
        return owner.obj
    base = getattr(owner, "base", None)
    return base if isinstance(base, np.ndarray) else None


class WriteClock:
    """The clock of writes in place: what was recorded before a write must not be differentiated after it."""

    __slots__ = ("clock",)

    def __init__(self) -> None:
        self.clock = 0

    def mark(self, buffer: MemoryBuffer) -> None:
        """Record that elements of a buffer have changed."""
        self.clock += 1
        buffer.version.last_write = self.clock


write_clock = WriteClock()


@dataclass(frozen=True)
class MemoryStats:
    """What the pool holds, in bytes, and how often it was asked."""

    in_use: int  # bytes in buffers that somebody refers to
    free: int  # bytes in buffers that wait to be used again
    peak: int  # the most bytes that it ever held
    buffers: int
    new: int  # buffers made since the start; all other requests were served from the pool
    plans: int = 0  # bytes that remembered plans take in main memory, about, whatever backend they are for


class Pool:
    """Buffers by size, made by `make`, of which `keep` bytes may lie unused.

    Sizes come in bins an eighth of a power of two apart, so that a buffer serves near sizes too.
    """

    def __init__(self, make: Callable[[int], MemoryBuffer] = MemoryBuffer, keep: int = TRIM_THRESHOLD) -> None:
        self.bins: defaultdict[int, deque[MemoryBuffer]] = defaultdict(deque)
        self.reserved = self.peak = self.new = 0
        self.make, self.keep, self.limit = make, keep, keep

    def allocate(self, nbytes: int) -> MemoryBuffer:
        """A buffer of this size, one of `round_to_size_class`: the last used that has come free, or a new one.

        It comes first afterwards. So a loop that holds what it made in the round before gets the same buffers in turn,
        however many there are. Where all of the first are held, as those of parameters are, they go to the end.
        """
        buffers = self.bins[nbytes]
        if buffers:
            buffer = buffers[0]
            if getrefcount(buffer) == 3:  # the pool's, this function's and getrefcount's
                return buffer
        return self.find_free(buffers) or self.grow(nbytes)

    def find_free(self, buffers: deque[MemoryBuffer]) -> MemoryBuffer | None:
        """One that has come free, among the next ones of a bin."""
        for _ in PROBE_ROUNDS:
            for k in PROBES_PER_ROUND:
                try:
                    buffer = buffers[k]
                except IndexError:
                    return None
                if getrefcount(buffer) == 3:
                    buffers.remove(buffer)
                    buffers.appendleft(buffer)
                    return buffer
            buffers.rotate(-len(PROBES_PER_ROUND))
        return None

    def grow(self, nbytes: int) -> MemoryBuffer:
        """A new buffer; unused ones go back first when the pool has become large or the system has no more."""
        if self.reserved + nbytes > self.limit:
            self.trim()
            self.limit = max(self.keep, 2 * self.reserved)
        try:
            buffer = self.make(nbytes)
        except MemoryError:
            self.trim()
            buffer = self.make(nbytes)
        self.new += 1
        self.reserved += nbytes
        self.peak = max(self.peak, self.reserved)
        self.bins[nbytes].appendleft(buffer)
        return buffer

    def trim(self) -> int:
        """Give the memory that nobody uses back to the system.

        Returns
        -------
        int
            Bytes given back.
        """
        before = self.reserved
        for nbytes, buffers in list(self.bins.items()):
            for _ in range(len(buffers)):
                buffer = buffers.popleft()
                if getrefcount(buffer) == 2:
                    self.reserved -= nbytes
                else:
                    buffers.append(buffer)
        return before - self.reserved

    def stats(self) -> MemoryStats:
        """What the pool holds now.

        Returns
        -------
        MemoryStats
            in_use, free and peak in bytes; how many buffers there are, and how many were ever made.
        """
        free = 0
        for nbytes, buffers in list(self.bins.items()):
            for k in range(len(buffers)):
                free += nbytes * (getrefcount(buffers[k]) == 2)
        return MemoryStats(self.reserved - free, free, self.peak, sum(map(len, self.bins.values())), self.new)


def round_to_size_class(nbytes: int) -> int:
    """The size of the bin that holds `nbytes`: eight sizes to each power of two, never below a cache line.

    Examples
    --------
    >>> round_to_size_class(0), round_to_size_class(64), round_to_size_class(4096), round_to_size_class(4097),
    round_to_size_class(1_000_000) (64, 64, 4096, 4608, 1048576)
    """
    if nbytes <= MIN_SIZE_CLASS:
        return MIN_SIZE_CLASS
    step = max(MIN_SIZE_CLASS, 1 << ((nbytes - 1).bit_length() - 4))
    return -(-nbytes // step) * step


host_pool = Pool()
allocate = host_pool.allocate


def as_array(buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> npt.NDArray[Any]:
    """The elements at an address of a buffer, in a layout, as a NumPy array over the same memory."""
    if layout.size == 0:  # strides and offset mean nothing, and may point anywhere
        return np.empty(layout.shape, dtype.numpy)
    start = address - buffer.address + layout.offset * dtype.itemsize
    strides = [s * dtype.itemsize for s in layout.strides]
    return np.ndarray(layout.shape, dtype.numpy, np.asarray(buffer), start, strides)

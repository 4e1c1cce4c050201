"""Memory buffers, and a pool that reuses them.

A buffer of the pool is free when nothing but the pool refers to it. So there is no function `free`: a buffer becomes free
when the last tensor, view or NumPy array over it is deleted. A call in a loop gets the same memory each time, already mapped
and often still in the cache of the processor. (For a new output of 64 MB, page faults take longer than the arithmetic.)

Threads may share the pool: a buffer is returned only if its reference count shows that no one else uses it.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from sys import getrefcount
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ..core.dtypes import DType
from ..core.layout import Layout

PROBES_PER_ROUND = range(4)  # how many buffers of a size class are tested before the class is rotated
PROBE_ROUNDS = range(2)  # how many rotations are tried before new memory is allocated
# A pool that exceeds this many bytes, and twice the bytes that were left after the last trim, releases unused buffers.
TRIM_THRESHOLD = 1 << 30
ALIGNMENT = 64  # bytes of a cache line, and of the widest vector register
MIN_SIZE_CLASS = 64  # bytes of the smallest buffer


class VersionCounter:
    """The time of the last in-place write to some memory, by `write_clock`. All buffers over the memory share it."""

    __slots__ = ("__weakref__", "last_write")

    def __init__(self) -> None:
        self.last_write = 0


class MemoryBuffer:
    """`nbytes` of memory at `address`. `owner` keeps the memory alive; `version` is the time of the last in-place write."""

    __slots__ = ("__weakref__", "address", "is_writable", "nbytes", "owner", "version")

    def __init__(self, nbytes: int) -> None:
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
        self.owner: object = memory
        self.address = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.nbytes, self.version, self.is_writable = nbytes, VersionCounter(), True

    @classmethod
    def from_array(cls, array: np.ndarray) -> "MemoryBuffer":
        """Wrap the memory of a NumPy array without a copy. Views of one array share their version counter."""
        self = cls.__new__(cls)
        low, high = byte_bounds(array)
        self.owner, self.address, self.nbytes = array, low, high - low
        self.version, self.is_writable = version_of(array), array.flags.writeable
        return self

    @property
    def __array_interface__(self) -> dict[str, object]:
        """Describe the memory to NumPy. An array made from it refers to this buffer, so the buffer is not free."""
        return {
            "data": (self.address, not self.is_writable),
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "version": 3,
        }


_versions: WeakValueDictionary[int, VersionCounter] = WeakValueDictionary()  # key: id of the object that owns the memory


def version_of(array: np.ndarray) -> VersionCounter:
    """Return the version counter of an array's memory. The last object in the array's chain of bases owns the memory.

    A counter exists as long as a buffer over the memory, which keeps the owner alive, so no id is reused. Two objects that
    export the same memory without a common base (two DLPack capsules) have two counters.
    """
    owner: object = array
    while (base := base_of(owner)) is not None:
        owner = base
    if isinstance(owner, MemoryBuffer):  # the array was made from a buffer of a pool
        return owner.version
    version = _versions.get(id(owner))
    if version is None:
        version = _versions[id(owner)] = VersionCounter()
    return version


def base_of(owner: object) -> object:
    """Return the object whose memory an array, a memoryview or a wrapper of an array refers to; None if there is none.

    Between a view of `np.lib.stride_tricks` and its base there is an object that is not an array, but has a `base`.
    """
    if isinstance(owner, np.ndarray):
        return owner.base
    if isinstance(owner, memoryview):
        return owner.obj
    base = getattr(owner, "base", None)
    return base if isinstance(base, np.ndarray) else None


class WriteClock:
    """Counts in-place writes. Autograd compares the times to find inputs that were modified after they were used."""

    __slots__ = ("clock",)

    def __init__(self) -> None:
        self.clock = 0

    def record_write(self, buffer: MemoryBuffer) -> None:
        """Record an in-place write to a buffer."""
        self.clock += 1
        buffer.version.last_write = self.clock


write_clock = WriteClock()


@dataclass(frozen=True)
class MemoryStats:
    """Bytes and buffers of a memory pool."""

    in_use: int  # bytes of buffers that are not free
    free: int  # bytes of buffers that can be reused
    peak: int  # largest sum of `in_use` and `free` so far
    buffers: int  # how many buffers exist
    new: int  # how many buffers were allocated so far; all other requests reused a buffer
    plans: int = 0  # estimated bytes of cached plans in main memory, for all backends together


# References to a free buffer: from the pool, from the tuple `held`, and from the argument of getrefcount. A local variable
# is no such argument, since Python 3.14 borrows its reference in some places; nor is `buffers[k]`, which another thread may
# have moved.
FREE_REFERENCES = 3


class Pool:
    """A pool of buffers by size class. `make` allocates a new buffer; up to about `keep` bytes may stay allocated unused.

    There are eight size classes for each power of two, so that a buffer can be reused for a similar size.
    """

    def __init__(self, make: Callable[[int], MemoryBuffer] = MemoryBuffer, keep: int = TRIM_THRESHOLD) -> None:
        self.size_classes: defaultdict[int, deque[MemoryBuffer]] = defaultdict(deque)
        self.reserved = self.peak = self.new = 0
        self.make, self.keep, self.limit = make, keep, keep

    def allocate(self, nbytes: int) -> MemoryBuffer:
        """Return a free buffer of a size class (a result of `round_to_size_class`), or a new one.

        The most recently used free buffer is preferred. The returned buffer moves to the front of its class, so a loop that
        keeps its previous outputs alive alternates between the same buffers. Buffers at the front that stay in use, such as
        those of parameters, move to the end.
        """
        buffers = self.size_classes[nbytes]
        if buffers:
            held = (buffers[0],)
            if getrefcount(held[0]) == FREE_REFERENCES:
                return held[0]
        return self.find_free(buffers) or self.grow(nbytes)

    def find_free(self, buffers: deque[MemoryBuffer]) -> MemoryBuffer | None:
        """Return a free buffer of a size class, moved to the front; None if the buffers that are tested are in use."""
        for _ in PROBE_ROUNDS:
            for k in PROBES_PER_ROUND:
                try:
                    held = (buffers[k],)
                except IndexError:
                    return None
                if getrefcount(held[0]) == FREE_REFERENCES:
                    buffers.remove(held[0])
                    buffers.appendleft(held[0])
                    return held[0]
            buffers.rotate(-len(PROBES_PER_ROUND))
        return None

    def grow(self, nbytes: int) -> MemoryBuffer:
        """Allocate a new buffer. If the pool is large or the system has no memory left, release unused buffers first."""
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
        self.size_classes[nbytes].appendleft(buffer)
        return buffer

    def trim(self) -> int:
        """Release unused memory to the system.

        Returns
        -------
        int
            How many bytes were released.
        """
        before = self.reserved
        for nbytes, buffers in list(self.size_classes.items()):
            for _ in range(len(buffers)):
                held = (buffers.popleft(),)
                if getrefcount(held[0]) == FREE_REFERENCES - 1:
                    self.reserved -= nbytes
                else:
                    buffers.append(held[0])
        return before - self.reserved

    def stats(self) -> MemoryStats:
        """Return the sizes of the pool.

        Returns
        -------
        MemoryStats
            Bytes in use, free, and at the peak; how many buffers exist, and how many were ever allocated.
        """
        free = 0
        for nbytes, buffers in list(self.size_classes.items()):
            for k in range(len(buffers)):
                free += nbytes * (getrefcount(buffers[k]) == 2)
        return MemoryStats(self.reserved - free, free, self.peak, sum(map(len, self.size_classes.values())), self.new)


def round_to_size_class(nbytes: int) -> int:
    """Round a size up to its size class: eight classes for each power of two, none below a cache line.

    Examples
    --------
    >>> [round_to_size_class(nbytes) for nbytes in (0, 64, 4096, 4097, 1_000_000)]
    [64, 64, 4096, 4608, 1048576]
    """
    if nbytes <= MIN_SIZE_CLASS:
        return MIN_SIZE_CLASS
    step = max(MIN_SIZE_CLASS, 1 << ((nbytes - 1).bit_length() - 4))
    return -(-nbytes // step) * step


host_pool = Pool()
allocate = host_pool.allocate


def as_array(buffer: MemoryBuffer, address: int, dtype: DType, layout: Layout) -> np.ndarray:
    """Return the elements at an address of a buffer, in a layout, as a NumPy array over the same memory."""
    if layout.size == 0:  # the strides and the offset of an empty layout may point anywhere
        return np.empty(layout.shape, dtype.numpy)
    start = address - buffer.address + layout.offset * dtype.itemsize
    strides = [s * dtype.itemsize for s in layout.strides]
    return np.ndarray(layout.shape, dtype.numpy, np.asarray(buffer), start, strides)

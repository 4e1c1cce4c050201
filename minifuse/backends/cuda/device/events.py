"""Time measurement on a GPU by events: marks in the stream that the GPU timestamps when it reaches them.

The resolution is about half a microsecond. If the GPU was idle, the time between two marks around a kernel includes the
host's launch of the kernel. So kernels shorter than about 5 microseconds appear longer than they are.
"""

import weakref
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from . import driver

if TYPE_CHECKING:
    from .gpu import GpuDevice


class GpuEvent:
    """A mark in a stream."""

    def __init__(self, bindings: ModuleType) -> None:
        self.handle = driver.check(bindings.cuEventCreate(0))
        weakref.finalize(self, bindings.cuEventDestroy, self.handle).atexit = False  # not at exit: the driver ends


class EventClock:
    """The clock of one GPU."""

    def __init__(self, device: "GpuDevice") -> None:
        self.device, self.bindings = device, device.bindings
        self.stream = self.bindings.CUstream(int(device.stream.handle))

    def mark(self) -> GpuEvent:
        """Enqueue a mark that the GPU reaches once all work enqueued so far is completed."""
        self.device.use()
        event = GpuEvent(self.bindings)
        driver.check(self.bindings.cuEventRecord(event.handle, self.stream))
        return event

    def read(self, marks: Sequence[GpuEvent]) -> list[float]:
        """Return the microseconds from the first mark to each, once the GPU has passed them all."""
        self.device.synchronize()
        first = marks[0].handle
        return [driver.check(self.bindings.cuEventElapsedTime(first, mark.handle)) * 1e3 for mark in marks]

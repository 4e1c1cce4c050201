"""Time on a GPU, by events: marks in the stream that the GPU stamps when it reaches them.

The resolution is about half a microsecond. Between two marks around one kernel lies the kernel, and, where the GPU had
nothing left to do, the wait for the host to ask for it: kernels shorter than some 5 microseconds look longer than they are.
"""

import weakref
from collections.abc import Sequence
from typing import Any

from . import driver


class GpuEvent:
    """A mark in a stream."""

    def __init__(self, bindings: Any) -> None:
        self.handle = driver.check(bindings.cuEventCreate(0))
        weakref.finalize(self, bindings.cuEventDestroy, self.handle).atexit = False  # then the driver is going too


class EventClock:
    """The clock of one GPU."""

    def __init__(self, device: Any) -> None:
        self.device, self.bindings = device, device.bindings
        self.stream = self.bindings.CUstream(int(device.stream.handle))

    def mark(self) -> GpuEvent:
        """What the GPU reaches when all that was asked of it so far is done."""
        self.device.use()
        event = GpuEvent(self.bindings)
        driver.check(self.bindings.cuEventRecord(event.handle, self.stream))
        return event

    def read(self, marks: Sequence[GpuEvent]) -> list[float]:
        """Microseconds from the first of some marks to each, once the GPU has passed them all."""
        self.device.synchronize()
        first = marks[0].handle
        return [driver.check(self.bindings.cuEventElapsedTime(first, mark.handle)) * 1e3 for mark in marks]

"""Recorded launches of a call, and the trace of one that ran on value IDs: see `traced_values`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ... import simt
from ...core.overlap import Interval
from .traced_values import LoadRecord, ProvenanceLog, ThreadId, ValueId

ITEMSIZE = 4  # bytes of a float32


class ElementRead(NamedTuple):
    """An element that a launch read to compute the cell."""

    address: int
    thread: ThreadId
    turn: int
    """The number of earlier reads of its thread for this cell; a vector load is one read."""
    line: int
    """The line of the kernel's text; 0 if it has none."""


@dataclass
class LaunchTrace:
    """One launch that ran on value IDs, for some elements of its output."""

    log: ProvenanceLog
    names: dict[int, ValueId]
    """Address of an element of the output -> the ID that was stored there."""
    ancestors: list[ValueId]
    """The values that were stored, and all that they are computed from, operands before results."""
    reads: list[ElementRead]
    text: dict[int, str]
    """The lines of the kernel, by number."""
    total: int
    """The number of blocks of the grid, or of chunks."""
    chosen: tuple[int, ...]
    """The blocks or chunks that ran."""
    trace: simt.Trace | None = None


class RecordedLaunch(NamedTuple):
    """A launch that was recorded instead of run."""

    writes: tuple[Interval, ...]
    """For each output, its first address, and the address after its last byte."""
    run: Callable[[set[int]], LaunchTrace]
    """Runs the launch for the elements at some addresses."""

    def writes_to(self, address: int) -> bool:
        """Return True if the launch writes the element at this address."""
        return any(low <= address < high for low, high in self.writes)


def make_launch_trace(
    log: ProvenanceLog, names: dict[int, ValueId], text: dict[int, str], total: int, chosen: tuple[int, ...]
) -> LaunchTrace:
    """Return the trace of a launch, with the loads that the traced elements depend on."""
    ancestors = log.ancestors(*names.values())
    records, first = log.records, log.next_id
    loads = sorted(
        name for name in ancestors if type(name) is int and name >= first and type(records[name - first]) is LoadRecord
    )
    turns, reads = dict[ThreadId, int](), list[ElementRead]()
    for name in loads:
        load = records[name - first]
        assert isinstance(load, LoadRecord)
        reads.append(ElementRead(load.address, load.thread, turns.get(load.thread, 0), load.line))
        turns[load.thread] = turns.get(load.thread, 0) + 1
    return LaunchTrace(log, names, ancestors, reads, text, total, chosen)

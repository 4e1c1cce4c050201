"""Launches that are recorded instead of run, and the traces of those that are run later.

A trace runs a launch on value IDs instead of numbers: see `traced_values`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ... import simt
from ...core.overlap import Interval
from .traced_values import LoadRecord, ProvenanceLog, ThreadId, ValueId

ONE_ARRAY_PER_KERNEL = "a traced element belongs to one array"
ITEMSIZE = 4  # bytes of a float32


class ElementRead(NamedTuple):
    """An element that a launch read to compute the requested elements of its output."""

    address: int
    thread: ThreadId
    read_index: int
    """The index of the read among the recorded reads of the thread; a vector load is one read."""
    line: int
    """The number of the line in the kernel's text that reads; 0 if the launch has no text."""


@dataclass
class LaunchTrace:
    """A launch that was run on value IDs, to compute some elements of its output."""

    log: ProvenanceLog
    id_at_address: dict[int, ValueId]
    """Address of a requested element -> the ID that was stored there."""
    ancestors: list[ValueId]
    """The IDs that were stored, and those of all values that they are computed from, operands before results."""
    reads: list[ElementRead]
    text_lines: dict[int, str]
    """The lines of the kernel's text, by number."""
    block_count: int
    """The number of blocks of the grid, or of chunks of a CPU kernel."""
    blocks_run: tuple[int, ...]
    """The indices of the blocks or chunks that ran."""
    trace: simt.Trace | None = None


class RecordedLaunch(NamedTuple):
    """A launch that was recorded instead of run."""

    writes: tuple[Interval, ...]
    """The first address of each output, and the address after its last byte."""
    run: Callable[[set[int]], LaunchTrace]
    """Run the launch to compute the elements at a set of addresses."""

    def writes_to(self, address: int) -> bool:
        """Return True if the launch writes the element at this address."""
        return any(low <= address < high for low, high in self.writes)


def make_launch_trace(
    log: ProvenanceLog,
    id_at_address: dict[int, ValueId],
    text_lines: dict[int, str],
    block_count: int,
    blocks_run: tuple[int, ...],
) -> LaunchTrace:
    """Return the trace of a launch, with the loads that the traced elements depend on."""
    ancestors = log.ancestors(*id_at_address.values())
    records, first_id = log.records, log.next_id
    loads = sorted(
        value_id
        for value_id in ancestors
        if type(value_id) is int and value_id >= first_id and type(records[value_id - first_id]) is LoadRecord
    )
    read_counts, reads = dict[ThreadId, int](), list[ElementRead]()
    for value_id in loads:
        load = records[value_id - first_id]
        assert isinstance(load, LoadRecord)
        reads.append(ElementRead(load.address, load.thread, read_counts.get(load.thread, 0), load.line))
        read_counts[load.thread] = read_counts.get(load.thread, 0) + 1
    return LaunchTrace(log, id_at_address, ancestors, reads, text_lines, block_count, blocks_run)

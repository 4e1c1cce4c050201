"""Launches that a call asked for, and what is known of one that ran on names: see `told`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import simt
from ...core.layout import Layout
from ...runtime.memory_pool import MemoryBuffer
from .traced_values import LoadRecord, ProvenanceLog, ThreadId, ValueId

ITEMSIZE = 4  # bytes of an element: a float32
AddressRange = tuple[int, int]  # of memory: the first address, and the one behind the last


class ElementRead(NamedTuple):
    """An element that a launch read for the cell."""

    address: int
    thread: ThreadId
    turn: int
    """How often its thread had read before for this cell; a vector load is one turn."""
    line: int
    """Of the kernel's text; 0 where it has none."""


@dataclass
class LaunchTrace:
    """One launch that ran on names, for some elements of its output."""

    log: ProvenanceLog
    names: dict[int, ValueId]
    """By the address of an element of the output: what was stored there."""
    ancestors: list[ValueId]
    """All that these are made of, parts before what is made of them."""
    reads: list[ElementRead]
    text: dict[int, str]
    """Lines of the kernel, by number."""
    total: int
    """Blocks of the grid, or chunks."""
    chosen: tuple[int, ...]
    """Those that ran."""
    trace: simt.Trace | None = None


class RecordedLaunch(NamedTuple):
    """A launch that was taken note of."""

    writes: tuple[tuple[int, int], ...]
    """First address and the address behind the last, of each output."""
    run: Callable[[set[int]], LaunchTrace]
    """Runs it for the elements at some addresses."""

    def writes_to(self, address: int) -> bool:
        """Whether it writes an element."""
        return any(low <= address < high for low, high in self.writes)


def address_range(address: int, layout: Layout) -> AddressRange:
    """The memory of a layout: its first address, and the one behind the last."""
    low, high = layout.span()
    return address + ITEMSIZE * low, address + ITEMSIZE * high


def make_launch_trace(ledger: ProvenanceLog, names: dict[int, ValueId], text: dict[int, str], **more: Any) -> LaunchTrace:
    """What ran, with the loads that the wanted elements are made of."""
    below = ledger.ancestors(*names.values())
    made, first = ledger.records, ledger.next
    loads = sorted(name for name in below if type(name) is int and name >= first and type(made[name - first]) is LoadRecord)
    turns, reads = dict[ThreadId, int](), list[ElementRead]()
    for name in loads:
        load = made[name - first]
        assert isinstance(load, LoadRecord)
        reads.append(ElementRead(load.address, load.thread, turns.get(load.thread, 0), load.line))
        turns[load.thread] = turns.get(load.thread, 0) + 1
    return LaunchTrace(ledger, names, below, reads, text, **more)


def allocate_forever(kept: list[MemoryBuffer], nbytes: int) -> MemoryBuffer:
    """New memory that lives as long as a list: no address is used twice."""
    kept.append(MemoryBuffer(nbytes))
    return kept[-1]

"""Launches that a call asked for, and what is known of one that ran on names: see `told`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import simt
from ...core.layout import Layout
from ...runtime.memory_pool import Buffer
from .traced_values import Ledger, Load, Name, Who

ITEM = 4  # bytes of an element: a float32
Stretch = tuple[int, int]  # of memory: the first address, and the one behind the last


class Read(NamedTuple):
    """An element that a launch read for the cell."""

    address: int
    who: Who
    turn: int
    """How often its thread had read before for this cell; a vector load is one turn."""
    line: int
    """Of the kernel's text; 0 where it has none."""


@dataclass
class Ran:
    """One launch that ran on names, for some elements of its output."""

    ledger: Ledger
    names: dict[int, Name]
    """By the address of an element of the output: what was stored there."""
    below: list[Name]
    """All that these are made of, parts before what is made of them."""
    reads: list[Read]
    text: dict[int, str]
    """Lines of the kernel, by number."""
    total: int
    """Blocks of the grid, or chunks."""
    chosen: tuple[int, ...]
    """Those that ran."""
    trace: simt.Trace | None = None


class Launch(NamedTuple):
    """A launch that was taken note of."""

    writes: tuple[tuple[int, int], ...]
    """First address and the address behind the last, of each output."""
    run: Callable[[set[int]], Ran]
    """Runs it for the elements at some addresses."""

    def makes(self, address: int) -> bool:
        """Whether it writes an element."""
        return any(low <= address < high for low, high in self.writes)


def stretch(address: int, layout: Layout) -> Stretch:
    """The memory of a layout: its first address, and the one behind the last."""
    low, high = layout.span()
    return address + ITEM * low, address + ITEM * high


def for_cell(ledger: Ledger, names: dict[int, Name], text: dict[int, str], **more: Any) -> Ran:
    """What ran, with the loads that the wanted elements are made of."""
    below = ledger.below(*names.values())
    made, first = ledger.made, ledger.next
    loads = sorted(name for name in below if type(name) is int and name >= first and type(made[name - first]) is Load)
    turns, reads = dict[Who, int](), list[Read]()
    for name in loads:
        load = made[name - first]
        assert isinstance(load, Load)
        reads.append(Read(load.address, load.who, turns.get(load.who, 0), load.line))
        turns[load.who] = turns.get(load.who, 0) + 1
    return Ran(ledger, names, below, reads, text, **more)


def keep(kept: list[Buffer], nbytes: int) -> Buffer:
    """New memory that lives as long as a list: no address is used twice."""
    kept.append(Buffer(nbytes))
    return kept[-1]

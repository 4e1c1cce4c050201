"""Find data races: two threads access one address, at least one of them writes, and nothing orders the accesses.

All functions are pure functions of the columns of a trace. Accesses are ordered by:

    within a warp      a barrier of the block, a syncwarp
    within a block     a barrier of the block
    between blocks     a barrier of the grid
    anywhere           a fence and an atomic, then an atomic of the other thread at the same address (`fences`)

A race is a property of the program, not of the order of one run. The interpreter runs lanes one after another, so its
outputs may be right where those of hardware are wrong. Two atomics do not race; an atomic and a plain access do.
`diagnostics` formats the messages.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columnar import WARP_SIZE, Column, Ints, combine_keys, expand_ranges, run_numbers, run_starts, unique_pairs
from .fences import ReleaseAcquireOrder
from .record import LOAD, STORE, ArrayInfo, Barrier, Collective, Events, Instruction

NO_ROW: Final = np.iinfo(np.int64).max
MAX_CELL_BYTES: Final = 32
SCOPES: Final = ("warp", "block", "grid")


class Race(NamedTuple):
    """All races between two lines at one array. `first` and `second` are an example, as rows of the event columns."""

    first: int
    """The access that is first in the program of a thread."""
    second: int
    kind: str
    """'write-read', 'read-write' or 'write-write'; an atomic counts as a write."""
    scope: str
    """The widest scope that occurs: lanes of a 'warp', warps of a 'block' or blocks of the 'grid'."""
    elements: int
    """Number of elements with this race. Elements of a shared array count once per block."""
    same_value: bool
    """All writes of an element stored the same number, so the result does not depend on their order."""


class Cells(NamedTuple):
    """Accesses split into the smallest units of memory in which they differ: columns of equal length, ordered by cell."""

    event: Ints
    cell: Ints
    address: Ints


class Conflicts(NamedTuple):
    """Pairs of unordered accesses, one for each pair of access sites per cell and period: columns of equal length."""

    left: Ints
    right: Ints
    """Rows of events. The number of the access site of `right` is not less than that of `left`."""
    address: Ints
    same_value: NDArray[np.bool_]


def races(
    events: Events,
    arrays: Sequence[ArrayInfo],
    instructions: Sequence[Instruction],
    barriers: Sequence[Barrier] = (),
    collectives: Sequence[Collective] = (),
) -> list[Race]:
    """Find the races: one for each array, pair of lines and kind.

    Notes
    -----
    Accesses of different widths race if they overlap. If a thread runs both lines between two barriers, the kind states
    which one is first in its program. If it runs them in both orders, as in a loop without barriers, there are two races.
    Otherwise the order of the run decides. Lanes that have passed different numbers of syncwarps are treated as ordered,
    whatever the masks. The cost is a few sorts of the accesses to memory that several threads touch: about a second for a
    million events.

    Examples
    --------
    Two threads store different values at one address:

    >>> zero = np.zeros(2, int)
    >>> events = Events(zero, np.array([0, 1]), *[zero] * 5, zero + 1, zero + 256, zero + 4, np.array([1.0, 2.0]))
    >>> arrays = [ArrayInfo("out", "global", 256, (1,), (4,), 4, "float32")]
    >>> races(events, arrays, [Instruction("k.py", "k", 3, 0, 0)])
    [Race(first=0, second=1, kind='write-write', scope='warp', elements=1, same_value=False)]
    """
    cells = _contested_cells(events, _cells(events, arrays))
    if not len(cells.event):
        return []
    site = _access_sites(events, instructions)
    value = _comparable_values(events, arrays)
    conflicts = []
    for scope, (period, agent) in zip(SCOPES, _periods_and_agents(events, barriers), strict=True):
        order = ReleaseAcquireOrder(events, collectives, cells.event, between_blocks=scope == "grid")
        conflicts.append(_find_conflicts(events, cells, period, agent, site, value, order))
    return _summarize(events, arrays, conflicts, site, grid_phase(events, barriers))


def _access_sites(events: Events, instructions: Sequence[Instruction]) -> Ints:
    """Return a number for each event, equal for equal line, array and kind, and ordered by them."""
    lines = sorted({(instruction.file, instruction.line) for instruction in instructions})
    number = {line: index for index, line in enumerate(lines)}
    line_of = np.array([number[instruction.file, instruction.line] for instruction in instructions], np.int64)
    return np.unique(combine_keys(line_of[events.instruction], events.array, events.kind), return_inverse=True)[1]


def _comparable_values(events: Events, arrays: Sequence[ArrayInfo]) -> NDArray[np.float64]:
    """Return the values of plain stores; NaN, which equals no value, elsewhere and where the column is not exact."""
    itemsize = np.array([info.itemsize for info in arrays])[events.array]
    is_exact = np.array([info.dtype[:5] == "float" for info in arrays])[events.array] | (np.abs(events.value) < 2**53)
    is_real = np.array([not info.dtype.startswith("complex") for info in arrays])[events.array]
    return np.where((events.kind == STORE) & (events.nbytes == itemsize) & is_exact & is_real, events.value, np.nan)


def _cells(events: Events, arrays: Sequence[ArrayInfo]) -> Cells:
    """Split accesses into cells, so that two accesses overlap if and only if they share a cell.

    The cells of an array are as large as its accesses allow. Arrays over the same memory have the same cells.
    """
    count = len(arrays)
    low, high = np.full(count, NO_ROW), np.zeros(count, np.int64)
    np.minimum.at(low, events.array, events.address)
    np.maximum.at(high, events.array, events.address + events.nbytes)
    cell_bytes = np.full(count, MAX_CELL_BYTES, np.int64)
    alignment = events.address | events.nbytes
    np.minimum.at(cell_bytes, events.array, alignment & -alignment)
    by_address = np.argsort(low, kind="stable")
    end = np.maximum.accumulate(high[by_address])
    is_disjoint = np.r_[True, low[by_address][1:] >= end[:-1]][:count]
    starts = np.flatnonzero(is_disjoint)
    if count:
        cell_bytes[by_address] = np.minimum.reduceat(cell_bytes[by_address], starts)[run_numbers(starts, count)]
    is_shared = np.array([info.space == "shared" for info in arrays], bool)
    event_cell_bytes = cell_bytes[events.array]
    event, cell = expand_ranges(events.address // event_cell_bytes, (events.address + events.nbytes - 1) // event_cell_bytes)
    memory = np.where(is_shared[events.array], events.block + 1, 0)
    address = cell * event_cell_bytes[event]
    key = combine_keys(memory[event], address)
    order = np.argsort(key, kind="stable")
    return Cells(event[order], run_numbers(run_starts(key[order]), len(key)), address[order])


def _contested_cells(events: Events, cells: Cells) -> Cells:
    """Return the cells that are written, and accessed by more than one thread."""
    if not len(cells.event):
        return cells
    lane = combine_keys(events.block, events.thread)[cells.event]
    starts = run_starts(cells.cell)
    is_contested = np.maximum.reduceat(events.kind[cells.event], starts) > LOAD
    is_contested &= np.minimum.reduceat(lane, starts) < np.maximum.reduceat(lane, starts)
    rows = np.flatnonzero(is_contested[cells.cell])
    return Cells(*(column[rows] for column in cells))


def _periods_and_agents(events: Events, barriers: Sequence[Barrier]) -> list[tuple[Ints, Ints]]:
    """Return for each scope the period and the agent (lane, warp or block) of each event.

    Two events of different agents in equal periods are unordered.
    """
    warp = combine_keys(events.block, events.thread // WARP_SIZE)
    return [
        (combine_keys(warp, events.epoch, events.warp_epoch), combine_keys(events.block, events.thread)),
        (combine_keys(events.block, events.epoch), warp),
        (grid_phase(events, barriers), events.block.astype(np.int64)),
    ]


def grid_phase(events: Events, barriers: Sequence[Barrier]) -> Ints:
    """Return for each event how many barriers of the grid its block has passed."""
    passed_barriers = np.array(
        [(barrier.block, barrier.epoch) for barrier in barriers if barrier.kind == "grid"], np.int64
    ).reshape(-1, 2)
    span = int(max(events.epoch.max(initial=0), passed_barriers[:, 1].max(initial=0))) + 1
    ends = np.sort(passed_barriers[:, 0] * span + passed_barriers[:, 1])
    block = events.block.astype(np.int64) * span
    return np.searchsorted(ends, block + events.epoch) - np.searchsorted(ends, block)


def _find_conflicts(
    events: Events,
    cells: Cells,
    period: Ints,
    agent: Ints,
    site: Ints,
    value: NDArray[np.float64],
    sync_order: ReleaseAcquireOrder,
) -> Conflicts:
    """Find unordered accesses of two agents to one cell in one period.

    The accesses of a cell in a period belong to few sites (line, array, kind), so pairs of sites are compared instead of
    pairs of accesses. For a site, its first access and its first access by another agent suffice. With release-acquire
    order, a site contains only the accesses of one agent between two synchronizations.
    """
    moment = combine_keys(cells.cell, period[cells.event])
    order = np.argsort(moment, kind="stable")
    event, moment = cells.event[order], moment[order]
    starts = run_starts(moment)
    is_candidate = np.maximum.reduceat(events.kind[event], starts) > LOAD
    is_candidate &= np.minimum.reduceat(agent[event], starts) < np.maximum.reduceat(agent[event], starts)
    rows = np.flatnonzero(is_candidate[run_numbers(starts, len(event))])
    if not len(rows):
        return Conflicts(rows, rows, rows, rows > 0)
    event, moment, address = event[rows], moment[rows], cells.address[order][rows]

    parts = [moment, site[event]]
    if sync_order:
        parts += [agent[event], sync_order.class_of(event)]
    part = combine_keys(*parts)
    order = np.argsort(part, kind="stable")
    event, starts = event[order], run_starts(part[order])
    other, has_other = _first_of_others(event, agent[event], starts)
    low, high = np.minimum.reduceat(value[event], starts), np.maximum.reduceat(value[event], starts)
    event, moment, address = event[starts], moment[order][starts], address[order][starts]

    conflicts = []
    for distance in range(len(event)):
        left = np.flatnonzero(moment[: len(moment) - distance] == moment[distance:])
        if not len(left):
            break
        left = left[_can_race(events.kind[event[left]], events.kind[event[left + distance]])]
        right = left + distance
        is_same_agent = agent[event[left]] == agent[event[right]]
        pair = (
            np.where(is_same_agent & ~has_other[right], other[left], event[left]),
            np.where(is_same_agent & has_other[right], other[right], event[right]),
        )
        has_same_value = (low[left] == high[left]) & (low[right] == high[right]) & (low[left] == low[right])
        is_conflict = (~is_same_agent | has_other[left] | has_other[right]) & ~sync_order.orders(*pair)
        conflicts.append(
            Conflicts(pair[0][is_conflict], pair[1][is_conflict], address[left][is_conflict], has_same_value[is_conflict])
        )
    return _concatenate(conflicts)


def _concatenate(parts: Sequence[Conflicts]) -> Conflicts:
    return Conflicts(*map(np.concatenate, zip(*parts, strict=True)))


def _first_of_others(event: Ints, agent: Ints, starts: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return for each run the first event by another agent than that of its first event, and whether there is one."""
    is_other = agent != agent[starts][run_numbers(starts, len(agent))]
    row = np.minimum.reduceat(np.where(is_other, np.arange(len(agent)), NO_ROW), starts)
    return event[np.minimum(row, len(event) - 1)], row < NO_ROW


def _can_race(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether accesses of these kinds race: one writes, and not both are atomic."""
    is_harmless: NDArray[np.bool_] = (left == right) & (left != STORE)
    return ~is_harmless


def _summarize(
    events: Events, arrays: Sequence[ArrayInfo], conflicts: Sequence[Conflicts], site: Ints, phase: Ints
) -> list[Race]:
    """Return one race for each pair of access sites and kind, with the first example in the widest scope."""
    left, right, address, same_value = _concatenate(conflicts)
    scope = np.repeat(np.arange(len(conflicts)), [len(part.left) for part in conflicts])
    pair = np.unique(combine_keys(site[left], site[right]), return_inverse=True)[1]
    order = np.lexsort((np.minimum(left, right), np.maximum(left, right), -scope, pair))
    examples = order[run_starts(pair[order])]
    elements = np.bincount(unique_pairs(pair, _element_numbers(events, arrays, left, address))[0])
    differing_counts = np.bincount(pair, ~same_value)
    result = [
        Race(first, second, kind, SCOPES[scope[row]], count, not differing_count)
        for row, count, differing_count in zip(examples, elements.tolist(), differing_counts.tolist(), strict=True)
        for first, second, kind in _race_kinds(
            events, int(left[row]), int(right[row]), site, phase if scope[row] == 2 else events.epoch
        )
    ]
    return sorted(result, key=lambda race: (max(race.first, race.second), min(race.first, race.second), race.kind))


def _element_numbers(events: Events, arrays: Sequence[ArrayInfo], event: Ints, address: Ints) -> Ints:
    """Return a number for the element at the address, equal for equal elements of one memory."""
    array = events.array[event]
    base = np.array([info.base for info in arrays])[array]
    itemsize = np.array([info.itemsize for info in arrays])[array]
    is_shared = np.array([info.space == "shared" for info in arrays])[array]
    return combine_keys(np.where(is_shared, events.block[event] + 1, 0), base + (address - base) // itemsize * itemsize)


def _race_kinds(events: Events, left: int, right: int, site: Ints, period: Column) -> list[tuple[int, int, str]]:
    """Return the kinds of race of two accesses as (first, second, kind), in the order of a thread's program."""
    if events.kind[left] != LOAD and events.kind[right] != LOAD:
        first, second = (left, right) if site[left] != site[right] else sorted((left, right))
        return [(first, second, "write-write")]
    write, read = (left, right) if events.kind[left] != LOAD else (right, left)
    lane = combine_keys(events.block, events.thread, period)
    writes, reads = np.flatnonzero(site == site[write]), np.flatnonzero(site == site[read])
    is_before, is_after = _happens_before(lane, writes, reads), _happens_before(lane, reads, writes)
    if not is_before and not is_after:
        is_before, is_after = write < read, read < write
    return [(write, read, "write-read")] * is_before + [(read, write, "read-write")] * is_after


def _happens_before(lane: Ints, early_events: Ints, late_events: Ints) -> bool:
    """Return whether some lane executes an event of `early` before one of `late`. Both are ordered by time."""
    early_lanes, first = np.unique(lane[early_events], return_index=True)
    late_lanes, last = np.unique(lane[late_events][::-1], return_index=True)
    _, i, j = np.intersect1d(early_lanes, late_lanes, assume_unique=True, return_indices=True)
    return bool(np.any(early_events[first[i]] < late_events[::-1][last[j]]))

"""The metrics of a launch as plain numbers, for the command line, files and tables.

Numbers are grouped under a label that states their source:

    TRACED     recorded while the kernel ran: accesses, bytes, barriers
    DERIVED    computed by the rules of `metrics` and `races`: requests, sectors, wavefronts, hazards
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from ..core.errors import SimtError
from .columnar import Column, Ints
from .diagnostics import EventLabels, find_unwritten
from .metrics import SECTOR_BYTES, Divergence, Requests
from .record import ATOMIC, LOAD, STORE, Barrier, Collective, Events

Cell = TypeVar("Cell")
Counts = dict[str, dict[str, int | float | None]]  # TRACED and DERIVED -> name -> number

SPACES: Final = ("global", "shared", "const")
NOT_MODELLED: Final = (
    "cache hits",
    "latency",
    "the order in which hardware runs warps and blocks",
    "loads and stores that the compiler hoists, merges or removes",
    "registers that spill to local memory",
    "atomics at one address that are served one by one",
    "the constant cache",
)


def summarize(
    labels: EventLabels,
    warp_requests: Requests,
    divergence: Divergence,
    barriers: Iterable[Barrier],
    collectives: Iterable[Collective],
    hazards: Iterable[SimtError],
) -> dict[str, Any]:
    """Count the accesses of a launch: in total, by memory space, by array and by line.

    Returns
    -------
    dict
        Plain numbers, strings, lists and dicts, accepted by `json.dumps`. `spaces`, `arrays` and `lines` have the same
        numbers under TRACED and DERIVED. `efficiency` is `ideal_sectors / sectors`, above 1 if lanes access equal elements,
        and None without sectors. `bank_conflicts` are the wavefronts beyond those of a request without conflicts.

    Examples
    --------
    >>> from minifuse import simt
    >>> def double(a):
    ...     i = simt.cuda.grid(1)
    ...     a[i] = a[i] * 2
    >>> facts = simt.trace(double, 1, 32, np.ones(32, np.float32)).summary()
    >>> facts["arrays"][0]["TRACED"]
    {'loads': 32, 'stores': 32, 'atomics': 0, 'bytes_requested': 256}
    >>> facts["spaces"]["global"]["DERIVED"]["sectors"]
    8
    """
    events = labels.events
    lines = sorted({(row.file, row.line) for row in labels.instructions})
    number = {line: index for index, line in enumerate(lines)}
    line_of = np.array([number[row.file, row.line] for row in labels.instructions] or [0])
    space_of = np.array([SPACES.index(info.space) for info in labels.arrays] or [0])
    spaces = _count(events, warp_requests, space_of[events.array], space_of[warp_requests.array], len(SPACES))
    arrays = _count(events, warp_requests, events.array.astype(np.int64), warp_requests.array, len(labels.arrays))
    line_counts = _count(events, warp_requests, line_of[events.instruction], line_of[warp_requests.instruction], len(lines))
    idle_counts = _count_idle(divergence, line_of, len(lines))
    return {
        "grid": list(labels.grid),
        "block": list(labels.block),
        "TRACED": {
            "events": len(events.block),
            "barriers": dict(Counter(barrier.kind for barrier in barriers)),
            "collectives": dict(Counter(collective.kind for collective in collectives)),
            "elements_not_written": find_unwritten(labels),
        },
        "DERIVED": {
            "requests": len(warp_requests.block),
            "partial_requests": sum(line["partial_requests"] for line in idle_counts),
            "hazards": dict(Counter(type(error).__name__ for error in hazards)),
        },
        "spaces": dict(zip(SPACES, spaces, strict=True)),
        "arrays": [
            {"name": info.name, "space": info.space, "shape": list(info.shape), "dtype": info.dtype, **counts}
            for info, counts in zip(labels.arrays, arrays, strict=True)
        ],
        "lines": [
            {"file": file, "line": line, "TRACED": counts["TRACED"], "DERIVED": {**counts["DERIVED"], **lanes}}
            for (file, line), counts, lanes in zip(lines, line_counts, idle_counts, strict=True)
            if counts["DERIVED"]["requests"]
        ],
        "not_modelled": list(NOT_MODELLED),
    }


def _count(events: Events, warp_requests: Requests, event_group: Ints, request_group: Ints, count: int) -> list[Counts]:
    """Return the numbers of each group, given the group of each event and of each request."""

    def sum_events(weight: Column) -> list[int]:
        return _totals(event_group, weight, count)

    def sum_requests(weight: Column) -> list[int]:
        return _totals(request_group, weight, count)

    traced: dict[str, Sequence[int | float | None]] = {
        "loads": sum_events(events.kind == LOAD),
        "stores": sum_events(events.kind == STORE),
        "atomics": sum_events(events.kind == ATOMIC),
        "bytes_requested": sum_events(events.nbytes),
    }
    sectors, ideal_sectors = sum_requests(warp_requests.sectors), sum_requests(warp_requests.ideal_sectors)
    derived: dict[str, Sequence[int | float | None]] = {
        "requests": sum_requests(np.ones_like(warp_requests.block)),
        "sectors": sectors,
        "ideal_sectors": ideal_sectors,
        "efficiency": [
            ideal_count / moved_count if moved_count else None
            for ideal_count, moved_count in zip(ideal_sectors, sectors, strict=True)
        ],
        "cache_lines": sum_requests(warp_requests.lines),
        "bytes_moved": [SECTOR_BYTES * moved_count for moved_count in sectors],
        "wavefronts": sum_requests(warp_requests.wavefronts),
        "bank_conflicts": sum_requests(warp_requests.wavefronts - warp_requests.ideal_wavefronts),
    }
    return [{"TRACED": _row(traced, index), "DERIVED": _row(derived, index)} for index in range(count)]


def _row(columns: Mapping[str, Sequence[Cell]], index: int) -> dict[str, Cell]:
    return {name: column[index] for name, column in columns.items()}


def _totals(group: Ints, weight: Column, count: int) -> list[int]:
    """Return the sum of the weights of each group, exact up to 2^53."""
    totals: list[int] = np.bincount(group, weight, count).astype(np.int64).tolist()
    return totals


def _count_idle(table: Divergence, line_of: Ints, count: int) -> list[dict[str, int]]:
    """Return for each line the requests with inactive lanes, the active lanes and the lanes of their warps."""
    line = line_of[table.instruction]
    columns = {
        "partial_requests": _totals(line, table.partial, count),
        "active_lanes": _totals(line, table.lanes, count),
        "possible_lanes": _totals(line, table.possible, count),
    }
    return [_row(columns, index) for index in range(count)]

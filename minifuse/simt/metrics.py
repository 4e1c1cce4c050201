"""Metrics of memory accesses, computed from the columns of a trace: requests, sectors, wavefronts, divergence, reuse.

All functions are pure. A warp request consists of the events with equal (block, warp, instruction, occurrence),
and its cost follows from its addresses alone. Cache hits, latency, scheduling, and instructions that the compiler moves or
merges are unknown and not estimated.

    sectors      distinct values of address // 32 in a request to global memory; cache lines: of address // 128
    wavefronts   passes of a request to shared memory over its 32 banks of 4 bytes; lanes that access
                 the same word share a pass

References
----------
.. [1] NVIDIA, "Nsight Compute: Kernel Profiling Guide", memory tables: instruction, request, sector, wavefront.
.. [2] NVIDIA, "CUDA C++ Programming Guide", shared memory of compute capability 5.x and later.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columnar import WARP_SIZE, Column, Ints, combine_keys, expand_ranges, run_numbers, run_starts, unique_pairs
from .record import LOAD, ArrayInfo, Events

SECTOR_BYTES: Final = 32
CACHE_LINE_BYTES: Final = 128
BANK_COUNT: Final = 32
BANK_BYTES: Final = 4  # per bank and wavefront


class Requests(NamedTuple):
    """The warp requests of a trace, in the order of their first event: columns of equal length."""

    block: Ints
    warp: Ints
    """Linear index of the warp in its block."""
    instruction: Ints
    occurrence: Ints
    array: Ints
    kind: Ints
    lanes: Ints
    """Active lanes."""
    nbytes: Ints
    """Total bytes that the active lanes request."""
    sectors: Ints
    """32-byte sectors that the lanes touch; 0 unless the memory is global."""
    ideal_sectors: Ints
    """ceil(nbytes / 32): the sectors if elements were adjacent. Greater than `sectors` if lanes share elements."""
    lines: Ints
    """128-byte cache lines; 0 unless the memory is global."""
    wavefronts: Ints
    """Passes over the banks; 0 unless the memory is shared."""
    ideal_wavefronts: Ints
    """Passes without bank conflicts: 1 for up to 4 bytes per lane, 2 for 8, 4 for 16; fewer if a half or quarter is idle."""


def requests(events: Events, arrays: Sequence[ArrayInfo]) -> Requests:
    """Group the accesses of each warp into requests, and count the memory units that each request touches.

    Notes
    -----
    If the lanes of one instruction access several arrays, or some load and some store, there is one request for each array
    and kind of access. An atomic is counted as a load, without the serialization of lanes with equal addresses. Constant
    memory has no sectors and no wavefronts.

    Examples
    --------
    32 lanes that load every second float32 of an array at address 256:

    >>> lane = np.arange(32)
    >>> zero = np.zeros(32, int)
    >>> events = Events(zero, lane, zero, zero, zero, zero, zero, zero, 256 + 8 * lane, zero + 4, zero / 1)
    >>> request = requests(events, [ArrayInfo("a", "global", 256, (64,), (4,), 4, "float32")])
    >>> [int(column[0]) for column in (request.lanes, request.sectors, request.ideal_sectors, request.lines)]
    [32, 8, 4, 2]
    """
    group, first_events = number_requests(events)
    count = len(first_events)
    nbytes = np.bincount(group, events.nbytes, count).astype(np.int64)
    is_global, is_shared = (
        np.array([info.space == space for info in arrays], bool)[events.array] for space in ("global", "shared")
    )
    is_global_request = is_global[first_events]
    wavefronts, ideal_wavefronts = _wavefronts(
        group[is_shared], events.thread[is_shared] % WARP_SIZE, events.address[is_shared], events.nbytes[is_shared], count
    )
    global_accesses = group[is_global], events.address[is_global], events.nbytes[is_global]
    return Requests(
        block=_select_rows(events.block, first_events),
        warp=_select_rows(events.thread, first_events) // WARP_SIZE,
        instruction=_select_rows(events.instruction, first_events),
        occurrence=_select_rows(events.occurrence, first_events),
        array=_select_rows(events.array, first_events),
        kind=_select_rows(events.kind, first_events),
        lanes=np.bincount(group, minlength=count),
        nbytes=nbytes,
        sectors=_distinct_units(*global_accesses, SECTOR_BYTES, count),
        ideal_sectors=np.where(is_global_request, -(-nbytes // SECTOR_BYTES), 0),
        lines=_distinct_units(*global_accesses, CACHE_LINE_BYTES, count),
        wavefronts=wavefronts,
        ideal_wavefronts=ideal_wavefronts,
    )


def number_requests(events: Events) -> tuple[Ints, Ints]:
    """Return the request of each event, numbered by first event, and the first event of each request."""
    key = combine_keys(
        events.block, events.thread // WARP_SIZE, events.instruction, events.occurrence, events.array, events.kind
    )
    order = np.argsort(key, kind="stable")
    starts = run_starts(key[order])
    first = order[starts]
    by_time = np.argsort(first)
    number = np.empty_like(by_time)
    number[by_time] = np.arange(len(by_time))
    group = np.empty_like(order)
    group[order] = number[run_numbers(starts, len(order))]
    return group, first[by_time]


def _select_rows(column: Column, rows: Ints) -> Ints:
    return column[rows].astype(np.int64)


def _distinct_units(group: Ints, address: Ints, nbytes: Column, unit_bytes: int, count: int) -> Ints:
    """Count the distinct units of memory that each group touches."""
    row, touched = expand_ranges(address // unit_bytes, (address + nbytes - 1) // unit_bytes)
    return np.bincount(unique_pairs(group[row], touched)[0], minlength=count)


def _wavefronts(group: Ints, lane: Column, address: Ints, nbytes: Column, count: int) -> tuple[Ints, Ints]:
    """Count the passes over the banks that each group needs, and would need without bank conflicts.

    A pass moves at most 128 bytes: accesses of 8 bytes per lane are split into half warps, of 16 bytes into quarter warps. A
    pass is repeated until the bank with the most distinct words has served all of them.
    """
    wavefronts, ideal = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if not len(group):
        return wavefronts, ideal
    width = 2 ** np.ceil(np.log2(np.maximum(nbytes, BANK_BYTES))).astype(np.int64)
    part = lane // np.maximum(BANK_COUNT * BANK_BYTES // width, 1)
    passes, pass_of = np.unique(group * WARP_SIZE + part, return_inverse=True)
    row, word = expand_ranges(address // BANK_BYTES, (address + nbytes - 1) // BANK_BYTES)
    pass_row, word = unique_pairs(pass_of[row], word)
    bank = np.sort(pass_row * BANK_COUNT + word % BANK_COUNT)
    bank_starts = run_starts(bank)
    word_counts = np.diff(bank_starts, append=len(bank))
    max_word_counts = np.maximum.reduceat(word_counts, run_starts(bank[bank_starts] // BANK_COUNT))
    wavefronts += np.bincount(passes // WARP_SIZE, max_word_counts, count).astype(np.int64)
    ideal += np.bincount(passes // WARP_SIZE, minlength=count)
    return wavefronts, ideal


class Divergence(NamedTuple):
    """The lanes that take part in the requests of each instruction: columns of equal length, ordered by instruction."""

    instruction: Ints
    requests: Ints
    partial: Ints
    """Requests in which some lanes of the warp are inactive."""
    lanes: Ints
    """Active lanes of all requests."""
    possible: Ints
    """Lanes of the warps of all requests, active or not."""


def divergence(warp_requests: Requests, threads: int) -> Divergence:
    """Count, for each instruction that accesses memory, the lanes that take part.

    Parameters
    ----------
    warp_requests : Requests
    threads : int
        Threads per block. If it is not a multiple of 32, the last warp has fewer than 32 lanes; that is not divergence.

    Notes
    -----
    Divergence is not an error: a guard at the edge of an array makes some lanes idle, as does a loop that some lanes leave
    early.
    """
    possible = np.minimum(WARP_SIZE, threads - WARP_SIZE * warp_requests.warp)
    instruction, row = np.unique(warp_requests.instruction, return_inverse=True)
    count = len(instruction)
    return Divergence(
        instruction,
        np.bincount(row, minlength=count),
        np.bincount(row[warp_requests.lanes < possible], minlength=count),
        np.bincount(row, warp_requests.lanes, count).astype(np.int64),
        np.bincount(row, possible, count).astype(np.int64),
    )


class Reuse(NamedTuple):
    """Loads of the elements of an array."""

    loads: int
    """Loads of elements: a vector load of four elements counts as four."""
    distinct: int
    """Elements that are loaded at least once. Elements of a shared array count once per block."""
    minimum: int
    """Fewest loads of one element, among those that are loaded."""
    maximum: int
    mean: float


def reuse(events: Events, array: int, info: ArrayInfo) -> Reuse:
    """Count the loads of each element of an array.

    Parameters
    ----------
    events : Events
    array : int
        The index of the array in the trace's table of arrays.
    info : ArrayInfo
        The row of the table at that index.

    Notes
    -----
    Each element is read exactly once if `distinct` is the size of the array and `maximum` is 1. Atomics are not loads.

    Examples
    --------
    >>> column = np.array([0, 0, 0])
    >>> events = Events(*[column] * 8, np.array([256, 260, 256]), column + 4, column / 1)
    >>> reuse(events, 0, ArrayInfo("a", "global", 256, (8,), (4,), 4, "float32"))
    Reuse(loads=3, distinct=2, minimum=1, maximum=2, mean=1.5)
    """
    is_load = (events.array == array) & (events.kind == LOAD)
    offset = events.address[is_load] - info.base
    row, element = expand_ranges(offset // info.itemsize, (offset + events.nbytes[is_load] - 1) // info.itemsize)
    memory_number = events.block[is_load][row] if info.space == "shared" else np.zeros_like(element)
    loads = np.unique(combine_keys(memory_number, element), return_counts=True)[1]
    if not len(loads):
        return Reuse(0, 0, 0, 0, 0.0)
    return Reuse(int(loads.sum()), len(loads), int(loads.min()), int(loads.max()), float(loads.mean()))


def unwritten_elements(events: Events, info: ArrayInfo) -> NDArray[np.int64]:
    """Return the positions of the elements that no thread wrote, in row-major order.

    An atomic counts as a write. A write through another array over the same memory also counts.

    Examples
    --------
    >>> column = np.array([1, 1])
    >>> events = Events(column, *[column] * 5, column * 0, column, np.array([256, 264]), column + 3, column / 1)
    >>> unwritten_elements(events, ArrayInfo("out", "global", 256, (4,), (4,), 4, "float32")).tolist()
    [1, 3]
    """
    element_address: Ints = np.array(info.base, np.int64)
    for size, stride in zip(info.shape, info.strides, strict=True):
        element_address = element_address[..., None] + np.arange(size) * stride
    element_address = element_address.reshape(-1)
    if not len(element_address):
        return element_address
    is_write = (events.kind != LOAD) & (events.address < element_address.max() + info.itemsize)
    is_write &= events.address + events.nbytes > element_address.min()
    address, nbytes = events.address[is_write], events.nbytes[is_write]
    _, written_addresses = expand_ranges(address, address + nbytes - 1)
    return np.flatnonzero(~np.isin(element_address, written_addresses))

"""Memory: one request of a warp, over the sectors and cache lines of global memory, or over the banks of shared memory.

The kernels of `memory_kernels` run lane by lane; the request at their line `x = ...` is drawn. `minifuse.simt` counts its
sectors and wavefronts. The contents of caches, and times, are unknown here.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minifuse import simt
from minifuse.core.errors import MinifuseError
from minifuse.simt.metrics import BANK_BYTES, BANK_COUNT, CACHE_LINE_BYTES, SECTOR_BYTES, number_requests
from minifuse.simt.record import ArrayInfo

from .cited_facts import DERIVED, TRACED, Fact, Line
from .memory_kernels import (
    DTYPES,
    ELEMENTS,
    MAX_OFFSET,
    MAX_STRIDE,
    MAX_WIDTH,
    MIN_WIDTH,
    ROWS,
    make_tile_kernel,
    strided,
)
from .request_costs import count_by_line, line_facts

WARP = 32  # lanes


@dataclass(frozen=True)
class Lane:
    """The access of one lane."""

    lane: int
    element: int
    """The index of the element in the array, in memory order."""
    start: int
    """The first byte of the element, counted from the start of the array."""


@dataclass(frozen=True)
class Request:
    """The request that a page shows, and its launch."""

    trace: simt.Trace
    kernel: Callable[..., Any]
    row: int
    """The row of the request in `trace.requests()`; -1 if no lane takes part."""
    lanes: tuple[Lane, ...]
    info: ArrayInfo

    @cached_property
    def counts(self) -> dict[str, int]:
        """The counts of the request: lanes, nbytes, sectors, ideal_sectors, lines, wavefronts, ideal_wavefronts."""
        return {name: int(column[self.row]) for name, column in self.trace.requests()._asdict().items()}

    @property
    def used(self) -> int:
        """Return the number of bytes that at least one lane requests, each counted once."""
        return self.info.itemsize * len({lane.element for lane in self.lanes})

    @property
    def wasted(self) -> int:
        """Return the number of bytes of the fetched sectors that no lane requests."""
        return SECTOR_BYTES * self.counts["sectors"] - self.used


def trace_global_load(dtype: str = "float32", stride: int = 1, offset: int = 0, count: int = WARP) -> Request:
    """Trace a request in which lanes 0..count-1 load a[stride * lane + offset].

    Raises
    ------
    MinifuseError
        A number is out of range.
    """
    check_dtype(dtype)
    check_range("stride", stride, 0, MAX_STRIDE)
    check_range("offset", offset, 0, MAX_OFFSET)
    check_range("lanes", count, 0, WARP)
    return trace_request(strided, "a", np.zeros(WARP, dtype), np.zeros(ELEMENTS, dtype), stride, offset, count)


def trace_tile_load(
    dtype: str = "float32", width: int = 32, reads_column: bool = True, which: int = 0, count: int = WARP
) -> Request:
    """Trace a request in which lanes 0..count-1 read a column or a row of a (32, `width`) tile in shared memory.

    Raises
    ------
    MinifuseError
        A number is out of range.
    """
    check_dtype(dtype)
    check_range("width", width, MIN_WIDTH, MAX_WIDTH)
    check_range("column" if reads_column else "row", which, 0, ROWS - 1)
    check_range("lanes", count, 0, WARP)
    kernel = make_tile_kernel(width, dtype, reads_column)
    return trace_request(kernel, "tile", np.zeros(WARP, dtype), np.zeros(ROWS * WARP, dtype), which, count)


def check_dtype(dtype: str) -> None:
    """Raise MinifuseError unless the dtype is in DTYPES."""
    if dtype not in DTYPES:
        raise MinifuseError(f"an element type of {dtype!r}; expected one of {', '.join(DTYPES)}")


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Raise MinifuseError unless least <= value <= most."""
    if not least <= value <= most:
        raise MinifuseError(f"{name} is {value}; expected {least} to {most}")


def trace_request(kernel: Callable[..., Any], array: str, *arguments: Any) -> Request:
    """Trace a block of one warp, and return its last load from the array of this name."""
    trace = simt.trace(kernel, 1, WARP, *arguments)
    requests = trace.requests()
    array_indices = [k for k, info in enumerate(trace.arrays) if info.name == array]
    rows = [k for k in range(len(requests.block)) if requests.array[k] in array_indices and requests.kind[k] == 0]
    if not rows:  # no lane takes part
        empty = ArrayInfo(
            array, "global" if array == "a" else "shared", 0, (0,), (1,), np.dtype(arguments[0].dtype).itemsize, ""
        )
        return Request(trace, kernel, -1, (), empty)
    info, (group, _) = trace.arrays[int(requests.array[rows[-1]])], number_requests(trace.events)
    events = np.flatnonzero(group == rows[-1])
    lanes = [
        Lane(thread, start // info.itemsize, start)
        for thread, start in zip(
            trace.events.thread[events].tolist(), (trace.events.address[events] - info.base).tolist(), strict=True
        )
    ]
    return Request(trace, kernel, rows[-1], tuple(sorted(lanes, key=lambda lane: lane.lane)), info)


def sentence(request: Request) -> str:
    """Summarize the picture."""
    counts, itemsize = request.counts, request.info.itemsize
    lanes = f"{counts['lanes']} {'lane' if counts['lanes'] == 1 else 'lanes'}"
    if request.info.space == "shared":
        turns = f"{counts['wavefronts']} {'wavefront' if counts['wavefronts'] == 1 else 'wavefronts, one after the other'}"
        least = counts["ideal_wavefronts"]
        return f"{lanes} of a warp read {format_bytes(itemsize)} each from shared memory: {turns}; {least} at best."
    fetched = SECTOR_BYTES * counts["sectors"]
    rest = f"{request.wasted} are not used" if request.wasted else "all are used"
    best = counts["ideal_sectors"]
    why = "lanes share what they read" if counts["sectors"] < best else f"{best} at best"
    return (
        f"{lanes} ask for {format_bytes(itemsize)} each. Memory gives whole sectors, here {counts['sectors']}: {fetched} "
        f"bytes, {rest}; {why}."
    )


def format_bytes(count: int) -> str:
    """Format a number of bytes."""
    return f"{count} {'byte' if count == 1 else 'bytes'}"


def link(element: int) -> str:
    """Return the link of an element."""
    return f"e{element}"


def describe_lane(request: Request, lane: Lane) -> str:
    """Describe where the element of a lane is."""
    last = lane.start + request.info.itemsize - 1
    at = f"byte {lane.start}" if last == lane.start else f"bytes {lane.start} to {last}"
    if request.info.space == "global":
        return f"a[{lane.element}], {at}, sector {lane.start // SECTOR_BYTES}, cache line {lane.start // CACHE_LINE_BYTES}"
    row, column = divmod(lane.element, request.info.shape[1])
    banks = sorted({word % BANK_COUNT for word in lane_words(request, lane)})
    return f"tile[{row}, {column}], {at}, bank {' and '.join(map(str, banks))}"


@dataclass(frozen=True)
class Wavefront:
    """One pass over the banks: the word that each bank serves, and the lanes that receive it."""

    words: dict[int, int]
    """bank -> word of the tile"""
    lanes: tuple[int, ...]


def lane_words(request: Request, lane: Lane) -> range:
    """Return the 4-byte words of an element, counted from the start of the array."""
    return range(lane.start // BANK_BYTES, (lane.start + request.info.itemsize - 1) // BANK_BYTES + 1)


def wavefronts(request: Request) -> list[Wavefront]:
    """Return the wavefronts of a request: in each, every bank serves one word, to all lanes that request it.

    For elements of 8 bytes, each half of the warp is served separately. The order in which a bank serves its words is
    unknown; here it is by address.
    """
    lanes_per_pass = BANK_COUNT * BANK_BYTES // max(request.info.itemsize, BANK_BYTES)
    passes = []
    for part in sorted({lane.lane // lanes_per_pass for lane in request.lanes}):
        lanes = [lane for lane in request.lanes if lane.lane // lanes_per_pass == part]
        words_of_bank = dict[int, list[int]]()
        for word in sorted({word for lane in lanes for word in lane_words(request, lane)}):
            words_of_bank.setdefault(word % BANK_COUNT, []).append(word)
        for k in range(max(map(len, words_of_bank.values()))):
            words = {bank: queue[k] for bank, queue in words_of_bank.items() if k < len(queue)}
            served_words = {*words.values()}
            passes.append(Wavefront(words, tuple(x.lane for x in lanes if served_words & {*lane_words(request, x)})))
    return passes


def format_lanes(lanes: tuple[int, ...]) -> str:
    """Format a list of lanes."""
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    is_run = lanes == tuple(range(lanes[0], lanes[-1] + 1))
    return f"lanes {lanes[0]} to {lanes[-1]}" if is_run else f"lanes {', '.join(map(str, lanes))}"


def facts(request: Request, chosen: str | None = None) -> list[Fact]:
    """Return facts about the request, and about each line of the kernel."""
    if not request.lanes:
        return [Fact("lanes that take part", 0, TRACED)]
    counts = request.counts
    known = [
        Fact("lanes that take part", f"{counts['lanes']} of {WARP}", TRACED),
        Fact("bytes asked for", counts["nbytes"], TRACED, "of all lanes; one that two lanes want counts twice"),
    ]
    if request.info.space == "shared":
        conflicts = counts["wavefronts"] - counts["ideal_wavefronts"]
        known += [
            Fact(
                "wavefronts",
                counts["wavefronts"],
                DERIVED,
                "the most different 4-byte words that are wanted of one bank",
            ),
            Fact("wavefronts at best", counts["ideal_wavefronts"], DERIVED, "one for each 128 bytes' worth of lanes"),
            Fact("bank conflicts", conflicts, DERIVED, "wavefronts beyond those"),
            Fact("words from one row to the next", row_pitch(request), DERIVED, bank_step_reason(request)),
        ]
    else:
        share = request.used / (SECTOR_BYTES * counts["sectors"])
        known += [
            Fact("sectors", counts["sectors"], DERIVED, "distinct byte // 32"),
            Fact("sectors at best", counts["ideal_sectors"], DERIVED, "ceil(bytes asked for / 32)"),
            Fact("cache lines", counts["lines"], DERIVED, "distinct byte // 128"),
            Fact("bytes fetched", SECTOR_BYTES * counts["sectors"], DERIVED, "sectors * 32"),
            Fact("bytes fetched and not used", request.wasted, DERIVED, "what a cache may keep for later is not known here"),
            Fact("share of the bytes that is used", f"{share:.0%}", DERIVED),
        ]
    known += [
        Fact(f"lane {lane.lane}", describe_lane(request, lane), TRACED, "the cell that was chosen")
        for lane in request.lanes
        if chosen in (link(lane.element), f"t{lane.lane}")
    ]
    text, first = inspect.getsourcelines(request.kernel)
    return known + line_facts(request.trace, dict(enumerate(text, first)))


def row_pitch(request: Request) -> str:
    """Describe the distance between two rows of the tile."""
    words = request.info.strides[0] / BANK_BYTES
    return f"{words:g}"


def bank_step_reason(request: Request) -> str:
    """Explain in which bank the next row begins."""
    nbytes = request.info.strides[0]
    if nbytes % (BANK_COUNT * BANK_BYTES) == 0:
        return f"a multiple of {BANK_COUNT}: every row begins in the same bank"
    return f"no multiple of {BANK_COUNT}: the next row begins {nbytes / BANK_BYTES % BANK_COUNT:g} banks further"


def lines(trace: simt.Trace, kernel: Callable[..., Any], units: Sequence[str]) -> list[Line]:
    """Return the source of a kernel, with the cost of each line."""
    text, first = inspect.getsourcelines(kernel)
    counts, indent = count_by_line(trace), len(text[0]) - len(text[0].lstrip())
    return [
        Line(
            first + k,
            line.rstrip()[indent:],
            tuple((unit, n) for unit, n in counts.get(first + k, {}).items() if n and unit in units),
        )
        for k, line in enumerate(text)
    ]

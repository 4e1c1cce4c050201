"""The HTML of a trace: its numbers by array and by line, its hazards, and a picture of one request of each access."""

import linecache
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol
from zlib import crc32

from ..core import html
from ..core.errors import SimtError, short_file
from ..core.html import Html
from ..core.wording import format_count
from .diagnostics import format_index, unravel_xyz
from .metrics import Requests
from .record import ATOMIC, LOAD, STORE, ArrayInfo, Events, Instruction
from .request_picture import request_picture

MAX_PICTURES = 12  # requests that are drawn
MAX_ROWS = 40  # rows of a table
MAX_HAZARDS = 10
VERBS = {LOAD: "loads", STORE: "stores", ATOMIC: "updates"}
NUMBERS = {  # (label, name) of a number -> its heading
    ("TRACED", "loads"): "loads",
    ("TRACED", "stores"): "stores",
    ("TRACED", "atomics"): "atomics",
    ("DERIVED", "requests"): "requests",
    ("DERIVED", "sectors"): "sectors",
    ("DERIVED", "ideal_sectors"): "ideal sectors",
    ("DERIVED", "wavefronts"): "wavefronts",
    ("DERIVED", "bank_conflicts"): "bank conflicts",
}


class ShownTrace(Protocol):
    """The parts of a trace that are shown."""

    @property
    def events(self) -> Events:
        """The accesses."""

    @property
    def arrays(self) -> list[ArrayInfo]:
        """The arrays of the launch."""

    @property
    def instructions(self) -> list[Instruction]:
        """The positions of the accesses in the source."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks along x, y and z."""

    def requests(self) -> Requests:
        """Return the warp requests."""

    def hazards(self) -> list[SimtError]:
        """Return all hazards."""

    def summary(self) -> dict[str, Any]:
        """Return the numbers."""


def trace_html(trace: ShownTrace) -> Html:
    """Return the HTML of a trace."""
    facts, hazards = trace.summary(), trace.hazards()
    arrays = [(f"{x['name']}: {x['space']} memory, {x['dtype']} {tuple(x['shape'])}", x) for x in facts["arrays"]]
    lines = [(f"{x['line']}  {source_line(x['file'], x['line'])}", x) for x in facts["lines"]]
    found = [html.element("div", f"{type(error).__name__}: {error}") for error in hazards[:MAX_HAZARDS]]
    found += [html.element("div", f"and {len(hazards) - MAX_HAZARDS} more")] * (len(hazards) > MAX_HAZARDS)
    count = format_count(len(hazards), "hazard") if hazards else "no hazards"
    return html.block(
        html.element("b", repr(trace)),
        numbers_table("array", arrays),
        numbers_table("line", lines),
        html.details(html.element("b", count), *found, is_open=True) if hazards else html.element("div", count),
        *request_steps(trace),
    )


def source_line(file: str, line: int) -> str:
    """Return a line of a source, or its place if it is unknown."""
    return linecache.getline(file, line).strip() or f"of {short_file(file)}"


def numbers_table(heading: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Html:
    """Return a table with the numbers of arrays or lines; columns of zeros are omitted."""
    keys = [(label, name) for label, name in NUMBERS if any(x[label][name] for _, x in rows)]
    cells = [(title, *[f"{x[label][name]:,}" for label, name in keys]) for title, x in rows[:MAX_ROWS]]
    cells += [(f"and {len(rows) - MAX_ROWS} more", *[""] * len(keys))] * (len(rows) > MAX_ROWS)
    is_number = [False, *[True] * len(keys)]
    return html.table([heading, *[NUMBERS[key] for key in keys]], cells, is_number=is_number, has_row_headings=True)


def first_requests(requests: Requests) -> list[int]:
    """Return the first request of each instruction, array and kind of access: rows, in the order of time."""
    first: dict[tuple[int, int, int], int] = {}
    for row, key in enumerate(
        zip(requests.instruction.tolist(), requests.array.tolist(), requests.kind.tolist(), strict=True)
    ):
        first.setdefault(key, row)
    return list(first.values())


def request_steps(trace: ShownTrace) -> Iterator[Html]:
    """Yield a picture of the first request of each access in the source; one of them is unfolded at a time."""
    requests = trace.requests()
    rows = first_requests(requests)
    for step, row in enumerate(rows[:MAX_PICTURES]):
        info, place = trace.arrays[int(requests.array[row])], trace.instructions[int(requests.instruction[row])]
        sentence = describe_request(trace, requests, row, info)
        code = html.element("code", source_line(place.file, place.line))
        title = html.join([f"step {step + 1}, line {place.line}: ", code, f" {sentence}"])
        drawing = request_picture(trace.events, requests, row, info, sentence)
        yield html.details(title, drawing, is_open=step == 0, group=f"requests-{crc32(trace.events.address.tobytes())}")
    if len(rows) > MAX_PICTURES:
        yield html.element("div", f"and {len(rows) - MAX_PICTURES} more accesses")


def describe_request(trace: ShownTrace, requests: Requests, row: int, info: ArrayInfo) -> str:
    """Describe a request in a sentence: who accesses what, and what it costs."""
    block = format_index(unravel_xyz(int(requests.block[row]), trace.grid))
    who = f"warp {requests.warp[row]} of block {block} {VERBS[int(requests.kind[row])]} {info.name}"
    text = f"{who}: {format_count(int(requests.lanes[row]), 'lane')}, {requests.nbytes[row]:,} bytes"
    if info.space == "global":
        sectors = format_count(int(requests.sectors[row]), "sector")
        return f"{text}, {sectors} of 32 bytes (ideal {requests.ideal_sectors[row]})"
    if info.space == "shared":
        passes = format_count(int(requests.wavefronts[row]), "pass", "passes")
        return f"{text}, {passes} over the banks (ideal {requests.ideal_wavefronts[row]})"
    return text

"""The picture of a warp request: the lanes of the warp, and the sectors or banks of memory that they access.

Global memory is drawn as the 32-byte sectors that are moved, each access at its place in its sector; so the empty part of a
sector is moved and not used. Shared memory is drawn as its 32 banks, with a row for each pass over them. An access shows the
number of its lane.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..core import html
from ..core.html import Html
from .columnar import WARP_SIZE
from .metrics import BANK_BYTES, BANK_COUNT, SECTOR_BYTES, Requests
from .record import ATOMIC, LOAD, STORE, ArrayInfo, Events

COLORS = {LOAD: html.BLUE, STORE: html.VERMILLION, ATOMIC: html.PURPLE}
CELL, GAP, MARGIN = 20, 2, 74  # pixels: a lane or 4 bytes of memory, the space between cells, the labels on the left
SECTORS_IN_ROW = WARP_SIZE * BANK_BYTES // SECTOR_BYTES
LANES_TOP, MEMORY_TOP = 2, 34
MAX_ROWS = 16  # of memory; the rest of a request is not drawn

Box = tuple[float, float, float, float]  # x, y, width, height


class Access(NamedTuple):
    """The access of one lane."""

    lane: int
    address: int
    nbytes: int


class PlacedAccess(NamedTuple):
    """An access at its place in a picture: row, and bytes from the left."""

    access: Access
    row: int
    column: float


def request_accesses(events: Events, requests: Requests, row: int) -> list[Access]:
    """Return the accesses of a request, given by its row, in the order of their lanes."""
    columns = {"block": events.block, "warp": events.thread // WARP_SIZE}
    columns |= {name: getattr(events, name) for name in ("instruction", "occurrence", "array", "kind")}
    is_part = np.logical_and.reduce([column == getattr(requests, name)[row] for name, column in columns.items()])
    lanes, addresses, sizes = events.thread[is_part] % WARP_SIZE, events.address[is_part], events.nbytes[is_part]
    return sorted(map(Access, lanes.tolist(), addresses.tolist(), sizes.tolist()))


def place_in_sectors(accesses: Sequence[Access]) -> tuple[list[PlacedAccess], dict[int, int]]:
    """Return the accesses in rows of sectors, and the number of each sector that is moved."""
    ranges = [range(x.address // SECTOR_BYTES, (x.address + x.nbytes - 1) // SECTOR_BYTES + 1) for x in accesses]
    number = {sector: k for k, sector in enumerate(sorted({sector for sectors in ranges for sector in sectors}))}
    placed = []
    for x, sectors in zip(accesses, ranges, strict=True):
        row, column = divmod(number[sectors[0]], SECTORS_IN_ROW)
        placed.append(PlacedAccess(x, row, column * SECTOR_BYTES + x.address % SECTOR_BYTES))
    return placed, number


def place_in_banks(accesses: Sequence[Access]) -> list[PlacedAccess]:
    """Return the accesses in a row for each pass over the banks: wide accesses of half or a quarter of a warp at a time."""
    placed, top = list[PlacedAccess](), 0

    def part(x: Access) -> int:
        width = 1 << (max(x.nbytes, BANK_BYTES) - 1).bit_length()
        return x.lane // max(BANK_COUNT * BANK_BYTES // width, 1)

    for _, group in groupby(accesses, part):
        members = list(group)
        words_of_bank: dict[int, list[int]] = {}
        for word in sorted({word for x in members for word in words_of(x)}):
            words_of_bank.setdefault(word % BANK_COUNT, []).append(word)
        for x in members:
            bank = words_of(x)[0] % BANK_COUNT
            row = top + words_of_bank[bank].index(words_of(x)[0])
            placed.append(PlacedAccess(x, row, bank * BANK_BYTES + x.address % BANK_BYTES))
        top += max(map(len, words_of_bank.values()))
    return placed


def words_of(x: Access) -> range:
    """Return the words of 4 bytes that an access touches."""
    return range(x.address // BANK_BYTES, (x.address + x.nbytes - 1) // BANK_BYTES + 1)


def request_picture(events: Events, requests: Requests, row: int, info: ArrayInfo, label: str) -> Html:
    """Return the picture of a request, given by its row. The label says in words what it shows."""
    accesses, color = request_accesses(events, requests, row), COLORS[int(requests.kind[row])]
    active = {x.lane for x in accesses}
    lanes = {lane: (MARGIN + lane * CELL, LANES_TOP, CELL - GAP, CELL - GAP) for lane in range(WARP_SIZE)}
    shapes = [
        html.label(0, LANES_TOP + 13, "lanes", "start"),
        html.squares([lanes[lane] for lane in sorted(active)], color),
        html.squares([box for lane, box in lanes.items() if lane not in active]),
        *[html.label(x + CELL / 2 - 1, y + 13, lane) for lane, (x, y, _, _) in lanes.items() if lane in active],
    ]
    if info.space == "shared":
        placed = place_in_banks(accesses)
        row_count = max(x.row for x in placed) + 1
        boxes = [memory_box(r, bank * BANK_BYTES, BANK_BYTES) for r in range(row_count) for bank in range(BANK_COUNT)]
        names = {r: f"pass {r}" for r in range(row_count)}
    else:
        placed, number = place_in_sectors(accesses)
        row_count = max(number.values()) // SECTORS_IN_ROW + 1
        boxes = [memory_box(k // SECTORS_IN_ROW, k % SECTORS_IN_ROW * SECTOR_BYTES, SECTOR_BYTES) for k in number.values()]
        names = {
            k // SECTORS_IN_ROW: f"byte {s * SECTOR_BYTES - info.base}" for s, k in number.items() if not k % SECTORS_IN_ROW
        }
    shapes += memory_shapes(placed, boxes, names, color)
    height = MEMORY_TOP + min(row_count, MAX_ROWS) * CELL
    if row_count > MAX_ROWS:
        shapes.append(html.label(0, height + 12, f"and {row_count - MAX_ROWS} more rows", "start"))
        height += CELL
    return html.picture(MARGIN + WARP_SIZE * CELL, height, label, *shapes)


def memory_shapes(
    placed: Sequence[PlacedAccess], boxes: Sequence[Box], names: Mapping[int, str], color: str
) -> Iterator[Any]:
    """Yield the shapes of memory: sectors or banks, and the accesses. Lanes that access the same bytes share a place."""
    bottom = MEMORY_TOP + MAX_ROWS * CELL
    yield html.squares([box for box in boxes if box[1] < bottom])
    for row, name in names.items():
        if row < MAX_ROWS:
            yield html.label(0, MEMORY_TOP + row * CELL + 13, name, "start")
    lanes_of_box: dict[Box, list[int]] = {}
    for access, row, column in placed:
        if row < MAX_ROWS:
            lanes_of_box.setdefault(memory_box(row, column, access.nbytes), []).append(access.lane)
    yield html.squares(lanes_of_box, color)
    for (x, y, width, _), lanes in lanes_of_box.items():
        text = lanes[0] if len(lanes) == 1 else f"{lanes[0]}+"
        title = html.element("title", f"lane{'s' * (len(lanes) > 1)} {', '.join(map(str, lanes))}")
        yield html.element("g", title, html.label(x + width / 2, y + 13, text))


def memory_box(row: int, column: float, nbytes: int) -> Box:
    """Return the place of some bytes of memory."""
    scale = CELL / BANK_BYTES
    return MARGIN + column * scale, MEMORY_TOP + row * CELL, nbytes * scale - GAP, CELL - GAP

"""The picture of a request: the lanes of a warp, joined to the sectors of global memory or to the banks that they read.

Each frame is a sector that memory delivers, or a wavefront that the banks serve. A row of strides compares requests of the
same kernel, and a row of memories has the bytes that move from one to the next.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from minifuse.simt.metrics import BANK_BYTES, BANK_COUNT, CACHE_LINE_BYTES, SECTOR_BYTES
from minifuse.simt.record import LOAD as IS_LOAD

from . import memory
from .cited_facts import Fact
from .memory import WARP, Lane, Request, Wavefront, describe_lane, format_bytes, format_lanes, lane_words, link, sentence
from .memory_kernels import ROWS
from .picture import CHOSEN, IDLE, LOAD, SHARED, WASTED, Cell, Edge, Frame, Grid, Hull, Picture, Place

MAX_WHOLE_LINES = 4  # cache lines; if a request accesses more, only the fetched sectors are drawn
ROW = 32  # elements in a row of memory, as many as lanes
GAP = 0.4  # columns between two sectors
WINDOW = 8  # rows and columns of a tile that are drawn
STRIDES = (1, 2, 4, 8)
Numbers = tuple[tuple[str, str], ...]
MEANS = ((WASTED, "fetched, not used"), (IDLE, "idle"), (CHOSEN, "now"))


def picture(request: Request, strides: Sequence[Request] = (), measured: Sequence[Fact] = ()) -> Picture:
    """Draw the lanes, the memory that they read, and the way of the bytes; also some requests with other strides.

    `measured` are hardware counters of the same request; the first one stands among the numbers of the whole request.
    """
    counters = tuple((fact.value, fact.name) for fact in measured[:1])
    if not request.lanes:
        return Picture("No lane takes part, so there is no request.", (lane_grid(request),))
    if request.info.space == "shared":
        return bank_picture(request, counters)
    grids = (lane_grid(request), sector_grid(request), *stride_grid(strides), flow_grid(request))
    frames = tuple(sector_frames(request, counters))
    layout = tuple((grid.name,) for grid in grids)
    return Picture(sentence(request), grids, frames, MEANS, tuple(flow_edges(request)), layout=layout)


def lane_grid(request: Request) -> Grid:
    """Draw the 32 lanes of the warp; lanes without an access are idle."""
    asked = {lane.lane: lane for lane in request.lanes}
    kind = SHARED if request.info.space == "shared" else LOAD
    cells = tuple(
        Cell(0, t, str(t), f"lane {t}, reads {describe_lane(request, asked[t])}", kind, (link(asked[t].element), f"t{t}"))
        if t in asked
        else Cell(0, t, str(t), f"lane {t}, does nothing", IDLE, (f"t{t}",))
        for t in range(WARP)
    )
    return Grid("lanes", "the 32 lanes of a warp", 1, WARP, cells, ("lane",))


def drawn_sectors(request: Request) -> list[int]:
    """Return the sectors that are drawn: all of the cache lines that are read, or, of many lines, the fetched ones."""
    fetched = sorted({lane.start // SECTOR_BYTES for lane in request.lanes})
    per_line = CACHE_LINE_BYTES // SECTOR_BYTES
    lines = sorted({sector // per_line for sector in fetched})
    return fetched if len(lines) > MAX_WHOLE_LINES else [line * per_line + k for line in lines for k in range(per_line)]


def sector_places(request: Request) -> dict[int, tuple[int, int]]:
    """Return the row and the first column of each drawn sector. A row has 32 elements."""
    columns = SECTOR_BYTES // request.info.itemsize
    per_row = ROW // columns
    return {sector: (k // per_row, k % per_row * columns) for k, sector in enumerate(drawn_sectors(request))}


def element_place(request: Request, element: int) -> Place:
    """Return the cell of an element of global memory."""
    columns = SECTOR_BYTES // request.info.itemsize
    row, column = sector_places(request)[element // columns]
    return ("lines", row, column + element % columns)


def sector_grid(request: Request) -> Grid:
    """Draw sectors of global memory, with a gap between them. The title is short, as edges pass above the cells."""
    columns, places = SECTOR_BYTES // request.info.itemsize, sector_places(request)
    readers = dict[int, list[int]]()
    for lane in request.lanes:
        readers.setdefault(lane.element, []).append(lane.lane)
    fetched = {lane.start // SECTOR_BYTES for lane in request.lanes}
    cells = tuple(
        element_cell(readers, row, column + k, sector * columns + k, sector, sector in fetched)
        for sector, (row, column) in places.items()
        for k in range(columns)
    )
    rows = [list(part) for _, part in groupby(places, key=lambda sector: places[sector][0])]
    names = tuple(f"byte {part[0] * SECTOR_BYTES}" for part in rows)
    offsets = tuple(cell.column + GAP * (cell.column // columns) for cell in cells)
    return Grid("lines", "memory", len(rows), ROW, cells, names, offsets=offsets, gaps=(0, 8))


def element_cell(readers: dict[int, list[int]], row: int, column: int, element: int, sector: int, is_fetched: bool) -> Cell:
    """Return the cell of one element of a sector."""
    if element in readers:
        who = ", ".join(map(str, readers[element])) if len(readers[element]) < WARP else "all"
        what, kind = f"read by lane {who}" if len(readers[element]) == 1 else f"read by lanes {who}", LOAD
    else:
        what, kind = ("fetched and not used", WASTED) if is_fetched else ("not fetched", "")
    return Cell(row, column, str(element), f"a[{element}], sector {sector}, {what}", kind, (link(element), f"s{sector}"))


def sector_frames(request: Request, counters: Numbers) -> Iterator[Frame]:
    """Generate a frame of the whole request, and one for each sector that memory delivers."""
    line = request.trace.instructions[int(request.trace.requests().instruction[request.row])].line
    columns, places, itemsize = SECTOR_BYTES // request.info.itemsize, sector_places(request), request.info.itemsize
    by_sector = {
        sector: list(part)
        for sector, part in groupby(
            sorted(request.lanes, key=lambda lane: lane.start), key=lambda lane: lane.start // SECTOR_BYTES
        )
    }
    hulls, edges = list[Hull](), list[Edge]()
    for sector, lanes in by_sector.items():  # neighboring lanes
        row, column = places[sector]
        first, count = min(lane.lane for lane in lanes), len(lanes)
        hulls += [Hull(("lanes", 0, first), 1, count, LOAD), Hull(("lines", row, column), 1, columns, LOAD)]
        edges.append(Edge(("lanes", 0, first + count // 2), ("lines", row, column + columns // 2), LOAD))
    number, *others = byte_numbers(request, list(by_sector))
    numbers = (number, *counters, *others[len(counters) :])
    yield Frame(sentence(request), (), (), tuple(edges), tuple(hulls), (), line, numbers)
    for k, (sector, lanes) in enumerate(by_sector.items()):
        mine = {lane.lane for lane in lanes}
        kinds = tuple((f"t{lane.lane}", LOAD if lane.lane in mine else "") for lane in request.lanes)
        used = itemsize * len({lane.element for lane in lanes})
        who = format_lanes(tuple(sorted(mine)))
        yield Frame(
            f"Sector {k + 1} of {len(by_sector)}: {SECTOR_BYTES} bytes come, {used} of them are used, by {who}.",
            kinds,
            edges=tuple(lane_edge(request, lane, LOAD) for lane in lanes),
            hulls=(Hull(("lines", *places[sector]), 1, columns, CHOSEN),),
            line=line,
            numbers=byte_numbers(request, list(by_sector)[: k + 1]),
        )


def lane_edge(request: Request, lane: Lane, kind: str) -> Edge:
    """Return the edge from a lane to the element that it reads."""
    return Edge(("lanes", 0, lane.lane), element_place(request, lane.element), kind)


def byte_numbers(request: Request, sectors: Sequence[int]) -> Numbers:
    """Return numbers about some of the fetched sectors."""
    used = used_bytes(request)
    fetched, total = SECTOR_BYTES * len(sectors), sum(used[sector] for sector in sectors)
    return (
        (str(len(sectors)), "sectors"),
        (str(total), "bytes used"),
        (str(fetched), "bytes fetched"),
        (f"{total / fetched:.0%}", "is used"),
    )


def used_bytes(request: Request) -> dict[int, int]:
    """Return the bytes that lanes use of each fetched sector."""
    used, itemsize = dict[int, int](), request.info.itemsize
    for element in sorted({lane.element for lane in request.lanes}):
        sector = element * itemsize // SECTOR_BYTES
        used[sector] = used.get(sector, 0) + itemsize
    return used


def stride_grid(strides: Sequence[Request]) -> list[Grid]:
    """Draw requests with other strides, one in each row: a cell is a sector, with the bytes that are used of it."""
    if not strides:
        return []
    names, cells = [], []
    for row, request in enumerate(strides):
        used = used_bytes(request)
        stride = request.lanes[1].element - request.lanes[0].element if len(request.lanes) > 1 else STRIDES[row]
        names.append(f"x{stride}: {sum(used.values()) / (SECTOR_BYTES * len(used)):.0%}")
        for column, (sector, count) in enumerate(used.items()):
            label = f"stride {stride}, sector {sector}, {count} of {format_bytes(SECTOR_BYTES)} used"
            cells.append(Cell(row, column, str(count), label, LOAD if count == SECTOR_BYTES else WASTED))
    columns = 1 + max(cell.column for cell in cells)
    return [
        Grid("strides", "other strides: bytes used of each sector of 32", len(names), columns, tuple(cells), tuple(names))
    ]


def moved_bytes(request: Request) -> list[tuple[str, str, int]]:
    """Return (from, to, bytes) of the launch, if no cache has its data before: DRAM gives each sector once.

    Loads of global memory bring whole sectors. Between shared memory and registers, bytes of the lanes move.
    """
    trace = request.trace
    requests, events = trace.requests(), trace.events
    spaces = np.array([info.space for info in trace.arrays])
    is_global = (spaces[events.array] == "global") & (events.kind == IS_LOAD)
    distinct = len(np.unique(events.address[is_global] // SECTOR_BYTES))
    rows = (spaces[requests.array] == "global") & (requests.kind == IS_LOAD)
    moves = [
        ("DRAM", "L2", SECTOR_BYTES * distinct),
        ("L2", "registers", SECTOR_BYTES * int(requests.sectors[rows].sum())),
    ]
    for kind, start, end in ((1, "registers", "shared"), (IS_LOAD, "shared", "registers")):
        rows = (spaces[requests.array] == "shared") & (requests.kind == kind)
        if rows.any():
            moves.append((start, end, int(requests.nbytes[rows].sum())))
    return moves


def flow_grid(request: Request) -> Grid:
    """Draw the memories that bytes pass through."""
    names = ["DRAM", *(end for _, end, _ in moved_bytes(request))]
    cells = tuple(Cell(0, k, name, name, "", (f"m{k}",)) for k, name in enumerate(names))
    return Grid("flow", "the bytes of this launch, nothing cached before", 1, len(names), cells, gaps=(90, 0))


def flow_edges(request: Request) -> Iterator[Edge]:
    """Generate the arrows between memories, with their bytes."""
    for k, (_, end, count) in enumerate(moved_bytes(request)):
        yield Edge(("flow", 0, k), ("flow", 0, k + 1), SHARED if end == "shared" else LOAD, f"{count:,} B")


def bank_picture(request: Request, counters: Numbers) -> Picture:
    """Draw lanes, banks, and the part of the tile that is read; each wavefront is a frame."""
    passes = memory.wavefronts(request)
    queues = {bank: [wavefront.words[bank] for wavefront in passes if bank in wavefront.words] for bank in range(BANK_COUNT)}
    cells = tuple(
        Cell(0, bank, str(bank), bank_label(bank, queue), SHARED if queue else IDLE, (f"b{bank}",))
        for bank, queue in queues.items()
    )
    banks = Grid("banks", "banks", 1, BANK_COUNT, cells, ("bank",))  # short, as edges pass above the cells
    line = request.trace.instructions[int(request.trace.requests().instruction[request.row])].line
    edges = tuple(edge for lane in request.lanes for edge in bank_edges(request, lane, ""))
    first, *others = wavefront_numbers(request, len(passes))
    numbers = (first, *counters, *others)
    frames = [Frame(sentence(request), (), (), edges, line=line, numbers=numbers)]
    frames += [wavefront_frame(request, k, passes, line) for k in range(len(passes))]
    grids = (lane_grid(request), banks, wavefront_grid(passes), tile_grid(request), flow_grid(request))
    return Picture(sentence(request), grids, tuple(frames), MEANS, tuple(flow_edges(request)))


def bank_edges(request: Request, lane: Lane, kind: str) -> list[Edge]:
    """Return the edges from a lane to the banks that have its element."""
    banks = sorted({word % BANK_COUNT for word in lane_words(request, lane)})
    return [Edge(("lanes", 0, lane.lane), ("banks", 0, bank), kind) for bank in banks]


def bank_label(bank: int, queue: list[int]) -> str:
    """Describe a bank."""
    if not queue:
        return f"bank {bank}, no lane wants a word of it"
    return f"bank {bank}, gives {len(queue)} {'word' if len(queue) == 1 else 'words, one after the other'}"


def wavefront_grid(passes: list[Wavefront]) -> Grid:
    """Draw the wavefronts in a row, each with the number of lanes that it serves."""
    cells = tuple(
        Cell(0, k, str(len(wavefront.lanes)), f"wavefront {k}, serves {format_lanes(wavefront.lanes)}", "", (f"w{k}",))
        for k, wavefront in enumerate(passes)
    )
    return Grid("wavefronts", "wavefronts, one after the other: lanes served", 1, len(cells), cells)


def wavefront_frame(request: Request, k: int, passes: list[Wavefront], line: int) -> Frame:
    """Return the frame of one wavefront: its lanes and its banks; all others are idle."""
    wavefront = passes[k]
    kinds = [(f"t{t}", SHARED if t in wavefront.lanes else IDLE) for t in range(WARP)]
    kinds += [(f"b{bank}", SHARED if bank in wavefront.words else IDLE) for bank in range(BANK_COUNT)]
    kinds += [(f"w{j}", CHOSEN if j == k else "") for j in range(len(passes))]
    served = {lane.element for lane in request.lanes if lane.lane in wavefront.lanes}
    kinds += [(f"c{lane.element}", SHARED if lane.element in served else "") for lane in request.lanes]
    busy = f"{len(wavefront.words)} {'bank gives a word' if len(wavefront.words) == 1 else 'banks give a word each'}"
    return Frame(
        f"Wavefront {k + 1} of {len(passes)}: {busy}; it serves {format_lanes(wavefront.lanes)}.",
        tuple(dict(kinds).items()),
        edges=tuple(
            edge
            for lane in request.lanes
            if lane.lane in wavefront.lanes
            for edge in bank_edges(request, lane, SHARED)
            if edge.end[2] in wavefront.words
        ),
        line=line,
        numbers=wavefront_numbers(request, k + 1),
    )


def wavefront_numbers(request: Request, count: int) -> Numbers:
    """Return numbers about the wavefronts so far."""
    return (
        (str(count), "wavefronts"),
        (str(request.counts["ideal_wavefronts"]), "at best"),
        (memory.row_pitch(request), "words in a row of the tile"),
    )


def tile_grid(request: Request) -> Grid:
    """Draw a part of the tile with elements that are read; each cell shows the bank of its first byte."""
    width, itemsize = request.info.shape[1], request.info.itemsize
    read = {lane.element for lane in request.lanes}
    first_row, first = divmod(min(read), width)
    first_row = min(first_row // WINDOW * WINDOW, ROWS - WINDOW)
    first = min(first // WINDOW * WINDOW, width - WINDOW)
    rows, columns = range(first_row, first_row + WINDOW), range(first, first + WINDOW)
    cells = []
    for down, row in enumerate(rows):
        for across, column in enumerate(columns):
            element = row * width + column
            bank = element * itemsize // BANK_BYTES % BANK_COUNT
            is_read = element in read
            label = f"tile[{row}, {column}], bank {bank}, {'read' if is_read else 'not read'}"
            links = (link(element), f"c{element}") if is_read else ()
            cells.append(Cell(down, across, str(bank), label, SHARED if is_read else "", links))
    title = f"tile[{rows[0]}:{rows[-1] + 1}, {first}:{first + WINDOW}] of {ROWS} x {width}: banks"
    return Grid("tile", title, WINDOW, WINDOW, tuple(cells), tuple(map(str, rows)), tuple(map(str, columns)))

"""Pictures of many devices: devices are rows, time runs to the right, and arrows are messages."""

from collections import defaultdict
from typing import NamedTuple

from minifuse.engines.cost import Event
from minifuse.engines.messages import Recv, Send, Work
from minifuse.engines.timeline import DeviceRow, Span, format_seconds

from .devices import BACKWARD_S, BUCKETS, FORWARD_S, LAYER_S, LETTERS, PIPELINES, RING, Seen, letters
from .picture import CHOSEN, IDLE, LOAD, OTHER, SHARED, STORE, Cell, Edge, Frame, Grid, Hull, Picture

WORK, SEND = "computes", "sends"
SLOTS = {BUCKETS: LAYER_S / 4} | dict.fromkeys(PIPELINES, min(FORWARD_S, BACKWARD_S))  # seconds of a column
OPENING = 2  # the round that is shown first

Held = dict[tuple[int, int], str]  # (device, part) -> whose arrays are in the sum that it holds


def picture(seen: Seen) -> Picture:
    """Draw a collective round by round, or lanes of computing and sending."""
    return lanes_picture(seen) if seen.subject in SLOTS else collective_picture(seen)


# Collectives.


class Message(NamedTuple):
    """A message of a collective, and what its receiver holds then."""

    event: Event
    to: int
    line: int
    sent: str
    held: str


def rounds(seen: Seen) -> list[list[Message]]:
    """Return the messages of each round: those that start at the same time."""
    sends = {r: iter([a for a in asked if isinstance(a.request, Send)]) for r, asked in seen.log.asked.items()}
    held = {rank: iter(arrays) for rank, arrays in seen.log.held.items()}
    found = defaultdict[float, list[Message]](list)
    for event in seen.timeline.messages:  # in the order of their starts
        asked, to = next(sends[event.rank]), event.to or 0
        assert isinstance(asked.request, Send)
        told = letters(asked.request.data), letters(next(held[to]))
        found[round(event.start, 12)].append(Message(event, to, asked.line, *told))
    return list(found.values())


def collective_picture(seen: Seen) -> Picture:
    """Draw what arrives on each device in each round, and, for a ring, all that each device holds."""
    found, everything = rounds(seen), LETTERS[: seen.devices]
    names = tuple(f"device {letter}" for letter in everything)
    time, arrows = time_grid(seen, found, names)
    held: Held = {(r, p): LETTERS[r] for r in range(seen.devices) for p in range(seen.devices)}
    cells = tuple(
        Cell(r, p, text, f"device {text}, part {p}", "", (place_link(r, p), f"p{p}")) for (r, p), text in held.items()
    )
    parts = tuple(f"part {p}" for p in range(seen.devices))
    grid = Grid("holds", "what each device holds", seen.devices, seen.devices, cells, names, parts, (), (4, 16))
    frames = [Frame("Each device has an array of its own, and needs the sum of all.", numbers=(("0", "rounds"),))]
    for k, messages in enumerate(found):
        held |= {(m.to, m.event.chunk): m.held for m in messages}
        frames.append(round_frame(seen, k, messages, held, arrows[k]))
    is_ring = seen.subject == RING
    return Picture(
        seen.rows.summary(),
        (grid, time) if is_ring else (time,),
        tuple(frames),
        ((LOAD, "is sent"), (STORE, "has arrived"), (SHARED, "the sum of all")),
        () if is_ring else tuple(edge for part in arrows for edge in part),
        first=min(OPENING, len(found)),
    )


def place_link(rank: int, part: int) -> str:
    """Return the link of a part on a device."""
    return f"h{rank}.{part}"


def time_grid(seen: Seen, found: list[list[Message]], names: tuple[str, ...]) -> tuple[Grid, list[tuple[Edge, ...]]]:
    """Draw what each device receives in each round, and return the arrows of each round."""
    is_ring = seen.subject == RING
    own = {message.event.rank: message.event.chunk for message in found[0]} if is_ring else {}
    held = {(rank, 0): (own.get(rank, 0), LETTERS[rank]) for rank in range(seen.devices)}
    arrows, last = list[tuple[Edge, ...]](), {rank: held[rank, 0] for rank in range(seen.devices)}
    for k, messages in enumerate(found, start=1):
        arrows.append(tuple(Edge(("time", m.event.rank, k - 1), ("time", m.to, k)) for m in messages))
        held |= {(m.event.rank, k - 1): last[m.event.rank] for m in messages}  # it still has it
        last |= {m.to: (m.event.chunk, m.held) for m in messages}
        held |= {(m.to, k): last[m.to] for m in messages}
    cells = []
    for (rank, k), (part, text) in sorted(held.items()):
        label = f"device {LETTERS[rank]}, {f'round {k}' if k else 'start'}: the sum of {', '.join(text)}"
        label += f" of part {part}" if is_ring else ""
        kind = SHARED if len(text) == seen.devices else ""
        cells.append(Cell(rank, k, f"{part}:{text}" if is_ring else text, label, kind, (f"t{rank}.{k}", f"p{part}")))
    title = "what arrives in each round: part:sum" if is_ring else "what each device has after a round"
    columns = ("start", *(f"round {k}" for k in range(1, len(found) + 1)))
    return Grid("time", title, seen.devices, len(columns), tuple(cells), names, columns, (), (24, 16)), arrows


def round_frame(seen: Seen, k: int, messages: list[Message], held: Held, arrows: tuple[Edge, ...]) -> Frame:
    """Return the step of a round: what is sent, what has arrived, and the sums that are complete."""
    kinds, flights, texts = {f"t{m.to}.{k + 1}": STORE for m in messages}, list[Edge](), list[tuple[str, str]]()
    if seen.subject == RING:
        kinds |= {place_link(*place): SHARED for place, text in held.items() if len(text) == seen.devices}
        kinds |= {place_link(m.event.rank, m.event.chunk): LOAD for m in messages}
        kinds |= {place_link(m.to, m.event.chunk): STORE for m in messages}
        texts = [(place_link(*place), text) for place, text in held.items() if text != LETTERS[place[0]]]
        ends = [("holds", m.event.rank, m.event.chunk) for m in messages], [("holds", m.to, m.event.chunk) for m in messages]
        flights = [Edge(start, end, LOAD, m.sent) for start, end, m in zip(*ends, messages, strict=True)]
    else:
        flights = [Edge(edge.start, edge.end, LOAD, m.sent) for edge, m in zip(arrows, messages, strict=True)]
    down = [edge for edge in flights if edge.start[1] < edge.end[1]]  # from the last to the first it would cross all others
    shown = [Edge(edge.start, edge.end, LOAD) for edge in (*arrows, *(down if seen.subject == RING else []))]
    first, n = messages[0], len(messages)
    sent = f"part {first.event.chunk}" if seen.subject == RING else "its array"
    does = f"adds it: {first.held}" if first.held != first.sent else "keeps it"
    others = f"; {n} messages at once" if n > 1 else ""
    sender, target = LETTERS[first.event.rank], LETTERS[first.to]
    sentence = f"Round {k + 1}: device {sender} sends {sent} ({first.sent}) to {target}, which {does}{others}."
    end = max(m.event.end for m in messages)
    nbytes = sum(event.nbytes for event in seen.timeline.messages if event.end <= end and event.rank == first.event.rank)
    numbers = (
        (f"{k + 1} of {len(rounds(seen))}", "rounds"),
        (f"{nbytes:,}", f"bytes sent by {sender}"),
        (format_seconds(end), "by the cost model"),
    )
    return Frame(
        sentence,
        tuple(kinds.items()),
        tuple(texts),
        edges=tuple(dict.fromkeys(shown)),
        flights=tuple(flights),
        line=first.line,
        numbers=numbers,
    )


# Lanes: pipelines, and buckets under the backward pass.


def lanes_picture(seen: Seen) -> Picture:
    """Draw what each device computes and sends in columns of equal time."""
    slot, has_sends = SLOTS[seen.subject], seen.subject == BUCKETS
    rows = [row for row in seen.rows.rows if row.kind == "work" or has_sends]
    columns = round(seen.timeline.seconds / slot + 0.49)
    cells = list[Cell]()
    for k, row in enumerate(rows):
        for column in range(columns):
            span = span_at(row, (column + 0.5) * slot)
            if span or row.kind == "work":
                cells.append(lane_cell(k, column, row, span, seen))
    names = tuple(f"{LETTERS[row.device]} {WORK if row.kind == 'work' else SEND}" for row in rows)
    title = f"a column is {format_seconds(slot)}: " + (
        "L: layer, number: bucket" if has_sends else "F: forward, B: backward"
    )
    heads = tuple(str(k) if not k % 4 else "" for k in range(columns))
    time = Grid("time", title, len(rows), columns, tuple(cells), names, heads, (), (0, 6))
    arrows = handovers(seen, rows, {(c.row, c.column): c for c in cells}, slot)
    grids = [time] if has_sends else [time, kept_grid(seen, rows)]
    frames = tuple(lane_frame(seen, rows, column, slot, arrows.get(column, ())) for column in range(columns))
    words = ((LOAD, "a layer" if has_sends else "forward"), (STORE, "backward"), (OTHER, "a bucket is sent"))
    edges = tuple(edge for found in arrows.values() for edge in found) if has_sends else ()
    return Picture(seen.rows.summary(), tuple(grids), frames, (*words, (IDLE, "idle")), edges, first=columns // 2)


def span_at(row: DeviceRow, seconds: float) -> Span | None:
    """Return what a device does at a time."""
    return next((span for span in row.spans if span.start <= seconds < span.end), None)


def lane_cell(k: int, column: int, row: DeviceRow, span: Span | None, seen: Seen) -> Cell:
    """Draw what a device does in a column of time."""
    device = f"device {LETTERS[row.device]}, column {column}"
    if span is None:
        return Cell(k, column, "", f"{device}: idle", IDLE)
    when = f"{format_seconds(span.start)} to {format_seconds(span.end)}"
    if row.kind != "work":
        return Cell(k, column, span.label, f"{device}: sends bucket {span.label}, {when}", OTHER, (f"p{span.label}",))
    piece = span.label[1:] if seen.subject in PIPELINES else str(bucket_of(seen, int(span.label[1:])))
    kind = STORE if span.label[0] == "B" else LOAD
    return Cell(k, column, span.label, f"{device}: {span.label}, {when}", kind, (f"p{piece}",))


def bucket_of(seen: Seen, layer: int) -> int:
    """Return the bucket that announces a layer: the first message of device a from then on."""
    [work] = [event for event in seen.timeline.work if event.rank == 0 and event.name == f"L{layer}"]
    later = [event for event in seen.timeline.messages if event.rank == 0 and event.start >= work.end - 1e-12]
    return min(later).chunk if later else 0


def handovers(
    seen: Seen, rows: list[DeviceRow], cells: dict[tuple[int, int], Cell], slot: float
) -> dict[int, tuple[Edge, ...]]:
    """Return the arrows of each column: from the work whose result is sent to what begins with it."""
    found, place = defaultdict[int, list[Edge]](list), {(row.device, row.kind): k for k, row in enumerate(rows)}
    for event in seen.timeline.messages:
        if event.rank >= seen.devices:  # a round of the ring
            continue
        column, device = round(event.start / slot), (event.to or 0) % seen.devices
        row = place[device, "send" if device == event.rank else "work"]
        label = str(event.chunk) if device == event.rank else f"{'F' if device > event.rank else 'B'}{event.chunk}"
        later = [c for (r, c), cell in cells.items() if r == row and c >= column and cell.text == label]
        if later:
            found[column].append(Edge(("time", place[event.rank, "work"], column - 1), ("time", row, min(later)), CHOSEN))
    return {column: tuple(edges) for column, edges in found.items()}


def kept_grid(seen: Seen, rows: list[DeviceRow]) -> Grid:
    """Draw how many micro-batches each stage keeps."""
    cells = tuple(
        Cell(k, 0, "0", f"device {LETTERS[row.device]}: micro-batches whose activations it keeps", "", (f"kept{k}",))
        for k, row in enumerate(rows)
    )
    return Grid("kept", "activations kept", len(rows), 1, cells, tuple(LETTERS[row.device] for row in rows), (), (), (0, 6))


def kept_at(row: DeviceRow, seconds: float) -> int:
    """Return the number of micro-batches whose activations a stage keeps: begun forward, not done backward."""
    begun = sum(span.label[0] == "F" and span.start <= seconds for span in row.spans)
    return begun - sum(span.label[0] == "B" and span.end <= seconds for span in row.spans)


def lane_frame(seen: Seen, rows: list[DeviceRow], column: int, slot: float, arrows: tuple[Edge, ...]) -> Frame:
    """Return the step of a column: what each device does, and the line at which device a is."""
    middle = (column + 0.5) * slot
    doing = {(row.device, row.kind): span for row in rows if (span := span_at(row, middle))}
    if seen.subject in PIPELINES:
        busy = ", ".join(f"{LETTERS[device]} runs {span.label}" for (device, _), span in doing.items())
        idle = "".join(LETTERS[row.device] for row in rows if (row.device, "work") not in doing)
        said = "; ".join(filter(None, [busy, f"{', '.join(idle)} idle" if idle else ""]))
    else:
        work, sent = doing.get((0, "work")), doing.get((0, "send"))
        parts = [f"computes {work.label}" if work else "has no gradients left to compute"]
        said = "each device " + " and ".join([*parts, *([f"sends bucket {sent.label}"] if sent else [])])
    texts = tuple((f"kept{k}", str(kept_at(row, middle))) for k, row in enumerate(rows)) if seen.subject in PIPELINES else ()
    idle_share = seen.rows.idle_share or 0.0
    numbers = (
        (format_seconds(column * slot), "time"),
        (f"{idle_share:.0%}", "idle in all"),
        (f"{max(seen.rows.bytes_sent):,}", "bytes a device sends"),
    )
    hull = Hull(("time", 0, column), len(rows), 1, CHOSEN)
    line = line_at(seen, middle)
    sentence = f"At {format_seconds(column * slot)}: {said}."
    return Frame(sentence, texts=texts, edges=arrows, hulls=(hull,), line=line, numbers=numbers)


def line_at(seen: Seen, seconds: float) -> int | None:
    """Return the line at which device a is: it computes or waits for a message, or, when it is done, sends."""
    for rank in (0, seen.devices):
        asked = seen.log.asked.get(rank, [])
        works = [k for k, found in enumerate(asked) if isinstance(found.request, Work if rank == 0 else Send)]
        events = [e for e in seen.timeline.events if e.rank == rank and (e.to is None) == (rank == 0)]
        for k, event in zip(works, events, strict=True):
            if event.start <= seconds < event.end:
                return asked[k].line
            if seconds < event.start:
                return asked[k - 1].line if isinstance(asked[k - 1].request, Recv) else asked[k].line
    return None

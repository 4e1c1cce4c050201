"""Map, zip, reduce: the elements that one cell of the output reads, in order, and the tree that combines them.

`fold_trace` traces the cell, `fold_tree` arranges its tree. `minifuse trace --cell` prints the same. Only a part of a large
input is drawn.
"""

from collections.abc import Iterable, Sequence

from minifuse.backends.python import PythonBackend
from minifuse.cli.cells import CAVEAT, POOL, format_range
from minifuse.core.wording import format_count
from minifuse.inspect.provenance import BACKENDS, CellRead, LaunchTrace

from .cited_facts import DERIVED, TRACED, Fact, Line
from .fold_trace import (
    CUSTOM_SIZE,
    MAX_DRAWN_ELEMENTS,
    MAX_FRAMES,
    SIZES,
    SUBJECTS,
    CellTrace,
    folded,
    sizes_of,
)
from .fold_tree import READ, Tree, build_tree, node_link
from .picture import CHOSEN, IDLE, LOAD, OTHER, SHARED, STORE, Cell, Edge, Frame, Grid, Picture, ribbon
from .sources import source_lines

__all__ = [
    "BACKENDS",
    "CUSTOM_SIZE",
    "MAX_DRAWN_ELEMENTS",
    "MAX_FRAMES",
    "SIZES",
    "SUBJECTS",
    "CellTrace",
    "command",
    "facts",
    "folded",
    "picture",
    "sizes_of",
    "source",
]

MAX_DRAWN_READS, MAX_FLIGHTS = 128, 24  # of a large input, and values that move at once
WORDS = (
    (LOAD, "read"),
    (IDLE, "the start"),
    (CHOSEN, "now"),
    (STORE, "the result"),
)
Text = tuple[tuple[int, str], ...]


def command(seen: CellTrace) -> str:
    """Return the command that prints the same."""
    operation, sizes = SUBJECTS[seen.subject], ",".join(map(str, seen.shape)) or '""'
    shapes = f"--shape {sizes}" + (
        f" --shape {','.join(map(str, seen.shape[1:])) or chr(34) * 2}" if operation.name == "add" else ""
    )
    dim = f" --dim {operation.dim}" if operation.dim is not None and seen.shape else ""
    return f"minifuse trace {operation.name} {shapes}{dim} --cell {seen.cell} --backend {seen.backend}"


# The source.


def texts_of(seen: CellTrace) -> list[Text]:
    """Return the text of each launch: its kernel, or the loop of the python backend."""
    return [
        tuple(ran.text_lines.items()) if ran.text_lines else find_loop({read.line for read in ran.reads})
        for ran in seen.origin.launches
    ]


def working_launches(seen: CellTrace) -> list[tuple[LaunchTrace, Text]]:
    """Return the launches that compute, each with its text; those that only copy if there are no others."""
    launches = list(zip(seen.origin.launches, texts_of(seen), strict=True))
    return [(ran, text) for ran, text in launches if any(map(ran.log.op_of, ran.ancestors))] or launches


def source(seen: CellTrace) -> list[Line]:
    """Return the kernels of all launches, or the loop of the python backend, with the reads of this cell at each line."""
    working = working_launches(seen)
    found, counts = dict[Text, None](), dict[Text, dict[int, dict[str, int]]]()
    for k, (ran, text) in enumerate(working, start=1):
        kind, now = f"launch {k}" if len(working) > 1 else "reads", dict[int, int]()
        for read in ran.reads:
            now[read.line] = now.get(read.line, 0) + 1
        found[text] = None
        at = counts.setdefault(text, {})
        for line, count in now.items():
            at.setdefault(line, {})[kind] = count
    return [
        Line(shift + n, line, tuple(counts[text].get(n, {}).items())) for text, shift in shifts(found) for n, line in text
    ]


def shifts(texts: Iterable[Text]) -> list[tuple[Text, int]]:
    """Return what is added to the line numbers of each text, so that no two lines have one number."""
    found, used = list[tuple[Text, int]](), set[int]()
    for text in texts:
        shift = max(used) if used.intersection(n for n, _ in text) else 0
        used |= {shift + n for n, _ in text}
        found.append((text, shift))
    return found


def shown_line(seen: CellTrace, launch: int, number: int) -> int | None:
    """Return the number in `source` of a line of a launch; None if it is not shown."""
    text = dict(zip(seen.origin.launch_numbers, texts_of(seen), strict=True)).get(launch, ())
    shift = dict(shifts(dict.fromkeys(text for _, text in working_launches(seen)))).get(text)
    return shift + number if shift is not None and number in dict(text) else None


def find_loop(lines: set[int]) -> Text:
    """Return the loop of the python backend that contains these lines."""
    loops = [source_lines(loop) for loop in (PythonBackend.map, PythonBackend.zip, PythonBackend.reduce)]
    return next((tuple((x.number, x.text) for x in loop) for loop in loops if lines & {x.number for x in loop}), ())


# The picture.


def picture(seen: CellTrace) -> Picture:
    """Draw the inputs, and below them the tree from the elements read to the result, with a frame for each turn and row."""
    if not seen.cells:
        grids = [input_grid(seen, name, {}) for name in seen.arrays]
        return Picture(sentence(seen), (*grids, Grid("out0", "out0 has no cells", 1, 1, ())))
    tree = build_tree(seen.origin.tree, seen.stages, [*seen.values[:-1], seen.result], seen.backend == "cuda")
    links = tree.link_of_element
    grids = [partial_input_grid(seen, links)] if seen.is_large else [input_grid(seen, name, links) for name in seen.arrays]
    steps, words = frames(seen, tree, grids), (*WORDS, (OTHER, "in a register" if tree.has_threads else "so far"))
    return Picture(sentence(seen), (*grids, tree.grid(tree_title(seen, tree))), tuple(steps), words, first=len(steps) - 1)


def tree_title(seen: CellTrace, tree: Tree) -> str:
    """Return the title of the tree, with what is not drawn."""
    if tree.is_chain:
        return f"out0, cell {seen.cell}: " + (
            f"the first {len(tree.rows[0].nodes)} reads" if tree.omitted else "step by step"
        )
    return f"out0, cell {seen.cell}: " + ("the last steps; the rows above are too wide" if tree.omitted else "a tree")


def reader_name(seen: CellTrace, read: CellRead) -> str:
    """Describe the thread or loop that reads."""
    if seen.backend == "cuda":
        several = len(seen.origin.launches[0].blocks_run) > 1
        return f"thread {read.thread[1]}" + f" of block {read.thread[0]}" * several
    return "the loop"


def read_cell(
    seen: CellTrace, name: str, element: int, reads: list[tuple[int, CellRead]], links: dict[tuple[str, int], str]
) -> Cell:
    """Draw an element of an input."""
    columns = seen.shape[-1] if len(seen.shape) > 1 and name == "in0" else max(len(seen.arrays[name]), 1)
    place = f"row {element // columns}, column {element % columns}" if name == "in0" else f"element {element}"
    text = f"{seen.arrays[name][element]:g}"
    where, own = f"{name}, {place}, value {text}", f"{name}.{element}"
    if not reads:
        return Cell(0, 0, text, f"{where}: not read for this cell", "", (own,))
    order, read = reads[0]
    words = (
        f"read by {reader_name(seen, read)}, its turn {read.read_index + 1}"
        if seen.backend == "cuda"
        else f"read number {order}"
    )
    return Cell(0, 0, text, f"{where}: {words}", LOAD, tuple(dict.fromkeys((own, links.get((name, element), own)))))


def input_grid(seen: CellTrace, name: str, links: dict[tuple[str, int], str]) -> Grid:
    """Draw all elements of an input."""
    read, size = seen.by_element, len(seen.arrays[name])
    cells = [read_cell(seen, name, e, read.get((name, e), []), links) for e in range(size)]
    return ribbon(name, name if size else f"{name} has no elements", cells, max((1, *seen.shape[-1:])))


def partial_input_grid(seen: CellTrace, links: dict[tuple[str, int], str]) -> Grid:
    """Draw the first elements of a large input that are read."""
    read = seen.by_element
    shown = sorted(read)[:MAX_DRAWN_READS]
    cells = [read_cell(seen, name, e, read[name, e], links) for name, e in shown]
    of = f", for piece {seen.piece} of {seen.pieces}" if seen.pieces else ""
    title = f"in0: {len(cells):,} of {len(read):,} reads{of}"
    return ribbon("in0", title, cells, 32)


def frames(seen: CellTrace, tree: Tree, grids: Sequence[Grid]) -> list[Frame]:
    """Return a frame for the start, one for each turn of reads, and one for each row of the tree; the last shows all."""
    cell_at = {cell.links[0]: (grid.name, cell.row, cell.column) for grid in grids for cell in grid.cells}
    at_node = {
        (tree.provenance.nodes[k].array, tree.provenance.nodes[k].element): c for c, k in enumerate(tree.rows[0].nodes)
    }
    turns = seen.turns
    made, now = dict[tuple[int, int], int](), 0  # the frame in which a node appears
    for now, (_, reads) in enumerate(turns, start=1):
        for read in reads:
            if (column := at_node.get((read.array, read.element))) is not None:
                made[0, column] = now
    for r, row in enumerate(tree.rows):
        is_with_reads = row.title == READ or (tree.is_chain and r < len(tree.rows) - 1)
        now += not is_with_reads
        for c in range(len(row.nodes)):
            made.setdefault((r, c), max((made[part] for part in tree.parts(r, c)), default=0) if is_with_reads else now)
    found = [frame_at(tree, made, 0, f"Cell {seen.cell} of the output, {seen.subject}: play to see it made.", seen)]
    read_at = {f"{r.array}.{r.element}": k for k, (_, reads) in enumerate(turns, start=1) for r in reads}
    for k, (title, reads) in enumerate(turns, start=1):
        kinds = {link: CHOSEN if at == k else "" for link, at in read_at.items() if at >= k and link in cell_at}
        flights = [
            Edge(cell_at[f"{name}.{e}"], tree.place(0, c), LOAD, tree.text(0, c))
            for (name, e), c in at_node.items()
            if made[0, c] == k and f"{name}.{e}" in cell_at
        ]
        line = shown_line(seen, reads[0].launch, reads[0].line)
        found.append(
            frame_at(tree, made, k, f"{title}: {who_reads(seen, reads)}.", seen, kinds, flights[:MAX_FLIGHTS], line)
        )
    for k in range(len(found), now + 1):
        r = next(r for r, c in made if made[r, c] == k)
        node = tree.provenance.nodes[tree.rows[r].nodes[0]]
        flights = [edge for c in range(len(tree.rows[r].nodes)) for edge in flights_into(tree, r, c)]
        line = shown_line(seen, node.launch, node.line)
        if k == now:
            line = store_line(seen)
        said = sentence(seen) if k == now else row_sentence(seen, tree, r)
        found.append(frame_at(tree, made, k, said, seen, {}, flights[:MAX_FLIGHTS], line))
    return found


def frame_at(
    tree: Tree,
    made: dict[tuple[int, int], int],
    now: int,
    said: str,
    seen: CellTrace,
    kinds: dict[str, str] | None = None,
    flights: Sequence[Edge] = (),
    line: int | None = None,
) -> Frame:
    """Return the frame in which some nodes appear: later ones are empty, and edges lead to those that are made."""
    later = [node_link(*at) for at, frame in made.items() if frame > now]
    fresh = {node_link(r, c): CHOSEN for (r, c), frame in made.items() if frame == now and 0 < r < len(tree.rows) - 1}
    edges = [
        edge
        for (r, c), frame in made.items()
        if frame <= now
        for edge in tree.edges_into(r, c, CHOSEN if frame == now else "")
    ]
    rows = {r for r, _ in made if tree.rows[r].title != READ}
    done = sum(all(frame <= now for (r, _), frame in made.items() if r == row) for row in rows)
    reads = sum(len(turn) for _, turn in seen.turns[:now])
    return Frame(
        said,
        tuple((dict.fromkeys(later, "") | fresh | (kinds or {})).items()),
        tuple((link, "") for link in later),
        tuple(edges),
        (),
        tuple(flights),
        line,
        ((f"{reads:,} of {len(seen.reads):,}", "elements read"), (f"{done} of {len(rows)}", "steps done")),
    )


def store_line(seen: CellTrace) -> int | None:
    """Return the line at which the last launch stored to global memory, if it ran in the interpreter."""
    trace = seen.origin.launches[-1].trace if seen.origin.launches else None
    if trace is None:
        return None
    spaces = [info.space for info in trace.arrays]
    stores = [k for k, kind in enumerate(trace.events.kind) if kind == 1 and spaces[trace.events.array[k]] == "global"]
    line = trace.instructions[trace.events.instruction[stores[-1]]].line if stores else 0
    return shown_line(seen, seen.origin.launch_numbers[-1], line)


def flights_into(tree: Tree, row: int, column: int) -> list[Edge]:
    """Return the values that move to a node from its parts."""
    return [
        Edge(tree.place(*part), tree.place(row, column), tree.rows[row].kind, tree.text(*part))
        for part in tree.parts(row, column)
    ]


def who_reads(seen: CellTrace, reads: Sequence[CellRead]) -> str:
    """Describe the reads of a frame."""
    names = ", ".join(f"{read.array}[{read.element}]" for read in reads[:4])
    names += f" and {len(reads) - 4} more" if len(reads) > 4 else ""
    count = len({read.thread for read in reads})
    by = f"{count} thread{'s read' if count > 1 else ' reads'}" if seen.backend == "cuda" else "the loop reads"
    return f"{by} {names}"


def row_sentence(seen: CellTrace, tree: Tree, r: int) -> str:
    """Describe a step in one sentence."""
    row, count = tree.rows[r], len(tree.rows[r].nodes)
    left = f"{count} number{'s are' if count != 1 else ' is'} left"
    barriers = any(ran.trace is not None and ran.trace.barriers for ran in seen.origin.launches)
    waits = "; a barrier waits for all" if row.kind == SHARED and barriers else ""
    return f"{row.title[0].upper()}{row.title[1:]}{waits}: {left}."


def sentence(seen: CellTrace) -> str:
    """Summarize the computation of the cell."""
    if not seen.cells:
        return f"An input of shape {seen.shape} gives an output without cells, so nothing is launched and nothing is read."
    reads = seen.origin.reads
    count = len({(read.array, read.element) for read in reads})
    if not count:
        return f"For cell {seen.cell} of the output nothing is read: it is {seen.result:g}, what no elements add up to."
    readers = len({(read.launch, read.thread) for read in reads})
    by = f"by {format_count(readers, 'thread')}" if seen.backend == "cuda" else "by a loop, one after the other"
    steps = len(seen.stages) - 1
    tail = f", and {steps} steps make one number of them" if steps and not seen.pieces else ""
    if seen.pieces:
        tail = f", in {seen.pieces} pieces, and a second launch makes one number of their results"
    return f"For cell {seen.cell} of the output {count:,} element{'s are' if count != 1 else ' is'} read {by}{tail}."


# Facts.


def facts(seen: CellTrace) -> list[Fact]:
    """Return the reads, the depth of the tree, and the result."""
    origin, reads = seen.origin, seen.origin.reads
    if not seen.cells:
        return [Fact("cells of the output", 0, DERIVED, f"of an input of shape {seen.shape}")]
    order = ", ".join(f"{read.array}[{read.element}]" for read in reads[:24]) or "nothing"
    known = [
        Fact("reads", len(reads), TRACED, "for this cell"),
        Fact("in order", order, TRACED, "the first 24; threads of a GPU read at the same time"),
        Fact(
            "one after the other",
            max((r.read_index for r in reads), default=-1) + 1,
            TRACED,
            "turns: the longest row of reads",
        ),
        Fact("depth of the tree", origin.tree.depth(), DERIVED, "operators that wait for one another"),
    ]
    if seen.backend == "cuda":
        known += gpu_facts(seen)
    if seen.backend == "parallel":
        known += [
            Fact(
                "chunks",
                ", ".join(f"{format_range(r.blocks_run)} of {r.block_count}" for r in origin.launches),
                DERIVED,
                POOL,
            )
        ]
        known += [Fact("the text ran", "as Python", TRACED, CAVEAT)]
    if seen.pieces:
        known.append(Fact("pieces", seen.pieces, TRACED, f"the picture has piece {seen.piece}, and the second stage"))
    if seen.stored is not None:
        known.append(Fact("the result", f"{seen.stored:g}", TRACED, f"NumPy says {seen.expected:g}"))
    known.append(Fact("this order in float64", f"{seen.values[-1]:g}", DERIVED, f"NumPy says {seen.expected:g}"))
    return known


def gpu_facts(seen: CellTrace) -> list[Fact]:
    """Return the facts that only a GPU has."""
    origin = seen.origin
    makers = {(r.launch, r.thread[0]) for r in origin.reads}
    launches = [(k, ran.trace) for k, ran in enumerate(origin.launches) if ran.trace is not None]
    shuffles = sum(c.kind.startswith("shfl") and (k, c.block) in makers for k, trace in launches for c in trace.collectives)
    barriers = sum((k, b.block) in makers for k, trace in launches for b in trace.barriers)
    found = [
        Fact("threads that read", len({(r.launch, r.thread) for r in origin.reads}), TRACED),
        Fact("shuffles", shuffles, TRACED, "of all warps of the blocks that read"),
        Fact("barriers", barriers, TRACED, "of these blocks"),
    ]
    for k, ran in enumerate(origin.launches, start=1):
        if ran.block_count > 1:
            found.append(
                Fact(f"blocks of launch {k}", f"{format_range(ran.blocks_run)} of {ran.block_count}", TRACED, "that ran")
            )
    return found

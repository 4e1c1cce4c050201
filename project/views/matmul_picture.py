"""The picture of a matrix product: b above out, a to its left, so that a row and a column meet at their element.

The corner that this leaves free has the shared memory of one block. Each frame is a step of this block.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minifuse.core.errors import SimtError
from minifuse.simt.diagnostics import unravel_xyz

from . import memory
from .matmul import MatmulTrace, block_count
from .matmul_steps import (
    BARRIER,
    FILL,
    MULTIPLY,
    READ,
    WRITE,
    Access,
    Race,
    Step,
    block_area,
    block_of,
    block_steps,
    outputs_of,
    thread_of,
)
from .picture import CHOSEN, LOAD, PATH, RACE, SHARED, STORE, WRONG, Cell, Edge, Frame, Grid, Hull, Picture, Place

TILES = "tiles"  # the grid of shared memory
FLYING = 32  # lanes of a warp: the values of the other warps do not fly
MEANS = (
    (LOAD, "is read"),
    (PATH, "row and column of the chosen element"),
    (CHOSEN, "the chosen element"),
    (WRONG, "wrong"),
    (RACE, "race"),
)


def link(array: str, element: int) -> str:
    """Return the link of an element, which gives it its kind and text in a step."""
    return f"{array}{element}"


def cause(output: int) -> str:
    """Return the link between an element of out and all that it is computed from."""
    return f"o{output}"


def output_of_link(text: str | None) -> int | None:
    """Return the element of out that a link belongs to."""
    number = (text or "").removeprefix("out")
    return int(number) if (text or "").startswith("out") and number.isdecimal() else None


def format_number(value: float) -> str:
    """Format a value; nobody knows what memory has that was not written."""
    return "?" if np.isnan(value) else f"{value:g}"


def count_elements(count: int) -> str:
    """Format a number of elements."""
    return f"{count} {'element' if count == 1 else 'elements'}"


@dataclass(frozen=True)
class Scene:
    """One block of a product, and the chosen element of out among those that it computes."""

    traced: MatmulTrace
    block: int
    output: int

    @cached_property
    def steps(self) -> list[Step]:
        """The steps of the block."""
        return block_steps(self.traced, self.block)

    @cached_property
    def area(self) -> tuple[range, range]:
        """Rows and columns of out that the block computes."""
        return block_area(self.traced, self.block)

    @cached_property
    def expected(self) -> np.ndarray:
        """The product by NumPy."""
        result: np.ndarray = self.traced.a @ self.traced.b
        return result

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The shapes of the tiles in shared memory."""
        arrays = {info.name: info.shape for info in self.traced.trace.arrays if info.space == "shared"}
        return {name: (shape[0], shape[1]) for name, shape in sorted(arrays.items())}

    @property
    def thread(self) -> int:
        """The thread of the chosen element."""
        return thread_of(self.traced, self.block, self.output)

    @property
    def index(self) -> tuple[int, int]:
        """Row and column of the chosen element."""
        row, column = divmod(self.output, self.traced.sizes[1])
        return row, column

    def place(self, array: str, element: int) -> Place:
        """Return the cell of an element of a matrix or of a tile."""
        if array not in self.shapes:
            shape = {"a": self.traced.a, "b": self.traced.b, "out": self.traced.out}[array].shape
            return (array, element // shape[1], element % shape[1])
        row, column = divmod(element, self.shapes[array][1])
        return (TILES, row, column + (self.shapes["tile_a"][1] + 1 if array == "tile_b" else 0))

    def where(self, output: int) -> str:
        """Describe an element of out."""
        row, column = divmod(output, self.traced.sizes[1])
        return f"out[{row}, {column}]"

    def partial(self, output: int, count: int) -> float:
        """Return what the sum of an element should be after so many products."""
        row, column = divmod(output, self.traced.sizes[1])
        return float(self.traced.a[row, :count] @ self.traced.b[:count, column])


def picture(traced: MatmulTrace, block: int = 0, output: int | None = None) -> Picture:
    """Draw a, b, out and shared memory; each frame is a step of the block, the last one shows all blocks.

    `output` is the chosen element of out; if the block does not compute it, another one is chosen.
    """
    memory.check_range("block", block, 0, block_count(traced) - 1)
    rows, columns = block_area(traced, block)
    row, column = (-1, -1) if output is None else divmod(output, traced.sizes[1])
    if row not in rows or column not in columns:
        row, column = rows[min(2, len(rows) - 1)], columns[min(1, len(columns) - 1)]
    scene = Scene(traced, block, row * traced.sizes[1] + column)
    tiles = tile_grids(scene)
    grids = (*tiles, matrix_grid(scene, "a"), matrix_grid(scene, "b"), matrix_grid(scene, "out"))
    layout = ((TILES if tiles else "", "b"), ("a", "out"))
    frames = tuple(make_frames(scene))
    return Picture(
        summarize(scene), grids, frames, MEANS, hulls=tuple(static_hulls(scene)), layout=layout, first=first_step(scene)
    )


def summarize(scene: Scene) -> str:
    """Summarize the picture."""
    (rows, columns, depth), traced = scene.traced.sizes, scene.traced
    ends = "" if traced.trace.is_complete else " The launch ended before its end: see the facts."
    return (
        f"out ({rows}, {columns}) = a ({rows}, {depth}) @ b ({depth}, {columns}) by {traced.name}: block {scene.block} of "
        f"{block_count(traced)} computes {count_elements(len(scene.area[0]) * len(scene.area[1]))}.{ends}"
    )


def first_step(scene: Scene) -> int:
    """Return a step that teaches: of a fault its last frame, of a race the first step that meets one, else a product."""
    steps, touched = scene.steps, set[tuple[int, str, int]]()
    if not scene.traced.trace.is_complete:
        return len(steps) + 1
    for k, step in enumerate(steps):
        if any((step.epoch, race.array, race.element) in touched for race in step.races):
            return k + 1
        touched |= {(step.epoch, race.array, race.element) for race in step.races}
    products = [k + 1 for k, step in enumerate(steps) if step.kind == MULTIPLY]
    return products[min(1, len(products) - 1)]


def matrix_grid(scene: Scene, name: str) -> Grid:
    """Draw a matrix with its values; out is computed step by step."""
    row, column = scene.index
    values = {"a": scene.traced.a, "b": scene.traced.b, "out": scene.traced.out}[name]
    cells = []
    for i, j in np.ndindex(*values.shape):
        element = i * values.shape[1] + j
        number = "" if name == "out" else format_number(float(values[i, j]))
        is_used = {"a": i == row, "b": j == column, "out": False}[name]
        kind = CHOSEN if name == "out" and element == scene.output else PATH if is_used else ""
        links = (link(name, element), *map(cause, results_of(scene, name, i, j)))
        told = f" = {number}" if number else f", computed by block {block_of(scene.traced, element)}"
        cells.append(Cell(i, j, number, f"{name}[{i}, {j}]{told}", kind, links))
    names = tuple(map(str, range(values.shape[0]))), tuple(map(str, range(values.shape[1])))
    rows, columns = values.shape
    return Grid(name, f"{name}: {rows} x {columns}", rows, columns, tuple(cells), *names)


def results_of(scene: Scene, name: str, row: int, column: int) -> list[int]:
    """Return the elements of out that are computed from an element of a matrix."""
    rows, columns, _ = scene.traced.sizes
    if name == "out":
        return [row * columns + column]
    return [row * columns + j for j in range(columns)] if name == "a" else [i * columns + column for i in range(rows)]


def tile_grids(scene: Scene) -> list[Grid]:
    """Draw the two tiles in shared memory, side by side, if the kernel has them."""
    if not scene.shapes:
        return []
    cells, names = [], dict[int, str]()
    for name, shape in scene.shapes.items():
        for i, j in np.ndindex(*shape):
            _, down, across = scene.place(name, i * shape[1] + j)
            cells.append(Cell(down, across, "", f"{name}[{i}, {j}]", SHARED, (link(name, i * shape[1] + j),)))
        names[scene.place(name, (shape[1] - 1) // 2)[2]] = name
    height, count = max(shape[0] for shape in scene.shapes.values()), 1 + max(cell.column for cell in cells)
    title = f"shared memory of block {scene.block}"
    return [Grid(TILES, title, height, count, tuple(cells), column_names=tuple(names.get(k, "") for k in range(count)))]


def static_hulls(scene: Scene) -> Iterator[Hull]:
    """Generate the frames around blocks, around the chosen element, and around the tiles."""
    fault = None if scene.traced.trace.is_complete else scene.traced.trace.hazards()[0].block
    for block in range(block_count(scene.traced)):
        rows, columns = block_area(scene.traced, block)
        is_at_fault = fault == unravel_xyz(block, scene.traced.trace.grid)
        kind = RACE if is_at_fault else ""
        yield Hull(("out", rows.start, columns.start), len(rows), len(columns), kind, "ended here" if is_at_fault else "")
    rows, columns = scene.area
    yield Hull(("out", rows.start, columns.start), len(rows), len(columns), CHOSEN)
    yield Hull(("out", *scene.index), 1, 1, CHOSEN)
    for name, shape in scene.shapes.items():
        yield Hull(scene.place(name, 0), *shape, SHARED)


def make_frames(scene: Scene) -> Iterator[Frame]:
    """Generate the first frame, a frame for each step, and the last frame."""
    row, column = scene.index
    yield Frame(
        f"Block {scene.block} of {block_count(scene.traced)} computes a square of out. {scene.where(scene.output)} is row "
        f"{row} of a times column {column} of b.",
        tuple(show_tiles(scene, None)[0].items()),
        edges=tuple(path_edges(scene)),
        line=scene.traced.kernel.__code__.co_firstlineno,
        numbers=count_numbers(scene, 0),
    )
    for k in range(len(scene.steps)):
        yield step_frame(scene, k)
    yield last_frame(scene)


def step_frame(scene: Scene, k: int) -> Frame:
    """Return the frame of one step."""
    step = scene.steps[k]
    kinds, texts = show_tiles(scene, step)
    kinds |= operand_kinds(scene, step)
    for output, (total, count) in step.totals.items():
        texts[link("out", output)] = format_number(total)
        if count and total != scene.partial(output, count):
            kinds[link("out", output)] = WRONG
    if step.kind == WRITE:
        for access in step.stores("out"):
            texts[link("out", access.element)] = format_number(access.value)
            is_right = access.value == scene.expected.flat[access.element]
            kinds[link("out", access.element)] = STORE if is_right else WRONG
    kinds |= {link(race.array, race.element): RACE for race in step.races}
    return Frame(
        say_step(scene, k),
        tuple(kinds.items()),
        tuple(texts.items()),
        tuple(step_edges(scene, k)),
        tuple(step_hulls(scene, k)),
        tuple(step_flights(scene, step)),
        step.line,
        count_numbers(scene, k + 1),
    )


def show_tiles(scene: Scene, step: Step | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return kinds and texts of shared memory after a step; what was not written is empty."""
    kinds, texts, tiles = dict[str, str](), dict[str, str](), step.tiles if step else {}
    for name, shape in scene.shapes.items():
        for element in range(shape[0] * shape[1]):
            if (name, element) in tiles:
                texts[link(name, element)] = format_number(tiles[name, element])
            else:
                kinds[link(name, element)] = ""
    return kinds, texts


def operand_kinds(scene: Scene, step: Step) -> dict[str, str]:
    """Return the kinds of the elements that a step reads, or writes to a tile, and of the chosen row and column."""
    kinds = {link(access.array, access.element): LOAD for access in step.loads("a", "b", "tile_a", "tile_b")}
    kinds |= {link(access.array, access.element): STORE for access in step.stores("tile_a", "tile_b")}
    if step.kind in (MULTIPLY, READ):
        row, column = scene.index[0] - scene.area[0].start, scene.index[1] - scene.area[1].start
        for name, (down, across) in scene.shapes.items():
            own = range(row * across, (row + 1) * across) if name == "tile_a" else range(column, down * across, across)
            kinds = {link(name, element): PATH for element in own} | kinds
    return kinds


def path_edges(scene: Scene) -> Iterator[Edge]:
    """Generate the edges from the chosen row and the chosen column to their element."""
    (row, column), depth = scene.index, scene.traced.sizes[2]
    yield Edge(("a", row, depth - 1), ("out", row, column), CHOSEN)
    yield Edge(("b", depth - 1, column), ("out", row, column), CHOSEN)


def step_edges(scene: Scene, k: int) -> Iterator[Edge]:
    """Generate the edges of the chosen thread in a step, and those of one race."""
    step, out = scene.steps[k], scene.place("out", scene.output)
    own = step.of(scene.thread)
    raced = chosen_race(scene, step)
    if step.kind == FILL:
        for source, target in zip([x for x in own if not x.is_store], [x for x in own if x.is_store], strict=False):
            yield Edge(scene.place(source.array, source.element), scene.place(target.array, target.element), LOAD)
    elif step.kind == MULTIPLY:
        for access in chosen_operands(scene, k):
            if raced is None or (raced.array, raced.element) != (access.array, access.element):
                kind = SHARED if access.array in scene.shapes else LOAD
                yield Edge(scene.place(access.array, access.element), out, kind)
    elif step.kind == WRITE:
        yield from (edge for edge in moved_sums(scene, step) if edge.start == out)
    else:
        yield from path_edges(scene)
    if raced is not None:
        cell = scene.place(raced.array, raced.element)
        writer, reader = thread_output(scene, raced.writer), thread_output(scene, raced.reader)
        if writer is not None:
            yield Edge(scene.place("out", writer), cell, RACE)
        if reader is not None:
            yield Edge(cell, scene.place("out", reader), RACE)


def thread_output(scene: Scene, thread: int) -> int | None:
    """Return the first element of out that a thread computes: the chosen one, if it is the chosen thread."""
    return scene.output if thread == scene.thread else outputs_of(scene.traced, scene.block, thread)[0]


def chosen_race(scene: Scene, step: Step) -> Race | None:
    """Return a race of this step: one in which the chosen thread reads or, else, writes, if there is one."""
    own = [race for race in step.races if scene.thread in (race.reader, race.writer)]
    own.sort(key=lambda race: race.reader != scene.thread)
    return next(iter([*own, *step.races]), None)


def chosen_operands(scene: Scene, k: int) -> list[Access]:
    """Return the loads of the two numbers that the chosen thread multiplies in a step for the chosen element."""
    nth = outputs_of(scene.traced, scene.block, scene.thread).index(scene.output)
    before = [x for step in scene.steps[: k + 1] if step.kind in (MULTIPLY, READ) for x in step.of(scene.thread)]
    from_a = [x for x in scene.steps[k].of(scene.thread) if x.array in ("a", "tile_a")]
    return [from_a[nth], [x for x in before if x.array in ("b", "tile_b")][-1]]


def step_hulls(scene: Scene, k: int) -> Iterator[Hull]:
    """Generate frames around the elements of a and b that are in use: those that the last loads of each read."""
    if scene.steps[k].kind == WRITE:
        return
    for name in ("a", "b"):
        loads = [found for step in scene.steps[: k + 1] if (found := step.loads(name))]
        if loads:
            places = [scene.place(name, access.element) for access in loads[-1]]
            rows, columns = [place[1] for place in places], [place[2] for place in places]
            height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
            yield Hull((name, min(rows), min(columns)), height, width, LOAD)


def step_flights(scene: Scene, step: Step) -> Iterator[Edge]:
    """Generate the values that move from matrices into the tiles, or to an element of out that is not the thread's own."""
    if step.kind == WRITE:
        yield from moved_sums(scene, step)
    if step.kind == FILL:
        loaded = {x.thread: x for x in step.accesses if not x.is_store and x.thread // FLYING == scene.thread // FLYING}
        for target in step.stores("tile_a", "tile_b"):
            if source := loaded.get(target.thread):
                start, end = scene.place(source.array, source.element), scene.place(target.array, target.element)
                yield Edge(start, end, LOAD, format_number(source.value))


def moved_sums(scene: Scene, step: Step) -> Iterator[Edge]:
    """Generate the stores of a step to other elements of out than those that the thread has to compute."""
    for thread in range(scene.traced.trace.threads):
        meant = [output for output in outputs_of(scene.traced, scene.block, thread) if output is not None]
        for output, access in zip(meant, step.of(thread), strict=False):
            if output != access.element:
                start, end = scene.place("out", output), scene.place("out", access.element)
                yield Edge(start, end, STORE, format_number(access.value))


def say_step(scene: Scene, k: int) -> str:
    """Say in one sentence what a step does."""
    step, where = scene.steps[k], scene.where(scene.output)
    if raced := chosen_race(scene, step):
        writer, reader = (
            f"the thread {f'of {scene.where(out)}' if out is not None else 'outside'}"
            for out in (thread_output(scene, thread) for thread in (raced.writer, raced.reader))
        )
        row, column = divmod(raced.element, scene.shapes[raced.array][1])
        element = f"{raced.array}[{row}, {column}]"
        if raced.is_read_first:
            return f"Race: {reader} reads {element}, {writer} overwrites it, and no barrier is between."
        return f"Race: {writer} writes {element}, {reader} reads it, and no barrier is between."
    if step.kind == FILL:
        [name] = {access.array for access in step.accesses if access.is_store}
        count, source = len(step.loads("a", "b")), name.removeprefix("tile_")
        return f"Together, {scene.traced.trace.threads} threads copy {count_elements(count)} of {source} into {name}."
    if step.kind == MULTIPLY:
        x, y = (format_number(access.value) for access in chosen_operands(scene, k))
        total, source = step.totals[scene.output][0], "shared" if scene.shapes else "global"
        return f"{where} adds {x} x {y}, both from {source} memory: its sum is now {format_number(total)}."
    if step.kind == READ:
        return "Each thread reads one element of tile_b, for all elements of out that it computes."
    if step.kind == BARRIER:
        is_full = scene.steps[k - 1].kind == FILL
        until = "until both tiles are full" if is_full else "until all have used these tiles"
        return f"Barrier: none of the {scene.traced.trace.threads} threads goes on {until}."
    stored = step.stores("out")
    wrong = sum(access.value != scene.expected.flat[access.element] for access in stored)
    return f"The block writes its {count_elements(len(stored))} of out; wrong are {wrong or 'none'}."


def count_numbers(scene: Scene, count: int) -> tuple[tuple[str, str], ...]:
    """Return numbers about the first steps of the block."""
    steps = scene.steps[:count]
    loads = sum(len(step.loads("a", "b")) for step in steps)
    outputs = len(scene.area[0]) * len(scene.area[1])
    return (
        (str(loads), "loads so far"),
        (f"{loads / outputs:.3g}", "per element of out"),
        (str(2 * scene.traced.sizes[2]), "without tiles"),
        (str(sum(step.sectors for step in steps)), "sectors"),
    )


def last_frame(scene: Scene) -> Frame:
    """Return the frame after all blocks: all of out, with what is wrong; or the fault that ended the launch."""
    traced = scene.traced
    events = traced.trace.events
    is_out = np.array([info.name == "out" for info in traced.trace.arrays], bool)
    base, itemsize = next((info.base, info.itemsize) for info in traced.trace.arrays if info.name == "out")
    written = {*((events.address[is_out[events.array]] - base) // itemsize).tolist()}
    kinds, texts = show_tiles(scene, scene.steps[-1] if scene.steps else None)
    texts |= {link("out", k): format_number(float(traced.out.flat[k])) for k in sorted(written)}
    wrong = [k for k in range(traced.out.size) if k in written and traced.out.flat[k] != scene.expected.flat[k]]
    kinds |= {link("out", k): WRONG for k in wrong}
    shown = tuple(kinds.items()), tuple(texts.items())
    if not traced.trace.is_complete:
        fault: SimtError = traced.trace.hazards()[0]
        index = ", ".join(map(str, fault.element or ()))
        text = f"The launch ended: a thread of the framed block used {fault.array}[{index}], which does not exist."
        return Frame(text, *shown, line=fault.lines[0][1], numbers=count_numbers(scene, len(scene.steps)))
    blocks = block_count(traced)
    found = f"{len(wrong)} of {traced.out.size} elements of out are wrong" if wrong else "out is right"
    text = f"{'The block has' if blocks == 1 else f'All {blocks} blocks have'} run: {found}."
    return Frame(text, *shown, edges=tuple(path_edges(scene)), numbers=count_numbers(scene, len(scene.steps)))

"""The picture of a schedule: elements of the arrays of a kernel, dealt out axis by axis, then read and written by a warp.

A part of each array is drawn. Block, thread and register of an element are those of the formula of its tiles; what the warp
reads and writes is in the trace of the launch.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from math import prod

from minifuse.backends.codegen.schedule import Tile
from minifuse.core.wording import format_count

from .cited_facts import DERIVED, TRACED, Fact, Line
from .picture import CHOSEN, LOAD, OTHER, PATH, SHARED, STORE, WASTED, Cell, Edge, Frame, Grid, Hull, Picture, Place
from .schedule_launch import COMBINE, READ, WAIT, WARP, WarpStep, warp_steps
from .schedules import Counts, DealtKernel, Owner
from .thread_timelines import kernel_lines

ROWS, COLUMNS, SECTOR = 16, 32, 8  # elements of an array that are drawn, and of a sector
EXPLAINED = {"requests": "requests of warps", "a request": "sectors per request"}
FIRST_STEPS, LAST_STEPS = 14, 6  # steps of a longer launch that are drawn
MEANS = (
    (PATH, "of block 0; read before"),
    (CHOSEN, "of thread 0 of it"),
    (OTHER, "held in its registers at once"),
    (LOAD, "read by this request"),
    (WASTED, "fetched, and not used by it"),
    (STORE, "written"),
    (SHARED, "in shared memory, or exchanged by shuffles"),
)


@dataclass(frozen=True)
class DrawnArray:
    """A part of an array: `rows` and `columns` are the axes down and across; None for an array with one axis."""

    name: str
    operand: str
    """The name in the text of the kernel."""
    axes: tuple[str, ...]
    """The axes of its dims, in the order of its storage."""
    rows: str
    columns: str | None
    extent: tuple[int, int]
    """The rows and columns that are drawn."""

    def index(self, row: int, column: int) -> dict[str, int]:
        """Return the index along each axis of a drawn element."""
        return {self.rows: row} | ({self.columns: column} if self.columns else {})

    def link(self, element: int) -> str:
        """Return the link of an element."""
        return f"{self.name}{element}"


@dataclass(frozen=True)
class Element:
    """A drawn element."""

    array: DrawnArray
    place: Place
    number: int
    """Its position in the storage."""
    owners: dict[str, Owner]
    """Where the tile of each axis places it."""

    @property
    def link(self) -> str:
        """The link of its cell."""
        return self.array.link(self.number)


class DealtPicture:
    """The picture of a dealt kernel beside the counts of another schedule."""

    def __init__(self, dealt: DealtKernel, other: DealtKernel) -> None:
        self.dealt, self.other = dealt, other
        self.computation, self.axes = dealt.computation, dealt.computation.axes
        self.size = dict(zip(self.axes, dealt.sizes, strict=True))
        self.tile = dict(zip(self.axes, dealt.schedule.tiles, strict=True))
        self.free = [axis for axis in self.axes if axis != self.computation.reduced]
        self.arrays = list(self.choose_arrays())
        self.elements = [element for array in self.arrays for element in self.elements_of(array)]
        self.steps = warp_steps(dealt)

    def choose_arrays(self) -> Iterator[DrawnArray]:
        """Yield the part of each array that is drawn, inputs first. An input whose columns are those of the output has its
        reduced axis down, so that it stands above the output."""
        names = [*signature(self.computation.function).parameters]
        tables = sum(len(axes) > 1 for axes in (*self.computation.inputs, self.computation.output))
        for k, (name, axes) in enumerate(
            [*zip(names, self.computation.inputs, strict=True), ("out", self.computation.output)]
        ):
            operand = f"in{k}" if k < len(names) else "out0"
            if len(axes) == 1:
                yield DrawnArray(name, operand, axes, axes[0], None, (min(self.size[axes[0]], ROWS), 1))
                continue
            is_above = len(self.free) > 1 and axes[0] == self.computation.output[-1]
            down, across = axes[::-1] if is_above else axes
            limits = {self.computation.reduced: COLUMNS // 4 if len(self.axes) > 2 else COLUMNS, self.free[-1]: COLUMNS}
            limits |= {self.free[0]: ROWS if tables == 1 else ROWS // 2}
            extent = min(self.size[down], limits[down]), min(self.size[across], limits[across])
            yield DrawnArray(name, operand, axes, down, across, extent)

    def elements_of(self, array: DrawnArray) -> Iterator[Element]:
        """Yield the drawn elements of an array."""
        owners = {axis: self.dealt.owners(axis) for axis in array.axes}
        for row in range(array.extent[0]):
            for column in range(array.extent[1]):
                index, number = array.index(row, column), 0
                for axis in array.axes:
                    number = number * self.size[axis] + index[axis]
                yield Element(array, (array.name, row, column), number, {a: owners[a][i] for a, i in index.items()})

    # The grids.

    def grids(self) -> tuple[Grid, ...]:
        """Return the arrays, the lanes of the first warp, and the counts of both schedules."""
        return self.lane_grid(), *[self.array_grid(array) for array in self.arrays], self.count_grid()

    @cached_property
    def lanes_of(self) -> dict[str, list[int]]:
        """The lanes of the first warp that read or write each element, by its link."""
        found, drawn = dict[str, list[int]](), {array.operand: array for array in self.arrays}
        for step in self.steps:
            for lane, elements in step.elements if step.array in drawn else ():
                for element in elements:
                    lanes = found.setdefault(drawn[step.array].link(element), [])
                    lanes += [lane] * (lane not in lanes)
        return found

    def array_grid(self, array: DrawnArray) -> Grid:
        """Draw a part of an array."""
        cells = []
        for element in self.elements:
            if element.array is array:
                lanes = tuple(f"t{lane}" for lane in self.lanes_of.get(element.link, ()))
                cells.append(Cell(*element.place[1:], "", self.describe(element), "", (element.link, *lanes)))
        rows, columns = array.extent
        whole, part = [self.size[axis] for axis in (array.rows, array.columns) if axis], [*array.extent[: len(array.axes)]]
        size = " x ".join(map(str, part)) + (f" of {' x '.join(map(str, whole))}" if part != whole else "")
        names = tuple(str(k) if k % SECTOR == 0 else "" for k in range(max(rows, columns)))
        return Grid(
            array.name,
            f"{array.name}: {size}",
            rows,
            columns,
            tuple(cells),
            names[:rows],
            names[:columns] if array.columns else (),
        )

    def describe(self, element: Element) -> str:
        """Describe an element and where it is dealt to."""
        places = [
            f"{axis} {self.index_of(element, axis)}: {self.describe_owner(axis, o)}" for axis, o in element.owners.items()
        ]
        return f"{element.array.name}[{element.number}], {'; '.join(places)}"

    def index_of(self, element: Element, axis: str) -> int:
        """Return the index of an element along an axis."""
        return element.array.index(*element.place[1:])[axis]

    def describe_owner(self, axis: str, owner: Owner) -> str:
        """Describe the parts of an index that are not always 0."""
        tile, outer = self.tile[axis], "step" if axis == self.computation.reduced else "block"
        parts = [f"{outer} {owner.outer}"] * (tile.length < self.size[axis])
        parts += [f"register {owner.register}"] * (tile.registers > 1) + [f"thread {owner.thread}"] * (tile.threads > 1)
        return ", ".join([*parts, *[f"place {owner.element} of a vector"] * (tile.vector > 1)]) or "dealt to all"

    def lane_grid(self) -> Grid:
        """Draw the lanes of the first warp."""
        count = min(self.dealt.schedule.threads, WARP)
        cells = [Cell(0, k, str(k), f"lane {k} of warp 0 of block 0", "", (f"lane{k}", f"t{k}")) for k in range(count)]
        warps = -(-self.dealt.schedule.threads // WARP)
        return Grid("lanes", f"Lanes of the first of {format_count(warps, 'warp')} of block 0", 1, count, tuple(cells))

    def count_grid(self) -> Grid:
        """Draw the counts of the launch beside those of the other schedule."""
        columns = {"this one": self.dealt.counts, "compiler's": self.other.counts}
        cells = [
            Cell(r, c, text, f"{name}: {text} {word}", "", (f"{word} {c}",))
            for c, (name, counts) in enumerate(columns.items())
            for r, (word, text) in enumerate(count_texts(counts).items())
        ]
        words = tuple(count_texts(self.dealt.counts))
        return Grid("counts", "The whole launch", len(words), 2, tuple(cells), words, tuple(columns), gaps=(12, 2))

    # The frames.

    def picture(self) -> Picture:
        """Return the picture. It opens at the first request."""
        splits, launch = list(self.split_frames()), list(self.launch_frames())
        return Picture(self.sentence(), self.grids(), (*splits, *launch), MEANS, layout=self.layout(), first=len(splits))

    def layout(self) -> tuple[tuple[str, ...], ...]:
        """Return the rows of grids: lanes above what they read, and what they write below or to the right of it."""
        names = [array.name for array in self.arrays]
        if len(names) > 2:
            return ("counts", "lanes"), ("counts", names[1]), (names[0], "out")
        if len(self.computation.output) > 1:
            return ("lanes", "counts"), (names[0], "counts"), ("out", "counts")
        return ("lanes", "", ""), (names[0], "out", "counts")

    def sentence(self) -> str:
        """Summarize the picture."""
        sizes = ", ".join(f"{axis} {n}" for axis, n in self.size.items())
        return f"The loops of the kernel: {sizes}. Each index along {self.computation.reduced} is reduced."

    def is_inside(self, element: Element) -> bool:
        """Return whether an element belongs to block 0."""
        return all(owner.outer == 0 for axis, owner in element.owners.items() if axis in self.free)

    def is_of_thread(self, element: Element) -> bool:
        """Return whether an element belongs to thread 0 of block 0."""
        return self.is_inside(element) and all(owner.thread == 0 for owner in element.owners.values())

    def is_held(self, element: Element) -> bool:
        """Return whether thread 0 of block 0 has an element in registers in the first step of its loop."""
        return self.is_of_thread(element) and all(owner.outer == 0 for owner in element.owners.values())

    def split_frames(self) -> Iterator[Frame]:
        """Yield a frame of the whole, and one for each split of an axis: over blocks, threads, vectors, registers, steps."""
        numbers = self.numbers()
        yield Frame(self.sentence(), numbers=numbers)
        done = list[str]()
        for split in SPLITS:
            for axis in self.axes:
                tile = self.tile[axis]
                if not split.applies(tile, self.size[axis], axis in self.free):
                    continue
                done.append(split.name)
                texts = [
                    (x.link, str(split.number(x.owners[axis])))
                    for x in self.elements
                    if axis in x.owners and (split.name == "blocks" or self.is_inside(x))
                ]
                yield Frame(
                    f"{axis}: {split.words(tile, self.size[axis], axis)}",
                    tuple(self.split_kinds(split.name, done)),
                    tuple(texts),
                    hulls=tuple(self.block_hulls()),
                    numbers=numbers,
                )

    def split_kinds(self, name: str, done: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the kinds of the elements of block 0, of its first thread, and of those that this thread holds at once."""
        for x in self.elements:
            if name in ("vectors", "registers", "steps") and self.is_held(x):
                yield x.link, OTHER
            elif "threads" in done and self.is_of_thread(x):
                yield x.link, CHOSEN
            elif self.is_inside(x):
                yield x.link, PATH

    def block_hulls(self) -> Iterator[Hull]:
        """Yield a frame around the drawn elements of block 0 in each array."""
        for array in self.arrays:
            inside = [x.place for x in self.elements if x.array is array and self.is_inside(x)]
            rows, columns = (1 + max(ends) for ends in zip(*[(row, column) for _, row, column in inside], strict=True))
            yield Hull(inside[0], rows, columns, CHOSEN)

    def numbers(self) -> tuple[tuple[str, str], ...]:
        """Return how many blocks, threads, elements and steps the schedule has."""
        tiles, reduced = self.dealt.schedule.tiles, self.tile[self.computation.reduced]
        held = prod(tile.elements for tile in tiles)
        steps = -(-self.size[self.computation.reduced] // reduced.length) if reduced.serial else 1
        return (
            (f"{self.dealt.counts.blocks:,}", "blocks"),
            (f"{self.dealt.schedule.threads:,}", "threads of a block"),
            (f"{held:,}", "elements at once"),
            (f"{steps:,}", "steps of the loop"),
        )

    def launch_frames(self) -> Iterator[Frame]:
        """Yield a frame for each step of the first warp, or for the first and last of them."""
        count, before = len(self.steps), dict[str, str]()
        drawn = {array.operand: array for array in self.arrays}
        is_long = count > FIRST_STEPS + LAST_STEPS
        for k, step in enumerate(self.steps):
            array = drawn.get(step.array)
            touched = dict[str, list[int]]()
            for lane, elements in step.elements if array else ():
                for element in elements:
                    touched.setdefault(drawn[step.array].link(element), []).append(lane)
            if not is_long or k < FIRST_STEPS or k >= count - LAST_STEPS:
                left_out = count - FIRST_STEPS - LAST_STEPS if is_long and k == FIRST_STEPS - 1 else 0
                yield self.launch_frame(k, step, touched, before, left_out)
            before |= dict.fromkeys(touched, PATH if step.kind == READ else STORE)

    def launch_frame(
        self, k: int, step: WarpStep, touched: dict[str, list[int]], before: dict[str, str], left_out: int
    ) -> Frame:
        """Return the frame of a step of the first warp. `touched` has the lanes of each element, by its link."""
        links = {x.link for x in self.elements}
        kinds = {link: kind for link, kind in before.items() if link in links}
        array = next((x for x in self.arrays if x.operand == step.array), None)
        if array is not None:
            kinds |= {link: WASTED for e in step.fetched if (link := array.link(e)) in links and step.kind == READ}
        main = SHARED if step.kind in (COMBINE, WAIT) or step.space == "shared" else LOAD if step.kind == READ else STORE
        kinds |= {link: main for link in touched if link in links}
        active = [lane for lane, _ in step.elements] if step.elements else range(min(self.dealt.schedule.threads, WARP))
        lanes = [(f"lane{lane}", main) for lane in active]
        numbers = [(f"{k + 1} of {len(self.steps)}", "step of warp 0")]
        if step.sectors:
            numbers += [
                (str(step.sectors), "sectors"),
                (f"{step.nbytes:,} B", "asked for"),
                (f"{32 * step.sectors:,} B", "moved"),
            ]
        rest = f" {left_out} more are left out." if left_out else ""
        return Frame(
            f"{describe_step(step, array)}{rest}",
            (*lanes, *kinds.items()),
            tuple((link, lane_text(found, len(step.elements))) for link, found in touched.items() if link in links),
            edges=tuple(self.lane_edges(step, array)),
            line=step.line,
            numbers=tuple(numbers),
        )

    def lane_edges(self, step: WarpStep, array: DrawnArray | None) -> Iterator[Edge]:
        """Yield an arrow between a lane and its first element: the middle one of the lanes that meet the first row."""
        place_of = {x.number: x.place for x in self.elements if x.array is array}
        met = [(lane, place_of[es[0]]) for lane, es in step.elements if es[0] in place_of]
        row = min((place[1] for _, place in met), default=0)
        first = [pair for pair in met if pair[1][1] == row]
        for lane, place in first[len(first) // 2 :][:1]:
            ends = (("lanes", 0, lane), place) if step.kind != READ else (place, ("lanes", 0, lane))
            yield Edge(*ends, LOAD if step.kind == READ else STORE)


@dataclass(frozen=True)
class Split:
    """One factor of an axis: for which tiles it is drawn, the number of an element, and a sentence."""

    name: str
    applies: Callable[[Tile, int, bool], bool]
    """Of the tile, the size, and whether the axis is not reduced."""
    number: Callable[[Owner], int]
    words: Callable[[Tile, int, str], str]


SPLITS = (
    Split(
        "blocks",
        lambda tile, size, is_free: is_free and tile.length < size,
        lambda owner: owner.outer,
        lambda tile, size, axis: (
            f"{-(-size // tile.length)} blocks of {tile.length}. A number is a block; block 0 is yellow."
        ),
    ),
    Split(
        "threads",
        lambda tile, size, is_free: tile.threads > 1,
        lambda owner: owner.thread,
        lambda tile, size, axis: f"{tile.threads} threads of a block. A number is a thread; those of thread 0 have a frame.",
    ),
    Split(
        "vectors",
        lambda tile, size, is_free: tile.vector > 1,
        lambda owner: owner.element,
        lambda tile, size, axis: f"one instruction moves {tile.vector} neighbors. A number is a place in the vector.",
    ),
    Split(
        "registers",
        lambda tile, size, is_free: tile.registers > 1,
        lambda owner: owner.register,
        lambda tile, size, axis: (
            f"a thread holds {tile.registers}, which are {tile.threads * tile.vector} apart. A number is a register."
        ),
    ),
    Split(
        "steps",
        lambda tile, size, is_free: tile.serial and tile.length < size,
        lambda owner: owner.outer,
        lambda tile, size, axis: f"a loop of {-(-size // tile.length)} steps. A number is the step that reads an element.",
    ),
)


def lane_text(lanes: list[int], count: int) -> str:
    """Return the lane of an element that one lane reads; of several lanes, the first, or "all" if all of `count` do."""
    return str(lanes[0]) if len(lanes) == 1 else "all" if len(lanes) == count else f"{lanes[0]}+"


def describe_step(step: WarpStep, array: DrawnArray | None) -> str:
    """Describe a step of a warp in a sentence."""
    if step.kind == WAIT:
        return "A barrier: all warps of the block wait for each other."
    if step.kind == COMBINE:
        return f"The lanes combine their results: {format_count(step.count, 'shuffle')}, without memory."
    lanes = format_count(len(step.elements), "lane")
    verb = step.kind if len(step.elements) == 1 else step.kind.rstrip("s")
    name = array.name if array else f"{step.array} in shared memory"
    if not step.sectors:
        return f"{lanes} {verb} {step.nbytes} B of {name}."
    used = len({e for _, es in step.elements for e in es}) / max(len(step.fetched), 1)
    what = "fetched" if step.kind == READ else "touched"
    sectors = format_count(step.sectors, "sector")
    return f"{lanes} {verb} {name}: {sectors} of 32 B, {100 * used:.3g}% of what is {what} is used."


def count_texts(counts: Counts) -> dict[str, str]:
    """Return the counts of a launch, by their names in the picture."""
    return {
        "threads": f"{counts.threads:,}",
        "requests": f"{counts.requests:,}",
        "sectors": f"{counts.sectors:,}",
        "a request": f"{counts.sectors_per_request:.3g}",
        "barriers": f"{counts.barriers:,}",
    }


# Beside the picture.


def facts(dealt: DealtKernel, other: DealtKernel) -> list[Fact]:
    """Return facts about a schedule and that of the compiler."""
    known = [
        Fact(
            "result", "that of NumPy" if dealt.is_right else "not that of NumPy", TRACED, "of the launch in the interpreter"
        ),
        Fact("this schedule", dealt.describe(), DERIVED, dealt.schedule.why),
        Fact("the compiler's", other.describe(), DERIVED, other.schedule.why),
    ]
    texts = [count_texts(x.counts) for x in (dealt, other)]
    return known + [
        Fact(EXPLAINED.get(word, word), f"{mine}, the compiler's {theirs}", TRACED)
        for (word, mine), theirs in zip(texts[0].items(), texts[1].values(), strict=True)
    ]


def lines(dealt: DealtKernel) -> list[Line]:
    """Return the text of the kernel."""
    return [Line(number, text) for number, text in kernel_lines(dealt.plan).items()]

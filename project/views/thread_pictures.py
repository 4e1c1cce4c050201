"""The picture of a launch: blocks of threads over what they compute, the formula of one thread, and memory, step by step."""

import json
from collections.abc import Sequence
from math import prod

from minifuse.core.errors import RaceError, SimtError
from minifuse.core.wording import format_count
from minifuse.simt.record import ArrayInfo

from .coordinates import format_index, format_range, linear_index, unravel_index
from .launch_steps import WARP, LaunchStep, launch_steps, timeline_changes, timeline_grid
from .picture import (
    CHOSEN,
    IDLE,
    LOAD,
    MAX_NBYTES,
    OTHER,
    PATH,
    RACE,
    STORE,
    WASTED,
    WRONG,
    Cell,
    Edge,
    Frame,
    Grid,
    Hull,
    Picture,
    frame_data,
)
from .request_costs import UNITS, RequestCosts, describe_excess
from .thread_formulas import formulas
from .thread_memory import Access, Contents, access_kinds, accesses, array_grids, local_grid
from .thread_timelines import Step
from .threads import TracedLaunch, describe_accesses, describe_hazard, find_fault, idle_threads, kernel_texts, sentence

MEANS = (
    (PATH, "runs the line"),
    (OTHER, "waits at a barrier"),
    (WASTED, "outside its array"),
    (CHOSEN, "the chosen thread"),
    (WRONG, "has a hazard"),
)
MAX_FORMULAS = 6
GUARDS = ("if ", "elif ", "while ")
MAX_CELL_CHARS = 6  # of a value of a thread
MAX_EDGES = 4  # elements that are joined to the formula
TITLE_ROWS = 1.5  # height of a title and the names of columns, in rows of cells
ROWS = 15  # rows of cells that a window shows well
MAX_STACK_ROWS = 26  # rows and titles of grids below one another; if there are more, the formula is drawn beside the threads
FRAME_NBYTES = MAX_NBYTES * 3 // 5  # the rest is for cells


def picture(launch: TracedLaunch) -> Picture:
    """Draw blocks of threads, the formula of one thread, arrays, and the warps; frames show the steps of one warp."""
    if launch.plan is None:
        return Picture("There are no elements, so nothing is launched.", (Grid("threads", "no blocks", 1, 1, ()),))
    return LaunchPicture(launch).picture()


class LaunchPicture:
    """A picture under construction."""

    def __init__(self, launch: TracedLaunch) -> None:
        assert launch.timelines is not None
        assert launch.places is not None
        self.launch, self.timelines, self.places = launch, launch.timelines, launch.places
        self.chosen, self.warp = (self.timelines.block, launch.thread), launch.thread // WARP
        self.infos = {info.name: info for info in launch.trace.arrays}
        self.touched = accesses(launch.trace, ("global", "shared"))
        self.contents = Contents(self.timelines, [a for a in self.touched if self.is_seen(a)])
        self.costs = RequestCosts(launch.trace)
        self.steps = launch_steps(self.timelines, launch.thread)
        self.races = self.find_races()
        self.hazards = [error for error in launch.trace.hazards() if not isinstance(error, RaceError)]
        self.mine = self.timelines.steps.get(launch.thread, ())
        self.lines = kernel_texts(launch)
        self.formulas = formulas(self.mine, self.lines, launch.trace, self.chosen)
        self.formula_lines = list(dict.fromkeys(step.line for step in self.mine if self.has_numbers(step)))
        self.threads = self.thread_grid()

    def is_seen(self, access: Access) -> bool:
        """Return whether an access is to global memory, or to shared memory of the chosen block."""
        return self.infos[access.array].space == "global" or access.thread[0] == self.timelines.block

    def has_numbers(self, step: Step) -> bool:
        """Return whether a step of the chosen thread computes, compares or moves a number."""
        is_guard = self.lines.get(step.line, "").lstrip().startswith(GUARDS)
        return bool(is_guard or step.values or self.contents.of_run(self.chosen, step))

    def picture(self) -> Picture:
        """Return the picture."""
        places = self.places
        columns = places.columns if places.is_line and 8 <= places.columns <= 16 else 16
        max_rows = max(ROWS - places.rows, 4)
        arrays = array_grids(self.timelines, self.launch.thread, self.touched, self.contents, columns, max_rows)
        self.arrays = {
            grid.name: {cell.links[-1]: (grid.name, cell.row, cell.column) for cell in grid.cells} for grid in arrays
        }
        stack_rows = sum(grid.rows + TITLE_ROWS for grid in (self.threads, *arrays)) + MAX_FORMULAS / 3
        is_beside = places.columns <= 16 and stack_rows > MAX_STACK_ROWS
        formula, local = self.formula_grid(2 if is_beside else 3), local_grid(self.timelines, self.launch.thread)
        right = [timeline_grid(self.timelines, self.launch.thread, self.steps), *([local] if local else [])]
        left = [self.threads, formula, *arrays]
        stacks = ([self.threads, *arrays], [formula, *right]) if is_beside else (left, right)
        self.base = {cell.links[-1]: cell.text for grid in (*arrays, self.threads) for cell in grid.cells if cell.links}
        frames = self.frames()
        loads = [any(edge.kind == LOAD for edge in frame.edges) for frame in frames]
        loads = loads if any(loads) else [LOAD in dict(frame.kinds).values() for frame in frames]
        return Picture(
            sentence(self.launch),
            (*left[:2], *right, *left[2:]),
            tuple(frames),
            MEANS,
            hulls=(*places.hulls(self.timelines.block), *self.data_hull()),
            layout=layout_of(*stacks),
            first=loads.index(True) if True in loads else 0,
        )

    def frames(self) -> list[Frame]:
        """Return a frame of the launch, and one for each step that the warp of the chosen thread runs."""
        drawn, nbytes, position = [self.overview()], 0, 0
        self.latest = {step.line: text for step, text in reversed(list(zip(self.mine, self.formulas, strict=True)))}
        self.texts = dict[str, str]()
        for k, step in enumerate(self.steps):
            done = self.contents.run(step)
            self.note_values(step)
            if self.chosen in step.runs:
                self.latest[step.line] = self.formulas[position]
                position += 1
            if not step.lanes(self.chosen[0], self.warp):
                continue
            frame = self.frame(k, done, is_over=position == len(self.mine))
            nbytes += len(json.dumps(frame_data(frame)))
            if nbytes > FRAME_NBYTES:
                drawn.append(
                    Frame(f"{len(self.steps) - k} later steps are not shown, since the picture would be too large.")
                )
                break
            drawn.append(frame)
        return drawn

    def note_values(self, step: LaunchStep) -> None:
        """Keep the value that each thread loaded, stored or computed last, and the elements of local arrays."""
        for (block, thread), run in step.runs.items():
            moved = self.contents.of_run((block, thread), run)
            named = [value for name, value in run.values if not name.endswith("]")]
            text = self.contents.value(moved[-1]) if moved else named[-1] if named else ""
            if text and len(text) <= MAX_CELL_CHARS:
                self.texts[f"T{block}.{thread}"] = text
            if (block, thread) == self.chosen:
                self.texts |= {f"local {name}": value for name, value in run.values if name.endswith("]")}

    def frame(self, k: int, done: Sequence[Access], is_over: bool) -> Frame:
        """Return the frame of a step."""
        step, block = self.steps[k], self.chosen[0]
        run, mask = step.runs.get(self.chosen), step.lanes(block, self.warp)
        lanes = range(min(WARP, self.launch.trace.threads - self.warp * WARP))
        runs = OTHER if step.is_barrier else PATH
        warps = [a for a in done if a.thread[0] == block and a.thread[1] // WARP == self.warp]
        own = [access for access in warps if access.thread == self.chosen]
        kinds = {f"T{block}.{self.warp * WARP + lane}": runs if mask >> lane & 1 else IDLE for lane in lanes}
        kinds |= {f"T{block}.{a.thread[1]}": STORE if a.is_store else LOAD for a in warps} | dict(access_kinds(warps))
        texts = self.changed_texts()
        changed_kinds, changed_texts, hull = timeline_changes(self.timelines, self.launch.thread, self.steps, k)
        edges, flights = list[Edge](), list[Edge]()
        if run is not None:
            if step.line in self.formula_lines:
                row = self.formula_lines.index(step.line)
                texts |= self.formula_page(row // MAX_FORMULAS)
                kinds[f"f{row % MAX_FORMULAS}"] = runs
                edges, flights = self.edges(row % MAX_FORMULAS, own)
            if address := self.address(run):
                kinds["address"], texts["address"] = runs, address
        cost = self.costs.count({access.event for access in warps})
        told = self.describe(step, own, mask.bit_count(), len(lanes), is_over, describe_excess(cost))
        for first, second in self.races:
            if any(access.event in (first.event, second.event) for access in done):
                kinds[f"{first.array}.{first.element}"] = RACE
                edges += self.race_edge(first, second)
                told = describe_race(first, second)
        for error in self.step_hazards(step, done):
            kinds |= {f"{a.array}.{a.element}": WRONG for a in done if is_element(error, a, self.infos[a.array])}
            told += f" {describe_hazard(error)}."
        counts = [
            (len({a.event for a in warps if a.is_store == is_store}), what)
            for is_store, what in ((False, "loads"), (True, "stores"))
        ]
        counts += [(cost[unit], unit) for unit in UNITS]
        return Frame(
            told,
            tuple((kinds | changed_kinds).items()),
            tuple((texts | changed_texts).items()),
            tuple(edges),
            (hull,),
            tuple(flights),
            step.line,
            ((f"{mask.bit_count()} of {len(lanes)}", "lanes of the warp"), *((str(n), what) for n, what in counts if n)),
        )

    def changed_texts(self) -> dict[str, str]:
        """Return the texts of threads and elements that differ from those of their cells."""
        now = {f"{array}.{element}": text for (array, element), text in self.contents.now.items()} | self.texts
        locals_ = {name: text for name, text in self.texts.items() if name.startswith("local ")}
        return {link: now[link] for link, text in self.base.items() if now.get(link, text) != text} | locals_

    def formula_page(self, page: int) -> dict[str, str]:
        """Return the texts of the formulas of a page."""
        lines = self.formula_lines[page * MAX_FORMULAS : (page + 1) * MAX_FORMULAS]
        return {
            f"f{r}": self.latest[lines[r]] if r < len(lines) else ""
            for r in range(min(MAX_FORMULAS, len(self.formula_lines)))
        }

    def edges(self, row: int, own: Sequence[Access]) -> tuple[list[Edge], list[Edge]]:
        """Join the chosen thread to its formula, and that to its elements; return also the values that move."""
        thread = ("threads", *(self.places.find(*self.chosen) or (0, 0)))
        edges, flights = [Edge(thread, self.formula_places[f"f{row}"], CHOSEN)], list[Edge]()
        for access in list({(a.array, a.element, a.is_store): a for a in own}.values())[:MAX_EDGES]:
            place = self.arrays.get(access.array, {}).get(f"{access.array}.{access.element}")
            if place is None:
                continue
            is_matrix = len(self.infos[access.array].shape) == 2
            start = self.formula_places["address" if is_matrix else f"f{row}"]
            kind = STORE if access.is_store else LOAD
            edges.append(Edge(start, place, kind))
            ends = (thread, place) if access.is_store else (place, thread)
            flights.append(Edge(*ends, kind, self.contents.value(access)))
        return edges, flights

    def find_races(self) -> list[tuple[Access, Access]]:
        """Return an example of each race whose result depends on the order of two accesses, where both are drawn."""
        rows = [(race.first, race.second) for race in self.launch.trace.races() if not race.same_value]
        pairs = [[self.contents.by_event.get(k, []) for k in pair] for pair in rows]
        shared = [
            [(a, b) for a in first for b in second if (a.array, a.element) == (b.array, b.element)]
            for first, second in pairs
        ]
        return [found[0] for found in shared if found]  # of vector accesses, the first element that both touch

    def step_hazards(self, step: LaunchStep, done: Sequence[Access]) -> list[SimtError]:
        """Return the hazards of the accesses of a step; races are drawn as edges."""
        return [
            error
            for error in self.hazards
            if step.line in {line for _, line in error.lines}
            and any(is_element(error, access, self.infos[access.array]) for access in done)
        ]

    def race_edge(self, first: Access, second: Access) -> list[Edge]:
        """Join the thread that writes to the one that reads, or also writes, if both are drawn."""
        ends = [self.places.find(*access.thread) for access in sorted((first, second), key=lambda a: not a.is_store)]
        return [Edge(("threads", *ends[0]), ("threads", *ends[1]), RACE, "race")] if ends[0] and ends[1] else []

    def overview(self) -> Frame:
        """Return the first frame."""
        trace, idle = self.launch.trace, idle_threads(self.launch)
        total = prod(trace.grid) * trace.threads
        numbers = ((str(prod(trace.grid)), "blocks"), (str(total), "threads"), (str(idle), "without work"))
        return Frame(sentence(self.launch), numbers=numbers)

    def describe(
        self, step: LaunchStep, own: Sequence[Access], count: int, possible: int, is_over: bool, excess: str
    ) -> str:
        """Describe a step in a sentence."""
        trace = self.launch.trace
        who = f"Thread {format_index(self.chosen[1], trace.block)} of block {format_index(self.chosen[0], trace.grid)}"
        run, lanes = step.runs.get(self.chosen), f"{count} of {possible} lanes"
        if step.is_barrier:
            return f"Barrier: t{who[1:]} waits until its whole block is here; then all see the same shared memory."
        if run is None:
            return f"{who} {'has ended' if is_over else 'waits'}: {lanes} of its warp run line {step.line}."
        code = self.lines.get(step.line, "").split("  #")[0].strip()
        if own:
            first = {access.event: access for access in reversed(own)}
            told = [self.describe_access(own, a) for a in sorted(first.values(), key=lambda a: a.event)[:MAX_EDGES]]
            return f"{who} {'; '.join(told)}. {lanes} of its warp do this together{excess}."
        if any(not name.endswith("]") for name, _ in run.values):
            return f"{who} computes {self.latest[step.line]}."
        if code.startswith(GUARDS):
            return f"{who} asks: {self.latest[step.line]}."
        return f"{who} runs {code or 'the line'}."

    def describe_access(self, own: Sequence[Access], access: Access) -> str:
        """Describe an access: "reads a[3] = 0.375"."""
        what = f"{access.array}[{access.element}]{vector_note(own, access)}"
        return f"{'writes' if access.is_store else 'reads'} {what} = {self.launch.trace.events.value[access.event]:.6g}"

    def thread_grid(self) -> Grid:
        """Draw the threads of the drawn blocks."""
        launch, places, done = self.launch, self.places, dict[tuple[int, int], list[Access]]()
        for access in self.touched:
            if self.infos[access.array].space == "global":
                done.setdefault(access.thread, []).append(access)
        cells = [
            thread_cell(launch, place, (block, thread), done.get((block, thread), []))
            for block in places.blocks
            for thread in range(launch.trace.threads)
            if (place := places.find(block, thread))
        ]
        if places.is_line:
            first = {places.corner(block)[0]: block for block in reversed(places.blocks)}
            names = tuple(f"block {first[r]}" if r in first else "" for r in range(places.rows))
            above = tuple(map(str, range(places.columns))) if places.columns <= places.block[0] == places.columns else ()
        else:
            row, column = places.origin()
            names = tuple(f"y {row + r}" for r in range(places.rows))
            above = tuple(f"{column + c}" if c else f"x {column}" for c in range(places.columns))
        return Grid("threads", self.title(), places.rows, places.columns, tuple(cells), names, above)

    def title(self) -> str:
        """Say how many threads there are, and which of them are drawn."""
        trace, places = self.launch.trace, self.places
        total, blocks = prod(trace.grid), places.blocks
        title = f"{format_count(total * trace.threads, 'thread')} in {format_count(total, 'block')}"
        parts = list[str]()
        if len(blocks) < total:
            parts.append(format_range("block", blocks[0], blocks[-1], trace.grid))
        if prod(map(len, places.part)) < trace.threads:
            parts.append(format_range("thread", *places.drawn_ends(), trace.block))
        if parts:
            title += f", of which {', '.join(parts)}"
        if hull := self.data_hull():
            title += f"; in orange, {hull[0].rows} x {hull[0].columns} of the matrix"
        return title

    def data_hull(self) -> tuple[Hull, ...]:
        """Outline the matrix, if each thread writes the element at its own row and column."""
        stores = [access for access in self.touched if access.is_store]
        names = {access.array for access in stores}
        shapes = [info.shape for info in self.launch.trace.arrays if info.name in names]
        if self.places.is_line or len(shapes) != 1 or len(shapes[0]) != 2:
            return ()
        (height, width), trace = shapes[0], self.launch.trace
        for access in stores:
            blocks, threads = (unravel_index(n, s) for n, s in zip(access.thread, (trace.grid, trace.block), strict=True))
            column, row = (blocks[d] * trace.block[d] + threads[d] for d in (0, 1))
            if access.element != row * width + column:
                return ()
        row, column = self.places.origin()
        rows, columns = min(height - row, self.places.rows), min(width - column, self.places.columns)
        return (Hull(("threads", 0, 0), rows, columns, STORE),) if min(rows, columns) > 0 else ()

    def formula_grid(self, columns: int) -> Grid:
        """Draw the lines of the chosen thread with its numbers put in, in at most so many columns."""
        first = {step.line: text for step, text in reversed(list(zip(self.mine, self.formulas, strict=True)))}
        told = [
            (f"line {line}: {first[line]}", first[line], f"f{k}") for k, line in enumerate(self.formula_lines[:MAX_FORMULAS])
        ]
        if any(len(info.shape) == 2 for info in self.infos.values()):
            address = next((text for step in self.mine if (text := self.address(step))), "no element")
            told.append((f"its element: {address}", address, "address"))
        if not told:
            told = [("no line of this thread computes a number", "no numbers", "f0")]
        columns = min(len(told), columns)
        cells = [Cell(*divmod(k, columns), text, label, "", (link,)) for k, (label, text, link) in enumerate(told)]
        self.formula_places = {cell.links[0]: ("formula", cell.row, cell.column) for cell in cells}
        trace = self.launch.trace
        block, thread = format_index(self.chosen[0], trace.grid), format_index(self.chosen[1], trace.block)
        title = f"the numbers of thread {thread} of block {block}"
        return Grid("formula", title, cells[-1].row + 1, columns, tuple(cells), gaps=(10, 6))

    def address(self, step: Step) -> str:
        """Return the address of the last element of a matrix that a step of the chosen thread accesses."""
        for access in reversed(self.contents.of_run(self.chosen, step)):
            shape = self.infos[access.array].shape
            if len(shape) == 2:
                row, column = divmod(access.element, shape[1])
                return f"{row} * {shape[1]} + {column} = element {access.element}"
        return ""


def thread_cell(launch: TracedLaunch, place: tuple[int, int], who: tuple[int, int], done: Sequence[Access]) -> Cell:
    """Return the cell of a thread."""
    timelines, trace, (block, thread) = launch.timelines, launch.trace, who
    assert timelines is not None
    warp, lane = divmod(thread, WARP)
    is_chosen = who == (timelines.block, launch.thread)
    where = f"block {format_index(block, trace.grid)}, thread {format_index(thread, trace.block)}, warp {warp}, lane {lane}"
    if done:
        words, kind = "; ".join(describe_accesses(done)), ""
    elif who not in timelines.began:
        words, kind = "never began, since the launch was ended", IDLE
    else:
        words, kind = "touches no memory", IDLE
    fault = find_fault(trace, block, thread)
    label = f"{where}: {fault or words}{', chosen' * is_chosen}"
    links = (f"t{block}.{thread}", f"T{block}.{thread}")
    return Cell(*place, f"{thread}!" if fault else str(thread), label, CHOSEN if is_chosen else kind, links)


def is_element(error: SimtError, access: Access, info: ArrayInfo) -> bool:
    """Return whether an access is to the element of a hazard, which may be outside its array."""
    element = error.element or ()
    is_inside = len(element) == len(info.shape) and all(0 <= i < n for i, n in zip(element, info.shape, strict=True))
    return access.array == error.array and is_inside and access.element == linear_index(element[::-1], info.shape[::-1])


def describe_race(first: Access, second: Access) -> str:
    """Describe two accesses whose order is not determined."""
    parts = [
        f"thread {a.thread[1]} of block {a.thread[0]} {'writes' if a.is_store else 'reads'} it" for a in (first, second)
    ]
    return f"Race at {first.array}[{first.element}]: {', '.join(parts)}, in any order."


def vector_note(done: Sequence[Access], first: Access) -> str:
    """Explain that a vector access includes the elements after its first."""
    count = sum(access.event == first.event for access in done)
    return f" and the {count - 1} behind it, of which the first" if count > 1 else ""


def layout_of(left: Sequence[Grid], right: Sequence[Grid]) -> tuple[tuple[str, str], ...]:
    """Stack grids in two columns, so that a grid extends over as many rows as it needs."""
    k, used, needed, rows = 0, 0.0, right[0].rows + TITLE_ROWS, list[tuple[str, str]]()
    for grid in left:
        rows.append((grid.name, right[k].name))
        used += grid.rows + TITLE_ROWS
        if used >= needed and k + 1 < len(right):
            k += 1
            needed = used + right[k].rows + TITLE_ROWS
    named = {name for _, name in rows}
    return (*rows, *((left[-1].name, grid.name) for grid in right if grid.name not in named))

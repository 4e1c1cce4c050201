"""Storage and strides: the numbers of a storage, and the position of each element of a view among them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from shlex import quote

import minifuse as mf
from minifuse.core.errors import MinifuseError, ViewError
from minifuse.core.layout import Layout, row_major
from minifuse.core.wording import format_count

from .cited_facts import DERIVED, Fact
from .expressions import Call, Index, format_steps
from .picture import CHOSEN, LOAD, OTHER, PATH, Cell, Edge, Frame, Grid, Picture, Place, ribbon, slice_grids
from .sources import source_lines

MAX_DRAWN_ELEMENTS, MAX_DIMS = 512, 8  # elements that are drawn, of the storage and of the view; dims of a view
COLUMNS = 24  # columns in which a storage is drawn
MAX_LISTED_INDICES = 6  # indices in a fact
MAX_WALK = 96  # steps of a walk through the elements; the walk begins at a multiple of this
ROOM = 30  # pixels between the rows of a storage, for arrows
MAX_NAME = 16  # characters of a name in a picture
OWN = "your own"  # the idiom of a shape and views that were typed
EXAMPLES = {
    "as it lies": ("3, 4", ""),
    "transposed": ("3, 4", ".T"),
    "every second column": ("3, 8", "[:, ::2]"),
    "backwards": ("2, 6", ".flip(1)"),
    "one row, repeated": ("1, 5", ".expand(4, 5)"),
    "cut into tiles": ("4, 6", ".reshape(2, 2, 2, 3).permute(0, 2, 1, 3)"),
}
WORDS = (LOAD, "seen once"), (OTHER, "seen several times"), (PATH, "the same place")
METHODS = {"T": "permute", "squeeze": "reshape", "unsqueeze": "reshape"}  # view -> method of Layout, if names differ

Position = tuple[int, ...]


@dataclass(frozen=True)
class StridedView:
    """A view of the elements 0, 1, 2, ... of a storage, with the layouts of all steps; the last is that of the view."""

    shape: tuple[int, ...]
    steps: tuple[Call | Index, ...]
    layouts: tuple[Layout, ...]
    """The layouts before the first step and after each step. An offset is relative to the storage at that step."""
    storage: tuple[int, ...]
    """The storage of the last view: position p contains element storage[p] of x."""
    copies: tuple[tuple[int, str], ...] = ()
    """(step, reason): the steps that could not be a view, and copied the elements to new memory."""

    @property
    def is_copy(self) -> bool:
        """True if the view shares no memory with x."""
        return bool(self.copies)

    @property
    def name(self) -> str:
        """The expression as a user types it."""
        return "x" + "".join(format_steps(self.steps))

    @property
    def short_name(self) -> str:
        """The expression if it is short, as the title of a picture is."""
        return self.name if len(self.name) <= MAX_NAME else "view"


def apply_views(shape: Sequence[int], steps: Sequence[Call | Index]) -> StridedView:
    """Apply the steps to a real tensor.

    Raises
    ------
    MinifuseError
        The library rejects a view, or there are too many elements or dims to draw.
    """
    layout = row_major(tuple(shape))
    if layout.size > MAX_DRAWN_ELEMENTS:
        raise MinifuseError(
            f"a tensor of {layout.size:,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each can be seen"
        )
    x = mf.arange(max(layout.size, 1), backend="python")[: layout.size].reshape(*shape)
    start, layouts, storage, copies = x, [layout], tuple(range(layout.size)), list[tuple[int, str]]()
    for k, step in enumerate(steps):
        x = step.apply(x)
        if x.size > MAX_DRAWN_ELEMENTS:
            raise MinifuseError(
                f"{step}: a view of {x.size:,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each can be seen"
            )
        if x.ndim > MAX_DIMS:
            raise MinifuseError(f"{step}: a view of {x.ndim} dims; expected at most {MAX_DIMS}")
        if x.buffer is not start.buffer:
            copies.append((k, copy_reason(layouts[-1], step)))
            start = x
            element_at = dict(zip(positions(x.meta.layout).values(), x.numpy().ravel().tolist(), strict=True))
            storage = tuple(element_at[p] for p in range(x.size))
        offset = (x.address - start.address) // x.dtype.itemsize
        step_layout = x.meta.layout
        layouts.append(Layout(step_layout.shape, step_layout.strides, step_layout.offset + offset))
    return StridedView(tuple(shape), tuple(steps), tuple(layouts), storage, tuple(copies))


def copy_reason(before: Layout, step: Call | Index) -> str:
    """Return the library's reason why a step copied."""
    if isinstance(step, Call) and step.method == "reshape":
        try:
            before.reshape(*step.arguments)
        except ViewError as error:
            return str(error)
    return contiguity_reason(before)


def idiom_of(shape: str, views: str) -> str:
    """Return the idiom that has these texts; OWN if there is none."""
    return next((name for name, texts in EXAMPLES.items() if texts == (shape, views)), OWN)


def picture(view: StridedView, chosen: Position | None = None) -> Picture:
    """Draw the storage as a ribbon, and below it the slices of the view; a walk through the view in row-major order.

    Cells of one element share a link. If a step copied, the storage of x and the storage of the copy, which the view uses,
    are drawn. `chosen` is an index of the view: its step is shown first.
    """
    layout = view.layouts[-1]
    places = positions(layout)
    counts = Counter(places.values())
    memory = [
        Cell(
            0, 0, str(v), place_label(p, v, counts[p], view.is_copy), cell_kind(p, counts), (storage_link(p), place_link(p))
        )
        for p, v in enumerate(view.storage)
    ]
    elements = {
        index: Cell(
            0,
            0,
            str(view.storage[p]),
            element_label(index, view, p),
            cell_kind(p, counts),
            (element_link(index), place_link(p)),
        )
        for index, p in places.items()
    }
    title = f"storage of {'the copy' if view.is_copy else 'x'}: {format_count(len(memory), 'number')} in a row"
    storage = replace(ribbon("storage", title, memory, min(COLUMNS, max(len(memory), 1))), gaps=(0, ROOM))
    slices = tuple(replace(grid, drags=True) for grid in slice_grids("view", view.short_name, layout.shape, elements))
    dims = dims_grid(layout)
    originals = original_grid(view)
    looked_at = "" if chosen is None else f" view{format_index(chosen)} lies at {formula(layout, chosen)}."
    order = list(places)
    shown = (chosen or default_index(layout)) if order else ()
    at = order.index(shown) if order else 0
    start = at - at % MAX_WALK
    return Picture(
        sentence(view) + looked_at,
        (*originals, storage, *slices, *dims),
        tuple(walk_frame(view, order, k, slices) for k in range(start, min(start + MAX_WALK, len(order)))),
        WORDS,
        layout=(*[(grid.name,) for grid in originals], ("storage",), tuple(grid.name for grid in (*dims, *slices))),
        numbers=((str(layout.shape), "shape"), (str(layout.strides), "strides"), (str(layout.offset), "offset")),
        first=at - start,
    )


def default_index(layout: Layout) -> Position:
    """Return the index that is looked at first: 1, 2, ..., where a step along each dim is left, so that all terms differ."""
    return tuple(min(d + 1, max(n - 2, 0)) for d, n in enumerate(layout.shape))


def walk_frame(view: StridedView, order: Sequence[Position], k: int, slices: Sequence[Grid]) -> Frame:
    """Return the step that visits element k of the view: its formula, and the arrows along each dim."""
    layout, index = view.layouts[-1], order[k]
    p = layout.position(index)
    here, there = view_place(index, layout, slices), storage_place(p)
    edges = [
        Edge(there, storage_place(p + stride), OTHER, f"{stride:+d}")
        for i, n, stride in zip(index, layout.shape, layout.strides, strict=True)
        if i + 1 < n and stride
    ]
    kinds = (element_link(index), CHOSEN), (storage_link(p), CHOSEN), (place_link(p), PATH)
    return Frame(
        f"{view.short_name}{format_index(index)} is at {formula(layout, index)}: offset + index * stride, for each dim.",
        kinds,
        (),
        (Edge(here, there, CHOSEN, formula(layout, index)), *edges),
        (),
        (Edge(there, here, LOAD, str(view.storage[p])),),
        source_lines(Layout.position)[-1].number,
        ((str(layout.strides), "strides"), (str(layout.offset), "offset"), (f"{k + 1} of {len(order)}", "element")),
    )


def view_place(index: Position, layout: Layout, slices: Sequence[Grid]) -> Place:
    """Return the cell of an element of the view."""
    row, column = [0, 0, *index][-2:]
    outer = row_major(layout.shape[:-2]).position(index[:-2]) if len(index) > 2 else 0
    return slices[outer].name, row, column


def storage_place(position: int) -> Place:
    """Return the cell of a position in the storage."""
    return "storage", *divmod(position, COLUMNS)


def storage_link(position: int) -> str:
    """Return the link of a cell of the storage alone."""
    return f"s{position}"


def dims_grid(layout: Layout) -> list[Grid]:
    """Draw size and stride of each dim, if there is one. A drag from one dim to another swaps them."""
    cells = [
        Cell(d, column, str(number), f"dim {d}: {what} {number}", "", (dim_link(d),))
        for d, numbers in enumerate(zip(layout.shape, layout.strides, strict=True))
        for column, (what, number) in enumerate(zip(("size", "stride"), numbers, strict=True))
    ]
    names = tuple(f"dim {d}" for d in range(layout.ndim)), ("size", "stride")
    title = "dims: drag one onto another" if layout.ndim > 1 else "its dim"
    return [Grid("dims", title, layout.ndim, 2, tuple(cells), *names, drags=True)] if cells else []


def dim_link(d: int) -> str:
    """Return the link of a dim of the view."""
    return f"d{d}"


def original_grid(view: StridedView) -> list[Grid]:
    """Draw the storage of x if the view does not use it: each of its numbers, and where its copies are."""
    if not view.is_copy:
        return []
    copied = dict[int, list[int]]()
    for p, v in enumerate(view.storage):
        copied.setdefault(v, []).append(p)
    size = row_major(view.shape).size
    cells = [
        Cell(
            0,
            0,
            str(v),
            f"storage of x {v}, {'copied to ' + format_some(list(map(str, copied[v]))) if v in copied else 'not copied'}",
            LOAD if v in copied else "",
            (f"x{v}", *map(place_link, copied.get(v, ()))),
        )
        for v in range(size)
    ]
    return [ribbon("original", f"storage of x: {format_count(size, 'number')} in a row", cells, COLUMNS)]


def cell_kind(position: int, counts: Counter[int]) -> str:
    """Return the kind of a position in the storage: used several times by the view, used once, or unused."""
    return OTHER if counts[position] > 1 else LOAD if counts[position] else ""


def place_link(position: int) -> str:
    """Return the link of a position in the storage of the view."""
    return f"p{position}"


def element_link(index: Position) -> str:
    """Return the link of an element of the view."""
    return "v" + ",".join(map(str, index))


def index_of(view: StridedView, chosen: str | None) -> Position | None:
    """Return the first index of the view whose element has this link; None without such an index."""
    if not chosen:
        return None
    for index, p in positions(view.layouts[-1]).items():
        if chosen in (element_link(index), place_link(p), storage_link(p), f"x{view.storage[p]}"):
            return index
    return None


def positions(layout: Layout) -> dict[Position, int]:
    """Return the position of each index: offset + sum(index * stride)."""
    position_of: dict[Position, int] = {(): layout.offset}
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        position_of = {(*index, i): p + i * stride for index, p in position_of.items() for i in range(size)}
    return position_of


def place_label(position: int, value: int, times: int, is_copy: bool) -> str:
    """Describe a position in the storage."""
    seen = {0: "not seen by the view", 1: "seen by the view"}.get(times, f"seen {times} times by the view")
    return f"storage {'of the copy ' if is_copy else ''}{position}, value {value}, {seen}"


def element_label(index: Position, view: StridedView, position: int) -> str:
    """Describe an element of the view."""
    names = ["row", "column"][-len(index) :] if len(index) <= 2 else [f"dim {d}" for d in range(len(index))]
    where = "".join(f"{name} {i}, " for name, i in zip(names, index, strict=False))
    return f"{where}value {view.storage[position]}, storage {position}"


def format_some(words: Sequence[str]) -> str:
    """Format the first few of many words, and how many are omitted."""
    rest = f" and {len(words) - MAX_LISTED_INDICES} more" if len(words) > MAX_LISTED_INDICES else ""
    return ", ".join(words[:MAX_LISTED_INDICES]) + rest


def sentence(view: StridedView) -> str:
    """Summarize the picture."""
    layout = view.layouts[-1]
    moved = ""
    if view.copies:
        step, _ = view.copies[-1]
        moved = f" {view.steps[step]} copied the elements to new memory, so the view lies in the storage of that copy."
    if layout.size == 0:
        return f"{view.name} has shape {layout.shape}: no elements, so no place in the storage is looked at.{moved}"
    seen = len(set(positions(layout).values()))
    repeated = f" in {format_count(seen, 'place')}, so that some share one" if seen < layout.size else ""
    elements = format_count(layout.size, "element")
    return f"{view.name} has shape {layout.shape} and strides {layout.strides}: {elements}{repeated}.{moved}"


def facts(view: StridedView, chosen: Position | None = None) -> list[Fact]:
    """Return facts about the chosen element, and about the view."""
    layout = view.layouts[-1]
    known = [] if chosen is None else element_facts(view, chosen)
    known += [
        Fact("shape", layout.shape, DERIVED),
        Fact("strides", layout.strides, DERIVED, "in elements: how far apart neighbours along each dim lie"),
        Fact("offset", layout.offset, DERIVED, "where index (0, 0, ...) lies"),
        Fact("contiguous", "yes" if layout.is_contiguous else "no", DERIVED, contiguity_reason(layout)),
        Fact("can be seen as one line", *flattening(layout)),
        Fact("memory", "a copy" if view.is_copy else "shared with x", DERIVED),
    ]
    copied = dict(view.copies)
    for k, (step, after) in enumerate(zip(view.steps, view.layouts[1:], strict=True)):
        value = f"shape {after.shape}, strides {after.strides}, offset {after.offset}"
        moved = f"a copy: {copied[k]}" if k in copied else "a view: the same memory"
        known.append(Fact(f"step {k + 1}: {step}", value, DERIVED, moved))
    return known


def element_facts(view: StridedView, chosen: Position) -> list[Fact]:
    """Return facts about one element of the view."""
    places = positions(view.layouts[-1])
    place, aliases = places[chosen], [format_index(index) for index, p in places.items() if p == places[chosen]]
    known = [
        Fact(
            f"view{format_index(chosen)} lies at",
            formula(view.layouts[-1], chosen),
            DERIVED,
            "offset + sum(index * stride)",
        ),
        Fact(f"view{format_index(chosen)} holds", view.storage[place], DERIVED, "element of x, counted in its storage"),
    ]
    why = "a stride of 0 reads one place again and again" if len(aliases) > 1 else "no other index reads that place"
    return [*known, Fact("the place is seen as", format_some(aliases), DERIVED, why)]


def format_index(index: Position) -> str:
    """Format an index for use after a name."""
    return f"[{', '.join(map(str, index))}]" if index else "[()]"


def formula(layout: Layout, index: Position) -> str:
    """Format offset + sum(index * stride), with numbers."""
    terms = [f"{i} * {s}" for i, s in zip(index, layout.strides, strict=True)]
    return f"{' + '.join([str(layout.offset), *terms])} = {layout.position(index)}"


def contiguity_reason(layout: Layout) -> str:
    """Explain why a layout is, or is not, contiguous; the offset does not matter."""
    expected = row_major(layout.shape).strides
    if layout.is_contiguous:
        return (
            "each dim steps over all elements of the dims behind it" if layout.size > 1 else "there is nothing to step over"
        )
    d = next(d for d, n in enumerate(layout.shape) if n > 1 and layout.strides[d] != expected[d])
    return f"dim {d} has stride {layout.strides[d]}; fresh memory would have {expected[d]}"


def flattening(layout: Layout) -> tuple[str, str, str]:
    """Return the fact whether reshape to one dim is a view: "yes" and its stride, or "no" and the reason."""
    try:
        return f"yes, with stride {layout.reshape(layout.size).strides[0]}", DERIVED, ""
    except MinifuseError as error:
        return "no", DERIVED, str(error)


def layout_method(steps: Sequence[Call | Index]) -> str:
    """Return the method of Layout that the last step calls; without one, the method of the formula."""
    match steps[-1] if steps else None:
        case Index():
            return "slice"
        case Call(method=method) if method != "contiguous":
            return METHODS.get(method, method)
    return "position"


def command(view: StridedView, chosen: Position | None = None) -> str:
    """Return the terminal command that prints the same facts."""
    element = "" if chosen is None else f" --element {quote(','.join(map(str, chosen)))}"
    shape = quote(",".join(map(str, view.shape)))
    return f"minifuse layout --shape {shape} --views {quote(view.name[1:])}{element}"

"""Broadcasting: how two shapes are combined, the elements that each result reads, and the sums of the gradients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from shlex import quote
from typing import Any

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.core.errors import MinifuseError, ShapeError
from minifuse.core.interning import toposort
from minifuse.core.layout import Layout, broadcast, row_major
from minifuse.core.wording import format_count
from minifuse.ir.array_functions import Reduce
from minifuse.ir.graph import inputs_of

from .cited_facts import DERIVED, Fact, Line
from .picture import CHOSEN, IDLE, LOAD, OTHER, PATH, STORE, Cell, Edge, Frame, Grid, Picture, Place, slice_grids
from .sources import source_lines
from .strides import default_index, format_index, format_some, formula, positions

MAX_DRAWN_ELEMENTS = 256  # of an operand or the result
TERMS = 6  # terms of a sum that are written out
OPERATIONS = {"x + y": "+", "x * y": "*"}
NAMES = "x", "y"
MAX_STEPS, MAX_EDGES = 48, 16  # steps forward and backward; edges of one element
LAYOUT = ("x0", "y0", "aligned"), ("over-x0", "over-y0", "result0"), ("x-grad0", "y-grad0")  # with at most two dims
WORDS = (
    (LOAD, "an element"),
    (STORE, "computed"),
    (OTHER, "repeated"),
    (IDLE, "the same again"),
    (CHOSEN, "now"),
    (PATH, "its copies"),
)
MISMATCH_WORDS = (*WORDS[:3], (IDLE, "fits nothing"))

Shape = tuple[int, ...]
Position = tuple[int, ...]


@dataclass(frozen=True)
class BroadcastResult:
    """x and y, their result, and their gradients if each result receives 1."""

    operation: str
    shapes: tuple[Shape, Shape]
    shape: Shape
    layouts: tuple[Layout, Layout]
    """Layouts of x and y, expanded to the shape of the result: repeated dims have stride 0."""
    values: tuple[tuple[float, ...], tuple[float, ...]]
    """Elements of x and y, in the order of their storage."""
    results: tuple[float, ...]
    gradients: tuple[tuple[float, ...], tuple[float, ...]]
    summed: tuple[tuple[int, ...], tuple[int, ...]]
    """The dims of the result that the backward pass summed for x and for y."""

    def readers(self, k: int) -> dict[int, list[int]]:
        """Return the elements of the result that read each element of operand k."""
        return self._readers[k]

    @cached_property
    def _readers(self) -> tuple[dict[int, list[int]], ...]:
        found = tuple(dict[int, list[int]]() for _ in NAMES)
        for index, p in positions(row_major(self.shape)).items():
            for k, layout in enumerate(self.layouts):
                found[k].setdefault(layout.position(index), []).append(p)
        return found


def compute_broadcast(operation: str, x: Sequence[int], y: Sequence[int]) -> BroadcastResult:
    """Compute with real tensors, forward and backward.

    Raises
    ------
    MinifuseError
        The shapes do not broadcast, or have too many elements to draw.
    """
    shapes = tuple(x), tuple(y)
    shape = broadcast(*shapes)
    for found in (*shapes, shape):
        if prod(found) > MAX_DRAWN_ELEMENTS:
            raise MinifuseError(
                f"shape {found} has {prod(found):,} elements; expected at most {MAX_DRAWN_ELEMENTS}, so that each is seen"
            )
    numbers = tuple(tuple(float(step * (k + 1)) for k in range(prod(s))) for s, step in zip(shapes, (1, 10), strict=True))
    a, b = (tensor(values, s) for values, s in zip(numbers, shapes, strict=True))
    out = a * b if operation == "*" else a + b
    plan = out.grad_fn[0].plan
    folded = dict(zip(plan.backward.arguments_with_grad, map(reduced_dims, plan.backward.function.outputs), strict=True))
    out.backward(tensor([1.0] * prod(shape), shape, False))
    return BroadcastResult(
        operation,
        shapes,
        shape,
        (row_major(shapes[0]).expand(*shape), row_major(shapes[1]).expand(*shape)),
        (numbers[0], numbers[1]),
        flat_values(out),
        (flat_values(a.grad), flat_values(b.grad)),
        (folded[0], folded[1]),
    )


def tensor(values: Sequence[float], shape: Shape, requires_grad: bool = True) -> Any:
    """Make a tensor of a shape from numbers."""
    x = (
        mf.zeros(*shape, dtype="float64", backend="python")
        if 0 in shape
        else mf.tensor(list(values), dtype="float64", backend="python").reshape(*shape)
    )
    return x.detach().requires_grad_(requires_grad)


def flat_values(x: Any) -> tuple[float, ...]:
    """Return the elements of a tensor, row by row."""
    return tuple(x.detach().numpy().ravel().tolist())


def reduced_dims(gradient: Any) -> tuple[int, ...]:
    """Return the dims that the graph of a gradient sums."""
    folds = [node.function for node in toposort([gradient], inputs_of) if isinstance(node.function, Reduce)]
    return tuple(sorted({d for fold in folds for d in fold.dims}))


def size_at(shape: Shape, d: int) -> int | None:
    """Return the size of dim d, counted from the last, which is -1; None if the shape has no such dim."""
    return shape[d] if len(shape) >= -d else None


def dim_rules(x: Shape, y: Shape) -> list[tuple[int, int | None, str]]:
    """Return (dim, size, reason) of each dim of the result, first dim first. The size is None if the sizes do not fit."""
    found = []
    for d in range(-max(len(x), len(y)), 0):
        a, b = size_at(x, d), size_at(y, d)
        if a is None or b is None:
            missing = NAMES[0] if a is None else NAMES[1]
            size = b if a is None else a
            repeated = ", and is repeated" if size != 1 else ""
            found.append((d, size, f"{missing} has no such dim: it counts as 1{repeated}"))
        elif a == b:
            found.append((d, a, "both have this size"))
        elif 1 in (a, b):
            found.append((d, a if b == 1 else b, f"{NAMES[0] if a == 1 else NAMES[1]} has size 1 there, and is repeated"))
        else:
            found.append((d, None, f"{a} and {b} differ, and neither is 1"))
    return found


def aligned_shapes(x: Shape, y: Shape) -> Grid:
    """Draw the two shapes, aligned at their last dims, and the result."""
    cells = list[Cell]()
    ways = dim_rules(x, y)
    for column, (d, size, why) in enumerate(ways):
        for row, (name, shape) in enumerate(zip(NAMES, (x, y), strict=True)):
            own = size_at(shape, d)
            has = f"has no dim {d}, counts as 1" if own is None else f"has size {own} in dim {d}"
            is_repeated = own in (None, 1) and size != 1
            cells.append(
                Cell(row, column, "-" if own is None else str(own), f"{name} {has}", OTHER if is_repeated else LOAD)
            )
        got = "no size" if size is None else f"size {size}"
        kind = IDLE if size is None else STORE
        cells.append(Cell(2, column, "?" if size is None else str(size), f"result, dim {d}: {got}, since {why}", kind))
    title = "shapes, aligned at the last dim" if ways else "two single numbers: no dims to align"
    names = tuple(str(d) for d, _, _ in ways)
    return Grid("aligned", title, 3, max(len(ways), 1), tuple(cells), (*NAMES, "result"), names)


def explain_mismatch(x: Shape, y: Shape, error: ShapeError) -> tuple[Picture, list[Fact]]:
    """Draw and explain two shapes that do not broadcast."""
    wrong = ", ".join(str(d) for d, size, _ in dim_rules(x, y) if size is None)
    return Picture(f"{x} and {y} do not broadcast: look at dim {wrong}.", (aligned_shapes(x, y),), words=MISMATCH_WORDS), [
        *dim_facts(x, y),
        Fact("result", "none", DERIVED, str(error)),
    ]


def picture(found: BroadcastResult, chosen: Position | None = None) -> Picture:
    """Draw x and y, both with ghost copies over the shape of the result, the result, and the gradients.

    Steps compute the elements of the result, then sum the gradients of the elements of x and y. `chosen` is an index of the
    result: its step is shown first. An element of the result is highlighted with its operands, and an element of x or y with
    all its copies and the results that read it.
    """
    order = positions(row_major(found.shape))
    results = {
        index: Cell(
            0,
            0,
            f"{found.results[p]:g}",
            f"result{format_index(index)}, {found.results[p]:g} = {format_operands(found, index)}",
            STORE,
            (link(p), own_link("result", p)),
        )
        for index, p in order.items()
    }
    operands, over, gradients = list[Grid](), list[Grid](), list[Grid]()
    for k, (name, shape) in enumerate(zip(NAMES, found.shapes, strict=True)):
        cells, received = dict[Position, Cell](), dict[Position, Cell]()
        for index, q in positions(row_major(shape)).items():
            uses = found.readers(k).get(q, [])
            links = f"{name}{q}", *map(link, uses)
            value, g = found.values[k][q], found.gradients[k][q]
            kind = OTHER if len(uses) > 1 else LOAD if uses else ""
            said = f"{name}{format_index(index)}, value {value:g}, read by {format_count(len(uses), 'result')}"
            cells[index] = Cell(0, 0, f"{value:g}", said, kind, (*links, own_link(name, q)))
            said = f"{name}.grad{format_index(index)}, {g:g}, a sum over {format_count(len(uses), 'result')}"
            received[index] = Cell(0, 0, f"{g:g}", said, STORE, (*links, own_link(f"{name}-grad", q)))
        operands += slice_grids(name, name, shape, cells)
        over += slice_grids(f"over-{name}", f"{name} as read", found.shape, ghost_cells(found, k))
        gradients += slice_grids(f"{name}-grad", f"{name}.grad", shape, received)
    outputs = slice_grids("result", "result", found.shape, results)
    aligned = aligned_shapes(*found.shapes)
    grids = [aligned, *operands, *over, *outputs, *gradients]
    place_of = {
        cell.links[-1]: (grid.name, cell.row, cell.column) for grid in grids for cell in grid.cells if len(cell.links) > 1
    }
    shown = list(order)
    at = shown.index(chosen or default_index(row_major(found.shape))) if shown else 0
    start = at - at % MAX_STEPS
    steps = [forward_frame(found, index, place_of) for index in shown[start : start + MAX_STEPS]]
    steps += [
        backward_frame(found, k, q, place_of)
        for k in range(len(NAMES))
        for q in range(min(len(found.gradients[k]), MAX_STEPS))
        if found.summed[k]
    ]
    return Picture(
        sentence(found) + ("" if chosen is None else describe_result(found, chosen)),
        tuple(grids),
        tuple(steps) if shown else (),
        WORDS,
        layout=LAYOUT if len(grids) == sum(map(len, LAYOUT)) else (),
        first=at - start,
    )


def ghost_cells(found: BroadcastResult, k: int) -> dict[Position, Cell]:
    """Draw operand k over the shape of the result: the first of equal copies is the element, the others are ghosts."""
    name, layout, cells = NAMES[k], found.layouts[k], dict[Position, Cell]()
    for index, p in positions(row_major(found.shape)).items():
        q = layout.position(index)
        is_first = found.readers(k)[q][0] == p
        said = f"{name} over the result{format_index(index)}, value {found.values[k][q]:g}: "
        said += "the element itself" if is_first else "the same element again, no copy in memory"
        links = link(p), f"{name}{q}", own_link(f"over-{name}", p)
        cells[index] = Cell(0, 0, f"{found.values[k][q]:g}", said, LOAD if is_first else IDLE, links)
    return cells


def forward_frame(found: BroadcastResult, index: Position, place_of: Mapping[str, Place]) -> Frame:
    """Return the step that computes one element of the result; edges lead from the elements to all their copies."""
    p = row_major(found.shape).position(index)
    kinds, edges, flights = [(own_link("result", p), CHOSEN)], list[Edge](), list[Edge]()
    for k, name in enumerate(NAMES):
        q = found.layouts[k].position(index)
        source, here = place_of[own_link(name, q)], place_of[own_link(f"over-{name}", p)]
        kinds += [(own_link(name, q), CHOSEN), (own_link(f"over-{name}", p), CHOSEN)]
        copies = found.readers(k)[q]
        for other in copies if len(copies) <= MAX_EDGES else (p,):
            kind = CHOSEN if other == p else ""
            edges.append(Edge(source, place_of[own_link(f"over-{name}", other)], kind))
        edges.append(Edge(here, place_of[own_link("result", p)], STORE))
        flights.append(Edge(source, here, LOAD, f"{found.values[k][q]:g}"))
    return Frame(
        describe_result(found, index).strip(),
        tuple(kinds),
        (),
        tuple(edges),
        (),
        tuple(flights),
        line_with("op(", source_lines(PythonBackend.zip)),
    )


def backward_frame(found: BroadcastResult, k: int, q: int, place_of: Mapping[str, Place]) -> Frame:
    """Return the step that sums the gradient of an element: edges lead from all its copies, one for each result."""
    name, readers = NAMES[k], found.readers(k).get(q, [])
    own, order = row_major(found.shapes[k]).index(q), row_major(found.shape)
    end = place_of[own_link(f"{name}-grad", q)]
    drawn = readers[:MAX_EDGES]
    terms = format_terms(found, k, [order.index(p) for p in readers])
    flights = [
        Edge(place_of[own_link(f"over-{name}", p)], end, STORE, format_terms(found, k, [order.index(p)])) for p in drawn
    ]
    kinds = [(own_link(grid, p), PATH) for p in readers for grid in ("result", f"over-{name}")]
    return Frame(
        f"Backward: {name}.grad{format_index(own)} = {terms} = {found.gradients[k][q]:g}, one term for each copy.",
        ((own_link(f"{name}-grad", q), CHOSEN), *kinds),
        (),
        tuple(Edge(flight.start, end, CHOSEN) for flight in flights),
        (),
        tuple(flights),
        line_with("function(total", source_lines(PythonBackend.reduce)),
        ((str(found.summed[k]), "dims summed"), (str(len(readers)), "terms")),
    )


def line_with(text: str, lines: Sequence[Line]) -> int:
    """Return the number of the line that contains a text."""
    return next(line.number for line in lines if text in line.text)


def source() -> list[Line]:
    """Return the loops that ran: one computes the result, one sums the gradients."""
    return [*source_lines(PythonBackend.zip), *source_lines(PythonBackend.reduce)]


def own_link(grid: str, k: int) -> str:
    """Return the link of one cell alone."""
    return f"{grid}:{k}"


def link(position: int) -> str:
    """Return the name of an element of the result."""
    return f"r{position}"


def element_link(found: BroadcastResult, chosen: Position | None) -> str:
    """Return the link of an element of the result; an empty one for None."""
    return "" if chosen is None else link(row_major(found.shape).position(chosen))


def index_of(found: BroadcastResult, chosen: str | None) -> Position | None:
    """Return the index of the result that a link names; for an element of x or y, the first result that reads it."""
    if not chosen:
        return None
    for index, p in positions(row_major(found.shape)).items():
        if chosen in (link(p), *[f"{n}{layout.position(index)}" for n, layout in zip(NAMES, found.layouts, strict=True)]):
            return index
    return None


def format_operands(found: BroadcastResult, index: Position) -> str:
    """Format the numbers from which a result is computed."""
    a, b = (values[layout.position(index)] for values, layout in zip(found.values, found.layouts, strict=True))
    return f"{a:g} {found.operation} {b:g}"


def describe_result(found: BroadcastResult, index: Position) -> str:
    """Describe the computation of one result."""
    places = [layout.position(index) for layout in found.layouts]
    x, y = (row_major(shape).index(q) for shape, q in zip(found.shapes, places, strict=True))
    got = found.results[row_major(found.shape).position(index)]
    both = f"x{format_index(x)} {found.operation} y{format_index(y)}"
    return f" result{format_index(index)} = {both} = {format_operands(found, index)} = {got:g}."


def sentence(found: BroadcastResult) -> str:
    """Summarize the broadcast."""
    x, y = found.shapes
    start = f"x {x} {found.operation} y {y} has shape {found.shape}"
    if not prod(found.shape):
        return f"{start}: no elements, so nothing is read, and every gradient is a sum of nothing."
    repeated = [
        f"{name} is repeated {prod(found.shape) // prod(shape)} times"
        for name, shape in zip(NAMES, found.shapes, strict=True)
        if prod(shape) < prod(found.shape)
    ]
    return f"{start}; {' and '.join(repeated) or 'each element is read once'}, and nothing is copied for that."


def facts(found: BroadcastResult, chosen: Position | None = None) -> list[Fact]:
    """Return the rule of each dim, the layouts over the result, and the sums of the backward pass."""
    known = [] if chosen is None else element_facts(found, chosen)
    known += dim_facts(*found.shapes)
    for name, shape, layout, dims in zip(NAMES, found.shapes, found.layouts, found.summed, strict=True):
        repeats = "stride 0 where it is repeated: no memory is used for that"
        known.append(Fact(f"{name} over the result", f"strides {layout.strides}", DERIVED, repeats))
        value = f"sums dims {dims}, giving shape {shape}" if dims else "sums nothing"
        why = "each element receives from all that read it"
        known.append(Fact(f"the gradient of {name}", value, DERIVED, why if dims else "no dim was added or repeated"))
    return known


def dim_facts(x: Shape, y: Shape) -> list[Fact]:
    """Return the rule of each dim as facts."""
    return [Fact(f"dim {d}", "does not fit" if size is None else size, DERIVED, why) for d, size, why in dim_rules(x, y)]


def element_facts(found: BroadcastResult, chosen: Position) -> list[Fact]:
    """Return the facts about one element of the result."""
    p = row_major(found.shape).position(chosen)
    known = [Fact(f"result{format_index(chosen)}", f"{format_operands(found, chosen)} = {found.results[p]:g}", DERIVED)]
    for k, name in enumerate(NAMES):
        layout, rule = found.layouts[k], "offset + sum(index * stride), with the strides over the result"
        known.append(Fact(f"it reads {name} at", formula(layout, chosen), DERIVED, rule))
    for k, name in enumerate(NAMES):
        layout = found.layouts[k]
        q = layout.position(chosen)
        readers = [index for index, place in positions(layout).items() if place == q]
        own = row_major(found.shapes[k]).index(q)
        known.append(
            Fact(
                f"{name}.grad{format_index(own)}",
                f"{format_terms(found, k, readers)} = {found.gradients[k][q]:g}",
                DERIVED,
                f"results that read it: {format_some([format_index(index) for index in readers])}",
            )
        )
    return known


def format_terms(found: BroadcastResult, k: int, readers: Sequence[Position]) -> str:
    """Format the terms of the gradient of an element of operand k, where each of its readers receives 1."""
    other = found.layouts[1 - k]
    terms = [
        f"{found.values[1 - k][other.position(index)]:g}" if found.operation == "*" else "1" for index in readers[:TERMS]
    ]
    return " + ".join([*terms, "..."] if len(readers) > TERMS else terms)


def command(x: Shape, y: Shape, operation: str = "x + y", chosen: Position | None = None) -> str:
    """Return the command that prints the same."""
    shapes = [quote(",".join(map(str, shape))) for shape in (x, y)]
    others = f" --operation {quote(operation)}" if operation != next(iter(OPERATIONS)) else ""
    others += "" if chosen is None else f" --element {quote(','.join(map(str, chosen)))}"
    return f"minifuse layout --shape {shapes[0]} --with {shapes[1]}{others}"

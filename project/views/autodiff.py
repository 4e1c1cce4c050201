"""Autodiff: the recorded calls of a function, and the backward pass through them, call by call.

The function runs on small float64 tensors and is recorded as usual. Then the recorded calls are visited in the order of
`backward`: each call computes the gradients of its inputs once, after all its own gradients have arrived. Each arriving
gradient is recorded.
"""

import inspect
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.compiler.plan import display_name
from minifuse.core.dispatch import grad_recording
from minifuse.core.errors import MinifuseError
from minifuse.core.interning import toposort
from minifuse.core.operators import Operator, add
from minifuse.core.wording import format_count
from minifuse.ir.array_functions import Reduce, View
from minifuse.ir.format_expressions import REDUCTION_NAMES

from .cited_facts import DERIVED, Fact
from .functions import Example
from .graph_layout import LayeredGraph, layer_graph
from .picture import CHOSEN, LOAD, STORE, Cell, Frame, Grid, Picture

SIZES = (1, 2, 3, 4)
MAX_DRAWN_ELEMENTS = 16  # elements of a gradient that are drawn
MEANS = (
    (LOAD, "an input; the gradient of the visited call"),
    (STORE, "receives a gradient now"),
    (CHOSEN, "the visited call"),
)
SHORT = 2  # elements of a value or gradient in a node or on an arrow
GAPS = (60, 42)  # pixels between nodes and between layers, for the values beside the arrows
STEP = 1e-6  # step of the finite differences, in each direction

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Arrival:
    """A gradient that a value has received from a call, or at the start."""

    call: int
    """The call that sends it; -1 at the start."""
    value: Array
    sums: tuple[tuple[int, ...], ...]
    """The dims of each sum in the graph of the call: those along which the value was broadcast."""


class RecordedCall(NamedTuple):
    """A call that was recorded while the function ran."""

    value: Array | None
    """The tensor that it returned; None if no tensor was seen."""
    line: int | None
    """The line of the function's file; None if the call was made elsewhere."""


class GradientRow(NamedTuple):
    """A row of the table of gradients: one that has arrived, or the sum of several."""

    value: int
    link: str
    name: str
    gradient: Array


@dataclass(frozen=True)
class BackwardPass:
    """A backward pass as plain data. Values are leaves first, then the results of calls, in the order of the calls."""

    example: Example
    size: int
    names: tuple[str, ...]
    values: tuple[Array | None, ...]
    """The elements of each value; None if no tensor was seen."""
    reads: tuple[tuple[int, ...], ...]
    """The inputs of each value; a leaf has none."""
    arrivals: tuple[tuple[Arrival, ...], ...]
    """The gradients that each value has received, in order."""
    order: tuple[int, ...]
    """The results of the calls in the order of the backward pass."""
    lines: tuple[int | None, ...]
    """The line of the function that made the call of each value; None for a leaf, and for the final sum."""
    gradients: tuple[Array, ...]
    """`grad` of each leaf after `backward`."""
    differences: tuple[Array, ...]
    """Central differences for each leaf."""
    loss: float

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return len(self.gradients)

    def total(self, k: int) -> Array:
        """Return the sum of all gradients that a value has received."""
        return sum([arrival.value for arrival in self.arrivals[k][1:]], start=self.arrivals[k][0].value)


def compute_loss(example: Example, arrays: Sequence[Array]) -> tuple[list[Any], Any]:
    """Return the leaves, and the sum of all elements of the result of the function."""
    leaves = [mf.tensor(array, backend="python", requires_grad=True) for array in arrays]
    return leaves, example.function(*leaves).sum()


def trace_backward(example: Example, size: int) -> BackwardPass:
    """Run a function, and its backward pass call by call.

    Raises
    ------
    MinifuseError
        No gradient goes from the result to an input.
    """
    arrays = example.arrays(size, "float64")
    with recorded_calls(example.function) as recorded:
        leaves, loss = compute_loss(example, arrays)
    if loss.grad_fn is None:
        raise MinifuseError(
            f"{example.name}: no gradient goes from the result to an input; expected a function such as x * x + sin(x)"
        )
    calls = toposort([loss.grad_fn[0]], lambda call: [e[0] for e in call.edges if type(e) is tuple])
    places = {id(leaf): k for k, leaf in enumerate(leaves)} | {id(call): len(leaves) + k for k, call in enumerate(calls)}

    def place(e: Any) -> int:
        return places[id(e[0] if type(e) is tuple else e)]

    received: list[list[Arrival]] = [[] for _ in places]
    received[place(loss.grad_fn)].append(Arrival(-1, np.ones(()), ()))
    order = []
    total: dict[int, Any] = {place(loss.grad_fn): loss.asarray_like(np.ones(()))}
    with grad_recording(False):
        for call in reversed(calls):
            here = places[id(call)]
            order.append(here)
            for k, (e, g) in enumerate(zip(call.edges, call.backward([total[here]]), strict=True)):
                if e is not None and g is not None:
                    to = place(e)
                    total[to] = total[to] + g if to in total else g
                    received[to].append(Arrival(here, g.numpy().copy(), summed_dims(call, k)))
    reads = [()] * len(leaves) + [tuple(dict.fromkeys(place(e) for e in call.edges if e is not None)) for call in calls]
    names = [*inspect.signature(example.function).parameters, *[call_name(call) for call in calls]]
    made = [recorded.get(id(call), RecordedCall(None, None)) for call in calls]
    loss.backward()
    return BackwardPass(
        example,
        size,
        tuple(names),
        (*arrays, *[call.value for call in made]),
        tuple(reads),
        tuple(map(tuple, received)),
        tuple(order),
        (*[None] * len(leaves), *[call.line for call in made]),
        tuple(np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy().copy() for leaf in leaves),
        tuple(finite_differences(example, arrays, k) for k in range(len(arrays))),
        float(loss.item()),
    )


@contextmanager
def recorded_calls(function: Any) -> Iterator[dict[int, RecordedCall]]:
    """Record, by the id of each recorded call, the tensor that it returns, and the line of the function that runs then."""
    found, before, kept = dict[int, RecordedCall](), sys.getprofile(), list[Any]()

    def watch(frame: FrameType | None, event: str, value: Any) -> None:
        if event != "return" or not isinstance(value, mf.Tensor) or value.grad_fn is None or id(value.grad_fn[0]) in found:
            return
        while frame and frame.f_code.co_filename != function.__code__.co_filename:
            frame = frame.f_back
        found[id(value.grad_fn[0])] = RecordedCall(value.detach().numpy().copy(), frame.f_lineno if frame else None)
        kept.append(value.grad_fn[0])  # so that no later call has its id

    sys.setprofile(watch)
    try:
        yield found
    finally:
        sys.setprofile(before)


def call_name(call: Any) -> str:
    """Return the name of a recorded call."""
    if hasattr(call, "view"):
        return str(call.view.method)
    function = call.plan.function
    title = display_name(function)
    operators = [x.name for x in getattr(function, "parameters", ()) if isinstance(x, Operator)]
    return REDUCTION_NAMES.get(operators[0], title) if title == "reduce_dims" and operators else title


def summed_dims(call: Any, k: int) -> tuple[tuple[int, ...], ...]:
    """Return the dims of the sums at the end of the graph that computes the gradient of input k."""
    backward = getattr(getattr(call, "plan", None), "backward", None)
    if backward is None or k not in backward.arguments_with_grad:
        return ()
    root = backward.function.outputs[backward.arguments_with_grad.index(k)]
    found = list[tuple[int, ...]]()
    while isinstance(root.function, View | Reduce) and not (
        isinstance(root.function, Reduce) and root.function.operator is not add
    ):
        if isinstance(root.function, Reduce):
            found.append(root.function.dims)
        (root,) = root.inputs
    return tuple(found)


def finite_differences(example: Example, arrays: Sequence[Array], k: int) -> Array:
    """Return the derivatives with respect to each element of input k, by central differences."""
    found = np.zeros(arrays[k].shape)
    for index in np.ndindex(*arrays[k].shape):
        ends = []
        for step in (STEP, -STEP):
            moved = [array.copy() for array in arrays]
            moved[k][index] += step
            with grad_recording(False):
                ends.append(float(compute_loss(example, moved)[1].item()))
        found[index] = (ends[0] - ends[1]) / (2 * STEP)
    return found


# The picture.


def picture(found: BackwardPass) -> Picture:
    """Draw the graph of the calls, and beside it the gradients that each value receives. Both fill step by step."""
    graph = graph_of(found)
    grids = graph.grid, gradient_grid(found)
    layout = (tuple(grid.name for grid in grids),)
    return Picture(sentence(found), grids, tuple(frames(found, graph)), MEANS, graph.edges(), layout=layout)


def numbered_name(found: BackwardPass, k: int) -> str:
    """Return the name of a value with its number."""
    return found.names[k] if k < found.leaves else f"%{k} {found.names[k]}"


def graph_of(found: BackwardPass) -> LayeredGraph:
    """Draw each value below its inputs."""
    cells = list[Cell]()
    for k, reads in enumerate(found.reads):
        readers = [j for j, inputs in enumerate(found.reads) if k in inputs]
        of = f"computed by {found.names[k]} from {', '.join(numbered_name(found, j) for j in reads)}" if reads else "a leaf"
        uses = f", used by {', '.join(numbered_name(found, j) for j in readers)}" if readers else ", the last"
        label = f"{node_text(found, k)}: {of}{uses}; receives {format_count(len(found.arrivals[k]), 'gradient')}"
        kind = LOAD if k < found.leaves else ""
        cells.append(Cell(0, 0, node_text(found, k), label, kind, (f"g{k}", f"v{k}", *edge_links(found, k))))
    return layer_graph("graph", "Inputs above, the sum below", cells, found.reads, GAPS)


def node_text(found: BackwardPass, k: int) -> str:
    """Return the name of a value, and its first elements."""
    value = found.values[k]
    return numbered_name(found, k) if value is None else f"{numbered_name(found, k)} = {short_text(value)}"


def edge_links(found: BackwardPass, k: int) -> tuple[str, ...]:
    """Return a link for each edge of a value, to its inputs and to what reads it."""
    return tuple(f"g{j}>{n}" for n, inputs in enumerate(found.reads) for j in inputs if k in (j, n))


def gradient_rows(found: BackwardPass) -> list[GradientRow]:
    """Return the gradients of all values in the order of the backward pass: each arrival, and the sum of several."""
    rows = list[GradientRow]()
    for k in (*found.order, *range(found.leaves)):
        name, arrivals = numbered_name(found, k), found.arrivals[k]
        for j, x in enumerate(arrivals):
            source = f"from {numbered_name(found, x.call)}" if x.call >= 0 else "the start"
            rows.append(GradientRow(k, f"a{k}.{j}", f"{name}: {source}", x.value))
        if len(arrivals) > 1:
            rows.append(GradientRow(k, f"t{k}", f"{name}: the sum", found.total(k)))
    return rows


def gradient_grid(found: BackwardPass) -> Grid:
    """Draw a row of elements for each gradient that a value receives. The texts of the cells are set when it arrives."""
    rows, cells = gradient_rows(found), list[Cell]()
    for r, row in enumerate(rows):
        for c, index in enumerate(islice(np.ndindex(*row.gradient.shape), MAX_DRAWN_ELEMENTS)):
            number = float(row.gradient[index])
            label = f"gradient of {row.name} at {index}: {number:.6g}"
            cells.append(Cell(r, c, f"{number:.3g}", label, "", (f"{row.link}.{c}", row.link, f"v{row.value}")))
    most = max((row.gradient.size for row in rows), default=0)
    part = f", elements 0..{MAX_DRAWN_ELEMENTS - 1} of {most}" if most > MAX_DRAWN_ELEMENTS else ""
    columns = max(min(most, MAX_DRAWN_ELEMENTS), 1)
    names = tuple(row.name for row in rows)
    return Grid("gradients", f"The gradients of each value{part}", max(len(rows), 1), columns, tuple(cells), names)


def frames(found: BackwardPass, graph: LayeredGraph) -> list[Frame]:
    """Return a frame for the start, and one for each call of the backward pass. Gradients stay once they have arrived."""
    rows, last = gradient_rows(found), found.order[0]
    has_arrived = {f"a{last}.0"}
    text = f"{numbered_name(found, last)} receives 1: the derivative of the result by itself."
    first = (f"g{last}", STORE), (f"a{last}.0", STORE)
    steps = [Frame(text, first, texts(found, rows, has_arrived), numbers=numbers(found, 0, 1))]
    for n, here in enumerate(found.order, 1):
        single, sent = len(found.arrivals[here]) == 1, list[tuple[int, int, Arrival]]()
        has_arrived |= set() if single else {f"t{here}"}
        for k, arrivals in enumerate(found.arrivals):
            sent += [(k, j, arrival) for j, arrival in enumerate(arrivals) if arrival.call == here]
        has_arrived |= {f"a{k}.{j}" for k, j, _ in sent}
        if n == len(found.order):
            has_arrived |= {row.link for row in rows}
        by_value = dict[int, list[str]]()
        for k, _, arrival in sent:
            by_value.setdefault(k, []).append(short_text(arrival.value))
        kinds = (
            (f"g{here}", CHOSEN),
            (f"a{here}.0" if single else f"t{here}", LOAD),
            *[(f"g{k}", STORE) for k in by_value],
            *[(f"a{k}.{j}", STORE) for k, j, _ in sent],
        )
        edges = tuple(graph.edge(here, k, STORE, " and ".join(values)) for k, values in by_value.items())
        said = "; ".join(describe_arrival(found, *arrival) for arrival in sent)
        steps.append(
            Frame(
                f"{numbered_name(found, here)}: {said or 'it sends nothing'}.",
                kinds,
                texts(found, rows, has_arrived),
                edges,
                flights=edges,
                line=found.lines[here],
                numbers=numbers(found, n, sum(link.startswith("a") for link in has_arrived)),
            )
        )
    return steps


def texts(found: BackwardPass, rows: Sequence[GradientRow], has_arrived: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the texts of a step: gradients that have not arrived are blank, and a node shows the sum of those that have."""
    blank = [(row.link, "") for row in rows if row.link not in has_arrived and row.gradient.size]
    received = dict[int, Array]()
    for row in rows:
        if row.link.startswith("a") and row.link in has_arrived:
            received[row.value] = received[row.value] + row.gradient if row.value in received else row.gradient
    return (*blank, *[(f"g{k}", f"{node_text(found, k)}\ngrad {short_text(x)}") for k, x in received.items()])


def numbers(found: BackwardPass, visited: int, arrived: int) -> tuple[tuple[str, str], ...]:
    """Return the numbers of a step."""
    count = sum(map(len, found.arrivals))
    return (f"{visited} of {len(found.order)}", "calls visited"), (f"{arrived} of {count}", "gradients arrived")


def short_text(value: Array) -> str:
    """Format a value or a gradient in a few characters: its first elements."""
    flat = value.reshape(-1)
    return ", ".join(f"{float(x):.3g}" for x in flat[:SHORT]) + (" …" if flat.size > SHORT else "")


def describe_arrival(found: BackwardPass, k: int, j: int, arrival: Arrival) -> str:
    """Describe one arriving gradient."""
    text = f"{numbered_name(found, k)} {'adds' if j else 'receives'} {short_text(arrival.value) or 'nothing'}"
    return text + "".join(f", summed along dims {dims}" for dims in arrival.sums)


def sentence(found: BackwardPass) -> str:
    """Summarize the backward pass."""
    name = found.example.function.__name__
    text = f"sum of {name}({', '.join(found.names[: found.leaves])}) = {found.loss:.6g}: "
    calls = format_count(len(found.order), "recorded call")
    return f"{text}{calls}, each visited once, the last first. {found.example.shows}"


def facts(found: BackwardPass, chosen: str | None = None) -> list[Fact]:
    """Return the gradients with finite differences, the accumulated values, and the summed gradients."""
    drawn = picture(found).grids if chosen else ()
    known = [Fact("chosen", cell.label, DERIVED) for grid in drawn for cell in grid.cells if cell.links[0] == chosen]
    for k in range(found.leaves):
        gradient, right = found.gradients[k], found.differences[k]
        known.append(Fact(f"gradient of {found.names[k]}", format_array(gradient), DERIVED, "as backward() left it in grad"))
        rule = f"(f(x + h) - f(x - h)) / 2h with h = {STEP:g}, element by element"
        known.append(Fact(f"differences of {found.names[k]}", format_array(right), DERIVED, rule))
        apart = float(np.max(np.abs(gradient - right), initial=0.0))
        known.append(Fact(f"largest difference of {found.names[k]}", f"{apart:.1e}", DERIVED, "between the two"))
    several = [numbered_name(found, k) for k, x in enumerate(found.arrivals) if len(x) > 1]
    summed = [numbered_name(found, k) for k, x in enumerate(found.arrivals) if any(arrival.sums for arrival in x)]
    known.append(Fact("accumulated", ", ".join(several) or "nothing", DERIVED, "values that received more than once"))
    known.append(Fact("summed", ", ".join(summed) or "nothing", DERIVED, "gradients with a sum in the graph of their call"))
    return known


def format_array(array: Array) -> str:
    """Format the first numbers of an array."""
    flat = array.reshape(-1)
    more = f" ... ({flat.size} in all)" if flat.size > MAX_DRAWN_ELEMENTS else ""
    return "[" + ", ".join(f"{float(x):.6g}" for x in flat[:MAX_DRAWN_ELEMENTS]) + more + "]"


def gradients_match(found: BackwardPass) -> bool:
    """Return True if the gradients equal the finite differences, to the precision of those."""
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(found.gradients, found.differences, strict=True))


def command(found: BackwardPass) -> str:
    """Return the command that prints the same backward pass."""
    shapes = ",".join("x".join(map(str, shape)) for shape in found.example.shapes(found.size))
    return f"minifuse grad {found.example.file}:{found.example.function.__name__} --shape {shapes}"

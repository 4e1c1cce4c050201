"""Autodiff: the recorded calls of a function, and the backward pass through them, call by call.

The function runs on small float64 tensors and is recorded as usual. Then the recorded calls are visited in the order of
`backward`: each call computes the gradients of its inputs once, after all its own gradients have arrived. Each arriving
gradient is recorded.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.compiler.plan import display_name
from minifuse.core.dispatch import grad_recording
from minifuse.core.interning import toposort
from minifuse.core.operators import add
from minifuse.ir.array_functions import Reduce, View
from minifuse.ir.format_expressions import REDUCTION_NAMES
from minifuse.ir.graph import inputs_of

from .cited_facts import DERIVED, Fact
from .functions import Example
from .fusion import assign_layers, edge_links, grid_of, readers
from .picture import CHOSEN, LOAD, OTHER, STORE, Cell, Frame, Grid, Picture

SIZES = (1, 2, 3, 4)
MAX_DRAWN_ELEMENTS = 16  # elements of a gradient that are drawn
MEANS = (
    (LOAD, "a leaf; what the call has received"),
    (STORE, "what it sends"),
    (OTHER, "receives several times"),
    (CHOSEN, "the call that is asked"),
)
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


@dataclass(frozen=True)
class BackwardPass:
    """A backward pass as plain data. Values are leaves first, then the results of calls, in the order of the calls."""

    example: Example
    size: int
    names: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
    """The inputs of each value; a leaf has none."""
    arrivals: tuple[tuple[Arrival, ...], ...]
    """The gradients that each value has received, in order."""
    order: tuple[int, ...]
    """The results of the calls in the order of the backward pass."""
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
    """Run a function, and its backward pass call by call."""
    arrays = example.arrays(size, "float64")
    leaves, loss = compute_loss(example, arrays)
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
    loss.backward()
    return BackwardPass(
        example,
        size,
        tuple(names),
        tuple(reads),
        tuple(map(tuple, received)),
        tuple(order),
        tuple(leaf.grad.numpy().copy() for leaf in leaves),
        tuple(finite_differences(example, arrays, k) for k in range(len(arrays))),
        float(loss.item()),
    )


def call_name(call: Any) -> str:
    """Return the name of a recorded call."""
    if hasattr(call, "view"):
        return str(call.view.method)
    folds = [x.function for x in toposort(call.plan.outputs, inputs_of) if isinstance(x.function, Reduce)]
    title = display_name(call.plan.function)
    return REDUCTION_NAMES.get(folds[0].operator.name, title) if title == "reduce_dims" and len(folds) == 1 else title


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
    """Draw the graph, and for each value the gradients that it has received and their sum."""
    grids = [graph_grid(found), *[gradient_grid(found, k) for k in reversed(range(len(found.names)))]]
    return Picture(sentence(found), tuple(grids), tuple(frames(found)), MEANS)


def numbered_name(found: BackwardPass, k: int) -> str:
    """Return the name of a value with its number."""
    return found.names[k] if k < found.leaves else f"%{k} {found.names[k]}"


def graph_grid(found: BackwardPass) -> Grid:
    """Draw each value to the right of its inputs."""
    used, cells = readers(found.reads), list[Cell]()
    for k, reads in enumerate(found.reads):
        of = f"computed by {found.names[k]} from {', '.join(numbered_name(found, j) for j in reads)}" if reads else "a leaf"
        uses = f", used by {', '.join(numbered_name(found, j) for j in used[k])}" if used[k] else ", the last"
        label = f"{numbered_name(found, k)}: {of}{uses}; receives {len(found.arrivals[k])} times"
        links = (f"g{k}", f"v{k}", *edge_links("g", k, found.reads, used))
        kind = LOAD if k < found.leaves else OTHER if len(found.arrivals[k]) > 1 else ""
        cells.append(Cell(0, 0, numbered_name(found, k), label, kind, links))
    title = "graph: blue is a leaf, purple receives several times"
    return grid_of("graph", title, assign_layers(found.reads), cells)


def gradient_grid(found: BackwardPass, k: int) -> Grid:
    """Draw the gradients that a value has received: a row for each, and their sum."""
    arrivals, cells = found.arrivals[k], list[Cell]()
    rows = [
        (f"from {numbered_name(found, x.call)}" if x.call >= 0 else "start", x.value, f"a{k}.{j}")
        for j, x in enumerate(arrivals)
    ]
    if len(arrivals) > 1:
        rows.append(("sum", found.total(k), f"t{k}"))
    shape = arrivals[0].value.shape if arrivals else ()
    for r, (name, value, link) in enumerate(rows):
        for c, index in enumerate(list(np.ndindex(*shape))[:MAX_DRAWN_ELEMENTS]):
            number = float(value[index])
            label = f"gradient of {numbered_name(found, k)} at {index}, {name}: {number:.6g}"
            cells.append(Cell(r, c, f"{number:.3g}", label, "", (f"{link}.{c}", link, f"v{k}")))
    count = int(np.prod(shape))
    part = f", elements 0..{MAX_DRAWN_ELEMENTS - 1} of {count}" if count > MAX_DRAWN_ELEMENTS else ""
    names = tuple(name for name, _, _ in rows)
    title = f"gradient of {numbered_name(found, k)} {shape}{part}"
    return Grid(f"gradient{k}", title, max(len(rows), 1), max(min(count, MAX_DRAWN_ELEMENTS), 1), tuple(cells), names)


def frames(found: BackwardPass) -> list[Frame]:
    """Return a frame for the start, and one for each call of the backward pass."""
    last = found.order[0]
    steps = [
        Frame(f"{numbered_name(found, last)} receives 1: the derivative of the result by itself.", ((f"a{last}.0", STORE),))
    ]
    for here in found.order:
        sentences, kinds = list[str](), [(f"g{here}", CHOSEN)]
        single = len(found.arrivals[here]) == 1
        kinds.append((f"a{here}.0" if single else f"t{here}", LOAD))
        for k, arrivals in enumerate(found.arrivals):
            for j, arrival in enumerate(arrivals):
                if arrival.call == here:
                    kinds.append((f"a{k}.{j}", STORE))
                    sentences.append(describe_arrival(found, k, j, arrival))
        steps.append(
            Frame(f"{numbered_name(found, here)} is asked what its inputs receive: {'; '.join(sentences)}.", tuple(kinds))
        )
    return steps


def describe_arrival(found: BackwardPass, k: int, j: int, arrival: Arrival) -> str:
    """Describe one arriving gradient."""
    text = f"{numbered_name(found, k)} receives shape {arrival.value.shape}"
    if arrival.sums:
        text += f", summed along dims {' and '.join(str(dims) for dims in arrival.sums)}"
    return text + (", which is added to what it has" if j else "")


def sentence(found: BackwardPass) -> str:
    """Summarize the backward pass."""
    name = found.example.function.__name__
    text = f"sum of {name}({', '.join(found.names[: found.leaves])}) = {found.loss:.6g}: {len(found.order)} recorded calls, "
    return f"{text}each asked once, the last first. {found.example.shows}"


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
    return f"minifuse grad project/views/functions.py:{found.example.function.__name__} --shape {shapes}"

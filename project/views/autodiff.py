"""Autodiff: the recorded calls of a function, and the backward pass through them, one call after the other.

The function runs on small float64 tensors and is recorded as always. Then its history is walked as `backward` walks it: each
call is asked once, by its own `backward`, when all that it receives has arrived; and each arrival is noted.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import minifuse as mf
from minifuse.compiler.plan import display_name
from minifuse.compiler.pretty_print import REDUCTION_NAMES
from minifuse.core.dispatch import grad_recording
from minifuse.core.interning import toposort
from minifuse.core.operators import add
from minifuse.ir.array_functions import Reduce, View
from minifuse.ir.graph import inputs_of

from .cited_facts import DERIVED, Fact
from .functions import Example
from .fusion import edges, grid_of, layers, readers
from .picture import CHOSEN, LOAD, OTHER, STORE, Cell, Frame, Grid, Picture

SIZES = (1, 2, 3, 4)
MAX_DRAWN_ELEMENTS = 16  # elements of a gradient that are drawn
MEANS = (
    (LOAD, "a leaf; what the call has received"),
    (STORE, "what it sends"),
    (OTHER, "receives several times"),
    (CHOSEN, "the call that is asked"),
)
STEP = 1e-6  # of the differences, up and down

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Arrival:
    """A gradient that a value has received from a call, or at the start."""

    call: int
    """Who sends it; -1 at the start."""
    value: Array
    sums: tuple[tuple[int, ...], ...]
    """The dims of each sum on the way: those along which the value was repeated, in the call's own graph."""


@dataclass(frozen=True)
class Walked:
    """A backward pass: plain data. Values are leaves first, then the results of calls, in the order of the calls."""

    example: Example
    size: int
    names: tuple[str, ...]
    reads: tuple[tuple[int, ...], ...]
    """What each value is computed from; of a leaf nothing."""
    arrivals: tuple[tuple[Arrival, ...], ...]
    """Of each value, in order."""
    order: tuple[int, ...]
    """The values whose calls were asked, in order."""
    gradients: tuple[Array, ...]
    """Of the leaves, as `backward` leaves them in `grad`."""
    differences: tuple[Array, ...]
    """Of the leaves, by central differences."""
    loss: float

    @property
    def leaves(self) -> int:
        """How many."""
        return len(self.gradients)

    def total(self, k: int) -> Array:
        """The whole gradient of a value."""
        return sum([arrival.value for arrival in self.arrivals[k][1:]], start=self.arrivals[k][0].value)


def loss_of(example: Example, arrays: Sequence[Array]) -> tuple[list[Any], Any]:
    """The leaves, and the sum of all elements of what the function gives."""
    leaves = [mf.tensor(array, backend="python", requires_grad=True) for array in arrays]
    return leaves, example.function(*leaves).sum()


def walked(example: Example, size: int) -> Walked:
    """Run a function, and walk its history backward."""
    arrays = example.arrays(size, "float64")
    leaves, loss = loss_of(example, arrays)
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
                    received[to].append(Arrival(here, g.numpy().copy(), sums_of(call, k)))
    reads = [()] * len(leaves) + [tuple(dict.fromkeys(place(e) for e in call.edges if e is not None)) for call in calls]
    names = [*inspect.signature(example.function).parameters, *[name_of(call) for call in calls]]
    loss.backward()
    return Walked(
        example,
        size,
        tuple(names),
        tuple(reads),
        tuple(map(tuple, received)),
        tuple(order),
        tuple(leaf.grad.numpy().copy() for leaf in leaves),
        tuple(differences(example, arrays, k) for k in range(len(arrays))),
        float(loss.item()),
    )


def name_of(call: Any) -> str:
    """What a recorded call is called."""
    if hasattr(call, "view"):
        return str(call.view.method)
    folds = [x.function for x in toposort(call.plan.outputs, inputs_of) if isinstance(x.function, Reduce)]
    title = display_name(call.plan.function)
    return REDUCTION_NAMES.get(folds[0].operator.name, title) if title == "reduce_dims" and len(folds) == 1 else title


def sums_of(call: Any, k: int) -> tuple[tuple[int, ...], ...]:
    """The dims that the gradient of input k is summed along at last, as the graph of the call's backward pass has it."""
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


def differences(example: Example, arrays: Sequence[Array], k: int) -> Array:
    """The derivative by each element of input k, by central differences."""
    found = np.zeros(arrays[k].shape)
    for index in np.ndindex(*arrays[k].shape):
        ends = []
        for step in (STEP, -STEP):
            moved = [array.copy() for array in arrays]
            moved[k][index] += step
            with grad_recording(False):
                ends.append(float(loss_of(example, moved)[1].item()))
        found[index] = (ends[0] - ends[1]) / (2 * STEP)
    return found


# The picture.


def picture(found: Walked) -> Picture:
    """The graph, once per value; and of each value what it has received, and the sum of that."""
    grids = [graph_grid(found), *[gradient_grid(found, k) for k in reversed(range(len(found.names)))]]
    return Picture(sentence(found), tuple(grids), tuple(frames(found)), MEANS)


def titled(found: Walked, k: int) -> str:
    """A value with its number."""
    return found.names[k] if k < found.leaves else f"%{k} {found.names[k]}"


def graph_grid(found: Walked) -> Grid:
    """Each value to the right of what it was computed from."""
    used, cells = readers(found.reads), list[Cell]()
    for k, reads in enumerate(found.reads):
        of = f"computed by {found.names[k]} from {', '.join(titled(found, j) for j in reads)}" if reads else "a leaf"
        uses = f", used by {', '.join(titled(found, j) for j in used[k])}" if used[k] else ", the last"
        label = f"{titled(found, k)}: {of}{uses}; receives {len(found.arrivals[k])} times"
        links = (f"g{k}", f"v{k}", *edges("g", k, found.reads, used))
        kind = LOAD if k < found.leaves else OTHER if len(found.arrivals[k]) > 1 else ""
        cells.append(Cell(0, 0, titled(found, k), label, kind, links))
    title = "graph: blue is a leaf, purple receives several times"
    return grid_of("graph", title, layers(found.reads), cells)


def gradient_grid(found: Walked, k: int) -> Grid:
    """What a value has received: a row for each arrival, and their sum."""
    arrivals, cells = found.arrivals[k], list[Cell]()
    rows = [
        (f"from {titled(found, x.call)}" if x.call >= 0 else "start", x.value, f"a{k}.{j}") for j, x in enumerate(arrivals)
    ]
    if len(arrivals) > 1:
        rows.append(("sum", found.total(k), f"t{k}"))
    shape = arrivals[0].value.shape if arrivals else ()
    for r, (name, value, link) in enumerate(rows):
        for c, index in enumerate(list(np.ndindex(*shape))[:MAX_DRAWN_ELEMENTS]):
            number = float(value[index])
            label = f"gradient of {titled(found, k)} at {index}, {name}: {number:.6g}"
            cells.append(Cell(r, c, f"{number:.3g}", label, "", (f"{link}.{c}", link, f"v{k}")))
    count = int(np.prod(shape))
    part = f", elements 0..{MAX_DRAWN_ELEMENTS - 1} of {count}" if count > MAX_DRAWN_ELEMENTS else ""
    names = tuple(name for name, _, _ in rows)
    title = f"gradient of {titled(found, k)} {shape}{part}"
    return Grid(f"gradient{k}", title, max(len(rows), 1), max(min(count, MAX_DRAWN_ELEMENTS), 1), tuple(cells), names)


def frames(found: Walked) -> list[Frame]:
    """The start, and one step for each call that is asked."""
    last = found.order[0]
    steps = [Frame(f"{titled(found, last)} receives 1: the derivative of the result by itself.", ((f"a{last}.0", STORE),))]
    for here in found.order:
        told, kinds = list[str](), [(f"g{here}", CHOSEN)]
        single = len(found.arrivals[here]) == 1
        kinds.append((f"a{here}.0" if single else f"t{here}", LOAD))
        for k, arrivals in enumerate(found.arrivals):
            for j, arrival in enumerate(arrivals):
                if arrival.call == here:
                    kinds.append((f"a{k}.{j}", STORE))
                    told.append(told_of(found, k, j, arrival))
        steps.append(Frame(f"{titled(found, here)} is asked what its inputs receive: {'; '.join(told)}.", tuple(kinds)))
    return steps


def told_of(found: Walked, k: int, j: int, arrival: Arrival) -> str:
    """One arrival in words."""
    text = f"{titled(found, k)} receives shape {arrival.value.shape}"
    if arrival.sums:
        text += f", summed along dims {' and '.join(str(dims) for dims in arrival.sums)}"
    return text + (", which is added to what it has" if j else "")


def sentence(found: Walked) -> str:
    """What is to be seen."""
    name = found.example.function.__name__
    text = f"sum of {name}({', '.join(found.names[: found.leaves])}) = {found.loss:.6g}: {len(found.order)} recorded calls, "
    return f"{text}each asked once, the last first. {found.example.shows}"


def facts(found: Walked, chosen: str | None = None) -> list[Fact]:
    """The gradients, beside finite differences; what was accumulated and what was summed."""
    drawn = picture(found).grids if chosen else ()
    known = [Fact("chosen", cell.label, DERIVED) for grid in drawn for cell in grid.cells if cell.links[0] == chosen]
    for k in range(found.leaves):
        gradient, right = found.gradients[k], found.differences[k]
        known.append(Fact(f"gradient of {found.names[k]}", shortened(gradient), DERIVED, "as backward() left it in grad"))
        rule = f"(f(x + h) - f(x - h)) / 2h with h = {STEP:g}, element by element"
        known.append(Fact(f"differences of {found.names[k]}", shortened(right), DERIVED, rule))
        apart = float(np.max(np.abs(gradient - right), initial=0.0))
        known.append(Fact(f"largest difference of {found.names[k]}", f"{apart:.1e}", DERIVED, "between the two"))
    several = [titled(found, k) for k, x in enumerate(found.arrivals) if len(x) > 1]
    summed = [titled(found, k) for k, x in enumerate(found.arrivals) if any(arrival.sums for arrival in x)]
    known.append(Fact("accumulated", ", ".join(several) or "nothing", DERIVED, "values that received more than once"))
    known.append(Fact("summed", ", ".join(summed) or "nothing", DERIVED, "gradients with a sum in the graph of their call"))
    return known


def shortened(array: Array) -> str:
    """The first numbers of an array."""
    flat = array.reshape(-1)
    more = f" ... ({flat.size} in all)" if flat.size > MAX_DRAWN_ELEMENTS else ""
    return "[" + ", ".join(f"{float(x):.6g}" for x in flat[:MAX_DRAWN_ELEMENTS]) + more + "]"


def is_right(found: Walked) -> bool:
    """Whether gradients are what differences say, to the digits that those have."""
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(found.gradients, found.differences, strict=True))


def command(found: Walked) -> str:
    """The line on a terminal that walks the same."""
    shapes = ",".join("x".join(map(str, shape)) for shape in found.example.shapes(found.size))
    return f"minifuse grad project/views/functions.py:{found.example.function.__name__} --shape {shapes}"

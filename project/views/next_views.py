"""The views that can be appended to a chain: each kind with its possible arguments, or the reason why it is impossible.

They depend on the layout: a view is not offered if the library would raise an error, or if its result has more elements or
dims than a page draws. A reshape that must copy is offered as a copy, with the error of `view()`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

from minifuse.core.errors import ViewError
from minifuse.core.layout import Layout

from .expressions import MAX_CHARACTERS, MAX_STEPS, Call, Index, format_steps
from .strides import MAX_DIMS, MAX_DRAWN_ELEMENTS, StridedView, dim_link, element_link, positions

MAX_OFFERED_VIEWS = 24  # views of one kind
MAX_REPEATS = 8  # of a dim of size 1
MAX_STEP_LENGTH = 48  # characters of an offered view
FRONT = "a new dim in front"

Step = Call | Index


@dataclass(frozen=True)
class Offers:
    """The views that can be appended."""

    options: dict[str, tuple[Step, ...]]
    """View name -> views with all possible arguments; empty for slice and expand, whose arguments are ranges."""
    refused: dict[str, str]
    """View name -> reason, for views that cannot be appended."""


def offer_views(layout: Layout, steps: Sequence[Step] = ()) -> Offers:
    """Return the views that can be appended to a chain with this layout."""
    if len(steps) >= MAX_STEPS:
        return Offers({}, {"any view": f"the chain has {MAX_STEPS} views, the most that are read; take one off"})
    if len("".join(format_steps(steps))) > MAX_CHARACTERS - MAX_STEP_LENGTH:
        return Offers({}, {"any view": f"the chain has nearly {MAX_CHARACTERS} characters; take a view off"})
    candidates: dict[str, list[Step]] = {
        "permute": offered_permutes(layout),
        "slice": [],
        "flip": offered_flips(layout),
        "expand": [],
        "reshape": offered_reshapes(layout),
        "unsqueeze": [Call("unsqueeze", (d,)) for d in range(layout.ndim + 1) if layout.ndim < MAX_DIMS],
        "squeeze": [Call("squeeze", (d,)) for d, n in enumerate(layout.shape) if n == 1],
        "contiguous": [] if layout.is_contiguous else [Call("contiguous", ())],
    }
    refused = {
        "permute": "it takes two dims to change their order",
        "slice": f"{layout.shape} has no dim with an element",
        "flip": "a single number has no dims",
        "expand": f"with {layout.size} elements in {layout.ndim} dims there is no room for a repeated one",
        "reshape": "no other shape has as many elements",
        "unsqueeze": f"it has {MAX_DIMS} dims, the most that are drawn",
        "squeeze": f"no dim of {layout.shape} has size 1",
        "contiguous": "it is contiguous, so nothing would move",
    }
    is_ranged = {"slice": bool(sliceable_dims(layout)), "expand": bool(expandable_dims(layout))}
    offered = {kind: tuple(views[:MAX_OFFERED_VIEWS]) for kind, views in candidates.items() if views or is_ranged.get(kind)}
    return Offers(offered, {kind: why for kind, why in refused.items() if kind not in offered})


def offered_permutes(layout: Layout) -> list[Step]:
    """Return other orders of the dims: all orders of few dims, swaps of two among many."""
    dims = tuple(range(layout.ndim))
    if layout.ndim <= 4:
        return [Call("permute", order) for order in permutations(dims) if order != dims]
    exchanged = (tuple({a: b, b: a}.get(d, d) for d in dims) for a, b in combinations(dims, 2))
    return [Call("permute", order) for order in exchanged]


def offered_flips(layout: Layout) -> list[Step]:
    """Return the flips of each dim, and of all dims."""
    dims = tuple(range(layout.ndim))
    single_flips: list[Step] = [Call("flip", (d,)) for d in dims]
    return [*single_flips, Call("flip", dims)] if len(dims) > 1 else single_flips


def offered_reshapes(layout: Layout) -> list[Step]:
    """Return shapes of one to three dims with as many elements; views before copies."""
    shapes = [shape for shape in dict.fromkeys(factorizations(layout.size)) if shape != layout.shape]
    return [Call("reshape", shape) for shape in sorted(shapes, key=lambda s: bool(view_error(layout, Call("reshape", s))))]


def factorizations(size: int) -> Iterator[tuple[int, ...]]:
    """Return the ways to write a size as a product of at most three factors greater than 1."""
    yield (size,)
    if size == 1:
        yield ()
    for a in range(2, size // 2 + 1):
        if size % a == 0:
            yield (a, size // a)
            yield from ((a, b, size // a // b) for b in range(2, size // a // 2 + 1) if size // a % b == 0)


def view_error(layout: Layout, step: Step) -> str:
    """Return the library's reason why a reshape cannot be a view; empty for all other views."""
    if isinstance(step, Call) and step.method == "reshape":
        try:
            layout.reshape(*step.arguments)
        except ViewError as error:
            return str(error)
    return ""


def sliceable_dims(layout: Layout) -> dict[int, int]:
    """Return the dims that can be sliced, with their sizes."""
    return {d: n for d, n in enumerate(layout.shape) if n}


def make_slice(layout: Layout, d: int, start: int, stop: int, step: int) -> Index:
    """Return a slice of one dim from start to stop; the dims before it stay whole.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> str(make_slice(row_major((3, 4)), 1, 1, 4, 2)), str(make_slice(row_major((3, 4)), 0, 0, 2, 1))
    ('[:, 1::2]', '[:2]')
    """
    return Index((*[slice(None)] * d, make_entry(start, stop, layout.shape[d], step)))


def dragged_view(view: StridedView, first: str, last: str) -> Step | None:
    """Return the view that a drag means: from element to element a slice, from dim to dim a swap; None if it means nothing.

    Parameters
    ----------
    view : StridedView
        What is shown.
    first, last : str
        The links of the cells where the drag begins and ends.
    """
    layout = view.layouts[-1]
    step: Step | None = None
    elements = {element_link(index): index for index in positions(layout)}
    dims = {dim_link(d): d for d in range(layout.ndim)}
    if first in elements and last in elements:
        ends = [sorted(pair) for pair in zip(elements[first], elements[last], strict=True)]
        entries = [make_entry(low, high + 1, n) for (low, high), n in zip(ends, layout.shape, strict=True)]
        while entries and entries[-1] == slice(None):
            entries.pop()
        step = Index(tuple(entries)) if entries else None
    elif first in dims and last in dims and first != last:
        a, b = dims[first], dims[last]
        step = Call("permute", tuple({a: b, b: a}.get(d, d) for d in range(layout.ndim)))
    if step is None or len(view.steps) == MAX_STEPS or len("".join(format_steps((*view.steps, step)))) > MAX_CHARACTERS:
        return None
    return step


def make_entry(start: int, stop: int, size: int, step: int = 1) -> slice:
    """Return a slice of a dim of this size, without the bounds that it has anyway."""
    return slice(start or None, stop if stop < size else None, step if step != 1 else None)


def expandable_dims(layout: Layout) -> dict[str, int]:
    """Return the dims that a view can repeat: dims of size 1, and a new first dim; with the largest sizes."""
    places = {f"dim {d}": d for d, n in enumerate(layout.shape) if n == 1} | ({FRONT: -1} if layout.ndim < MAX_DIMS else {})
    max_repeats = min(MAX_DRAWN_ELEMENTS // max(prod(layout.shape), 1), MAX_REPEATS)
    return dict.fromkeys(places, max_repeats) if max_repeats > 1 else {}


def make_expand(layout: Layout, place: str, size: int) -> Call:
    """Return the view that repeats a dim of size 1, or a new one.

    Examples
    --------
    >>> from minifuse.core.layout import row_major
    >>> str(make_expand(row_major((3, 1)), "dim 1", 4)), str(make_expand(row_major((3, 1)), FRONT, 2))
    ('.expand(3, 4)', '.expand(2, 3, 1)')
    """
    if place == FRONT:
        return Call("expand", (size, *layout.shape))
    d = int(place.removeprefix("dim "))
    return Call("expand", (*layout.shape[:d], size, *layout.shape[d + 1 :]))


def describe_outcome(layout: Layout, step: Step) -> str:
    """Describe the result of an offered view."""
    why = view_error(layout, step)
    if why:
        return f"copies, since view() fails: {why}"
    if step == Call("contiguous", ()):
        return "copies, in the order in which the elements are read"
    return "is a view: the same memory"


def chip_labels(steps: Sequence[Step]) -> list[str]:
    """Return different labels for the steps of the chain, x first."""
    return ["x", *[f"{k} {step}" for k, step in enumerate(format_steps(steps), start=1)]]

"""Hypothesis strategies for many tasks: shapes, and tensors that are permuted, strided and flipped in their storage."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import permutations, product
from math import prod
from random import Random
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import numpy as np

from ..core.indexing import Shape
from ..core.layout import row_major
from .strided import Strided

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

CaseT = TypeVar("CaseT")
OptionT = TypeVar("OptionT")

MAX_STORED_ELEMENTS = 512  # the limit of the visualizer
MAX_SHOWN_INPUTS, MAX_SHOWN_CHARACTERS = 4, 100  # of a function that it differentiates
Key = tuple[int, Shape, Shape, int]
CHAINS: dict[Key, tuple[Shape, str]] = {}
"""For each drawn layout: the shape of the contiguous tensor, and the code of the views that produce the layout."""


@cache
def shapes(most_dims: int = 3, least: int = 0, most: int = 5) -> "SearchStrategy[Shape]":
    """Draw shapes, () included."""
    from hypothesis import strategies as st

    return st.lists(st.integers(least, most), max_size=most_dims).map(tuple)


@lru_cache(maxsize=None, typed=True)  # 1, 1.0 and True are not the same option
def among(*options: OptionT) -> "SearchStrategy[OptionT]":
    """Draw one of these, the simplest first. The strategy is cached: creating it takes longer than drawing from it."""
    from hypothesis import strategies as st

    return st.sampled_from(options)


def at_random(make: Callable[[Random], CaseT]) -> "SearchStrategy[CaseT]":
    """Draw what `make` makes of a random generator: for cases with many parts, which Hypothesis would draw much alike."""
    from hypothesis import strategies as st

    return st.integers(0, 2**48).map(lambda seed: make(Random(seed)))


@cache
def orders(count: int) -> "SearchStrategy[Shape]":
    """Draw a permutation of `count` dims with a single choice."""
    return among(*permutations(range(count)))


DIM_LAYOUTS = tuple(product((1, 1, 2), (0, 1), (False, False, True)))
"""Layouts of a dim in its storage: (step, start, whether it is flipped)."""


DIM_LAYOUTS_FROM_0 = tuple(way for way in DIM_LAYOUTS if not any(way[1:]))


def strided_like(draw: "DrawFn", shape: Sequence[int], start: int = 1, begins_at_0: bool = False) -> Strided:
    """Draw a tensor of a shape that is a view of a larger storage with distinct elements.

    The view is made from a contiguous tensor by a slice with steps, flips and a permutation.
    """
    order = draw(orders(len(shape)))
    size = prod(max(n, 1) for n in shape)
    is_within = not begins_at_0 and draw(among(False, True)) and 3 * size <= MAX_STORED_ELEMENTS
    ways = [draw(among(*(DIM_LAYOUTS if not begins_at_0 else DIM_LAYOUTS_FROM_0))) for _ in shape]
    sizes, entries, ranges = [2 * is_within + 1], [f"{int(is_within)}"], [(int(is_within), 1, 1)]
    size *= sizes[0]
    for n, (step, first, _) in zip((shape[d] for d in order), ways, strict=True):
        step = step if n > 1 and 2 * size <= MAX_STORED_ELEMENTS else 1
        first = first if (step + 1) * size <= MAX_STORED_ELEMENTS else 0
        stop = first + step * n
        sizes.append(max(stop, 1))
        size = size // max(n, 1) * sizes[-1]
        entries.append(":" if (first, stop, step) == (0, sizes[-1], 1) else f"{first}:{stop}" + f":{step}" * (step > 1))
        ranges.append((first, step, n))
    if sizes[0] == 1 and shape:  # offset 0
        sizes, entries, ranges = sizes[1:], entries[1:], ranges[1:]
        layout = row_major(sizes).slice(*ranges)
    else:
        layout = row_major(sizes).slice(*ranges)
        layout = layout.reshape(*layout.shape[1:])
    views = f"[{', '.join(entries)}]" if set(entries) != {":"} else ""
    flipped = [k for k, n in enumerate(layout.shape) if n and ways[k][2]]
    if flipped:
        layout, views = layout.flip(*flipped), f"{views}.flip({', '.join(map(str, flipped))})"
    back = [order.index(d) for d in range(len(shape))]
    if back != sorted(back):
        layout, views = layout.permute(*back), f"{views}.permute({', '.join(map(str, back))})"
    x = Strided(np.arange(start, start + prod(sizes), dtype=np.float64), layout.shape, layout.strides, layout.offset)
    CHAINS[chain_key(x)] = tuple(sizes), views
    return x


def chain_key(x: Strided) -> Key:
    """Return the key of a layout in CHAINS."""
    return len(x.storage), x.shape, x.strides, x.offset


def fresh(shape: Sequence[int], filled: float = np.nan) -> Strided:
    """Return a tensor in row-major order, full of NaN by default."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return Strided(np.full(max(prod(shape), 1), filled), tuple(shape), strides, 0)


def layout_link(x: Strided) -> str:
    """Return the page of a layout, with the views that made the tensor if `strided_like` made it.

    A tensor that is too large for the page has no link of its own.
    """
    if prod(x.shape) > MAX_STORED_ELEMENTS:
        return "strides"
    shape, views = CHAINS.get(chain_key(x), (x.shape, ""))
    message = {"shape": format_shape(shape)} | ({"views": views} if views else {})
    return f"strides?{urlencode(message)}"


def autodiff_link(function: str = "x * x + x", size: int = 1) -> str:
    """Return the page that shows the backward pass of a function. The default function uses a value twice."""
    return f"autodiff?{urlencode({'autodiff_function': function, 'autodiff_size': size})}"


def formula_link(formula: str, inputs: Sequence[str], size: int = 1) -> str:
    """Return the page that shows the backward pass of a function of numbers, of which the page shows at most four.

    Without inputs that it can show, it is the page of the default function.
    """
    if not 0 < len(inputs) <= MAX_SHOWN_INPUTS or len(formula) > MAX_SHOWN_CHARACTERS:
        return autodiff_link()
    shapes = ";".join(f"{name}:()" for name in inputs)
    return f"autodiff?{urlencode({'autodiff_own': formula, 'autodiff_shapes': shapes, 'autodiff_size': size})}"


def broadcasting_link(x: Sequence[int], y: Sequence[int]) -> str:
    """Return the page that shows how two shapes are broadcast."""
    return f"broadcasting?{urlencode({'broadcasting_x': format_shape(x), 'broadcasting_y': format_shape(y)})}"


def format_shape(shape: Sequence[int]) -> str:
    """Return a shape in the syntax of the visualizer's links."""
    return ", ".join(map(str, shape)) or "()"

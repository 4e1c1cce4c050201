"""Cases of convolution and pooling that are drawn a few times only: large sizes, and inf, zeros, ties and tiny numbers."""

from collections.abc import Callable, Sequence
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..core.indexing import Shape
from .cases import among, fresh, strided_like
from .questions.convolution import Case
from .strided import Array, Strided

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

Fill = Callable[["DrawFn", "Array"], "Array"]
"""A function of (draw, distinct small numbers), which returns as many elements."""
RTOL = 1e-12  # no element is the difference of others, unless all of them are whole multiples of one power of two
PRECISE_FACTOR = 104_729  # a factor: sums of products need more than 24 bits, and less than 53
POWERS = (-300, -40, 40, 300)


def agree_closely(got: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Return whether arrays are equal up to the rounding of a few operations, also where they are tiny or large."""
    return len(got) == len(expected) and all(
        np.allclose(a, b, rtol=RTOL, atol=0.0, equal_nan=True) for a, b in zip(got, expected, strict=True)
    )


def between(draw: "DrawFn", least: int, most: int) -> int:
    """Draw a whole number."""
    return int(draw(among(*range(least, most + 1))))


def draw_sizes(draw: "DrawFn", count: int) -> list[int]:
    """Draw sizes of which two are far above the usual ones."""
    large, less = draw(among(*permutations(range(count), 2)))
    sizes = [draw(among(1, 1, 1, 2)) for _ in range(count)]
    sizes[large], sizes[less] = between(draw, 17, 45), 17
    return sizes


def draw_input_size(draw: "DrawFn", places: int, window: int, stride: int, padding: int = 0) -> int:
    """Draw a size of an input with about so many places; a few elements at the end may be in none."""
    return max(1, window - 2 * padding, (places - 1) * stride + window - 2 * padding + between(draw, 0, stride - 1))


def large_convolutions(draw: "DrawFn", dims: int) -> tuple[dict[str, Shape], Shape, Shape]:
    """Draw (shapes of inputs, weight and gradient, stride, padding) with some sizes far above the usual ones."""
    batch, channels, outputs, *both = draw_sizes(draw, 3 + 2 * dims)
    kernel, wanted = tuple(both[:dims]), both[dims:]
    stride, padding = [tuple(between(draw, n, 12) for _ in range(dims)) for n in (1, 0)]
    four = list(zip(wanted, kernel, stride, padding, strict=True))
    inputs = tuple(draw_input_size(draw, *one) for one in four)
    places = tuple((n + 2 * p - k) // s + 1 for n, (_, k, s, p) in zip(inputs, four, strict=True))
    shapes = {
        "inputs": (batch, channels, *inputs),
        "weight": (outputs, channels, *kernel),
        "gradient": (batch, outputs, *places),
    }
    return shapes, stride, padding


def large_pools(draw: "DrawFn") -> tuple[Shape, Shape, Shape, Shape]:
    """Draw (shape of inputs, shape of the result, window, stride) with some sizes far above the usual ones."""
    batch, channels, *both = draw_sizes(draw, 6)
    window, stride = tuple(both[:2]), (between(draw, 1, 12), between(draw, 1, 12))
    inputs = tuple(draw_input_size(draw, *one) for one in zip(both[2:], window, stride, strict=True))
    places = tuple((n - k) // s + 1 for n, k, s in zip(inputs, window, stride, strict=True))
    return (batch, channels, *inputs), (batch, channels, *places), window, stride


def refilled(draw: "DrawFn", x: Strided, fill: Fill) -> Strided:
    """Return a tensor with other elements, and NaN at those places of its storage that belong to none of them."""
    storage = np.full(len(x.storage), np.nan)
    new = x._replace(storage=storage)
    size = prod(x.shape)
    mixed = np.arange(size) * 37 % 101 + between(draw, 0, 6)
    new.array()[...] = np.reshape(fill(draw, mixed.astype(np.float64)), x.shape)
    return new


def scaled(draw: "DrawFn", mixed: Array) -> Array:
    """Return positive whole multiples of a power of two."""
    return np.asarray((mixed % 19 + 1) * PRECISE_FACTOR * 2.0 ** draw(among(*POWERS)))


def signed(draw: "DrawFn", mixed: Array) -> Array:
    """Return whole multiples of a power of two, of both signs."""
    return np.asarray((mixed % 19 - 9) * PRECISE_FACTOR * 2.0 ** draw(among(*POWERS)))


def zeros_and_ones(draw: "DrawFn", mixed: Array) -> Array:
    """Return 0.0, -0.0, 1.0 and 2.0."""
    return np.asarray(np.array([0.0, -0.0, 1.0, 2.0])[(mixed % between(draw, 3, 4)).astype(int)])


def with_infinity(draw: "DrawFn", mixed: Array) -> Array:
    """Return small numbers, a few times infinity or NaN, and a few times a number that swallows them."""
    rare = draw(among(np.inf, np.inf, np.nan, 2.0**60))
    return np.where(mixed % draw(among(3, 7, 11)) == 0, rare, mixed % 5 + 1)


def with_large(draw: "DrawFn", mixed: Array) -> Array:
    """Return small numbers, and a few times infinity or a number that swallows them."""
    return np.where(mixed % draw(among(3, 7, 11)) == 0, draw(among(np.inf, 2.0**60)), mixed % 5 + 1)


def ties(draw: "DrawFn", mixed: Array) -> Array:
    """Return elements that are equal, nearly equal, or equal and of other signs; all of them far below 0, or tiny."""
    make = draw(
        among(
            lambda x: 0.0 * x,
            lambda x: np.where(x % 2 == 0, 0.0, -0.0),
            lambda x: np.where(x % 5 == 0, 2.0**-1000, 0.0) * (x % 3),
            lambda x: 3.0 + x % 3 * 2.0**-51,
            lambda x: -3.0 - x % 3 * 2.0**-51,
            lambda x: np.full(len(x), -np.inf),
            lambda x: np.where(x % 3 == 0, -np.inf, -(2.0**1000)),
            lambda x: np.where(x % 7 == 0, np.inf, x),
            lambda x: -(2.0**300) * (x % 5 + 1),
            lambda x: 2.0**-900 * (x % 5),
        )
    )
    return np.asarray(make(mixed))


def product_sums(slot: str, case: Case) -> Array:
    """Return the storage of the output of a convolution slot: each product is added to its element, outside ones are not."""
    case = case.copy()
    dims = len(case.out.shape) - 2
    stride, padding = [(n,) if isinstance(n, int) else n for n in (case.first, case.second)]
    left, right = case.arrays()
    out = np.zeros(case.out.shape)
    inputs, weight, places = {
        "conv": (left, right, out),
        "input": (out, right, left),
        "weight": (left, out, right),
    }[slot.partition("_")[2].partition("_")[0] or "conv"]
    ranges = *places.shape, *weight.shape[1:]
    b, o, *rest = np.indices(ranges).reshape(len(ranges), -1)
    x, c, k = rest[:dims], rest[dims], rest[dims + 1 :]
    i = [x[d] * stride[d] + k[d] - padding[d] for d in range(dims)]
    inside = np.all([(i[d] >= 0) & (i[d] < inputs.shape[2 + d]) for d in range(dims)], axis=0)
    at = {
        id(inputs): tuple(n[inside] for n in (b, c, *i)),
        id(weight): tuple(n[inside] for n in (o, c, *k)),
        id(places): tuple(n[inside] for n in (b, o, *x)),
    }
    with np.errstate(all="ignore"):
        np.add.at(out, at[id(out)], left[at[id(left)]] * right[at[id(right)]])
    case.out.array()[...] = out
    return case.out.storage


def make_output(draw: "DrawFn", shape: Shape) -> Strided:
    """Return an output of a shape, full of NaN."""
    made = strided_like(draw, shape) if draw(among(False, True)) else fresh(shape)
    return made._replace(storage=np.full(len(made.storage), np.nan))

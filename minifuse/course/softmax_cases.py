"""Cases of task 4.4 that are drawn a few times only: rows far apart, ties, infinities, long dims, tiny gradients."""

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.indexing import Shape
from .cases import among, shapes, strided_like
from .check import close
from .conv_rare_cases import between, refilled, ties
from .questions.task2_4 import Call
from .questions.task4_4 import Mask
from .strided import Array, Strided

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

SHIFTS = (0.0, 2000.0, -2000.0, -2e6, 2e12, -2e12, 1e16, -1e300)
"""Of whole rows: exp makes inf or 0 of each of their elements."""
FACTORS = (0.0625, 1.0, 60.0, 2.0**40, 2.0**900)
D_FACTORS = (1.0, 2.0**-60, 2.0**-300, 2.0**200)


def odd_calls(name: str) -> "SearchStrategy[Call]":
    """Draw a call of a function along a dim: of ties for the maximum, of rows far apart for softmax; with d of any size."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        shape = list(draw(shapes(3, 1).filter(len)))
        dim = draw(st.integers(0, len(shape) - 1))
        if draw(among(False, False, True)):
            shape = [draw(among(1, 2)) for _ in shape]
            shape[draw(among(*range(len(shape))))] = between(draw, 65, 300)
        tensor = strided_like(draw, shape)
        x = refilled(draw, tensor, ties) if name == "TensorMax" else with_elements(tensor, far_rows(draw, tensor.shape, dim))
        result = [1 if k == dim and name == "TensorMax" else n for k, n in enumerate(shape)]
        d = strided_like(draw, result)
        small = (np.arange(prod(result)) * 37 % 23 - 11.0) * draw(among(*D_FACTORS))
        return Call(name, (x,), {"dim": dim}, with_elements(d, small.reshape(result)))

    return case()


def with_elements(x: Strided, elements: Array) -> Strided:
    """Return a tensor with other elements."""
    new = x._replace(storage=np.full(len(x.storage), np.nan))
    new.array()[...] = elements
    return new


def far_rows(draw: "DrawFn", shape: Shape, dim: int) -> Array:
    """Return elements of rows along a dim that are far from each other; some are -inf, but never the first of a row."""
    mixed = np.arange(prod(shape)).reshape(shape) * 37
    rows = [1 if k == dim else n for k, n in enumerate(shape)]
    shifts = np.take(SHIFTS, (np.arange(prod(rows)) * 3 + draw(among(*range(len(SHIFTS))))) % len(SHIFTS))
    result = mixed % 13 * draw(among(*FACTORS)) + shifts.reshape(rows)
    if draw(among(False, False, True)):
        result = np.where((mixed % 3 == 0) & (np.indices(shape)[dim] > 0), -np.inf, result)
    return np.asarray(result)


def odd_dropouts(is_training: bool) -> "SearchStrategy[Call]":
    """Draw a call of dropout: of many elements, of zeros, with any rate and seed."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        shape = draw(shapes(3, 1)) if draw(among(True, True, False)) else draw(among((1500,), (40, 30), (11, 1, 101)))
        tensors = [strided_like(draw, shape) for _ in "xd"]
        few = [np.arange(prod(shape)).reshape(shape) * 37 % n - n // 2 * 1.0 for n in (3, 5)]
        x, d = [with_elements(tensor, elements) for tensor, elements in zip(tensors, few, strict=True)]
        _, rate, seed = draw_mask(draw)
        return Call("TensorDropout", (x,), {"rate": rate, "seed": seed, "is_training": is_training}, d)

    return case()


def odd_masks() -> "SearchStrategy[Mask]":
    """Draw (count, rate, seed): long masks, large seeds, and rates that are a number of the seed."""
    from hypothesis import strategies as st

    return st.composite(draw_mask)()


def draw_mask(draw: Any) -> Mask:
    """Draw (count, rate, seed)."""
    from random import Random

    seed = draw(among(0, 1, -7, 10**6 + 3, 2**31, 2**32 + 1, 2**64, 10**30)) + between(draw, 0, 40)
    numbers = Random(seed)
    rate = draw(among(0.0, 0.3, 1 / 7, 0.999, -1.0)) or 0.0
    if rate < 0:
        rate = [numbers.random() for _ in range(between(draw, 1, 9))][-1]
    return draw(among(0, 1, 40, 2500)), rate, seed


def agree_relatively(got: object, expected: Array) -> bool:
    """Return whether probabilities are right up to the rounding of a few operations: more for tiny ones, as of exp(-700)."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        return False
    with np.errstate(divide="ignore"):
        digits = np.abs(np.log(np.maximum(expected, 1e-300)))
    return bool(np.all(np.abs(got - expected) <= expected * (4e-15 + expected.size * 3e-16 + digits * 1e-15) + 1e-300))


def agree_lists(got: Sequence[object], expected: Sequence[list[float]]) -> bool:
    """Return whether each part is a list, of the expected numbers."""
    return all(
        isinstance(a, list) and all(isinstance(x, float | int) for x in a) and close(a, b)
        for a, b in zip(got, expected, strict=True)
    )

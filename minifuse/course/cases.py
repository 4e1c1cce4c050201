"""Strategies that many tasks draw from: shapes, and tensors that are permuted, spread and flipped in their storage."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .strided import Strided


def shapes(most_dims: int = 3, least: int = 0, most: int = 5) -> Any:
    """Shapes, those without a dim included."""
    from hypothesis import strategies as st

    return st.lists(st.integers(least, most), max_size=most_dims).map(tuple)


def strided_like(draw: Any, shape: Sequence[int], start: int = 1) -> Strided:
    """A tensor of a shape over a storage that is not its own: permuted, spread, flipped, with an offset; elements differ."""
    from hypothesis import strategies as st

    ndim = len(shape)
    order = draw(st.permutations(range(ndim)))
    steps = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
    signs = [draw(st.sampled_from([1, 1, -1])) for _ in shape]
    strides, size = [0] * ndim, 1
    for d in order:
        strides[d] = size * steps[d]
        size *= max(shape[d], 1) * steps[d]
    offset = draw(st.integers(0, 2))
    offset += sum(-(shape[d] - 1) * -strides[d] for d in range(ndim) if signs[d] < 0 and shape[d])
    strides = [s * sign for s, sign in zip(strides, signs, strict=True)]
    storage = np.arange(start, start + size + 3, dtype=np.float64)
    return Strided(storage, tuple(shape), tuple(strides), offset)


def fresh(shape: Sequence[int], filled: float = np.nan) -> Strided:
    """A tensor in row-major order, not yet written."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    return Strided(np.full(max(prod(shape), 1), filled), tuple(shape), strides, 0)


def layout_link(x: Strided) -> str:
    """The page that shows where elements of such a shape lie."""
    return f"strides?shape={'%2C'.join(map(str, x.shape))}"

"""Strategies for task 2.4: calls of functions of tensors."""

from random import Random
from typing import TYPE_CHECKING

import numpy as np

from .cases import among, at_random, fresh, orders, shapes, strided_like
from .questions.task2_4 import Call, Repeated
from .strided import Strided

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


ONE = ("TensorNeg", "TensorInv", "TensorLog", "TensorExp", "TensorSigmoid", "TensorReLU")
TWO = ("TensorAdd", "TensorMul")
MOVED = ("TensorSum", "TensorPermute", "TensorReshape")


def scaled(x: Strided, to: float, is_positive: bool = False) -> Strided:
    """Scale elements to nonzero numbers between -to and to, or between 0 and to."""
    n = len(x.storage)
    values = to * (np.arange(n) + 1) / n if is_positive else to * (2 * np.arange(n) + 1.5 - n) / n
    return x._replace(storage=values)


def elementwise(name: str) -> "SearchStrategy[Call]":
    """Draw a call of an elementwise function; two operands are broadcast."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        shape = draw(shapes(3, 1, 3))
        cuts = [shape]
        if name in TWO:
            cuts = [tuple(1 if draw(among(False, False, True)) else n for n in shape) for _ in range(2)]
            cuts = [c[draw(among(*range(len(c) + 1))) :] for c in cuts]
        inputs = tuple(
            scaled(strided_like(draw, c), 2.0 + k, name in ("TensorLog", "TensorInv")) for k, c in enumerate(cuts)
        )
        return Call(name, inputs, {}, scaled(strided_like(draw, np.broadcast_shapes(*cuts)), 5.0))

    return case()


def moved(name: str) -> "SearchStrategy[Call]":
    """Draw a call of Sum, Permute or Reshape."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        rank = draw(among(1, 2, 3, 3, 4, 5))
        shape = tuple(draw(st.integers(1, 4 if rank < 4 else 3)) for _ in range(rank))
        dim, dims = draw(among(*range(rank))), draw(orders(rank))
        options, result = {
            "TensorSum": ({"dim": dim}, (*shape[:dim], 1, *shape[dim + 1 :])),
            "TensorPermute": ({"dims": dims}, tuple(shape[k] for k in dims)),
            "TensorReshape": ({"shape": (1, *shape[::-1])}, (1, *shape[::-1])),
        }[name]
        return Call(name, (scaled(strided_like(draw, shape), 3.0),), options, scaled(strided_like(draw, result), 5.0))

    pairs = [[scaled(fresh(shape), 3.0) for shape in (s, (*s[1:], s[0]))] for s in ((1, 2, 3), (2, 3, 4))]
    rounds = [Call("TensorPermute", (a,), {"dims": (1, 2, 0)}, d) for a, d in pairs]  # not its own inverse
    rounds.append(cyclic_permutation())
    return case() | st.sampled_from(rounds) if name == "TensorPermute" else case()


def cyclic_permutation() -> Call:
    """Return a permutation of four dims whose square is not its inverse either."""
    a, d = [scaled(fresh(shape), 3.0) for shape in ((2, 3, 4, 5), (3, 4, 5, 2))]
    return Call("TensorPermute", (a,), {"dims": (1, 2, 3, 0)}, d)


SIZES = (0.0, -0.0, -2.5, 3.0, 1e5, -1e8, 1e-8)


EXTREMES = {
    "TensorInv": (1e-100, 1e-8, 1e-3, 7.0, -1e100, -1e-8),
    "TensorLog": (1e-200, 1e-8, 1e-3, 7.0, 1e100),
    "TensorExp": (-700.0, -50.0, 0.0, 10.0, 300.0),
    "TensorSigmoid": (-700.0, -100.0, -40.0, -5.0, 0.0, 10.0),
    "TensorReLU": (0.0, -0.0, -1.0, 1e-300, 5.0),
}
"""Inputs where an inexact derivative differs by more than rounding; SIZES for other functions."""


def extremes(name: str) -> "SearchStrategy[Call]":
    """Draw a call of an elementwise function on numbers that are 0, tiny or large, with such d."""

    def make(random: Random) -> Call:
        shape = tuple(random.choice((1, 2, 3, 5)) for _ in range(random.randint(1, 3)))
        shape = random.choice((shape, shape, (40, 30)))
        ds = (1e5, -3.0, 1e10, 0.0, 1e-3, *(np.inf, -np.inf) * (name == "TensorReLU"))
        made = [fresh(shape) for _ in range(2 + (name in TWO))]
        for x, numbers in zip(made, (ds, *[EXTREMES.get(name, SIZES)] * 2), strict=False):
            x.storage[:] = random.choices(numbers, k=len(x.storage))
        return Call(name, tuple(made[1:]), {}, made[0])

    return at_random(make)


def products() -> "SearchStrategy[Call]":
    """Draw a product of two matrices."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Call:
        m, k, n = [draw(st.integers(1, 4)) for _ in "mkn"]
        inputs = scaled(strided_like(draw, (m, k)), 3.0), scaled(strided_like(draw, (k, n)), 2.0)
        return Call("TensorMatMul", inputs, {}, scaled(strided_like(draw, (m, n)), 5.0))

    return case()


def repeated() -> "SearchStrategy[Repeated]":
    """Draw (a gradient, the shape that was broadcast to its shape)."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Repeated:
        shape = draw(st.one_of(shapes(3, 1, 4), st.lists(among(2, 1, 3), min_size=4, max_size=6).map(tuple)))
        small = tuple(1 if draw(among(False, True)) else n for n in shape)
        return strided_like(draw, shape, start=-5), small[draw(among(*range(len(small) + 1))) :]

    return case()

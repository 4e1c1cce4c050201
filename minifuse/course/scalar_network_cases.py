"""Strategies for task 1.5: layers and networks of scalars, losses, and steps."""

from typing import TYPE_CHECKING

import numpy as np

from .learning import half_integers
from .questions.learning import Layer, Net
from .questions.task1_5 import Guesses, Steps

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def layers() -> "SearchStrategy[Layer]":
    """Draw a layer with different numbers of inputs and outputs."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Layer:
        i, o = draw(st.sampled_from((1, 2, 3, 0))), draw(st.integers(1, 3))
        return Layer(half_integers(draw, i, o), half_integers(draw, o), half_integers(draw, i))

    return case()


def large_layers() -> "SearchStrategy[Layer]":
    """Draw a layer of dozens of inputs and outputs, with numbers of several sizes."""
    from hypothesis import strategies as st

    def made(seed: int) -> Layer:
        random = np.random.default_rng(seed)
        i, o = random.integers(12, 60, 2)
        return Layer(random.normal(size=(i, o)), random.normal(size=o) * 1e4, random.normal(size=i) * 1e-3)

    return st.integers(0, 10**6).map(made)


def networks() -> "SearchStrategy[Net]":
    """Draw a network of two layers, one hidden unit after the other, so that units can be left out."""
    from hypothesis import strategies as st

    @st.composite
    def case(draw: st.DrawFn) -> Net:
        inputs = draw(st.integers(1, 2))
        unit = st.tuples(*[st.integers(-6, 6).map(lambda n: n / 2)] * (inputs + 2))
        weights, biases, outputs = np.split(
            np.array(draw(st.lists(unit, min_size=1, max_size=3))), [inputs, inputs + 1], axis=1
        )
        first = Layer(weights.T, biases[:, 0], half_integers(draw, inputs))
        return Net(first, Layer(outputs, half_integers(draw, 1), np.zeros(len(outputs))))

    return case()


def large_networks() -> "SearchStrategy[Net]":
    """Draw a network of dozens of hidden units, whose probability may be close to 0 or 1."""
    from hypothesis import strategies as st

    def made(seed: int) -> Net:
        random = np.random.default_rng(seed)
        i, h = random.integers(3, 30, 2)
        first = Layer(random.normal(size=(i, h)), random.normal(size=h), random.normal(size=i))
        return Net(first, Layer(random.normal(size=(h, 1)), np.zeros(1), np.zeros(h)))

    return st.integers(0, 10**6).map(made)


def guesses(least: int = 1) -> "SearchStrategy[Guesses]":
    """Draw (probabilities, labels). The probability of the right label may be 1, or tiny, but not 0."""
    from hypothesis import strategies as st

    likely = st.sampled_from([*[n / 10 for n in range(1, 10)], 1.0, 1e-12, 1 - 1e-9, 1e-60])
    one = st.tuples(likely, st.integers(0, 1)).map(lambda c: (c[0] if c[1] or c[0] in (1e-12, 1e-60) else 1 - c[0], c[1]))
    few = st.lists(one, min_size=1, max_size=4)
    some = few.map(lambda c: [c[k * k % len(c)] for k in range(max(least, len(c)))])
    return some.map(lambda c: (tuple(p for p, _ in c), tuple(label for _, label in c)))


def certain() -> "SearchStrategy[Guesses]":
    """Draw (probabilities, labels) of which one at least is certain and right, so that the other logarithm is infinite."""
    from hypothesis import strategies as st

    cases = [((1.0,), (1,)), ((0.0,), (0,)), ((1.0, 0.5, 0.0), (1, 0, 0))]
    return st.sampled_from(cases)


def steps() -> "SearchStrategy[Steps]":
    """Draw ((value, gradient) of each parameter, rate)."""
    from hypothesis import strategies as st

    values = st.one_of(st.integers(-6, 6).map(lambda n: n / 2), st.sampled_from([1e9, -1e-7]))
    gradients = st.sampled_from([None, 1.0, -2.0, 4.0, 0.0, 1e6, -1e-9])
    return st.tuples(
        st.lists(st.tuples(values, gradients), min_size=1, max_size=3).map(tuple), st.sampled_from([1.0, 0.5, 1e-3, 40.0])
    )

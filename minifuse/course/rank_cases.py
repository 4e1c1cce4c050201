"""Cases and comparisons of module 6: arrays of ranks, and sizes that shrink."""

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .ranks import Array
from .verdicts import Wrong

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

CaseT = TypeVar("CaseT")
TOLERANCE = 1e-10  # relative to the largest element


def with_sizes(make: Callable[..., CaseT], *options: Sequence[int]) -> "SearchStrategy[CaseT]":
    """Draw an int of each of the options, the simplest first, and return what `make` makes of a random generator and them.

    So a failing case shrinks to few ranks and small arrays, which `at_random` alone would not do.
    """
    from hypothesis import strategies as st

    sizes = st.tuples(*map(st.sampled_from, options))
    return st.builds(lambda seed, drawn: make(Random(seed), *drawn), st.integers(0, 2**48), sizes)


def draw_floats(chance: Random, *shape: int) -> Array:
    """Draw an array of floats from -2 to 2."""
    return np.array([chance.uniform(-2, 2) for _ in range(prod(shape))]).reshape(shape)


def is_near(got: Any, expected: Array) -> bool:
    """Return whether an array is the expected one, up to the rounding of sums in any order."""
    if not isinstance(got, np.ndarray) or got.shape != expected.shape:
        return False
    return bool(np.all(np.abs(got - expected) <= TOLERANCE * max(1.0, float(np.abs(expected).max(initial=0)))))


def has_kind(*kinds: str) -> Callable[[Wrong], bool]:
    """Return a function that says whether a failure is of one of these kinds."""
    return lambda wrong: wrong.kind in kinds


def numbers_of(array: Array) -> Any:
    """Return an array as nested lists, whose floats have no more digits than its dtype needs."""
    if array.dtype == np.float32:
        return np.array([float(str(x)) for x in array.ravel()]).reshape(array.shape).tolist()
    return array.tolist()

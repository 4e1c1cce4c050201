"""Large inputs of task 3.5, larger than the caches of a core."""

from functools import cache

import numpy as np

from .strided import Array


@cache
def inputs(slot: str) -> tuple[Array, ...]:
    """Return the arguments of a loop, the output first. The inputs are larger than the caches of a core.

    Rows of the column sums have 8 KB, so all elements of a column fall into the same few sets of a set-associative cache.
    """
    random = np.random.default_rng(3)
    if slot == "fast_chain":
        return np.zeros(1_000_000), random.random(1_000_000), random.random(1_000_000)
    if slot == "fast_column_sums":
        return np.zeros(1024), random.random((4096, 1024))
    return np.zeros((384, 384)), random.random((384, 384)), random.random((384, 384))

"""Group columns: combine columns into one key, find runs of equal keys and unique pairs, and expand ranges into rows.

`metrics` and `races` use it. Everything is based on sorting, so a million rows take tenths of a second and no step is
quadratic.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Column = np.ndarray

WARP_SIZE: Final = 32  # lanes
MAX_KEY: Final = 2**62


def combine_keys(*columns: Column) -> Ints:
    """Return one number per row that is equal where all columns are equal. The order is lexicographic, first column first.

    Examples
    --------
    >>> combine_keys(np.array([7, 7, 5]), np.array([0, 3, 3])).tolist()
    [8, 11, 3]
    """
    key, key_count = np.zeros(len(columns[0]), np.int64), 1
    if not len(key):
        return key
    for column in columns:
        low = int(column.min())
        span = int(column.max()) - low + 1
        if key_count * span > MAX_KEY:
            key, key_count = _dense_ranks(key)
        if key_count * span > MAX_KEY:
            column, span = _dense_ranks(column)
            low = 0
        key = key * span + (column.astype(np.int64) - low)
        key_count *= span
    return key


def _dense_ranks(column: Column) -> tuple[Ints, int]:
    """Return the rank of each value among the distinct values, and the number of distinct values."""
    distinct, inverse = np.unique(column, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)


def run_starts(ordered: Column) -> Ints:
    """Return the index at which each run of equal values starts.

    Examples
    --------
    >>> run_starts(np.array([4, 4, 7, 9, 9])).tolist()
    [0, 2, 3]
    """
    is_start = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def run_numbers(starts: Ints, count: int) -> Ints:
    """Return for each of `count` rows the number of its run."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=count))


def unique_pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of two columns, sorted. `left` is not negative.

    Examples
    --------
    >>> [column.tolist() for column in unique_pairs(np.array([1, 0, 1, 1]), np.array([5, 6, 5, -2]))]
    [[0, 1, 1], [6, -2, 5]]
    """
    if not len(left):
        return left, right
    values = None
    low = int(right.min())
    span = int(right.max()) - low + 1
    if (int(left.max()) + 1) * span > MAX_KEY:
        values, right = np.unique(right, return_inverse=True)
        low, span = 0, len(values)
    pairs = np.sort(left * span + (right - low))  # five times as fast as np.unique, which hashes
    pairs = pairs[run_starts(pairs)]
    left, right = pairs // span, pairs % span + low
    return left, right if values is None else values[right]


def expand_ranges(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return (rows, integers): the integers from `first` to `last` of each row, each with the index of its row.

    Examples
    --------
    >>> [column.tolist() for column in expand_ranges(np.array([4, 9]), np.array([6, 9]))]
    [[0, 0, 0, 1], [4, 5, 6, 9]]
    """
    counts = last - first + 1
    row = np.repeat(np.arange(len(first)), counts)
    position = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, first[row] + position

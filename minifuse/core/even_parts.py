"""The even division of a length among ranks."""

from collections.abc import Sequence

from .errors import ShapeError


def even_range(length: int, rank: int, size: int) -> tuple[int, int]:
    """Return start and stop of the part of a rank, if `size` ranks share a length evenly. The first parts may have one more.

    Examples
    --------
    >>> [even_range(10, rank, 4) for rank in range(4)]
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    quotient, rest = divmod(length, size)
    return rank * quotient + min(rank, rest), (rank + 1) * quotient + min(rank + 1, rest)


def even_sizes(length: int, size: int) -> tuple[int, ...]:
    """Return the length of the part of each rank, if `size` ranks share a length evenly.

    Examples
    --------
    >>> even_sizes(10, 4)
    (3, 3, 2, 2)
    """
    ranges = (even_range(length, rank, size) for rank in range(size))
    return tuple(stop - start for start, stop in ranges)


def part_ranges(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last index + 1 of each part.

    Examples
    --------
    >>> part_ranges((3, 3, 2))
    [(0, 3), (3, 6), (6, 8)]
    """
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [(end - n, end) for end, n in zip(ends, sizes, strict=True)]


def check_rank(call: str, rank: int, size: int) -> None:
    """Raise ShapeError unless `rank` is one of `size` ranks."""
    if size < 1 or not 0 <= rank < size:
        expected = f"a rank from 0 to {size - 1}" if size > 0 else "at least one rank"
        raise ShapeError(f"{call}: got rank {rank} of {size}, expected {expected}")

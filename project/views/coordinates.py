"""Format and convert coordinates along x, y and z, and counts."""

from collections.abc import Sequence


def linear_index(index: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the linear index of coordinates along x, y, z."""
    found, step = 0, 1
    for i, size in zip(index, sizes, strict=False):
        found, step = found + i * step, step * size
    return found


def unravel_index(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return the coordinates along x, y, z of a linear index."""
    x, y = sizes[0], sizes[1]
    return number % x, number // x % y, number // (x * y)


def format_index(number: int, sizes: Sequence[int]) -> str:
    """Format an index along one dim as a number, along two or three as coordinates."""
    found = unravel_index(number, sizes)
    return str(number) if sizes[1] == sizes[2] == 1 else str(found[: 2 if sizes[2] == 1 else 3])


def format_range(what: str, first: int, last: int, sizes: Sequence[int]) -> str:
    """Format the ends of a range with a noun: "block 3", "threads (0, 0)..(31, 15)"."""
    start = format_index(first, sizes)
    return f"{what} {start}" if first == last else f"{what}s {start}..{format_index(last, sizes)}"

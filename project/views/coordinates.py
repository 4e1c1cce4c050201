"""Format and convert coordinates along x, y and z, lanes and counts."""

from collections.abc import Sequence
from itertools import pairwise


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


def format_numbers(numbers: Sequence[int]) -> str:
    """Abbreviate ascending numbers: "3", "0..17", "0, 2 .. 30"."""
    if len(numbers) < 3:
        return ", ".join(map(str, numbers))
    steps = {b - a for a, b in pairwise(numbers)}
    if steps == {1}:
        return f"{numbers[0]}..{numbers[-1]}"
    if len(steps) == 1:
        return f"{numbers[0]}, {numbers[1]} .. {numbers[-1]}"
    return f"{numbers[0]}, {numbers[1]}, ... ({len(numbers)} of them)"


def format_count(number: int, what: str) -> str:
    """Format a count with a noun: "1 block", "2 blocks"."""
    return f"{number} {what}{'s' * (number != 1)}"

"""Places along x, y and z, lanes and counts, as numbers and in words."""

from collections.abc import Sequence
from itertools import pairwise


def linear(index: Sequence[int], sizes: Sequence[int]) -> int:
    """The number of a place along x, y, z."""
    found, step = 0, 1
    for i, size in zip(index, sizes, strict=False):
        found, step = found + i * step, step * size
    return found


def place(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """The place along x, y, z of a number."""
    x, y = sizes[0], sizes[1]
    return number % x, number // x % y, number // (x * y)


def spoken(number: int, sizes: Sequence[int]) -> str:
    """A number along one dim, or its place along two or three."""
    found = place(number, sizes)
    return str(number) if sizes[1] == sizes[2] == 1 else str(found[: 2 if sizes[2] == 1 else 3])


def listed(numbers: Sequence[int]) -> str:
    """Numbers that rise, in short: "3", "0..17", "0, 2 .. 30"."""
    if len(numbers) < 3:
        return ", ".join(map(str, numbers))
    steps = {b - a for a, b in pairwise(numbers)}
    if steps == {1}:
        return f"{numbers[0]}..{numbers[-1]}"
    if len(steps) == 1:
        return f"{numbers[0]}, {numbers[1]} .. {numbers[-1]}"
    return f"{numbers[0]}, {numbers[1]}, ... ({len(numbers)} of them)"


def counted_as(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}{'s' * (number != 1)}"

"""Records of the accesses of a student's loop, as plain data."""

from typing import NamedTuple

Index = int | tuple[int, ...]
Line = tuple[str, int]  # (file, line)


class Touch(NamedTuple):
    """One access to a cell."""

    iteration: int | None
    is_write: bool
    line: Line


class AccessFacts(NamedTuple):
    """The accesses of one run."""

    reads: dict[str, int]
    """Number of element reads, by the name of the array."""
    writes: dict[str, int]
    places: dict[str, list[tuple[int, Line]]]
    """The addresses that were read, in order, and the lines that read them."""
    made: list[int]
    """The sizes of arrays that the loop has created."""
    made_inside: int
    """Number of arrays that were created in an iteration of a prange."""
    most_read: int
    """The most elements of operands that one iteration of a prange read, or all code outside of one."""
    written: int
    """Number of different elements of the output that were written."""
    calls: int
    """Number of calls of the operator."""
    divisions: int
    """Number of divisions of integers, `%` included."""
    races: list[tuple[str, Index, Touch, Touch]]
    """(array, index, one access, the other access)."""
    serial_writes: list[Line]
    """Lines that wrote to the output outside of any prange."""

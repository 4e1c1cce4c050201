"""Loop nests, machines and schedules of task 5.7, as plain data that student files import."""

from typing import NamedTuple

__all__ = ["Machine", "Nest", "Schedule"]


class Nest(NamedTuple):
    """A loop nest: for each index it loads an element of each operand; along reduced dims it adds up.

    Examples
    --------
    The sums of the rows of a (64, 256) matrix:

    >>> Nest((64, 256), (False, True), ((256, 1),), (1, 0)).sizes
    (64, 256)
    """

    sizes: tuple[int, ...]
    is_reduced: tuple[bool, ...]
    loads: tuple[tuple[int, ...], ...]
    """The strides of each operand, one for each dim, in elements; 0 where all indices have the same element."""
    store: tuple[int, ...]
    """The strides of the output; 0 along reduced dims."""


class Machine(NamedTuple):
    """The limits of a GPU, and what it takes time for. A time is a number of cycles."""

    multiprocessors: int = 8
    """Each runs one block at a time."""
    warp: int = 32
    """Threads of a warp."""
    sector: int = 8
    """Elements of a sector."""
    max_threads: int = 256
    """Of a block."""
    registers: int = 8
    """Elements of the output that a thread may compute."""
    shared: int = 1024
    """Elements of shared memory of a block."""
    latency: int = 24
    """Of a load."""
    launch: int = 400
    """Of the second kernel, which adds up the chunks of a split reduction."""


class Schedule(NamedTuple):
    """Which thread computes which elements of a nest."""

    lanes: int
    """The dim whose threads are numbered first. The other dims follow, from the last to the first."""
    threads: tuple[int, ...]
    """The threads of a block along each dim."""
    tile: tuple[int, ...]
    """The elements of the output that a thread computes along each dim, `threads[d]` apart; 1 along reduced dims."""
    split: int = 1
    """Into how many chunks the first reduced dim is split; each is computed by blocks of its own."""

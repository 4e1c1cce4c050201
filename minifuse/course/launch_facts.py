"""A launch of a student's CUDA kernel, and what is recorded of it, as plain data."""

from typing import Any, NamedTuple

import numpy as np

from .access_facts import Line
from .parallel import empty_like
from .strided import Array, Strided

Sizes = int | tuple[int, ...]
Argument = Strided | Array | float
"""An argument of a kernel."""


class Launch(NamedTuple):
    """One launch of a kernel: the slot, the arguments, and the numbers of blocks and threads."""

    slot: str
    operator: str
    """The name of the operator that the kernel is made for, in `loops.FUNCTIONS`; "" if the slot is the kernel."""
    arguments: tuple[Any, ...]
    """The arguments of the kernel, out first."""
    grid: Sizes
    block: Sizes

    @property
    def out(self) -> Strided | Array:
        """Return the output: a tensor or an array."""
        out: Strided | Array = self.arguments[0]
        return out

    def fresh(self) -> tuple[Any, ...]:
        """Return the arguments with a new output, full of NaN."""
        out = empty_like(self.out) if isinstance(self.out, Strided) else np.full(self.out.shape, np.nan)
        return out, *self.arguments[1:]


class Traffic(NamedTuple):
    """The requests of warps to one array in global memory."""

    requests: int = 0
    sectors: int = 0
    """Pieces of 32 bytes that the requests move."""
    ideal_sectors: int = 0
    """Pieces that they would move if the elements of each request were adjacent."""
    lines: int = 0
    """Cache lines of 128 bytes that the requests touch."""


class ArrayFacts(NamedTuple):
    """The accesses of a launch to one array in global memory."""

    loads: int = 0
    most: int = 0
    """The most loads of one element."""
    stores: int = 0
    most_by_thread: int = 0
    """The most loads by one thread."""
    most_stores_by_thread: int = 0
    load_traffic: Traffic = Traffic()
    store_traffic: Traffic = Traffic()
    load_lines: list[Line] = []  # noqa: RUF012  # a default that nobody changes
    store_lines: list[Line] = []  # noqa: RUF012


class SharedFacts(NamedTuple):
    """The accesses of a launch to shared memory, and its barriers."""

    nbytes: int = 0
    """The shared memory of a block."""
    loads: int = 0
    wavefronts: int = 0
    """Passes over the banks that the loads take."""
    ideal_wavefronts: int = 0
    """Passes that they would take without bank conflicts."""
    barriers: int = 0
    """The most barriers that a block passes."""


class LaunchFacts(NamedTuple):
    """The output and the accesses of a launch."""

    out: Array
    """The flat storage of the output."""
    arrays: dict[str, ArrayFacts]
    most_shared: int
    """The most loads of shared memory by one thread."""
    most_cells: int
    """The most cells of shared memory that one thread reads between two barriers."""
    scattered: int
    """Between how many barriers the threads that combine cells are in more warps than necessary."""
    shared: SharedFacts = SharedFacts()

    def of(self, name: str) -> ArrayFacts:
        """Return the accesses to an array; none if it was not accessed."""
        return self.arrays.get(name, ArrayFacts())


def flat(out: Strided | Array) -> Array:
    """Return the flat storage of an output."""
    return out.storage if isinstance(out, Strided) else out.reshape(-1)

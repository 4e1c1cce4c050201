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


class ArrayFacts(NamedTuple):
    """The accesses of a launch to one array in global memory."""

    loads: int = 0
    most: int = 0
    """The most loads of one element."""
    stores: int = 0
    most_by_thread: int = 0
    """The most loads by one thread."""
    load_lines: list[Line] = []  # noqa: RUF012  # a default that nobody changes
    store_lines: list[Line] = []  # noqa: RUF012


class LaunchFacts(NamedTuple):
    """The output and the accesses of a launch."""

    out: Array
    """The flat storage of the output."""
    arrays: dict[str, ArrayFacts]
    most_shared: int
    """The most loads of shared memory by one thread."""

    def of(self, name: str) -> ArrayFacts:
        """Return the accesses to an array; none if it was not accessed."""
        return self.arrays.get(name, ArrayFacts())


def flat(out: Strided | Array) -> Array:
    """Return the flat storage of an output."""
    return out.storage if isinstance(out, Strided) else out.reshape(-1)

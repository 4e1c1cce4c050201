"""Compute parts of an array by NumPy on several threads: NumPy's sort and partition use one, without Python's lock.

The threads are those of Python's executor, since the pool of `driver` runs machine code only.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from ...core.indexing import Shape
from ...ir.selection import Selection
from ...ir.sort import Sort
from ..executable import Launcher
from ..fallback import NumpyExecutable
from ..operand import Operand
from .driver import THREADS

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MIN_PART = 1 << 14  # elements that take longer to sort than to wake a thread

Part = tuple[slice, ...]


class SharedNumpyExecutable(NumpyExecutable):
    """An op along a dim, such as a sort, that NumPy computes; threads share the rows."""

    op: Selection | Sort

    def load(self) -> Launcher:
        """Return the call of NumPy, for each part."""
        ((out,), (x,)), dtypes = self.step.layouts(), self.kernel.operand_dtypes()
        parts, layouts = split_rows(x.shape, self.op.dim), (out, x)
        if len(parts) < 2:
            return super().load()

        def launch(*addresses: int) -> None:
            y, x = [Operand.at_address(*each).array() for each in zip(addresses, dtypes, layouts, strict=True)]

            def compute(part: Part) -> None:
                with np.errstate(all="ignore"):
                    y[part] = self.op.run(x[part])

            share(compute, parts)

        return launch


def split_rows(shape: Shape, dim: int, parts_per_thread: int = 1) -> list[Part]:
    """Return parts of an array in which rows along a dim are whole.

    One part for each thread is best for several functions of NumPy, since a thread takes Python's lock between them.
    """
    d = max((d for d in range(len(shape)) if d != dim), key=shape.__getitem__, default=dim)
    if d == dim:
        return [()]
    count = max(min(parts_per_thread * THREADS, prod(shape) // MIN_PART), 1)
    size = max(ceil(shape[d] / count), 1)
    return [(*[slice(None)] * d, slice(start, start + size)) for start in range(0, shape[d], size)]


def share(compute: Callable[[Part], None], parts: Sequence[Part]) -> None:
    """Call a function for each part, on several threads, and wait for all."""
    from concurrent.futures import wait

    queue = iter(parts)

    def work() -> None:
        for part in queue:
            compute(part)

    futures = [helpers().submit(work) for _ in range(min(THREADS, len(parts)) - 1)]
    try:
        work()
    finally:
        wait(futures)  # also if a signal ends the call: threads use its memory
    for future in futures:
        future.result()


@cache
def helpers() -> "ThreadPoolExecutor":
    """Return the other threads, which start when they are needed. A forked child starts its own."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(THREADS - 1, "minifuse-numpy")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)

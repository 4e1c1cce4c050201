"""Record which iterations of a prange write which elements of the output, in compiled code.

A compiled prange calls Numba's launcher of threads, which shares the iterations out. The launcher is replaced by one that
passes each call on; while `record` runs, it makes the iterations itself, one after the other, and compares the output
between them. So the record does not depend on the number of cores, and no code can do less for it than for a user.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .strided import Array

THREADS = 8  # that Numba seems to have while a call is recorded, on any machine
MAX_GROUPS = 64  # of iterations: of a long loop, consecutive iterations are recorded together
Ints = npt.NDArray[np.int64]


class PrangeRun(NamedTuple):
    """One run of a prange."""

    iterations: int
    groups: int
    """The iterations are divided into so many groups of consecutive ones."""
    writer: Ints
    """For each element of the output, the group that wrote it last; -1 if none did."""


class Launcher:
    """The launcher of threads, and what it has recorded."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm
        from numba.np.ufunc import parallel

        internals: Any = parallel
        internals._launch_threads()
        self._pass_on = LAUNCH(llvm.address_of_symbol("numba_parallel_for"))
        self._count_threads = COUNT(llvm.address_of_symbol("get_num_threads"))
        self.out: Array | None = None
        self.runs: list[PrangeRun] = []
        self._is_inside = False
        self._launch, self._count = LAUNCH(self.launch), COUNT(self.count)
        internals._get_num_threads = COUNT_FOR_PYTHON(self.count)
        for name, function in (("numba_parallel_for", self._launch), ("get_num_threads", self._count)):
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)

    def count(self) -> int:
        """Return the number of threads."""
        return THREADS if self.out is not None else int(self._count_threads())

    def launch(self, kernel: int, arguments: int, sizes: int, *others: int) -> None:
        """Run a kernel for all iterations: by threads, or one after the other if a call is recorded."""
        if self.out is None or self._is_inside:
            self._pass_on(kernel, arguments, sizes, *others)
            return
        self._is_inside = True
        try:
            self._record(self.out, KERNEL(kernel), arguments, sizes, *others)
        finally:
            self._is_inside = False

    def _record(self, out: Array, kernel: Callable[..., None], arguments: int, sizes: int, *others: int) -> None:
        """Run a kernel for one group of iterations after the other.

        The first argument of a kernel is a schedule: in each row the first iteration of a thread, of each dim, and then
        the last one. The first size is the number of rows.
        """
        steps, data, size_count, argument_count, _ = others
        given, of_kernel = view(arguments, argument_count).copy(), view(sizes, size_count + 1).copy()
        height, width = int(of_kernel[0]), int(of_kernel[1])
        schedule, dims = view(int(given[0]), height * width).reshape(height, width), width // 2
        rows = schedule[(schedule[:, :dims] <= schedule[:, dims:]).all(1)]
        iterations = int((rows[:, dims:] - rows[:, :dims] + 1).prod(1).sum())
        if dims == 1 and iterations:
            bounds = np.linspace(rows.min(), rows.max() + 1, min(iterations, MAX_GROUPS) + 1).astype(np.int64)
            rows = np.stack([bounds[:-1], bounds[1:] - 1], 1)
        writer = np.full(len(out), -1, np.int64)
        of_kernel[0] = 1
        for group, row in enumerate(np.ascontiguousarray(rows)):
            before = out.view(np.int64).copy()
            given[0] = row.ctypes.data
            kernel(given.ctypes.data, of_kernel.ctypes.data, steps, data)
            writer[before != out.view(np.int64)] = group
        self.runs.append(PrangeRun(iterations, len(rows), writer))


POINTER, SIZE = ctypes.c_void_p, ctypes.c_ssize_t
LAUNCH = ctypes.CFUNCTYPE(None, *[POINTER] * 5, *[SIZE] * 3)
KERNEL = ctypes.CFUNCTYPE(None, *[POINTER] * 4)
COUNT, COUNT_FOR_PYTHON = ctypes.CFUNCTYPE(SIZE), ctypes.CFUNCTYPE(ctypes.c_int)


def view(address: int, count: int) -> Ints:
    """Return memory as an array of int64."""
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int64)), (count,))


@cache
def launcher() -> Launcher:
    """Replace Numba's launcher of threads, once. Code that was linked before keeps the original."""
    return Launcher()


def record(call: Callable[[], None], out: Array) -> list[PrangeRun]:
    """Return a record of each prange that a call of compiled code runs; `out` is the memory of its output."""
    one = launcher()
    one.out, one.runs = out, []
    try:
        call()
    finally:
        one.out = None
    return one.runs

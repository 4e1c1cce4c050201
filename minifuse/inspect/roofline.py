"""What a machine can do at most: bytes moved and operations done in a second, measured by kernels of our own.

Each is measured once a process and backend, when it is first asked for, in some tenths of a second.
"""

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from ..backends.base import Backend
from ..core.dtypes import BY_NAME, DType, float32
from ..core.layout import row_major
from ..ir.kernel_ir import Kernel, Load
from ..runtime.memory_pool import binned

REPEATS = 5  # the fastest counts
MANY = 1 << 24  # elements that are copied, four times as many on a GPU: far more than caches hold
SIZE = 1024  # of the square matrices that are multiplied, four times as large on a GPU


@dataclass(frozen=True)
class Limits:
    """What was measured of one backend."""

    gbytes_per_s: float
    """Of a copy: read and written."""
    gflops: dict[str, float]
    """Of matrix products, by element type: 10^9 multiplications and additions a second. Measured when asked for."""
    backend: Any = field(repr=False, compare=False)

    def peak(self, dtype: str) -> float | None:
        """Of products of an element type; None of integers."""
        if dtype not in self.gflops and BY_NAME[dtype].is_float:
            self.gflops[dtype] = products_of(self.backend, BY_NAME[dtype])
        return self.gflops.get(dtype)

    def __str__(self) -> str:
        peaks = "".join(f", {speed:,.0f} GFLOP/s in products of {name}" for name, speed in self.gflops.items())
        return f"{self.gbytes_per_s:,.1f} GB/s in a copy{peaks}, as measured here"


@cache
def limits_of(backend: Backend) -> Limits:
    """The limits of a backend."""
    return Limits(copies_of(backend), {}, backend)


def copies_of(backend: Backend) -> float:
    """GB/s of a copy."""
    layout = row_major((MANY if backend.is_host else 4 * MANY,))
    launch = backend.bind(Kernel((Load(0, float32),), ()), layout.shape, (), [layout], [layout])
    nbytes = layout.size * float32.itemsize
    return 2 * nbytes / fastest(backend, launch, [nbytes] * 2) / 1e3


def products_of(backend: Backend, dtype: DType) -> float:
    """GFLOP/s of a product."""
    size = SIZE if backend.is_host else 4 * SIZE
    layout = row_major((size, size))
    launch = backend.bind_matmul(dtype, layout, layout, layout)
    return 2 * size**3 / fastest(backend, launch, [layout.size * dtype.itemsize] * 3) / 1e3


def fastest(backend: Backend, launch: Any, sizes: list[int]) -> float:
    """Microseconds of a launch over new memory, filled with zeros."""
    buffers = [backend.allocate(binned(nbytes)) for nbytes in sizes]
    layouts = [row_major((nbytes // float32.itemsize,)) for nbytes in sizes]
    for buffer, layout in zip(buffers, layouts, strict=True):
        backend.fill(buffer, buffer.address, float32, layout, 0)
    addresses, clock = [buffer.address for buffer in buffers], backend.clock()
    launch(*addresses)
    marks = [clock.mark()]
    for _ in range(REPEATS):
        launch(*addresses)
        marks.append(clock.mark())
    times = clock.read(marks)
    return float(min(after - before for before, after in pairwise(times)))

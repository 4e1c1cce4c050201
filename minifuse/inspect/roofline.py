"""Measure the limits of a machine: memory bandwidth by a copy, arithmetic throughput by matmuls.

Each limit is measured once per process and backend, when it is first needed. A measurement takes some tenths of a second.
"""

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from ..backends.base import Backend, Launcher
from ..core.dtypes import BY_NAME, DType, float32
from ..core.layout import row_major
from ..ir.kernel_ir import copy_kernel
from ..ir.step_kernels import plain_matmul
from ..ir.steps import Step
from ..runtime.memory_pool import round_to_size_class

TIMED_LAUNCHES = 5  # launches that are timed; the fastest counts
COPY_ELEMENTS = 1 << 24  # float32 elements of the timed copy (four times as many on a GPU): more than the caches hold
MATMUL_SIZE = 1024  # rows and columns of the matrices in the timed matmul (four times as many on a GPU)


@dataclass(frozen=True)
class MachineLimits:
    """The measured limits of one backend."""

    gbytes_per_s: float
    """The bandwidth of a copy: bytes read plus bytes written."""
    gflops: dict[str, float]
    """The throughput of matmuls by element type, in 10^9 multiplications and additions per second. Measured on demand."""
    backend: Backend = field(repr=False, compare=False)

    def peak(self, dtype: str) -> float | None:
        """Return the throughput of matmuls of an element type in GFLOP/s; None for integers."""
        if dtype not in self.gflops and BY_NAME[dtype].is_float:
            self.gflops[dtype] = measure_matmul(self.backend, BY_NAME[dtype])
        return self.gflops.get(dtype)

    def __str__(self) -> str:
        peaks = "".join(f", {speed:,.0f} GFLOP/s in products of {name}" for name, speed in self.gflops.items())
        return f"{self.gbytes_per_s:,.1f} GB/s in a copy{peaks}, as measured here"


@cache
def machine_limits(backend: Backend) -> MachineLimits:
    """Return the limits of a backend. The bandwidth is measured at the first call."""
    return MachineLimits(measure_copy(backend), {}, backend)


def measure_copy(backend: Backend) -> float:
    """Measure the bandwidth of a copy in GB/s."""
    layout = row_major((COPY_ELEMENTS if backend.is_host else 4 * COPY_ELEMENTS,))
    launch = backend.compile(Step.of_layouts(copy_kernel(float32), layout.shape, (), [layout], [layout])).load()
    nbytes = layout.size * float32.itemsize
    return 2 * nbytes / time_launch(backend, launch, [nbytes] * 2) / 1e3


def measure_matmul(backend: Backend, dtype: DType) -> float:
    """Measure the throughput of a matmul in GFLOP/s."""
    size = MATMUL_SIZE if backend.is_host else 4 * MATMUL_SIZE
    layout = row_major((size, size))
    launch = backend.compile(Step.of_layouts(plain_matmul(dtype), layout.shape, (), [layout], [layout, layout])).load()
    return 2 * size**3 / time_launch(backend, launch, [layout.size * dtype.itemsize] * 3) / 1e3


def time_launch(backend: Backend, launch: Launcher, buffer_nbytes: list[int]) -> float:
    """Return the shortest time of a launch in microseconds, on new buffers that are filled with zeros."""
    buffers = [backend.allocate(round_to_size_class(nbytes)) for nbytes in buffer_nbytes]
    layouts = [row_major((nbytes // float32.itemsize,)) for nbytes in buffer_nbytes]
    for buffer, layout in zip(buffers, layouts, strict=True):
        backend.fill(buffer, buffer.address, float32, layout, 0)
    addresses, clock = [buffer.address for buffer in buffers], backend.clock()
    launch(*addresses)
    marks = [clock.mark()]
    for _ in range(TIMED_LAUNCHES):
        launch(*addresses)
        marks.append(clock.mark())
    times = clock.read(marks)
    return float(min(after - before for before, after in pairwise(times)))

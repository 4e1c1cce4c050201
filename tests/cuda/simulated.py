"""The interpreter as a backend: what "cuda" is on a machine with no GPU, and beside the GPU on one that has it."""

from functools import cache

from minifuse.backends.cuda.backend import CudaBackend
from minifuse.backends.cuda.device.simulated_device import SimulatedDevice


@cache
def simulated(index: int = 0) -> CudaBackend:
    """The backend of GPU number `index` that is not there."""
    backend = CudaBackend.__new__(CudaBackend)
    backend.name = f"cuda:{index}" if index else "cuda"
    backend.device = SimulatedDevice(index)
    backend.allocate, backend.has_reduced_precision = backend.device.pool.allocate, True
    return backend

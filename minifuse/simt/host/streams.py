"""Streams and events of a script, and the device that it queries.

All work is done when a call returns, so a stream orders nothing, and an event only stores a time. A missing `synchronize` is
therefore not found. The device is simulated; its attributes are those of an H100, so that a script that computes its grid
from them gets realistic numbers.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import NamedTuple

from ...core.errors import CudaError
from ..address_spaces import MAX_SHARED_BYTES
from .arrays import raise_unsupported

MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK_DIMS = (1024, 1024, 64)
MAX_GRID_DIMS = (2**31 - 1, 65535, 65535)

DEVICE_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": MAX_THREADS_PER_BLOCK,
    "MAX_BLOCK_DIM_X": MAX_BLOCK_DIMS[0],
    "MAX_BLOCK_DIM_Y": MAX_BLOCK_DIMS[1],
    "MAX_BLOCK_DIM_Z": MAX_BLOCK_DIMS[2],
    "MAX_GRID_DIM_X": MAX_GRID_DIMS[0],
    "MAX_GRID_DIM_Y": MAX_GRID_DIMS[1],
    "MAX_GRID_DIM_Z": MAX_GRID_DIMS[2],
    "MAX_SHARED_MEMORY_PER_BLOCK": MAX_SHARED_BYTES,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 * 1024,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 * 1024,
    "TOTAL_CONSTANT_MEMORY": 64 * 1024,
    "WARP_SIZE": 32,
    "MAX_REGISTERS_PER_BLOCK": 65536,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "CLOCK_RATE": 1_980_000,  # kHz
    "MEMORY_CLOCK_RATE": 2_619_000,  # kHz
    "GLOBAL_MEMORY_BUS_WIDTH": 5120,  # bits
    "L2_CACHE_SIZE": 50 * 1024 * 1024,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "CAN_MAP_HOST_MEMORY": 1,
    "CONCURRENT_KERNELS": 1,
    "COOPERATIVE_LAUNCH": 1,
    "MANAGED_MEMORY": 1,
    "UNIFIED_ADDRESSING": 1,
    "ASYNC_ENGINE_COUNT": 3,
    "KERNEL_EXEC_TIMEOUT": 0,
    "TCC_DRIVER": 0,
    "INTEGRATED": 0,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2,
    "PCI_DOMAIN_ID": 0,
    "PCI_BUS_ID": 0,
    "PCI_DEVICE_ID": 0,
}


class SimtStream:
    """A queue of work that is always empty."""

    handles = count(1)

    def __init__(self, name: str = "") -> None:
        self.handle = 0 if name else next(SimtStream.handles)
        self.name = name or f"CUDA stream {self.handle}"

    def __int__(self) -> int:
        return self.handle

    def __bool__(self) -> bool:
        return self.handle != 0

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def synchronize(self) -> None:
        """Do nothing: no work of the stream is ever pending."""

    @contextmanager
    def auto_synchronize(self) -> Iterator["SimtStream"]:
        """Synchronize at the end of a `with` block."""
        yield self

    def add_callback(self, callback: Callable[["SimtStream", int, object], None], arg: object = None) -> None:
        """Call `callback(stream, status, arg)` immediately."""
        callback(self, 0, arg)


class SimtEvent:
    """An event in a stream, with the time at which it was recorded."""

    def __init__(self, timing: bool = True) -> None:
        self.timing, self.time_s = timing, 0.0

    def record(self, stream: object = 0) -> None:
        """Record the time."""
        self.time_s = time.perf_counter()

    def query(self) -> bool:
        """Return whether the event has completed: always True."""
        return True

    def synchronize(self) -> None:
        """Do nothing: the event has always completed."""

    def wait(self, stream: object = 0) -> None:
        """Do nothing: the event has always completed."""

    def elapsed_time(self, end: "SimtEvent") -> float:
        """Return the milliseconds until another event: the time of the interpreter, which does not predict that of a GPU."""
        if not (self.timing and end.timing):
            raise CudaError("CUDA_ERROR_INVALID_HANDLE: elapsed_time of an event created with timing=False")
        if not (self.time_s and end.time_s):
            raise CudaError(
                "CUDA_ERROR_INVALID_HANDLE: elapsed_time of an event that was never recorded; call record() first"
            )
        return (end.time_s - self.time_s) * 1e3


class MemoryInfo(NamedTuple):
    """Device memory in bytes."""

    free: int
    total: int


class SimtDevice:
    """The simulated device, the only one in `cuda.gpus`. It is also its own context."""

    id = 0
    name = "minifuse simt"
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    compute_capability = (9, 0)
    supports_float16 = supports_bfloat16 = supports_fp8 = False  # in kernels here

    @property
    def device(self) -> "SimtDevice":
        """The device of the context."""
        return self

    def __enter__(self) -> "SimtDevice":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"<CUDA device {self.id} {self.name!r}>"

    def __getattr__(self, name: str) -> int:
        if name in DEVICE_ATTRIBUTES:
            return DEVICE_ATTRIBUTES[name]
        if name.startswith("_"):
            raise AttributeError(name)
        return raise_unsupported(
            f"device attribute {name}", f"the device of the interpreter has {', '.join(DEVICE_ATTRIBUTES)}"
        )

    @property
    def deallocations(self) -> SimpleNamespace:
        """The pending deallocations: there are none."""
        return SimpleNamespace(clear=self.synchronize)

    def get_memory_info(self) -> MemoryInfo:
        """Return the free and total bytes of a simulated 80 GiB."""
        return MemoryInfo(80 << 30, 80 << 30)

    def get_primary_context(self) -> "SimtDevice":
        """Return the context."""
        return self

    def synchronize(self) -> None:
        """Do nothing: no work is ever pending."""

    def reset(self) -> None:
        """Do nothing. Arrays stay valid."""

    @contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Defer deallocations in a `with` block."""
        yield


class SimtDeviceList(list[SimtDevice]):
    """`cuda.gpus`: a list of one device."""

    @property
    def lst(self) -> "SimtDeviceList":
        """The list itself."""
        return self

    @property
    def current(self) -> SimtDevice:
        """The only device."""
        return self[0]


DEVICE = SimtDevice()


def select_device(device_id: int) -> SimtDevice:
    """Select a device. Only device 0 exists."""
    if device_id != 0:
        raise CudaError(f"CUDA_ERROR_INVALID_DEVICE: select_device({device_id}), but the interpreter has only device 0")
    return DEVICE

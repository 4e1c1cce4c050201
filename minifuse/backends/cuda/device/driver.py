"""What NVIDIA's driver says: how many GPUs there are, how old it is, and its errors in words.

Asked through the driver's own library, so that it works where no Python package for CUDA is installed.
"""

import ctypes
import os
import sys
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import CudaError, MissingPartError, OutOfMemoryError

MIN_DRIVER_VERSION = 12000  # of drivers: 1000 x major + 10 x minor, as the driver counts
EXTRAS = {13: "cuda13", 12: "cuda12"}  # the extra for a major version
NO_DEVICE = 100
TOO_NEW_NUMPY = "2.5"  # numba-cuda calls np.row_stack, which this version removed
NUMPY_INSTALL_COMMAND = f'pip install "numpy<{TOO_NEW_NUMPY}"'
SIMULATE_VARIABLE = "MINIFUSE_CUDA"  # set to "simulated", the interpreter is used even where there is a GPU
SIMULATE_HINT = "MINIFUSE_CUDA=simulated runs the same kernels in the interpreter, which says where"
ADVICE = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"a kernel accessed memory that is not its own; {SIMULATE_HINT}",
    "CUDA_ERROR_MISALIGNED_ADDRESS": f"a 16-byte load at an address that is no multiple of 16; {SIMULATE_HINT}",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "a kernel was compiled for another GPU; clear the cache with mf.cache.clear()",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the compiler is newer than the driver; update the driver, or install cuda12",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory than there are",
}


class DriverInfo(NamedTuple):
    """What a machine has: GPUs, the version of the driver (0 without one), and, where there is none, why."""

    gpus: int
    version: int
    reason: str

    @property
    def extra(self) -> str:
        """The extra of minifuse that fits the driver."""
        return EXTRAS.get(self.version // 1000, "cuda13")


@cache
def query_driver() -> DriverInfo:
    """Ask the driver's library."""
    if os.environ.get(SIMULATE_VARIABLE, "").lower() == "simulated":
        return DriverInfo(0, 0, f"{SIMULATE_VARIABLE}=simulated is set")
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return DriverInfo(0, 0, "no NVIDIA driver is installed")
    status = library.cuInit(0)
    if status == NO_DEVICE:
        return DriverInfo(0, 0, "the NVIDIA driver finds no GPU")
    version, count = ctypes.c_int(), ctypes.c_int()
    if status or library.cuDriverGetVersion(ctypes.byref(version)) or library.cuDeviceGetCount(ctypes.byref(count)):
        return DriverInfo(0, 0, f"the NVIDIA driver does not start (error {status})")
    return DriverInfo(count.value, version.value, "" if count.value else "the NVIDIA driver finds no GPU")


def require_cuda_packages(found: DriverInfo) -> None:
    """Raise where a GPU is there, but something that drives it is not.

    Raises
    ------
    CudaError
        The driver is too old.
    MissingPartError
        A package is missing, or NumPy is too new.
    """
    simulate = f"or set {SIMULATE_VARIABLE}=simulated to run kernels in the interpreter"
    if found.version < MIN_DRIVER_VERSION:
        version = f"{found.version // 1000}.{found.version % 1000 // 10}"
        raise CudaError(f"the NVIDIA driver is for CUDA {version}, expected 12.0 or newer; update the driver, {simulate}")
    try:
        for part in ("cuda.bindings.driver", "cuda.core", "numba_cuda"):
            import_module(part)
    except ImportError as error:
        line = f'pip install "minifuse[{found.extra}]"'
        raise MissingPartError(
            f"there is a GPU, but a part that drives it is missing ({error}); {line}, {simulate}"
        ) from None
    require_numpy()


def is_numpy_supported() -> bool:
    """Return whether numba-cuda works with the NumPy that is installed."""
    return bool(np.lib.NumpyVersion(np.__version__) < f"{TOO_NEW_NUMPY}.0")


def require_numpy() -> None:
    """Raise where NumPy is too new for numba-cuda.

    Raises
    ------
    MissingPartError
        NumPy is not older than `TOO_NEW_NUMPY`.
    """
    if not is_numpy_supported():
        raise MissingPartError(
            f"CUDA kernels are compiled by numba-cuda, which expects a NumPy older than {TOO_NEW_NUMPY}, and NumPy "
            f"{np.__version__} is installed; run: {NUMPY_INSTALL_COMMAND}, or set {SIMULATE_VARIABLE}=simulated to "
            f"run kernels in the interpreter"
        )


def check(result: Any) -> Any:
    """The values of a call of `cuda.bindings`; an error in words where it failed."""
    status, *values = result
    if int(status):
        raise cuda_error(status.name, f"code {int(status)}")
    return values[0] if len(values) == 1 else values


def cuda_error(name: str, details: str) -> CudaError:
    """An error of the driver, with what to do."""
    advice = f"; {ADVICE[name]}" if name in ADVICE else ""
    kind = OutOfMemoryError if name == "CUDA_ERROR_OUT_OF_MEMORY" else CudaError
    return kind(f"{name}: {details}{advice}")


def translate_error(error: Exception) -> CudaError:
    """An error of cuda.core as ours; it carries the driver's name in its text."""
    name, _, details = str(error).partition(":")
    return cuda_error(name.strip(), details.strip() or type(error).__name__)

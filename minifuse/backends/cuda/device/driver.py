"""Query NVIDIA's driver: the number of GPUs, its version, and error messages with advice.

The query uses the driver's own library, so it works without any Python package for CUDA.
"""

import ctypes
import os
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.errors import CudaError, MissingPartError, OutOfMemoryError, warn_user

if TYPE_CHECKING:
    from cuda.bindings.driver import CUresult

MIN_DRIVER_VERSION = 12000  # in the driver's numbering: 1000 x major + 10 x minor
EXTRAS = {13: "cuda13", 12: "cuda12"}  # extra of minifuse by major version
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE, a status of cuInit
TOO_NEW_NUMPY = "2.5"  # this version removed np.row_stack, which numba-cuda calls
NUMPY_INSTALL_COMMAND = f'pip install "numpy<{TOO_NEW_NUMPY}"'
SIMULATE_VARIABLE = "MINIFUSE_CUDA"  # if "simulated", kernels run in the interpreter even if there is a GPU
SIMULATE_HINT = "MINIFUSE_CUDA=simulated runs the same kernels in the interpreter, which reports the line"
ADVICE = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": f"a kernel accessed memory outside its arrays; {SIMULATE_HINT}",
    "CUDA_ERROR_MISALIGNED_ADDRESS": f"a kernel accessed 16 bytes at an unaligned address; {SIMULATE_HINT}",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "a kernel was compiled for another GPU; clear the cache with mf.cache.clear()",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the compiler is newer than the driver; update the driver, or install cuda12",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the kernel needs more registers or shared memory than the GPU has",
}


class DriverInfo(NamedTuple):
    """The GPUs of a machine, the version of its driver (0 without one), and the reason if there is no GPU."""

    gpus: int
    version: int
    reason: str

    @property
    def extra(self) -> str:
        """Return the extra of minifuse that fits the driver."""
        return EXTRAS.get(self.version // 1000, "cuda13")


@cache
def query_driver() -> DriverInfo:
    """Query the driver's library."""
    if is_simulation_requested():
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


def require_device() -> None:
    """Raise an error if there is neither a GPU nor the package that the interpreter needs.

    Raises
    ------
    MissingPartError
        The machine has no GPU, and greenlet is not installed.
    """
    info = query_driver()
    if not info.gpus and find_spec("greenlet") is None:
        raise MissingPartError(
            f'cuda: there is no CUDA device here ({info.reason}); write "cpu", or leave it out. To interpret CUDA kernels '
            'on the CPU, far slower, run: pip install "minifuse[simt]"'
        )


def warn_if_interpreted() -> None:
    """Warn that kernels run in the interpreter, if there is no GPU and nobody has asked for the interpreter."""
    info = query_driver()
    if not info.gpus and not is_simulation_requested() and find_spec("greenlet") is not None:
        warn_user(
            f"cuda: there is no GPU here ({info.reason}), so kernels are interpreted on the CPU, thousands of times slower; "
            f'write "cpu" to compute, or set {SIMULATE_VARIABLE}=simulated to simulate a GPU without this warning'
        )


def is_simulation_requested() -> bool:
    """Return True if the environment asks for the interpreter."""
    return os.environ.get(SIMULATE_VARIABLE, "").lower() == "simulated"


def require_cuda_packages(info: DriverInfo) -> None:
    """Raise an error if there is a GPU but something that it needs is missing.

    Raises
    ------
    CudaError
        The driver is too old.
    MissingPartError
        A package is missing, or NumPy is too new.
    """
    simulate = f"or set {SIMULATE_VARIABLE}=simulated to run kernels in the interpreter"
    if info.version < MIN_DRIVER_VERSION:
        version = f"{info.version // 1000}.{info.version % 1000 // 10}"
        raise CudaError(f"the NVIDIA driver is for CUDA {version}, expected 12.0 or newer; update the driver, {simulate}")
    try:
        for module in ("cuda.bindings.driver", "cuda.core", "numba_cuda"):
            import_module(module)
    except ImportError as error:
        command = f'pip install "minifuse[{info.extra}]"'
        raise MissingPartError(
            f"a GPU was found, but a package that it needs is missing ({error}); run: {command}, {simulate}"
        ) from None
    require_numpy()


def is_numpy_supported() -> bool:
    """Return True if numba-cuda works with the installed NumPy."""
    return bool(np.lib.NumpyVersion(np.__version__) < f"{TOO_NEW_NUMPY}.0")


def require_numpy() -> None:
    """Raise an error if NumPy is too new for numba-cuda.

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


def check(result: "tuple[CUresult, *tuple[object, ...]]") -> Any:
    """Return the values of a call of `cuda.bindings`, or raise an error with advice if it failed."""
    status, *values = result
    if int(status):
        raise cuda_error(status.name, f"code {int(status)}")
    return values[0] if len(values) == 1 else values


def cuda_error(name: str, details: str) -> CudaError:
    """Return the exception for an error of the driver, with advice."""
    advice = f"; {ADVICE[name]}" if name in ADVICE else ""
    kind = OutOfMemoryError if name == "CUDA_ERROR_OUT_OF_MEMORY" else CudaError
    return kind(f"{name}: {details}{advice}")


def translate_error(error: Exception) -> CudaError:
    """Convert an error of cuda.core to a CudaError. Its text contains the driver's name of the error."""
    name, _, details = str(error).partition(":")
    return cuda_error(name.strip(), details.strip() or type(error).__name__)

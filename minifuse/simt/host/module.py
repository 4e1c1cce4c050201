"""The modules that replace `numba.cuda` while a script runs.

The names for kernels are from `simt.cuda_api`, those for the host from the other files of this folder. All other names raise
UnknownWordError. Libraries that have already imported the real `numba.cuda` continue to use it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ...core.errors import CudaError
from .. import cuda_api, random
from ..address_spaces import ShapeLike
from ..libdevice import LIBDEVICE
from ..rebind import numba_cuda_lock
from .arrays import (
    DeviceAllocation,
    DeviceArray,
    HostOrDevice,
    MappedArray,
    MemoryOrder,
    allocate,
    device_array_from_host,
    exported_array,
    exposes_memory,
    poison_value,
    raise_unsupported,
    script_line,
)
from .kernels import In, InOut, LaunchHandler, Out, jit
from .reduce import HostReduction
from .streams import DEVICE, SimtDeviceList, SimtEvent, SimtStream, select_device
from .vectorized import cuda_target

MODULE_NAME = "numba.cuda"
UNSUPPORTED_NAMES = {
    "declare_device": "the interpreter cannot run functions in other languages; write it as cuda.jit(device=True)",
    "external_stream": "streams of other libraries need a GPU; use cuda.stream()",
    "compile": "the interpreter compiles nothing",
    "compile_ptx": "the interpreter compiles nothing",
}


class StandInModule(ModuleType):
    """A module that looks up missing names with a function."""

    def __init__(self, name: str, find: Callable[[str], object], **names: object) -> None:
        super().__init__(name, f"The replacement of {name} in the interpreter.")
        self.__path__: list[str] = []  # makes it a package, so that `import numba.cuda.random` works
        self.__dict__.update(names)
        self._find = find

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._find(name)


class HostFunctions:
    """The host functions of `numba.cuda`: each public method is a function of that module."""

    def __init__(self, handler: LaunchHandler) -> None:
        import numba

        self._handler = handler
        self.jit = jit(handler)
        self.vectorize = partial(numba.vectorize, target="cuda")
        self.guvectorize = partial(numba.guvectorize, target="cuda")

    def _allocation(self) -> DeviceAllocation:
        return DeviceAllocation(self._handler, script_line())

    def to_device(
        self, obj: ArrayLike | DeviceArray, stream: object = 0, copy: bool = True, to: DeviceArray | None = None
    ) -> DeviceArray:
        """Copy a host array to the device. Return a device array unchanged."""
        if to is not None:
            if copy:
                to.copy_to_device(obj)
            return to
        return obj if isinstance(obj, DeviceArray) else device_array_from_host(obj, self._allocation(), copy=copy)

    def as_cuda_array(self, obj: object, sync: bool = True) -> DeviceArray:
        """Return a view of a device array, or of the memory that another object exposes by `__cuda_array_interface__`."""
        if not exposes_memory(obj):
            raise_unsupported(f"as_cuda_array({type(obj).__name__})", "only device arrays of the interpreter are supported")
        view: DeviceArray = exported_array(obj)[...]
        return view

    def is_cuda_array(self, obj: object) -> bool:
        """Return whether an object is in device memory."""
        return isinstance(obj, MappedArray) or exposes_memory(obj)

    def device_array(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = np.float64,
        strides: tuple[int, ...] | None = None,
        order: MemoryOrder = "C",
        stream: object = 0,
    ) -> DeviceArray:
        """Allocate uninitialized device memory."""
        return allocate(shape, dtype, strides, order, self._allocation())

    def device_array_like(self, ary: HostOrDevice, stream: object = 0) -> DeviceArray:
        """Allocate uninitialized device memory with the shape, dtype and order of another array."""
        return allocate(ary.shape, ary.dtype, None, memory_order(ary), self._allocation())

    def pinned_array(
        self, shape: ShapeLike, dtype: DTypeLike = np.float64, strides: object = None, order: MemoryOrder = "C"
    ) -> np.ndarray:
        """Allocate an uninitialized host array."""
        array = np.empty(shape, dtype, order)
        array[...] = poison_value(array.dtype)
        return array

    def pinned_array_like(self, ary: HostOrDevice) -> np.ndarray:
        """Allocate an uninitialized host array with the shape, dtype and order of another array."""
        return self.pinned_array(ary.shape, ary.dtype, order=memory_order(ary))

    def mapped_array(
        self,
        shape: ShapeLike,
        dtype: DTypeLike = np.float64,
        strides: object = None,
        order: MemoryOrder = "C",
        stream: object = 0,
        **flags: bool,
    ) -> MappedArray:
        """Allocate a host array that kernels read and write in place."""
        return self.pinned_array(shape, dtype, order=order).view(MappedArray)

    managed_array = mapped_array

    def mapped_array_like(self, ary: HostOrDevice, stream: object = 0, **flags: bool) -> MappedArray:
        """Allocate a mapped array with the shape, dtype and order of another array."""
        return self.mapped_array(ary.shape, ary.dtype, order=memory_order(ary))

    @contextmanager
    def mapped(self, *arylist: np.ndarray, stream: object = 0) -> Iterator[DeviceArray | list[DeviceArray]]:
        """Return a context manager that maps host arrays as device arrays over the same memory."""
        arrays = [DeviceArray(array, np.ones(array.shape, bool), self._allocation()) for array in arylist]
        yield arrays[0] if len(arrays) == 1 else arrays

    def pinned(self, *arylist: np.ndarray) -> AbstractContextManager[None]:
        """Return a context manager that pins host arrays. Pinning has no effect here."""
        return nullcontext()

    def init_xoroshiro128p_states(
        self, states: DeviceArray, seed: int, subsequence_start: int = 0, stream: object = 0
    ) -> None:
        """Fill an array with the states of random generators, each 2**64 steps after the previous one."""
        states.copy_to_device(random.states(states.size, int(seed), int(subsequence_start)))

    def create_xoroshiro128p_states(self, n: int, seed: int, subsequence_start: int = 0, stream: object = 0) -> DeviceArray:
        """Return the states of n random generators in device memory."""
        return device_array_from_host(random.states(int(n), int(seed), int(subsequence_start)), self._allocation())


def memory_order(array: HostOrDevice) -> MemoryOrder:
    """Return the order of an array in memory: "F" if its elements are stored column by column, otherwise "C"."""
    return "F" if array.flags["F_CONTIGUOUS"] and not array.flags["C_CONTIGUOUS"] else "C"


def event_elapsed_time(evtstart: SimtEvent, evtend: SimtEvent) -> float:
    """Return the milliseconds between two events."""
    return evtstart.elapsed_time(evtend)


def detect() -> bool:
    """Print the devices."""
    sys.stdout.write(f"Found 1 CUDA devices\nid 0    {DEVICE.name} [SUPPORTED]: compute capability 9.0, an interpreter\n")
    return True


def no_op(*_: object, **__: object) -> None:
    """Do nothing: synchronize, profile_start and close have no effect without a GPU."""


def stand_in_modules(handler: LaunchHandler) -> dict[str, ModuleType]:
    """Return the modules that replace `numba.cuda` and its submodules, by name."""
    import numba
    from numba.core import types

    host = HostFunctions(handler)
    host_functions = {name: getattr(host, name) for name in dir(host) if not name.startswith("_")}
    state_functions = {name: host_functions.pop(name) for name in list(host_functions) if "xoroshiro" in name}
    generator_functions = {
        name: value for name, value in vars(random).items() if name.startswith(("xoroshiro", "init", "uint64"))
    }
    number_types = {name: getattr(types, name) for name in types.__all__ if isinstance(getattr(types, name), types.Type)}
    error_classes = {"CudaAPIError": CudaError, "CudaSupportError": CudaError}
    driver = StandInModule(f"{MODULE_NAME}.cudadrv.driver", make_failing_lookup("cudadrv.driver"), **error_classes)
    error = StandInModule(f"{MODULE_NAME}.cudadrv.error", make_failing_lookup("cudadrv.error"), **error_classes)
    devicearray = StandInModule(
        f"{MODULE_NAME}.cudadrv.devicearray",
        make_failing_lookup("cudadrv.devicearray"),
        DeviceNDArray=DeviceArray,
        is_cuda_ndarray=host.is_cuda_array,
    )
    submodules = {
        "random": StandInModule(
            f"{MODULE_NAME}.random",
            make_failing_lookup("random"),
            xoroshiro128p_dtype=random.STATE_DTYPE,
            xoroshiro128p_type=numba.from_dtype(random.STATE_DTYPE),
            **{**generator_functions, **state_functions},
        ),
        "libdevice": StandInModule(f"{MODULE_NAME}.libdevice", make_failing_lookup("libdevice"), **LIBDEVICE),
        "types": types,
        "cudadrv": StandInModule(
            f"{MODULE_NAME}.cudadrv", make_failing_lookup("cudadrv"), driver=driver, error=error, devicearray=devicearray
        ),
    }

    def find(name: str) -> object:
        if name in UNSUPPORTED_NAMES:
            raise_unsupported(f"cuda.{name}", UNSUPPORTED_NAMES[name])
        return getattr(cuda_api.cuda, name) if hasattr(type(cuda_api.cuda), name) else raise_unsupported(f"cuda.{name}")

    cuda = StandInModule(
        MODULE_NAME,
        find,
        python_semantics=cuda_api.cuda,
        _targets=partial(cuda_target, handler),
        **number_types,
        **submodules,
        **host_functions,
        **stateless_functions(),
    )
    modules: dict[str, ModuleType] = {
        MODULE_NAME: cuda,
        **{module.__name__: module for module in (driver, error, devicearray)},
    }
    return modules | {f"{MODULE_NAME}.{name}": module for name, module in submodules.items()}


def make_failing_lookup(name: str) -> Callable[[str], NoReturn]:
    """Return a lookup function that raises UnknownWordError for every name of a submodule."""
    return lambda missing: raise_unsupported(f"numba.cuda.{name}.{missing}")


def stateless_functions() -> dict[str, object]:
    """Return the functions of `numba.cuda` that need no launch handler."""
    default = SimtStream("Default CUDA stream")
    no_op_names = ("synchronize", "profile_start", "profile_stop", "close", "cuda_error")
    return {
        **dict.fromkeys(no_op_names, no_op),
        **{"profiling": nullcontext, "defer_cleanup": nullcontext, "detect": detect},
        **{
            "In": In,
            "Out": Out,
            "InOut": InOut,
            "reduce": HostReduction,
            "Reduce": HostReduction,
            "CudaSupportError": CudaError,
        },
        **{"stream": SimtStream, "event": SimtEvent, "event_elapsed_time": event_elapsed_time},
        **dict.fromkeys(("default_stream", "legacy_default_stream", "per_thread_default_stream"), lambda: default),
        **{"get_current_device": lambda: DEVICE, "select_device": select_device, "gpus": SimtDeviceList([DEVICE])},
        **{"list_devices": lambda: SimtDeviceList([DEVICE]), "current_context": lambda devnum=None: DEVICE},
        **dict.fromkeys(("is_available", "is_supported_version"), lambda: True),
        "runtime": SimpleNamespace(get_version=lambda: (12, 8), is_supported_version=lambda: True),
    }


class ImportGuard(MetaPathFinder):
    """An import hook that refuses submodules of the real `numba.cuda`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Raise for a submodule of `numba.cuda`. Leave all other modules to other finders."""
        if fullname.startswith(f"{MODULE_NAME}."):
            raise_unsupported(f"import {fullname}")
        return None


@contextmanager
def substitute_modules(modules: dict[str, ModuleType], folder: Path) -> Iterator[None]:
    """Replace `numba.cuda` by `modules` for imports in a `with` block.

    One thread at a time does so, and no other thread compiles a CUDA kernel meanwhile: it would import the replacement, and
    a half-imported module of the real `numba.cuda` would be restored without its names. Afterwards `sys.modules` and
    `numba.cuda` are restored. Modules of the script's folder, and modules that imported the replacement, are removed, so
    that a later import loads them again.
    """
    with numba_cuda_lock:
        yield from _substitute_modules(modules, folder)


def _substitute_modules(modules: dict[str, ModuleType], folder: Path) -> Iterator[None]:
    """Replace modules, and restore them after the caller is resumed."""
    numba: Any = import_module("numba")
    previous_modules, guard = dict(sys.modules), ImportGuard()
    real_modules = {name: module for name, module in previous_modules.items() if is_cuda_module(name)}
    previous_cuda = numba.__dict__.get("cuda")
    for name in real_modules:
        del sys.modules[name]
    sys.modules.update(modules)
    numba.cuda = modules[MODULE_NAME]
    sys.meta_path.insert(0, guard)
    try:
        with getattr(modules[MODULE_NAME], "_targets", nullcontext)():
            yield
    finally:
        sys.meta_path.remove(guard)
        for name in [name for name in sys.modules if is_cuda_module(name)]:
            del sys.modules[name]
        sys.modules.update(real_modules)
        del numba.cuda
        if previous_cuda is not None:
            numba.cuda = previous_cuda
        for name in sys.modules.keys() - previous_modules.keys():
            if name.startswith("minifuse."):
                continue
            if is_module_in(sys.modules[name], folder) or any(
                value is modules[MODULE_NAME] for value in vars(sys.modules[name]).values()
            ):
                del sys.modules[name]


def is_cuda_module(name: str) -> bool:
    """Return whether a module is `numba.cuda` or one of its submodules."""
    return name == MODULE_NAME or name.startswith(f"{MODULE_NAME}.")


def is_module_in(module: ModuleType, folder: Path) -> bool:
    """Return whether a module is a file in this folder, and not in an environment below it."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder) and f"{os.sep}site-packages{os.sep}" not in file

"""The module that stands in for `numba.cuda` while a script runs, and the time during which it does.

Top of `simt.host`. What a kernel may say comes from `simt.words`, what the host may say from the files beside this one;
any other name raises UnknownWordError. Libraries that hold the true `numba.cuda` keep it.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ...core.errors import CudaError
from .. import cuda_api, random
from ..libdevice import LIBDEVICE
from .arrays import Allocation, DeviceArray, MappedArray, allocate, exported, from_host, poison, refuse_unknown, script_line
from .kernels import In, InOut, LaunchJudge, Out, jit
from .reduce import Reduce
from .streams import DEVICE, Devices, Event, Stream, select_device
from .vectorized import targets

NAME = "numba.cuda"
REFUSED = {
    "declare_device": "a function in another language has no Python to interpret; write it as cuda.jit(device=True)",
    "external_stream": "a stream of another library runs on a GPU; use cuda.stream()",
    "compile": "nothing is compiled here",
    "compile_ptx": "nothing is compiled here",
}


class Standin(ModuleType):
    """A module whose missing names are looked up by a function."""

    def __init__(self, name: str, find: Callable[[str], Any], **names: Any) -> None:
        super().__init__(name, f"What a script that minifuse checks sees as {name}.")
        self.__path__: list[str] = []  # a package, so that `import numba.cuda.random` looks below it
        self.__dict__.update(names)
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._find(name)


class Host:
    """The host side of `numba.cuda`: each public method is a function of that module."""

    def __init__(self, judge: LaunchJudge) -> None:
        import numba

        self._judge = judge
        self.jit = jit(judge)
        self.vectorize = partial(numba.vectorize, target="cuda")
        self.guvectorize = partial(numba.guvectorize, target="cuda")

    def _allocation(self) -> Allocation:
        return Allocation(self._judge, script_line())

    def to_device(self, obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
        """Copy a host array to the device; a device array is given back."""
        if to is not None:
            if copy:
                to.copy_to_device(obj)
            return to
        return obj if isinstance(obj, DeviceArray) else from_host(obj, self._allocation(), copy=copy)

    def as_cuda_array(self, obj: Any, sync: bool = True) -> DeviceArray:
        """Return a view of a device array, or of one that the object shows by `__cuda_array_interface__`."""
        if not hasattr(obj, "__cuda_array_interface__"):
            refuse_unknown(f"as_cuda_array({type(obj).__name__})", "only device arrays made here are known")
        return exported(obj)[...]  # type: ignore[no-any-return]

    def is_cuda_array(self, obj: Any) -> bool:
        """Whether it lies on the device."""
        return isinstance(obj, MappedArray) or hasattr(obj, "__cuda_array_interface__")

    def device_array(
        self, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
    ) -> DeviceArray:
        """Memory of the device with nothing in it."""
        return allocate(shape, dtype, strides, order, self._allocation())

    def device_array_like(self, ary: Any, stream: Any = 0) -> DeviceArray:
        """The same in the shape, type and order of another array."""
        return allocate(ary.shape, ary.dtype, None, order_of(ary), self._allocation())

    def pinned_array(self, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> Any:
        """A host array with nothing in it."""
        array = np.empty(shape, dtype, order)  # type: ignore[call-overload]
        array[...] = poison(array.dtype)
        return array

    def pinned_array_like(self, ary: Any) -> Any:
        """The same in the shape, type and order of another array."""
        return self.pinned_array(ary.shape, ary.dtype, order=order_of(ary))

    def mapped_array(
        self, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0, **flags: bool
    ) -> MappedArray:
        """A host array that kernels read and write in place."""
        return self.pinned_array(shape, dtype, order=order).view(MappedArray)  # type: ignore[no-any-return]

    managed_array = mapped_array

    def mapped_array_like(self, ary: Any, stream: Any = 0, **flags: bool) -> MappedArray:
        """The same in the shape, type and order of another array."""
        return self.mapped_array(ary.shape, ary.dtype, order=order_of(ary))

    @contextmanager
    def mapped(self, *arylist: Any, stream: Any = 0) -> Iterator[Any]:
        """Host arrays as device arrays over the same memory, in a `with`."""
        arrays = [DeviceArray(array, np.ones(array.shape, bool), self._allocation()) for array in arylist]
        yield arrays[0] if len(arrays) == 1 else arrays

    def pinned(self, *arylist: Any) -> Any:
        """Lock the pages of host arrays in a `with`: nothing moves here anyhow."""
        return nullcontext()

    def init_xoroshiro128p_states(self, states: DeviceArray, seed: int, subsequence_start: int = 0, stream: Any = 0) -> None:
        """Fill an array with the states of generators, each 2**64 steps after the one before."""
        states.copy_to_device(random.states(states.size, int(seed), int(subsequence_start)))

    def create_xoroshiro128p_states(self, n: int, seed: int, subsequence_start: int = 0, stream: Any = 0) -> DeviceArray:
        """The states of n generators on the device."""
        return from_host(random.states(int(n), int(seed), int(subsequence_start)), self._allocation())


def order_of(array: Any) -> str:
    """The order of the elements in memory: "F" where they lie column by column."""
    return "F" if array.flags["F_CONTIGUOUS"] and not array.flags["C_CONTIGUOUS"] else "C"


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds between two events."""
    return evtstart.elapsed_time(evtend)


def detect() -> bool:
    """Print what there is."""
    sys.stdout.write(f"Found 1 CUDA devices\nid 0    {DEVICE.name} [SUPPORTED]: compute capability 9.0, an interpreter\n")
    return True


def do_nothing(*_: Any, **__: Any) -> None:
    """What has no meaning without a GPU: synchronize, profile_start, close."""


def stand_in(judge: LaunchJudge) -> dict[str, ModuleType]:
    """The modules that stand in for `numba.cuda` and what lies below it, by their names."""
    import numba
    from numba.core import types

    host = Host(judge)
    own = {name: getattr(host, name) for name in dir(host) if not name.startswith("_")}
    states = {name: own.pop(name) for name in list(own) if "xoroshiro" in name}
    generators = {name: value for name, value in vars(random).items() if name.startswith(("xoroshiro", "init", "uint64"))}
    numbers = {name: getattr(types, name) for name in types.__all__ if isinstance(getattr(types, name), types.Type)}
    errors = {"CudaAPIError": CudaError, "CudaSupportError": CudaError}
    driver = Standin(f"{NAME}.cudadrv.driver", refuse_below("cudadrv.driver"), **errors)
    error = Standin(f"{NAME}.cudadrv.error", refuse_below("cudadrv.error"), **errors)
    devicearray = Standin(
        f"{NAME}.cudadrv.devicearray",
        refuse_below("cudadrv.devicearray"),
        DeviceNDArray=DeviceArray,
        is_cuda_ndarray=host.is_cuda_array,
    )
    below = {
        "random": Standin(
            f"{NAME}.random",
            refuse_below("random"),
            xoroshiro128p_dtype=random.STATE,
            xoroshiro128p_type=numba.from_dtype(random.STATE),
            **{**generators, **states},
        ),
        "libdevice": Standin(f"{NAME}.libdevice", refuse_below("libdevice"), **LIBDEVICE),
        "types": types,
        "cudadrv": Standin(f"{NAME}.cudadrv", refuse_below("cudadrv"), driver=driver, error=error, devicearray=devicearray),
    }

    def find(name: str) -> Any:
        if name in REFUSED:
            refuse_unknown(f"cuda.{name}", REFUSED[name])
        return getattr(cuda_api.cuda, name) if hasattr(type(cuda_api.cuda), name) else refuse_unknown(f"cuda.{name}")

    cuda = Standin(
        NAME, find, meaning=cuda_api.cuda, _targets=partial(targets, judge), **numbers, **below, **own, **constants()
    )
    found: dict[str, ModuleType] = {NAME: cuda, **{module.__name__: module for module in (driver, error, devicearray)}}
    return found | {f"{NAME}.{name}": module for name, module in below.items()}


def refuse_below(name: str) -> Callable[[str], Any]:
    """What answers for names that a module below `numba.cuda` does not have."""
    return lambda missing: refuse_unknown(f"numba.cuda.{name}.{missing}")


def constants() -> dict[str, Any]:
    """The functions of the module that need no judge."""
    default = Stream("Default CUDA stream")
    nothing = ("synchronize", "profile_start", "profile_stop", "close", "cuda_error")
    return {
        **dict.fromkeys(nothing, do_nothing),
        **{"profiling": nullcontext, "defer_cleanup": nullcontext, "detect": detect},
        **{"In": In, "Out": Out, "InOut": InOut, "reduce": Reduce, "Reduce": Reduce, "CudaSupportError": CudaError},
        **{"stream": Stream, "event": Event, "event_elapsed_time": event_elapsed_time},
        **dict.fromkeys(("default_stream", "legacy_default_stream", "per_thread_default_stream"), lambda: default),
        **{"get_current_device": lambda: DEVICE, "select_device": select_device, "gpus": Devices([DEVICE])},
        **{"list_devices": lambda: Devices([DEVICE]), "current_context": lambda devnum=None: DEVICE},
        **dict.fromkeys(("is_available", "is_supported_version"), lambda: True),
        "runtime": SimpleNamespace(get_version=lambda: (12, 8), is_supported_version=lambda: True),
    }


class Gate(MetaPathFinder):
    """Refuses to import a part of the true `numba.cuda` while the stand-in is there."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Say nothing of other modules."""
        if fullname.startswith(f"{NAME}."):
            refuse_unknown(f"import {fullname}")
        return None


@contextmanager
def substituted(modules: dict[str, ModuleType], folder: Path) -> Iterator[None]:
    """Let `numba.cuda` be `modules` for what is imported in a `with`.

    Afterwards `sys.modules` and `numba.cuda` are what they were. Modules of the script's own folder, and those that took the
    stand-in meanwhile, are forgotten, so that a later import reads them anew.
    """
    numba: Any = import_module("numba")
    before, gate = dict(sys.modules), Gate()
    hidden = {name: module for name, module in before.items() if is_cuda(name)}
    was = numba.__dict__.get("cuda")
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(modules)
    numba.cuda = modules[NAME]
    sys.meta_path.insert(0, gate)
    try:
        with getattr(modules[NAME], "_targets", nullcontext)():
            yield
    finally:
        sys.meta_path.remove(gate)
        for name in [name for name in sys.modules if is_cuda(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)
        del numba.cuda
        if was is not None:
            numba.cuda = was
        for name in sys.modules.keys() - before.keys():
            if name.startswith("minifuse."):
                continue
            if is_of(sys.modules[name], folder) or any(value is modules[NAME] for value in vars(sys.modules[name]).values()):
                del sys.modules[name]


def is_cuda(name: str) -> bool:
    """Whether a module is `numba.cuda` or lies below it."""
    return name == NAME or name.startswith(f"{NAME}.")


def is_of(module: ModuleType, folder: Path) -> bool:
    """Whether a module is a file in this folder and not in an environment below it."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).is_relative_to(folder) and f"{os.sep}site-packages{os.sep}" not in file

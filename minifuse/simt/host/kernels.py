"""`cuda.jit`: kernels of a script, and their launches.

A launch checks grid and block as the driver does, and copies NumPy arguments to the device and back as Numba does. A launch
handler runs the kernel. Nothing is compiled: compiler options are accepted and ignored, and requests for compiler output
(`inspect_asm`, registers) are refused.
"""

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from ...core.errors import CudaError, DTypeError, ShapeError, SimtError
from ..address_spaces import MAX_SHARED_BYTES, rebuild_tuple
from ..launch import wrong_argument_count
from ..random import STATE_DTYPE
from ..rebind import ReboundKernel, rebind_frozen
from .arrays import (
    DeviceAllocation,
    DeviceArray,
    Line,
    MappedArray,
    device_array_from_host,
    exported_array,
    exposes_memory,
    format_line,
    raise_unsupported,
    script_line,
)
from .signatures import Signature, convert_arguments, parse_signatures
from .streams import MAX_BLOCK_DIMS, MAX_GRID_DIMS, MAX_THREADS_PER_BLOCK

IGNORED_OPTIONS = {
    "inline",
    "forceinline",
    "debug",
    "opt",
    "lineinfo",
    "cache",
    "lto",
    "fastmath",
    "max_registers",
    "shared_memory_carveout",
}
UNSUPPORTED_OPTIONS = {
    "link": "the interpreter cannot run linked GPU code; write the function as cuda.jit(device=True)",
    "extensions": "the interpreter does not run extensions; convert the arguments before the launch",
    "boundscheck": "Numba does not have it for kernels either, and the interpreter checks every access; omit it",
}
# prefixes of the attributes of Numba's kernels that need a compiler
COMPILER_PREFIXES = ("inspect_", "get_", "overloads", "definition", "ptx", "max_cooperative")
FORALL_BLOCK_SIZE = 128  # threads per block if the script leaves the choice to the driver

Dims = tuple[int, int, int]
Decorator = Callable[[Callable[..., object]], "ScriptKernel"]


class ScriptLaunch(NamedTuple):
    """One launch of a kernel, with its arguments on the device."""

    kernel: "ScriptKernel"
    grid: Dims
    block: Dims
    arguments: tuple[object, ...]  # converted for the interpreter
    shared: int  # bytes of dynamic shared memory
    line: Line  # the line of the script that launches


class LaunchHandler(Protocol):
    """An object that runs launches and collects hazards."""

    def launch(self, launch: ScriptLaunch) -> None:
        """Run a launch."""

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Record a hazard that was found outside a kernel, at this line."""


class CopyHint:
    """`cuda.In(array)`, `cuda.Out(array)`, `cuda.InOut(array)`: the direction in which an argument is copied."""

    copies_in = copies_out = True

    def __init__(self, value: object) -> None:
        self.value = value


class In(CopyHint):
    """Copy only to the device."""

    copies_out = False


class Out(CopyHint):
    """Copy only from the device. The kernel starts with uninitialized memory."""

    copies_in = False


class InOut(CopyHint):
    """Copy in both directions, which is also the default without a hint."""


class ScriptKernel:
    """A function of `cuda.jit`: a kernel, or a device function that kernels call.

    Launch it with `kernel[grid, block](...)`, `kernel[grid, block, stream, shared](...)` or `kernel.forall(n)(...)`.
    """

    __name__: str  # the name of the function

    def __init__(
        self,
        function: Callable[..., object],
        handler: LaunchHandler,
        signatures: tuple[Signature, ...],
        options: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.handler, self.signatures, self.options = function, handler, signatures, options
        self.is_device = bool(options.get("device"))
        self._frozen: dict[object, ReboundKernel] = {}

    def frozen_for(self, arguments: tuple[object, ...]) -> ReboundKernel:
        """Return the kernel as it was rebound at its first launch with arguments of these types."""
        key = tuple(map(type_signature, arguments))
        if key not in self._frozen:
            self._frozen[key] = rebind_frozen(self.py_func)  # type: ignore[arg-type]  # a function of Python
        return self._frozen[key]

    def __repr__(self) -> str:
        return f"<{'device function' if self.is_device else 'kernel'} {self.__name__}>"

    def __getitem__(self, configuration: tuple[Any, ...]) -> "ConfiguredKernel":
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ShapeError(
                f"kernel[...]: got {configuration!r}; expected kernel[grid, block], kernel[grid, block, stream] or "
                "kernel[grid, block, stream, shared_bytes]"
            )
        return self.configure(*configuration)

    def configure(self, griddim: object, blockdim: object, stream: object = 0, sharedmem: int = 0) -> "ConfiguredKernel":
        """Return `kernel[grid, block, stream, shared]`."""
        if self.is_device:
            raise CudaError(f"{self!r} can only be called by kernels; to launch it, remove device=True from cuda.jit")
        return ConfiguredKernel(self, as_dim3(griddim, "grid"), as_dim3(blockdim, "block"), sharedmem)

    def forall(self, ntasks: int, tpb: int = 0, stream: object = 0, sharedmem: int = 0) -> Callable[..., None]:
        """Return a function that launches a thread for each of `ntasks` tasks, in blocks of `tpb` threads (default: 128)."""
        if ntasks < 0:
            raise ShapeError(f"forall: got {ntasks} tasks; expected 0 or more")
        threads = tpb or FORALL_BLOCK_SIZE
        if ntasks == 0:
            return lambda *arguments: None
        return self[math.ceil(ntasks / threads), threads, stream, sharedmem]

    def specialize(self, *arguments: object) -> "ScriptKernel":
        """Return the kernel itself: there is nothing to compile."""
        return self

    def __call__(self, *arguments: object) -> None:
        """Raise CudaError: a kernel needs a grid, and only kernels call device functions."""
        name = self.__name__
        if self.is_device:
            raise CudaError(f"{name}(...) at {format_line(script_line())}: only kernels can call a device function; "
                            f"on the host call {name}.py_func(...)")  # fmt: skip
        raise CudaError(
            f"{name}(...) at {format_line(script_line())}: a kernel needs a grid; write {name}[blocks, threads](...)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(COMPILER_PREFIXES):
            raise_unsupported(f"kernel.{name}", "the interpreter does not compile kernels, so there is nothing to inspect")
        raise AttributeError(f"a kernel has no attribute {name!r} in the interpreter")


def type_signature(argument: object) -> object:
    """Return a key for the type that Numba compiles for: for an array, its dtype, number of dims and memory order."""
    if isinstance(argument, tuple):
        return tuple(map(type_signature, argument))
    if isinstance(argument, DeviceArray | np.ndarray):
        return argument.dtype, argument.ndim, argument.flags["C_CONTIGUOUS"], argument.flags["F_CONTIGUOUS"]
    return type(argument)


class ConfiguredKernel:
    """A kernel with a grid and a block, ready to be called."""

    def __init__(self, kernel: ScriptKernel, grid: Dims, block: Dims, shared: int) -> None:
        self.kernel, self.grid, self.block, self.shared = kernel, grid, block, int(shared)

    def __call__(self, *arguments: object) -> None:
        """Launch the kernel, and return when all threads are done."""
        kernel, line = self.kernel, script_line()
        check_launch_limits(self.grid, self.block, self.shared, kernel.options.get("launch_bounds"))
        problem = wrong_argument_count(kernel.py_func, len(arguments))  # type: ignore[arg-type]  # a function of Python
        if problem:
            raise DTypeError(f"{problem}, at {format_line(line)}")
        bound = inspect.signature(kernel.py_func).bind(*arguments)
        bound.apply_defaults()
        parameters = inspect.signature(kernel.py_func).parameters
        values: tuple[object, ...] = bound.args
        if kernel.signatures:
            values = convert_arguments(values, kernel.signatures, kernel.py_func.__name__)
        names = [*parameters, *[f"argument {i}" for i in range(len(parameters), len(values))]]
        copies: list[tuple[np.ndarray, DeviceArray]] = []
        kernel_arguments = tuple(
            to_kernel_argument(value, name, kernel.handler, line, copies) for name, value in zip(names, values, strict=False)
        )
        kernel.handler.launch(ScriptLaunch(kernel, self.grid, self.block, kernel_arguments, self.shared, line))
        for host, device in copies:
            host[...] = device.data


def jit(handler: LaunchHandler) -> Callable[..., ScriptKernel | Decorator]:
    """Return the decorator `cuda.jit`. The handler runs the launches of its kernels."""

    def jit(
        func_or_sig: Any = None, device: bool = False, launch_bounds: object = None, **options: object
    ) -> ScriptKernel | Decorator:
        for name, value in options.items():
            if name in UNSUPPORTED_OPTIONS and value:
                raise_unsupported(f"cuda.jit({name}=...)", UNSUPPORTED_OPTIONS[name])
            if name not in IGNORED_OPTIONS | UNSUPPORTED_OPTIONS.keys():
                raise_unsupported(
                    f"cuda.jit({name}=...)", f"supported are device, launch_bounds, {', '.join(sorted(IGNORED_OPTIONS))}"
                )
        all_options = {**options, "device": device, "launch_bounds": launch_bounds}

        def decorate(function: Callable[..., object], signatures: tuple[Signature, ...] = ()) -> ScriptKernel:
            return ScriptKernel(getattr(function, "py_func", function), handler, signatures, all_options)

        if func_or_sig is None:
            return decorate
        if inspect.isfunction(func_or_sig) or hasattr(func_or_sig, "py_func"):
            return decorate(func_or_sig)
        signatures = parse_signatures(func_or_sig)
        return lambda function: decorate(function, signatures)

    return jit


def as_dim3(value: object, name: str) -> Dims:
    """Return a grid or block of one to three sizes as three sizes."""
    sizes = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ShapeError(f"{name}: got {value!r}; expected an integer, or a tuple of 1 to 3 integers")
    for size in sizes:
        if not isinstance(size, numbers.Integral):
            raise DTypeError(
                f"{name}: got {value!r}, which contains a {type(size).__name__}; expected integers: use // or math.ceil"
            )
    x, y, z = (int(size) for size in (*sizes, 1, 1)[:3])
    return x, y, z


def check_launch_limits(grid: Dims, block: Dims, shared: int, bounds: int | tuple[int, ...] | list[int] | None) -> None:
    """Raise the error of the driver for a launch that the device does not allow."""
    threads, max_threads = (
        math.prod(block),
        bounds[0] if isinstance(bounds, tuple | list) else bounds or MAX_THREADS_PER_BLOCK,
    )
    errors = [f"grid {grid} is empty"] if min(grid) < 1 else []
    errors += [f"block {block} is empty"] if min(block) < 1 else []
    errors += [f"block {block} has {threads} threads, more than {max_threads}"] if threads > max_threads else []
    errors += (
        [f"block {block} is larger than {MAX_BLOCK_DIMS} in one dim"] if any(map(int.__gt__, block, MAX_BLOCK_DIMS)) else []
    )
    errors += [f"grid {grid} is larger than {MAX_GRID_DIMS} in one dim"] if any(map(int.__gt__, grid, MAX_GRID_DIMS)) else []
    errors += [f"{shared} bytes of dynamic shared memory, more than {MAX_SHARED_BYTES}"] if shared > MAX_SHARED_BYTES else []
    if errors:
        raise CudaError(
            f"CUDA_ERROR_INVALID_VALUE: the launch at {format_line(script_line())} is invalid: {'; '.join(errors)}"
        )


def to_kernel_argument(
    value: object, name: str, handler: LaunchHandler, line: Line, copies: list[tuple[np.ndarray, DeviceArray]]
) -> object:
    """Convert an argument for the kernel. If it is a host array that must be copied back, add it to `copies`."""
    hint = value if isinstance(value, CopyHint) else InOut(value)
    value = hint.value
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, MappedArray):
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray):
        device = device_array_from_host(value, DeviceAllocation(handler, line, name), copy=hint.copies_in)
        if hint.copies_out and value.flags.writeable:
            copies.append((value, device))
        return rng_states_as_rows(device)
    if isinstance(value, DeviceArray):
        value.allocation.name = name
        return rng_states_as_rows(value)
    if isinstance(value, tuple):
        parts = [to_kernel_argument(part, name, handler, line, copies) for part in value]
        return rebuild_tuple(value, parts)
    if value is None or isinstance(value, numbers.Number | np.generic):
        return value
    if exposes_memory(value):
        return to_kernel_argument(exported_array(value), name, handler, line, copies)
    raise DTypeError(
        f"argument {name!r} of the launch at {format_line(line)}: got {type(value).__name__}, expected an array, a "
        "number or a tuple of them; convert it with np.array()"
    )


def rng_states_as_rows(array: DeviceArray) -> DeviceArray:
    """Return the states of random generators as rows of two integers, as `simt.random` expects them."""
    if array.dtype != STATE_DTYPE:
        return array
    data = array.data[..., None].view(np.uint64)  # (n,) -> (n, 2)
    written = np.lib.stride_tricks.as_strided(array.written, data.shape, (*array.written.strides, 0))
    return DeviceArray(data, written, array.allocation)

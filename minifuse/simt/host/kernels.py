"""`cuda.jit`: a kernel as a script holds it, and its launch.

Above `arrays` in `simt.host`. A launch checks grid and block as the driver does, brings NumPy arguments to the device and
back as Numba does, and hands the rest to a judge, who runs it. Nothing is compiled: options for the compiler are taken and
change nothing, and what only a compiler knows (`inspect_asm`, registers) is refused.
"""

import functools
import inspect
import math
import numbers
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core.errors import CudaError, DTypeError, ShapeError, SimtError
from ..random import STATE_DTYPE
from ..rebind import ReboundKernel, rebind_frozen
from .arrays import (
    DeviceAllocation,
    DeviceArray,
    Line,
    MappedArray,
    copy_from_host,
    exported_array,
    format_line,
    raise_unsupported,
    script_line,
)
from .signatures import Signature, convert_arguments, parse_signatures
from .streams import MAX_BLOCK_DIMS, MAX_GRID_DIMS, MAX_SHARED_BYTES, MAX_THREADS_PER_BLOCK

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
    "link": "linked code is compiled for a GPU, and this is an interpreter; write the function as cuda.jit(device=True)",
    "extensions": "an extension may turn arguments into anything; convert them before the launch",
    "boundscheck": "Numba does not have it for kernels either; minifuse checks every access anyhow",
}
COMPILER_PREFIXES = (
    "inspect_",
    "get_",
    "overloads",
    "definition",
    "ptx",
    "max_cooperative",
)  # how names begin that it answers
FORALL_BLOCK_SIZE = 128  # threads a block where a script leaves the choice to the driver

Dims = tuple[int, int, int]


class ScriptLaunch(NamedTuple):
    """One launch of a kernel, its arguments on the device."""

    kernel: "ScriptKernel"
    grid: Dims
    block: Dims
    arguments: tuple[Any, ...]  # as the interpreter takes them
    shared: int  # bytes of dynamic shared memory
    line: Line  # of the script


class LaunchHandler(Protocol):
    """Who runs launches and collects hazards."""

    def launch(self, launch: ScriptLaunch) -> None:
        """Run it."""

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Take note of a hazard that happened outside a kernel, at this line."""


class CopyHint:
    """`cuda.In(array)`, `cuda.Out(array)`, `cuda.InOut(array)`: which way an argument is copied."""

    copies_in = copies_out = True

    def __init__(self, value: Any) -> None:
        self.value = value


class In(CopyHint):
    """Copied to the device alone."""

    copies_out = False


class Out(CopyHint):
    """Copied from the device alone: the kernel finds memory that nobody filled."""

    copies_in = False


class InOut(CopyHint):
    """Copied both ways, as without a hint."""


class ScriptKernel:
    """A function for the device: a kernel, or one that kernels call.

    Launch it with `kernel[grid, block](...)`, `kernel[grid, block, stream, shared](...)` or `kernel.forall(n)(...)`.
    """

    def __init__(
        self, function: Callable[..., Any], judge: LaunchHandler, signatures: tuple[Signature, ...], options: dict[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.handler, self.signatures, self.options = function, judge, signatures, options
        self.is_device = bool(options.get("device"))
        self._frozen: dict[Any, ReboundKernel] = {}

    def frozen_for(self, arguments: tuple[Any, ...]) -> ReboundKernel:
        """Return the kernel with the globals that it had when it was first launched with arguments of these types."""
        key = tuple(map(type_signature, arguments))
        if key not in self._frozen:
            self._frozen[key] = rebind_frozen(self.py_func)  # type: ignore[arg-type]
        return self._frozen[key]

    def __repr__(self) -> str:
        return f"<{'device function' if self.is_device else 'kernel'} {self.__name__}>"

    def __getitem__(self, configuration: Any) -> "ConfiguredKernel":
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ShapeError(f"kernel[...]: got {configuration!r}; expected kernel[grid, block], then a stream, then bytes")
        return self.configure(*configuration)

    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> "ConfiguredKernel":
        """The same as `kernel[grid, block, stream, shared]`."""
        if self.is_device:
            raise CudaError(f"{self!r} is called by kernels; to launch it, take device=True out of cuda.jit")
        return ConfiguredKernel(self, as_dim3(griddim, "grid"), as_dim3(blockdim, "block"), sharedmem)

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        """One thread for each of `ntasks` tasks, in blocks of `tpb` threads, or of 128."""
        if ntasks < 0:
            raise ShapeError(f"forall: got {ntasks} tasks; expected 0 or more")
        threads = tpb or FORALL_BLOCK_SIZE
        if ntasks == 0:
            return lambda *arguments: None
        return self[math.ceil(ntasks / threads), threads, stream, sharedmem]

    def specialize(self, *arguments: Any) -> "ScriptKernel":
        """Compile for these arguments: there is nothing to compile."""
        return self

    def __call__(self, *arguments: Any) -> None:
        """Refuse: a kernel needs a grid, and a device function a kernel."""
        name = self.__name__
        if self.is_device:
            raise CudaError(f"{name}(...) at {format_line(script_line())}: a device function runs when a kernel calls it; "
                            f"on the host call {name}.py_func(...)")  # fmt: skip
        raise CudaError(
            f"{name}(...) at {format_line(script_line())}: a kernel needs a grid; write {name}[blocks, threads](...)"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith(COMPILER_PREFIXES):
            raise_unsupported(f"kernel.{name}", "kernels are not compiled here, so there is nothing to inspect")
        raise AttributeError(f"a kernel here has no attribute {name!r}")


def type_signature(argument: Any) -> Any:
    """Return the type for which Numba would compile: of an array its elements, dims and order."""
    if isinstance(argument, tuple):
        return tuple(map(type_signature, argument))
    if isinstance(argument, DeviceArray | np.ndarray):
        return argument.dtype, argument.ndim, argument.flags["C_CONTIGUOUS"], argument.flags["F_CONTIGUOUS"]
    return type(argument)


class ConfiguredKernel:
    """A kernel with its grid, ready to be called."""

    def __init__(self, kernel: ScriptKernel, grid: Dims, block: Dims, shared: int) -> None:
        self.kernel, self.grid, self.block, self.shared = kernel, grid, block, int(shared)

    def __call__(self, *arguments: Any) -> None:
        """Launch it: returns when all threads are done."""
        kernel, line = self.kernel, script_line()
        check_launch_limits(self.grid, self.block, self.shared, kernel.options.get("launch_bounds"))
        bound = inspect.signature(kernel.py_func).bind(*arguments)
        bound.apply_defaults()
        parameters = inspect.signature(kernel.py_func).parameters
        values: tuple[Any, ...] = bound.args
        if kernel.signatures:
            values = convert_arguments(values, kernel.signatures, kernel.py_func.__name__)
        names = [*parameters, *[f"argument {i}" for i in range(len(parameters), len(values))]]
        copies: list[tuple[Any, DeviceArray]] = []
        passed = tuple(
            to_kernel_argument(value, name, kernel.handler, line, copies) for name, value in zip(names, values, strict=False)
        )
        kernel.handler.launch(ScriptLaunch(kernel, self.grid, self.block, passed, self.shared, line))
        for host, device in copies:
            host[...] = device.data


def jit(judge: LaunchHandler) -> Callable[..., Any]:
    """The decorator `cuda.jit` whose kernels are run by this judge."""

    def jit(func_or_sig: Any = None, device: bool = False, launch_bounds: Any = None, **options: Any) -> Any:
        for name, value in options.items():
            if name in UNSUPPORTED_OPTIONS and value:
                raise_unsupported(f"cuda.jit({name}=...)", UNSUPPORTED_OPTIONS[name])
            if name not in IGNORED_OPTIONS | UNSUPPORTED_OPTIONS.keys():
                raise_unsupported(
                    f"cuda.jit({name}=...)", f"options are device, launch_bounds, {', '.join(sorted(IGNORED_OPTIONS))}"
                )
        known = {**options, "device": device, "launch_bounds": launch_bounds}

        def decorate(function: Any, signatures: tuple[Signature, ...] = ()) -> ScriptKernel:
            return ScriptKernel(getattr(function, "py_func", function), judge, signatures, known)

        if func_or_sig is None:
            return decorate
        if inspect.isfunction(func_or_sig) or hasattr(func_or_sig, "py_func"):
            return decorate(func_or_sig)
        signatures = parse_signatures(func_or_sig)
        return lambda function: decorate(function, signatures)

    return jit


def as_dim3(value: Any, what: str) -> Dims:
    """A grid or block of one to three dims, as three."""
    sizes = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ShapeError(f"{what}: got {value!r}; expected an integer or 1 to 3 of them")
    for size in sizes:
        if not isinstance(size, numbers.Integral):
            raise DTypeError(
                f"{what}: got {value!r}, with a {type(size).__name__} in it; expected integers: use // or math.ceil to count"
            )
    x, y, z = (int(size) for size in (*sizes, 1, 1)[:3])
    return x, y, z


def check_launch_limits(grid: Dims, block: Dims, shared: int, bounds: Any) -> None:
    """Raise what the driver reports for a launch that no device can do."""
    threads, most = math.prod(block), bounds[0] if isinstance(bounds, tuple | list) else bounds or MAX_THREADS_PER_BLOCK
    faults = [f"grid {grid} is empty"] if min(grid) < 1 else []
    faults += [f"block {block} is empty"] if min(block) < 1 else []
    faults += [f"block {block} has {threads} threads, more than {most}"] if threads > most else []
    faults += (
        [f"block {block} is larger than {MAX_BLOCK_DIMS} in one dim"] if any(map(int.__gt__, block, MAX_BLOCK_DIMS)) else []
    )
    faults += [f"grid {grid} is larger than {MAX_GRID_DIMS} in one dim"] if any(map(int.__gt__, grid, MAX_GRID_DIMS)) else []
    faults += [f"{shared} bytes of dynamic shared memory, more than {MAX_SHARED_BYTES}"] if shared > MAX_SHARED_BYTES else []
    if faults:
        raise CudaError(
            f"CUDA_ERROR_INVALID_VALUE: the launch at {format_line(script_line())} cannot be done: {'; '.join(faults)}"
        )


def to_kernel_argument(
    value: Any, name: str, judge: LaunchHandler, line: Line, copies: list[tuple[Any, DeviceArray]]
) -> Any:
    """An argument as the interpreter takes it; host arrays that are to be copied back are added to `copies`."""
    hint = value if isinstance(value, CopyHint) else InOut(value)
    value = hint.value
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, MappedArray):
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray):
        device = copy_from_host(value, DeviceAllocation(judge, line, name), copy=hint.copies_in)
        if hint.copies_out and value.flags.writeable:
            copies.append((value, device))
        return rng_states_as_rows(device)
    if isinstance(value, DeviceArray):
        value.allocation.name = name
        return rng_states_as_rows(value)
    if isinstance(value, tuple):
        parts = [to_kernel_argument(part, name, judge, line, copies) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or isinstance(value, numbers.Number | np.generic):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return to_kernel_argument(exported_array(value), name, judge, line, copies)
    raise DTypeError(
        f"argument {name!r} of the launch at {format_line(line)}: a kernel takes arrays, numbers and tuples of them, got "
        f"{type(value).__name__}; make an array of it with np.array()"
    )


def rng_states_as_rows(array: DeviceArray) -> DeviceArray:
    """States of random generators as rows of two integers, which is how the words in `simt.random` take them."""
    if array.dtype != STATE_DTYPE:
        return array
    data = array.data[..., None].view(np.uint64)  # (n,) -> (n, 2)
    written = np.lib.stride_tricks.as_strided(array.written, data.shape, (*array.written.strides, 0))
    return DeviceArray(data, written, array.allocation)

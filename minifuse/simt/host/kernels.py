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
from ..random import STATE
from ..rebind import Adopted, freeze
from .arrays import Allocation, DeviceArray, Line, MappedArray, exported, from_host, place, refuse_unknown, script_line
from .signatures import Signature, convert, parse
from .streams import MAX_BLOCK, MAX_GRID, MAX_SHARED, MAX_THREADS

IGNORED = {
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
REFUSED = {
    "link": "linked code is compiled for a GPU, and this is an interpreter; write the function as cuda.jit(device=True)",
    "extensions": "an extension may turn arguments into anything; convert them before the launch",
    "boundscheck": "Numba does not have it for kernels either; minifuse checks every access anyhow",
}
OF_COMPILER = ("inspect_", "get_", "overloads", "definition", "ptx", "max_cooperative")  # how names begin that it answers
THREADS_FORALL = 128  # threads a block where a script leaves the choice to the driver

Dims = tuple[int, int, int]


class Launch(NamedTuple):
    """One launch of a kernel, its arguments on the device."""

    kernel: "Kernel"
    grid: Dims
    block: Dims
    arguments: tuple[Any, ...]  # as the interpreter takes them
    shared: int  # bytes of dynamic shared memory
    line: Line  # of the script


class LaunchJudge(Protocol):
    """Who runs launches and collects hazards."""

    def launch(self, launch: Launch) -> None:
        """Run it."""

    def note(self, error: SimtError, line: Line) -> None:
        """Take note of a hazard that happened outside a kernel, at this line."""


class Hint:
    """`cuda.In(array)`, `cuda.Out(array)`, `cuda.InOut(array)`: which way an argument is copied."""

    copies_in = copies_out = True

    def __init__(self, value: Any) -> None:
        self.value = value


class In(Hint):
    """Copied to the device alone."""

    copies_out = False


class Out(Hint):
    """Copied from the device alone: the kernel finds memory that nobody filled."""

    copies_in = False


class InOut(Hint):
    """Copied both ways, as without a hint."""


class Kernel:
    """A function for the device: a kernel, or one that kernels call.

    Launch it with `kernel[grid, block](...)`, `kernel[grid, block, stream, shared](...)` or `kernel.forall(n)(...)`.
    """

    def __init__(
        self, function: Callable[..., Any], judge: LaunchJudge, signatures: tuple[Signature, ...], options: dict[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.judge, self.signatures, self.options = function, judge, signatures, options
        self.is_device = bool(options.get("device"))
        self._adopted: dict[Any, Adopted] = {}

    def adopted(self, arguments: tuple[Any, ...]) -> Adopted:
        """Return the kernel with the globals that it had when it was first launched with arguments of these types."""
        key = tuple(map(kind_of, arguments))
        if key not in self._adopted:
            self._adopted[key] = freeze(self.py_func)  # type: ignore[arg-type]
        return self._adopted[key]

    def __repr__(self) -> str:
        return f"<{'device function' if self.is_device else 'kernel'} {self.__name__}>"

    def __getitem__(self, configuration: Any) -> "Configured":
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ShapeError(f"kernel[...]: got {configuration!r}; expected kernel[grid, block], then a stream, then bytes")
        return self.configure(*configuration)

    def configure(self, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> "Configured":
        """The same as `kernel[grid, block, stream, shared]`."""
        if self.is_device:
            raise CudaError(f"{self!r} is called by kernels; to launch it, take device=True out of cuda.jit")
        return Configured(self, dims(griddim, "grid"), dims(blockdim, "block"), sharedmem)

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Callable[..., None]:
        """One thread for each of `ntasks` tasks, in blocks of `tpb` threads, or of 128."""
        if ntasks < 0:
            raise ShapeError(f"forall: got {ntasks} tasks; expected 0 or more")
        threads = tpb or THREADS_FORALL
        if ntasks == 0:
            return lambda *arguments: None
        return self[math.ceil(ntasks / threads), threads, stream, sharedmem]

    def specialize(self, *arguments: Any) -> "Kernel":
        """Compile for these arguments: there is nothing to compile."""
        return self

    def __call__(self, *arguments: Any) -> None:
        """Refuse: a kernel needs a grid, and a device function a kernel."""
        name = self.__name__
        if self.is_device:
            raise CudaError(f"{name}(...) at {place(script_line())}: a device function runs when a kernel calls it; "
                            f"on the host call {name}.py_func(...)")  # fmt: skip
        raise CudaError(f"{name}(...) at {place(script_line())}: a kernel needs a grid; write {name}[blocks, threads](...)")

    def __getattr__(self, name: str) -> Any:
        if name.startswith(OF_COMPILER):
            refuse_unknown(f"kernel.{name}", "kernels are not compiled here, so there is nothing to inspect")
        raise AttributeError(f"a kernel here has no attribute {name!r}")


def kind_of(argument: Any) -> Any:
    """Return the type for which Numba would compile: of an array its elements, dims and order."""
    if isinstance(argument, tuple):
        return tuple(map(kind_of, argument))
    if isinstance(argument, DeviceArray | np.ndarray):
        return argument.dtype, argument.ndim, argument.flags["C_CONTIGUOUS"], argument.flags["F_CONTIGUOUS"]
    return type(argument)


class Configured:
    """A kernel with its grid, ready to be called."""

    def __init__(self, kernel: Kernel, grid: Dims, block: Dims, shared: int) -> None:
        self.kernel, self.grid, self.block, self.shared = kernel, grid, block, int(shared)

    def __call__(self, *arguments: Any) -> None:
        """Launch it: returns when all threads are done."""
        kernel, line = self.kernel, script_line()
        must_fit_device(self.grid, self.block, self.shared, kernel.options.get("launch_bounds"))
        bound = inspect.signature(kernel.py_func).bind(*arguments)
        bound.apply_defaults()
        parameters = inspect.signature(kernel.py_func).parameters
        values: tuple[Any, ...] = bound.args
        if kernel.signatures:
            values = convert(values, kernel.signatures, kernel.py_func.__name__)
        names = [*parameters, *[f"argument {i}" for i in range(len(parameters), len(values))]]
        copies: list[tuple[Any, DeviceArray]] = []
        passed = tuple(
            on_device(value, name, kernel.judge, line, copies) for name, value in zip(names, values, strict=False)
        )
        kernel.judge.launch(Launch(kernel, self.grid, self.block, passed, self.shared, line))
        for host, device in copies:
            host[...] = device.data


def jit(judge: LaunchJudge) -> Callable[..., Any]:
    """The decorator `cuda.jit` whose kernels are run by this judge."""

    def jit(func_or_sig: Any = None, device: bool = False, launch_bounds: Any = None, **options: Any) -> Any:
        for name, value in options.items():
            if name in REFUSED and value:
                refuse_unknown(f"cuda.jit({name}=...)", REFUSED[name])
            if name not in IGNORED | REFUSED.keys():
                refuse_unknown(f"cuda.jit({name}=...)", f"options are device, launch_bounds, {', '.join(sorted(IGNORED))}")
        known = {**options, "device": device, "launch_bounds": launch_bounds}

        def decorate(function: Any, signatures: tuple[Signature, ...] = ()) -> Kernel:
            return Kernel(getattr(function, "py_func", function), judge, signatures, known)

        if func_or_sig is None:
            return decorate
        if inspect.isfunction(func_or_sig) or hasattr(func_or_sig, "py_func"):
            return decorate(func_or_sig)
        signatures = parse(func_or_sig)
        return lambda function: decorate(function, signatures)

    return jit


def dims(value: Any, what: str) -> Dims:
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


def must_fit_device(grid: Dims, block: Dims, shared: int, bounds: Any) -> None:
    """Raise what the driver reports for a launch that no device can do."""
    threads, most = math.prod(block), bounds[0] if isinstance(bounds, tuple | list) else bounds or MAX_THREADS
    faults = [f"grid {grid} is empty"] if min(grid) < 1 else []
    faults += [f"block {block} is empty"] if min(block) < 1 else []
    faults += [f"block {block} has {threads} threads, more than {most}"] if threads > most else []
    faults += [f"block {block} is larger than {MAX_BLOCK} in one dim"] if any(map(int.__gt__, block, MAX_BLOCK)) else []
    faults += [f"grid {grid} is larger than {MAX_GRID} in one dim"] if any(map(int.__gt__, grid, MAX_GRID)) else []
    faults += [f"{shared} bytes of dynamic shared memory, more than {MAX_SHARED}"] if shared > MAX_SHARED else []
    if faults:
        raise CudaError(
            f"CUDA_ERROR_INVALID_VALUE: the launch at {place(script_line())} cannot be done: {'; '.join(faults)}"
        )


def on_device(value: Any, name: str, judge: LaunchJudge, line: Line, copies: list[tuple[Any, DeviceArray]]) -> Any:
    """An argument as the interpreter takes it; host arrays that are to be copied back are added to `copies`."""
    hint = value if isinstance(value, Hint) else InOut(value)
    value = hint.value
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, MappedArray):
        return value.view(np.ndarray)
    if isinstance(value, np.ndarray):
        device = from_host(value, Allocation(judge, line, name), copy=hint.copies_in)
        if hint.copies_out and value.flags.writeable:
            copies.append((value, device))
        return states_as_rows(device)
    if isinstance(value, DeviceArray):
        value.allocation.name = name
        return states_as_rows(value)
    if isinstance(value, tuple):
        parts = [on_device(part, name, judge, line, copies) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if value is None or isinstance(value, numbers.Number | np.generic):
        return value
    if hasattr(value, "__cuda_array_interface__"):
        return on_device(exported(value), name, judge, line, copies)
    raise DTypeError(
        f"argument {name!r} of the launch at {place(line)}: a kernel takes arrays, numbers and tuples of them, got "
        f"{type(value).__name__}; make an array of it with np.array()"
    )


def states_as_rows(array: DeviceArray) -> DeviceArray:
    """States of random generators as rows of two integers, which is how the words in `simt.random` take them."""
    if array.dtype != STATE:
        return array
    data = array.data[..., None].view(np.uint64)  # (n,) -> (n, 2)
    written = np.lib.stride_tricks.as_strided(array.written, data.shape, (*array.written.strides, 0))
    return DeviceArray(data, written, array.allocation)

"""`numba.vectorize` and `numba.guvectorize` with `target="cuda"`: functions of elements, launched over whole arrays.

A call broadcasts its arguments, converts them to a signature, and launches a kernel with one thread for each element. For a
generalized function, that is one thread for each call over the core dims. The result is on the device if an argument is.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import DTypeError, ShapeError
from ..cuda_api import cuda, word
from ..memory import KernelArray
from .arrays import DeviceAllocation, DeviceArray, HostOrDevice, allocate, device_array_from_host, format_line, script_line
from .kernels import FORALL_BLOCK_SIZE, LaunchHandler, ScriptKernel
from .reduce import HostReduction

DIMS_PATTERN = re.compile(r"\(([^()]*)\)")


class UfuncSignature(NamedTuple):
    """One signature: the dtypes of inputs and outputs, and which of them the function takes as arrays."""

    dtypes: tuple[np.dtype, ...]
    are_arrays: tuple[bool, ...]


class CudaUfunc:
    """A function of elements applied to arrays: the result of `vectorize`, or of `guvectorize` with a layout."""

    __name__: str

    def __init__(
        self, handler: LaunchHandler, function: Callable[..., object], layout: str | None = None, **_: object
    ) -> None:
        functools.update_wrapper(self, function)
        self.handler, self.py_func, self.types = handler, getattr(function, "py_func", function), list[UfuncSignature]()
        self.layout = parse_layout(layout) if layout else None
        self._kernel: ScriptKernel | None = None

    def add(self, signature: object) -> None:
        """Add a signature. For a plain function it includes the return type."""
        from numba.core import sigutils, types
        from numba.np.numpy_support import as_dtype

        arguments, return_type = sigutils.normalize_signature(signature)
        kinds = list(arguments) if self.layout else [*arguments, return_type]
        are_arrays = tuple(isinstance(kind, types.Array) for kind in kinds)
        self.types.append(UfuncSignature(tuple(as_dtype(getattr(kind, "dtype", kind)) for kind in kinds), are_arrays))

    def disable_compile(self) -> None:
        """Accept no more signatures. There is nothing to compile."""

    def build_ufunc(self) -> "CudaUfunc":
        """Return the function over arrays."""
        if not self.types:
            raise DTypeError(
                f"{self.__name__}: target='cuda' needs signatures; "
                "write @vectorize(['float32(float32, float32)'], target='cuda')"
            )
        return self

    def __call__(
        self, *arguments: ArrayLike | DeviceArray, out: HostOrDevice | None = None, stream: object = 0
    ) -> HostOrDevice | np.generic:
        """Compute the function for all elements."""
        line = script_line()
        inputs, outputs = self._core_dims()
        operands: list[Any] = [argument if hasattr(argument, "dtype") else np.asarray(argument) for argument in arguments]
        if len(operands) == len(inputs) + 1 and out is None:
            out = operands.pop()
        if len(operands) != len(inputs):
            raise ShapeError(f"{self.__name__} at {format_line(line)} takes {len(inputs)} arrays, got {len(arguments)}")
        signature = self._select_signature(operands, arguments)
        sizes = sizes_by_dim(inputs, operands, self.__name__)
        loop_shape = np.broadcast_shapes(*(x.shape[: x.ndim - len(dims)] for x, dims in zip(operands, inputs, strict=True)))
        allocation = DeviceAllocation(self.handler, line, self.__name__)
        kernel_arguments = []
        for x, dims, dtype, is_array in zip(operands, inputs, *(part[: len(inputs)] for part in signature), strict=True):
            core_shape = tuple(sizes[dim] for dim in dims)
            kernel_arguments.append(
                as_rows(x, loop_shape, core_shape, dtype, allocation, core_shape or ((1,) if is_array else ()))
            )
        core_shape = tuple(sizes[dim] for dim in outputs)
        result = allocate((*loop_shape, *core_shape), signature.dtypes[-1], None, "C", allocation)
        item_shape = core_shape or ((1,) if self.layout else ())
        kernel_arguments.append(result.reshape((prod(loop_shape), *item_shape)))
        if prod(loop_shape):
            self._get_kernel()[ceil(prod(loop_shape) / FORALL_BLOCK_SIZE), FORALL_BLOCK_SIZE](*kernel_arguments)
        return self._store_result(result, out, any(isinstance(x, DeviceArray) for x in operands))

    def reduce(self, array: HostOrDevice, axis: int = 0, stream: object = 0) -> np.generic | None:
        """Reduce an array of one dim with the function."""
        first = array[:1].copy_to_host() if isinstance(array, DeviceArray) else np.asarray(array)[:1]
        return HostReduction(self.py_func)(array[1:], init=first[0])

    def _core_dims(self) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
        """Return the names of the core dims (those that one call of the function gets) of each input and of the output."""
        if self.layout is not None:
            return self.layout
        return [()] * (len(self.types[0].dtypes) - 1), ()

    def _select_signature(self, operands: Sequence[HostOrDevice], arguments: Sequence[object]) -> UfuncSignature:
        """Return the first signature to which all arguments convert without loss. A Python number converts to any float."""
        for types in self.types:
            pairs = zip(operands, arguments, types.dtypes, strict=False)
            if all(np.can_cast(x.dtype, dtype) or is_convertible_number(argument, dtype) for x, argument, dtype in pairs):
                return types
        signatures = ", ".join(str(tuple(map(str, types.dtypes))) for types in self.types)
        raise DTypeError(
            f"{self.__name__}: no signature takes {', '.join(str(x.dtype) for x in operands)}; signatures are {signatures}: "
            "add a signature, or convert the arrays with astype()"
        )

    def _get_kernel(self) -> ScriptKernel:
        if self._kernel is None:
            kernel = generalized_kernel(self.py_func) if self.layout else elementwise_kernel(self.py_func)
            kernel.__name__ = self.__name__
            self._kernel = ScriptKernel(kernel, self.handler, (), {})
        return self._kernel

    def _store_result(self, result: DeviceArray, out: HostOrDevice | None, is_on_device: bool) -> HostOrDevice | np.generic:
        if out is not None:
            out[...] = result if isinstance(out, DeviceArray) else result.data
            return out
        if is_on_device:
            return result
        return result.data.copy() if result.ndim else result.data[()]


@word
def elements_at(i: int, arrays: tuple[KernelArray, ...]) -> tuple[Any, ...]:
    """Return the element of each array at an index. Kernels cannot build a tuple of any length themselves."""
    return tuple(array[i] for array in arrays)


def elementwise_kernel(function: Callable[..., object]) -> Callable[..., None]:
    """Return the kernel that computes one element per thread."""

    def kernel(*arrays: KernelArray) -> None:
        i, out = cuda.grid(1), arrays[-1]
        if i < out.size:
            out[i] = function(*elements_at(i, arrays[:-1]))

    return kernel


def generalized_kernel(function: Callable[..., object]) -> Callable[..., None]:
    """Return the kernel that calls a generalized function once per thread."""

    def kernel(*arrays: KernelArray) -> None:
        i = cuda.grid(1)
        if i < arrays[-1].shape[0]:
            function(*elements_at(i, arrays))

    return kernel


def as_rows(
    x: HostOrDevice,
    loop_shape: tuple[int, ...],
    core_shape: tuple[int, ...],
    dtype: np.dtype,
    allocation: DeviceAllocation,
    item_shape: tuple[int, ...],
) -> DeviceArray:
    """Return an input as a device array with one row for each index of the loop dims."""

    def reshape_to_rows(array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, (*loop_shape, *core_shape)).reshape((prod(loop_shape), *item_shape))

    if isinstance(x, DeviceArray):
        return DeviceArray(reshape_to_rows(x.data).astype(dtype), reshape_to_rows(x.written).copy(), allocation)
    return device_array_from_host(np.ascontiguousarray(reshape_to_rows(x), dtype), allocation)


def parse_layout(layout: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Parse the dims of the inputs and of the output in `(m,n),(n,p)->(m,p)`."""
    inputs_text, arrow, outputs_text = layout.partition("->")
    inputs, outputs = (
        [tuple(map(str.strip, dims.split(","))) if dims.strip() else () for dims in DIMS_PATTERN.findall(part)]
        for part in (inputs_text, outputs_text)
    )
    if not arrow or len(outputs) != 1:
        raise ShapeError(f"guvectorize: got the layout {layout!r}; expected one output, as in '(m,n),(n,p)->(m,p)'")
    return inputs, outputs[0]


def sizes_by_dim(inputs: Sequence[tuple[str, ...]], operands: Sequence[HostOrDevice], name: str) -> dict[str, int]:
    """Return the size of each named dim."""
    sizes: dict[str, int] = {}
    for x, dims in zip(operands, inputs, strict=True):
        if x.ndim < len(dims):
            raise ShapeError(f"{name}: got an array of shape {x.shape}; expected at least the dims ({', '.join(dims)})")
        for dim, size in zip(dims, x.shape[x.ndim - len(dims) :], strict=True):
            if sizes.setdefault(dim, size) != size:
                raise ShapeError(f"{name}: the dim {dim} has size {sizes[dim]} in one array and {size} in another")
    return sizes


def is_convertible_number(argument: object, dtype: np.dtype) -> bool:
    """Return whether an argument is a Python number that a dtype accepts."""
    return type(argument) in (bool, int) or (type(argument) is float and dtype.kind in "fc")


@contextmanager
def cuda_target(handler: LaunchHandler) -> Iterator[None]:
    """Register `target="cuda"` of Numba's decorators in a `with` block."""
    from numba.np.ufunc.decorators import GUVectorize, Vectorize

    registries, previous_targets = (Vectorize.target_registry, GUVectorize.target_registry), []
    for registry in registries:
        previous_targets.append((registry.pop("cuda", None), registry.ondemand.pop("cuda", None)))
        registry["cuda"] = functools.partial(CudaUfunc, handler)
    try:
        yield
    finally:
        for registry, (target, factory) in zip(registries, previous_targets, strict=True):
            registry.pop("cuda", None)
            if target is not None:
                registry["cuda"] = target
            if factory is not None:
                registry.ondemand["cuda"] = factory

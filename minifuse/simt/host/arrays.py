"""Device memory of a script: arrays that kernels take, views of them, and copies to and from the host.

A device array is a NumPy array, with a second array of booleans that record which elements were ever written. So reads of
uninitialized memory are found. Nothing is copied to a GPU, and every operation is complete when it returns: `stream`
arguments are accepted and ignored. Launches are in `kernels.py`.
"""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Protocol, SupportsIndex, TypeGuard
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...core.errors import DTypeError, ShapeError, SimtError, UninitializedReadError, UnknownWordError, ViewError
from ..address_spaces import ShapeLike
from ..bytecode_locations import Line as Line
from ..memory import ArrayIndex

INTERNAL_FOLDERS = (Path(__file__).parents[2], Path(np.__file__).parent)
# files that do not belong to the script have names with these prefixes
INTERNAL_PREFIXES = ("<frozen importlib", *(f"{folder}{os.sep}" for folder in INTERNAL_FOLDERS))
POISON_BYTE = 0xFF  # fills uninitialized memory: NaN as a float, -1 as an integer


MemoryOrder = Literal["C", "F"]


class CudaArray(Protocol):
    """An object that exposes device memory."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class HazardReporter(Protocol):
    """An object that collects the hazards that the host functions find."""

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Record a hazard that was found outside a kernel, at this line."""


def script_line() -> Line:
    """Return the innermost line being executed that belongs neither to minifuse nor to NumPy."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(INTERNAL_PREFIXES):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def format_line(line: Line) -> str:
    """Format a line for messages: matmul.py:41."""
    return f"{Path(line[0]).name}:{line[1]}"


def raise_unsupported(name: str, reason: str = "") -> NoReturn:
    """Raise UnknownWordError for a name of numba.cuda that the interpreter does not support."""
    line = script_line()
    reason = (
        reason or "the interpreter has arrays, streams, events and launches; remove the call to check the rest of the script"
    )
    raise UnknownWordError(f"{name} at {format_line(line)}: not supported by the interpreter; {reason}", lines=(line,))


@dataclass
class DeviceAllocation:
    """A piece of device memory, shared by an array and its views."""

    handler: HazardReporter
    line: Line  # the line of the script that allocated it
    name: str = ""  # the kernel parameter that it was last passed to


class DeviceArray:
    """An array in device memory.

    Attributes
    ----------
    data : numpy.ndarray
        The elements, shared by views.
    written : numpy.ndarray of bool
        Whether each element was ever written. It has the shape of `data`, and views share it.
    """

    is_device_array: ClassVar[bool] = True
    __array_priority__ = -1.0

    def __init__(
        self, data: np.ndarray, written: NDArray[np.bool_], allocation: DeviceAllocation, stream: object = 0
    ) -> None:
        self.data, self.written, self.allocation, self.stream = data, written, allocation, stream

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dim."""
        return self.data.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between adjacent elements along each dim."""
        return self.data.strides

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.data.size

    @property
    def nbytes(self) -> int:
        """The size of all elements, in bytes."""
        return self.data.nbytes

    @property
    def flags(self) -> dict[str, bool]:
        """Two flags: the elements are contiguous in C order, and in Fortran order."""
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    @property
    def alloc_size(self) -> int:
        """The size of all elements, in bytes."""
        return self.data.nbytes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = self.data.__array_interface__["data"][0]
        EXPORTED_ARRAYS[address] = self
        return {
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "data": (address, False),
            "typestr": self.dtype.str,
            "descr": self.data.__array_interface__["descr"],
            "version": 3,
            "stream": None,
        }

    def is_c_contiguous(self) -> bool:
        """Return whether the elements are contiguous in C order."""
        return bool(self.data.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """Return whether the elements are contiguous in Fortran order."""
        return bool(self.data.flags.f_contiguous)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return (
            f"<device array {self.name}: shape {self.shape}, {self.dtype}, allocated at {format_line(self.allocation.line)}>"
        )

    @property
    def name(self) -> str:
        """The quoted name of the parameter that the array was last passed to."""
        return f"{self.allocation.name!r}" if self.allocation.name else "without a name"

    def _view(self, data: np.ndarray, written: NDArray[np.bool_]) -> "DeviceArray":
        return DeviceArray(data, written, self.allocation, self.stream)

    def __getitem__(self, key: ArrayIndex) -> Any:
        part: Any = self.data[key]
        if isinstance(part, np.ndarray) and part.base is None:
            raise_unsupported("an index array on a device array", "use integers and slices, or index on the host")
        if isinstance(part, np.ndarray):
            return self._view(part, self.written[key])
        self.check_written(key, "read by the host")
        return part

    def __setitem__(self, key: ArrayIndex, value: "ArrayLike | DeviceArray") -> None:
        if isinstance(value, DeviceArray):
            self.data[key], self.written[key] = value.data, value.written
        else:
            self.data[key], self.written[key] = value, True

    def getitem(self, item: ArrayIndex, stream: object = 0) -> Any:
        """Return `array[item]`."""
        return self[item]

    def setitem(self, key: ArrayIndex, value: "ArrayLike | DeviceArray", stream: object = 0) -> None:
        """Set `array[key] = value`."""
        self[key] = value

    def reshape(self, *shape: Any, order: MemoryOrder = "C") -> "DeviceArray":
        """Return a view in another shape. Raise ViewError if that needs a copy."""
        new_shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        data, written = self.data.reshape(new_shape, order=order), self.written.reshape(new_shape, order=order)
        if self.size and not np.may_share_memory(data, self.data):
            raise ViewError(
                f"reshape of {self!r} to {tuple(new_shape)}: the elements are not contiguous, and a reshape of a device "
                "array never copies; reshape before you slice, or on the host"
            )
        return self._view(data, written)

    def ravel(self, order: MemoryOrder = "C", stream: object = 0) -> "DeviceArray":
        """Return a view with one dim. Raise ViewError if that needs a copy."""
        return self.reshape(-1, order=order)

    def squeeze(self, axis: SupportsIndex | tuple[SupportsIndex, ...] | None = None, stream: object = 0) -> "DeviceArray":
        """Return a view without dims of size one."""
        return self._view(self.data.squeeze(axis), self.written.squeeze(axis))

    def view(self, dtype: DTypeLike) -> "DeviceArray":
        """Return the same bytes as elements of another dtype of the same size."""
        if np.dtype(dtype).itemsize != self.dtype.itemsize:
            raise_unsupported(f"view of {self.dtype} as {np.dtype(dtype)}", "a view must keep the size of the elements")
        return self._view(self.data.view(dtype), self.written)

    def split(self, section: int, stream: object = 0) -> Iterator["DeviceArray"]:
        """Yield views of `section` consecutive elements of a 1-D array. The last view may be shorter."""
        if self.ndim != 1:
            raise ShapeError(f"split: got {self!r}; expected an array of one dim")
        for start in range(0, self.size, section):
            yield self[start : start + section]

    def bind(self, stream: object = 0) -> "DeviceArray":
        """Return the array with another default stream."""
        return DeviceArray(self.data, self.written, self.allocation, stream)

    def transpose(self, axes: Sequence[int] | None = None) -> "DeviceArray":
        """Return a transposed copy of a matrix, as in Numba."""
        if axes is not None and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise_unsupported(f"transpose of {self.ndim} dims", "numba.cuda transposes only matrices")
        return self._view(self.data.T.copy(), self.written.T.copy())

    @property
    def T(self) -> "DeviceArray":  # noqa: N802  # NumPy's name
        """A transposed copy of a matrix, as in Numba."""
        return self.transpose()

    def copy_to_host(self, ary: np.ndarray | None = None, stream: object = 0) -> np.ndarray:
        """Copy to a new NumPy array, or to `ary`, which must have the same shape, dtype and order.

        Elements that were never written are reported, as compute-sanitizer's initcheck does for a copy.
        """
        if ary is not None:
            self._check_compatible(ary, "copy_to_host")
            if self.size and ary.squeeze().strides != self.data.squeeze().strides:
                raise ViewError(f"copy_to_host: the device array has strides {self.strides}, the host array {ary.strides}")
        self.check_written(..., "copied to the host")
        if ary is None:
            return self.data.copy(order="K")
        ary.squeeze()[...] = self.data.squeeze()
        return ary

    def copy_to_device(self, ary: "ArrayLike | DeviceArray", stream: object = 0) -> None:
        """Copy from a host or device array of the same shape and dtype."""
        source = ary if isinstance(ary, DeviceArray) else np.asarray(ary)
        if not (self.is_c_contiguous() or self.is_f_contiguous()):
            raise ViewError(f"copy_to_device: {self!r} has gaps between its elements; copy to a contiguous array")
        self._check_compatible(source, "copy_to_device")
        self.squeeze()[...] = source.squeeze()

    def _check_compatible(self, other: "np.ndarray | DeviceArray", method: str) -> None:
        if other.dtype != self.dtype:
            raise DTypeError(
                f"{method}: the device array has {self.dtype}, the host array {other.dtype}; convert one of them"
            )
        if other.squeeze().shape != self.data.squeeze().shape:
            raise ShapeError(f"{method}: the device array has shape {self.shape}, the host array {other.shape}")

    def check_written(self, key: ArrayIndex, access: str) -> None:
        """Report a hazard if an element of `self[key]` was never written."""
        part = np.atleast_1d(self.written[key])
        if part.all():
            return
        first = tuple(int(i) for i in np.argwhere(~part)[0]) if key is ... and self.ndim else ()
        line, count = script_line(), int(part.size - np.count_nonzero(part))
        element_text = f" element {first[0] if len(first) == 1 else first}" if first else ""
        count_text = f", and {count - 1} more of {part.size}" if count > 1 else ""
        error = UninitializedReadError(
            f"device array {self.name}{element_text}{count_text}: {access} at {format_line(line)}, but it was never "
            f"written; allocated at {format_line(self.allocation.line)}, and device_array() does not initialize memory.",
            lines=(line, self.allocation.line),
            array=self.allocation.name or None,
            element=first or None,
        )
        self.allocation.handler.report_hazard(error, line)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ViewError("np.asarray of a device array always copies; omit copy=False")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a device array has no attribute {name!r} in the interpreter; copy_to_host() returns a NumPy array"
        )

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        raise DTypeError(
            f"arithmetic with {self!r} on the host: only kernels can compute with device memory; "
            "write a kernel, or call copy_to_host() first"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __floordiv__ = __mod__ = __pow__ = __matmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic


HostOrDevice = np.ndarray | DeviceArray
EXPORTED_ARRAYS: WeakValueDictionary[int, DeviceArray] = WeakValueDictionary()  # exported address -> array


def exposes_memory(value: object) -> TypeGuard[CudaArray]:
    """Return whether an object exposes device memory."""
    return hasattr(value, "__cuda_array_interface__")


def exported_array(value: CudaArray) -> DeviceArray:
    """Return the device array that another object exposes by `__cuda_array_interface__`.

    Addresses that were not exported by a device array of the interpreter are refused: they may be on a GPU.
    """
    interface = value.__cuda_array_interface__
    array = EXPORTED_ARRAYS.get(interface["data"][0])
    if array is None or (tuple(interface["shape"]), interface["typestr"]) != (array.shape, array.dtype.str):
        raise_unsupported(
            f"the memory of a {type(value).__name__}", "only whole device arrays of the interpreter are supported"
        )
    return array


class MappedArray(np.ndarray):
    """A NumPy array that kernels read and write in place, returned by `mapped_array` and `managed_array`."""

    def copy_to_host(self, ary: np.ndarray | None = None, stream: object = 0) -> np.ndarray:
        """Copy to a plain NumPy array, or to `ary`."""
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: ArrayLike | DeviceArray, stream: object = 0) -> None:
        """Copy from a host or device array."""
        self[...] = np.asarray(ary)


def allocate(
    shape: ShapeLike | list[int],
    dtype: DTypeLike,
    strides: tuple[int, ...] | None,
    order: MemoryOrder,
    allocation: DeviceAllocation,
) -> DeviceArray:
    """Allocate uninitialized device memory."""
    dims = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for size in dims:
        if not isinstance(size, int | np.integer) or size < 0:
            raise ShapeError(f"device_array: got shape {shape!r}; expected integers of at least 0")
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise DTypeError(f"device_array: {kind} contains Python objects, which kernels cannot read")
    if strides is None:
        data, written = np.empty(dims, kind, order), np.zeros(dims, bool, order)
    else:
        element_strides = [stride // kind.itemsize for stride in strides]
        count = (
            1 + sum((size - 1) * stride for size, stride in zip(dims, element_strides, strict=True))
            if math.prod(dims)
            else 0
        )
        data = np.ndarray(dims, kind, np.empty(count, kind), strides=strides)
        written = np.ndarray(dims, bool, np.zeros(count, bool), strides=element_strides)
    data[...] = poison_value(kind)
    return DeviceArray(data, written, allocation)


def poison_value(dtype: np.dtype) -> bool | np.generic:
    """Return the value that fills uninitialized elements of a dtype."""
    return True if dtype.kind == "b" else np.frombuffer(bytes([POISON_BYTE]) * dtype.itemsize, dtype)[0]


def device_array_from_host(array: ArrayLike, allocation: DeviceAllocation, *, copy: bool = True) -> DeviceArray:
    """Allocate a device array with the shape, dtype and memory order of a host array or number.

    Unless `copy` is False, also copy the elements.
    """
    source = np.asanyarray(array)
    if source.dtype.hasobject:
        raise DTypeError(f"to_device: {type(array).__name__} becomes an array of Python objects, which kernels cannot read")
    if not (source.flags.c_contiguous or source.flags.f_contiguous):
        raise ViewError(
            f"to_device: the array of shape {source.shape} and strides {source.strides} is not contiguous; "
            "copy it with np.ascontiguousarray() first"
        )
    device = allocate(source.shape, source.dtype, None, "C" if source.flags.c_contiguous else "F", allocation)
    if copy:
        device[...] = source
    return device

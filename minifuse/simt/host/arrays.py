"""Memory of the device as a script holds it: an array that kernels take, views of it, and copies to and from the host.

Stands at the bottom of `simt.host`. A device array here is a NumPy array with a second one beside it that remembers which
elements were ever written, so that a read of memory that nobody filled shows. Nothing is copied to a GPU and no time
passes: `stream` arguments are taken and mean nothing. Launches are in `kernels.py`.
"""

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...core.errors import DTypeError, ShapeError, SimtError, UninitializedReadError, UnknownWordError, ViewError

INTERNAL_FOLDERS = (Path(__file__).parents[2], Path(np.__file__).parent)
INTERNAL_PREFIXES = (
    "<frozen importlib",
    *(f"{folder}{os.sep}" for folder in INTERNAL_FOLDERS),
)  # how names of other files begin
POISON_BYTE = 0xFF  # each byte of memory that nobody filled: NaN as a float, -1 as an integer

Line = tuple[str, int]  # a file and a line in it


class HazardReporter(Protocol):
    """Whoever collects what the host side finds."""

    def report_hazard(self, error: SimtError, line: Line) -> None:
        """Take note of a hazard that happened outside a kernel, at this line."""


def script_line() -> Line:
    """The innermost line that runs now and is neither minifuse's nor NumPy's."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(INTERNAL_PREFIXES):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def format_line(line: Line) -> str:
    """A line as messages say it: matmul.py:41."""
    return f"{Path(line[0]).name}:{line[1]}"


def raise_unsupported(word: str, why: str = "") -> NoReturn:
    """Raise the error for a word of numba.cuda that this host side does not have."""
    line = script_line()
    why = why or "the host side here has arrays, streams, events and launches; take it out to check the rest of the script"
    raise UnknownWordError(f"{word} at {format_line(line)}: not known here; {why}", lines=(line,))


@dataclass
class DeviceAllocation:
    """One piece of device memory, shared by an array and its views."""

    handler: HazardReporter
    line: Line  # where the script asked for it
    name: str = ""  # of the parameter that it was last given to


class DeviceArray:
    """An array in the memory of the device.

    Attributes
    ----------
    data : numpy.ndarray
        The elements; views share them.
    written : numpy.ndarray of bool
        The shape and the views of `data`: whether an element was ever written.
    """

    is_device_array: ClassVar[bool] = True
    __array_priority__ = -1.0

    def __init__(
        self, data: NDArray[Any], written: NDArray[np.bool_], allocation: DeviceAllocation, stream: Any = 0
    ) -> None:
        self.data, self.written, self.allocation, self.stream = data, written, allocation, stream

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dim."""
        return self.data.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each dim."""
        return self.data.strides

    @property
    def dtype(self) -> np.dtype[Any]:
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
        """The bytes of all elements."""
        return self.data.nbytes

    @property
    def flags(self) -> dict[str, bool]:
        """Whether the elements lie in C or Fortran order without gaps."""
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    @property
    def alloc_size(self) -> int:
        """The bytes of all elements."""
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
        """Whether the elements lie row by row without gaps."""
        return bool(self.data.flags.c_contiguous)

    def is_f_contiguous(self) -> bool:
        """Whether the elements lie column by column without gaps."""
        return bool(self.data.flags.f_contiguous)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return (
            f"<device array {self.name}: shape {self.shape}, {self.dtype}, allocated at {format_line(self.allocation.line)}>"
        )

    @property
    def name(self) -> str:
        """The parameter that it was last given to, quoted, or nothing."""
        return f"{self.allocation.name!r}" if self.allocation.name else "without a name"

    def _view(self, data: NDArray[Any], written: NDArray[np.bool_]) -> "DeviceArray":
        return DeviceArray(data, written, self.allocation, self.stream)

    def __getitem__(self, key: Any) -> Any:
        part = self.data[key]
        if isinstance(part, np.ndarray) and part.base is None:
            raise_unsupported("an index array on a device array", "take integers and slices, or index on the host")
        if isinstance(part, np.ndarray):
            return self._view(part, self.written[key])
        self.check_written(key, "read by the host")
        return part

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, DeviceArray):
            self.data[key], self.written[key] = value.data, value.written
        else:
            self.data[key], self.written[key] = value, True

    def getitem(self, item: Any, stream: Any = 0) -> Any:
        """The same as `array[item]`."""
        return self[item]

    def setitem(self, key: Any, value: Any, stream: Any = 0) -> None:
        """The same as `array[key] = value`."""
        self[key] = value

    def reshape(self, *shape: Any, order: Any = "C") -> "DeviceArray":
        """The same elements in another shape; ViewError where that needs a copy."""
        new = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        data, written = self.data.reshape(new, order=order), self.written.reshape(new, order=order)
        if self.size and not np.may_share_memory(data, self.data):
            raise ViewError(
                f"reshape of {self!r} to {tuple(new)}: the elements do not lie together, and a device array is never copied "
                "for a new shape; reshape before you slice, or on the host"
            )
        return self._view(data, written)

    def ravel(self, order: Any = "C", stream: Any = 0) -> "DeviceArray":
        """The same elements in one dim; ViewError where that needs a copy."""
        return self.reshape(-1, order=order)

    def squeeze(self, axis: Any = None, stream: Any = 0) -> "DeviceArray":
        """The same elements without dims of size one."""
        return self._view(self.data.squeeze(axis), self.written.squeeze(axis))

    def view(self, dtype: DTypeLike) -> "DeviceArray":
        """The same bytes as elements of another type of the same size."""
        if np.dtype(dtype).itemsize != self.dtype.itemsize:
            raise_unsupported(f"view of {self.dtype} as {np.dtype(dtype)}", "views keep the size of the elements")
        return self._view(self.data.view(dtype), self.written)

    def split(self, section: int, stream: Any = 0) -> Iterator["DeviceArray"]:
        """Parts of `section` elements of an array of one dim; the last may be smaller."""
        if self.ndim != 1:
            raise ShapeError(f"split: got {self!r}; only arrays of one dim are split")
        for start in range(0, self.size, section):
            yield self[start : start + section]

    def bind(self, stream: Any = 0) -> "DeviceArray":
        """The same array with another default stream."""
        return DeviceArray(self.data, self.written, self.allocation, stream)

    def transpose(self, axes: Any = None) -> "DeviceArray":
        """A transposed copy of a matrix, as in Numba."""
        if axes is not None and tuple(axes) == tuple(range(self.ndim)):
            return self
        if self.ndim != 2:
            raise_unsupported(f"transpose of {self.ndim} dims", "numba.cuda transposes matrices alone")
        return self._view(self.data.T.copy(), self.written.T.copy())

    @property
    def T(self) -> "DeviceArray":  # noqa: N802  # NumPy's name
        """A transposed copy of a matrix, as in Numba."""
        return self.transpose()

    def copy_to_host(self, ary: NDArray[Any] | None = None, stream: Any = 0) -> NDArray[Any]:
        """Copy to a new NumPy array, or to `ary`, of the same shape, type and order.

        Elements that nobody ever wrote are reported, as compute-sanitizer's initcheck does for a copy.
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

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Fill from a host or device array of the same shape and type."""
        source = ary if isinstance(ary, DeviceArray) else np.asarray(ary)
        if not (self.is_c_contiguous() or self.is_f_contiguous()):
            raise ViewError(
                f"copy_to_device: {self!r} has gaps between its elements, so it is not one piece of memory to fill"
            )
        self._check_compatible(source, "copy_to_device")
        self.squeeze()[...] = source.squeeze()

    def _check_compatible(self, other: Any, verb: str) -> None:
        if other.dtype != self.dtype:
            raise DTypeError(
                f"{verb}: the device array has {self.dtype}, the host array {other.dtype}; they must be the same"
            )
        if other.squeeze().shape != self.data.squeeze().shape:
            raise ShapeError(f"{verb}: the device array has shape {self.shape}, the host array {other.shape}")

    def check_written(self, key: Any, verb: str) -> None:
        """Report the first element of `self[key]` that nobody ever wrote."""
        part = np.atleast_1d(self.written[key])
        if part.all():
            return
        first = tuple(int(i) for i in np.argwhere(~part)[0]) if key is ... and self.ndim else ()
        line, count = script_line(), int(part.size - np.count_nonzero(part))
        at = f" element {first[0] if len(first) == 1 else first}" if first else ""
        more = f", and {count - 1} more of {part.size}" if count > 1 else ""
        error = UninitializedReadError(
            f"device array {self.name}{at}{more}: {verb} at {format_line(line)}, but nothing ever wrote there; allocated at "
            f"{format_line(self.allocation.line)}, and device_array() gives memory as it is found.",
            lines=(line, self.allocation.line),
            array=self.allocation.name or None,
            element=first or None,
        )
        self.allocation.handler.report_hazard(error, line)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ViewError("a device array as a NumPy array is always a copy; leave copy=False away")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a device array here has no attribute {name!r}; copy_to_host() gives a NumPy array")

    def _no_arithmetic(self, *_: Any) -> NoReturn:
        raise DTypeError(
            f"arithmetic with {self!r} on the host: it lies on the device, where only kernels compute; "
            "write a kernel, or call copy_to_host() first"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
    __floordiv__ = __mod__ = __pow__ = __matmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic


EXPORTED_ARRAYS: WeakValueDictionary[int, DeviceArray] = WeakValueDictionary()  # by the address that others were told


def exported_array(value: Any) -> DeviceArray:
    """Return the device array that the `__cuda_array_interface__` of another object shows.

    An address is never read that no device array here has told: it may lie on a GPU.
    """
    told = value.__cuda_array_interface__
    array = EXPORTED_ARRAYS.get(told["data"][0])
    if array is None or (tuple(told["shape"]), told["typestr"]) != (array.shape, array.dtype.str):
        raise_unsupported(f"the memory of a {type(value).__name__}", "only whole device arrays made here are known")
    return array


class MappedArray(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array that kernels read and write in place, as `mapped_array` and `managed_array` give it."""

    def copy_to_host(self, ary: NDArray[Any] | None = None, stream: Any = 0) -> NDArray[Any]:
        """Copy to a plain NumPy array, or to `ary`."""
        if ary is None:
            return np.array(self)
        ary[...] = self
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Fill from a host or device array."""
        self[...] = np.asarray(ary)


def allocate(
    shape: Any, dtype: DTypeLike, strides: tuple[int, ...] | None, order: str, allocation: DeviceAllocation
) -> DeviceArray:
    """Memory of the device with nothing in it."""
    dims = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for size in dims:
        if not isinstance(size, int | np.integer) or size < 0:
            raise ShapeError(f"device_array: a shape is made of whole numbers from 0 up, got {shape!r}")
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise DTypeError(f"device_array: {kind} holds Python objects, which no kernel can read")
    if strides is None:
        data, written = np.empty(dims, kind, order), np.zeros(dims, bool, order)  # type: ignore[call-overload]
    else:
        steps = [step // kind.itemsize for step in strides]
        count = 1 + sum((size - 1) * step for size, step in zip(dims, steps, strict=True)) if math.prod(dims) else 0
        data = np.ndarray(dims, kind, np.empty(count, kind), strides=strides)
        written = np.ndarray(dims, bool, np.zeros(count, bool), strides=steps)
    data[...] = poison_value(kind)
    return DeviceArray(data, written, allocation)


def poison_value(dtype: np.dtype[Any]) -> Any:
    """An element of memory that nobody filled."""
    return True if dtype.kind == "b" else np.frombuffer(bytes([POISON_BYTE]) * dtype.itemsize, dtype)[0]


def copy_from_host(array: Any, allocation: DeviceAllocation, *, copy: bool = True) -> DeviceArray:
    """A host array or number in the memory of the device."""
    source = np.asanyarray(array)
    if source.dtype.hasobject:
        raise DTypeError(f"to_device: {type(array).__name__} becomes an array of Python objects, which no kernel can read")
    if not (source.flags.c_contiguous or source.flags.f_contiguous):
        raise ViewError(
            f"to_device: the array of shape {source.shape} and strides {source.strides} is not one piece of memory; "
            "copy it with np.ascontiguousarray() first"
        )
    device = allocate(source.shape, source.dtype, None, "C" if source.flags.c_contiguous else "F", allocation)
    if copy:
        device[...] = source
    return device

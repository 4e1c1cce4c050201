"""Arrays as a kernel uses them: every index is checked and every access is recorded.

A `KernelArray` reads and writes NumPy memory in place. To detect reads of uninitialized memory, a second array of the same
shape records which elements have been written. Raw pointers are in `pointers`, conversions of numbers in `arithmetic`.
"""

import operator
import sys
from collections.abc import Callable, Iterator
from types import EllipsisType, FrameType
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from ..core.errors import OutOfBoundsError, SimtError, UninitializedReadError, UnknownWordError
from .arithmetic import LaneNumber, RealNumber, wrap_integer
from .lanes import KERNEL_BUILTINS, LaunchState, kernel_frame, lane_error
from .record import ATOMIC, LOAD, STORE, pack_tag

IndexPart = SupportsIndex | slice | EllipsisType
ElementIndex = SupportsIndex | tuple[SupportsIndex, ...]
ArrayIndex = IndexPart | tuple[IndexPart, ...]  # the index of one element or of a view

UNWRITTEN_BYTE = b"\0"  # the byte of an unwritten element in the array of booleans


class MemoryBlock(NamedTuple):
    """A block of memory that several views share."""

    space: str  # 'global', 'shared', 'local' or 'const'
    address: int  # the real address in this process
    base: int  # the synthetic address in traces


def base_array(data: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory of a view."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


class KernelArray:
    """An array of a launch. Index it as in Numba: with an integer for each dim, or with fewer integers or slices for a view.

    Notes
    -----
    float32 is read as `np.float32`, float64 as `np.float64`, uint64 as `np.uint64`; other integers as `int`, booleans as
    `bool`. Stored integers wrap to the element type.
    """

    __slots__ = (
        *("_allocation", "_flat", "_flat_written", "_is_plain", "_load_tag", "_machine", "_origin", "_record", "_row"),
        *("_store_tag", "_written", "data", "dtype", "itemsize", "name", "ndim", "shape", "size", "strides"),
    )
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]  # its elements change, so it cannot be a key

    def __init__(
        self,
        machine: LaunchState,
        data: np.ndarray,
        name: str,
        allocation: MemoryBlock,
        row: int,
        written: NDArray[np.bool_] | None = None,
    ) -> None:
        self.data, self.name = data, name
        self.shape, self.ndim, self.size = data.shape, data.ndim, data.size
        self.strides, self.itemsize, self.dtype = data.strides, data.itemsize, data.dtype
        self._machine, self._allocation, self._row = machine, allocation, row
        self._origin = data.__array_interface__["data"][0] - allocation.address if data.size else 0
        self._is_plain = data.dtype.kind in "bi" or (data.dtype.kind == "u" and data.itemsize < 8)
        self._flat: np.ndarray | None = None  # flat views of data and _written, created by the first vector access
        self._flat_written: NDArray[np.bool_] | None = None
        self._written = written
        recorder = machine.recorder
        self._record: Callable[..., None] | None = None if recorder is None or row < 0 else recorder.add
        self._load_tag = pack_tag(max(row, 0), data.itemsize, LOAD)
        self._store_tag = pack_tag(max(row, 0), data.itemsize, STORE)

    def __getitem__(self, index: ArrayIndex) -> Any:
        offset = self._offset(index)
        if offset < 0:
            return self._view(index)
        if self._written is not None and not self._written[index]:
            self._report_unwritten(index)
        value = self.data.item(index) if self._is_plain else self.data[index]  # type: ignore[arg-type]  # of one element
        if self._record is not None:
            frame = sys._getframe(1)
            if frame.f_builtins is not KERNEL_BUILTINS:
                frame = kernel_frame(frame)
            self._record(frame.f_code, frame.f_lasti, self._load_tag, offset, value)
        return value

    def __setitem__(self, index: ArrayIndex, value: Any) -> None:
        offset = self._offset(index)
        if offset < 0:
            self._view(index)._fill(value)
            return
        try:
            self.data[index] = value
        except OverflowError:
            value = wrap_integer(value, self.dtype)
            self.data[index] = value
        if self._written is not None:
            self._written[index] = True
        if self._record is not None:
            frame = sys._getframe(1)
            if frame.f_builtins is not KERNEL_BUILTINS:
                frame = kernel_frame(frame)
            self._record(frame.f_code, frame.f_lasti, self._store_tag, offset, value)

    def load(self, index: int, width: int) -> tuple[RealNumber, ...]:
        """Read `width` adjacent elements from a flat index: one event, with the alignment that the hardware requires."""
        elements = KernelArray.peek(self, index, width)
        values = tuple(elements.tolist() if self._is_plain else elements)
        if self._record is not None:
            offset = self._origin + int(index) * self.itemsize
            self._record_access(
                pack_tag(max(self._row, 0), width * self.itemsize, LOAD), offset, values[0], sys._getframe(1)
            )
        return values

    def store(self, index: int, values: tuple[RealNumber, ...]) -> None:
        """Write adjacent elements from a flat index: one event, with the alignment that the hardware requires."""
        flat, offset = self._check_vector(index, len(values), "written")
        for position, value in enumerate(values, index):
            try:
                flat[position] = value
            except OverflowError:
                flat[position] = wrap_integer(value, self.dtype)
        if self._flat_written is not None:
            self._flat_written[index : index + len(values)] = True
        if self._record is not None:
            self._record_access(
                pack_tag(max(self._row, 0), len(values) * self.itemsize, STORE), offset, values[0], sys._getframe(1)
            )

    def gather(self, indices: NDArray[np.int64], width: int) -> np.ndarray:
        """Load `width` adjacent elements from each flat index, and return an array of shape (len(indices), width)."""
        if self._record is None and indices.size and self._are_vectors_valid(indices, width):
            return np.take(self.data, indices[:, None] + np.arange(width))
        return np.array([KernelArray.load(self, index, width) for index in indices.tolist()])

    def receive(self, index: int, width: int, source: "KernelArray | None", start: int) -> None:
        """Start an asynchronous copy: store elements loaded from `source`, or zeros if it is None.

        The elements count as unwritten until the copy has completed and `mark` is called.
        """
        if self._record is not None:
            self.store(index, (0,) * width if source is None else source.load(start, width))
        else:
            flat, _ = self._check_vector(index, width, "written")
            flat[index : index + width] = 0 if source is None else source.peek(start, width)
        if self._flat_written is not None:
            self._flat_written[index : index + width] = False

    def peek(self, index: int, width: int) -> np.ndarray:
        """Read adjacent elements as `load` does, without recording an event."""
        flat, _ = self._check_vector(index, width, "read")
        if self._flat_written is not None and UNWRITTEN_BYTE in self._flat_written[index : index + width].tobytes():
            self._report_unwritten(index)
        return flat[index : index + width]

    def mark(self, index: int, width: int, is_written: bool) -> None:
        """Set whether adjacent elements count as written."""
        if self._flat_written is not None:
            self._flat_written[index : index + width] = is_written

    def update(self, index: ElementIndex, change: Callable[[Any], RealNumber]) -> RealNumber:
        """Replace an element by `change(element)` as one atomic event, and return the old value."""
        offset = self._offset(index)
        if offset < 0:
            raise lane_error(
                OutOfBoundsError, f"{self}: an atomic at the index {index}", "an atomic needs the index of one element"
            )
        if self._written is not None and not self._written[index]:
            self._report_unwritten(index)
        old: RealNumber = self.data.item(index) if self._is_plain else self.data[index]
        new = change(old)
        try:
            self.data[index] = new
        except OverflowError:
            self.data[index] = wrap_integer(new, self.dtype)
        if self._record is not None:
            self._record_access(pack_tag(self._row, self.itemsize, ATOMIC), offset, self.data[index], sys._getframe(2))
        if new == old:
            self._machine.spin(sys._getframe(2))
        else:
            self._machine.spins = 0
        return old

    def _offset(self, index: ArrayIndex) -> int:
        """Return the byte offset of an element in its memory block, or -1 if the index selects a view.

        Raise if the index is out of bounds.
        """
        if type(index) is tuple:
            if len(index) == 2 == self.ndim:
                row, col = index
                if type(row) is int and type(col) is int:
                    rows, cols = self.shape
                    if 0 <= row < rows and 0 <= col < cols:
                        row_stride, col_stride = self.strides
                        return self._origin + row * row_stride + col * col_stride
        elif type(index) is int and self.ndim == 1 and 0 <= index < self.size:
            return self._origin + index * self.strides[0]
        return self._general_offset(index)

    def _general_offset(self, index: ArrayIndex) -> int:
        parts = list(index) if isinstance(index, tuple) else [index]
        is_element = len(parts) == self.ndim
        if any(part is Ellipsis for part in parts):
            position, is_element = parts.index(Ellipsis), False
            parts[position : position + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        if len(parts) > self.ndim:
            raise lane_error(
                OutOfBoundsError, f"{self}: the index {index} has {len(parts)} positions", f"the array has {self.ndim} dims"
            )
        offset = self._origin
        for dim, part in enumerate(parts):
            if isinstance(part, slice):
                is_element = False
            else:
                offset += self._check_position(part, dim, index) * self.strides[dim]
        return offset if is_element else -1

    def _check_position(self, part: Any, dim: int, index: object) -> int:
        """Convert an index of one dim to an int. Raise if it is out of bounds."""
        position = self._check_integer(part)
        if not 0 <= position < self.shape[dim]:
            end = self._origin + (position + 1) * self.itemsize
            advice = (
                self._machine.spaces.missing_dynamic_bytes(self._allocation, end) if self.ndim == 1 and position >= 0 else ""
            )
            raise lane_error(
                OutOfBoundsError,
                f"{self}: access to element {index}, which is out of bounds",
                advice or f"dim {dim} needs 0 <= index < {self.shape[dim]}; guard the access with an `if`",
                array=self.name,
                element=tuple(index) if isinstance(index, tuple) else (index,),
            )
        return position

    def _check_integer(self, part: Any) -> int:
        """Convert an index to an int. Raise for booleans and floats."""
        try:
            if isinstance(part, bool | np.bool_):
                raise TypeError
            position: int = operator.index(part)
            return position
        except TypeError:
            kind = type(part).__name__
            raise lane_error(
                SimtError, f"{self} indexed with {part} of type {kind}", "use an integer, such as int(...)"
            ) from None

    def _view(self, index: ArrayIndex) -> "KernelArray":
        return self._same_array_view(self.data[index], None if self._written is None else self._written[index])

    def _same_array_view(self, data: np.ndarray, written: NDArray[np.bool_] | None) -> "KernelArray":
        """Return another view of the same memory."""
        return KernelArray(self._machine, data, self.name, self._allocation, self._row, written)

    def _fill(self, value: "LaneNumber | KernelArray") -> None:
        """Store a number, or the elements of an array, in every element of this view. Each store is an event."""
        if isinstance(value, KernelArray) and value.shape != self.shape:
            raise lane_error(
                SimtError, f"{self}: a view of shape {self.shape} is set to shape {value.shape}", "use equal shapes"
            )
        for position in np.ndindex(self.shape):
            self[position] = value[position] if isinstance(value, KernelArray) else value

    def _check_vector(self, index: int, width: int, verb: str) -> tuple[np.ndarray, int]:
        """Return the flat elements and the byte offset of a vector access. Raise if it is out of bounds or misaligned."""
        if self._flat is None:
            if not self.data.flags.c_contiguous:
                raise lane_error(
                    SimtError,
                    f"{self} with strides {self.strides}: a vector {verb}",
                    "a vector access needs contiguous memory",
                )
            self._flat = self.data.reshape(-1)
            self._flat_written = None if self._written is None else self._written.reshape(-1)
        if type(index) is not int:
            index = self._check_integer(index)
        if not 0 <= index <= self.size - width:
            raise lane_error(
                OutOfBoundsError,
                f"{self}: {width} elements from index {index} on {verb}, which is out of bounds",
                f"the flat index needs 0 <= index <= {self.size - width}",
                array=self.name,
                element=(index,),
            )
        offset = self._origin + index * self.itemsize
        alignment = min(16, width * self.itemsize)
        if (self._allocation.base + offset) % alignment:
            raise lane_error(
                OutOfBoundsError,
                f"{self}: misaligned address, {width} elements from index {index} on {verb}",
                f"an access of {width * self.itemsize} bytes needs an address that is a multiple of {alignment}",
                array=self.name,
                element=(index,),
            )
        return self._flat, offset

    def _are_vectors_valid(self, indices: NDArray[np.int64], width: int) -> bool:
        """Return whether the vectors at all these indices are in bounds, aligned and written."""
        if indices.min() < 0 or indices.max() > self.size - width:
            return False
        self._check_vector(int(indices[0]), width, "read")
        addresses = indices * self.itemsize + (self._allocation.base + self._origin)
        is_aligned = not (addresses % min(16, width * self.itemsize)).any()
        return is_aligned and (
            self._flat_written is None or bool(self._flat_written[indices[:, None] + np.arange(width)].all())
        )

    def _record_access(self, tag: int, offset: int, value: object, frame: FrameType) -> None:
        assert self._record is not None
        frame = kernel_frame(frame)
        self._record(frame.f_code, frame.f_lasti, tag, offset, value)

    def _report_unwritten(self, index: object) -> None:
        problem = f"{self}: element {index} is read before it is written"
        advice = "fill it first; if another thread writes it, call cuda.syncthreads() between the write and the read"
        if self._allocation.space == "local":
            advice = "a local array has no values at first, and no other thread writes it: store in each element first"
        element = tuple(index) if isinstance(index, tuple) else (index,)
        self._machine.report_hazard(lane_error(UninitializedReadError, problem, advice, array=self.name, element=element))

    @property
    def nbytes(self) -> int:
        """The size of all elements, in bytes."""
        return self.size * self.itemsize

    @property
    def T(self) -> "KernelArray":  # noqa: N802
        """The view with the dims reversed."""
        return self._same_array_view(self.data.T, None if self._written is None else self._written.T)

    def reshape(self, *shape: Any) -> "KernelArray":
        """Return a view of contiguous memory in another shape."""
        if not self.data.flags.c_contiguous:
            raise lane_error(
                SimtError, f"{self} with strides {self.strides} reshaped", "only a contiguous array can be reshaped"
            )
        return self._same_array_view(
            self.data.reshape(*shape), None if self._written is None else self._written.reshape(*shape)
        )

    def ravel(self) -> "KernelArray":
        """Return a view of contiguous memory with one dim."""
        return self.reshape(-1)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> "Iterator[LaneNumber | KernelArray]":
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"{self._allocation.space} array '{self.name}' of shape {self.shape}"

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        raise lane_error(
            UnknownWordError,
            f"{self}: arithmetic with a whole array",
            "compute with elements in a loop, or write np.add(x, y, out)",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_arithmetic
    __floordiv__ = __mod__ = __pow__ = __matmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_arithmetic

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise lane_error(
            UnknownWordError,
            f"{self}: attribute '{name}'",
            "arrays in kernels do not have this attribute; use the elements instead",
        )

"""Address spaces of a launch: global, shared, local and constant arrays, with synthetic addresses.

Arguments that are views of one allocation keep their distances. Every other array starts at a multiple of 256 bytes.
"""

from collections.abc import Sequence
from ctypes import c_char
from types import FrameType
from typing import Any, Final, Protocol, TypeGuard

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ..core.errors import SimtError, UnknownWordError, short_file
from .arithmetic import DTypeName, convert_scalar_argument, dtype_named
from .bytecode_locations import InstructionKey, assigned_name
from .lanes import Lane, LaunchState, current, frame_line
from .memory import ArrayIndex, KernelArray, MemoryBlock, base_array
from .pointers import OffsetArray, Pointer, PointerTableArray, Table
from .record import ArrayInfo
from .struct_arrays import StructArray, StructElement

ALIGNMENT_BYTES: Final = 256  # start addresses of allocations are multiples of this
POISON_BYTE: Final = 0xFF  # fills unwritten shared and local memory: nan as a float, -1 as an integer
MAX_SHARED_BYTES: Final = 48 * 1024  # per block: a kernel of Numba cannot have more
RNG_STATE_FIELDS: Final = ("s0", "s1")  # fields of a random generator's state, which `random` reads as a row of two integers
UNRECORDED_ROW: Final = -1  # table row of an array whose accesses are not recorded
ShapeLike = int | tuple[int, ...]


class DeviceMemory(Protocol):
    """A device array of a script: its elements, and a flag for each element that was ever written."""

    data: np.ndarray
    written: NDArray[np.bool_]


class AddressSpaces:
    """The memory of one launch."""

    def __init__(self, machine: LaunchState, dynamic_nbytes: int) -> None:
        self.unwritten_arguments: list[str] = []  # names of arguments without any element written before the launch
        self.arguments: dict[int, tuple[str, np.ndarray]] = {}  # row -> the name of an argument and its memory
        self._machine, self._dynamic_nbytes = machine, dynamic_nbytes
        self._next_base = ALIGNMENT_BYTES
        self._allocations: list[tuple[int, int, MemoryBlock]] = []  # first address, end address, block
        self._rows: dict[InstructionKey, tuple[int, int]] = {}  # instruction of a shared array -> row and base address
        self._shared: dict[int, dict[InstructionKey, KernelArray]] = {}  # block -> its shared arrays
        self._dynamic: dict[int, tuple[np.ndarray, NDArray[np.bool_]]] = {}  # block -> bytes, written flags
        self._static_nbytes = 0  # of shared memory
        self._dynamic_base = self._reserve(dynamic_nbytes) if dynamic_nbytes else 0
        self._constants: dict[int, KernelArray] = {}
        self._captured: dict[int, KernelArray] = {}

    def bind_argument(self, name: str, value: object) -> Any:
        """Convert an argument to the value that the kernel uses."""
        if isinstance(value, np.ndarray):
            return self._bind_array_argument(name, value, None)
        if isinstance(value, Pointer):
            array = self._bind_array(name, value.data, None, "global", value.low, value.misalignment)
            if isinstance(value, Table):
                targets = {index: self.bind_argument(*named) for index, named in value.targets.items()}
                return PointerTableArray(self._machine, value, name, array, targets)
            return OffsetArray(self._machine, value, name, array._allocation, array._row) if value.low else array
        if is_device_memory(value):
            if not value.written.any():
                self.unwritten_arguments.append(name)
            return self._bind_array_argument(name, value.data, value.written)
        if isinstance(value, tuple):
            parts = [self.bind_argument(f"{name}[{index}]", part) for index, part in enumerate(value)]
            return rebuild_tuple(value, parts)
        if isinstance(value, np.void) and value.dtype.names:
            return StructElement(StructArray(name, (1,), self._bind_fields(name, record_memory(value), None)), 0)
        if value is None or isinstance(value, bool | int | float | complex | np.generic):
            return convert_scalar_argument(value)
        if hasattr(value, "python_semantics"):
            return value.python_semantics
        raise SimtError(
            f"argument '{name}' has type {type(value).__name__}; a kernel takes NumPy arrays, numbers, tuples, pointers and "
            "device arrays: convert it with np.asarray(...)"
        )

    def _bind_array_argument(
        self, name: str, data: np.ndarray, written: NDArray[np.bool_] | None
    ) -> KernelArray | StructArray:
        """Return an array for the kernel. For an array of structures, create an array for each field."""
        if data.dtype.names in (None, RNG_STATE_FIELDS):
            return self._bind_array(name, data, written, "global")
        return StructArray(name, data.shape, self._bind_fields(name, data, written))

    def _bind_fields(
        self, name: str, data: np.ndarray, written: NDArray[np.bool_] | None
    ) -> dict[str, KernelArray | StructArray]:
        fields = {}
        for field in data.dtype.names or ():
            part = data[field]
            extra_strides = (0,) * (part.ndim - data.ndim)
            part_written = None if written is None else as_strided(written, part.shape, (*written.strides, *extra_strides))
            fields[field] = self._bind_array_argument(f"{name}.{field}", part, part_written)
        return fields

    def constant_array(self, name: str, data: np.ndarray) -> KernelArray:
        """Return a NumPy array that a kernel captures, as a read-only array of this launch."""
        if id(data) not in self._constants:
            view = data.view()
            view.flags.writeable = False
            self._constants[id(data)] = self._bind_array(name, view, None, "const")
        return self._constants[id(data)]

    def captured_array(self, name: str, value: DeviceMemory) -> KernelArray:
        """Return this launch's view of a device array that a kernel captures."""
        if id(value) not in self._captured:
            self._captured[id(value)] = self.bind_argument(name, value)
        return self._captured[id(value)]

    def _bind_array(
        self,
        name: str,
        data: np.ndarray,
        written: NDArray[np.bool_] | None,
        space: str,
        low: int = 0,
        misalignment: int = 0,
    ) -> KernelArray:
        if data.dtype.kind not in "biufc":
            field_dtypes = {dtype for dtype, *_ in (data.dtype.fields or {}).values()}
            if len(field_dtypes) != 1:
                raise SimtError(f"array '{name}' has dtype {data.dtype}; a kernel takes booleans, integers and floats")
            data = as_strided(
                data.view(next(iter(field_dtypes))),
                (*data.shape, len(data.dtype.fields or {})),
                (*data.strides, next(iter(field_dtypes)).itemsize),
            )
        allocation = self._find_allocation(data, space, misalignment)
        offset = data.__array_interface__["data"][0] - allocation.address if data.size else 0
        row = self._register_array(name, space, allocation.base + offset, data, allocation.base, low)
        self.arguments[row] = (name, data)
        return KernelArray(self._machine, data, name, allocation, row, written)

    def _find_allocation(self, data: np.ndarray, space: str, misalignment: int = 0) -> MemoryBlock:
        first, end = np.lib.array_utils.byte_bounds(base_array(data))
        for low, high, allocation in self._allocations:
            if low <= first and end <= high:
                return allocation
        allocation = MemoryBlock(space, first, self._reserve(end - first + misalignment) + misalignment)
        self._allocations.append((first, end, allocation))
        return allocation

    def _reserve(self, nbytes: int) -> int:
        base = self._next_base
        self._next_base += -(-max(nbytes, 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return base

    def _register_array(self, name: str, space: str, base: int, data: np.ndarray, allocation_base: int, low: int = 0) -> int:
        recorder = self._machine.recorder
        if recorder is None:
            return 0
        info = ArrayInfo(name, space, base, data.shape, data.strides, data.itemsize, data.dtype.name, low)
        return recorder.add_array(info, allocation_base)

    def shared_array(
        self, lane: Lane, key: InstructionKey, frame: FrameType, shape: ShapeLike, dtype: DTypeName, alignment: int | None
    ) -> KernelArray:
        """Return the shared array of the lane's block that this instruction creates."""
        arrays = self._shared.setdefault(lane.block, {})
        array = arrays.get(key)
        if array is None:
            array = arrays[key] = self._make_shared(lane.block, key, frame, shape, dtype, alignment)
        elif shape != array.shape and (shape,) != array.shape and shape not in (0, (0,)):
            file, line = frame_line(frame)
            raise SimtError(
                f"shared array '{array.name}' at {short_file(file)}:{line} has shape {array.shape} for one lane and {shape} "
                "for another; the shape of a shared array must be a constant",
                lines=((file, line),),
            )
        return array

    def _make_shared(
        self, block: int, key: InstructionKey, frame: FrameType, shape: ShapeLike, dtype: DTypeName, alignment: int | None
    ) -> KernelArray:
        dims, element = self._check_shape_and_dtype(shape, dtype, "shared")
        if alignment is not None and (alignment % 8 or alignment & (alignment - 1)):
            raise SimtError(
                f"alignment {alignment}; expected a power of two that is a multiple of 8", lines=(frame_line(frame),)
            )
        name = assigned_name(frame) or f"shared {len(self._rows)}"
        if dims == (0,):
            data, written = self._dynamic_view(block, element)
        else:
            data, written = poisoned_memory(dims, element)
        if key not in self._rows:
            self._static_nbytes += data.nbytes * (dims != (0,))
            if self._static_nbytes > MAX_SHARED_BYTES:
                file, line = frame_line(frame)
                raise SimtError(
                    f"shared array '{name}' at {short_file(file)}:{line}: the shared arrays of the kernel have "
                    f"{self._static_nbytes:,} bytes, more than {MAX_SHARED_BYTES:,}; use smaller arrays",
                    lines=((file, line),),
                )
            base = self._dynamic_base if dims == (0,) else self._reserve(data.nbytes)
            self._rows[key] = self._register_array(name, "shared", base, data, base), base
        row, base = self._rows[key]
        allocation = MemoryBlock("shared", data.__array_interface__["data"][0], base)
        return KernelArray(self._machine, data, name, allocation, row, written)

    def _dynamic_view(self, block: int, dtype: np.dtype) -> tuple[np.ndarray, NDArray[np.bool_]]:
        """Return the dynamic shared memory of a block as elements of a dtype.

        An element counts as written if its first byte is written.
        """
        if block not in self._dynamic:
            nbytes = self._dynamic_nbytes
            self._dynamic[block] = np.full(nbytes, POISON_BYTE, np.uint8), np.zeros(nbytes, bool)
        raw, written = self._dynamic[block]
        count = len(raw) // dtype.itemsize
        return raw[: count * dtype.itemsize].view(dtype), written[: count * dtype.itemsize : dtype.itemsize]

    def missing_dynamic_bytes(self, block: MemoryBlock, end: int) -> str:
        """Return the advice for an access past the end of the dynamic shared memory, at `end`; "" for other memory."""
        if block.space != "shared" or block.base != self._dynamic_base:
            return ""
        return (
            f"the launch has {self._dynamic_nbytes:,} bytes of dynamic shared memory, and this element needs {end:,}: "
            "kernel[grid, block, stream, nbytes]"
        )

    def local_array(
        self, lane: Lane, key: InstructionKey, frame: FrameType, shape: ShapeLike, dtype: DTypeName
    ) -> KernelArray:
        """Return the local array that this instruction creates for the lane."""
        if lane.locals is None:
            lane.locals = {}
        if key not in lane.locals:
            data, written = poisoned_memory(*self._check_shape_and_dtype(shape, dtype, "local"))
            name = assigned_name(frame) or f"local {len(lane.locals)}"
            allocation = MemoryBlock("local", data.__array_interface__["data"][0], 0)
            lane.locals[key] = KernelArray(self._machine, data, name, allocation, UNRECORDED_ROW, written)
        array: KernelArray = lane.locals[key]
        return array

    def _check_shape_and_dtype(self, shape: ShapeLike, dtype: DTypeName, space: str) -> tuple[tuple[int, ...], np.dtype]:
        dims = shape if isinstance(shape, tuple) else (shape,)
        element = dtype_named(dtype)
        position = current().position
        if not all(type(size) is int and size >= 0 for size in dims):
            raise SimtError(f"a {space} array of shape {shape} in {position}; expected an integer or a tuple of integers")
        if element is None:
            raise UnknownWordError(f"a {space} array of {dtype!r} in {position}; expected a dtype of NumPy or Numba")
        return dims, element

    def end_block(self, block: int) -> None:
        """Release the shared memory of a block."""
        self._shared.pop(block, None)
        self._dynamic.pop(block, None)


class CapturedArray:
    """An array that a kernel captures as a global or nonlocal variable. Accesses use the running launch's view of it."""

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def launch_view(self) -> KernelArray:
        """Return the running launch's view of the array."""
        raise NotImplementedError

    def __getitem__(self, index: ArrayIndex) -> Any:
        return self.launch_view()[index]

    def __setitem__(self, index: ArrayIndex, value: Any) -> None:
        self.launch_view()[index] = value

    def __len__(self) -> int:
        return len(self.launch_view())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.launch_view(), name)


class CapturedConstantArray(CapturedArray):
    """A captured NumPy array, which kernels only read."""

    def launch_view(self) -> KernelArray:
        """Return the running launch's view of the array."""
        spaces: AddressSpaces = current(self._name).machine.spaces
        return spaces.constant_array(self._name, self._value)


class CapturedDeviceArray(CapturedArray):
    """A captured device array, which kernels read and write."""

    def launch_view(self) -> KernelArray:
        """Return the running launch's view of the array."""
        spaces: AddressSpaces = current(self._name).machine.spaces
        return spaces.captured_array(self._name, self._value)


def is_device_memory(value: object) -> TypeGuard[DeviceMemory]:
    """Return whether a value is a device array of a script."""
    return isinstance(getattr(value, "data", None), np.ndarray) and hasattr(value, "written")


def rebuild_tuple(original: tuple[object, ...], parts: list[Any]) -> tuple[object, ...]:
    """Return the parts as a tuple of the original's type: a named tuple keeps its type."""
    return type(original)(*parts) if hasattr(original, "_fields") else tuple(parts)


def record_memory(record: np.void) -> np.ndarray:
    """Return the memory of one record of a structured array, as an array of one element. Writes change the record."""
    address = np.frombuffer(record, np.uint8).ctypes.data  # the buffer itself is read-only
    return np.ndarray((1,), record.dtype, memoryview((c_char * record.nbytes).from_address(address)))


def poisoned_memory(dims: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, NDArray[np.bool_]]:
    """Return uninitialized memory filled with poison, and the booleans that record which elements are written."""
    data = np.empty(dims, dtype)
    data.view(np.uint8).fill(POISON_BYTE)
    return data, np.zeros(dims, bool)


def select_scalar_arguments(names: Sequence[str], values: Sequence[object]) -> list[tuple[str, object]]:
    """Return the names and values of the arguments that are not arrays, for the trace of the launch."""
    scalars = (bool, int, float, np.generic)
    return [
        (name, value.item() if isinstance(value, np.generic) else value if isinstance(value, scalars) else repr(value))
        for name, value in zip(names, values, strict=False)
        if isinstance(value, scalars) or value is None or isinstance(value, tuple)
    ]

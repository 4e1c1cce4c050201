"""Arrays of a GPU, handed to and taken from other libraries without a copy: DLPack and `__cuda_array_interface__`.

All libraries work on the legacy default stream unless told otherwise, and so does this one; what was asked for first is done
first, so nobody waits. The one who takes an array keeps the one who gave it alive.
"""

import ctypes
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from ....core.dtypes import BY_NUMPY, DType, bool_
from ....core.errors import DTypeError
from ....core.layout import Layout, row_major
from .gpu import DeviceBuffer

DLPACK_CUDA, LEGACY_STREAM = 2, 1  # as DLPack and the interface number them
UNCLAIMED_NAME = b"dltensor"  # of a capsule that nobody took yet
UNCLAIMED_REFERENCES = 3  # references: of the entry, of the loop over it, and of the count itself
DLPACK_TYPE_CODES = {"i": 0, "f": 2, "b": 6}  # of kinds of numbers


class DLDevice(ctypes.Structure):
    """DLDevice."""

    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLManagedTensor(ctypes.Structure):
    """DLManagedTensor, with the DLTensor in its place."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = (
    ("data", ctypes.c_void_p),
    ("device", DLDevice),
    ("ndim", ctypes.c_int32),
    ("dtype", DLDataType),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("context", ctypes.c_void_p),
    ("deleter", DELETER),
)


class ExportedCapsule(NamedTuple):
    """What lives as long as somebody has a capsule, or took what is in it."""

    capsule: Any
    parts: tuple[Any, ...]


exported_capsules: dict[int, ExportedCapsule] = {}  # by the address of the struct


def _release_export(managed: Any) -> None:
    exported_capsules.pop(ctypes.addressof(managed.contents), None)


release_export = DELETER(_release_export)  # lives as long as the module


def export_capsule(owner: Any, address: int, dtype: DType, layout: Layout, device: int, kind: int = DLPACK_CUDA) -> Any:
    """A DLPack capsule of elements at an address of a device; it keeps `owner` alive."""
    release_unclaimed()
    ndim = len(layout.shape)
    shape, strides = (ctypes.c_int64 * ndim)(*layout.shape), (ctypes.c_int64 * ndim)(*layout.strides)
    number = DLDataType(DLPACK_TYPE_CODES[dtype.numpy.kind], 8 * dtype.itemsize, 1)
    managed = DLManagedTensor(address, DLDevice(kind, device), ndim, number, shape, strides, 0, None, release_export)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = make(ctypes.addressof(managed), UNCLAIMED_NAME, None)
    exported_capsules[ctypes.addressof(managed)] = ExportedCapsule(capsule, (managed, shape, strides, owner))
    return capsule


def release_unclaimed() -> None:
    """Let go of capsules that only this module still has. A destructor in Python would lose a pending error."""
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
    for place, (capsule, _) in list(exported_capsules.items()):
        if getrefcount(capsule) == UNCLAIMED_REFERENCES and is_valid(
            capsule, UNCLAIMED_NAME
        ):  # one that was taken has another name
            exported_capsules.pop(place, None)


def require_no_copy(
    name: str, device: tuple[int, int], dl_device: tuple[int, int] | None = None, copy: bool | None = None, **_: Any
) -> None:
    """Raise where the memory itself is not what is asked for, as the protocol wants it: a BufferError."""
    if copy or dl_device not in (None, device):
        raise BufferError(f'DLPack: a tensor on {name} is given as it is; use x.to("parallel") first')


def array_interface(address: int, dtype: DType, layout: Layout, is_writable: bool) -> dict[str, Any]:
    """The `__cuda_array_interface__` of elements at an address."""
    return {
        "shape": layout.shape,
        "strides": tuple(s * dtype.itemsize for s in layout.strides),
        "typestr": "|b1" if dtype is bool_ else np.dtype(dtype.numpy).str,
        "data": (address, not is_writable),
        "version": 3,
        "stream": LEGACY_STREAM,
    }


def import_array(source: Any) -> tuple[DeviceBuffer, DType, Layout, int]:
    """The memory of another library's array: buffer, dtype, layout, and the number of the GPU.

    Raises
    ------
    DTypeError
        Its elements are of a type that minifuse does not have.
    """
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_any_interface(source, stream_ptr=LEGACY_STREAM)
    dtype = BY_NUMPY.get(np.dtype(view.dtype)) if view.dtype is not None else None
    if dtype is None:
        raise DTypeError(f"an array of dtype {view.dtype} cannot become a tensor; convert it first, as with astype(...)")
    shape = tuple(view.shape)
    layout = row_major(shape) if view.strides is None else Layout(shape, tuple(view.strides), 0)
    low, high = layout.span()
    nbytes = (high - low) * dtype.itemsize
    buffer = DeviceBuffer((source, view), view.ptr + low * dtype.itemsize, nbytes)
    buffer.is_writable = not view.readonly
    return buffer, dtype, layout, int(view.device_id)

"""Exchange GPU arrays with other libraries without a copy, by DLPack and `__cuda_array_interface__`.

All libraries use the legacy default stream unless told otherwise, and so does minifuse. Work runs in the order in which it
was enqueued, so no library has to wait. The receiver of an array keeps the sender's array alive.
"""

import ctypes
from sys import getrefcount
from typing import NamedTuple

import numpy as np

from ....core.dtypes import BY_NUMPY, DType, bool_
from ....core.errors import DTypeError
from ....core.layout import Layout, row_major
from .gpu import DeviceBuffer

DLPACK_CUDA = 2  # device type in DLPack
LEGACY_STREAM = 1  # number of the legacy default stream in `__cuda_array_interface__`
UNCLAIMED_NAME = b"dltensor"  # name of a capsule that no library has consumed
UNCLAIMED_REFERENCES = 2  # to an unclaimed capsule: from its entry, and from the argument of getrefcount
DLPACK_TYPE_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # by NumPy's kind


class DLDevice(ctypes.Structure):
    """DLPack's struct DLDevice."""

    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    """DLPack's struct DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLManagedTensor(ctypes.Structure):
    """DLPack's struct DLManagedTensor, with the DLTensor inline."""


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
    """A capsule, and the objects that must exist until no library uses its contents."""

    capsule: object
    parts: tuple[object, ...]


exported_capsules: dict[int, ExportedCapsule] = {}  # by address of the struct


def _release_export(managed: "ctypes._Pointer[DLManagedTensor]") -> None:
    exported_capsules.pop(ctypes.addressof(managed.contents), None)


release_export = DELETER(_release_export)  # must exist as long as any exported struct


def export_capsule(
    owner: object, address: int, dtype: DType, layout: Layout, device: int, kind: int = DLPACK_CUDA
) -> object:
    """Return a DLPack capsule of elements at an address of a device. It keeps `owner` alive."""
    release_unclaimed()
    ndim = len(layout.shape)
    shape, strides = (ctypes.c_int64 * ndim)(*layout.shape), (ctypes.c_int64 * ndim)(*layout.strides)
    data_type = DLDataType(DLPACK_TYPE_CODES[dtype.numpy.kind], 8 * dtype.itemsize, 1)
    managed = DLManagedTensor(address, DLDevice(kind, device), ndim, data_type, shape, strides, 0, None, release_export)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new_capsule(ctypes.addressof(managed), UNCLAIMED_NAME, None)
    exported_capsules[ctypes.addressof(managed)] = ExportedCapsule(capsule, (managed, shape, strides, owner))
    return capsule


def release_unclaimed() -> None:
    """Release capsules that no other object references. A destructor written in Python would clear a pending error."""
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
    for address, exported in list(exported_capsules.items()):
        # a library that consumes a capsule renames it
        if getrefcount(exported.capsule) == UNCLAIMED_REFERENCES and is_valid(exported.capsule, UNCLAIMED_NAME):
            exported_capsules.pop(address, None)


def require_no_copy(
    name: str, device: tuple[int, int], dl_device: tuple[int, int] | None = None, copy: bool | None = None, **_: object
) -> None:
    """Raise BufferError, as the protocol requires, if a copy or another device is requested."""
    if copy or dl_device not in (None, device):
        raise BufferError(
            f'DLPack: a tensor on {name} is exported without a copy, to its own device only; call x.to("parallel") first'
        )


def array_interface(address: int, dtype: DType, layout: Layout, is_writable: bool) -> dict[str, object]:
    """Return the `__cuda_array_interface__` of elements at an address."""
    return {
        "shape": layout.shape,
        "strides": tuple(s * dtype.itemsize for s in layout.strides),
        "typestr": "|b1" if dtype is bool_ else np.dtype(dtype.numpy).str,
        "data": (address, not is_writable),
        "version": 3,
        "stream": LEGACY_STREAM,
    }


def import_array(source: object) -> tuple[DeviceBuffer, DType, Layout, int]:
    """Return the memory of another library's array: buffer, dtype, layout, and the number of the GPU.

    Raises
    ------
    DTypeError
        minifuse has no dtype for its elements.
    """
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_any_interface(source, stream_ptr=LEGACY_STREAM)
    dtype = BY_NUMPY.get(np.dtype(view.dtype)) if view.dtype is not None else None
    if dtype is None:
        raise DTypeError(
            f"an array of dtype {view.dtype} cannot become a tensor; convert it first, for example with astype('float32')"
        )
    shape = tuple(view.shape)
    layout = row_major(shape) if view.strides is None else Layout(shape, tuple(view.strides), 0)
    low, high = layout.span()
    nbytes = (high - low) * dtype.itemsize
    buffer = DeviceBuffer((source, view), view.ptr + low * dtype.itemsize, nbytes)
    buffer.is_writable = not view.readonly
    return buffer, dtype, layout, int(view.device_id)

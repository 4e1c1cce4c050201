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

GPU, LEGACY_STREAM = 2, 1  # as DLPack and the interface number them
NAME = b"dltensor"  # of a capsule that nobody took yet
ALONE = 3  # references: of the entry, of the loop over it, and of the count itself
CODES = {"i": 0, "f": 2, "b": 6}  # of kinds of numbers


class Device(ctypes.Structure):
    """DLDevice."""

    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Managed(ctypes.Structure):
    """DLManagedTensor, with the DLTensor in its place."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = (
    ("data", ctypes.c_void_p),
    ("device", Device),
    ("ndim", ctypes.c_int32),
    ("dtype", DataType),
    ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("context", ctypes.c_void_p),
    ("deleter", DELETER),
)


class Lent(NamedTuple):
    """What lives as long as somebody has a capsule, or took what is in it."""

    capsule: Any
    parts: tuple[Any, ...]


lent: dict[int, Lent] = {}  # by the address of the struct


def _give_back(managed: Any) -> None:
    lent.pop(ctypes.addressof(managed.contents), None)


give_back = DELETER(_give_back)  # lives as long as the module


def capsule_of(owner: Any, address: int, dtype: DType, layout: Layout, device: int, kind: int = GPU) -> Any:
    """A DLPack capsule of elements at an address of a device; it keeps `owner` alive."""
    forget_what_nobody_took()
    ndim = len(layout.shape)
    shape, strides = (ctypes.c_int64 * ndim)(*layout.shape), (ctypes.c_int64 * ndim)(*layout.strides)
    number = DataType(CODES[dtype.numpy.kind], 8 * dtype.itemsize, 1)
    managed = Managed(address, Device(kind, device), ndim, number, shape, strides, 0, None, give_back)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = make(ctypes.addressof(managed), NAME, None)
    lent[ctypes.addressof(managed)] = Lent(capsule, (managed, shape, strides, owner))
    return capsule


def forget_what_nobody_took() -> None:
    """Let go of capsules that only this module still has. A destructor in Python would lose a pending error."""
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
    for place, (capsule, _) in list(lent.items()):
        if getrefcount(capsule) == ALONE and is_valid(capsule, NAME):  # one that was taken has another name
            lent.pop(place, None)


def refuse_copies(
    name: str, device: tuple[int, int], dl_device: tuple[int, int] | None = None, copy: bool | None = None, **_: Any
) -> None:
    """Raise where the memory itself is not what is asked for, as the protocol wants it: a BufferError."""
    if copy or dl_device not in (None, device):
        raise BufferError(f'DLPack: a tensor on {name} is given as it is; use x.to("parallel") first')


def interface_of(address: int, dtype: DType, layout: Layout, is_writable: bool) -> dict[str, Any]:
    """The `__cuda_array_interface__` of elements at an address."""
    return {
        "shape": layout.shape,
        "strides": tuple(s * dtype.itemsize for s in layout.strides),
        "typestr": "|b1" if dtype is bool_ else np.dtype(dtype.numpy).str,
        "data": (address, not is_writable),
        "version": 3,
        "stream": LEGACY_STREAM,
    }


def taken(source: Any) -> tuple[DeviceBuffer, DType, Layout, int]:
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

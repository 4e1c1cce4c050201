"""Tensor maps: what the copy engine of a Hopper GPU knows of an operand, as 128 bytes of device memory.

A map says where an array lies, its sizes and strides, and how large a box one copy brings. It holds the address, so there is
one for each address that an operand has had; those of the last few are kept, since the pool gives the same memory again.
"""

from collections import OrderedDict
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from . import driver

NBYTES, ALIGNMENT = 128, 64  # of a map
MAX_CACHED_MAPS = 4096  # maps
SWIZZLED = 128  # bytes of the innermost side of a box, whose 16-byte pieces are put in another order in each row
DIMS = 4  # two of the matrix, two of the batch
TENSOR_MAP_TYPES = {"tf32": "TFLOAT32", "bf16": "BFLOAT16"}  # float32 is rounded to tf32 on the way
ITEMSIZE = {"tf32": 4, "bf16": 2}


class TensorMapBox(NamedTuple):
    """An operand as the copy engine sees it, but for its address; the innermost dim is contiguous."""

    kind: str  # "tf32" or "bf16"
    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int]  # bytes, of all dims but the first
    box: tuple[int, int]  # elements along the first two dims


class TensorMaps:
    """The maps of a device, by what they say and the address that they say it of."""

    def __init__(self, device: Any) -> None:
        self.device, self.known, self.lock = device, OrderedDict[tuple[TensorMapBox, int], Any](), Lock()

    def find(self, box: TensorMapBox, address: int) -> Any:
        """The memory in which a map lies; it must live as long as launches that use it."""
        key = box, address
        with self.lock:
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = self.made(box, address)
                if len(self.known) > MAX_CACHED_MAPS:
                    self.known.popitem(last=False)
            else:
                self.known.move_to_end(key)
        return found

    def made(self, box: TensorMapBox, address: int) -> Any:
        """A new map, on the device."""
        buffer = self.device.pool.allocate(NBYTES)
        self.device.copy_in(encode(self.device.bindings, box, address), buffer.address)
        return buffer


def encode(bindings: Any, box: TensorMapBox, address: int) -> np.ndarray[Any, Any]:
    """The 128 bytes of a map, as the driver writes them."""
    number = bindings.cuuint64_t, bindings.cuuint32_t
    found = driver.check(
        bindings.cuTensorMapEncodeTiled(
            getattr(bindings.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{TENSOR_MAP_TYPES[box.kind]}"),
            DIMS,
            address,
            [number[0](n) for n in box.sizes],
            [number[0](n) for n in box.strides],
            [number[1](n) for n in (*box.box, 1, 1)],
            [number[1](1)] * DIMS,
            bindings.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            bindings.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            bindings.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return np.array([int(word) for word in found.opaque], np.uint64)

"""Tensor maps: 128-byte descriptions of operands in device memory, for the copy engine of a Hopper GPU.

A map contains the address of an array, its sizes and strides, and the size of the box that one copy transfers. Each address
of an operand has its own map. The most recently used maps are cached, since the memory pool reuses addresses.
"""

from collections import OrderedDict
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....runtime.memory_pool import MemoryBuffer
from . import driver

if TYPE_CHECKING:
    from .gpu import GpuDevice

MAP_BYTES = 128
MAX_CACHED_MAPS = 4096
DIMS = 4  # two for the matrix, two for the batch
TENSOR_MAP_TYPES = {"tf32": "TFLOAT32", "bf16": "BFLOAT16"}  # the copy rounds float32 to tf32
ITEMSIZE = {"tf32": 4, "bf16": 2}


class TensorMapBox(NamedTuple):
    """A tensor map without the address of the operand. The innermost dim is contiguous."""

    kind: str  # "tf32" or "bf16"
    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int]  # in bytes, of all dims but the first
    box: tuple[int, int]  # elements along the first two dims


class TensorMaps:
    """The cached maps of a device, by contents and address."""

    def __init__(self, device: "GpuDevice") -> None:
        self.device, self.cache, self.lock = device, OrderedDict[tuple[TensorMapBox, int], MemoryBuffer](), Lock()

    def find(self, box: TensorMapBox, address: int) -> MemoryBuffer:
        """Return the memory that contains a map. The caller must keep it allocated until its launches have ended."""
        key = box, address
        with self.lock:
            tensor_map = self.cache.get(key)
            if tensor_map is None:
                tensor_map = self.cache[key] = self.make_map(box, address)
                if len(self.cache) > MAX_CACHED_MAPS:
                    self.cache.popitem(last=False)
            else:
                self.cache.move_to_end(key)
        return tensor_map

    def make_map(self, box: TensorMapBox, address: int) -> MemoryBuffer:
        """Copy a new map to the device."""
        buffer = self.device.pool.allocate(MAP_BYTES)
        self.device.copy_in(encode(self.device.bindings, box, address), buffer.address)
        return buffer


def encode(bindings: ModuleType, box: TensorMapBox, address: int) -> NDArray[np.uint64]:
    """Return the 128 bytes of a map, as the driver encodes them."""
    uint64, uint32 = bindings.cuuint64_t, bindings.cuuint32_t
    tensor_map = driver.check(
        bindings.cuTensorMapEncodeTiled(
            getattr(bindings.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{TENSOR_MAP_TYPES[box.kind]}"),
            DIMS,
            address,
            [uint64(n) for n in box.sizes],
            [uint64(n) for n in box.strides],
            [uint32(n) for n in (*box.box, 1, 1)],
            [uint32(1)] * DIMS,
            bindings.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            bindings.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            bindings.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return np.array([int(word) for word in tensor_map.opaque], np.uint64)

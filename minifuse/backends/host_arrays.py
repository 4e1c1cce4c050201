"""Read and write the memory of a backend as NumPy arrays: a view of host memory, a copy of a device's."""

from typing import TYPE_CHECKING

import numpy as np

from ..core.dtypes import DType
from ..core.layout import Layout
from ..ir.kernel_ir import Kernel, Load
from ..ir.steps import Step
from ..runtime.memory_pool import MemoryBuffer
from .operand import Operand

if TYPE_CHECKING:
    from .base import Backend


def fetch_array(backend: "Backend", address: int, dtype: DType, layout: Layout) -> np.ndarray:
    """Return the elements at an address as a NumPy array: a view of host memory, a copy of a device's."""
    if backend.is_host or not layout.size:
        return Operand.at_address(address, dtype, layout).array()
    return backend.to_numpy(MemoryBuffer(0), address, dtype, layout)


def store_array(backend: "Backend", array: np.ndarray, address: int, dtype: DType, layout: Layout) -> None:
    """Store a NumPy array at an address."""
    array = np.ascontiguousarray(array.astype(dtype.numpy, copy=False))
    if backend.is_host:
        Operand.at_address(address, dtype, layout).array()[...] = array
    elif array.size:
        buffer, source, source_layout = backend.from_numpy(array.reshape(layout.shape))
        copy = Step.of_layouts(Kernel((Load(0, dtype),), ()), layout.shape, (), [layout], [source_layout])
        backend.compile(copy).load()(address, source)
        del buffer  # the copy is enqueued, and the pool reuses memory in the order of the stream

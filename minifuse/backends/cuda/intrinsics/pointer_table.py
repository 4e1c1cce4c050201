"""Device functions that read pointers from a table of arrays.

`cuda/multi_tensor.py` documents the layout of the table. A kernel reads an address like any other int64, and these functions
convert it to a pointer.
"""

import numpy as np

from ....simt import Array, word
from ....simt.pointers import PointerTableArray
from ..tile_shapes import ITEMSIZE
from . import base
from .base import Intrinsic, intrinsic


def load_pointer(element: str) -> Intrinsic[Array]:
    """Return the intrinsic that reads a pointer to elements of one type from a table."""
    kind = getattr(base, element)
    stored = np.bool_ if element == "u8" else kind.python_semantics  # a bool is a byte

    @word
    def at(table: PointerTableArray, k: int) -> Array:
        """Return the memory whose address is table[k]."""
        return table.follow(k, stored)

    at.__name__ = f"{element}_at"
    return intrinsic("base_llvm.load_pointer", kind)(at)


DEVICE_FUNCTIONS = {f"{element}_at": load_pointer(element) for element in ITEMSIZE}

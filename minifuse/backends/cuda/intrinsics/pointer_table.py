"""Device functions that read pointers from a table of arrays.

`cuda/multi_tensor.py` documents the layout of the table. A kernel reads an address like any other int64, and these functions
convert it to a pointer.
"""

from ....core.dtypes import DTYPES, DType, bool_
from ....simt import Array, word
from ....simt.pointers import PointerTableArray
from . import base
from .base import Intrinsic, intrinsic


def pointer_function(dtype: DType) -> str:
    """Return the name of the function that reads a pointer to elements of one dtype: `f32_at`."""
    return f"{dtype.short.rstrip('_')}_at"


def load_pointer(dtype: DType) -> Intrinsic[Array]:
    """Return the intrinsic that reads a pointer to elements of one dtype from a table."""
    kind = base.u8 if dtype is bool_ else getattr(base, dtype.short)  # a bool is a byte

    @word
    def at(table: PointerTableArray, k: int) -> Array:
        """Return the memory whose address is table[k]."""
        return table.follow(k, dtype.numpy)

    at.__name__ = pointer_function(dtype)
    return intrinsic("base_llvm.load_pointer", kind)(at)


DEVICE_FUNCTIONS = {pointer_function(dtype): load_pointer(dtype) for dtype in DTYPES}

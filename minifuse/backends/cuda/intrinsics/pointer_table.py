"""Device functions that read pointers from a table of arrays.

`cuda/multi_tensor.py` documents the layout of the table. A kernel reads an address like any other int64, and these functions
convert it to a pointer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....simt import word
from . import base
from .base import Intrinsic, data_pointer, intrinsic

GLOBAL_SPACE = 1  # number of the address space in LLVM
ELEMENTS = "f32", "f64", "i32", "i64", "u8"


def _pointer_at_llvm(kind: Any) -> Callable[[], Any]:
    """Return a builder of the intrinsic that loads a pointer. The compiler must be told that it points to global memory."""

    def build() -> Any:
        from numba.core import types

        def pointer_at(typingctx: Any, table: Any, k: Any) -> Any:
            pointer: Any = types.CPointer  # untyped

            def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                address = builder.load(builder.gep(data_pointer(context, builder, table, values[0]), [values[1]]))
                anywhere = context.get_value_type(signature.return_type)
                return builder.addrspacecast(builder.inttoptr(address, anywhere.pointee.as_pointer(GLOBAL_SPACE)), anywhere)

            return pointer(kind.compiled)(table, k), emit

        return pointer_at

    return build


def pointer_at(element: str) -> Intrinsic:
    """Return the intrinsic that reads a pointer to elements of one type from a table."""
    kind = getattr(base, element)
    stored = np.bool_ if element == "u8" else kind.python_semantics  # a bool is a byte

    @word
    def at(table: Any, k: Any) -> Any:
        """Return the memory whose address is table[k]."""
        return table.follow(k, stored)

    at.__name__ = f"{element}_at"
    return intrinsic(_pointer_at_llvm(kind))(at)


DEVICE_FUNCTIONS = {f"{element}_at": pointer_at(element) for element in ELEMENTS}

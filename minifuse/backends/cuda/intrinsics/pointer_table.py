"""Words of kernels that walk a table of arrays: the pointers that stand in it.

What the table holds is said in `together`. A kernel reads an address like any int64; these words make a pointer of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....simt import word
from . import base
from .base import Intrinsic, data_pointer, intrinsic

GLOBAL_SPACE = 1  # the number of the address space
ELEMENTS = "f32", "f64", "i32", "i64", "u8"


def _pointer_at_llvm(kind: Any) -> Callable[[], Any]:
    """The LLVM of a pointer that is loaded: one to global memory, which the compiler has to be told."""

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
    """The word that takes a pointer to elements of a type out of a table."""
    kind = getattr(base, element)
    stored = np.bool_ if element == "u8" else kind.meaning  # a bool is a byte

    @word
    def at(table: Any, k: Any) -> Any:
        """The memory whose address is table[k]."""
        return table.follow(k, stored)

    at.__name__ = f"{element}_at"
    return intrinsic(_pointer_at_llvm(kind))(at)


DEVICE_FUNCTIONS = {f"{element}_at": pointer_at(element) for element in ELEMENTS}

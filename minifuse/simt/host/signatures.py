"""Signatures that a script passes to `cuda.jit`, and the conversion of arguments to them.

Numba itself parses the signatures. A kernel with a signature converts numbers, and takes only arrays of its types.
With a single signature, Numba does not check arrays, and reads float64 memory as float32. Here this is an error.
Signatures of device functions are ignored.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import DTypeError

if TYPE_CHECKING:
    from numba.core.types import Type

Signature = tuple["Type", ...]  # the types of the parameters


def parse_signatures(signatures: object) -> tuple[Signature, ...]:
    """Parse a signature (a string, a tuple of types, or a call of types), or a list of them."""
    from numba.core import sigutils

    parsed = []
    for signature in signatures if isinstance(signatures, list) else [signatures]:
        if not sigutils.is_signature(signature):
            raise DTypeError(
                f'cuda.jit: got {signature!r}; expected a function or a signature, such as "void(float32[:], int32)"'
            )
        parsed.append(tuple(sigutils.normalize_signature(signature)[0]))
    return tuple(parsed)


def convert_arguments(values: tuple[object, ...], signatures: tuple[Signature, ...], name: str) -> tuple[object, ...]:
    """Convert the arguments to the first signature that they match. Raise DTypeError if they match none."""
    errors = []
    for signature in signatures:
        try:
            return tuple(convert_argument(value, kind) for value, kind in zip(values, signature, strict=True))
        except (DTypeError, ValueError) as error:
            errors.append(str(error))
    expected = ", ".join(str(signature) for signature in signatures)
    raise DTypeError(
        f"{name}: the arguments do not match the signature {expected}: {errors[0]}; convert them before the launch"
    )


def convert_argument(value: Any, kind: "Type") -> object:
    """Convert one argument to its type in the signature."""
    from numba.core import types
    from numba.np.numpy_support import as_dtype

    unwrapped = getattr(value, "value", value)  # the value in cuda.In, cuda.Out or cuda.InOut
    if isinstance(kind, types.Array):
        expected = as_dtype(kind.dtype)
        if not hasattr(unwrapped, "dtype") or getattr(unwrapped, "ndim", None) != kind.ndim or unwrapped.dtype != expected:
            got = f"{unwrapped.dtype} of {unwrapped.ndim} dims" if hasattr(unwrapped, "ndim") else type(unwrapped).__name__
            raise DTypeError(f"expected an array of {expected} with {kind.ndim} dims, got {got}")
        if kind.layout != "A" and not unwrapped.flags[f"{kind.layout}_CONTIGUOUS"]:
            raise DTypeError(f"expected a contiguous array in order {kind.layout}, got strides {unwrapped.strides}")
        return value
    if isinstance(kind, types.Number | types.Boolean):
        if not isinstance(value, int | float | complex | np.generic):
            raise DTypeError(f"expected {kind}, got {type(value).__name__}")
        if isinstance(kind, types.Integer) and not isinstance(value, int | np.integer | np.bool_):
            raise DTypeError(f"expected {kind}, got {value!r}, which is not an integer")
        return as_dtype(kind).type(value)
    return value

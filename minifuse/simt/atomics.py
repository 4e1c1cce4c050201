"""`cuda.atomic`: read-modify-write operations on one element that no other thread can interrupt."""

from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from ..core.errors import SimtError, UnknownWordError
from .arithmetic import wrap_integer
from .lanes import lane_error, raise_unknown
from .memory import KernelArray

NUMERIC_DTYPES: Final = ["int32", "int64", "uint32", "uint64", "float32", "float64"]
INTEGER_DTYPES: Final = NUMERIC_DTYPES[:4]
UNSIGNED_DTYPES: Final = NUMERIC_DTYPES[2:4]
SUPPORTED_DTYPES: Final = {
    **dict.fromkeys(["and_", "or_", "xor", "exch", "cas", "compare_and_swap"], INTEGER_DTYPES),
    **dict.fromkeys(["inc", "dec"], UNSIGNED_DTYPES),
}


class AtomicFunctions:
    """`cuda.atomic`: atomic operations on one element. Each returns the old value."""

    @staticmethod
    def add(array: Any, index: Any, value: Any) -> Any:
        """`array[index] += value`."""
        return atomic_update("add", array, index, lambda old, new: old + new, value)

    @staticmethod
    def sub(array: Any, index: Any, value: Any) -> Any:
        """`array[index] -= value`."""
        return atomic_update("sub", array, index, lambda old, new: old - new, value)

    @staticmethod
    def and_(array: Any, index: Any, value: Any) -> Any:
        """`array[index] &= value`."""
        return atomic_update("and_", array, index, lambda old, new: old & new, value)

    @staticmethod
    def or_(array: Any, index: Any, value: Any) -> Any:
        """`array[index] |= value`."""
        return atomic_update("or_", array, index, lambda old, new: old | new, value)

    @staticmethod
    def xor(array: Any, index: Any, value: Any) -> Any:
        """`array[index] ^= value`."""
        return atomic_update("xor", array, index, lambda old, new: old ^ new, value)

    @staticmethod
    def inc(array: Any, index: Any, value: Any) -> Any:
        """Add 1, or set to 0 if the element is `value` or more."""
        return atomic_update("inc", array, index, lambda old, new: type(old)(0) if old >= new else old + type(old)(1), value)

    @staticmethod
    def dec(array: Any, index: Any, value: Any) -> Any:
        """Subtract 1, or set to `value` if the element is 0 or more than `value`."""
        return atomic_update(
            "dec", array, index, lambda old, new: new if old == 0 or old > new else old - type(old)(1), value
        )

    @staticmethod
    def exch(array: Any, index: Any, value: Any) -> Any:
        """`array[index] = value`."""
        return atomic_update("exch", array, index, lambda old, new: new, value)

    @staticmethod
    def max(array: Any, index: Any, value: Any) -> Any:
        """Store the larger of the two. A nan in memory stays."""
        return atomic_update("max", array, index, lambda old, new: new if new > old else old, value)

    @staticmethod
    def min(array: Any, index: Any, value: Any) -> Any:
        """Store the smaller of the two. A nan in memory stays."""
        return atomic_update("min", array, index, lambda old, new: new if new < old else old, value)

    @staticmethod
    def nanmax(array: Any, index: Any, value: Any) -> Any:
        """Store the larger of the two. nan is ignored."""
        return atomic_update("nanmax", array, index, lambda old, new: new if new > old or old != old else old, value)

    @staticmethod
    def nanmin(array: Any, index: Any, value: Any) -> Any:
        """Store the smaller of the two. nan is ignored."""
        return atomic_update("nanmin", array, index, lambda old, new: new if new < old or old != old else old, value)

    @staticmethod
    def cas(array: Any, index: Any, old: Any, value: Any) -> Any:
        """Set `array[index] = value` if it is `old`."""
        return atomic_update(
            "cas", array, index, lambda found, expected, new: new if found == expected else found, old, value
        )

    @staticmethod
    def compare_and_swap(array: Any, old: Any, value: Any) -> Any:
        """Do `cas` on the first element."""
        first = (0,) * array.ndim if isinstance(array, KernelArray) else 0
        return atomic_update(
            "compare_and_swap", array, first, lambda found, expected, new: new if found == expected else found, old, value
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.atomic.{name}")


def atomic_update(name: str, array: Any, index: Any, change: Callable[..., Any], *operands: Any) -> Any:
    """Run an atomic operation, with the operands converted to the element type of the array."""
    if not isinstance(array, KernelArray):
        raise lane_error(
            SimtError,
            f"cuda.atomic.{name} on a {type(array).__name__}",
            "pass an array and an index",
        )
    dtype, known = array.dtype, SUPPORTED_DTYPES.get(name, NUMERIC_DTYPES)
    if dtype.name not in known:
        raise lane_error(UnknownWordError, f"cuda.atomic.{name} on elements of {dtype}", f"supported are {', '.join(known)}")
    if dtype.kind == "f":
        values = [dtype.type(operand) for operand in operands]
    else:
        values = [wrap_integer(operand, dtype) for operand in operands]
        if dtype.name == "uint64":
            values = [np.uint64(value) for value in values]
    return array.update(index, lambda old: change(old, *values))

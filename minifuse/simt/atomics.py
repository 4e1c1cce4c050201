"""`cuda.atomic`: read-modify-write operations on one element that no other thread can interrupt."""

from collections.abc import Callable
from typing import Final, NoReturn

import numpy as np

from ..core.errors import SimtError, UnknownWordError
from .arithmetic import RealNumber, wrap_integer
from .lanes import lane_error, raise_unknown
from .memory import ElementIndex, KernelArray

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
    def add(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] += value`."""
        return atomic_update("add", array, index, lambda stored, operand: stored + operand, value)

    @staticmethod
    def sub(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] -= value`."""
        return atomic_update("sub", array, index, lambda stored, operand: stored - operand, value)

    @staticmethod
    def and_(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] &= value`."""
        return atomic_update("and_", array, index, lambda stored, operand: stored & operand, value)

    @staticmethod
    def or_(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] |= value`."""
        return atomic_update("or_", array, index, lambda stored, operand: stored | operand, value)

    @staticmethod
    def xor(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] ^= value`."""
        return atomic_update("xor", array, index, lambda stored, operand: stored ^ operand, value)

    @staticmethod
    def inc(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Add 1, or set to 0 if the element is `value` or more."""
        return atomic_update(
            "inc",
            array,
            index,
            lambda stored, limit: type(stored)(0) if stored >= limit else stored + type(stored)(1),
            value,
        )

    @staticmethod
    def dec(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Subtract 1, or set to `value` if the element is 0 or more than `value`."""
        return atomic_update(
            "dec",
            array,
            index,
            lambda stored, limit: limit if stored == 0 or stored > limit else stored - type(stored)(1),
            value,
        )

    @staticmethod
    def exch(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """`array[index] = value`."""
        return atomic_update("exch", array, index, lambda stored, operand: operand, value)

    @staticmethod
    def max(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Store the larger of the element and `value`. A nan in memory is kept."""
        return atomic_update("max", array, index, lambda stored, operand: operand if operand > stored else stored, value)

    @staticmethod
    def min(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Store the smaller of the element and `value`. A nan in memory is kept."""
        return atomic_update("min", array, index, lambda stored, operand: operand if operand < stored else stored, value)

    @staticmethod
    def nanmax(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Store the larger of the element and `value`. A nan is ignored."""
        return atomic_update(
            "nanmax",
            array,
            index,
            lambda stored, operand: operand if operand > stored or stored != stored else stored,
            value,
        )

    @staticmethod
    def nanmin(array: object, index: ElementIndex, value: RealNumber) -> RealNumber:
        """Store the smaller of the element and `value`. A nan is ignored."""
        return atomic_update(
            "nanmin",
            array,
            index,
            lambda stored, operand: operand if operand < stored or stored != stored else stored,
            value,
        )

    @staticmethod
    def cas(array: object, index: ElementIndex, old: RealNumber, value: RealNumber) -> RealNumber:
        """Set `array[index] = value` if the element is `old`."""
        return atomic_update(
            "cas", array, index, lambda stored, expected, new: new if stored == expected else stored, old, value
        )

    @staticmethod
    def compare_and_swap(array: object, old: RealNumber, value: RealNumber) -> RealNumber:
        """Do `cas` on the first element."""
        first_index = (0,) * array.ndim if isinstance(array, KernelArray) else 0
        return atomic_update(
            "compare_and_swap",
            array,
            first_index,
            lambda stored, expected, new: new if stored == expected else stored,
            old,
            value,
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise_unknown(f"cuda.atomic.{name}")


def atomic_update(
    name: str, array: object, index: ElementIndex, change: Callable[..., RealNumber], *operands: RealNumber
) -> RealNumber:
    """Run an atomic operation, with the operands converted to the element type of the array."""
    if not isinstance(array, KernelArray):
        raise lane_error(
            SimtError,
            f"cuda.atomic.{name} on a {type(array).__name__}",
            "pass an array and an index",
        )
    dtype, supported_dtypes = array.dtype, SUPPORTED_DTYPES.get(name, NUMERIC_DTYPES)
    if dtype.name not in supported_dtypes:
        raise lane_error(
            UnknownWordError, f"cuda.atomic.{name} on elements of {dtype}", f"supported are {', '.join(supported_dtypes)}"
        )
    if dtype.kind == "f":
        values: list[RealNumber] = [dtype.type(operand) for operand in operands]
    else:
        values = [wrap_integer(operand, dtype) for operand in operands]
        if dtype.name == "uint64":
            values = [np.uint64(value) for value in values]
    return array.update(index, lambda old: change(old, *values))

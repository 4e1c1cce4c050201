"""Check that an array of indices is in range: at once on a host, and in the kernel that reads it on a device.

To look at the values on a device, the host would wait for it, and a kernel of its own would read the index once more. So a
device checks in the kernel that reads the index anyway: an index out of range is noted, selects NaN (0 for integers) or
stores nothing, and the next time that values are read raises the error.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.dispatch import active_tracer
from ..core.dtypes import int64
from ..core.errors import DTypeError, IndexingError
from ..core.interning import Interned
from ..core.operator_entry import unlisted_operator
from .array_functions import BoundFunction

if TYPE_CHECKING:
    from .array_methods import Array


MIN_CHECKED_IN_KERNEL = 1 << 17  # elements of an index in host memory that a kernel checks faster than NumPy


class IndexCheck(NamedTuple):
    """The range of an index: low <= index < size. The name of the function and the dim are for the error."""

    name: str
    size: int
    dim: int
    low: int

    def error(self, index: int, location: str = "", advice: str = "") -> IndexingError:
        """Return the error for an index that is out of range."""
        valid = f"expected {self.low} to {self.size - 1}" if self.size else "it has no elements"
        return IndexingError(
            f"{self.name}: index {index}{location} is out of range for dim {self.dim} of size {self.size}; {valid}{advice}"
        )


class CheckedIndex:
    """An index that the call which gets it checks, and the address where its kernel notes one out of range."""

    __slots__ = ("address", "array", "check")

    def __init__(self, array: "Array", address: int, check: IndexCheck) -> None:
        self.array, self.address, self.check = array, address, check

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the index."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self.array.ndim

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.array.dtype

    def checked(self) -> "Array":
        """Check the index before the call, and return it."""
        require_in_range(self.check.name, self.array, self.check.size, self.check.dim, self.check.low)
        return self.array


def require_integer_index(name: str, index: object) -> None:
    """Raise DTypeError unless an index is an array of int64 or int32."""
    dtype = getattr(index, "dtype", None)
    if not getattr(dtype, "is_index", False):
        got = type(index).__name__ if dtype is None else str(dtype)
        raise DTypeError(
            f"{name}: got an index of {got}, expected a tensor of int64 or int32; use mf.tensor or .to(mf.int64)"
        )


def in_range(name: str, index: Any, size: int, dim: int, low: int = 0) -> Any:
    """Return an index for one call that checks low <= index < size; on a host, the index itself, which is checked here.

    While tracing, values do not exist and are not checked.
    """
    if size and active_tracer() is None and hasattr(index, "meta"):
        check = IndexCheck(name, size, dim, low)
        address = index.meta.backend.note_address(check)
        if address is not None:
            return CheckedIndex(index, address, check)
    require_in_range(name, index, size, dim, low)
    return index


def require_in_range(name: str, index: Any, size: int, dim: int, low: int = 0) -> None:
    """Raise IndexingError unless low <= index < size everywhere. The index is a tensor, or an array of NumPy.

    While tracing, values do not exist and are not checked. This reads the index, so it waits for a device.
    """
    if hasattr(index, "numpy"):
        if active_tracer() is not None or not hasattr(index, "meta"):
            return
        backend = index.meta.backend
        is_fast = backend.has_roofline and index.size >= MIN_CHECKED_IN_KERNEL
        if (is_fast or not backend.is_host) and not is_outside(index, size, low):  # from a device, only one bool is copied
            return
        index = index.numpy()
    if not index.size or (index.min() >= low and index.max() < size):
        return
    position = np.argwhere((index < low) | (index >= size))[0]
    location = f" at [{', '.join(map(str, position))}]" if index.ndim else ""
    raise IndexCheck(name, size, dim, low).error(index[tuple(position)], location)


def is_outside(index: "Array", size: int, low: int) -> bool:
    """Return whether an index is outside of low <= index < size somewhere. One kernel reads it, where it is stored."""
    return bool(index.apply(BoundFunction(_outside, (size, low)), index))


def _outside(index: "Array", size: int, low: int) -> "Array":
    return ((index < low) | (index >= size)).any()


# Calls that check their indices.


def check_in_kernel(function: Any, inputs: Sequence[object]) -> tuple[Any, list[object]]:
    """Return a function that first checks its indices, and its inputs: arrays for indices, then the addresses of notes."""
    places = [k for k, x in enumerate(inputs) if isinstance(x, CheckedIndex)]
    if not places:
        return function, [*inputs]
    ranges, arrays, addresses = [], [*inputs], list[object]()
    for k in places:
        index: Any = inputs[k]
        arrays[k] = index.array
        ranges.append((k, index.check.low, index.check.size))
        addresses.append(index.address)
    return CheckingFunction(function, tuple(ranges)), arrays + addresses


class CheckingFunction(metaclass=Interned):
    """A function of arrays that checks the ranges of some arguments. The addresses of notes are its last arguments."""

    __slots__ = ("__weakref__", "function", "ranges")

    def __init__(self, function: Any, ranges: tuple[tuple[int, int, int], ...]) -> None:
        self.function, self.ranges = function, ranges

    def __call__(self, *inputs: Any) -> Any:
        """Check each index, and call the function with the checked ones."""
        count = len(inputs) - len(self.ranges)
        arrays = [*inputs[:count]]
        for (k, low, size), address in zip(self.ranges, inputs[count:], strict=True):
            arrays[k] = note_outside(arrays[k].to(int64), low, size, address)
        return self.function(*arrays)

    @property
    def __name__(self) -> str:
        """The name of the function."""
        body = getattr(self.function, "body", self.function)
        return getattr(body, "__name__", None) or repr(body)


def _note(index: int, low: int, size: int, address: int) -> int:
    return index


_note.__name__ = "note_outside"
note_outside = unlisted_operator(_note, accepts="integers alone")

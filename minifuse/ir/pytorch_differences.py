"""Support PyTorch's habits that mean something else in minifuse, or raise errors that explain the difference.

* `x.size` is the number of elements, as in NumPy, and may be called, as in PyTorch.
* `x.max(dim)` returns the values, which have an attribute `indices`. In PyTorch it returns a pair, to unpack.
"""

import sys
from functools import lru_cache
from math import prod
from opcode import opmap
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..core.errors import ShapeError, users_line
from ..core.indexing import normalize_dim

if TYPE_CHECKING:
    from .array_methods import Array

CACHE_OPCODE, UNPACK_OPCODE, ATTRIBUTE_OPCODE = (opmap[name] for name in ("CACHE", "UNPACK_SEQUENCE", "LOAD_ATTR"))
MAX_CACHED_SHAPES = 10_000  # cached results of `size_of`, one per shape


class Size(int):
    """The number of elements: an int. Calling it, as in PyTorch, returns the shape: `x.size()`, or one size: `x.size(0)`."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the shape, or the size of a dim."""
        return self.shape if dim is None else self.shape[normalize_dim(dim, len(self.shape))]

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


@lru_cache(MAX_CACHED_SHAPES)
def size_of(shape: tuple[int, ...]) -> Size:
    """Return the number of elements of a shape. Equal shapes return the same object, so it can be part of a cache key."""
    size = Size(prod(shape))
    size.shape = shape
    return size


def remember_indices(y: Any, x: "Array", method: str, dim: object) -> None:
    """Let the result of `x.max(dim)` have `indices`. Raise ShapeError if the caller unpacks it in two.

    The bytecode of the caller shows what is done with the result. If it is unpacked into two names, PyTorch's pair was
    expected. If an attribute is read at once, as in `(x * 2).max(1).indices`, the result keeps x alive; otherwise it has
    only a weak reference, so that a result never holds the memory of what it was reduced from.
    """
    frame = sys._getframe(3)
    code, k = frame.f_code.co_code, frame.f_lasti + 2
    while code[k] == CACHE_OPCODE:
        k += 2
    if code[k] == UNPACK_OPCODE and code[k + 1] == 2:
        name = method.removeprefix("arg")
        raise ShapeError(
            f"{users_line()}: values, indices = x.{name}(dim): {name} returns only the values; use y = x.{name}(dim), then "
            f"y.values and y.indices, or x.{method}(dim). For two rows, write a, b = x.{name}(dim).tolist()"
        )
    if hasattr(type(y), "reduced_from"):  # a tensor, not a graph node
        y.reduced_from = (x if code[k] == ATTRIBUTE_OPCODE else ref(x)), method, dim


def indices_of(y: "Array") -> "Array":
    """Return the indices of the elements that `y = x.max(dim)` has selected."""
    source, method, dim = getattr(y, "reduced_from", (None, "argmax", "dim"))
    x = source() if isinstance(source, ref) else source
    if x is None:
        raise AttributeError(f"indices: this is no result of x.max(dim), or x no longer exists; write x.{method}({dim})")
    result: Array = getattr(x, method)(dim)
    return result if result.shape == y.shape else result.reshape(y.shape)

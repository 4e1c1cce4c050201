"""Raise errors for PyTorch habits that mean something else in minifuse. The errors explain the difference.

* `x.size` is the number of elements, as in NumPy. In PyTorch it is a method.
* `x.max(dim)` returns only the values. In PyTorch it returns a pair, to unpack: `values, indices = x.max(1)`.
"""

import sys
from functools import lru_cache
from math import prod
from opcode import opmap
from typing import NoReturn

from ..core.errors import ShapeError, users_line

CACHE_OPCODE, UNPACK_OPCODE = opmap["CACHE"], opmap["UNPACK_SEQUENCE"]
MAX_CACHED_SHAPES = 10_000  # cached results of `size_of`, one per shape


class Size(int):
    """The number of elements: an int. Calling it, as in PyTorch, raises an error with the expression to write instead."""

    __slots__ = ()

    def __call__(self, *dim: object) -> NoReturn:
        """Raise ShapeError: the size is not a method."""
        expression = f"x.shape[{', '.join(map(str, dim))}]" if dim else "x.shape"
        raise ShapeError(f"size: x.size is the number of elements, {self}, not a method; write {expression}")

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


@lru_cache(MAX_CACHED_SHAPES)
def size_of(shape: tuple[int, ...]) -> Size:
    """Return the number of elements of a shape. Equal shapes return the same object, so it can be part of a cache key."""
    return Size(prod(shape))


def forbid_pair_unpacking(name: str) -> None:
    """Raise ShapeError if the calling method was called as `values, indices = x.max(dim)`.

    The bytecode of the caller shows it: the instruction after the call unpacks its result into two names. Any other use of
    the result is allowed, such as a loop over its rows.
    """
    frame = sys._getframe(2)
    code, k = frame.f_code.co_code, frame.f_lasti + 2
    while code[k] == CACHE_OPCODE:
        k += 2
    if code[k] == UNPACK_OPCODE and code[k + 1] == 2:
        raise ShapeError(
            f"{users_line()}: values, indices = x.{name}(dim): {name} returns only the values; the indices are "
            f"x.arg{name}(dim). For two rows, write a, b = x.{name}(dim).tolist(), or give the result a name first"
        )

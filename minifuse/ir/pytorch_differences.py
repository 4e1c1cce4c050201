"""Words of PyTorch that mean something else here, and would be misunderstood without an error.

* `x.size` is NumPy's: the number of elements. PyTorch's is a method.
* `x.max(dim)` returns the values alone. PyTorch's returns a pair, which is unpacked: `values, indices = x.max(1)`.
"""

import sys
from functools import lru_cache
from math import prod
from opcode import opmap
from typing import Any

from ..core.errors import ShapeError, users_line

CACHE_OPCODE, UNPACK_OPCODE = opmap["CACHE"], opmap["UNPACK_SEQUENCE"]
MAX_CACHED_SHAPES = 10_000  # shapes whose number of elements is remembered


class Size(int):
    """A number of elements: an int in all respects, but for an error that helps whoever calls it."""

    __slots__ = ()

    def __call__(self, *dim: Any) -> Any:
        """Raise: there is nothing to call."""
        instead = f"x.shape[{', '.join(map(str, dim))}]" if dim else "x.shape"
        raise ShapeError(f"size: x.size is the number of elements, {self}, and no method; write {instead}")

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


@lru_cache(MAX_CACHED_SHAPES)
def size_of(shape: tuple[int, ...]) -> Size:
    """Return the number of elements of a shape; each time the same object, so that it can be part of a key."""
    return Size(prod(shape))


def forbid_pair_unpacking(name: str) -> None:
    """Raise where the method that calls this was called as `values, indices = x.max(dim)`.

    The bytecode of the caller says so: the instruction after the call unpacks its result into two names. Any other use
    of the result, a loop over its rows too, is left alone.
    """
    frame = sys._getframe(2)
    code, k = frame.f_code.co_code, frame.f_lasti + 2
    while code[k] == CACHE_OPCODE:
        k += 2
    if code[k] == UNPACK_OPCODE and code[k + 1] == 2:
        raise ShapeError(
            f"{users_line()}: values, indices = x.{name}(dim): {name} returns the values alone; the indices are "
            f"x.arg{name}(dim). For two rows, write a, b = x.{name}(dim).tolist(), or give the result a name first"
        )

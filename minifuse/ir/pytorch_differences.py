"""Support PyTorch's habits that mean something else in minifuse, or raise errors that explain the difference.

* `x.size` is the number of elements, as in NumPy, and may be called, as in PyTorch.
* `x.max(dim)` returns the values, which have an attribute `indices`. In PyTorch it returns a pair, to unpack or to index.
"""

import sys
from functools import lru_cache
from math import prod
from opcode import opmap
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from ..core.errors import ShapeError, users_line, warn_user
from ..core.indexing import normalize_dim

if TYPE_CHECKING:
    from .array_methods import Array

EXTENDED_ARG = opmap["EXTENDED_ARG"]  # the high bits of the argument of the next instruction
CACHE_OPCODE, UNPACK_OPCODE, ATTRIBUTE_OPCODE = (opmap[name] for name in ("CACHE", "UNPACK_SEQUENCE", "LOAD_ATTR"))
CONSTANT_OPCODE, SMALL_INT_OPCODE = opmap["LOAD_CONST"], opmap.get("LOAD_SMALL_INT")  # the latter: from Python 3.14
# x[i]: an instruction of its own up to Python 3.13, and a binary operation with this argument from 3.14
SUBSCRIPT = (opmap["BINARY_SUBSCR"], None) if "BINARY_SUBSCR" in opmap else (opmap["BINARY_OP"], 26)
PAIR_INDEX = {0: ("first", "values", "x.{name}(dim)"), 1: ("second", "indices", "x.arg{name}(dim)")}
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


class CallerInstruction(NamedTuple):
    """An instruction of Python's bytecode, and the position of the one after it."""

    opcode: int
    argument: int
    end: int


def read_instruction(code: CodeType, start: int) -> CallerInstruction:
    """Read the instruction that begins at a position, or after the cache entries there."""
    text, k, high = code.co_code, start, 0
    while text[k] in (CACHE_OPCODE, EXTENDED_ARG):
        high = (high | text[k + 1]) << 8 if text[k] == EXTENDED_ARG else 0
        k += 2
    return CallerInstruction(text[k], high | text[k + 1], k + 2)


def read_index(code: CodeType, first: CallerInstruction) -> object:
    """Return the constant by which two instructions index a value, as in `x[0]`; None if they do something else."""
    if first.opcode not in (CONSTANT_OPCODE, SMALL_INT_OPCODE):
        return None
    opcode, argument, _ = read_instruction(code, first.end)
    if opcode != SUBSCRIPT[0] or SUBSCRIPT[1] not in (None, argument):
        return None
    return code.co_consts[first.argument] if first.opcode == CONSTANT_OPCODE else first.argument


def remember_indices(y: Any, x: "Array", method: str, dim: object) -> None:
    """Let the result of `x.max(dim)` have `indices`. Raise ShapeError if the caller unpacks it in two.

    The bytecode of the caller shows what is done with the result. If it is unpacked into two names, PyTorch's pair was
    expected; if it is indexed by 0 or 1, that is likely, and a warning says so. If an attribute is read at once, as in
    `(x * 2).max(1).indices`, the result keeps x alive; otherwise it has only a weak reference, so that a result never holds
    the memory of what it was reduced from.
    """
    frame = sys._getframe(3)
    following = read_instruction(frame.f_code, frame.f_lasti + 2)
    name = method.removeprefix("arg")
    if following.opcode == UNPACK_OPCODE and following.argument == 2:
        raise ShapeError(
            f"{users_line()}: values, indices = x.{name}(dim): {name} returns only the values; use y = x.{name}(dim), then "
            f"y.values and y.indices, or x.{method}(dim). For two rows, write a, b = x.{name}(dim).tolist()"
        )
    if hasattr(type(y), "reduced_from"):  # a tensor, not a graph node
        y.reduced_from = (x if following.opcode == ATTRIBUTE_OPCODE else ref(x)), method, dim
    if type(index := read_index(frame.f_code, following)) is int and index in PAIR_INDEX:
        row, part, advice = PAIR_INDEX[index]
        warn_user(
            f"x.{name}(dim)[{index}]: {name} returns only the values, so this is their {row} row; in PyTorch it is the "
            f"{part}. Write {advice.format(name=name)}; for the {row} row, write y = x.{name}(dim), then y[{index}]"
        )


def indices_of(y: "Array") -> "Array":
    """Return the indices of the elements that `y = x.max(dim)` has selected."""
    source, method, dim = getattr(y, "reduced_from", (None, "argmax", "dim"))
    x = source() if isinstance(source, ref) else source
    if x is None:
        raise AttributeError(f"indices: this is no result of x.max(dim), or x no longer exists; write x.{method}({dim})")
    result: Array = getattr(x, method)(dim)
    return result if result.shape == y.shape else result.reshape(y.shape)

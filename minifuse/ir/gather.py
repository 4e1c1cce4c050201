"""Parts of an array picked along a dim by an index, their gradient, and what an index may be.

A method of arrays, a function of NumPy and the embedding layer stand on `take`. How it is computed is not known here.
"""

from typing import Any

import numpy as np

from ..core.autograd import active_capture
from ..core.errors import DTypeError, IndexingError
from ..core.indexing import normalize_dim
from .array_functions import Function, ShapeDtype


class Gather(Function):
    """Parts of the first input along a dim, at the positions that the second input has: int64 or int32, of any shape.

    The shape of the index comes in the place of the dim. What the index names outside of the dim is NaN, of integers 0.
    """

    __slots__ = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def infer(self, x: Any, index: Any) -> ShapeDtype:
        """The shape with that of the index in the place of the dim."""
        return (*x.shape[: self.dim], *index.shape, *x.shape[self.dim + 1 :]), x.dtype

    def vjp(self, g: Any, y: Any, x: Any, index: Any) -> tuple[Any, ...]:
        """What was taken several times receives the sum."""
        return ScatterAdd(self.dim, x.shape[self.dim])(g, index), None

    def __repr__(self) -> str:
        return f"take along {self.dim}"


class ScatterAdd(Function):
    """Zeros, to which the first input is added along a dim, at the positions that the second input has: Take backwards.

    What shares a position adds up, in an order that is always the same; what is put outside the `size` of the dim is lost.
    """

    __slots__ = ("dim", "size")

    def __init__(self, dim: int, size: int) -> None:
        self.dim, self.size = dim, size

    def infer(self, x: Any, index: Any) -> ShapeDtype:
        """The shape with the dim in the place of those of the index."""
        return (*x.shape[: self.dim], self.size, *x.shape[self.dim + index.ndim :]), x.dtype

    def vjp(self, g: Any, y: Any, x: Any, index: Any) -> tuple[Any, ...]:
        """What arrived at the positions."""
        return Gather(self.dim)(g, index), None

    def __repr__(self) -> str:
        return f"put along {self.dim} of {self.size}"


class GatherND(Function):
    """Elements of the first input, at an index along each of its dims; that along `dim` may lie outside.

    What Take is to a kernel: point by point, so that views of it are views of the indices.
    """

    __slots__ = ("dim",)

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def infer(self, x: Any, *indices: Any) -> ShapeDtype:
        """The shape that the indices have."""
        return indices[0].shape, x.dtype

    def __repr__(self) -> str:
        return "at"


def take(name: str, x: Any, dim: int, index: Any) -> Any:
    """Parts of x along a dim, at the positions in an index of any shape, which comes in the place of the dim.

    `name` is what messages call the caller.

    Raises
    ------
    ShapeError
        There is no such dim.
    DTypeError
        The index is no array of int64 or int32.
    IndexingError
        A position is outside of the dim. Only where there are values to look at, which takes 3 us: of a function that is
        captured such a part is NaN, of integers 0, and receives no gradient. Nothing outside of x is ever read.
    """
    d = normalize_dim(dim, len(x.shape))
    require_integer_index(name, index)
    require_in_range(name, index, x.shape[d], d)
    return x.apply(Gather(d), x, index)


def require_integer_index(name: str, index: Any) -> None:
    """Raise if an index is no tensor of integers."""
    dtype = getattr(index, "dtype", None)
    if not getattr(dtype, "is_integer", False):
        got = type(index).__name__ if dtype is None else str(dtype)
        raise DTypeError(
            f"{name}: got an index of {got}, expected a tensor of int64 or int32; use mf.tensor or .to(mf.int64)"
        )


def require_in_range(name: str, index: Any, size: int, dim: int, low: int = 0) -> None:
    """Raise if a position is outside of a dim, from `low` on; where there are no values to look at, do nothing."""
    if hasattr(index, "numpy"):
        if active_capture() is not None or not hasattr(index, "spec"):
            return
        index = index.numpy()
    if not index.size or (index.min() >= low and index.max() < size):
        return
    place = np.argwhere((index < low) | (index >= size))[0]
    at = f" at [{', '.join(map(str, place))}]" if index.ndim else ""
    valid = f"expected {low} to {size - 1}" if size else "it has no elements"
    raise IndexingError(f"{name}: index {index[tuple(place)]}{at} is out of range for dim {dim} of size {size}; {valid}")

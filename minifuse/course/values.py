"""Tensors without history, the arguments and results of tasks 2.4 and later. Slots compute everything."""

from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..core.errors import ShapeError
from ..core.indexing import Shape
from .strided import Array, Strided

Numbers = npt.ArrayLike | Strided
"""A number, nested lists, an array, or a tensor of the course."""
Operand = Strided | Shape | float
"""An argument of a loop: a tensor, or a setting such as a dim, a start, a stride or a padding."""


class ValueEngine(Protocol):
    """The engine of `Values`: it allocates results, and runs the loops of slots over them."""

    def slot(self, name: str) -> Any:
        """Return the function of a slot."""

    def values(self, x: "Numbers | Values") -> "Values":
        """Convert numbers, nested lists, an array or a `Strided` to `Values`; return `Values` unchanged."""
        if isinstance(x, Values):
            return x
        if isinstance(x, Strided):
            return Values(self, x)
        array = np.array(x, np.float64)
        out = self.fresh(array.shape)
        out.storage[: array.size] = array.ravel()
        return Values(self, out)

    def fresh(self, shape: Shape) -> Strided:
        """Allocate a result in row-major order."""
        shape = tuple(shape)
        return Strided(np.empty(max(prod(shape), 1)), shape, self.slot("row_major_strides")(shape), 0)

    def loop(self, kind: str, name: str, out: Strided, a: Strided, *operands: Operand) -> None:
        """Run map, zip or reduce with an operator."""

    def write(self, slot: str, out: Strided, *operands: Operand) -> None:
        """Let a slot write a tensor."""

    def matmul(self, a: "Values", b: "Values") -> "Values":
        """Multiply matrices."""


class Values:
    """A tensor without history; `data` is its `Strided`.

    Examples
    --------
    >>> from minifuse.course.engine import Engine
    >>> x = Engine().values([[1.0, 2.0], [3.0, 4.0]])
    >>> x.zip("mul", x).reduce("add", 0, 0.0).tolist()
    [[10.0, 20.0]]
    """

    __array_ufunc__ = None  # so that NumPy calls __rmul__ for `array * values`
    __slots__ = ("data", "engine")

    def __init__(self, engine: ValueEngine, data: Strided) -> None:
        self.engine, self.data = engine, data

    def __repr__(self) -> str:
        return f"Values({self.tolist()})"

    @property
    def shape(self) -> Shape:
        """Return the sizes of the dims."""
        return self.data.shape

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.data.shape)

    def array(self) -> Array:
        """Return the elements as a NumPy array over the same storage."""
        return self.data.array()

    def tolist(self) -> Any:  # of as many levels as there are dims
        """Return the elements as nested lists."""
        return self.array().tolist()

    def item(self) -> float:
        """Return the element of a tensor with one element."""
        return self.at(*[0] * len(self.shape))

    def at(self, *index: int) -> float:
        """Return one element, located by task 2.1."""
        position = self.engine.slot("position_of")(index, self.data.strides, self.data.offset)
        return float(self.data.storage[position])

    def map(self, name: str) -> "Values":
        """Apply an operator of task 0.1 to every element: `x.map("neg")`."""
        out = self.engine.fresh(self.shape)
        self.engine.loop("map", name, out, self.data)
        return Values(self.engine, out)

    def zip(self, name: str, other: "Values") -> "Values":
        """Apply an operator to two tensors, with broadcasting: `x.zip("mul", y)`."""
        out = self.engine.fresh(self.engine.slot("broadcast_shape")(self.shape, other.shape))
        self.engine.loop("zip", name, out, self.data, other.data)
        return Values(self.engine, out)

    def reduce(self, name: str, dim: int, start: float) -> "Values":
        """Reduce one dim to size 1 with an operator: `x.reduce("add", 0, 0.0)`."""
        dim = self.dim(dim)
        out = self.engine.fresh((*self.shape[:dim], 1, *self.shape[dim + 1 :]))
        self.engine.loop("reduce", name, out, self.data, dim, start)
        return Values(self.engine, out)

    def matmul(self, other: "Values") -> "Values":
        """Multiply matrices (..., m, k) and (..., k, n), broadcasting the leading dims."""
        if min(len(self.shape), len(other.shape)) < 2 or self.shape[-1] != other.shape[-2]:
            raise ShapeError(f"matmul: shapes {self.shape} and {other.shape}; expected (..., m, k) and (..., k, n)")
        return self.engine.matmul(self, other)

    def permute(self, *dims: int) -> "Values":
        """Return a view with permuted dims: dim d of the result is dim dims[d] of this tensor."""
        return Values(self.engine, self.engine.slot("permuted")(self.data, dims))

    def reshape(self, shape: Shape) -> "Values":
        """Return the elements in row-major order in another shape; copy them if they are not stored in this order."""
        shape = tuple(shape)
        if prod(shape) != self.size:
            raise ShapeError(f"reshape: {self.shape} to {shape}: {self.size} elements do not become {prod(shape)}")
        strides = self.engine.slot("row_major_strides")
        x = self if self.data.strides == strides(self.shape) else self.map("identity")
        return Values(self.engine, Strided(x.data.storage, shape, strides(shape), x.data.offset))

    def expand(self, shape: Shape) -> "Values":
        """Return a view of a larger shape, in which repeated dims have stride 0."""
        shape, own = tuple(shape), self.shape
        if self.engine.slot("broadcast_shape")(own, shape) != shape:
            raise ShapeError(f"expand: {own} to {shape}: only dims of size 1, and dims in front, can be repeated")
        lead = len(shape) - len(own)
        steps = zip(own, shape[lead:], self.data.strides, strict=True)
        strides = (0,) * lead + tuple(stride if old == size else 0 for old, size, stride in steps)
        return Values(self.engine, Strided(self.data.storage, shape, strides, self.data.offset))

    def dim(self, dim: int) -> int:
        """Check a dim, and return it counted from the front."""
        if not -len(self.shape) <= dim < len(self.shape):
            raise ShapeError(f"dim {dim} of shape {self.shape}; expected {-len(self.shape)} to {len(self.shape) - 1}")
        return dim % len(self.shape)

    def __add__(self, other: "Numbers | Values") -> "Values":
        return self.zip("add", self.engine.values(other))

    def __mul__(self, other: "Numbers | Values") -> "Values":
        return self.zip("mul", self.engine.values(other))

    def __neg__(self) -> "Values":
        return self.map("neg")

    def __sub__(self, other: "Numbers | Values") -> "Values":
        return self + -self.engine.values(other)

    def __rsub__(self, other: "Numbers | Values") -> "Values":
        return self.engine.values(other) - self

    __radd__, __rmul__ = __add__, __mul__

"""Shards: the part of a tensor that one of several ranks holds.

Descriptions only: no tensors, no files, no communication.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from .errors import ShapeError
from .even_parts import check_rank, even_range
from .indexing import Shape


@dataclass(frozen=True)
class Shard:
    """The part of a tensor that a rank holds.

    Parameters
    ----------
    shape : tuple of int
        The shape of the whole tensor.
    dim : int or None
        The dim that is divided. None: the flattened tensor is divided, and a part is 1-d.
    start, size : int
        The first index along `dim`, and the number of indices. Parts may have different sizes, and 0: a rank that holds
        nothing of a tensor of any shape has `Shard(shape, None, 0, 0)`.
    replica, replicas : int
        How many ranks hold this part, and the number of this one, from 0. They share the work of writing the part.
    order : int
        The dim that is moved to the front before the tensor is flattened, so that a part is a range of the flattened tensor.
        It is `dim`, and a choice only if that is None.

    Raises
    ------
    ShapeError
        The part is not inside the tensor.

    Examples
    --------
    >>> import minifuse as mf
    >>> shard = mf.Shard((10, 3), dim=0, start=8, size=2)
    >>> shard == mf.Shard.even((10, 3), rank=3, size=4), shard.local_shape
    (True, (2, 3))
    >>> shard.select(mf.arange(30).reshape(10, 3))
    tensor([[24, 25, 26],
            [27, 28, 29]])
    """

    shape: Shape
    dim: int | None
    start: int
    size: int
    replica: int = 0
    replicas: int = 1
    order: int = 0

    def __post_init__(self) -> None:
        if self.dim is not None:
            object.__setattr__(self, "order", self.dim)
        if not 0 <= self.order < max(len(self.shape), 1):
            raise ShapeError(f"Shard: got dim={self.order}, expected None or a dim of the shape {self.shape}")
        is_inside = self.start >= 0 <= self.size and self.start + self.size <= self.length
        if not is_inside or (not self.shape and self.dim is not None and self.size != 1):  # a 0-d tensor has one element
            raise ShapeError(
                f"Shard: got {self.size} indices from {self.start} on along dim {self.dim} of the shape {self.shape}, "
                f"expected indices from 0 to {self.length}"
            )
        check_rank("Shard", self.replica, self.replicas)

    @classmethod
    def even(cls, shape: Shape, rank: int, size: int, dim: int | None = 0) -> "Shard":
        """Return the part of a rank if `size` ranks share a tensor evenly. A 0-d tensor is held by all of them."""
        check_rank("Shard.even", rank, size)
        if not shape:
            return cls.whole(shape, rank, size)
        whole = cls(shape, dim, 0, 0)
        start, stop = even_range(whole.length, rank, size)
        return cls(shape, dim, start, stop - start)

    @classmethod
    def whole(cls, shape: Shape, replica: int = 0, replicas: int = 1) -> "Shard":
        """Return the part that is the whole tensor."""
        return cls(shape, 0, 0, shape[0] if shape else 1, replica, replicas)

    @property
    def length(self) -> int:
        """The number of indices of the whole tensor along `dim`."""
        return prod(self.shape) if self.dim is None or not self.shape else self.shape[self.dim]

    @property
    def local_shape(self) -> Shape:
        """The shape of the part."""
        if self.dim is None:
            return (self.size,)
        return (*self.shape[: self.dim], self.size, *self.shape[self.dim + 1 :]) if self.shape else ()

    @property
    def span(self) -> tuple[int, int]:
        """Start and stop of the part among all elements, flattened with dim `order` first."""
        row = prod(self.shape) // self.length if self.length else 0
        return self.start * row, (self.start + self.size) * row

    def select(self, x: Any) -> Any:
        """Return the part of a whole tensor or array: a view if possible."""
        if self.dim is None:
            return flatten(x, self.order)[self.start : self.start + self.size]
        return x[(slice(None),) * self.dim + (slice(self.start, self.start + self.size),)] if self.shape else x

    def part(self, start: int, size: int, replica: int = 0, replicas: int = 1) -> "Shard":
        """Return a part of this part: so many elements of it, flattened in its order.

        Examples
        --------
        >>> import minifuse as mf
        >>> columns = mf.Shard((2, 4), dim=1, start=2, size=2)
        >>> columns.part(1, 2).select(mf.arange(8).reshape(2, 4))
        tensor([6, 3])
        """
        return Shard(self.shape, None, self.span[0] + start, size, replica, replicas, self.order)


def flatten(x: Any, order: int) -> Any:
    """Flatten an array or a tensor, after moving the dim `order` to the front."""
    for d in range(order, 0, -1):
        x = x.swapaxes(d, d - 1)
    return x.reshape(-1)


def unflatten(flat: Any, shape: Shape, order: int) -> Any:
    """Undo `flatten`; the result may be a view with another layout."""
    x = flat.reshape((*shape[order : order + 1], *shape[:order], *shape[order + 1 :]))
    for d in range(order):
        x = x.swapaxes(d, d + 1)
    return x

"""Which tensors are shards: a tensor without a `Shard` is whole, and the same on all ranks."""

from typing import TYPE_CHECKING

from ..core.errors import ShapeError
from .tensor import Tensor

if TYPE_CHECKING:
    from ..core.shards import Shard


def set_shard(x: Tensor, shard: "Shard | None") -> Tensor:
    """Mark a tensor as the part of a larger one, and return it.

    Views and results of operations are not marked; `Module.state_dict` and `Optimizer.state_dict` keep the mark.

    Raises
    ------
    ShapeError
        The tensor has another shape than the part.

    Examples
    --------
    >>> import minifuse as mf
    >>> x = set_shard(mf.zeros(2, 3), mf.Shard((8, 3), dim=0, start=6, size=2))
    >>> shard_of(x).start, shard_of(x + 1)
    (6, None)
    """
    if shard is not None and x.shape != shard.local_shape:
        raise ShapeError(f"set_shard: got a tensor of shape {x.shape}, expected {shard.local_shape}, the shape of {shard}")
    x._shard = shard
    return x


def shard_of(x: Tensor) -> "Shard | None":
    """Return the mark of `set_shard`, or None."""
    shard: Shard | None = getattr(x, "_shard", None)
    return shard

"""Parameters of which each rank holds a part, and the whole that the parts are joined to.

A parameter keeps its placement: `average_gradients`, `share` and `optim.clip_grad_norm_` read it. Checkpoints read its
`Shard`; a shard of a shard has none yet, so models that are sharded twice have no sharded checkpoints.
"""

from typing import Any

from ..core.indexing import Shape
from ..core.shards import Shard, part_ranges
from ..ir.array_functions import A
from ..ir.placement import Placement, placement_of
from ..nn.module import Parameter
from ..tensors.shards import set_shard
from ..tensors.tensor import Tensor
from .functions import all_gather, axes_of
from .process_groups import ProcessGroup, mesh


def shard(x: Parameter, dim: int | None, group: ProcessGroup | None = None, shape: Shape | None = None) -> Parameter:
    """Return this rank's part of a parameter, as a parameter. It is reshaped first, if a shape is given.

    The part is one along a dim; with None, a part of the flattened parameter.
    """
    whole, axes = x.detach().reshape(shape or x.shape), axes_of(group)
    if axes is None:
        return Parameter(whole, x.requires_grad, placement_of(x))
    placement = Placement(axes, whole.shape, dim, placement_of(x))
    start, stop = part_ranges(placement.sizes)[ProcessGroup(axes.names).rank]
    divided = whole.reshape(-1) if dim is None else whole
    part = divided[(slice(None),) * (dim or 0) + (slice(start, stop),)]
    parameter = Parameter(part.clone(), x.requires_grad, placement)
    if placement.whole is None:
        others = ProcessGroup(tuple(name for name in mesh().sizes if name not in axes.names))
        own = Shard(whole.shape, dim, start, stop - start, others.rank, others.size)
        set_shard(parameter, own)  # for checkpoints
    return parameter


def full_tensor(x: Tensor) -> Tensor:
    """Return the whole parameter, of which each rank holds a part. All ranks of its group call this.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     layer = dist.RowParallelLinear(4, 3)
    ...     return layer.weight.shape, dist.full_tensor(layer.weight).shape
    >>> dist.simulate(2, program)[0]
    ((3, 2), (3, 4))
    """
    placement, y = placement_of(x), x.detach()
    while placement is not None:
        y = gather_part(y, placement)
        placement = placement.whole
    return y


def gather_part(x: A, placement: Placement) -> Any:
    """Join the parts of an array that a placement has divided."""
    y = all_gather(x, placement.dim or 0, ProcessGroup(placement.axes.names), placement.sizes)
    return y.reshape(placement.shape)

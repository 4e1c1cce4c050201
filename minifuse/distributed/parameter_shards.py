"""Parameters of which each rank holds a part, and the whole that the parts are joined to.

A parameter keeps its placement: `average_gradients`, `share` and `optim.clip_grad_norm_` read it. Checkpoints read its
`Shard`; a shard of a shard has none yet, so models that are sharded twice have no sharded checkpoints.
"""

from collections.abc import Callable
from typing import Any

from ..core.even_parts import part_ranges
from ..core.indexing import Shape
from ..core.shards import Shard
from ..ir.array_functions import A
from ..ir.placement import Placement, placement_of
from ..nn.module import Module, Parameter
from ..optim import Optimizer
from ..tensors.shards import set_shard, shard_of
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


def shards_of(model: Module, optimizer: Optimizer | None = None) -> Callable[[str, Shape], Shard | None]:
    """Return the parts that this rank holds, as `like` of `mf.load_sharded`.

    It is a function of the names in {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, and of shapes.

    Examples
    --------
    Save on two ranks, and load on one and on three:

    >>> import tempfile
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> folder = tempfile.mkdtemp()
    >>> def save():
    ...     model = dist.fully_shard(mf.nn.Linear(3, 2))
    ...     return mf.save_sharded({"model": model.state_dict()}, folder, rank=dist.rank(), size=dist.size())
    >>> def load():
    ...     model = dist.fully_shard(mf.nn.Linear(3, 2))
    ...     state = mf.load_sharded(folder, dist.shards_of(model))
    ...     model.load_state_dict(state["model"])
    ...     return state["model"]["weight"].shape
    >>> dist.simulate(2, save), dist.simulate(1, load), dist.simulate(3, load)
    ([False, True], [(2, 3)], [(2,), (2,), (2,)])
    """
    holders: dict[str, Tensor] = {f"model.{name}": x for name, x in model.state_dict(keep_vars=True).items()}
    groups = optimizer.param_groups if optimizer else []
    for k, p in enumerate(p for group in groups for p in group["params"]):
        holders[f"optimizer.state.{k}"] = p

    def like(name: str, shape: Shape) -> Shard | None:
        holder = holders[name] if name in holders else holders.get(name.rpartition(".")[0])
        shard = None if holder is None else shard_of(holder)
        return shard if shard is None or shard.shape == shape else None

    return like

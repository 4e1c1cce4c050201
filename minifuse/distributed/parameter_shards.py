"""Parameters of which each rank holds a part, and the whole that the parts are joined to.

A parameter keeps its placement: `average_gradients`, `share` and `optim.clip_grad_norm_` read it. Checkpoints read its
`Shard`. A part may be divided again, along other axes of the mesh: first by layers, then flattened.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.errors import DistributedError
from ..core.even_parts import part_ranges
from ..core.indexing import Shape
from ..core.shards import Shard, flatten, unflatten
from ..ir.array_functions import A
from ..ir.placement import Placement, placement_of
from ..nn.module import Module, Parameter
from ..tensors.shards import set_shard, shard_of
from ..tensors.tensor import Tensor
from .functions import all_gather, axes_of
from .process_groups import ProcessGroup, mesh


class ShardedState(Protocol):
    """An optimizer, or one of `shard_optimizer`: it has a state for each parameter, of which a rank keeps a part."""

    @property
    def shards(self) -> Sequence[Shard | None]:
        """The part of each parameter; None for a whole one."""


def shard(x: Tensor, dim: int | None, group: ProcessGroup | None = None, shape: Shape | None = None) -> Parameter:
    """Return this rank's part of a parameter, as a parameter. It is reshaped first, if a shape is given.

    The part is one along a dim; with None, a part of the flattened parameter.

    Raises
    ------
    DistributedError
        The parameter is a part already, of ranks along the same axes, or it shall be divided along a dim again.
    """
    whole, axes, outer = x.detach().reshape(shape or x.shape), axes_of(group), placement_of(x)
    if axes is None:
        return x if shape is None and isinstance(x, Parameter) else Parameter(whole, x.requires_grad)
    if outer and (dim is not None or set(axes.names) & set(outer.all_axes.names)):
        raise DistributedError(
            f"a parameter is divided along {', '.join(outer.all_axes.names)} already, got a division along "
            f"{', '.join(axes.names)}; divide layers first, and then by fully_shard or shard_optimizer along another axis"
        )
    placement = Placement(axes, whole.shape, dim, outer, outer.dim or 0 if outer else 0)
    start, stop = part_ranges(placement.sizes)[ProcessGroup(axes.names).rank]
    divided = flatten(whole, placement.order) if dim is None else whole
    part = divided[(slice(None),) * (dim or 0) + (slice(start, stop),)]
    parameter = Parameter(part.clone(), x.requires_grad, placement)
    others = ProcessGroup(tuple(name for name in mesh().sizes if name not in placement.all_axes.names))
    first = shard_of(x)
    own = (
        first.part(start, stop - start, others.rank, others.size)
        if first
        else Shard(whole.shape, dim, start, stop - start, others.rank, others.size)
    )
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
    return unflatten(y, placement.shape, placement.order) if placement.dim is None else y


def shards_of(model: Module, optimizer: ShardedState | None = None) -> Callable[[str, Shape], Shard | None]:
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
    marks: dict[str, Shard | None] = {f"model.{name}": shard_of(x) for name, x in model.state_dict(keep_vars=True).items()}
    if optimizer is not None:
        marks |= {f"optimizer.state.{k}": shard for k, shard in enumerate(optimizer.shards)}

    def like(name: str, shape: Shape) -> Shard | None:
        shard = marks[name] if name in marks else marks.get(name.rpartition(".")[0])
        return shard if shard is None or shard.shape == shape else None

    return like

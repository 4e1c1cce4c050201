"""Data parallel training: each rank computes the gradients of its part of a batch, and all take the same step.

    dist.share(model)                                 # once: the same weights on all ranks

    loss.backward()
    dist.average_gradients(model.parameters())        # in each step
    optimizer.step()

In a fused step, the compiler moves each bucket of gradients to where they are computed, between the kernels of the backward
pass. With one rank, both functions do nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.dtypes import DType
from ..core.errors import DistributedError
from ..core.operators import add
from ..ir.array_methods import Array
from ..ir.collectives import AllReduce
from ..ir.numpy_api.table import call_once
from ..ir.placement import sharded_axes
from ..nn.module import Module
from ..tensors.creation import zeros_like
from ..tensors.tensor import Tensor
from .functions import all_reduce, axes_of, broadcast
from .process_groups import ProcessGroup, mesh
from .process_groups import group as group_of

Tensors = Module | Mapping[str, Tensor] | Iterable[Tensor]


def average_gradients(
    params: Module | Iterable[Tensor], group: ProcessGroup | None = None, bucket_mb: float | None = None
) -> None:
    """Replace the gradient of each parameter by its mean over ranks.

    The gradient of a shard is already the sum over the ranks that used it, so the mean is a division by their number. Along
    the other axes, it is averaged as that of any parameter.

    Parameters
    ----------
    params : Module or iterable of Tensor
        The same on all ranks. Parameters without a gradient are left out; they must be so on all ranks.
    group : ProcessGroup, optional
        The ranks that hold parts of one batch. Default: all.
    bucket_mb : float, optional
        Gradients are summed in buckets of about so many megabytes, in the order in which the backward pass computes them.
        Default: the compiler chooses.

    Raises
    ------
    MismatchError
        Other ranks have gradients of other parameters.

    Examples
    --------
    Each rank computes the gradient of its own loss:

    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     w = mf.ones(2, requires_grad=True)
    ...     (w * dist.rank()).sum().backward()
    ...     dist.average_gradients([w])
    ...     return w.grad.tolist()
    >>> dist.simulate(2, program)
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if bucket_mb is not None and not bucket_mb > 0:
        raise DistributedError(f"average_gradients: got bucket_mb={bucket_mb}, expected a number above 0")
    nbytes = None if bucket_mb is None else int(bucket_mb * 2**20)
    parameters: Iterable[Tensor] = params.parameters() if isinstance(params, Module) else params
    names = (group or group_of()).names
    buckets = dict[tuple[DType, tuple[str, ...]], list[Tensor]]()
    for p in parameters:
        if p.grad is not None:
            held = sharded_axes(p)
            buckets.setdefault((p.dtype, held.names if held else ()), []).append(p)
    for (_, held_names), bucket in buckets.items():
        count = ProcessGroup((*names, *[name for name in held_names if name not in names])).size
        if count == 1:
            continue
        axes = ProcessGroup(tuple(name for name in names if name not in held_names)).axes
        op = AllReduce(axes, add, len(bucket), nbytes) if axes.size > 1 else None
        means: tuple[Any, ...] = call_once(mean_over_ranks, *[p.grad for p in bucket], parameters=(op, count))
        for p, mean in zip(bucket, means, strict=True):
            p.grad = mean


def weigh_part(loss: Tensor, rows: int, group: ProcessGroup | None = None) -> Tensor:
    """Multiply the mean loss of a part of a batch by its share, so that the mean over ranks is the mean over the batch.

    Parameters
    ----------
    loss : Tensor, 0-d
        The mean over the rows of this rank.
    rows : int
        The number of rows of this rank, at least 1.

    Raises
    ------
    DistributedError
        This rank has no rows.

    Examples
    --------
    Ranks with 1 and 3 rows:

    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.weigh_part(mf.tensor(1.0), 1 + 2 * dist.rank()).item())
    [0.5, 1.5]
    """
    if (axes := axes_of(group)) is None:
        return loss
    if rows < 1:
        raise DistributedError(f"a rank has no part of a batch, since there are {axes.size} ranks; use larger batches")
    return loss * (rows * axes.size) / all_reduce(zeros_like(loss) + rows, group=group)


def mean_over_ranks(*inputs: Any) -> tuple[Array, ...]:
    """Sum each array over the ranks of a collective, if there is one, and divide by a number: the last two arguments."""
    *arrays, op, count = inputs
    return tuple(y / count for y in (op(*arrays) if op else arrays))


def share(tensors: Tensors, source: int = 0, group: ProcessGroup | None = None) -> None:
    """Copy the tensors of one rank to all, in place: the weights and buffers of a model, or any tensors.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     model = mf.nn.Linear(3, 2)
    ...     dist.share(model)
    ...     return dist.same(model.weight)
    >>> dist.simulate(2, program)
    [True, True]
    """
    names = (group or group_of()).names
    for x in tensors_of(tensors):
        held = sharded_axes(x)
        along = names if held is None else tuple(name for name in names if name not in held.names)
        y = x.detach()
        y.copy_(broadcast(y, source if held is None else position_along(along, names, source), ProcessGroup(along)))


def position_along(names: tuple[str, ...], all_names: tuple[str, ...], source: int) -> int:
    """Return the position among the ranks along some axes, given that among the ranks along more axes."""
    position, scale = 0, 1
    for name, n in reversed(mesh().sizes.items()):
        if name in all_names:
            source, index = divmod(source, n)
            position += scale * index if name in names else 0
            scale *= n if name in names else 1
    return position


def tensors_of(tensors: Tensors) -> list[Tensor]:
    """Return the tensors of a module, of a dict or of a sequence, each once."""
    if isinstance(tensors, Module):
        found: Iterable[Tensor] = tensors.state_dict(keep_vars=True).values()
    else:
        found = tensors.values() if isinstance(tensors, Mapping) else tensors
    return list({id(x): x for x in found}.values())

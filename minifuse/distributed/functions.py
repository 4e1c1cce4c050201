"""Collectives as functions of tensors: eager, fused and differentiable.

All ranks of a group call the same function, with the same shapes, in the same order. With one rank each returns its input.
The gradient is that of the sum, over all ranks, of what each calls `backward` on: see `minifuse.ir.collectives`.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from ..core.errors import DistributedError, ShapeError
from ..core.even_parts import even_sizes
from ..core.operator_entry import Operator
from ..core.operators import add, maximum, minimum
from ..engines.base import Request
from ..engines.world import current_world
from ..functions.table import require_array
from ..ir.array_functions import A
from ..ir.array_methods import Array
from ..ir.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Axes,
    Broadcast,
    CollectiveOp,
    ReduceScatter,
    ReduceToRank,
    RingShift,
)
from ..ir.numpy_api.table import call_once
from .process_groups import ProcessGroup
from .process_groups import group as group_of

OPERATORS = {"sum": add, "mean": add, "max": maximum, "min": minimum}

BARRIER = Request("barrier", (), ())


def all_reduce(x: A, op: str = "sum", group: ProcessGroup | None = None) -> A:
    """Combine the arrays of all ranks element by element. All ranks get the result.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks.
    op : {"sum", "mean", "max", "min"}
    group : ProcessGroup, optional
        The ranks that take part. Default: all.

    Returns
    -------
    Tensor
        Of the shape of x. The gradient of a sum is the sum of the gradients; "max" and "min" have none.

    Raises
    ------
    DistributedError
        `op` is none of these.
    MismatchError
        Another rank asks for something else.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(3, lambda: dist.all_reduce(mf.ones(2) * dist.rank()).tolist())
    [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
    """
    require_array("all_reduce", x)
    operator, axes = operator_of("all_reduce", op), axes_of(group)
    if axes is None:
        return x
    y = apply(AllReduce(axes, operator), x)
    return y / axes.size if op == "mean" else y


def all_gather(x: A, dim: int = 0, group: ProcessGroup | None = None, sizes: Sequence[int] | None = None) -> A:
    """Join the arrays of all ranks along a dim, in the order of ranks. All ranks get the result.

    Parameters
    ----------
    x : Tensor
        Of the same shape on all ranks, except along `dim` if `sizes` are given.
    dim : int
    group : ProcessGroup, optional
    sizes : sequence of int, optional
        The size along `dim` on each rank. Default: that of x on all.

    Raises
    ------
    ShapeError
        There is not one size for each rank, or that of this rank is not the size of x.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.all_gather(mf.full((1,), dist.rank())).tolist())
    [[0, 1], [0, 1]]
    """
    require_array("all_gather", x)
    axes, dim = axes_of(group), along(x, dim)
    if axes is None:
        return x
    n = x.shape[dim]
    sizes = tuple(sizes) if sizes is not None else (n,) * axes.size
    if len(sizes) != axes.size or sizes[rank_of(axes)] != n:
        raise ShapeError(
            f"all_gather: got sizes {sizes} and {n} rows on rank {rank_of(axes)} of {axes.size}; write a size for each rank"
        )
    return apply(AllGather(axes, sizes), x, dim)


def reduce_scatter(
    x: A, dim: int = 0, op: str = "sum", group: ProcessGroup | None = None, sizes: Sequence[int] | None = None
) -> A:
    """Combine the arrays of all ranks, and give each rank its part along a dim.

    Parameters
    ----------
    x : Tensor
        Of the same shape on all ranks.
    dim : int
    op : {"sum", "mean", "max", "min"}
    group : ProcessGroup, optional
    sizes : sequence of int, optional
        The size of each part. Default: sizes that differ by at most 1.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.reduce_scatter(mf.tensor([1.0, 2.0, 3.0])).tolist())
    [[2.0, 4.0], [6.0]]
    """
    require_array("reduce_scatter", x)
    operator, axes, dim = operator_of("reduce_scatter", op), axes_of(group), along(x, dim)
    if axes is None:
        return x
    n = x.shape[dim]
    sizes = tuple(sizes) if sizes is not None else even_sizes(n, axes.size)
    if len(sizes) != axes.size or sum(sizes) != n:
        raise ShapeError(f"reduce_scatter: got sizes {sizes}, expected {axes.size} sizes with the sum {n}")
    y = apply(ReduceScatter(axes, sizes, sizes[rank_of(axes)], operator), x, dim)
    return y / axes.size if op == "mean" else y


def broadcast(x: A, source: int = 0, group: ProcessGroup | None = None) -> A:
    """Copy the array of one rank to all.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks; only the elements of the source are read.
    source : int
        The position of the source in the group.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.broadcast(mf.full((2,), dist.rank()), source=1).tolist())
    [[1, 1], [1, 1]]
    """
    return from_or_to("broadcast", Broadcast, x, source, group)


def reduce(x: A, target: int = 0, group: ProcessGroup | None = None) -> A:
    """Sum the arrays of all ranks on one of them. The others get zeros.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.reduce(mf.ones(1)).tolist())
    [[2.0], [0.0]]
    """
    return from_or_to("reduce", ReduceToRank, x, target, group)


def all_to_all(x: A, split: int = 0, join: int = 0, group: ProcessGroup | None = None) -> A:
    """Cut the array into equal parts along `split`, send part k to rank k, and join what comes along `join`.

    Raises
    ------
    ShapeError
        The size along `split` is not a multiple of the number of ranks.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: dist.all_to_all(mf.tensor([10.0, 11.0]) + 10 * dist.rank()).tolist())
    [[10.0, 20.0], [11.0, 21.0]]
    """
    require_array("all_to_all", x)
    axes, split, join = axes_of(group), along(x, split), along(x, join)
    if axes is None:
        return x
    n = axes.size
    if x.shape[split] % n:
        raise ShapeError(f"all_to_all: got size {x.shape[split]} along dim {split}, expected a multiple of {n} ranks")
    parts = x.reshape(*x.shape[:split], n, x.shape[split] // n, *x.shape[split + 1 :])
    received = apply(AllToAll(axes), parts, split)  # dim `split` counts the ranks that it came from
    order = [d for d in range(received.ndim) if d != split]
    order.insert(join, split)
    y = received.permute(*order)
    return y.reshape(*y.shape[:join], n * y.shape[join + 1], *y.shape[join + 2 :])


def shift(x: A, by: int = 1, group: ProcessGroup | None = None) -> A:
    """Send the array `by` ranks further along the ring of ranks, and return the one that comes.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(3, lambda: dist.shift(mf.full((1,), dist.rank())).tolist())
    [[2], [0], [1]]
    """
    require_array("shift", x)
    axes = axes_of(group)
    return x if axes is None or by % axes.size == 0 else apply(RingShift(axes, by % axes.size), x)


def barrier(group: ProcessGroup | None = None) -> None:
    """Wait until all ranks of a group are here."""
    if (world := current_world()) is not None and (axes := axes_of(group)) is not None:
        members = world.group(axes.names)
        world.engine.announce(members, BARRIER)
        world.engine.barrier(members)


def same(x: Array, group: ProcessGroup | None = None) -> bool:
    """Return whether all ranks have the same bits. Only checksums are sent.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> dist.simulate(2, lambda: (dist.same(mf.ones(3)), dist.same(mf.ones(3) * dist.rank())))
    [(True, False), (True, False)]
    """
    world, axes = current_world(), axes_of(group)
    if world is None or axes is None:
        return True
    sums = checksum(np.ascontiguousarray(x.numpy()))
    members = world.group(axes.names)
    low, high = np.empty_like(sums), np.empty_like(sums)
    world.engine.host.all_reduce(members, [low], [sums], np.minimum)
    world.engine.host.all_reduce(members, [high], [sums], np.maximum)
    return bool((low == high).all())


# How the functions are made.


def checksum(x: np.ndarray) -> np.ndarray:
    """Return 32 bytes that are almost certainly different for other bytes."""
    return np.frombuffer(sha256(x.tobytes() + str((x.shape, x.dtype)).encode()).digest(), np.uint8)


def apply(op: CollectiveOp, x: A, dim: int = 0) -> A:
    """Apply a collective that cuts or joins along dim 0 along another dim."""
    y: A = call_once(collective_along, x, parameters=(op, dim))
    return y


def collective_along(x: Any, op: CollectiveOp, dim: int) -> Any:
    """Apply a collective along a dim, as one call."""
    if dim == 0:
        return op(x)[0]
    (y,) = op(x.permute(dim, *[d for d in range(x.ndim) if d != dim]))
    return y.permute(*range(1, dim + 1), 0, *range(dim + 1, x.ndim))


def from_or_to(name: str, kind: type[Broadcast] | type[ReduceToRank], x: A, rank: int, group: ProcessGroup | None) -> A:
    """Apply a collective with a distinguished rank."""
    require_array(name, x)
    axes = axes_of(group)
    n = 1 if axes is None else axes.size
    if not -n <= rank < n:
        raise DistributedError(f"{name}: got rank {rank}, expected one from 0 to {n - 1}")
    return x if axes is None else apply(kind(axes, rank % n), x)


def operator_of(name: str, op: str) -> Operator:
    """Return the operator with a name. Raise DistributedError if there is none."""
    if op not in OPERATORS:
        raise DistributedError(f"{name}: got op={op!r}, expected one of {', '.join(map(repr, OPERATORS))}")
    return OPERATORS[op]


def axes_of(group: ProcessGroup | None) -> Axes | None:
    """Return the axes of a group, or None if it has one rank."""
    axes = (group or group_of()).axes
    return axes if axes.size > 1 else None


def rank_of(axes: Axes) -> int:
    """Return the position of this rank in the group along some axes."""
    return ProcessGroup(axes.names).rank


def along(x: Array, dim: int) -> int:
    """Return a dim counted from the front. Raise ShapeError if there is none."""
    if not -x.ndim <= dim < x.ndim:
        raise ShapeError(f"got dim {dim} of an array of {x.ndim} dims, expected one from {-x.ndim} to {x.ndim - 1}")
    return dim % x.ndim

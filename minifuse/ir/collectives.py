"""Collectives as composite ops: each has a shape, a derivative, and a call of the engine that carries arrays between ranks.

    op             rank r gets                                   its derivative
    AllReduce      the sum over ranks, of each array             AllReduce
    AllGather      the parts of all ranks, one after the other   ReduceScatter
    ReduceScatter  part r of the sum over ranks                  AllGather
    Broadcast      the array of one rank                         ReduceToRank
    ReduceToRank   the sum on one rank, zeros on the others      Broadcast
    AllToAll       part r of each rank                           AllToAll
    RingShift      the array of rank r - by                      RingShift, the other way
    CopyToShards   its own array, equal on all ranks             SumOfShards / n
    SumOfShards    the sum over ranks                            CopyToShards * n

The derivative is that of the sum, over all ranks, of what each calls `backward` on: the gradient of an array that all ranks
use is the sum of what the ranks have for it. Arrays are cut along dim 0; the functions in `minifuse.distributed` move other
dims there. An op holds the axes of a group and its size, not the ranks, so ranks with equal shapes share plans and kernels.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..core.errors import GradientError
from ..core.operator_entry import Operator
from ..core.operators import add
from .array_functions import Gradients, ShapeDtype
from .composite_op import CompositeOp

if TYPE_CHECKING:
    from .array_methods import Array


class Axes(NamedTuple):
    """The ranks along some axes of a mesh, as an op knows them."""

    names: tuple[str, ...]
    size: int


class CollectiveOp(CompositeOp):
    """Base of the collectives. They change nothing on one rank, and a function of one rank contains none."""

    __slots__ = ("axes", "position")
    output_layout_like: tuple[int | None, ...] = (None,)

    def __init__(self, axes: Axes, position: int = 0) -> None:
        self.axes, self.position = axes, position

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The arguments of the class, except the position."""
        return (self.axes,)

    def at(self, position: int) -> Self:
        """Return this op as number `position` in the order that all ranks keep."""
        kind: Callable[..., Self] = type(self)  # its arguments are the parameters
        return kind(*self.parameters, position)

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of each input."""
        return tuple((x.shape, x.dtype) for x in inputs)

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Raise: a collective has no definition by other functions, and every backend runs it."""
        raise AssertionError(f"{self.names[0]} has no definition by other functions")

    def describe(self) -> str:
        """Return the name of the collective and what all ranks must agree on, as text."""
        parameters = ", ".join(map(str, self.parameters[1:]))
        return f"{self.names[0]}({parameters})" if parameters else self.names[0]

    def __repr__(self) -> str:
        return self.describe()


class AllReduce(CollectiveOp):
    """Combine each array over all ranks: a bucket of arrays at once.

    Parameters
    ----------
    axes : Axes
    operator : Operator
        `add`, `maximum` or `minimum`.
    count : int
        The number of arrays.
    bucket_nbytes : int, optional
        The compiler splits a bucket that is larger. Default: it chooses.
    """

    __slots__ = ("bucket_nbytes", "count", "names", "operator", "output_layout_like")

    def __init__(
        self,
        axes: Axes,
        operator: Operator = add,
        count: int = 1,
        bucket_nbytes: int | None = None,
        position: int = 0,
    ) -> None:
        super().__init__(axes, position)
        self.operator, self.count, self.bucket_nbytes = operator, count, bucket_nbytes
        self.names = ("all_reduce", *[f"all_reduce{k}" for k in range(1, count)])
        self.output_layout_like = (None,) * count

    @property
    def parameters(self) -> tuple[Axes, Operator, int, int | None]:
        """The axes, the operator, the number of arrays and the bytes of a bucket."""
        return self.axes, self.operator, self.count, self.bucket_nbytes

    def describe(self) -> str:
        """Return the name and the operator."""
        return f"all_reduce({self.operator})"

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Sum the gradients of all ranks."""
        if self.operator is not add:
            raise GradientError(f"all_reduce: {self.operator.name} over ranks has no gradient; write x.detach() before it")
        (summed,) = AllReduce(self.axes)(g)
        return tuple(summed if k == index else None for k in range(self.count))


class SumOfShards(AllReduce):
    """Sum the results of n shards of a layer, where all ranks continue with equal values.

    All ranks get equal gradients g, whose sum over ranks is n * g. So nothing is sent.
    """

    __slots__ = ()

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Return n times the gradient."""
        return (CopyToShards(self.axes)(g)[0] * self.axes.size,)


class CopyToShards(CompositeOp):
    """Return the input, which is equal on all ranks, for a layer of which each rank has a shard.

    Each rank gets the gradient of its shard. Only their sum counts, so all ranks get equal parts of it, and the gradients of
    all layers before are equal on all ranks.
    """

    __slots__ = ("axes",)
    names = ("copy_to_shards",)
    output_layout_like = (0,)

    def __init__(self, axes: Axes) -> None:
        self.axes = axes

    @property
    def parameters(self) -> tuple[Axes]:
        """The axes."""
        return (self.axes,)

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of the input."""
        return ((inputs[0].shape, inputs[0].dtype),)

    def body(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the input."""
        return inputs

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Return the mean of the gradients."""
        return (SumOfShards(self.axes)(g)[0] / self.axes.size,)


class AllGather(CollectiveOp):
    """Join the arrays of all ranks along dim 0.

    Parameters
    ----------
    axes : Axes
    sizes : tuple of int
        The size along dim 0 on each rank.
    """

    __slots__ = ("sizes",)
    names = ("all_gather",)

    def __init__(self, axes: Axes, sizes: tuple[int, ...], position: int = 0) -> None:
        super().__init__(axes, position)
        self.sizes = sizes

    @property
    def parameters(self) -> tuple[Axes, tuple[int, ...]]:
        """The axes and the sizes."""
        return self.axes, self.sizes

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of all parts together."""
        return (((sum(self.sizes), *inputs[0].shape[1:]), inputs[0].dtype),)

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Sum the gradients, and keep the own part."""
        return ReduceScatter(self.axes, self.sizes, inputs[0].shape[0])(g)


class ReduceScatter(CollectiveOp):
    """Sum over ranks, and keep the own part along dim 0.

    Parameters
    ----------
    axes : Axes
    sizes : tuple of int
        The size of each part.
    size : int
        The size of the own part.
    operator : Operator
    """

    __slots__ = ("operator", "size", "sizes")
    names = ("reduce_scatter",)

    def __init__(self, axes: Axes, sizes: tuple[int, ...], size: int, operator: Operator = add, position: int = 0) -> None:
        super().__init__(axes, position)
        self.sizes, self.size, self.operator = sizes, size, operator

    @property
    def parameters(self) -> tuple[Axes, tuple[int, ...], int, Operator]:
        """The axes, the sizes, the size of the own part, and the operator."""
        return self.axes, self.sizes, self.size, self.operator

    def describe(self) -> str:
        """Return the name, the sizes and the operator."""
        return f"reduce_scatter({self.sizes}, {self.operator})"

    def infer(self, *inputs: Any) -> tuple[ShapeDtype, ...]:
        """Return the shape of the own part."""
        return (((self.size, *inputs[0].shape[1:]), inputs[0].dtype),)

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Join the gradients of all parts."""
        if self.operator is not add:
            raise GradientError(f"reduce_scatter: {self.operator.name} over ranks has no gradient; write x.detach()")
        return AllGather(self.axes, self.sizes)(g)


class Broadcast(CollectiveOp):
    """Copy the array of one rank to all.

    Parameters
    ----------
    axes : Axes
    source : int
    """

    __slots__ = ("source",)
    names = ("broadcast",)

    def __init__(self, axes: Axes, source: int, position: int = 0) -> None:
        super().__init__(axes, position)
        self.source = source

    @property
    def parameters(self) -> tuple[Axes, int]:
        """The axes and the source."""
        return self.axes, self.source

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Sum the gradients on the source; the arrays of the others are not used."""
        return ReduceToRank(self.axes, self.source)(g)


class ReduceToRank(CollectiveOp):
    """Sum over ranks, and store the sum on one; zeros on the others.

    Parameters
    ----------
    axes : Axes
    target : int
    """

    __slots__ = ("target",)
    names = ("reduce",)

    def __init__(self, axes: Axes, target: int, position: int = 0) -> None:
        super().__init__(axes, position)
        self.target = target

    @property
    def parameters(self) -> tuple[Axes, int]:
        """The axes and the target."""
        return self.axes, self.target

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Copy the gradient of the target to all."""
        return Broadcast(self.axes, self.target)(g)


class AllToAll(CollectiveOp):
    """Exchange equal parts along dim 0: part k goes to rank k."""

    __slots__ = ()
    names = ("all_to_all",)

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Send the gradients back."""
        return AllToAll(self.axes)(g)


class RingShift(CollectiveOp):
    """Send the array along the ring of ranks.

    Parameters
    ----------
    axes : Axes
    by : int
        The number of ranks, from 1 to size - 1.
    """

    __slots__ = ("by",)
    names = ("shift",)

    def __init__(self, axes: Axes, by: int, position: int = 0) -> None:
        super().__init__(axes, position)
        self.by = by

    @property
    def parameters(self) -> tuple[Axes, int]:
        """The axes and the distance."""
        return self.axes, self.by

    def vjp(self, index: int, g: "Array", *inputs: "Array") -> Gradients:
        """Send the gradient the other way."""
        return RingShift(self.axes, self.axes.size - self.by)(g)

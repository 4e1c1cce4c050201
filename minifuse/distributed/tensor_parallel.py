"""Tensor parallel layers: each rank holds a part of the weight of a layer, and computes with it.

A feed-forward network y = B relu(A x) on two ranks. The rows of A are divided, so each rank computes half of the hidden
values; the columns of B are divided in the same way, so each rank has a sum over its half, and one all-reduce adds them:

    rank 0   x ── copy ── A[:h]  ── relu ── B[:, :h] ──┐
                                                       + ── y, on both ranks
    rank 1   x ── copy ── A[h:]  ── relu ── B[:, h:] ──┘

Forward, the copy does nothing, and the sum is an all-reduce. Backward it is the other way round: the gradients of y are
equal on both ranks, and those of x are summed. So a pair of layers sends one activation in each direction [1]_.

References
----------
.. [1] M. Shoeybi and others, Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism, 2019,
   arXiv:1909.08053
"""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ..core.errors import DistributedError, ShapeError
from ..ir.array_methods import Array
from ..ir.collectives import CopyToShards, SumOfShards
from ..ir.numpy_api.table import call_once
from ..nn.attention import scaled_dot_product_attention
from ..nn.layers import Linear, linear
from ..nn.module import Module
from ..nn.multihead_attention import MultiheadAttention
from .functions import all_gather, axes_of
from .parameter_shards import shard
from .process_groups import ProcessGroup
from .sequence_parallel import RingAttention


def copy_to_shards(x: Array, group: ProcessGroup | None = None) -> Array:
    """Return x, which is equal on all ranks, as the input of a layer of which each rank has a shard.

    Each rank gets the gradient of its shard, and x needs their sum. All ranks have x, and each adds its gradient of x to the
    sum over ranks, so each gets the mean: then the gradients of all layers before are equal on all ranks.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     x = mf.ones(2, requires_grad=True)
    ...     (dist.copy_to_shards(x) * dist.rank()).sum().backward()
    ...     return x.grad.tolist()
    >>> dist.simulate(2, program)
    [[0.5, 0.5], [0.5, 0.5]]
    """
    axes = axes_of(group)
    return x if axes is None else call_once(first_output, x, parameters=(CopyToShards(axes),))


def sum_of_shards(x: Array, group: ProcessGroup | None = None) -> Array:
    """Sum the results of a layer of which each rank has a shard. All ranks must compute the same with the sum.

    The result is that of `all_reduce`. So is the gradient, but nothing is sent for it: n equal gradients g have the sum n g.
    """
    axes = axes_of(group)
    return x if axes is None else call_once(first_output, x, parameters=(SumOfShards(axes),))


def first_output(x: Any, op: Any) -> Any:
    """Apply an op, as one call."""
    return op(x)[0]


class ColumnParallelLinear(Module):
    """A part of the outputs of `nn.Linear`: the rows of the weight are divided among ranks.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dim of the input and of the whole output.
    group : ProcessGroup, optional
        The ranks that share the weight. Default: all.
    bias : bool
    gather_output : bool
        If True, all ranks get the whole output. If False, each gets its part, as the input of a `RowParallelLinear`.
    source : Linear, optional
        The layer whose values are taken. Default: a new one, for which all ranks must draw the same random numbers: see
        `dist.seed`.

    Raises
    ------
    ShapeError
        `out_features` is not a multiple of the number of ranks.

    Notes
    -----
    The weight is the part (out_features / n, in_features) of that of `nn.Linear`, whose product with x has a row for each
    column of x @ weight.T: hence the name.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     layer = dist.ColumnParallelLinear(3, 4)
    ...     return layer.weight.shape, layer(mf.ones(5, 3)).shape
    >>> dist.simulate(2, program)
    [((2, 3), (5, 2)), ((2, 3), (5, 2))]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        group: ProcessGroup | None = None,
        bias: bool = True,
        gather_output: bool = False,
        source: Linear | None = None,
    ) -> None:
        require_multiple("ColumnParallelLinear: out_features", out_features, group)
        whole = source or Linear(in_features, out_features, bias)
        self.weight, self.bias = shard(whole.weight, 0, group), None if whole.bias is None else shard(whole.bias, 0, group)
        self.in_features, self.out_features, self.group, self.gather_output = in_features, out_features, group, gather_output

    def forward(self, x: Any) -> Any:
        """Map (..., in_features), equal on all ranks, to (..., out_features / n), or with `gather_output` to all outputs."""
        y = linear(copy_to_shards(x, self.group), self.weight, self.bias)
        return all_gather(y, y.ndim - 1, self.group) if self.gather_output else y

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, gather_output={self.gather_output}"


class RowParallelLinear(Module):
    """`nn.Linear` of an input of which each rank has a part: the columns of the weight are divided among ranks.

    Parameters
    ----------
    in_features, out_features : int
        Sizes of the last dim of the whole input and of the output.
    group, bias, source
        See `ColumnParallelLinear`. All ranks have the whole bias, which is added once.

    Raises
    ------
    ShapeError
        `in_features` is not a multiple of the number of ranks.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     layer = dist.RowParallelLinear(4, 3)
    ...     return layer.weight.shape, layer(mf.ones(5, 2)).shape
    >>> dist.simulate(2, program)
    [((3, 2), (5, 3)), ((3, 2), (5, 3))]
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        group: ProcessGroup | None = None,
        bias: bool = True,
        source: Linear | None = None,
    ) -> None:
        require_multiple("RowParallelLinear: in_features", in_features, group)
        whole = source or Linear(in_features, out_features, bias)
        self.weight, self.bias = shard(whole.weight, 1, group), whole.bias
        self.in_features, self.out_features, self.group = in_features, out_features, group

    def forward(self, x: Any) -> Any:
        """Map (..., in_features / n) to (..., out_features), equal on all ranks."""
        y = sum_of_shards(linear(x, self.weight), self.group)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class HeadParallelAttention(Module):
    """`nn.MultiheadAttention` of one input: each rank computes some of the heads.

    Queries, keys and values are a column parallel layer, and the projection of the heads is a row parallel one. The weight
    is that of `source`, of shape (3, heads, E / heads, E), of which each rank has a part along the heads.

    Parameters
    ----------
    source : MultiheadAttention
        With the same values on all ranks, and none of its options: dropout, `kdim`, `add_bias_kv` and so on.
    group : ProcessGroup, optional

    Raises
    ------
    ShapeError
        The number of heads is not a multiple of the number of ranks.
    DistributedError
        The layer has an option that is not supported.
    """

    def __init__(self, source: MultiheadAttention, group: ProcessGroup | None = None) -> None:
        require_multiple("HeadParallelAttention: num_heads", source.num_heads, group)
        if source.dropout or source.has_separate_weights or source.bias_k is not None or source.add_zero_attn:
            raise DistributedError("HeadParallelAttention: got options of attention; only bias and causal are supported")
        self.embed_dim, self.num_heads, self.causal, self.group = source.embed_dim, source.num_heads, source.causal, group
        heads = (3, source.num_heads, source.embed_dim // source.num_heads)
        self.weight = shard(source.in_proj_weight, 1, group, (*heads, source.embed_dim))
        bias = source.in_proj_bias
        self.bias = None if bias is None else shard(bias, 1, group, heads)
        self.out_proj = RowParallelLinear(source.embed_dim, source.embed_dim, group, source=source.out_proj)

    def forward(self, x: Any, is_causal: bool | None = None) -> Any:
        """Map (N, T, E), equal on all ranks, to the same."""
        (n, t, width), (_, heads, size, _) = x.shape, self.weight.shape
        bias = None if self.bias is None else self.bias.reshape(-1)
        y = linear(copy_to_shards(x, self.group), self.weight.reshape(-1, width), bias)
        q, k, v = y.reshape(n, t, 3, heads, size).permute(2, 0, 3, 1, 4)
        y = scaled_dot_product_attention(q, k, v, is_causal=self.causal if is_causal is None else is_causal)
        return self.out_proj(y.permute(0, 2, 1, 3).reshape(n, t, heads * size))

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, causal={self.causal}"


def column(layer: Any, group: ProcessGroup | None) -> Module:
    """Return the part of the outputs of a linear layer that this rank computes."""
    return ColumnParallelLinear(layer.in_features, layer.out_features, group, source=layer)


def gathered_column(layer: Any, group: ProcessGroup | None) -> Module:
    """Return a linear layer of which this rank computes a part of the outputs, and gets all."""
    return ColumnParallelLinear(layer.in_features, layer.out_features, group, gather_output=True, source=layer)


def row(layer: Any, group: ProcessGroup | None) -> Module:
    """Return the part of a linear layer that uses the part of the inputs that this rank has."""
    return RowParallelLinear(layer.in_features, layer.out_features, group, source=layer)


STYLES: dict[str, tuple[type[Module], Callable[[Any, ProcessGroup | None], Module]]] = {
    "column": (Linear, column),
    "column, gathered": (Linear, gathered_column),
    "row": (Linear, row),
    "heads": (MultiheadAttention, HeadParallelAttention),
    "ring": (MultiheadAttention, RingAttention),
}


def parallelize(model: Module, styles: Mapping[str, str], group: ProcessGroup | None = None) -> Module:
    """Divide the layers of a model among ranks, in place, and return the model.

    Parameters
    ----------
    model : Module
        With the same values on all ranks of the group: see `share`.
    styles : mapping of str to str
        For a name of layers, in which * is any text: "column" or "row" for a `Linear`, "column, gathered" if all ranks need
        the output; "heads", or "ring" for parts of sequences, for a `MultiheadAttention`. A row parallel layer follows a
        column parallel one.
    group : ProcessGroup, optional
        The ranks that share each layer. Default: all. With one rank, nothing is changed.

    Raises
    ------
    DistributedError
        A style is unknown, or matches no layer of its type.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     dist.seed(0)
    ...     model = mf.nn.Sequential(mf.nn.Linear(3, 8), mf.nn.ReLU(), mf.nn.Linear(8, 3))
    ...     return dist.parallelize(model, {"0": "column", "2": "row"})
    >>> dist.simulate(2, program)[0]
    Sequential(
      (0): ColumnParallelLinear(in_features=3, out_features=8, gather_output=False)
      (1): ReLU()
      (2): RowParallelLinear(in_features=8, out_features=3, bias=True)
    )
    """
    layers = dict(model.named_modules())
    for pattern, style in styles.items():
        if style not in STYLES:
            raise DistributedError(f"parallelize: got style {style!r}, expected one of {', '.join(map(repr, STYLES))}")
        kind, replacement = STYLES[style]
        found = [name for name, layer in layers.items() if fnmatchcase(name, pattern) and isinstance(layer, kind)]
        if not found:
            raise DistributedError(f"parallelize: no {kind.__name__} has a name like {pattern!r}; print(model) shows all")
        for name in found if axes_of(group) else []:
            model.set_submodule(name, replacement(layers[name], group))
    return model


def require_multiple(name: str, length: int, group: ProcessGroup | None) -> None:
    """Raise ShapeError if a length is not a multiple of the number of ranks."""
    if (axes := axes_of(group)) is not None and length % axes.size:
        raise ShapeError(f"{name} is {length}, expected a multiple of {axes.size} ranks")

"""Ring attention: each rank has a part of every sequence, and keys and values travel around the ring of ranks.

Queries stay where they are. In each of n steps, a rank scores its queries against the keys that it has, adds the values,
and sends both to the next rank. So no rank ever has the keys of a whole sequence, or a row of scores:

    step 0   rank 0: q0 k0   rank 1: q1 k1   rank 2: q2 k2
    step 1   rank 0: q0 k2   rank 1: q1 k0   rank 2: q2 k1
    step 2   rank 0: q0 k1   rank 1: q1 k2   rank 2: q2 k0

The softmax of a row needs its largest score and the sum of its exponentials, which are known at the end. The online softmax
[1]_ keeps both for the steps so far, and scales the sums when a larger score comes. The backward pass is the derivative of
all this: gradients of keys and values travel back around the ring [2]_.

References
----------
.. [1] M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018, arXiv:1805.02867
.. [2] H. Liu, M. Zaharia, P. Abbeel, Ring Attention with Blockwise Transformers for Near-Infinite Context, 2023,
   arXiv:2310.01889
"""

import math
from typing import Any

from ..core.errors import DistributedError, ShapeError
from ..core.operators import add, exp, maximum, where
from ..ir.array_functions import A, Matmul
from ..ir.array_methods import Array
from ..ir.attention import Attention
from ..ir.collectives import Axes, RingShift
from ..ir.numpy_api.table import call_once
from ..ir.reduction_bodies import reduce_dims
from ..nn.attention import scaled_dot_product_attention
from ..nn.layers import linear
from ..nn.module import Module
from ..nn.multihead_attention import MultiheadAttention
from .functions import axes_of
from .process_groups import ProcessGroup


def ring_attention(
    query: A, key: A, value: A, is_causal: bool = False, group: ProcessGroup | None = None, scale: float | None = None
) -> A:
    """Compute attention of sequences that are divided among ranks, in their order.

    Parameters
    ----------
    query, key, value : Tensor (..., T / n, D)
        The part of this rank, of the same size on all ranks.
    is_causal : bool
        If True, a position uses only itself and the positions before it, also those of other ranks.
    group : ProcessGroup, optional
        The ranks that share a sequence. Default: all.
    scale : float, optional
        Factor of the scores. Default: 1 / sqrt(D).

    Returns
    -------
    Tensor (..., T / n, D)
        The part of `nn.scaled_dot_product_attention` of the whole sequence. Gradients of any order are supported.

    Notes
    -----
    With `is_causal`, scores of later positions are computed, and not used: about half of the work.

    Examples
    --------
    >>> import minifuse as mf
    >>> import minifuse.distributed as dist
    >>> def program():
    ...     x = mf.ones(2, 1) * (1 + dist.rank())  # a sequence of four: 1, 1, 2, 2
    ...     return dist.ring_attention(x * 0, x, x).tolist()
    >>> dist.simulate(2, program)
    [[[1.5], [1.5]], [[1.5], [1.5]]]
    """
    if not query.shape[-2] == key.shape[-2] == value.shape[-2]:
        shapes = ", ".join(str(x.shape) for x in (query, key, value))
        raise ShapeError(f"ring_attention: got shapes {shapes}, expected the same number of positions on all ranks")
    axes = axes_of(group)
    if axes is None:
        return scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    rank = ProcessGroup(axes.names).rank
    y: Any = call_once(attend_around_ring, query, key, value, rank, parameters=(axes, bool(is_causal), factor))
    return y  # type: ignore[no-any-return]


def attend_around_ring(q: Any, k: Any, v: Any, rank: Any, axes: Axes, is_causal: bool, scale: float) -> Array:
    """Compute attention by n steps of the online softmax. `rank` is an operand, so all ranks share plans."""
    largest = total = result = q  # of the steps so far
    for step in range(axes.size):
        if step:
            (k,), (v,) = RingShift(axes, 1)(k), RingShift(axes, 1)(v)
        scores = Attention(is_causal and step == 0, scale).scores(q, k)
        if is_causal and step:  # these keys are those of rank - step, which come later if that is negative
            scores = where(rank >= step, scores, -math.inf)
        dims = (scores.ndim - 1,)
        step_largest = reduce_dims(scores, dims, True, maximum).detach()
        new_largest = maximum(largest, step_largest) if step else step_largest
        weights = exp(scores - new_largest)
        step_total, step_result = reduce_dims(weights, dims, True, add), Matmul()(weights, v)
        if step:
            correction = exp(largest - new_largest)
            step_total, step_result = total * correction + step_total, result * correction + step_result
        largest, total, result = new_largest, step_total, step_result
    y: Array = result / total
    return y


class RingAttention(Module):
    """`nn.MultiheadAttention` of one input, of which each rank has a part of the positions.

    Parameters
    ----------
    source : MultiheadAttention
        Whose parameters are used; all ranks have the whole of them. None of its options are supported.
    group : ProcessGroup, optional

    Raises
    ------
    DistributedError
        The layer has an option that is not supported.
    """

    def __init__(self, source: MultiheadAttention, group: ProcessGroup | None = None) -> None:
        if source.dropout or source.has_separate_weights or source.bias_k is not None or source.add_zero_attn:
            raise DistributedError("RingAttention: got options of attention; only bias and causal are supported")
        self.embed_dim, self.num_heads, self.causal, self.group = source.embed_dim, source.num_heads, source.causal, group
        self.in_proj_weight, self.in_proj_bias, self.out_proj = source.in_proj_weight, source.in_proj_bias, source.out_proj

    def forward(self, x: Any, is_causal: bool | None = None) -> Any:
        """Map (N, T / n, E) to the same."""
        n, t, width = x.shape
        y = linear(x, self.in_proj_weight, self.in_proj_bias).reshape(n, t, 3, self.num_heads, width // self.num_heads)
        causal = self.causal if is_causal is None else is_causal
        q, k, v = y.permute(2, 0, 3, 1, 4)
        y = ring_attention(q, k, v, causal, self.group)
        return self.out_proj(y.permute(0, 2, 1, 3).reshape(n, t, width))

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, causal={self.causal}"

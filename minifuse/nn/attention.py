"""Attention: each query averages the values, weighted by how well their keys match; as a function and as a module.

    y = scaled_dot_product_attention(q, k, v, is_causal=True)          # (N, heads, T, D) each

On the cuda backend, float32 rows of 16 to 128 elements use fused kernels that never store the scores
(`backends.cuda.attention`). Elsewhere, and for other sizes and dtypes, attention is two matmuls with one kernel between
them. The causal mask is not an array: the kernel compares positions.

Not supported: user-defined masks, dropout of the weights, and keys of another width than queries.
"""

import math
from typing import Any

from ..core.dtypes import float32
from ..core.errors import DTypeError, ShapeError
from ..core.layout import broadcast
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..ir.attention import Attention
from ..tensors.creation import DTypeLike, full, tensor
from ..tensors.random import generator
from .layers import Linear, apply, linear
from .module import Module, Parameter


def scaled_dot_product_attention(
    query: A, key: Array, value: Array, is_causal: bool = False, scale: float | None = None
) -> A:
    """Compute softmax(scale * query @ key.T) @ value: for each query, the mean of the values weighted by the scores.

    Parameters
    ----------
    query : Tensor of floats (..., M, D)
    key : Tensor (..., N, D)
    value : Tensor (..., N, E)
        All three have the same dtype. Batch dims, such as the heads, broadcast.
    is_causal : bool
        If True, query i uses only keys 0 ... i.
    scale : float, optional
        Factor of the scores. Default: 1 / sqrt(D).

    Returns
    -------
    Tensor (..., M, E)

    Raises
    ------
    ShapeError
        The sizes do not match.
    DTypeError
        The inputs are not tensors of one float dtype.

    Notes
    -----
    Each weight is exp(score - the largest score of the row), divided by their sum, so nothing overflows. The definition is
    two matmuls of 2 * M * N * D operations each. Between them, one kernel scales, masks, reduces each row twice and divides;
    it stores M * N weights for backward. The kernels of the cuda backend store M numbers and recompute the weights [1]_.
    Gradients of any order are supported; beyond the first they use the definition.

    References
    ----------
    .. [1] T. Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, arXiv:2307.08691

    Examples
    --------
    >>> import minifuse as mf
    >>> q = mf.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> v = mf.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> mf.nn.scaled_dot_product_attention(q, q, v)  # all scores are equal
    tensor([[2., 3.],
            [2., 3.]])
    >>> mf.nn.scaled_dot_product_attention(q, q, v, is_causal=True)  # the first query uses the first key only
    tensor([[1., 2.],
            [2., 3.]])
    """
    return apply(BoundFunction(_attention, (bool(is_causal), None if scale is None else float(scale))), query, key, value)


def _attention(q: Array, k: Array, v: Array, is_causal: bool, scale: float | None) -> Array:
    check_operands(q, k, v)
    batch = broadcast(*[x.shape[:-2] for x in (q, k, v)])
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if not scale > 0:  # kernels find the maximum of the scores before they scale them
        q, scale = q * scale, 1.0
    q, k, v = [x.expand(*batch, *x.shape[-2:]) for x in (q, k, v)]
    y, _ = Attention(is_causal, scale)(q, k, v)
    return y


def check_operands(q: Array, k: Array, v: Array) -> None:
    """Raise unless query, key and value have matching shapes and one float dtype."""
    name, dtypes = "scaled_dot_product_attention", [getattr(x, "dtype", type(x).__name__) for x in (q, k, v)]
    if len(set(dtypes)) > 1 or not getattr(q.dtype, "is_float", False) or min(x.ndim for x in (q, k, v)) == 0:
        got = ", ".join(map(str, dtypes))
        raise DTypeError(
            f"{name}: got query, key and value of {got}; expected tensors of one float dtype; convert with x.to(...)"
        )
    got, shapes = f"{name}: got query {q.shape}, key {k.shape} and value {v.shape}", [x.shape for x in (q, k, v)]
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{got}; expected (..., M, D), (..., N, D) and (..., N, E), with at least 2 dims each")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{got}; expected (..., M, D), (..., N, D) and (..., N, E): queries and keys of the same width D, and as many "
            "values as keys"
        )
    if not q.shape[-1]:
        raise ShapeError(f"{got}; expected a width D of at least 1")
    try:
        broadcast(*[shape[:-2] for shape in shapes])
    except ShapeError:
        raise ShapeError(f"{got}; batch dims {[s[:-2] for s in shapes]} must be equal or 1") from None


class MultiheadAttention(Module):
    """Attention with several heads in parallel; each head uses its own projections of the input.

    Parameters
    ----------
    embed_dim : int
        Size E of an input row; a multiple of `num_heads`.
    num_heads : int
        Number of heads. Each uses E / num_heads elements.
    bias : bool
        If True, the projections add a bias.
    causal : bool
        If True, a position uses only itself and the positions before it.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    in_proj_weight : Parameter (3 * E, E)
        Projections of queries, keys and values, stacked along dim 0.
    in_proj_bias : Parameter (3 * E,) or None
    out_proj : Linear
        Projection E -> E of the concatenated heads.

    Raises
    ------
    ShapeError
        `embed_dim` is not a multiple of `num_heads`; or, when called, an input is not (N, T, E).
    DTypeError
        When called: an input is not a tensor, or its dtype differs from that of the weights.

    Notes
    -----
    Names, shapes and initial values are those of `torch.nn.MultiheadAttention`, so state dicts are compatible. There are two
    differences: the batch is always the first dim, as with `batch_first=True`, and only the output is returned, without the
    weights. If only one input is given, it is query, key and value.

    With one input, one matmul computes queries, keys and values, and its result is split in three. So their gradients are
    one matmul, too. If keys or values are given separately, there are three matmuls with slices of the weight.

    Examples
    --------
    >>> import minifuse as mf
    >>> attention = mf.nn.MultiheadAttention(8, num_heads=2, causal=True)
    >>> attention
    MultiheadAttention(
      embed_dim=8, num_heads=2, bias=True, causal=True
      (out_proj): Linear(in_features=8, out_features=8, bias=True)
    )
    >>> attention(mf.ones(3, 5, 8)).shape
    (3, 5, 8)
    >>> [name for name, _ in attention.named_parameters()]
    ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias']
    """

    in_proj_bias: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        causal: bool = False,
        dtype: DTypeLike = None,
        backend: str | None = None,
    ) -> None:
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"MultiheadAttention: got embed_dim={embed_dim} and num_heads={num_heads}, expected a positive multiple "
                "of num_heads"
            )
        self.embed_dim, self.num_heads, self.causal = embed_dim, num_heads, causal
        bound = math.sqrt(6 / (embed_dim + 3 * embed_dim))
        values = generator().uniform(-bound, bound, (3 * embed_dim, embed_dim))
        self.in_proj_weight = Parameter(tensor(values, dtype or float32, backend))
        self.in_proj_bias = Parameter(full((3 * embed_dim,), 0.0, dtype or float32, backend)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype, backend)
        if self.out_proj.bias is not None:
            self.out_proj.bias = Parameter(full((embed_dim,), 0.0, dtype or float32, backend))

    def forward(self, query: A, key: Array | None = None, value: Array | None = None, is_causal: bool | None = None) -> A:
        """Map a query (N, M, E), and optional key and value (N, K, E), to (N, M, E). `is_causal` overrides `causal`."""
        causal = self.causal if is_causal is None else bool(is_causal)
        other_inputs = [x for x in (key, value) if x is not None]
        weights: list[Array | None] = [self.in_proj_weight, self.out_proj.weight]
        if self.in_proj_bias is not None:
            weights += [self.in_proj_bias, self.out_proj.bias]
        has_inputs = tuple(x is not None for x in (key, value))
        return apply(
            BoundFunction(_multihead_attention, (self.num_heads, causal, *has_inputs)), query, *other_inputs, *weights
        )

    def extra_repr(self) -> str:
        """Return the sizes."""
        bias = self.in_proj_bias is not None
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, bias={bias}, causal={self.causal}"


def _multihead_attention(query: Array, *rest: Any) -> Array:
    """Compute multi-head attention. `rest`: key and value, if given, weights, biases, the number of heads, and flags."""
    *inputs, heads, is_causal, has_key, has_value = rest
    key = inputs.pop(0) if has_key else query
    value = inputs.pop(0) if has_value else key
    weight, out_weight, *biases = inputs
    width = weight.shape[1]
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 3 or x.shape[-1] != width:
            got = f"got a {name} of shape {x.shape}"
            raise ShapeError(f"MultiheadAttention: {got}, expected (N, T, {width}), with the batch as the first dim")

    def project(x: Array, first: int, count: int) -> list[Array]:
        """Compute `count` projections of an input as heads: (N, T, E) -> (N, heads, T, E / heads) each."""
        rows = slice(first * width, (first + count) * width)
        y = linear(x, weight[rows], *[bias[rows] for bias in biases[:1]])
        parts = [y[..., k * width : (k + 1) * width] for k in range(count)]
        return [part.reshape(*x.shape[:-1], heads, width // heads).permute(0, 2, 1, 3) for part in parts]

    if has_key or has_value:
        q, k, v = (project(x, part, 1)[0] for part, x in enumerate((query, key, value)))
    else:
        q, k, v = project(query, 0, 3)
    y = _attention(q, k, v, is_causal, None)
    return linear(y.permute(0, 2, 1, 3).reshape(query.shape), out_weight, *biases[1:])

"""Attention: each query averages the values, weighted by how well their keys match; as a function and as a module.

    y = scaled_dot_product_attention(q, k, v, is_causal=True)          # (N, heads, T, D) each

On the cuda backend, float32 rows of 16 to 128 elements use fused kernels that never store the scores
(`backends.cuda.attention`). Elsewhere, and for other sizes and dtypes, attention is two matmuls with one kernel between
them. The causal mask is not an array: the kernel compares positions.

With a mask, dropout, or weights as a result, the weights are an array, on all backends.
"""

import math
from typing import Any

from ..core.dtypes import bool_
from ..core.errors import DTypeError, ShapeError
from ..core.layout import broadcast
from ..core.operators import where
from ..ir.array_functions import A, BoundFunction, matmul
from ..ir.array_methods import Array
from ..ir.attention import Attention
from .dropout import dropout
from .layers import apply


def scaled_dot_product_attention(
    query: A,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> A:
    """Compute softmax(scale * query @ key.T) @ value: for each query, the mean of the values weighted by the scores.

    Parameters
    ----------
    query : Tensor of floats (..., M, D)
    key : Tensor (..., N, D)
    value : Tensor (..., N, E)
        All three have the same dtype. Batch dims, such as the heads, broadcast.
    attn_mask : Tensor (..., M, N), optional
        Bools that are True where a query uses a key, or numbers to add to the scores.
    dropout_p : float
        The probability with which weights are set to 0.
    is_causal : bool
        If True, query i uses only keys 0 ... i.
    scale : float, optional
        Factor of the scores. Default: 1 / sqrt(D).
    enable_gqa : bool
        If True, dim -3 of key and value, their heads, is repeated to match that of the query.

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
    if enable_gqa:
        key, value = (repeat_heads(x, query.shape[-3]) for x in (key, value))
    if attn_mask is None and not dropout_p:
        bound = BoundFunction(_attention, (bool(is_causal), None if scale is None else float(scale)))
        return apply(bound, query, key, value)
    check_operands(query, key, value)
    if attn_mask is not None and attn_mask.dtype is bool_:
        attn_mask = where(attn_mask, 0.0, -math.inf)
    return attend(query, key, value, attn_mask, is_causal, scale, dropout_p)[0]


def repeat_heads(x: Array, count: int) -> Array:
    """Repeat each head of keys or values (..., heads, N, D), so that there are `count` heads."""
    *batch, heads, n, width = x.shape
    if heads < 1 or count % heads:
        raise ShapeError(
            f"scaled_dot_product_attention: got {count} heads of queries and {heads} of keys; expected a multiple"
        )
    return x.unsqueeze(-3).expand(*batch, heads, count // heads, n, width).reshape(*batch, count, n, width)


def attend(
    q: A, k: Array, v: Array, mask: Array | None, is_causal: bool, scale: float | None, dropout_p: float
) -> tuple[A, A]:
    """Return the mean of the values, weighted by the softmax of the scores plus a mask, and the weights."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    added = [] if mask is None else [mask.to(q.dtype)]
    weights = apply(BoundFunction(_attention_weights, (bool(is_causal), scale)), q, k, *added)
    weights = dropout(weights, dropout_p) if dropout_p else weights
    return weights @ v, weights


def _attention_weights(q: Array, k: Array, *rest: Any) -> Array:
    *mask, is_causal, scale = rest
    scores: Array = matmul(q, k.mT) * scale
    scores = scores + mask[0] if mask else scores
    if is_causal:
        m, n = scores.shape[-2:]
        scores = where(q.positions(m).reshape(m, 1) >= q.positions(n), scores, -math.inf)
    return scores.softmax(-1)


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

"""Attention with several heads: MultiheadAttention, and the function that it calls for masks, dropout and weights."""

import math
from typing import Any

from ..core.dtypes import bool_, float32
from ..core.errors import ShapeError
from ..core.operators import where
from ..ir.array_functions import A, BoundFunction
from ..ir.array_methods import Array
from ..tensors.creation import DTypeLike, full, tensor
from ..tensors.random import generator
from .attention import attend, scaled_dot_product_attention
from .layers import Linear, apply, linear
from .module import Module, Parameter
from .padding import pad


class MultiheadAttention(Module):
    """Attention with several heads in parallel; each head uses its own projections of the input.

    Parameters
    ----------
    embed_dim : int
        Size E of an input row; a multiple of `num_heads`.
    num_heads : int
        Number of heads. Each uses E / num_heads elements.
    dropout : float
        The probability with which weights are set to 0 in training.
    bias : bool
        If True, the projections add a bias.
    add_bias_kv : bool
        If True, learn a key and a value that are added to those of the input.
    add_zero_attn : bool
        If True, add a key and a value of zeros.
    kdim, vdim : int, optional
        Sizes of rows of the keys and of the values, if they are not E.
    batch_first : bool
        If True, inputs are (N, T, E), else (T, N, E).
    causal : bool
        If True, a position uses only itself and the positions before it.
    dtype, backend
        Dtype and backend of the parameters. Default: float32 on the default backend.

    Attributes
    ----------
    in_proj_weight : Parameter (3 * E, E)
        Projections of queries, keys and values, stacked along dim 0. With `kdim` or `vdim`, there are `q_proj_weight`,
        `k_proj_weight` and `v_proj_weight` instead.
    in_proj_bias : Parameter (3 * E,) or None
    bias_k, bias_v : Parameter (1, 1, E) or None
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
    Names, shapes and initial values are those of `torch.nn.MultiheadAttention`, so state dicts are compatible. Called with
    query, key and value, it returns PyTorch's pair of the output and the weights, or None with `need_weights=False`. Called
    with a query alone, or with a query and a key, it returns the output only, and the batch is the first dim.

    With one input, one matmul computes queries, keys and values, and its result is split in three. So their gradients are
    one matmul, too. If keys or values are given separately, there are three matmuls with slices of the weight. Weights are
    computed as an array if they are needed, or if there is a mask or dropout.

    Examples
    --------
    >>> import minifuse as mf
    >>> attention = mf.nn.MultiheadAttention(8, num_heads=2, causal=True, batch_first=True)
    >>> attention
    MultiheadAttention(
      embed_dim=8, num_heads=2, bias=True, causal=True
      (out_proj): Linear(in_features=8, out_features=8, bias=True)
    )
    >>> x = mf.ones(3, 5, 8)
    >>> y, weights = attention(x, x, x)
    >>> y.shape, weights.shape, attention(x).shape
    ((3, 5, 8), (3, 5, 5), (3, 5, 8))
    >>> [name for name, _ in attention.named_parameters()]
    ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias']
    """

    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
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
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self.has_separate_weights = (kdim or embed_dim, vdim or embed_dim) != (embed_dim, embed_dim)

        def draw(rows: int, columns: int) -> Parameter:
            bound = math.sqrt(6 / (rows + columns))
            return Parameter(tensor(generator().uniform(-bound, bound, (rows, columns)), dtype or float32, backend))

        if self.has_separate_weights:
            self.q_proj_weight = draw(embed_dim, embed_dim)
            self.k_proj_weight, self.v_proj_weight = draw(embed_dim, kdim or embed_dim), draw(embed_dim, vdim or embed_dim)
        else:
            self.in_proj_weight = draw(3 * embed_dim, embed_dim)
        self.in_proj_bias = Parameter(full((3 * embed_dim,), 0.0, dtype or float32, backend)) if bias else None
        self.bias_k, self.bias_v = (
            Parameter(tensor(generator().normal(0, 2 / (1 + embed_dim), (1, 1, embed_dim)), dtype or float32, backend))
            if add_bias_kv
            else None
            for _ in "kv"
        )
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype, backend)
        if self.out_proj.bias is not None:
            self.out_proj.bias = Parameter(full((embed_dim,), 0.0, dtype or float32, backend))

    def forward(
        self,
        query: A,
        key: Array | None = None,
        value: Array | None = None,
        key_padding_mask: Array | None = None,
        need_weights: bool = True,
        attn_mask: Array | None = None,
        average_attn_weights: bool = True,
        is_causal: bool | None = None,
    ) -> Any:
        """Map a query (N, M, E), and key and value (N, K, E), to (N, M, E), and to the weights (N, M, K).

        Without `batch_first`, N is the second dim. A query alone is key and value, too, and only the output is returned.

        Parameters
        ----------
        query, key, value : Tensor of floats
        key_padding_mask : Tensor (N, K), optional
            Bools that are True where a key is not used, or numbers to add to the scores.
        need_weights : bool
            If True, return the weights as the second result, else None.
        attn_mask : Tensor (M, K) or (N * heads, M, K), optional
            Bools that are True where a query does not use a key, or numbers to add to the scores.
        average_attn_weights : bool
            If True, return the mean of the weights of all heads, else (N, heads, M, K).
        is_causal : bool, optional
            Overrides `causal`. It is not needed with a mask.
        """
        inputs: list[Any]
        causal = self.causal if is_causal is None else bool(is_causal)
        returns_output, dropout_p = key is None or value is None, self.dropout if self.training else 0.0
        has_options = self.bias_k is not None or self.add_zero_attn or self.has_separate_weights or dropout_p
        if has_options or attn_mask is not None or key_padding_mask is not None or (need_weights and not returns_output):
            key = query if key is None else key
            inputs = [query, key, key if value is None else value]
            is_batch_first = query.ndim == 3 and (self.batch_first or returns_output)
            inputs = [x.transpose(0, 1) for x in inputs] if is_batch_first else inputs
            attention: Any = multi_head_attention_forward
            y, weights = attention(
                *inputs,
                self.embed_dim,
                self.num_heads,
                None if self.has_separate_weights else self.in_proj_weight,
                self.in_proj_bias,
                self.bias_k,
                self.bias_v,
                self.add_zero_attn,
                dropout_p,
                self.out_proj.weight,
                self.out_proj.bias,
                True,
                key_padding_mask,
                need_weights,
                attn_mask,
                self.has_separate_weights,
                *(vars(self).get(f"{name}_proj_weight") for name in "qkv"),
                average_attn_weights=average_attn_weights,
                is_causal=causal and attn_mask is None,
            )
            y = y.transpose(0, 1) if is_batch_first else y
            return y if returns_output else (y, weights)
        if not returns_output and getattr(query, "ndim", 0) == 2:
            dim = 0 if self.batch_first else 1
            inputs = [x.unsqueeze(dim) for x in (query, key, value)]  # type: ignore[union-attr]
            return self(*inputs, None, False, is_causal=causal)[0].squeeze(dim), None
        turns = not returns_output and not self.batch_first
        weights = [self.in_proj_weight, self.out_proj.weight]
        if self.in_proj_bias is not None:
            weights += [self.in_proj_bias, self.out_proj.bias]
        if key is query and value is query:
            key = value = None
        given: list[Any] = [x for x in (query, key, value) if x is not None]
        given = [x.transpose(0, 1) for x in given] if turns else given
        has_inputs = tuple(x is not None for x in (key, value))
        y = apply(BoundFunction(_multihead_attention, (self.num_heads, causal, *has_inputs)), *given, *weights)
        y = y.transpose(0, 1) if turns else y
        return y if returns_output else (y, None)

    def extra_repr(self) -> str:
        """Return the sizes."""
        bias = self.in_proj_bias is not None
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, bias={bias}, causal={self.causal}"


def multi_head_attention_forward(
    query: A,
    key: Array,
    value: Array,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Array | None,
    in_proj_bias: Array | None,
    bias_k: Array | None,
    bias_v: Array | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Array,
    out_proj_bias: Array | None,
    training: bool = True,
    key_padding_mask: Array | None = None,
    need_weights: bool = True,
    attn_mask: Array | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Array | None = None,
    k_proj_weight: Array | None = None,
    v_proj_weight: Array | None = None,
    static_k: Array | None = None,
    static_v: Array | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Compute what `MultiheadAttention` computes, with the given weights; inputs are (T, N, E) or (T, E).

    Returns
    -------
    Tensor (T, N, E)
    Tensor (N, T, S), (N, num_heads, T, S) without `average_attn_weights`, or None without `need_weights`

    Raises
    ------
    ShapeError
        The inputs are not (T, N, E) with E = embed_dim_to_check.
    """
    name = "multi_head_attention_forward"
    inputs: list[Any] = [query, key, value]
    if query.ndim == 2:
        padding = None if key_padding_mask is None else key_padding_mask[None]
        attention: Any = multi_head_attention_forward
        y, weights = attention(
            *[x.unsqueeze(1) for x in inputs], embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
            bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, padding, need_weights,
            attn_mask, use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
            average_attn_weights, is_causal,
        )  # fmt: skip
        return y.squeeze(1), None if weights is None else weights.squeeze(0)
    if query.ndim != 3 or query.shape[-1] != embed_dim_to_check or query.shape[-1] % num_heads:
        raise ShapeError(f"{name}: got a query of shape {query.shape}, expected (T, N, {embed_dim_to_check})")
    t, n, width = query.shape
    if use_separate_proj_weight or in_proj_weight is None:
        projections: list[Any] = [q_proj_weight, k_proj_weight, v_proj_weight]
    else:
        projections = [in_proj_weight[k * width : (k + 1) * width] for k in range(3)]
    biases = [None if in_proj_bias is None else in_proj_bias[k * width : (k + 1) * width] for k in range(3)]
    q, k, v = (linear(x, w, b) for x, w, b in zip(inputs, projections, biases, strict=True))
    masks = [as_added(mask) for mask in (attn_mask, key_padding_mask)]
    if bias_k is not None and bias_v is not None:
        k, v = (pad(x, (0, 0, 0, 0, 0, 1)) + pad(b, (0, 0, 0, 0, x.shape[0], 0)) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (x.reshape(x.shape[0], n, num_heads, width // num_heads).permute(1, 2, 0, 3) for x in (q, k, v))
    k, v = k if static_k is None else static_k, v if static_v is None else static_v
    k, v = (x.reshape(n, num_heads, *x.shape[-2:]) for x in (k, v))
    if add_zero_attn:
        k, v = (pad(x, (0, 0, 0, 1)) for x in (k, v))
    added: Any = None
    for mask, shape in zip(masks, ((-1, num_heads, t), (n, 1, 1)), strict=True):
        if mask is not None:
            part = pad(mask, (0, k.shape[-2] - mask.shape[-1]))
            part = part.reshape(*shape, k.shape[-2]) if part.ndim == 3 or shape[1] == 1 else part
            added = part if added is None else added + part
    y, weights = attend(q, k, v, added, is_causal, None, dropout_p if training else 0.0)
    y = linear(y.permute(2, 0, 1, 3).reshape(t, n, width), out_proj_weight, out_proj_bias)
    return y, (weights.mean(1) if average_attn_weights else weights) if need_weights else None


def as_added(mask: Array | None) -> Array | None:
    """Return a mask as numbers to add to scores: bools are True where a key is not used."""
    return where(mask, -math.inf, 0.0) if mask is not None and mask.dtype is bool_ else mask


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
    y = scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    return linear(y.permute(0, 2, 1, 3).reshape(query.shape), out_weight, *biases[1:])


__all__ = ["MultiheadAttention", "multi_head_attention_forward"]

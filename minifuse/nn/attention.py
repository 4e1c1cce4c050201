"""Attention: each position of a sequence takes from others what their keys promise; as a function and as a module.

    y = scaled_dot_product_attention(q, k, v, is_causal=True)          # (N, heads, T, D) each

On the cuda backend float32 rows of 16 to 128 elements go through kernels that keep no scores (`backends.cuda.attention`);
elsewhere, and of other sizes and types, attention is two products and one kernel between them. Nothing is masked by an
array: a kernel knows its positions, and compares them.

Not here: masks of the user's own, dropout of weights, keys and values of another width than queries.
"""

import math
from typing import Any

from ..core.dtypes import float32
from ..core.errors import DTypeError, ShapeError
from ..core.layout import broadcast
from ..ir.array_functions import BoundFunction
from ..ir.attention import Attention
from ..tensors.creation import DTypeLike, full, generator, tensor
from .layers import Linear, apply, linear
from .module import Module, Parameter


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, is_causal: bool = False, scale: float | None = None
) -> Any:
    """softmax(scale * query @ key.T) @ value: of each query the mean of the values, weighted by how well their keys fit.

    Parameters
    ----------
    query : Tensor of floats (..., M, D)
    key : Tensor (..., N, D)
    value : Tensor (..., N, E)
        Of one element type. Batch dims broadcast; heads are one of them.
    is_causal : bool
        Whether query i sees keys 0 ... i alone.
    scale : float, optional
        1 / sqrt(D) if left out.

    Returns
    -------
    Tensor (..., M, E)

    Raises
    ------
    ShapeError
        Sizes do not fit together.
    DTypeError
        They are no tensors of one floating type.

    Notes
    -----
    Each weight is exp(score - the largest score of the row), so that nothing overflows. The definition is two products of
    2 * M * N * D operations and, between them, one kernel that scales, masks, folds the row twice and divides; it keeps
    M * N weights for backward. The kernels of the cuda backend keep M numbers, and multiply once more [1]_. Gradients of
    any order; beyond the first they are those of the definition.

    References
    ----------
    .. [1] T. Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, arXiv:2307.08691

    Examples
    --------
    >>> import minifuse as mf
    >>> q = mf.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> v = mf.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> mf.nn.scaled_dot_product_attention(q, q, v)  # all fit alike
    tensor([[2., 3.],
            [2., 3.]])
    >>> mf.nn.scaled_dot_product_attention(q, q, v, is_causal=True)  # the first sees itself alone
    tensor([[1., 2.],
            [2., 3.]])
    """
    return apply(BoundFunction(_attention, (bool(is_causal), None if scale is None else float(scale))), query, key, value)


def _attention(q: Any, k: Any, v: Any, is_causal: bool, scale: float | None) -> Any:
    refuse_other_operands(q, k, v)
    batch = broadcast(*[x.shape[:-2] for x in (q, k, v)])
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    if not scale > 0:  # kernels look for the largest of scores before they scale them
        q, scale = q * scale, 1.0
    q, k, v = [x.expand(*batch, *x.shape[-2:]) for x in (q, k, v)]
    y, _ = q.apply(Attention(is_causal, scale), q, k, v)
    return y


def refuse_other_operands(q: Any, k: Any, v: Any) -> None:
    """Raise for shapes and types that attention does not take."""
    name, kinds = "scaled_dot_product_attention", [getattr(x, "dtype", type(x).__name__) for x in (q, k, v)]
    if len(set(kinds)) > 1 or not getattr(q.dtype, "is_float", False) or min(x.ndim for x in (q, k, v)) == 0:
        got = ", ".join(map(str, kinds))
        raise DTypeError(f"{name}: got query, key and value of {got}; expected tensors of one floating type, see x.to(...)")
    got, shapes = f"{name}: got query {q.shape}, key {k.shape} and value {v.shape}", [x.shape for x in (q, k, v)]
    if min(map(len, shapes)) < 2:
        raise ShapeError(f"{got}; expected (..., M, D), (..., N, D) and (..., N, E): give them at least 2 dims")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{got}; expected (..., M, D), (..., N, D) and (..., N, E): queries and keys are of one width D, and there are "
            "as many values as keys"
        )
    if not q.shape[-1]:
        raise ShapeError(f"{got}; expected rows of at least 1 element, since their products decide")
    try:
        broadcast(*[shape[:-2] for shape in shapes])
    except ShapeError:
        raise ShapeError(f"{got}; batch dims {[s[:-2] for s in shapes]} must be equal or 1") from None


class MultiheadAttention(Module):
    """Attention in several heads side by side: each sees the input through projections of its own.

    Parameters
    ----------
    embed_dim : int
        Elements of a position, E; a multiple of `num_heads`.
    num_heads : int
        Each has E / num_heads of them.
    bias : bool
        Whether projections add a bias.
    causal : bool
        Whether a position sees itself and what comes before alone.
    dtype, backend
        Of the parameters; float32 on the default backend if left out.

    Attributes
    ----------
    in_proj_weight : Parameter (3 * E, E)
        Of queries, keys and values, below each other.
    in_proj_bias : Parameter (3 * E,) or None
    out_proj : Linear
        E -> E, what is done to all heads together.

    Raises
    ------
    ShapeError
        `embed_dim` is no multiple of `num_heads`; when called, an input is not (N, T, E).
    DTypeError
        When called, an input is no tensor, or of another element type than the weights.

    Notes
    -----
    Names, shapes and first values are those of `torch.nn.MultiheadAttention`, so state dicts fit. Two things differ: the
    batch comes first always, as with `batch_first=True`; and the output comes alone, without the weights. An input that is
    called with alone is query, key and value.

    Of one input, queries, keys and values are one product, which is cut in three; what they receive is computed side by
    side, so gradients are one product too. Other keys and values have products of their own, with parts of the weight.

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
                f"MultiheadAttention: got embed_dim {embed_dim} and {num_heads} heads; expected a multiple, so that each "
                "head has as many elements"
            )
        self.embed_dim, self.num_heads, self.causal = embed_dim, num_heads, causal
        bound = math.sqrt(6 / (embed_dim + 3 * embed_dim))
        values = generator().uniform(-bound, bound, (3 * embed_dim, embed_dim))
        self.in_proj_weight = Parameter(tensor(values, dtype or float32, backend))
        self.in_proj_bias = Parameter(full((3 * embed_dim,), 0.0, dtype or float32, backend)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype, backend)
        if self.out_proj.bias is not None:
            self.out_proj.bias = Parameter(full((embed_dim,), 0.0, dtype or float32, backend))

    def forward(self, query: Any, key: Any = None, value: Any = None, is_causal: bool | None = None) -> Any:
        """(N, M, E), and of other keys and values (N, K, E) -> (N, M, E); `is_causal` in the place of the module's own."""
        causal = self.causal if is_causal is None else bool(is_causal)
        others = [x for x in (key, value) if x is not None]
        weights: list[Any] = [self.in_proj_weight, self.out_proj.weight]
        if self.in_proj_bias is not None:
            weights += [self.in_proj_bias, self.out_proj.bias]
        kinds = tuple(x is not None for x in (key, value))
        return apply(BoundFunction(_multihead_attention, (self.num_heads, causal, *kinds)), query, *others, *weights)

    def extra_repr(self) -> str:
        """The sizes."""
        bias = self.in_proj_bias is not None
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, bias={bias}, causal={self.causal}"


def _multihead_attention(query: Any, *rest: Any) -> Any:
    """`rest`: key and value, if they are given, then weights and biases, the number of heads, and what is given."""
    *inputs, heads, is_causal, has_key, has_value = rest
    key = inputs.pop(0) if has_key else query
    value = inputs.pop(0) if has_value else key
    weight, out_weight, *biases = inputs
    width = weight.shape[1]
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 3 or x.shape[-1] != width:
            got = f"got a {name} of shape {x.shape}"
            raise ShapeError(f"MultiheadAttention: {got}, expected (N, T, {width}), the batch first")

    def projected(x: Any, first: int, count: int) -> list[Any]:
        """Projections of an input, from the first one on, as heads: (N, T, E) -> (N, heads, T, E / heads) each."""
        rows = slice(first * width, (first + count) * width)
        y = linear(x, weight[rows], *[bias[rows] for bias in biases[:1]])
        parts = [y[..., k * width : (k + 1) * width] for k in range(count)]
        return [part.reshape(*x.shape[:-1], heads, width // heads).permute(0, 2, 1, 3) for part in parts]

    if has_key or has_value:
        q, k, v = (projected(x, part, 1)[0] for part, x in enumerate((query, key, value)))
    else:
        q, k, v = projected(query, 0, 3)
    y = _attention(q, k, v, is_causal, None)
    return linear(y.permute(0, 2, 1, 3).reshape(query.shape), out_weight, *biases[1:])

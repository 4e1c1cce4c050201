"""Attention as a function of arrays, and its gradient: definitions, which a backend with kernels of its own may replace.

    y = softmax(scale * q @ k.T) @ v        q (..., M, D), k (..., N, D), v (..., N, E)

The definition is two products and one kernel for all between them; its scores take M * N numbers of memory. A backend that
knows `attention` as a whole makes them a tile at a time and keeps none. The gradient is the same for all: it makes the
weights again from q, k and one number a row, so nothing of M * N is kept for it, and that of the definition is not needed
before it is differentiated itself.

Stands on functions; knows no kernels. The face for users is `nn.scaled_dot_product_attention`.
"""

import math
from typing import Any

from ..core.operators import add, exp, log, maximum, where
from .array_functions import CompositeOp, Matmul, Reduce, ShapeDtype
from .array_methods import fold


class AttentionOp(CompositeOp):
    """What the functions of this file have in common: their parameters, and the scores.

    Parameters
    ----------
    is_causal : bool
        Whether row i sees columns up to i alone.
    scale : float
        What scores are multiplied with, above 0.
    """

    __slots__ = ("is_causal", "scale")

    def __init__(self, is_causal: bool, scale: float) -> None:
        self.is_causal, self.scale = is_causal, scale

    @property
    def parameters(self) -> tuple[Any, ...]:
        """Both."""
        return self.is_causal, self.scale

    def scores(self, q: Any, k: Any) -> Any:
        """scale * q @ k.T, and -inf where a row does not see a column: found by comparing positions, not by a mask."""
        scores = Matmul()(q, k.mT) * self.scale
        if not self.is_causal:
            return scores
        m, n = scores.shape[-2:]
        return where(q.positions(m).reshape(m, 1) >= q.positions(n), scores, -math.inf)

    def weights(self, q: Any, k: Any, sums: Any) -> Any:
        """softmax of the scores, from the logarithm of each row's sum."""
        return exp(self.scores(q, k) - sums.reshape(*sums.shape, 1))


class Attention(AttentionOp):
    """softmax(scale * q @ k.T) @ v, and log(sum(exp(scale * q @ k.T))) of each row, by which its gradient finds the weights.

    Batch dims are equal already. Of a row that sees nothing (N = 0) both are what sums of nothing are: 0 and -inf.
    """

    __slots__ = ()
    names = ("attention", "attention_sums")
    output_layout_like = (0, None)

    def infer(self, q: Any, k: Any, v: Any) -> tuple[ShapeDtype, ...]:
        """(..., M, E) and (..., M)."""
        return ((*q.shape[:-1], v.shape[-1]), q.dtype), (q.shape[:-1], q.dtype)

    def body(self, q: Any, k: Any, v: Any) -> tuple[Any, ...]:
        """Two products, and a softmax between them."""
        scores = self.scores(q, k)
        dims = (scores.ndim - 1,)
        largest = fold(scores, dims, True, maximum).detach()
        e = exp(scores - largest)
        total = fold(e, dims, True, add)
        return Matmul()(e / total, v), (log(total) + largest).reshape(q.shape[:-1])

    def vjp(self, index: int, g: Any, q: Any, k: Any, v: Any) -> tuple[Any, ...] | None:
        """Of the output, two functions of their own; of the sums, that of the definition."""
        if index:
            return None
        y, sums = self.outputs(q, k, v)
        delta = Reduce(add, (y.ndim - 1,))(g * y).reshape(sums.shape)
        inputs = q, k, v, g, sums, delta
        return *QueryGradient(*self.parameters).outputs(*inputs), *KeyValueGradient(*self.parameters).outputs(*inputs)


class QueryGradient(AttentionOp):
    """What q receives when the output of Attention receives g; `delta` is the sum of g times the output, of each row."""

    __slots__ = ()
    names = ("query_gradient",)
    output_layout_like = (0,)

    def infer(self, q: Any, k: Any, v: Any, g: Any, sums: Any, delta: Any) -> tuple[ShapeDtype, ...]:
        """As q."""
        return ((q.shape, q.dtype),)

    def body(self, q: Any, k: Any, v: Any, g: Any, sums: Any, delta: Any) -> tuple[Any, ...]:
        """Three products: the weights are made again."""
        given = self.weights(q, k, sums) * (Matmul()(g, v.mT) - delta.reshape(*delta.shape, 1))
        return (Matmul()(given, k) * self.scale,)


class KeyValueGradient(AttentionOp):
    """What k and v receive when the output of Attention receives g."""

    __slots__ = ()
    names = ("key_gradient", "value_gradient")
    output_layout_like = (1, 2)

    def infer(self, q: Any, k: Any, v: Any, g: Any, sums: Any, delta: Any) -> tuple[ShapeDtype, ...]:
        """As k, and as v."""
        return (k.shape, k.dtype), (v.shape, v.dtype)

    def body(self, q: Any, k: Any, v: Any, g: Any, sums: Any, delta: Any) -> tuple[Any, ...]:
        """Four products: the weights are made again."""
        weights = self.weights(q, k, sums)
        given = weights * (Matmul()(g, v.mT) - delta.reshape(*delta.shape, 1))
        return Matmul()(given.mT, q) * self.scale, Matmul()(weights.mT, g)

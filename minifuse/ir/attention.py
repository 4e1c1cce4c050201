"""Attention and its gradient as composite ops, for which a backend may have special kernels.

    y = softmax(scale * q @ k.T) @ v        q (..., M, D), k (..., N, D), v (..., N, E)

The definition is two matmuls with a softmax kernel between them. It stores M * N scores. A backend that supports `attention`
computes them tile by tile and stores none. All backends share the gradient: it recomputes the weights from q, k and one
number per row, so it saves nothing of size M * N. The gradient of the definition is used only for second derivatives.

Users call `nn.scaled_dot_product_attention`.
"""

import math
from typing import TYPE_CHECKING

from ..core.operators import add, exp, log, maximum, where
from .array_functions import Gradients, Matmul, Reduce, ShapeDtype
from .composite_op import CompositeOp
from .reduction_bodies import reduce_dims

if TYPE_CHECKING:
    from .array_methods import Array


class AttentionOp(CompositeOp):
    """Base of the ops in this file: their parameters, and the scores.

    Parameters
    ----------
    is_causal : bool
        Row i attends to columns 0, ..., i only.
    scale : float
        Factor of the scores, above 0.
    """

    __slots__ = ("is_causal", "scale")

    def __init__(self, is_causal: bool, scale: float) -> None:
        self.is_causal, self.scale = is_causal, scale

    @property
    def parameters(self) -> tuple[bool, float]:
        """The causal flag and the scale."""
        return self.is_causal, self.scale

    def scores(self, q: "Array", k: "Array") -> "Array":
        """Return scale * q @ k.T, with -inf where a row does not attend to a column. No mask is stored."""
        scores = Matmul()(q, k.mT) * self.scale
        if not self.is_causal:
            return scores
        m, n = scores.shape[-2:]
        return where(q.positions(m).reshape(m, 1) >= q.positions(n), scores, -math.inf)

    def weights(self, q: "Array", k: "Array", logsumexps: "Array") -> "Array":
        """Return the softmax of the scores, given the log-sum-exp of each row."""
        return exp(self.scores(q, k) - logsumexps.reshape(*logsumexps.shape, 1))


class Attention(AttentionOp):
    """Compute softmax(scale * q @ k.T) @ v, and the log-sum-exp of the scores of each row, which the gradient needs.

    Batch dims must be equal. If there are no columns (N = 0), the outputs are 0 and the log-sum-exps -inf.
    """

    __slots__ = ()
    names = ("attention", "attention_sums")
    output_layout_like = (0, None)

    def infer(self, q: "Array", k: "Array", v: "Array") -> tuple[ShapeDtype, ...]:
        """Return shapes (..., M, E) and (..., M)."""
        return ((*q.shape[:-1], v.shape[-1]), q.dtype), (q.shape[:-1], q.dtype)

    def body(self, q: "Array", k: "Array", v: "Array") -> "tuple[Array, ...]":
        """Compute two matmuls with a softmax between them."""
        scores = self.scores(q, k)
        dims = (scores.ndim - 1,)
        largest = reduce_dims(scores, dims, True, maximum).detach()
        e = exp(scores - largest)
        total = reduce_dims(e, dims, True, add)
        return Matmul()(e / total, v), (log(total) + largest).reshape(q.shape[:-1])

    def vjp(self, index: int, g: "Array", q: "Array", k: "Array", v: "Array") -> Gradients | None:
        """Compute the gradient of the output by two ops. For the log-sum-exp, differentiate the definition."""
        if index:
            return None
        y, logsumexps = self.outputs(q, k, v)
        delta = Reduce(add, (y.ndim - 1,))(g * y).reshape(logsumexps.shape)
        inputs = q, k, v, g, logsumexps, delta
        return *QueryGradient(*self.parameters).outputs(*inputs), *KeyValueGradient(*self.parameters).outputs(*inputs)


class QueryGradient(AttentionOp):
    """The gradient of q, given the gradient g of the output. `delta` is the sum of g times the output along each row."""

    __slots__ = ()
    names = ("query_gradient",)
    output_layout_like = (0,)

    def infer(
        self, q: "Array", k: "Array", v: "Array", g: "Array", logsumexps: "Array", delta: "Array"
    ) -> tuple[ShapeDtype, ...]:
        """Return the shape and dtype of q."""
        return ((q.shape, q.dtype),)

    def body(
        self, q: "Array", k: "Array", v: "Array", g: "Array", logsumexps: "Array", delta: "Array"
    ) -> "tuple[Array, ...]":
        """Compute three matmuls; the weights are recomputed."""
        score_grads = self.weights(q, k, logsumexps) * (Matmul()(g, v.mT) - delta.reshape(*delta.shape, 1))
        return (Matmul()(score_grads, k) * self.scale,)


class KeyValueGradient(AttentionOp):
    """The gradients of k and v, given the gradient g of the output."""

    __slots__ = ()
    names = ("key_gradient", "value_gradient")
    output_layout_like = (1, 2)

    def infer(
        self, q: "Array", k: "Array", v: "Array", g: "Array", logsumexps: "Array", delta: "Array"
    ) -> tuple[ShapeDtype, ...]:
        """Return the shapes and dtypes of k and v."""
        return (k.shape, k.dtype), (v.shape, v.dtype)

    def body(
        self, q: "Array", k: "Array", v: "Array", g: "Array", logsumexps: "Array", delta: "Array"
    ) -> "tuple[Array, ...]":
        """Compute four matmuls; the weights are recomputed."""
        weights = self.weights(q, k, logsumexps)
        score_grads = weights * (Matmul()(g, v.mT) - delta.reshape(*delta.shape, 1))
        return Matmul()(score_grads.mT, q) * self.scale, Matmul()(weights.mT, g)

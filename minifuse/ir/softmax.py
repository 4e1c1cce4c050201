"""Softmax with a custom VJP, its logarithm, and log-sum-exp: bodies of the methods of `Array`.

    y = exp(x - max(x)) / sum(exp(x - max(x)))        dx = y * (g - sum(g * y))

Differentiating the definition would also be correct, but it reads x and the reductions of each row, and computes the
exponentials again. This VJP is written with y. If y is stored, as a result of the call, the backward pass reads only y and
g. If the consumers of y are fused with it, y is not stored. Then the backward pass recomputes it from x and two numbers per
row, which costs less than storing it.
"""

import math
from typing import TYPE_CHECKING

from ..core.dtypes import float64
from ..core.operators import abs, add, eq, exp, log, maximum, where  # noqa: A004
from .array_functions import CustomVJP, Reduce
from .reduction_bodies import drop_dims, reduce_dims

if TYPE_CHECKING:
    from .array_methods import Array


class SoftmaxVJP(CustomVJP):
    """The value exp(x) / sum(exp(x)) along dims, with its VJP with respect to x."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims

    def vjp(self, g: "Array", y: "Array", value: "Array", x: "Array") -> "tuple[None, Array]":
        """Compute the gradient from y and g."""
        return None, y * (g - Reduce(add, self.dims)(g * y))

    def __repr__(self) -> str:
        return f"softmax over dims {self.dims}"


def softmax(x: "Array", dims: tuple[int, ...], keepdim: bool) -> "Array":
    """Compute exp(x) / sum(exp(x)) along dims, without overflow."""
    if not x.dtype.is_float:
        x = (x - reduce_dims(x, dims, True, maximum)).to(float64)  # subtract integers, which is exact; bools raise
    if not dims:
        return exp(x - x)
    e = exp(x - Reduce(maximum, dims)(x).detach())
    return SoftmaxVJP(dims)(e / Reduce(add, dims)(e), x)


def log_softmax(x: "Array", dims: tuple[int, ...], keepdim: bool) -> "Array":
    """Compute the logarithm of softmax along dims."""
    z = x - reduce_dims(x, dims, True, maximum).detach()
    return z - log(reduce_dims(exp(z), dims, True, add))


def logsumexp(x: "Array", dims: tuple[int, ...], keepdim: bool) -> "Array":
    """Compute log(sum(exp(x))) along dims."""
    shift = _finite_max(x, dims)
    y = log(reduce_dims(exp(x - shift), dims, True, add)) + shift
    return y if keepdim else drop_dims(y, dims)


def _finite_max(x: "Array", dims: tuple[int, ...]) -> "Array":
    """Return the largest element, or 0 if infinite. Subtracting it before exp changes neither value nor gradient."""
    largest = reduce_dims(x, dims, True, maximum).detach()
    return where(eq(abs(largest), math.inf), 0, largest)

"""Softmax with a custom VJP.

    y = exp(x - max(x)) / sum(exp(x - max(x)))        dx = y * (g - sum(g * y))

Differentiating the definition would also be correct, but it reads x and the reductions of each row, and computes the
exponentials again. This VJP is written with y. If y is stored, as a result of the call, the backward pass reads only y and
g. If y is not stored, since its consumers are fused with it, storing it for this would cost more than recomputing it: then y
is recomputed from x and two numbers per row.

Users call the method `softmax`.
"""

from typing import Any

from ..core.operators import add, exp, maximum
from .array_functions import CustomVJP, Reduce


class SoftmaxVJP(CustomVJP):
    """The value exp(x) / sum(exp(x)) along dims, with its VJP with respect to x."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims

    def vjp(self, g: Any, y: Any, value: Any, x: Any) -> tuple[Any, ...]:
        """Compute the gradient from y and g."""
        return None, y * (g - Reduce(add, self.dims)(g * y))

    def __repr__(self) -> str:
        return f"softmax over dims {self.dims}"


def softmax(x: Any, dims: tuple[int, ...]) -> Any:
    """Compute exp(x) / sum(exp(x)) along dims, for floats, without overflow."""
    e = exp(x - Reduce(maximum, dims)(x).detach())
    return SoftmaxVJP(dims)(e / Reduce(add, dims)(e), x)

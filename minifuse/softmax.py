"""Softmax as a function with a gradient rule of its own.

    y = exp(x - max(x)) / sum(exp(x - max(x)))        dx = y * (g - sum(g * y))

From its definition a gradient would be found too, but one that computes the exponentials again, from x and from what each
row folds to. This one reads y, which lies in memory anyway, and g. Inside of a fused function y may lie nowhere: there the
definition stands in its place.

Stands on functions; knows no kernels. The face for users is the method `softmax`.
"""

from typing import Any

from .functions import Defined, Fold, Inferred
from .operators import add, exp, maximum


class Softmax(Defined):
    """exp(x) over its sum along dims, of floats, computed without overflow."""

    __slots__ = ("dims",)
    names = ("softmax",)
    lie_like = (0,)

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The dims."""
        return (self.dims,)

    def infer(self, x: Any) -> tuple[Inferred, ...]:
        """As x."""
        return ((x.shape, x.dtype),)

    def body(self, x: Any) -> tuple[Any, ...]:
        """Two folds, and a division."""
        e = exp(x - Fold(maximum, self.dims)(x).detach())
        return (e / Fold(add, self.dims)(e),)

    def vjp(self, index: int, g: Any, x: Any) -> tuple[Any, ...]:
        """From y alone."""
        (y,) = self.outputs(x)
        return (y * (g - Fold(add, self.dims)(g * y)),)

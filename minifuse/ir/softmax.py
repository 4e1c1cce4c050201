"""Softmax, with a gradient rule of its own.

    y = exp(x - max(x)) / sum(exp(x - max(x)))        dx = y * (g - sum(g * y))

From its definition a gradient would be found too, one that reads x and what each row folds to, and computes the
exponentials again. This one is written with y. Where y lies in memory anyway, as a result of the call, the backward pass
reads it and g alone. Where it does not, since what follows is fused with it, to store it for this would cost more than to
compute it: then y is made again from x and two numbers a row.

Stands on functions; knows no kernels. The face for users is the method `softmax`.
"""

from typing import Any

from ..core.operators import add, exp, maximum
from .array_functions import CustomVJP, Reduce


class SoftmaxVJP(CustomVJP):
    """A value that is exp(x) over its sum along dims, as a function of x."""

    __slots__ = ("dims",)

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.dims = dims

    def vjp(self, g: Any, y: Any, value: Any, x: Any) -> tuple[Any, ...]:
        """From y alone."""
        return None, y * (g - Reduce(add, self.dims)(g * y))

    def __repr__(self) -> str:
        return f"softmax over {self.dims}"


def softmax(x: Any, dims: tuple[int, ...]) -> Any:
    """exp(x) over its sum along dims, of floats, computed without overflow."""
    e = exp(x - Reduce(maximum, dims)(x).detach())
    return SoftmaxVJP(dims)(e / Reduce(add, dims)(e), x)

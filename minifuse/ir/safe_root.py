"""Roots of sums of powers, as in a standard deviation or a norm, with finite gradients where the sum is 0."""

from typing import Any

from ..core.operators import eq, where


def root(x: Any, order: float, at_zero: Any) -> Any:
    """Return x ** (1 / order), or `at_zero` where x is 0.

    The derivative of the root at 0 is infinite, and the product with the derivative of the powers, which is 0, would be NaN.
    PyTorch defines this gradient as 0, and so does minifuse: `at_zero` is the constant 0, or x itself, which keeps NaN
    gradients.
    """
    is_zero = eq(x, 0)
    y = where(is_zero, 1, x)
    return where(is_zero, at_zero, y.sqrt() if order == 2 else y ** (1 / order))

"""Roots of sums of powers, as in a standard deviation or a norm: finite slopes where the sum is 0."""

from typing import Any

from ..core.operators import eq, where


def root(x: Any, order: float, at_zero: Any) -> Any:
    """Return x ** (1 / order), and `at_zero` where x is 0.

    The slope of the root at 0 is infinite, and times the slope of the powers, which is 0, it would be NaN. PyTorch takes
    0 for the product, and so does minifuse: `at_zero` is 0, and a constant, or x itself, through which NaN still flows.
    """
    is_zero = eq(x, 0)
    y = where(is_zero, 1, x)
    return where(is_zero, at_zero, y.sqrt() if order == 2 else y ** (1 / order))

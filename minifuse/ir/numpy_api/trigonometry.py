"""Inverse trigonometric and hyperbolic functions: argument reductions and polynomials, written with operators.

So they run on each backend, are vectorized on a CPU, and have their gradients. Each is an operator that is not in the
table: its body is inlined when a kernel is built. The errors are at most 3 units in the last place, in both float dtypes.

Notes
-----
The coefficients were computed for this project, as near-minimax polynomials by Chebyshev interpolation in 50 digits. They
are for float64; float32 uses the same ones, rounded.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...core.operator_entry import Operator, Vjp
from ...core.operators import abs, eq, log, log1p, sqrt, where  # noqa: A004
from .table import implements

# fmt: off
ASIN = (  # (asin(x) / x - 1) / x ** 2 in powers of x ** 2, |x| <= 1/2
    0.02963502626354855, -0.019277545928584557, 0.019579201619744684, 0.0030350071727267623, 0.009322101501082774,
    0.00962140274734483, 0.011566511821890942, 0.013963775787848137, 0.017352816768546473, 0.022372157435623815,
    0.030381944475693704, 0.04464285714255019, 0.07500000000000119, 0.16666666666666666)
ATAN = (  # (atan(x) / x - 1) / x ** 2 in powers of x ** 2, |x| <= sqrt(2) - 1
    0.016285756774679666, -0.0345705619087522, 0.0455159321780069, -0.05230454270030748, 0.058789289977506626,
    -0.0666642488573094, 0.07692296375031735, -0.09090908753500863, 0.11111111105155447, -0.14285714285659828,
    0.19999999999999804, -0.3333333333333333)
# fmt: on
LARGE = 1e9  # from here on, asinh(x) and acosh(x) are log(2 x), and x * x would overflow later


def composed(vjp: Vjp | None, cost: int = 30, result: str = "float") -> Callable[[Callable[..., Any]], Operator]:
    """Make a function of elements an operator that is not in the table, with a VJP. It accepts any dtype."""
    return lambda body: Operator(body, vjp, None, None, None, False, "any", result, None, cost, False)


def composed_ufunc(
    ufunc: np.ufunc, vjp: Vjp | None, cost: int = 30, result: str = "float"
) -> Callable[[Callable[..., Any]], Operator]:
    """Make a function of elements an operator by `composed`, and the entry of a ufunc."""

    def register(body: Callable[..., Any]) -> Operator:
        operator = composed(vjp, cost, result)(body)
        implements(ufunc)(wraps(body)(lambda *inputs: operator(*inputs)))
        return operator

    return register


def horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Evaluate a polynomial, given its coefficients from the highest power to the lowest."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def odd(x: Any, y: Any) -> Any:
    """Return y with the sign of x; x itself if it is a zero or NaN."""
    return where(x > 0, y, where(x < 0, -y, x))


def reduced_asin(x: Any) -> tuple[Any, Any]:
    """Return whether |x| < 1/2; and asin(x) if so, else asin(sqrt((1 - |x|) / 2))."""
    is_small = abs(x) < 0.5
    z = where(is_small, x * x, (1 - abs(x)) * 0.5)
    s = where(is_small, x, sqrt(z))
    return is_small, s + s * (z * horner(z, ASIN))


@composed_ufunc(np.arcsin, lambda g, y, x: (g / sqrt((1 - x) * (1 + x)),))
def asin(x: Any) -> Any:
    """Inverse sine, from -pi/2 to pi/2; NaN where |x| > 1."""
    is_small, r = reduced_asin(x)
    return where(is_small, r, odd(x, math.pi / 2 - 2 * r))


@composed_ufunc(np.arccos, lambda g, y, x: (-g / sqrt((1 - x) * (1 + x)),))
def acos(x: Any) -> Any:
    """Inverse cosine, from 0 to pi; NaN where |x| > 1."""
    is_small, r = reduced_asin(x)
    return where(is_small, math.pi / 2 - r, where(x > 0, 2 * r, math.pi - 2 * r))


def positive_atan(a: Any) -> Any:
    """Return atan(a) of a >= 0, which is reduced to |t| <= tan(pi/8)."""
    is_large, is_middle = a > math.sqrt(2) + 1, a > math.sqrt(2) - 1
    t = where(is_large, -1 / a, where(is_middle, (a - 1) / (a + 1), a))
    z = t * t
    r = t + t * (z * horner(z, ATAN))
    return where(is_large, math.pi / 2 + r, where(is_middle, math.pi / 4 + r, r))


@composed_ufunc(np.arctan, lambda g, y, x: (g / (1 + x * x),))
def atan(x: Any) -> Any:
    """Inverse tangent, from -pi/2 to pi/2."""
    return odd(x, positive_atan(abs(x)))


@composed_ufunc(np.signbit, None, cost=6, result="bool")
def signbit(x: Any) -> Any:
    """Return True where x is negative, also for -0.0; False for NaN."""
    return where(eq(x, 0), 1 / x < 0, x < 0)


@composed_ufunc(np.arctan2, lambda g, r, y, x: (g * x / (x * x + y * y), -g * y / (x * x + y * y)), cost=50)
def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y), from -pi to pi."""
    is_steep = abs(y) > abs(x)
    low, high = where(is_steep, abs(x), abs(y)), where(is_steep, abs(y), abs(x))
    r = positive_atan(where(eq(low, high), where(eq(high, 0), 0.0, 1.0), low / high))
    r = where(is_steep, math.pi / 2 - r, r)
    r = where(signbit(x), math.pi - r, r)
    return where(signbit(y), -r, r)


@composed_ufunc(np.arcsinh, lambda g, y, x: (g / sqrt(1 + x * x),), cost=50)
def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""
    a = abs(x)
    return odd(x, where(a > LARGE, log(a) + math.log(2), log1p(a + a * a / (1 + sqrt(1 + a * a)))))


@composed_ufunc(np.arccosh, lambda g, y, x: (g / (sqrt(x - 1) * sqrt(x + 1)),), cost=50)
def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1."""
    t = x - 1
    return where(x < 1, math.nan, where(x > LARGE, log(x) + math.log(2), log1p(t + sqrt(t * (t + 2)))))


@composed_ufunc(np.arctanh, lambda g, y, x: (g / ((1 - x) * (1 + x)),), cost=30)
def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond."""
    a = abs(x)
    return odd(x, 0.5 * log1p(2 * a / (1 - a)))

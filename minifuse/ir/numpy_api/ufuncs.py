"""NumPy's ufuncs: each is an operator of the table, or a composition of operators.

A composition is written with operators and methods of arrays. So it is one call on tensors, is inlined while tracing, and
has its gradient. `protocol` handles how ufuncs are called, including `out=`.
"""

import math
from typing import Any

import numpy as np

from ...core.dtypes import float64
from ...core.operators import (
    TABLE,
    abs,  # noqa: A004
    cos,
    eq,
    exp,
    floordiv,
    isnan,
    log,
    log1p,
    maximum,
    mod,
    ne,
    pow,  # noqa: A004
    sin,
    sqrt,
    tanh,
    where,
)
from ..array_functions import matmul
from .table import UFUNCS, implements, is_array, promote_to_float

NUMPY_NAMES = {"sub": "subtract", "mul": "multiply", "div": "divide", "floordiv": "floor_divide", "mod": "remainder"} | {
    "pow": "power", "neg": "negative", "abs": "absolute", "eq": "equal", "ne": "not_equal", "lt": "less", "gt": "greater",
    "le": "less_equal", "ge": "greater_equal", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "pos": "positive",
}  # fmt: skip
OPERATORS = {getattr(np, NUMPY_NAMES.get(name, name), None): entry for name, entry in TABLE.items()}
UFUNCS |= {f: entry for f, entry in OPERATORS.items() if isinstance(f, np.ufunc)} | {np.matmul: matmul}

# Compositions. The inputs of a branch that is not chosen are replaced first, since 0 * inf would make the gradient NaN.


@implements(np.square)
def square(x: Any) -> Any:
    """x * x."""
    return x * x


@implements(np.reciprocal)
def reciprocal(x: Any) -> Any:
    """1 / x. For integers the quotient is truncated, and 1 / 0 is 0."""
    return 1 / x if x.dtype.is_float else where(eq(abs(x), 1), x, 0)


@implements(np.fabs)
def fabs(x: Any) -> Any:
    """Absolute value, as a float."""
    return abs(*promote_to_float(x))


@implements(np.sign)
def sign(x: Any) -> Any:
    """Return 1, 0, -1 or NaN. Both zeros return 0.0."""
    return where(x > 0, 1, where(x < 0, -1, where(eq(x, 0), 0, x.detach())))


@implements(np.heaviside)
def heaviside(x: Any, at_zero: Any) -> Any:
    """Return 0 below 0, 1 above, and `at_zero` at 0."""
    x, at_zero = promote_to_float(x, at_zero)
    return where(eq(x, 0), at_zero, where(x > 0, 1, where(x < 0, 0, x.detach())))


@implements(np.isfinite)
def isfinite(x: Any) -> Any:
    """Return where x is neither NaN nor infinite."""
    return abs(x) < math.inf


@implements(np.isinf)
def isinf(x: Any) -> Any:
    """Return where x is infinite."""
    return eq(abs(x), math.inf)


def float_limits(x: Any) -> tuple[float, float]:
    """Return the machine epsilon and the smallest normal number of the dtype of an array."""
    info = np.finfo(x.dtype.numpy)
    return float(info.eps), float(info.tiny)


# Rounding. It has no gradient.


@implements(np.floor)
def floor(x: Any) -> Any:
    """Round down to an integer."""
    return where(isfinite(x), floordiv(x, 1), x.detach()) if x.dtype.is_float else x.clone()


@implements(np.ceil)
def ceil(x: Any) -> Any:
    """Round up to an integer."""
    return -floor(-x) if x.dtype.is_float else x.clone()


@implements(np.trunc)
def trunc(x: Any) -> Any:
    """Round toward zero."""
    return where(x < 0, ceil(x), floor(x)) if x.dtype.is_float else x.clone()


@implements(np.rint)
def rint(x: Any) -> Any:
    """Round to the nearest integer, half to even. A zero has the sign of x."""
    (x,) = promote_to_float(x)
    x = x.detach()
    low = floor(x)
    fraction = x - low
    nearest = where(fraction > 0.5, low + 1, where(fraction < 0.5, low, low + mod(low, 2)))
    return where(isfinite(x), where(eq(nearest, 0), x * 0, nearest), x)


@implements(np.divmod)
def quotient_and_rest(a: Any, b: Any) -> tuple[Any, Any]:
    """Return (a // b, a % b)."""
    return floordiv(a, b), mod(a, b)


# Logic. Nonzero is true.


@implements(np.logical_and)
def logical_and(a: Any, b: Any) -> Any:
    """Return where both are nonzero."""
    return ne(a, 0) & ne(b, 0)


@implements(np.logical_or)
def logical_or(a: Any, b: Any) -> Any:
    """Return where at least one is nonzero."""
    return ne(a, 0) | ne(b, 0)


@implements(np.logical_xor)
def logical_xor(a: Any, b: Any) -> Any:
    """Return where exactly one is nonzero."""
    return ne(ne(a, 0), ne(b, 0))


@implements(np.logical_not)
def logical_not(x: Any) -> Any:
    """Return where x is 0."""
    return eq(x, 0)


# Powers, exponentials and logarithms.


@implements(np.float_power)
def float_power(a: Any, b: Any) -> Any:
    """Compute a ** b in float64."""
    return pow(*[x.to(float64) if is_array(x) else x for x in (a, b)])


@implements(np.exp2)
def exp2(x: Any) -> Any:
    """Compute 2 ** x with pow, since exp(x * log(2)) would be inaccurate for large x."""
    return pow(2.0, *promote_to_float(x))


@implements(np.expm1)
def expm1(x: Any) -> Any:
    """Compute exp(x) - 1. Near 0, where the subtraction cancels, use 2 t / (1 - t) with t = tanh(x / 2)."""
    is_near = abs(x) < 0.5
    t = tanh(where(is_near, x, 0) * 0.5)
    return where(is_near, 2 * t / (1 - t), exp(x) - 1)


@implements(np.log2)
def log2(x: Any) -> Any:
    """Compute log(x) / log(2), snapped to integers, so that powers of 2 are exact."""
    return snap_to_integer(log(x) * (1 / math.log(2)))


@implements(np.log10)
def log10(x: Any) -> Any:
    """Compute log(x) / log(10), snapped to integers, so that powers of 10 are exact."""
    return snap_to_integer(log(x) * (1 / math.log(10)))


def snap_to_integer(y: Any) -> Any:
    """Round y to the nearest integer if it is at most 4 units in the last place away, else return y."""
    distance = floordiv(y + 0.5, 1) - y
    is_next = abs(distance) <= 2 * float_limits(y)[0] * abs(y)
    return y + where(is_next, distance, 0).detach()


@implements(np.cbrt)
def cbrt(x: Any) -> Any:
    """Compute the cube root: pow, then one step of Newton's method, since 1/3 is not a float."""
    (x,) = promote_to_float(x)
    guess = pow(abs(x), 1 / 3).detach()
    guess = where(x < 0, -guess, guess)
    is_plain = ne(guess, 0) & isfinite(guess)
    y = where(is_plain, guess, 1)
    return where(is_plain, y - (y - where(is_plain, x, 1) / (y * y)) / 3, x)


@implements(np.logaddexp)
def logaddexp(a: Any, b: Any) -> Any:
    """Compute log(exp(a) + exp(b)) without overflow."""
    a, b = promote_to_float(a, b)
    distance = where(eq(a, b), 0, a - b)  # the difference of two equal infinities would be NaN
    return maximum(a, b) + log1p(exp(-abs(distance)))


@implements(np.logaddexp2)
def logaddexp2(a: Any, b: Any) -> Any:
    """Compute log2(2 ** a + 2 ** b) without overflow."""
    a, b = promote_to_float(a, b)
    distance = where(eq(a, b), 0, a - b)
    return maximum(a, b) + snap_to_integer(log1p(exp2(-abs(distance))) * (1 / math.log(2)))


# Geometry.


@implements(np.hypot)
def hypot(a: Any, b: Any) -> Any:
    """Compute sqrt(a * a + b * b) without overflow. If one is infinite, the result is infinite, even if the other is NaN."""
    a, b = promote_to_float(a, b)
    scale = maximum(abs(a), abs(b)).detach()
    scale = where(isfinite(scale), maximum(scale, float_limits(scale)[1]), 1)  # its reciprocal is finite
    p, q = a / scale, b / scale
    return where(isinf(a) | isinf(b), math.inf, scale * sqrt(p * p + q * q))


@implements(np.deg2rad, np.radians)
def radians(x: Any) -> Any:
    """Convert degrees to radians."""
    return x * (math.pi / 180)


@implements(np.rad2deg, np.degrees)
def degrees(x: Any) -> Any:
    """Convert radians to degrees."""
    return x * (180 / math.pi)


@implements(np.tan)
def tan(x: Any) -> Any:
    """sin(x) / cos(x)."""
    return sin(x) / cos(x)


@implements(np.sinh)
def sinh(x: Any) -> Any:
    """(exp(x) - exp(-x)) / 2, accurate near 0."""
    return (expm1(x) - expm1(-x)) * 0.5


@implements(np.cosh)
def cosh(x: Any) -> Any:
    """(exp(x) + exp(-x)) / 2."""
    return (exp(x) + exp(-x)) * 0.5


# Extremes that ignore NaN.


@implements(np.fmax)
def fmax(a: Any, b: Any) -> Any:
    """Return the larger of a and b. If one is NaN, return the other; if they are equal, a."""
    return where(isnan(b) | (a >= b), a, b)


@implements(np.fmin)
def fmin(a: Any, b: Any) -> Any:
    """Return the smaller of a and b. If one is NaN, return the other; if they are equal, a."""
    return where(isnan(b) | (a <= b), a, b)

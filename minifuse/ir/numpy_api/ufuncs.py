"""NumPy's ufuncs: each is an operator of the table, or a composition of operators.

A composition uses only operators and methods of arrays. So it is one call on tensors, is inlined while tracing, and has a
gradient. `protocol` handles how ufuncs are called, including `out=`.
"""

import math
from typing import TYPE_CHECKING

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
from .table import UFUNCS, Operand, define, implements, is_array, promote_to_float

if TYPE_CHECKING:
    from ..array_methods import Array

NUMPY_NAMES = {"sub": "subtract", "mul": "multiply", "div": "divide", "floordiv": "floor_divide", "mod": "remainder"} | {
    "pow": "power", "neg": "negative", "abs": "absolute", "eq": "equal", "ne": "not_equal", "lt": "less", "gt": "greater",
    "le": "less_equal", "ge": "greater_equal", "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "pos": "positive",
}  # fmt: skip
OPERATORS = {getattr(np, NUMPY_NAMES.get(name, name), None): entry for name, entry in TABLE.items()}
UFUNCS |= {f: entry for f, entry in OPERATORS.items() if isinstance(f, np.ufunc)} | {np.matmul: matmul}

# Compositions. `where` computes both branches: inputs for which the other branch is used are replaced first, since 0 * inf
# would make their gradient NaN.

define(np.square, lambda x: x * x, "x * x.")


@implements(np.reciprocal)
def reciprocal(x: "Array") -> "Array":
    """1 / x. For integers the quotient is truncated, and 1 / 0 is 0."""
    return 1 / x if x.dtype.is_float else where(eq(abs(x), 1), x, 0)


define(np.fabs, lambda x: abs(*promote_to_float(x)), "Absolute value, as a float.")


@implements(np.sign)
def sign(x: "Array") -> "Array":
    """Return 1, 0, -1 or NaN. Both zeros return 0.0."""
    if x.dtype.numpy.kind == "u":
        return where(ne(x, 0), 1, x)
    return where(x > 0, 1, where(x < 0, -1, where(eq(x, 0), 0, x.detach())))


@implements(np.heaviside)
def heaviside(x: "Array", at_zero: "Array") -> "Array":
    """Return 0 below 0, 1 above, and `at_zero` at 0."""
    x, at_zero = promote_to_float(x, at_zero)
    return where(eq(x, 0), at_zero, where(x > 0, 1, where(x < 0, 0, x.detach())))


@implements(np.isfinite)
def isfinite(x: "Array") -> "Array":
    """Return True for each element that is neither NaN nor infinite."""
    return abs(x) < math.inf


@implements(np.isinf)
def isinf(x: "Array") -> "Array":
    """Return True for each element that is infinite."""
    return eq(abs(x), math.inf)


def float_limits(x: "Array") -> tuple[float, float]:
    """Return the machine epsilon and the smallest normal number of the dtype of an array."""
    info = np.finfo(x.dtype.numpy)
    return float(info.eps), float(info.tiny)


# Rounding. It has no gradient.


@implements(np.rint)
def rint(x: "Array") -> "Array":
    """Round to the nearest integer, half to even. A zero has the sign of x."""
    (x,) = promote_to_float(x)
    x = x.detach()
    limit, size = 1 / float_limits(x)[0], abs(x)
    nearest = (size + limit) - limit  # from `limit` on, all floats are integers: the sum is rounded to one
    nearest = where(eq(nearest, 0), x * 0, where(x < 0, -nearest, nearest))
    return where(size < limit, nearest, x)  # NaN is not less


@implements(np.floor)
def floor(x: "Array") -> "Array":
    """Round down to an integer."""
    if not x.dtype.is_float:
        return x.clone()
    nearest = rint(x)
    return where(nearest > x.detach(), nearest - 1, nearest)


@implements(np.ceil)
def ceil(x: "Array") -> "Array":
    """Round up to an integer."""
    return -floor(-x) if x.dtype.is_float else x.clone()


define(np.trunc, lambda x: where(x < 0, ceil(x), floor(x)) if x.dtype.is_float else x.clone(), "Round toward zero.")
define(np.divmod, lambda a, b: (floordiv(a, b), mod(a, b)), "Return (a // b, a % b).")

# Logic. Nonzero is true.

define(np.logical_and, lambda a, b: ne(a, 0) & ne(b, 0), "Return True where both elements are nonzero.")
define(np.logical_or, lambda a, b: ne(a, 0) | ne(b, 0), "Return True where at least one element is nonzero.")
define(np.logical_xor, lambda a, b: ne(ne(a, 0), ne(b, 0)), "Return True where exactly one element is nonzero.")
define(np.logical_not, lambda x: eq(x, 0), "Return True for each element that is 0.")

# Powers, exponentials and logarithms.


@implements(np.float_power)
def float_power(a: Operand, b: Operand) -> "Array":
    """Compute a ** b in float64."""
    return pow(*[x.to(float64) if is_array(x) else x for x in (a, b)])


@implements(np.exp2)
def exp2(x: "Array") -> "Array":
    """Compute 2 ** x with pow, since exp(x * log(2)) would be inaccurate for large x."""
    return pow(2.0, *promote_to_float(x))


@implements(np.expm1)
def expm1(x: "Array") -> "Array":
    """Compute exp(x) - 1. Near 0, where the subtraction cancels, use 2 t / (1 - t) with t = tanh(x / 2)."""
    is_near = abs(x) < 0.5
    t = tanh(where(is_near, x, 0) * 0.5)
    return where(is_near, 2 * t / (1 - t), exp(x) - 1)


@implements(np.log2)
def log2(x: "Array") -> "Array":
    """Compute log(x) / log(2), snapped to integers, so that powers of 2 are exact."""
    return snap_to_integer(log(x) * (1 / math.log(2)))


@implements(np.log10)
def log10(x: "Array") -> "Array":
    """Compute log(x) / log(10), snapped to integers, so that powers of 10 are exact."""
    return snap_to_integer(log(x) * (1 / math.log(10)))


def snap_to_integer(y: "Array") -> "Array":
    """Round y to the nearest integer if it is at most 4 units in the last place away, else return y."""
    distance = floordiv(y + 0.5, 1) - y
    is_close = abs(distance) <= 2 * float_limits(y)[0] * abs(y)
    return y + where(is_close, distance, 0).detach()


@implements(np.cbrt)
def cbrt(x: "Array") -> "Array":
    """Compute the cube root: pow, then one step of Newton's method, since 1/3 is not a float."""
    (x,) = promote_to_float(x)
    guess = pow(abs(x), 1 / 3).detach()
    guess = where(x < 0, -guess, guess)
    is_regular = ne(guess, 0) & isfinite(guess)
    y = where(is_regular, guess, 1)
    return where(is_regular, y - (y - where(is_regular, x, 1) / (y * y)) / 3, x)


@implements(np.logaddexp)
def logaddexp(a: Operand, b: Operand) -> "Array":
    """Compute log(exp(a) + exp(b)) without overflow."""
    a, b = promote_to_float(a, b)
    distance = where(eq(a, b), 0, a - b)  # the difference of two equal infinities would be NaN
    return maximum(a, b) + log1p(exp(-abs(distance)))


@implements(np.logaddexp2)
def logaddexp2(a: Operand, b: Operand) -> "Array":
    """Compute log2(2 ** a + 2 ** b) without overflow."""
    a, b = promote_to_float(a, b)
    distance = where(eq(a, b), 0, a - b)
    return maximum(a, b) + snap_to_integer(log1p(exp2(-abs(distance))) * (1 / math.log(2)))


# Geometry.


@implements(np.hypot)
def hypot(a: Operand, b: Operand) -> "Array":
    """Compute sqrt(a * a + b * b) without overflow. If one is infinite, the result is infinite, even if the other is NaN."""
    a, b = promote_to_float(a, b)
    scale = maximum(abs(a), abs(b)).detach()
    scale = where(isfinite(scale), maximum(scale, float_limits(scale)[1]), 1)  # 1 / scale is finite
    p, q = a / scale, b / scale
    return where(isinf(a) | isinf(b), math.inf, scale * sqrt(p * p + q * q))


define((np.deg2rad, np.radians), lambda x: x * (math.pi / 180), "Convert degrees to radians.")
define((np.rad2deg, np.degrees), lambda x: x * (180 / math.pi), "Convert radians to degrees.")
define(np.tan, lambda x: sin(x) / cos(x), "sin(x) / cos(x).")
define(np.sinh, lambda x: (expm1(x) - expm1(-x)) * 0.5, "(exp(x) - exp(-x)) / 2, accurate near 0.")
define(np.cosh, lambda x: (exp(x) + exp(-x)) * 0.5, "(exp(x) + exp(-x)) / 2.")

# Extremes that ignore NaN.


@implements(np.fmax)
def fmax(a: "Array", b: "Array") -> "Array":
    """Return the larger of a and b. If one is NaN, return the other; if they are equal, a."""
    return where(isnan(b) | (a >= b), a, b)


@implements(np.fmin)
def fmin(a: "Array", b: "Array") -> "Array":
    """Return the smaller of a and b. If one is NaN, return the other; if they are equal, a."""
    return where(isnan(b) | (a <= b), a, b)

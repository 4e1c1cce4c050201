"""Functions of the signs, remainders and exponents of numbers: copysign, fmod, ldexp, frexp, nextafter."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float64, int32
from ...core.operators import abs, eq, floordiv, isnan, log, maximum, mod, ne, pow, where  # noqa: A004
from .table import Operand, implements, promote_operands, promote_to_float
from .trigonometry import signbit
from .ufuncs import isfinite

if TYPE_CHECKING:
    from ..array_methods import Array


@implements(np.copysign)
def copysign(x: Operand, y: Operand) -> Any:
    """Return |x| with the sign of y."""
    x, y = promote_to_float(x, y)
    return where(eq(signbit(x), signbit(y)), x, -x)  # not abs(x), whose gradient at 0 is 0


@implements(np.fmod)
def fmod(x: Operand, y: Operand) -> "Array":
    """Return the remainder of a division that is rounded toward zero: it has the sign of x. An integer modulo 0 is 0."""
    x, y = promote_operands(x, y)
    rest = mod(abs(x), abs(y))
    return where(x < 0, -rest, where(eq(x, 0) & (abs(y) > 0), x, rest))


@implements(np.ldexp)
def ldexp(x: Operand, exponent: Operand) -> "Array":
    """Compute x * 2 ** exponent, in the float dtype of x."""
    (x,) = promote_to_float(x)
    n = promote_operands(exponent, x)[0].to(float64).detach()
    half = floordiv(n, 2)
    y = x.to(float64) * pow(2.0, half) * pow(2.0, n - half)  # 2 ** n may overflow where the product does not
    return y.to(x.dtype)


@implements(np.frexp)
def frexp(x: "Array") -> "tuple[Array, Array]":
    """Return m and an int32 e with x = m * 2 ** e and 1/2 <= |m| < 1; x and 0 for zeros, infinities and NaN."""
    (x,) = promote_to_float(x)
    is_regular = isfinite(x) & ne(x, 0)
    wide = where(is_regular, x, 1).to(float64)
    n = floordiv(log(abs(wide)) * (1 / math.log(2)), 1).detach()  # at most 1 off
    half = floordiv(n, 2)
    m = wide * pow(2.0, -half) * pow(2.0, half - n)
    is_large, is_small = abs(m) >= 1, abs(m) < 0.5
    for _ in range(2):
        m, n = where(is_large, m * 0.5, where(is_small, m * 2, m)), n + where(is_large, 1, where(is_small, -1, 0))
        is_large, is_small = abs(m) >= 1, abs(m) < 0.5
    return where(is_regular, m.to(x.dtype), x), where(is_regular, n, 0).to(int32)


@implements(np.nextafter)
def nextafter(x: Operand, y: Operand) -> "Array":
    """Return the next float after x in the direction of y. It has no gradient."""
    x, y = [z.detach() for z in promote_to_float(x, y)]
    info = np.finfo(x.dtype.numpy)
    lowest, largest = info.minexp - info.nmant, float(info.max)
    m, e = frexp(x)
    is_outward = eq(y > x, x > 0)
    is_closer = eq(abs(m), 0.5) & ~is_outward  # the floats below a power of 2
    exponent = where(eq(x, 0), lowest, maximum(e - where(is_closer, info.nmant + 2, info.nmant + 1), lowest))
    step = ldexp(where(isfinite(x), 1, x), exponent)
    after = where(y > x, x + step, x - step)
    after = where(eq(abs(x), math.inf), where(x > 0, largest, where(x < 0, -largest, x)), after)
    return where(isnan(x) | isnan(y), x + y, where(eq(x, y), y, where(eq(after, 0) & (x < 0), -after, after)))

"""Arithmetic of integers as NumPy's, in the words of CUDA kernels: it wraps around, and a division by 0 gives 0.

Numba's own sums and products of signed integers promise LLVM that none overflows, so that x + 1 > x would always be true;
those of unsigned ones promise nothing.
"""

from .base import device, i64, u64


@device
def integer_add(a, b):
    """a + b of int64."""
    return i64(u64(a) + u64(b))


@device
def integer_sub(a, b):
    """a - b of int64."""
    return i64(u64(a) - u64(b))


@device
def integer_mul(a, b):
    """a * b of int64."""
    return i64(u64(a) * u64(b))


@device
def integer_floordiv(a, b):
    """a // b of integers; by 0 it is 0."""
    if b == 0:
        return a * 0
    if b == -1:
        return -a
    return a // b


@device
def integer_mod(a, b):
    """a % b of integers, with the sign of b; modulo 0 it is 0."""
    if b == 0 or b == -1:
        return a * 0
    return a % b


@device
def integer_pow(base, exponent):
    """base ** exponent, wrapping; to a negative power the quotient without its fraction."""
    result = i64(1)
    factor = i64(base)
    rest = i64(exponent)
    if rest < 0:
        if factor == -1 and rest & 1:
            return i64(-1)
        return i64(1 if factor == 1 or factor == -1 else 0)
    while rest > 0:
        if rest & 1:
            result = integer_mul(result, factor)
        factor = integer_mul(factor, factor)
        rest = i64(rest >> 1)
    return result


@device
def integer_lshift(a, b):
    """a << b; 0 where b is negative or not below 64. Of int32 it is cut to 32 bits afterwards."""
    if b < 0 or b > 63:
        return i64(0)
    return i64(u64(a) * (u64(1) << u64(b)))  # LLVM makes it a shift; bits that leave are an error of the interpreter's <<


@device
def integer_rshift(a, b):
    """a >> b, which keeps the sign; 0 or -1 where b is negative or not below 64."""
    if b < 0 or b > 63:
        return i64(a) >> i64(63)
    return i64(a) >> i64(b)


ARITHMETIC = integer_add, integer_sub, integer_mul, integer_floordiv, integer_mod, integer_pow
INTEGER_FUNCTIONS = {f.__name__: f for f in (*ARITHMETIC, integer_lshift, integer_rshift)}

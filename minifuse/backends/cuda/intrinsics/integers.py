"""Integer arithmetic of CUDA kernels as in NumPy: it wraps around, and division by 0 gives 0.

Numba compiles sums and products of signed integers so that LLVM may assume that none overflows; x + 1 > x would always be
true. Those of unsigned integers carry no such assumption.
"""

from .base import device, i64, u64


@device
def integer_add(a, b):
    """Return a + b of int64."""
    return i64(u64(a) + u64(b))


@device
def integer_sub(a, b):
    """Return a - b of int64."""
    return i64(u64(a) - u64(b))


@device
def integer_mul(a, b):
    """Return a * b of int64."""
    return i64(u64(a) * u64(b))


@device
def integer_floordiv(a, b):
    """Return a // b of integers, or 0 if b is 0."""
    if b == 0:
        return a * 0
    if b == -1:
        return -a
    return a // b


@device
def integer_mod(a, b):
    """Return a % b of integers with the sign of b, or 0 if b is 0."""
    if b == 0 or b == -1:
        return a * 0
    return a % b


@device
def integer_pow(base, exponent):
    """Return base ** exponent, wrapped. For a negative exponent, truncate the exact result to an integer."""
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
    """Return a << b, or 0 if b is negative or at least 64. The caller truncates results of int32 to 32 bits."""
    if b < 0 or b > 63:
        return i64(0)
    return i64(u64(a) * (u64(1) << u64(b)))  # LLVM makes it a shift; in the interpreter, << raises if bits are lost


@device
def integer_rshift(a, b):
    """Return a >> b with the sign kept: 0 or -1 if b is negative or at least 64."""
    if b < 0 or b > 63:
        return i64(a) >> i64(63)
    return i64(a) >> i64(b)


ARITHMETIC = integer_add, integer_sub, integer_mul, integer_floordiv, integer_mod, integer_pow
INTEGER_FUNCTIONS = {f.__name__: f for f in (*ARITHMETIC, integer_lshift, integer_rshift)}

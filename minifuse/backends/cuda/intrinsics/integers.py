"""Integer arithmetic of CUDA kernels as in NumPy: it wraps around on overflow, and division by 0 returns 0.

Numba marks sums and products of signed integers as never overflowing, so LLVM may simplify x + 1 > x to true. It does not
mark those of unsigned integers, so these functions compute with uint64.
"""

from .base import device, i32, i64, store_at, u32, u64


@device
def integer_add(a, b):
    """Return a + b of int64, wrapping around."""
    return i64(u64(a) + u64(b))


@device
def integer_sub(a, b):
    """Return a - b of int64, wrapping around."""
    return i64(u64(a) - u64(b))


@device
def integer_mul(a, b):
    """Return a * b of int64, wrapping around."""
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
    """Return base ** exponent, wrapping around. For a negative exponent, truncate the exact result to an integer."""
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
    return i64(u64(a) * (u64(1) << u64(b)))  # LLVM makes it a << b, which the interpreter rejects if bits are lost


@device
def integer_rshift(a, b):
    """Return a >> b with the sign of a: 0 or -1 if b is negative or at least 64."""
    if b < 0 or b > 63:
        return i64(a) >> i64(63)
    return i64(a) >> i64(b)


@device
def divmod32(a, b):
    """Return a // b and a % b of integers from 0 to 2**31 - 1, by one unsigned division."""
    return i32(u32(a) // u32(b)), i32(u32(a) % u32(b))


@device
def divmod64(a, b):
    """Return a // b and a % b of integers that are not negative, by one unsigned division."""
    return i64(u64(a) // u64(b)), i64(u64(a) % u64(b))


@device
def note_outside(index, low, size, address):
    """Return an index. If it is not in low <= index < size, store it at an address (see `ir.index_checks`)."""
    store_at(address, index, (index < low) | (index >= size))
    return index


ARITHMETIC = integer_add, integer_sub, integer_mul, integer_floordiv, integer_mod, integer_pow
INTEGER_FUNCTIONS = {f.__name__: f for f in (*ARITHMETIC, integer_lshift, integer_rshift, divmod32, divmod64, note_outside)}

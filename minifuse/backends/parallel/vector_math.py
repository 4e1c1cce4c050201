"""Functions that generated CPU kernels call: pointers, accumulators, selection, NumPy arithmetic, and vector math functions.

Generated source imports its names from here. Arguments are promoted to their common type, as in NumPy. NaN, infinities,
signed zeros and subnormal numbers give correct results. A loop over any of these functions is vectorized, except: sin, cos
and pow in float64 and the remainder of floats (calls of libm), division of int64, and pow of integers.

`ULP` bounds the errors of the functions, in units in the last place of the exact result. Processors without a fused
multiply-add have slightly larger errors. `polynomials` explains the mathematics.
"""

from collections.abc import Sequence
from math import inf, nan

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.types import boolean as bool_
from numba.core.types import float32 as f32
from numba.core.types import float64 as f64
from numba.core.types import int8 as i8
from numba.core.types import int16 as i16
from numba.core.types import int32 as i32
from numba.core.types import int64 as i64
from numba.core.types import uint8 as u8
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from . import polynomials
from .llvm_values import FORMATS, LlvmValue, block_of, common_type, kernel_function, pointer_to, select
from .vector_emitter import Lowering

# fmt: off
__all__ = [  # noqa: RUF022  # by subject
    "bool_", "f32", "f64", "i8", "i16", "i32", "i64", "inf", "nan", "u8",
    "pointer_bool_", "pointer_f32", "pointer_f64", "pointer_i8", "pointer_i16", "pointer_i32", "pointer_i64", "pointer_u8",
    "block_of_bool_", "block_of_f32", "block_of_f64", "block_of_i8", "block_of_i16", "block_of_i32", "block_of_i64",
    "block_of_u8",
    "abs", "add", "atomic_add", "floor", "floordiv", "invert", "isnan", "lshift", "maximum", "minimum", "mod", "mul",
    "rshift", "rsqrt", "sqrt", "sub", "where",
    "cos", "erf", "exp", "log", "log1p", "pow", "sigmoid", "sin", "tanh",
]
# fmt: on

ULP = {  # largest error in float32 and in float64; None if libm computes it
    "exp": (0.95, 0.95),
    "log": (0.85, 0.85),
    "log1p": (1.45, 1.45),
    "tanh": (2.6, 2.6),
    "sigmoid": (2.45, 2.45),
    "erf": (1.9, 1.9),
    "rsqrt": (1.5, 1.5),
    "sin": (0.51, None),
    "cos": (0.51, None),
    "pow": (0.51, None),
}

# maximum(0.0, -0.0) may return either zero, as in NumPy; ordering them would double the time of a reduction.
EITHER_ZERO = ("nsz",)

pointer_f32, pointer_f64, pointer_i32, pointer_i64 = [pointer_to(kind) for kind in (f32, f64, i32, i64)]
block_of_f32, block_of_f64, block_of_i32, block_of_i64 = [block_of(kind) for kind in (f32, f64, i32, i64)]
pointer_i8, pointer_i16, pointer_u8 = [pointer_to(kind) for kind in (i8, i16, u8)]
block_of_i8, block_of_i16, block_of_u8 = [block_of(kind) for kind in (i8, i16, u8)]
pointer_bool_, block_of_bool_ = pointer_u8, block_of_u8  # in memory a bool is a byte


@kernel_function()
def where(condition: LlvmValue, a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a if the condition is true, else b, for values of any type."""
    return select(condition, a, b)


@kernel_function()
def maximum(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return the larger number; NaN if either is NaN."""
    return a.call("llvm.maximum", b, flags=EITHER_ZERO) if a.is_float else select(a > b, a, b)


@kernel_function()
def minimum(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return the smaller number; NaN if either is NaN."""
    return a.call("llvm.minimum", b, flags=EITHER_ZERO) if a.is_float else select(a < b, a, b)


@kernel_function(returns=bool_)
def isnan(x: LlvmValue) -> LlvmValue:
    """Return True for NaN, the only value that differs from itself; False for all integers."""
    return x != x


@kernel_function()
def add(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a + b. Integers wrap around on overflow, as in NumPy."""
    return a + b


@kernel_function()
def sub(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a - b. Integers wrap around on overflow, as in NumPy."""
    return a - b


@kernel_function()
def mul(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a * b. Integers wrap around on overflow, as in NumPy."""
    return a * b


@kernel_function()
def invert(x: LlvmValue) -> LlvmValue:
    """Flip every bit of an integer; negate a bool."""
    return ~x


def bit_width(x: LlvmValue) -> int:
    """Return the number of bits of an integer."""
    return 32 if x.type is i32 else 64


@kernel_function()
def lshift(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a << b; 0 if b is negative or at least the number of bits, where LLVM's shift is undefined."""
    max_shift = bit_width(a) - 1
    return select((b & max_shift) == b, a << (b & max_shift), a.number(0))


@kernel_function()
def rshift(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a >> b, which keeps the sign; 0 or -1 if b is negative or at least the number of bits."""
    max_shift = bit_width(a) - 1
    return a >> select((b & max_shift) == b, b, b.number(max_shift))


@kernel_function()
def abs(x: LlvmValue) -> LlvmValue:  # noqa: A001  # NumPy's name
    """Return the absolute value. The smallest integer has none, and is returned unchanged."""
    if x.is_float:
        return polynomials.magnitude(x)
    return x if x.type is bool_ else select(x < 0, -x, x)


@kernel_function()
def floor(x: LlvmValue) -> LlvmValue:
    """Return the largest integer that is not above x, with the type of x."""
    return x.call("llvm.floor") if x.is_float else x


@kernel_function(to_float=True)
def sqrt(x: LlvmValue) -> LlvmValue:
    """Return the square root, correctly rounded; NaN below 0.

    Notes
    -----
    With the kernel's fast-math flags, LLVM replaces a division by a root with an estimate, which is NaN if the root is 0 or
    inf. A select hides the root from this rewrite. It tests for both 0 and inf, since LLVM drops a test that x cannot pass,
    such as x == 0 in where(x == 0, 1, x).
    """
    return select((x == 0.0) | (x == inf), x, x.call("llvm.sqrt"))


@kernel_function(to_float=True)
def rsqrt(x: LlvmValue) -> LlvmValue:
    """Return 1 / sqrt(x); inf at 0, NaN below. Error at most 1.5 ULP in float32, 1.5 ULP in float64."""
    return 1.0 / x.call("llvm.sqrt")


def divide_integers(a: LlvmValue, b: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return (a // b, a % b), rounded down; (0, 0) if b is 0. The smallest integer divided by -1 is itself."""
    divisor = select((b == 0) | (b == -1), 1, b)  # processors trap on division by 0, and on overflow by -1
    if a.type is i32:  # float64 has vector instructions, and never rounds a quotient up to an integer
        quotient = (a.convert(f64) / divisor.convert(f64)).call("llvm.floor").convert(i32)
    else:
        quotient = a / divisor
        rest = a - quotient * divisor
        quotient = select((rest != 0) & ((rest ^ divisor) < 0), quotient - 1, quotient)
    quotient = select(b == 0, 0, select(b == -1, -a, quotient))
    return quotient, select(b == 0, 0, a - quotient * b)


def divide_floats(a: LlvmValue, b: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Return (a // b, a % b) like NumPy's `divmod`: the remainder is exact and has the sign of b."""
    zero, ratio = a.number(0.0), a / b
    rest = (a.convert(f64) % b.convert(f64)).convert(a.type)  # exact, and faster than fmod in float32
    is_below = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0))  # fmod returns the sign of a
    quotient = (a - rest) / b
    quotient = select(is_below, quotient - 1.0, quotient)  # an integer, up to rounding
    rounded = quotient.call("llvm.floor")
    rounded = select(quotient - rounded > 0.5, rounded + 1.0, rounded)
    rounded = select(quotient == 0.0, polynomials.with_sign(zero, ratio), rounded)
    rest = select(rest == 0.0, polynomials.with_sign(zero, b), select(is_below, rest + b, rest))
    return select(b == 0.0, ratio, rounded), rest


@kernel_function()
def floordiv(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a // b like `np.floor_divide`, rounded down. Division by 0 returns 0 for integers, inf or NaN for floats."""
    return (divide_floats if a.is_float else divide_integers)(a, b)[0]


@kernel_function()
def mod(a: LlvmValue, b: LlvmValue) -> LlvmValue:
    """Return a % b like `np.remainder`, with the sign of b. Modulo 0 returns 0 for integers, NaN for floats."""
    return (divide_floats if a.is_float else divide_integers)(a, b)[1]


@intrinsic
def atomic_add(
    typing: Context, target: types.Type, position: types.Type, value: types.Type
) -> tuple[Signature, Lowering] | None:
    """Add a value to an element of memory atomically."""
    element = getattr(target, "dtype", None)

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        number = context.cast(builder, values[2], value, element)
        pointer = builder.gep(values[0], [context.cast(builder, values[1], position, i64)])
        builder.atomic_rmw("fadd" if element in FORMATS else "add", pointer, number, "monotonic")
        return context.get_dummy_value()

    return (types.void(target, position, value), emit) if element in (f32, f64, i32, i64) else None


@kernel_function(to_float=True)
def exp(x: LlvmValue) -> LlvmValue:
    """Return e ** x. Error at most 0.95 ULP in float32, 0.95 ULP in float64."""
    return polynomials.exponential(x)


@kernel_function(to_float=True)
def log(x: LlvmValue) -> LlvmValue:
    """Return the natural logarithm; -inf at 0, NaN below. Error at most 0.85 ULP in float32, 0.85 ULP in float64."""
    return polynomials.logarithm(x)


@kernel_function(to_float=True)
def log1p(x: LlvmValue) -> LlvmValue:
    """Return log(1 + x); -inf at -1, NaN below. Error at most 1.45 ULP in float32, 1.45 ULP in float64."""
    return polynomials.logarithm_of_one_plus(x)


@kernel_function(to_float=True)
def tanh(x: LlvmValue) -> LlvmValue:
    """Return the hyperbolic tangent. Error at most 2.6 ULP in float32, 2.6 ULP in float64."""
    return polynomials.hyperbolic_tangent(x)


@kernel_function(to_float=True)
def sigmoid(x: LlvmValue) -> LlvmValue:
    """Return 1 / (1 + e ** -x). Error at most 2.45 ULP in float32, 2.45 ULP in float64."""
    e = polynomials.exponential(x, largest=40.0)  # above 40 the result is 1
    return e / (e + 1.0)


@kernel_function(to_float=True)
def erf(x: LlvmValue) -> LlvmValue:
    """Return the error function. Error at most 1.9 ULP in float32, 1.9 ULP in float64."""
    return polynomials.error_function(x)


@kernel_function(to_float=True)
def sin(x: LlvmValue) -> LlvmValue:
    """Return the sine of x radians. Error at most 0.51 ULP in float32; float64 uses libm."""
    return x.libm("llvm.sin") if x.type is f64 else select(x == 0.0, x, polynomials.sine(x, quarters=0))


@kernel_function(to_float=True)
def cos(x: LlvmValue) -> LlvmValue:
    """Return the cosine of x radians. Error at most 0.51 ULP in float32; float64 uses libm."""
    return x.libm("llvm.cos") if x.type is f64 else polynomials.sine(x, quarters=1)


def integer_power(base: int, exponent: int) -> int:
    """Return base ** exponent with wraparound; for a negative exponent, truncate the quotient. Numba compiles this."""
    if exponent < 0:
        return (base if exponent & 1 else 1) if base in (1, -1) else 0
    result = 1
    while exponent:
        if exponent & 1:
            result = mul(result, base)
        base = mul(base, base)
        exponent >>= 1
    return result


@intrinsic
def pow(typing: Context, base: types.Type, exponent: types.Type) -> tuple[Signature, Lowering] | None:  # noqa: A001  # NumPy's name
    """Return base ** exponent. Error at most 0.51 ULP in float32; float64 uses libm. Integers wrap around."""
    kind = common_type(typing, (base, exponent))
    if kind is None:
        return None

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        x, y = [LlvmValue(builder, kind, value) for value in values]
        if kind in FORMATS:
            return (polynomials.power(x, y) if kind is f32 else x.libm("llvm.pow", y)).value
        wide = [x.convert(i64).value, y.convert(i64).value]
        result = context.compile_internal(builder, integer_power, i64(i64, i64), wide)
        return LlvmValue(builder, i64, result).convert(kind).value

    return kind(kind, kind), emit

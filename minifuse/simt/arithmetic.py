"""Numbers in kernels: casts, math, NumPy's functions and builtins, with the semantics of Numba on a GPU.

Integers are exact Python ints, because Numba computes in at least 64 bits; only uint64 is a NumPy type. float32 stays
float32 in math functions, a division by zero returns inf or nan, and `min` and `max` ignore nan. Storing converts to the
element type as the hardware does: integers wrap.

There are two differences from Numba. An operation of a float literal and a float32 returns float32 here, and float64 there.
Dividing an integer or a literal by the integer 0 is an error here.
"""

import builtins
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, SupportsFloat, SupportsInt, TypeVar

import numpy as np

from ..core.errors import SimtError, UnknownWordError
from .lanes import KERNEL_BUILTINS, lane_error

RealNumber = bool | int | float | np.bool_ | np.integer | np.floating
LaneNumber = RealNumber | complex | np.complexfloating  # a number that a lane computes
ScalarFunction = Callable[..., Any]  # a function of numbers: a cast, or math of any number type
DTypeName = np.dtype | str | ScalarFunction  # a dtype, its name, or the function that casts to it
Value = TypeVar("Value")


def to_kernel_scalar(value: Value) -> Value | int:
    """Convert a NumPy scalar for kernels: integers to `int`, booleans to `bool`. Floats and uint64 are unchanged."""
    if isinstance(value, np.bool_):
        return bool(value)
    return int(value) if isinstance(value, np.integer) and not isinstance(value, np.uint64) else value


def wrap_integer(number: SupportsInt, dtype: np.dtype) -> int:
    """Reduce an integer to the range of an element type: keep its low bits."""
    value = int(number)
    if not -(1 << 63) <= value < 1 << 64:
        raise SimtError(
            f"{value} does not fit in 64 bits; integers in kernels are exact here, but wrap on a GPU: "
            "write int64(...) or uint64(...) where you want them to wrap"
        )
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


class IntegerCast:
    """An integer type that a kernel calls: `int32(x)` drops the fraction and wraps."""

    def __init__(self, name: str) -> None:
        self.__name__, self.dtype = name, np.dtype(name)
        self._mask = (1 << 8 * self.dtype.itemsize) - 1
        self._sign = 1 << 8 * self.dtype.itemsize - 1 if self.dtype.kind == "i" else 0

    def __call__(self, value: SupportsInt = 0) -> int:
        """Convert a value to this type."""
        return ((int(value) & self._mask) ^ self._sign) - self._sign

    def __repr__(self) -> str:
        return self.__name__


def cast_to_uint64(value: SupportsInt = 0) -> np.uint64:
    """Convert a value to an unsigned 64-bit integer, with wrapping."""
    return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


CASTS: Final[dict[str, ScalarFunction]] = {
    **{name: IntegerCast(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    **{"uint64": cast_to_uint64, "bool": bool},
    **{"float16": np.float16, "float32": np.float32, "float64": np.float64},
    **{"complex64": np.complex64, "complex128": np.complex128},
}
DTYPES: Final[dict[ScalarFunction | None, np.dtype]] = {cast: np.dtype(name) for name, cast in CASTS.items()}
ALIASES_BY_DTYPE: Final = {  # dtype -> its other names in Numba and NumPy
    "bool": "boolean bool_ b1",
    "int8": "char i1",
    "int16": "short i2",
    "int32": "intc i4",
    "int64": "intp int_ long_ longlong i8",
    "uint8": "byte u1",
    "uint16": "ushort u2",
    "uint32": "uintc u4",
    "uint64": "uintp uint ulong ulonglong u8",
    "float16": "half f2",
    "float32": "single float_ f4",
    "float64": "double f8",
    "complex64": "csingle c8",
    "complex128": "cdouble c16",
}
DTYPE_ALIASES: Final = {alias: name for name, aliases in ALIASES_BY_DTYPE.items() for alias in aliases.split()}


def dtype_named(kind: object) -> np.dtype | None:
    """Return the dtype that a dtype, a name or a cast function of a kernel denotes, or None for anything else."""
    if isinstance(kind, np.dtype):
        return kind
    if isinstance(kind, str):
        return DTYPES.get(CASTS.get(DTYPE_ALIASES.get(kind, kind)))
    return DTYPES.get(kind) if callable(kind) else None


def convert_scalar_argument(value: object) -> object:
    """Convert a number argument of a launch to the type that it has in the kernel."""
    if type(value) is complex:
        return np.complex128(value)
    return np.float64(value) if type(value) is float else to_kernel_scalar(value)


def adapt_ufunc(function: ScalarFunction) -> ScalarFunction:
    """Adapt a NumPy function, so that it takes and returns the numbers of kernels."""

    arity = getattr(function, "nin", 1)

    def apply(*operands: Any) -> Any:
        if len(operands) > arity:
            return apply_to_arrays(apply, function, operands)
        try:
            return to_kernel_scalar(function(*[int(x) if x is True or x is False else x for x in operands]))
        except TypeError:
            return apply_to_arrays(apply, function, operands)

    apply.__name__ = function.__name__
    return apply


def adapt_float_ufunc(function: ScalarFunction) -> ScalarFunction:
    """Adapt a NumPy function with float results. Integers are converted to float64."""

    arity = getattr(function, "nin", 1)

    def apply(*operands: Any) -> Any:
        if len(operands) > arity:
            return apply_to_arrays(apply, function, operands)
        try:
            return function(*[np.float64(x) if isinstance(x, int | np.integer) else x for x in operands])
        except TypeError:
            return apply_to_arrays(apply, function, operands)

    apply.__name__ = function.__name__
    return apply


def apply_to_arrays(apply: ScalarFunction, function: ScalarFunction, operands: tuple[Any, ...]) -> None:
    """Apply a function to each element and store the results: `np.add(x, 1, out)`. Arrays and numbers broadcast.

    This is called if an operand is no number, or if there is one operand more than the function takes: the output array.
    """
    arity, name = getattr(function, "nin", 1), f"np.{function.__name__}"
    is_array = [hasattr(operand, "shape") and not isinstance(operand, np.generic) for operand in operands]
    if not any(is_array):
        raise TypeError(f"{name} takes {arity} numbers, got {', '.join(type(operand).__name__ for operand in operands)}")
    if len(operands) != arity + 1 or not is_array[arity]:
        call = f"{name}({', '.join('xyz'[:arity])}, out)"
        raise lane_error(
            UnknownWordError, f"{name} of an array without an output", f"write {call}, or call it for each element"
        )
    *inputs, out = operands
    for index in np.ndindex(out.shape):
        out[index] = apply(
            *[
                broadcast_element(x, index) if is_array_operand else x
                for x, is_array_operand in zip(inputs, is_array, strict=False)
            ]
        )


def broadcast_element(array: Any, index: tuple[int, ...]) -> object:
    """Return the element of an array at an index of the broadcast shape."""
    array_index = index[len(index) - array.ndim :]
    return array[tuple(0 if size == 1 else position for position, size in zip(array_index, array.shape, strict=True))]


def adapt_math_function(function: Callable[[float], float], on_error: Callable[[float], float]) -> ScalarFunction:
    """Adapt a function of `math` that NumPy lacks. If it raises, return `on_error(x)`, the result of the hardware."""

    def apply(x: RealNumber) -> np.floating:
        kind = type(x) if isinstance(x, np.floating) else np.float64
        try:
            return kind(function(float(x)))
        except (ValueError, OverflowError):
            return kind(on_error(float(x)))

    apply.__name__ = function.__name__
    return apply


def real_power(base: RealNumber, exponent: RealNumber) -> np.floating:
    """Compute `math.pow` with the special cases of C. `np.power` is not used: it returns nan for a root of -inf."""
    kind = np.float32 if isinstance(base, np.float32) and isinstance(exponent, np.float32) else np.float64
    x, y = float(base), float(exponent)
    is_odd = y % 2 == 1  # False for inf and nan
    try:
        return kind(math.pow(x, y))
    except OverflowError:
        return kind(-math.inf if x < 0 and is_odd else math.inf)
    except ValueError:  # a root of a negative number, or 0 to a negative power
        return kind(math.nan if x else math.copysign(math.inf, x) if is_odd else math.inf)


def minimum_ignoring_nan(*values: RealNumber | tuple[RealNumber, ...]) -> RealNumber:
    """Return the smallest value. nan is ignored."""
    return reduce_extremum(np.fmin, min, values)


def maximum_ignoring_nan(*values: RealNumber | tuple[RealNumber, ...]) -> RealNumber:
    """Return the largest value. nan is ignored."""
    return reduce_extremum(np.fmax, max, values)


def reduce_extremum(
    float_extremum: Callable[[RealNumber, RealNumber], RealNumber],
    integer_extremum: Callable[[tuple[RealNumber, ...]], RealNumber],
    operands: tuple[Any, ...],
) -> RealNumber:
    """Return the smallest or the largest operand. If any operand is a float, compare with the float function."""
    values: tuple[RealNumber, ...] = operands[0] if len(operands) == 1 else operands
    if not any(isinstance(value, float | np.floating) for value in values):
        return integer_extremum(values)
    result = values[0]
    for value in values[1:]:
        result = float_extremum(result, value)
    return result


def float_cast(value: SupportsFloat = 0.0) -> np.float64:
    """`float(x)`: return a float64, so that a division by zero returns inf or nan."""
    return np.float64(value)


def complex_cast(real: LaneNumber = 0.0, imaginary: LaneNumber = 0.0) -> np.complex128:
    """`complex(x, y)`: return a complex128, so that a division by zero returns inf or nan."""
    return np.complex128(complex(real, imaginary))


def int_cast(value: SupportsInt = 0) -> int:
    """`int(x)`: drop the fraction."""
    return int(value)


def round_to_even(value: float | np.integer | np.floating, ndigits: int | None = None) -> RealNumber:
    """`round(x)`: return the nearest integer. Ties go to the even integer."""
    return round(value) if ndigits is None else type(value)(round(float(value), ndigits))


def power(base: LaneNumber, exponent: LaneNumber) -> LaneNumber:
    """`pow(x, y)`: compute `x ** y`."""
    return to_kernel_scalar(base**exponent)


def fma(a: RealNumber, b: RealNumber, c: RealNumber) -> np.floating:
    """Compute `a * b + c` with one rounding, in the widest of the three types."""
    kind = (
        np.result_type(*(x for x in (a, b, c) if isinstance(x, np.floating))).type
        if any(isinstance(x, np.floating) for x in (a, b, c))
        else np.float64
    )
    operands = [float(x) for x in (a, b, c)]
    if not all(map(math.isfinite, operands)):
        return kind(np.float64(operands[0]) * np.float64(operands[1]) + np.float64(operands[2]))
    total = Fraction(operands[0]) * Fraction(operands[1]) + Fraction(operands[2])
    if not total:
        return kind(np.float64(operands[0]) * np.float64(operands[1]) + np.float64(operands[2]))  # for the sign of zero
    return kind(round_to_odd(total) if kind is not np.float64 else nearest_float64(total))


def nearest_float64(number: Fraction) -> float:
    """Round an exact number to float64."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def round_to_odd(number: Fraction) -> float:
    """Round to float64 so that rounding again to a narrower type is correct: take the neighbor whose last bit is odd."""
    nearest = nearest_float64(number)
    if math.isinf(nearest) or Fraction(nearest) == number or np.float64(nearest).view(np.int64) & 1:
        return nearest
    return math.nextafter(nearest, math.inf if number > Fraction(nearest) else -math.inf)


def frexp(x: RealNumber) -> tuple[np.floating, int]:
    """Return mantissa and exponent."""
    mantissa, exponent = np.frexp(x)
    return mantissa, int(exponent)


def modf(x: RealNumber) -> tuple[np.floating, np.floating]:
    """Return the fraction and the integer part."""
    fraction, integer = np.modf(x)
    return fraction, integer


def ldexp(x: RealNumber, exponent: int) -> np.floating:
    """Compute `x * 2**exponent`."""
    scaled: np.floating = np.ldexp(x, exponent)
    return scaled


def cbrt(x: RealNumber) -> np.floating:
    """Compute the cube root through float64, because the float32 function of NumPy is not exact for 27."""
    root: np.floating = (type(x) if isinstance(x, np.floating) else np.float64)(np.cbrt(np.float64(x)))
    return root


def remainder(x: RealNumber, y: RealNumber) -> np.floating:
    """Compute the IEEE 754 remainder: the quotient is rounded to the nearest integer, ties to even."""
    kind: type[np.floating] = np.result_type(*(v if isinstance(v, np.floating) else np.float64 for v in (x, y))).type
    try:
        return kind(math.remainder(x, y))
    except ValueError:
        return kind(math.nan)


def adapt_complex(function: ScalarFunction) -> ScalarFunction:
    """Adapt a NumPy function with complex results."""

    def apply(z: LaneNumber) -> np.complexfloating:
        result: np.complexfloating = function(z if isinstance(z, np.complex64) else np.complex128(z))
        return result

    apply.__name__ = function.__name__
    return apply


def phase(z: complex | np.number) -> np.floating:
    """Return the angle of a complex number."""
    angle: np.floating = np.arctan2(np.float64(z.imag), np.float64(z.real))
    return angle


def polar(z: complex | np.number) -> tuple[Any, np.floating]:
    """Return the absolute value and the angle of a complex number."""
    return abs(z), phase(z)


def rect(r: RealNumber, phi: RealNumber) -> np.complex128:
    """Return the complex number with the absolute value r and the angle phi."""
    return np.complex128(complex(r * np.cos(phi), r * np.sin(phi)))


def split_names(text: str) -> list[str]:
    """Split a text into the names in it."""
    return text.split()


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    return math.gcd(a, b)


SHARED_MATH_NAMES: Final = split_names(  # functions with equal names in `math` and NumPy
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh ceil floor trunc fabs hypot fmod copysign "
    "nextafter degrees radians"
)
ARC_NAMES: Final = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}

MATH_FUNCTIONS: Final[Mapping[str, ScalarFunction]] = {
    **{name: adapt_float_ufunc(getattr(np, name)) for name in SHARED_MATH_NAMES},
    **{name: adapt_float_ufunc(getattr(np, numpy_name)) for name, numpy_name in ARC_NAMES.items()},
    **{name: adapt_ufunc(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    "pow": real_power,
    "cbrt": cbrt,
    "frexp": frexp,
    "modf": modf,
    "ldexp": ldexp,
    "remainder": remainder,
    "erf": adapt_math_function(math.erf, lambda _: math.nan),
    "erfc": adapt_math_function(math.erfc, lambda _: math.nan),
    "gamma": adapt_math_function(math.gamma, lambda x: math.inf if x > 0 else math.nan if x else math.copysign(math.inf, x)),
    "lgamma": adapt_math_function(math.lgamma, lambda _: math.inf),
    "gcd": gcd,
}
MATH_CONSTANTS: Final[Mapping[str, float]] = {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}
MATH: Final[Mapping[str, ScalarFunction | float]] = {**MATH_FUNCTIONS, **MATH_CONSTANTS}

CMATH: Final[Mapping[str, ScalarFunction | float]] = {
    **{name: adapt_complex(getattr(np, name)) for name in split_names("exp log log10 sqrt sin cos tan sinh cosh tanh")},
    **{name: adapt_complex(getattr(np, ARC_NAMES[name])) for name in split_names("asin acos atan asinh acosh atanh")},
    **{name: adapt_ufunc(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    **{"phase": phase, "polar": polar, "rect": rect},
    **MATH_CONSTANTS,
}

UFUNCS: Final = split_names(
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh arcsin arccos arctan arctan2 arcsinh "
    "arccosh arctanh ceil floor trunc rint fabs absolute sign square negative maximum minimum fmax fmin hypot isnan isinf "
    "isfinite power fmod remainder mod copysign nextafter floor_divide true_divide divide add subtract multiply logical_and "
    "logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor invert left_shift right_shift equal not_equal "
    "less less_equal greater greater_equal deg2rad rad2deg degrees radians reciprocal ldexp signbit"
)
NUMPY: Final[Mapping[str, ScalarFunction | float | None]] = {
    **{
        name: MATH_FUNCTIONS[name]
        if name in MATH_FUNCTIONS
        else (adapt_float_ufunc if name.startswith("arc") else adapt_ufunc)(getattr(np, name))
        for name in UFUNCS
    },
    **{"abs": abs, "pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "newaxis": None, "int_": CASTS["int64"]},
    **CASTS,
    "bool_": bool,
    **{
        alias: CASTS[DTYPE_ALIASES[alias]]
        for alias in ("intc", "uintc", "intp", "uintp", "uint", "single", "double", "half")
    },
}

KERNEL_BUILTINS.update(
    {
        **{
            name: getattr(builtins, name)
            for name in split_names("abs divmod bool range len print enumerate zip tuple slice")
        },
        **{name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)},
        "min": minimum_ignoring_nan,
        "max": maximum_ignoring_nan,
        "round": round_to_even,
        "pow": power,
        "int": int_cast,
        "float": float_cast,
        "complex": complex_cast,
        "True": True,
        "False": False,
        "None": None,
    }
)

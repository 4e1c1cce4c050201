"""Numbers in kernels: casts, math, NumPy's names and builtins, with Numba's meaning on a GPU.

Integers are exact Python ints, because Numba computes at least in 64 bits; only uint64 is NumPy's. float32 stays float32
through math, a division by zero gives inf or nan, and `min` and `max` pass over nan. An element type takes what is stored as
the hardware does: integers wrap. What differs from Numba: a float literal next to a float32 is weak here, and float64 there;
a division of an integer or a literal by the integer 0 is an error here.
"""

import builtins
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ..core.errors import SimtError, UnknownWordError
from .lanes import KERNEL_BUILTINS, lane_error

ScalarFunction = Callable[..., Any]


def to_kernel_scalar(value: Any) -> Any:
    """A result of NumPy as kernels hold it: integers as `int`, booleans as `bool`, floats and uint64 as they are."""
    if isinstance(value, np.bool_):
        return bool(value)
    return int(value) if isinstance(value, np.integer) and not isinstance(value, np.uint64) else value


def wrap_integer(value: Any, dtype: np.dtype[Any]) -> Any:
    """An integer as an element of this type holds it: its low bits."""
    value = int(value)
    if not -(1 << 63) <= value < 1 << 64:
        raise SimtError(
            f"{value} does not fit 64 bits; integers in kernels are exact here, and wrap on a GPU: "
            "write int64(...) or uint64(...) where they are meant to wrap"
        )
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


class IntegerCast:
    """An integer type as a kernel calls it: `int32(x)` cuts off what is behind the point and wraps."""

    def __init__(self, name: str) -> None:
        self.__name__, self.dtype = name, np.dtype(name)
        self._mask = (1 << 8 * self.dtype.itemsize) - 1
        self._sign = 1 << 8 * self.dtype.itemsize - 1 if self.dtype.kind == "i" else 0

    def __call__(self, value: Any = 0) -> int:
        """The value in this type."""
        return ((int(value) & self._mask) ^ self._sign) - self._sign

    def __repr__(self) -> str:
        return self.__name__


def cast_to_uint64(value: Any = 0) -> np.uint64:
    """The value as an unsigned integer of 64 bits, wrapped."""
    return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)


CASTS: Final[dict[str, Any]] = {
    **{name: IntegerCast(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    **{"uint64": cast_to_uint64, "bool": bool},
    **{"float16": np.float16, "float32": np.float32, "float64": np.float64},
    **{"complex64": np.complex64, "complex128": np.complex128},
}
DTYPES: Final[dict[Any, np.dtype[Any]]] = {cast: np.dtype(name) for name, cast in CASTS.items()}
DTYPE_ALIASES: Final[dict[str, str]] = {  # Numba's and NumPy's names of types
    **{
        "boolean": "bool",
        "bool_": "bool",
        "intc": "int32",
        "uintc": "uint32",
        "intp": "int64",
        "uintp": "uint64",
        "int_": "int64",
    },
    **{"byte": "uint8", "char": "int8", "short": "int16", "ushort": "uint16", "uint": "uint64", "longlong": "int64"},
    **{
        "ulonglong": "uint64",
        "long_": "int64",
        "ulong": "uint64",
        "half": "float16",
        "double": "float64",
        "single": "float32",
    },
    **{
        "float_": "float32",
        "b1": "bool",
        "i1": "int8",
        "i2": "int16",
        "i4": "int32",
        "i8": "int64",
        "u1": "uint8",
        "u2": "uint16",
    },
    **{"u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64"},
    **{"c8": "complex64", "c16": "complex128", "csingle": "complex64", "cdouble": "complex128"},
}


def cast_for(dtype: np.dtype[Any]) -> Any:
    """What a type does to a number when a kernel calls it; None where kernels have no such type."""
    return CASTS.get(dtype.name)


def dtype_named(kind: Any) -> np.dtype[Any] | None:
    """The element type that a kernel names; None where it is none."""
    if isinstance(kind, np.dtype):
        return kind
    if isinstance(kind, str):
        return DTYPES.get(CASTS.get(DTYPE_ALIASES.get(kind, kind)))
    return DTYPES.get(kind) if callable(kind) else None


def scalar_argument(value: Any) -> Any:
    """A number that is passed to a kernel, as kernels hold it."""
    if type(value) is complex:
        return np.complex128(value)
    return np.float64(value) if type(value) is float else to_kernel_scalar(value)


def from_ufunc(function: ScalarFunction) -> ScalarFunction:
    """A function of NumPy on the numbers of kernels."""

    count = getattr(function, "nin", 1)

    def meaning(*operands: Any) -> Any:
        if len(operands) > count:
            return apply_to_arrays(meaning, function, operands)
        try:
            return to_kernel_scalar(function(*[int(x) if x is True or x is False else x for x in operands]))
        except TypeError:
            return apply_to_arrays(meaning, function, operands)

    meaning.__name__ = function.__name__
    return meaning


def from_float_ufunc(function: ScalarFunction) -> ScalarFunction:
    """A function of NumPy with float results: float64 for integers."""

    count = getattr(function, "nin", 1)

    def meaning(*operands: Any) -> Any:
        if len(operands) > count:
            return apply_to_arrays(meaning, function, operands)
        try:
            return function(*[np.float64(x) if isinstance(x, int | np.integer) else x for x in operands])
        except TypeError:
            return apply_to_arrays(meaning, function, operands)

    meaning.__name__ = function.__name__
    return meaning


def apply_to_arrays(meaning: ScalarFunction, function: Any, operands: tuple[Any, ...]) -> None:
    """Store a function of elements in an array: `np.add(x, 1, out)`, for arrays and numbers of shapes that broadcast.

    Runs where the number or the types of the operands are not those of one element.
    """
    count, name = getattr(function, "nin", 1), f"np.{function.__name__}"
    is_array = [hasattr(operand, "shape") and not isinstance(operand, np.generic) for operand in operands]
    if not any(is_array):
        raise TypeError(f"{name} takes {count} numbers, got {', '.join(type(operand).__name__ for operand in operands)}")
    if len(operands) != count + 1 or not is_array[count]:
        call = f"{name}({', '.join('xyz'[:count])}, out)"
        raise lane_error(
            UnknownWordError, f"{name} of an array without an output", f"write {call}, or call it for each element"
        )
    *inputs, out = operands
    for index in np.ndindex(out.shape):
        out[index] = meaning(
            *[broadcast_element(x, index) if many else x for x, many in zip(inputs, is_array, strict=False)]
        )


def broadcast_element(array: Any, index: tuple[int, ...]) -> Any:
    """Return the element of an array that broadcasts to an index."""
    own = index[len(index) - array.ndim :]
    return array[tuple(0 if size == 1 else position for position, size in zip(own, array.shape, strict=True))]


def from_python(function: Callable[[float], float], failed: Callable[[float], float]) -> ScalarFunction:
    """A function that only Python has; where it raises, the value that hardware gives."""

    def meaning(x: Any) -> Any:
        kind = type(x) if isinstance(x, np.floating) else np.float64
        try:
            return kind(function(float(x)))
        except (ValueError, OverflowError):
            return kind(failed(float(x)))

    meaning.__name__ = function.__name__
    return meaning


def real_power(base: Any, exponent: Any) -> Any:
    """`math.pow` as C has it; NumPy's scalars give nan for a root of -inf."""
    kind = np.float32 if isinstance(base, np.float32) and isinstance(exponent, np.float32) else np.float64
    x, y = float(base), float(exponent)
    is_odd = y % 2 == 1  # False for inf and nan
    try:
        return kind(math.pow(x, y))
    except OverflowError:
        return kind(-math.inf if x < 0 and is_odd else math.inf)
    except ValueError:  # a root of a negative number, or 0 to a negative power
        return kind(math.nan if x else math.copysign(math.inf, x) if is_odd else math.inf)


def minimum_ignoring_nan(*values: Any) -> Any:
    """The least of the values; a nan counts as missing."""
    return reduce_extremum(np.fmin, min, values)


def maximum_ignoring_nan(*values: Any) -> Any:
    """The greatest of the values; a nan counts as missing."""
    return reduce_extremum(np.fmax, max, values)


def reduce_extremum(of_floats: ScalarFunction, of_integers: ScalarFunction, values: tuple[Any, ...]) -> Any:
    """The first value after ordering, in the type that all of them have in common."""
    values = values[0] if len(values) == 1 else values
    if not any(isinstance(value, float | np.floating) for value in values):
        return of_integers(values)
    found = values[0]
    for value in values[1:]:
        found = of_floats(found, value)
    return found


def float_cast(value: Any = 0.0) -> np.float64:
    """`float(x)`: float64, so that a division by zero gives inf or nan."""
    return np.float64(value)


def complex_cast(real: Any = 0.0, imaginary: Any = 0.0) -> np.complex128:
    """`complex(x, y)`: complex128, so that a division by zero gives inf or nan."""
    return np.complex128(complex(real, imaginary))


def int_cast(value: Any = 0) -> int:
    """`int(x)`: what is before the point."""
    return int(value)


def round_to_even(value: Any, ndigits: int | None = None) -> Any:
    """`round(x)`: the nearest integer, the even one of two."""
    return round(value) if ndigits is None else type(value)(round(float(value), ndigits))


def power(base: Any, exponent: Any) -> Any:
    """`pow(x, y)`: as `x ** y`."""
    return to_kernel_scalar(base**exponent)


def fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` with one rounding, in the widest type of the three."""
    kind = (
        np.result_type(*(x for x in (a, b, c) if isinstance(x, np.floating))).type
        if any(isinstance(x, np.floating) for x in (a, b, c))
        else np.float64
    )
    exact = [float(x) for x in (a, b, c)]
    if not all(map(math.isfinite, exact)):
        return kind(np.float64(exact[0]) * np.float64(exact[1]) + np.float64(exact[2]))
    total = Fraction(exact[0]) * Fraction(exact[1]) + Fraction(exact[2])
    if not total:
        return kind(np.float64(exact[0]) * np.float64(exact[1]) + np.float64(exact[2]))  # for the sign of zero
    return kind(round_to_odd(total) if kind is not np.float64 else nearest_float64(total))


def nearest_float64(exact: Fraction) -> float:
    """The nearest float64."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def round_to_odd(exact: Fraction) -> float:
    """A float64 that rounds to narrower types as the exact number does: of two neighbours the one with the odd last bit."""
    found = nearest_float64(exact)
    if math.isinf(found) or Fraction(found) == exact or np.float64(found).view(np.int64) & 1:
        return found
    return math.nextafter(found, math.inf if exact > Fraction(found) else -math.inf)


def frexp(x: Any) -> tuple[Any, int]:
    """Mantissa and exponent."""
    mantissa, exponent = np.frexp(x)
    return mantissa, int(exponent)


def modf(x: Any) -> tuple[Any, Any]:
    """What is behind and what is before the point."""
    behind, before = np.modf(x)
    return behind, before


def ldexp(x: Any, exponent: int) -> Any:
    """`x * 2**exponent`."""
    return np.ldexp(x, exponent)


def cbrt(x: Any) -> Any:
    """The cube root; through float64, since NumPy's is not exact for 27."""
    return (type(x) if isinstance(x, np.floating) else np.float64)(np.cbrt(np.float64(x)))


def remainder(x: Any, y: Any) -> Any:
    """IEEE 754's remainder: of the quotient rounded to even."""
    kind = np.result_type(*(v if isinstance(v, np.floating) else np.float64 for v in (x, y))).type
    try:
        return kind(math.remainder(x, y))
    except ValueError:
        return kind(math.nan)


def complex_function(function: ScalarFunction) -> ScalarFunction:
    """Return a function of NumPy with complex results."""

    def meaning(z: Any) -> Any:
        return function(z if isinstance(z, np.complex64) else np.complex128(z))

    meaning.__name__ = function.__name__
    return meaning


def phase(z: Any) -> Any:
    """The angle of a complex number."""
    return np.arctan2(np.float64(z.imag), np.float64(z.real))


def polar(z: Any) -> tuple[Any, Any]:
    """Absolute value and angle of a complex number."""
    return abs(z), phase(z)


def rect(r: Any, phi: Any) -> Any:
    """The complex number of an absolute value and an angle."""
    return np.complex128(complex(r * np.cos(phi), r * np.sin(phi)))


def split_names(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


def gcd(a: int, b: int) -> int:
    """The greatest common divisor."""
    return math.gcd(a, b)


SHARED_MATH_NAMES: Final = split_names(
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh ceil floor trunc fabs hypot fmod copysign "
    "nextafter degrees radians"
)
ARC_NAMES: Final = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}

MATH: Final[Mapping[str, Any]] = {
    **{name: from_float_ufunc(getattr(np, name)) for name in SHARED_MATH_NAMES},
    **{name: from_float_ufunc(getattr(np, source)) for name, source in ARC_NAMES.items()},
    **{name: from_ufunc(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    **{
        "pow": real_power,
        "cbrt": cbrt,
        "frexp": frexp,
        "modf": modf,
        "ldexp": ldexp,
        "remainder": remainder,
    },
    **{"erf": from_python(math.erf, lambda _: math.nan), "erfc": from_python(math.erfc, lambda _: math.nan)},
    "gamma": from_python(math.gamma, lambda x: math.inf if x > 0 else math.nan if x else math.copysign(math.inf, x)),
    "lgamma": from_python(math.lgamma, lambda _: math.inf),
    **{"gcd": gcd, "pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan},
}

CMATH: Final[Mapping[str, Any]] = {
    **{name: complex_function(getattr(np, name)) for name in split_names("exp log log10 sqrt sin cos tan sinh cosh tanh")},
    **{name: complex_function(getattr(np, ARC_NAMES[name])) for name in split_names("asin acos atan asinh acosh atanh")},
    **{name: from_ufunc(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    **{"phase": phase, "polar": polar, "rect": rect},
    **{name: MATH[name] for name in ("pi", "e", "tau", "inf", "nan")},
}

UFUNCS: Final = split_names(
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh arcsin arccos arctan arctan2 arcsinh "
    "arccosh arctanh ceil floor trunc rint fabs absolute sign square negative maximum minimum fmax fmin hypot isnan isinf "
    "isfinite power fmod remainder mod copysign nextafter floor_divide true_divide divide add subtract multiply logical_and "
    "logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor invert left_shift right_shift equal not_equal "
    "less less_equal greater greater_equal deg2rad rad2deg degrees radians reciprocal ldexp signbit"
)
NUMPY: Final[Mapping[str, Any]] = {
    **{
        name: MATH[name] if name in MATH else (from_float_ufunc if name.startswith("arc") else from_ufunc)(getattr(np, name))
        for name in UFUNCS
    },
    **{"abs": abs, "pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "newaxis": None, "int_": CASTS["int64"]},
    **CASTS,
    "bool_": bool,
    **{
        other: CASTS[DTYPE_ALIASES[other]]
        for other in ("intc", "uintc", "intp", "uintp", "uint", "single", "double", "half")
    },
}

KERNEL_BUILTINS.update(
    **{
        "abs": abs,
        "min": minimum_ignoring_nan,
        "max": maximum_ignoring_nan,
        "round": round_to_even,
        "pow": power,
        "divmod": divmod,
    },
    **{
        "int": int_cast,
        "float": float_cast,
        "complex": complex_cast,
        "bool": bool,
        "range": range,
        "len": len,
        "print": print,
    },
    **{"enumerate": enumerate, "zip": zip, "tuple": tuple, "slice": slice, "True": True, "False": False, "None": None},
    **{name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)},
)

"""Functions of `numba.cuda.libdevice` and `cuda.fp16` for kernels, built from those in `arithmetic`.

A libdevice function whose name ends in `f` computes in float32, any other in float64. The fast variants (`fast_sinf`) are
as accurate here as the others.
"""

import operator
from typing import Any, Final, SupportsFloat

import numpy as np

from .arithmetic import MATH_FUNCTIONS, ScalarFunction, fma, maximum_ignoring_nan, minimum_ignoring_nan, split_names
from .lanes import raise_unknown
from .memory import KernelArray

FLOAT_FUNCTIONS: Final[dict[str, ScalarFunction]] = {
    **{
        name: MATH_FUNCTIONS[name]
        for name in split_names(
            "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
            "atan2 pow fmod hypot ceil floor trunc erf erfc fabs copysign nextafter remainder lgamma"
        )
    },
    "tgamma": MATH_FUNCTIONS["gamma"],
    "fma": fma,
    "fmin": minimum_ignoring_nan,
    "fmax": maximum_ignoring_nan,
    "rint": np.rint,
    "exp10": lambda x: np.power(type(x)(10), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "fdividef": operator.truediv,
    "fdivide": operator.truediv,
    "saturate": lambda x: minimum_ignoring_nan(maximum_ignoring_nan(x, 0), 1),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "fdim": lambda x, y: maximum_ignoring_nan(x - y, 0),
    "sincos": lambda x: (np.sin(x), np.cos(x)),
}
FP16_ARITHMETIC: Final[dict[str, ScalarFunction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    "max": maximum_ignoring_nan,
    "min": minimum_ignoring_nan,
    "fma": fma,
    "rcp": lambda x: 1 / x,
    **{
        name: FLOAT_FUNCTIONS[name]
        for name in split_names("sin cos log log2 log10 exp exp2 exp10 sqrt rsqrt floor ceil trunc rint")
    },
}
FP16_COMPARISONS: Final[dict[str, ScalarFunction]] = {
    name: getattr(operator, name) for name in split_names("eq ne ge gt le lt")
}


def mark_instruction(function: ScalarFunction, name: str) -> ScalarFunction:
    """Return the function, named and marked as an instruction, as `cuda_api.word` does."""
    function.__name__, function.is_word = name, True  # type: ignore[attr-defined]  # `rebind` reads it
    return function


def with_dtype(kind: type[np.floating], function: ScalarFunction, name: str) -> ScalarFunction:
    """Return a function whose operands and results have one float type."""

    def apply(*operands: Any) -> Any:
        if any(isinstance(operand, KernelArray) for operand in operands):
            raise_unknown(f"{name} of an array")
        result = function(*map(kind, operands))
        return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)

    return mark_instruction(apply, name)


def fp16_comparison(function: ScalarFunction, name: str) -> ScalarFunction:
    """Return a comparison of two float16 numbers."""

    def apply(x: SupportsFloat, y: SupportsFloat) -> bool:
        return bool(function(np.float16(x), np.float16(y)))

    return mark_instruction(apply, name)


LIBDEVICE: Final[dict[str, ScalarFunction]] = {
    **{name: with_dtype(np.float64, function, name) for name, function in FLOAT_FUNCTIONS.items()},
    **{f"{name}f": with_dtype(np.float32, function, f"{name}f") for name, function in FLOAT_FUNCTIONS.items()},
    **{
        f"fast_{name}f": with_dtype(np.float32, FLOAT_FUNCTIONS[name], f"fast_{name}f")
        for name in split_names("sin cos tan exp exp10 log log2 log10 pow fdivide sincos")
    },
}


class Fp16Functions:
    """`cuda.fp16`: arithmetic of float16."""

    def __getattr__(self, name: str) -> ScalarFunction:
        if name not in FP16_FUNCTIONS:
            raise_unknown(f"cuda.fp16.{name}")
        return FP16_FUNCTIONS[name]


FP16_FUNCTIONS: Final[dict[str, ScalarFunction]] = {
    **{f"h{name}": with_dtype(np.float16, function, f"h{name}") for name, function in FP16_ARITHMETIC.items()},
    **{f"h{name}": fp16_comparison(function, f"h{name}") for name, function in FP16_COMPARISONS.items()},
}

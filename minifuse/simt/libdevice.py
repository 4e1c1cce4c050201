"""Functions of `numba.cuda.libdevice` and `cuda.fp16` for kernels, made of the meanings in `arithmetic`.

A name of libdevice that ends in `f` computes in float32, any other in float64. The fast ones (`fast_sinf`) are as exact here
as the others.
"""

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .arithmetic import MATH, fma, largest, names, smallest
from .lanes import unknown
from .memory import Array

Meaning = Callable[..., Any]
FLOATING: Final[dict[str, Meaning]] = {
    **{name: MATH[name] for name in names("exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh")},
    **{
        name: MATH[name] for name in names("asin acos atan asinh acosh atanh atan2 pow fmod hypot ceil floor trunc erf erfc")
    },
    **{name: MATH[name] for name in names("fabs copysign nextafter remainder lgamma")},
    **{"tgamma": MATH["gamma"], "fma": fma, "fmin": smallest, "fmax": largest, "rint": np.rint},
    **{"exp10": lambda x: np.power(type(x)(10), x), "rsqrt": lambda x: 1 / np.sqrt(x), "rcbrt": lambda x: 1 / np.cbrt(x)},
    **{"fdividef": operator.truediv, "fdivide": operator.truediv, "saturate": lambda x: smallest(largest(x, 0), 1)},
    **{
        "sinpi": lambda x: np.sin(np.pi * x),
        "cospi": lambda x: np.cos(np.pi * x),
        "round": lambda x: np.trunc(x + np.copysign(0.5, x)),
    },
    **{"fdim": lambda x, y: largest(x - y, 0), "sincos": lambda x: (np.sin(x), np.cos(x))},
}
OF_HALVES: Final[dict[str, Meaning]] = {
    **{"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg},
    **{"abs": abs, "max": largest, "min": smallest, "fma": fma, "rcp": lambda x: 1 / x},
    **{name: FLOATING[name] for name in names("sin cos log log2 log10 exp exp2 exp10 sqrt rsqrt floor ceil trunc rint")},
}
COMPARISONS: Final[dict[str, Meaning]] = {name: getattr(operator, name) for name in names("eq ne ge gt le lt")}


def computing_in(kind: type[np.floating[Any]], function: Meaning, name: str) -> Meaning:
    """Return a function whose numbers and results are of one type."""

    def meaning(*operands: Any) -> Any:
        if any(isinstance(operand, Array) for operand in operands):
            unknown(f"{name} of an array")
        found = function(*map(kind, operands))
        return tuple(map(kind, found)) if isinstance(found, tuple) else kind(found)

    meaning.__name__, meaning.is_word = name, True  # type: ignore[attr-defined]
    return meaning


def comparing(function: Meaning, name: str) -> Meaning:
    """Return a comparison of two halves."""

    def meaning(x: Any, y: Any) -> bool:
        return bool(function(np.float16(x), np.float16(y)))

    meaning.__name__, meaning.is_word = name, True  # type: ignore[attr-defined]
    return meaning


LIBDEVICE: Final[dict[str, Meaning]] = {
    **{name: computing_in(np.float64, function, name) for name, function in FLOATING.items()},
    **{f"{name}f": computing_in(np.float32, function, f"{name}f") for name, function in FLOATING.items()},
    **{
        f"fast_{name}f": computing_in(np.float32, FLOATING[name], f"fast_{name}f")
        for name in names("sin cos tan exp exp10 log log2 log10 pow fdivide sincos")
    },
}


class Halves:
    """`cuda.fp16`: arithmetic of float16."""

    def __getattr__(self, name: str) -> Any:
        if name not in HALVES:
            unknown(f"cuda.fp16.{name}")
        return HALVES[name]


HALVES: Final[dict[str, Meaning]] = {
    **{f"h{name}": computing_in(np.float16, function, f"h{name}") for name, function in OF_HALVES.items()},
    **{f"h{name}": comparing(function, f"h{name}") for name, function in COMPARISONS.items()},
}

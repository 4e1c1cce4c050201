"""Approximations of operators of float32: a few instructions each, the ones that `torch.compile` generates for GPUs.

A kernel calls an approximation by its name: `fast_div(a, b)` is that of the operator `div`. This file contains the Python
implementations, `fast_math_llvm` the code that Numba compiles. In the interpreter, each instruction is rounded correctly, so
errors are smaller than on a GPU, whose bounds are in BOUNDS.
"""

import math
from typing import NamedTuple

import numpy as np

from .base import intrinsic

LOG2E = np.float32(1 / math.log(2))


class ErrorBound(NamedTuple):
    """An error in units in the last place, at most `ulp` + `per_unit` * |x|, and the PTX instructions that have it."""

    ulp: float
    per_unit: float
    instructions: str

    def at(self, x: np.ndarray) -> np.ndarray:
        """Return the bound at numbers: a distance from the correctly rounded result."""
        size = np.minimum(np.nan_to_num(np.abs(x.astype(np.float64))), np.finfo(np.float32).max)
        return self.ulp + self.per_unit * size


# Each instruction has an error of at most 2 in NVIDIA's documents. The argument of ex2 is rounded twice, as LOG2E and as the
# product. That is a relative error of at most (2^-24 + 2^-26.2) * |x| in the result, and 2^-24 may be one unit. For __expf,
# CUDA's programming guide has 1.173, which was found by tests.
BOUNDS = {
    "fast_div": ErrorBound(2, 0, "div.full.f32"),
    "fast_exp": ErrorBound(2, 1.23, "mul.f32, ex2.approx.f32"),
    "fast_rsqrt": ErrorBound(2, 0, "rsqrt.approx.f32"),
}


@intrinsic("fast_math_llvm.divide")
def fast_div(a: np.float32, b: np.float32) -> np.float32:
    """Return a / b, by one instruction that scales operands, so that numbers of all exponents are supported."""
    with np.errstate(all="ignore"):
        return np.float32(a) / np.float32(b)


@intrinsic("fast_math_llvm.exponential")
def fast_exp(x: np.float32) -> np.float32:
    """Return e ** x as 2 ** (x * log2(e)). The product is rounded, so the error grows with the size of x."""
    with np.errstate(all="ignore"):
        return np.float32(np.exp2(np.float64(np.float32(x) * LOG2E)))


@intrinsic("fast_math_llvm.reciprocal_root")
def fast_rsqrt(x: np.float32) -> np.float32:
    """Return 1 / sqrt(x) by one instruction, instead of a square root and a division."""
    with np.errstate(all="ignore"):
        return np.float32(1 / np.sqrt(np.float64(x)))


FAST_FUNCTIONS = {f.__name__: f for f in (fast_div, fast_exp, fast_rsqrt)}

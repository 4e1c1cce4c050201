"""LLVM code of the intrinsics in `fast_math`.

This module is imported only if something is compiled. No instruction has the modifier `.ftz`: subnormal numbers are
supported.
"""

from llvmlite import ir
from numba import types

from .base_llvm import F32, Emitter, emits
from .fast_math import LOG2E


@emits(lambda a, b: types.float32(types.float32, types.float32))
def divide(code: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return a / b, approximately."""
    return code.instruction("div.full", a, b)


@emits(lambda x: types.float32(types.float32))
def exponential(code: Emitter, x: ir.Value) -> ir.Value:
    """Return e ** x by the instruction for 2 ** x."""
    return code.instruction("ex2.approx", code.builder.fmul(x, ir.Constant(F32, float(LOG2E))))


@emits(lambda x: types.float32(types.float32))
def reciprocal_root(code: Emitter, x: ir.Value) -> ir.Value:
    """Return 1 / sqrt(x)."""
    return code.instruction("rsqrt.approx", x)

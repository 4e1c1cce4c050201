"""LLVM code of the intrinsics in `fast_math`: each function returns the Numba intrinsic that emits one of them.

This module is imported only if something is compiled. No instruction has the modifier `.ftz`: subnormal numbers are
supported.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core.typing.templates import Signature
from numba.cuda.extending import intrinsic
from numba.cuda.target import CUDATargetContext, CUDATypingContext

from .base_llvm import F32, TypedImplementation, Values
from .fast_math import LOG2E
from .rows_llvm import call_ptx

Emitter = Callable[[ir.IRBuilder, ir.Value], ir.Value]


def divide() -> object:
    """Return the intrinsic that divides approximately."""

    @intrinsic
    def quotient(typingctx: CUDATypingContext, a: types.Float, b: types.Float) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return call_ptx(builder, "div.full", *values)

        return types.float32(types.float32, types.float32), codegen

    return quotient


def function_of_one(emit: Emitter) -> object:
    """Return an intrinsic that computes a function of one number."""

    @intrinsic
    def function(typingctx: CUDATypingContext, x: types.Float) -> TypedImplementation:
        def codegen(context: CUDATargetContext, builder: ir.IRBuilder, signature: Signature, values: Values) -> ir.Value:
            return emit(builder, values[0])

        return types.float32(types.float32), codegen

    return function


def exponential() -> object:
    """Return the intrinsic that computes e ** x by the instruction for 2 ** x."""

    def emit(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
        return call_ptx(builder, "ex2.approx", builder.fmul(x, ir.Constant(F32, float(LOG2E))))

    return function_of_one(emit)


def reciprocal_root() -> object:
    """Return the intrinsic that computes 1 / sqrt(x)."""
    return function_of_one(lambda builder, x: call_ptx(builder, "rsqrt.approx", x))

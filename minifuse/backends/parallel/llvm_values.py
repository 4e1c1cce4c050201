"""Emit LLVM instructions with Python arithmetic, for the functions that CPU kernels call.

These functions are plain Python over `LlvmValue`s, and become Numba intrinsics: a call in a kernel inlines their
instructions. Inlining takes 1 ms, while Numba would take 50 ms to compile a separate function. Each instruction has exactly
the flags that it needs.

LLVM never reassociates the sums and products emitted here. The rest of a kernel may be reassociated by its fast-math flags,
which would undo the error corrections of a polynomial. Numba adds the kernel's flags only to instructions without flags.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

from llvmlite import ir
from llvmlite.ir import Value
from llvmlite.ir.instructions import FastMathFlags
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.types import boolean as bool_
from numba.core.types import float32 as f32
from numba.core.types import float64 as f64
from numba.core.types import int32 as i32
from numba.core.types import int64 as i64
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ..codegen.loop_emitter import COLUMNS_PER_BLOCK
from .vector_emitter import Lowering

Body = Callable[..., "LlvmValue"]
LlvmOperand = Union["LlvmValue", float]  # a Python number takes the type of the other operand
KernelFunction = Callable[..., Any]  # a Numba intrinsic, which only compiled code can call

LLVM_TYPES = {f32: ir.FloatType(), f64: ir.DoubleType(), i32: ir.IntType(32), i64: ir.IntType(64), bool_: ir.IntType(1)}
STRICT_FLAGS = ("afn",)  # "afn" does not change sums, products or comparisons; Numba adds no flags where one is set


class FloatFormat(NamedTuple):
    """The bits of a floating-point type: a sign, an exponent, a fraction."""

    integer_type: types.Type  # the integer type of equal width
    fraction_bits: int
    one_bits: int  # the bits of 1.0
    sign_mask: int  # the sign bit
    smallest_normal: float

    @property
    def rounder(self) -> float:
        """A constant for rounding: the lowest bits of x + rounder are the nearest integer to x."""
        return 1.5 * 2.0**self.fraction_bits


FORMATS = {
    f32: FloatFormat(i32, 23, 0x7F << 23, -1 << 31, 2.0**-126),
    f64: FloatFormat(i64, 52, 0x3FF << 52, -1 << 63, 2.0**-1022),
}


class NoFastMath(FastMathFlags):  # type: ignore[misc]  # llvmlite has no types
    """The flags of a call to which Numba adds no fast-math flags."""

    def add(self, name: str) -> None:
        """Ignore a flag of the kernel."""


class LlvmValue:
    """A value in the kernel under compilation. Python's operators on it emit instructions.

    `>>` keeps the sign, `/` and `%` of integers truncate towards zero, and comparisons with NaN are false, except `!=`.
    """

    __slots__ = ("builder", "type", "value")

    def __init__(self, builder: ir.IRBuilder, kind: types.Type, value: Value) -> None:
        self.builder, self.type, self.value = builder, kind, value

    @property
    def is_float(self) -> bool:
        """True for a floating-point type."""
        return self.type in FORMATS

    @property
    def format(self) -> FloatFormat:
        """The bit format of a floating-point type."""
        return FORMATS[self.type]

    def number(self, x: LlvmOperand) -> "LlvmValue":
        """Return a Python number as a constant of this type, and a value unchanged."""
        return x if isinstance(x, LlvmValue) else LlvmValue(self.builder, self.type, ir.Constant(LLVM_TYPES[self.type], x))

    def call(self, name: str, *others: LlvmOperand, flags: Sequence[str] = ()) -> "LlvmValue":
        """Call an LLVM intrinsic over one type, with fast-math flags in addition to those of the kernel.

        An intrinsic that is one machine instruction, such as `llvm.floor`, is vectorized.
        """
        kind, values = LLVM_TYPES[self.type], [self.value, *[self.number(x).value for x in others]]
        function = self.builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind] * len(values)))
        return LlvmValue(self.builder, self.type, self.builder.call(function, values, fastmath=flags))

    def libm(self, name: str, *others: LlvmOperand) -> "LlvmValue":
        """Call an LLVM intrinsic that becomes a call of libm, without the fast-math flags of the kernel.

        With these flags LLVM may call another function, such as `__powidf2` for a power with a converted integer. This
        function belongs to a compiler's runtime library, which may not be loaded.
        """
        result = self.call(name, *others)
        result.value.fastmath = NoFastMath()
        return result

    def convert(self, kind: types.Type) -> "LlvmValue":
        """Convert a number (not a bool) to another type. From float to integer, truncate towards zero."""
        if kind is self.type:
            return self
        if self.is_float:
            name = ("fpext" if kind is f64 else "fptrunc") if kind in FORMATS else "fptosi"
        else:
            name = "sitofp" if kind in FORMATS else "sext" if kind is i64 else "trunc"
        return LlvmValue(self.builder, kind, getattr(self.builder, name)(self.value, LLVM_TYPES[kind]))

    def binary(self, float_instruction: str, integer_instruction: str, a: LlvmOperand, b: LlvmOperand) -> "LlvmValue":
        """Emit an instruction with two operands of this type."""
        emit = getattr(self.builder, float_instruction if self.is_float else integer_instruction)
        value = emit(self.number(a).value, self.number(b).value, flags=STRICT_FLAGS * self.is_float)
        return LlvmValue(self.builder, self.type, value)

    def compare(self, symbol: str, other: LlvmOperand) -> "LlvmValue":
        """Emit a comparison. The result is a bool."""
        a, b = self.value, self.number(other).value
        if self.is_float:
            emit = self.builder.fcmp_unordered if symbol == "!=" else self.builder.fcmp_ordered
            return LlvmValue(self.builder, bool_, emit(symbol, a, b, flags=STRICT_FLAGS))
        emit = self.builder.icmp_unsigned if self.type is bool_ else self.builder.icmp_signed
        return LlvmValue(self.builder, bool_, emit(symbol, a, b))

    def __add__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("fadd", "add", self, other)

    def __radd__(self, other: float) -> "LlvmValue":
        return self.binary("fadd", "add", other, self)

    def __sub__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("fsub", "sub", self, other)

    def __rsub__(self, other: float) -> "LlvmValue":
        return self.binary("fsub", "sub", other, self)

    def __mul__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("fmul", "mul", self, other)

    def __rmul__(self, other: float) -> "LlvmValue":
        return self.binary("fmul", "mul", other, self)

    def __truediv__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("fdiv", "sdiv", self, other)

    def __rtruediv__(self, other: float) -> "LlvmValue":
        return self.binary("fdiv", "sdiv", other, self)

    def __mod__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("frem", "srem", self, other)

    def __and__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("", "and_", self, other)

    def __or__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("", "or_", self, other)

    def __xor__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("", "xor", self, other)

    def __lshift__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("", "shl", self, other)

    def __rshift__(self, other: LlvmOperand) -> "LlvmValue":
        return self.binary("", "ashr", self, other)

    def __invert__(self) -> "LlvmValue":
        return self ^ -1

    def __neg__(self) -> "LlvmValue":
        return LlvmValue(self.builder, self.type, self.builder.fneg(self.value)) if self.is_float else 0 - self

    def __lt__(self, other: LlvmOperand) -> "LlvmValue":
        return self.compare("<", other)

    def __le__(self, other: LlvmOperand) -> "LlvmValue":
        return self.compare("<=", other)

    def __gt__(self, other: LlvmOperand) -> "LlvmValue":
        return self.compare(">", other)

    def __ge__(self, other: LlvmOperand) -> "LlvmValue":
        return self.compare(">=", other)

    def __eq__(self, other: LlvmOperand) -> "LlvmValue":  # type: ignore[override]  # emits a comparison
        return self.compare("==", other)

    def __ne__(self, other: LlvmOperand) -> "LlvmValue":  # type: ignore[override]  # emits a comparison
        return self.compare("!=", other)


def select(condition: LlvmValue, a: LlvmOperand, b: LlvmValue) -> LlvmValue:
    """Return a if condition else b, without a branch."""
    return LlvmValue(b.builder, b.type, b.builder.select(condition.value, b.number(a).value, b.value))


def fma(a: LlvmValue, b: LlvmOperand, c: LlvmOperand) -> LlvmValue:
    """Return a * b + c, rounded once if the processor has fused multiply-add."""
    return a.call("llvm.fmuladd", b, c)


def horner(x: LlvmValue, coefficients: Sequence[float]) -> LlvmValue:
    """Evaluate a polynomial in x. The coefficient of the highest power is first."""
    p = x.number(coefficients[0])
    for c in coefficients[1:]:
        p = fma(p, x, c)
    return p


def bits(x: LlvmValue) -> LlvmValue:
    """Return the bits of a float as an integer of equal width."""
    kind = x.format.integer_type
    return LlvmValue(x.builder, kind, x.builder.bitcast(x.value, LLVM_TYPES[kind]))


def from_bits(n: LlvmValue) -> LlvmValue:
    """Return the float with the bits of an integer."""
    kind = f32 if n.type is i32 else f64
    return LlvmValue(n.builder, kind, n.builder.bitcast(n.value, LLVM_TYPES[kind]))


def common_type(typing: Context, arguments: Sequence[types.Type], to_float: bool = False) -> types.Type | None:
    """Return the type to which arguments are promoted; None if there is none. If `to_float`, integers become float64."""
    kind = typing.unify_types(*arguments)
    return f64 if to_float and isinstance(kind, types.Integer | types.Boolean) else kind if kind in LLVM_TYPES else None


def kernel_function(*, to_float: bool = False, returns: types.Type | None = None) -> Callable[[Body], KernelFunction]:
    """Decorate a function of `LlvmValue`s, so that kernels can call it.

    The arguments are promoted to their common type, as in NumPy; if `to_float`, integers are promoted to float64. The result
    has this type, too, unless `returns` is another one. An argument named `condition` is a bool.
    """

    def decorate(body: Body) -> KernelFunction:
        parameters = list(inspect.signature(body).parameters.values())
        is_bool = [p.name == "condition" for p in parameters]

        def define(typing: Context, *arguments: types.Type) -> tuple[Signature, Lowering] | None:
            kind = common_type(typing, [t for t, b in zip(arguments, is_bool, strict=True) if not b], to_float)

            def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
                return body(*map(LlvmValue, [builder] * len(values), signature.args, values)).value

            return None if kind is None else ((returns or kind)(*[bool_ if b else kind for b in is_bool]), emit)

        first = inspect.Parameter("typing", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        define.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]  # Numba reads it
        define.__name__, define.__doc__, define.__module__ = body.__name__, body.__doc__, body.__module__
        return intrinsic(define)

    return decorate


def pointer_to(element: types.Type) -> KernelFunction:
    """Return a kernel function that converts an address or a pointer to a pointer to this element type."""

    def pointer(typing: Context, address: types.Type) -> tuple[Signature, Lowering]:
        def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            convert = builder.bitcast if isinstance(address, types.CPointer) else builder.inttoptr
            return convert(values[0], context.get_data_type(element).as_pointer())

        return types.CPointer(element)(address), emit

    return intrinsic(pointer)


def block_of(element: types.Type, length: int = COLUMNS_PER_BLOCK) -> KernelFunction:
    """Return a kernel function that allocates uninitialized elements on the stack, once for each call of the kernel."""

    def block(typing: Context) -> tuple[Signature, Lowering]:
        def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            return cgutils.alloca_once(builder, context.get_data_type(element), size=length)

        return types.CPointer(element)(), emit

    return intrinsic(block)

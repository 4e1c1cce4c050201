"""Intrinsics of the library's CUDA kernels, each with two implementations: one in Python, one for Numba.

A kernel is a Python function that calls the names defined here. The interpreter calls it unchanged; the compiler replaces
each name by a Numba object (`compiler.rebind_for_numba`). So a picture, a test without a GPU and the hardware all run the
same lines. Functions marked with `device` are plain Python in both cases.
"""

import builtins
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ....simt import cuda as cuda
from ....simt import word

ALL_LANES = 0xFFFFFFFF
PITCH = 65  # elements from row to row of a 64 x 64 tile: consecutive rows start in different banks


class Intrinsic:
    """A name used in kernels that Numba CUDA does not define.

    Parameters
    ----------
    python_semantics
        The implementation for the interpreter: a Python function, marked with `simt.word` if it touches memory or lanes.
    build
        Returns what Numba compiles the name to: an intrinsic, a jitted function or a type. It is called once, and only if
        something is compiled.
    """

    def __init__(self, python_semantics: Callable[..., Any], build: Callable[[], Any]) -> None:
        self.python_semantics, self._build = python_semantics, build
        self.__name__, self.__doc__ = python_semantics.__name__, python_semantics.__doc__

    def __call__(self, *operands: Any) -> Any:
        """Run the Python implementation, in the interpreter."""
        return self.python_semantics(*operands)

    @cached_property
    def compiled(self) -> Any:
        """Return what Numba compiles the name to."""
        return self._build()


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a Python function that kernels call. It is compiled into each of its callers."""
    function.is_device = True  # type: ignore[attr-defined]
    return function


def intrinsic(build: Callable[[], Any]) -> Callable[[Callable[..., Any]], Intrinsic]:
    """Return a decorator that makes an Intrinsic of its Python implementation.

    `build` returns the typing function of a Numba intrinsic, which emits the instructions.
    """

    def decorate(python_semantics: Callable[..., Any]) -> Intrinsic:
        def build_intrinsic() -> Any:
            from numba.cuda.extending import intrinsic as numba_intrinsic

            return numba_intrinsic(build())

        return Intrinsic(python_semantics, build_intrinsic)

    return decorate


def _type(name: str) -> Callable[[], Any]:
    def build() -> Any:
        from numba.core import types

        return getattr(types, name)

    return build


f32, f64 = Intrinsic(np.float32, _type("float32")), Intrinsic(np.float64, _type("float64"))
i32, i64, u8, u32, u64 = (
    Intrinsic(getattr(np, name), _type(name)) for name in ("int32", "int64", "uint8", "uint32", "uint64")
)


# Memory: vectors of four elements.


def _load4_llvm() -> Any:
    """Emit the load of four elements: one instruction for 16 bytes."""
    from llvmlite import ir
    from numba.core import types

    def load4(typingctx: Any, source: Any, i: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            element = context.get_data_type(source.dtype)
            at = builder.gep(data_pointer(context, builder, source, values[0]), [values[1]])
            vector = ir.VectorType(element, 4)
            found = builder.load(
                builder.bitcast(at, vector.as_pointer()), align=vector_alignment(source.dtype.bitwidth // 8)
            )
            numbers = [builder.extract_element(found, ir.Constant(ir.IntType(32), k)) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(source.dtype, 4)(source, i), emit

    return load4


def _store4_llvm() -> Any:
    """Emit the store of four elements."""
    from llvmlite import ir
    from numba.core import types

    def store4(typingctx: Any, target: Any, i: Any, numbers: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            element = context.get_data_type(target.dtype)
            at = builder.gep(data_pointer(context, builder, target, values[0]), [values[1]])
            found = ir.Constant(ir.VectorType(element, 4), ir.Undefined)
            for k in range(4):
                number = context.cast(builder, builder.extract_value(values[2], k), numbers[k], target.dtype)
                found = builder.insert_element(found, number, ir.Constant(ir.IntType(32), k))
            place = builder.bitcast(at, found.type.as_pointer())
            builder.store(found, place, align=vector_alignment(target.dtype.bitwidth // 8))
            return context.get_dummy_value()

        return types.void(target, i, numbers), emit

    return store4


def data_pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the address of the first element of a pointer or an array."""
    from numba.core import types

    if isinstance(kind, types.CPointer):
        return value
    return context.make_array(kind)(context, builder, value=value).data


def vector_alignment(nbytes: int) -> int:
    """Return the alignment of four elements, in bytes: at most 16, since one instruction moves at most 16 bytes."""
    return builtins.min(16, 4 * nbytes)


@intrinsic(_load4_llvm)
@word
def load4(source: Any, i: Any) -> Any:
    """Load source[i] to source[i + 3] at once. The address must be a multiple of 16 bytes."""
    return source.load(i, 4)


@intrinsic(_store4_llvm)
@word
def store4(target: Any, i: Any, numbers: Any) -> None:
    """Store four numbers to target[i] ... target[i + 3] at once. The address must be a multiple of 16 bytes."""
    target.store(i, numbers)


def _no_unroll_llvm() -> Any:
    """Emit an instruction that does nothing and may not be duplicated."""
    from llvmlite import ir
    from numba.core import types

    def no_unroll(typingctx: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), ()), "", "", side_effect=True)
            set.add(builder.call(nothing, ()).attributes, "noduplicate")  # llvmlite does not know this attribute
            return context.get_dummy_value()

        return types.void(), emit

    return no_unroll


@intrinsic(_no_unroll_llvm)
def no_unroll() -> None:
    """Keep the compiler from unrolling the loop around this call: rarely executed code is not worth its compile time."""


def _atomic_add_llvm() -> Any:
    from llvmlite import ir
    from numba.core import types

    def atomic_add(typingctx: Any, target: Any, i: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            from numba.cuda import nvvmutils

            position = context.cast(builder, values[1], i, types.int64)
            at = builder.gep(data_pointer(context, builder, target, values[0]), [position])
            number = context.cast(builder, values[2], value, target.dtype)
            if isinstance(target.dtype, types.Float):
                is_single = number.type == ir.FloatType()
                declare = nvvmutils.declare_atomic_add_float32 if is_single else nvvmutils.declare_atomic_add_float64
                builder.call(declare(builder.module), [at, number])
            else:
                builder.atomic_rmw("add", at, number, "monotonic")
            return context.get_dummy_value()

        return types.void(target, i, value), emit

    return atomic_add


@intrinsic(_atomic_add_llvm)
@word
def atomic_add(target: Any, i: Any, value: Any) -> None:
    """Add value to target[i] atomically: no other thread accesses it between the read and the write."""
    cuda.atomic.add(target, i, value)


# Numbers.


def _like_llvm() -> Any:
    def like(typingctx: Any, x: Any, number: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return context.cast(builder, values[1], number, x)

        return x(x, number), emit

    return like


@intrinsic(_like_llvm)
def like(x: Any, number: Any) -> Any:
    """Convert a number to the type of x. A Python literal would turn float32 arithmetic into float64."""
    return type(x)(number)


def _floor_llvm() -> Any:
    def floor(typingctx: Any, x: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = values[0].type
            return builder.call(builder.module.declare_intrinsic("llvm.floor", [kind]), values)

        return x(x), emit

    return floor


@intrinsic(_floor_llvm)
def floor(x: Any) -> Any:
    """Round x down to an integer, in the type of x."""
    return np.floor(x)


exp, log, log1p, sqrt = math.exp, math.log, math.log1p, math.sqrt
sin, cos, tanh, erf, pow = math.sin, math.cos, math.tanh, math.erf, math.pow  # noqa: A001  # names of the operator table
abs, inf, nan = builtins.abs, math.inf, math.nan  # noqa: A001


@device
def add(a, b):
    """Return a + b."""
    return a + b


@device
def mul(a, b):
    """Return a * b."""
    return a * b


@device
def and_(a, b):
    """Return a & b."""
    return a & b


@device
def or_(a, b):
    """Return a | b."""
    return a | b


@device
def maximum(a, b):
    """Return the larger number, or NaN if either is NaN."""
    return a if a > b or a != a else b


@device
def minimum(a, b):
    """Return the smaller number, or NaN if either is NaN."""
    return a if a < b or a != a else b


@device
def where(condition, a, b):
    """Return a if the condition holds, else b."""
    return a if condition else b


@device
def mod(a, b):
    """Return a % b of floats, with the sign of b. Modulo 0 is NaN."""
    zero = like(a, 0)
    rest = math.fmod(a, b)
    if rest == zero:
        return math.copysign(zero, b)
    if (rest < zero) != (b < zero):
        rest += b
    return rest


@device
def floordiv(a, b):
    """Return a // b of floats, rounded down from the exact remainder, as NumPy does."""
    zero, one = like(a, 0), like(a, 1)
    ratio = a / b
    if b == zero:
        return ratio
    rest = math.fmod(a, b)
    quotient = (a - rest) / b
    if rest != zero and (rest < zero) != (b < zero):
        quotient -= one
    if quotient == zero:
        return math.copysign(zero, ratio)
    whole = floor(quotient)
    if quotient - whole > like(a, 0.5):
        whole += one
    return whole


# Transposing a matrix in 64 x 64 tiles whose rows start PITCH elements apart.


def _put4_llvm() -> Any:
    """Emit four stores. Numba's own indexing would test whether each index is negative."""
    from llvmlite import ir
    from numba.core import types

    def put4(typingctx: Any, tile: Any, i: Any, numbers: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = builder.gep(data_pointer(context, builder, tile, values[0]), [values[1]])
            for k in range(4):
                place = builder.gep(at, [ir.Constant(ir.IntType(64), k)])
                builder.store(builder.extract_value(values[2], k), place)
            return context.get_dummy_value()

        return types.void(tile, i, numbers), emit

    return put4


def _below4_llvm() -> Any:
    """Emit four loads from consecutive rows of a tile."""
    from llvmlite import ir
    from numba.core import types

    def below4(typingctx: Any, tile: Any, i: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            at = builder.gep(data_pointer(context, builder, tile, values[0]), [values[1]])
            places = [builder.gep(at, [ir.Constant(ir.IntType(64), PITCH * k)]) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, [builder.load(place) for place in places])

        return types.UniTuple(tile.dtype, 4)(tile, i), emit

    return below4


@intrinsic(_put4_llvm)
@word
def put4(tile: Any, i: Any, numbers: Any) -> None:
    """Store four numbers to tile[i] ... tile[i + 3], one after the other. The address need not be aligned."""
    for k in range(4):
        tile[i + k] = numbers[k]


@intrinsic(_below4_llvm)
@word
def below4(tile: Any, i: Any) -> Any:
    """Load four neighbors of a column: tile[i] and the elements one, two and three rows below it."""
    return tuple([tile[i + PITCH * k] for k in range(4)])


@device
def copy_tile(tile, source, start, stride, height, width, is_wide):
    """Copy up to 64 x 64 elements by 8 x 32 threads: tile[65 * row + column] = source[start + row * stride + column].

    All loads are issued before the first store waits for one. Past the edge, the last elements inside are loaded again, so
    no load needs a condition. Nothing reads these copies.
    """
    below, beside = height - 1, width - 4
    if is_wide and width > 0:
        row, column = cuda.threadIdx.y, 4 * cuda.threadIdx.x
        upper, lower = start + min(row, below) * stride, start + min(row + 32, below) * stride
        left, right = min(column, beside), min(column + 32, beside)
        a, b = load4(source, upper + left), load4(source, upper + right)
        c, d = load4(source, lower + left), load4(source, lower + right)
        put4(tile, 65 * row + column, a)
        put4(tile, 65 * row + column + 32, b)
        put4(tile, 65 * (row + 32) + column, c)
        put4(tile, 65 * (row + 32) + column + 32, d)
    elif width > 0:
        thread = 8 * cuda.threadIdx.y + cuda.threadIdx.x
        column = thread % 64
        first = start + min(column, width - 1)
        for row in range(thread // 64, 64, 16):
            a, b = source[first + min(row, below) * stride], source[first + min(row + 4, below) * stride]
            c, d = source[first + min(row + 8, below) * stride], source[first + min(row + 12, below) * stride]
            p = 65 * row + column
            tile[p], tile[p + 4 * 65], tile[p + 8 * 65], tile[p + 12 * 65] = a, b, c, d


# Reductions over threads.


@device
def fold_among(op, x, distance):
    """Reduce a value over 2 * `distance` lanes; each lane gets the result.

    A lane combines its value with that of the lane `distance` away, then half as far, and so on.
    """
    for step in (16, 8, 4, 2, 1):
        if step <= distance:
            x = op(x, cuda.shfl_xor_sync(ALL_LANES, x, step))
    return x


@device
def fold_along_x(op, x, parts):
    """Reduce a value over the threads along x, in a fixed order: within each warp, then over all warps through `parts`."""
    x = fold_among(op, x, min(cuda.blockDim.x, 32) >> 1)
    warps = cuda.blockDim.x >> 5  # a power of two
    if warps > 1:
        lane = cuda.threadIdx.x & 31
        if lane == 0:
            parts[cuda.threadIdx.x >> 5 & 31] = x
        cuda.syncthreads()
        x = fold_among(op, parts[lane & (warps - 1)], warps >> 1)  # each lane loads the result of one warp
    return x


@device
def fold_along_y(op, x, parts):
    """Reduce a value over the threads of a column, in their order along y. `parts` has one element for each thread."""
    parts[cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x] = x
    cuda.syncthreads()
    x = parts[cuda.threadIdx.x]
    for y in range(1, cuda.blockDim.y):
        x = op(x, parts[y * cuda.blockDim.x + cuda.threadIdx.x])
    return x

"""The words of the library's CUDA kernels. Each has two meanings: the interpreter's, in Python, and Numba's.

A kernel is a Python function over these names. The interpreter calls it as it stands; the compiler puts Numba's objects in
their place (`compiler.rebound`). So a picture, a test without a GPU and the hardware all see the same lines. Functions
marked with `device` are plain Python in both.
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
PITCH = 65  # elements from row to row of a tile of 64 x 64: rows begin in other banks


class Intrinsic:
    """A name that Numba CUDA has no word for.

    Parameters
    ----------
    meaning
        What it does in the interpreter: a Python function, marked with `simt.word` where it touches memory or lanes.
    build
        Makes, once and only where there is something to compile, what Numba compiles it to: an intrinsic, a jitted function,
        a type.
    """

    def __init__(self, meaning: Callable[..., Any], build: Callable[[], Any]) -> None:
        self.meaning, self._build = meaning, build
        self.__name__, self.__doc__ = meaning.__name__, meaning.__doc__

    def __call__(self, *operands: Any) -> Any:
        """Do it in the interpreter."""
        return self.meaning(*operands)

    @cached_property
    def compiled(self) -> Any:
        """What Numba compiles it to."""
        return self._build()


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a Python function that kernels call: compiled into each of its callers."""
    function.is_device = True  # type: ignore[attr-defined]
    return function


def intrinsic(build: Callable[[], Any]) -> Callable[[Callable[..., Any]], Intrinsic]:
    """Make a word of its Python meaning; `build` gives the function of Numba's typing that emits its instructions."""

    def enter(meaning: Callable[..., Any]) -> Intrinsic:
        def built() -> Any:
            from numba.cuda.extending import intrinsic as numba_intrinsic

            return numba_intrinsic(build())

        return Intrinsic(meaning, built)

    return enter


def _type(name: str) -> Callable[[], Any]:
    def build() -> Any:
        from numba.core import types

        return getattr(types, name)

    return build


f32, f64 = Intrinsic(np.float32, _type("float32")), Intrinsic(np.float64, _type("float64"))
i32, i64, u8, u32, u64 = (
    Intrinsic(getattr(np, name), _type(name)) for name in ("int32", "int64", "uint8", "uint32", "uint64")
)


# Memory: four neighbours at once.


def _load4_llvm() -> Any:
    """The LLVM of a load of four elements: one instruction for 16 bytes."""
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
    """The LLVM of a store of four elements."""
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
    """The address of the first element of a pointer or an array."""
    from numba.core import types

    if isinstance(kind, types.CPointer):
        return value
    return context.make_array(kind)(context, builder, value=value).data


def vector_alignment(nbytes: int) -> int:
    """What the address of four elements must be a multiple of: 16 bytes are the most that one instruction moves."""
    return builtins.min(16, 4 * nbytes)


@intrinsic(_load4_llvm)
@word
def load4(source: Any, i: Any) -> Any:
    """source[i], source[i + 1], source[i + 2] and source[i + 3] at once; the address is a multiple of 16 bytes."""
    return source.load(i, 4)


@intrinsic(_store4_llvm)
@word
def store4(target: Any, i: Any, numbers: Any) -> None:
    """target[i], ... target[i + 3] = numbers, at once; the address is a multiple of 16 bytes."""
    target.store(i, numbers)


def _no_unroll_llvm() -> Any:
    """The LLVM of an instruction that does nothing, and may not be made several of."""
    from llvmlite import ir
    from numba.core import types

    def no_unroll(typingctx: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), ()), "", "", side_effect=True)
            set.add(builder.call(nothing, ()).attributes, "noduplicate")  # which llvmlite does not know
            return context.get_dummy_value()

        return types.void(), emit

    return no_unroll


@intrinsic(_no_unroll_llvm)
def no_unroll() -> None:
    """Keeps the loop that it stands in from being unrolled: code that runs seldom is not worth the time that it compiles."""


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
    """target[i] += value, so that no other thread comes between the read and the write."""
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
    """A number in the type of x: a literal of Python would turn a float32 into a float64."""
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
    """The nearest integer that is not above x, in the type of x."""
    return np.floor(x)


exp, log, log1p, sqrt = math.exp, math.log, math.log1p, math.sqrt
sin, cos, tanh, erf, pow = math.sin, math.cos, math.tanh, math.erf, math.pow  # noqa: A001  # the table's names
abs, inf, nan = builtins.abs, math.inf, math.nan  # noqa: A001


@device
def add(a, b):
    """a + b."""
    return a + b


@device
def mul(a, b):
    """a * b."""
    return a * b


@device
def and_(a, b):
    """a & b."""
    return a & b


@device
def or_(a, b):
    """a | b."""
    return a | b


@device
def maximum(a, b):
    """The larger one; NaN where either is."""
    return a if a > b or a != a else b


@device
def minimum(a, b):
    """The smaller one; NaN where either is."""
    return a if a < b or a != a else b


@device
def where(condition, a, b):
    """A choice: a if the condition holds, else b."""
    return a if condition else b


@device
def mod(a, b):
    """a % b of floats, with the sign of b; NaN modulo 0."""
    zero = like(a, 0)
    rest = math.fmod(a, b)
    if rest == zero:
        return math.copysign(zero, b)
    if (rest < zero) != (b < zero):
        rest += b
    return rest


@device
def floordiv(a, b):
    """a // b of floats, rounded down as NumPy does: from the exact remainder."""
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


# Threads that turn a matrix over, in tiles of 64 x 64 whose rows begin PITCH elements apart.


def _put4_llvm() -> Any:
    """The LLVM of four stores; Numba's own would ask of each index whether it counts from the end."""
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
    """The LLVM of four loads."""
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
    """tile[i], ... tile[i + 3] = numbers, one after the other: the address may be any."""
    for k in range(4):
        tile[i + k] = numbers[k]


@intrinsic(_below4_llvm)
@word
def below4(tile: Any, i: Any) -> Any:
    """Four neighbours of a column: tile[i], and what lies one, two and three rows below."""
    return tuple([tile[i + PITCH * k] for k in range(4)])


@device
def copy_tile(tile, source, start, stride, height, width, is_wide):
    """tile[65 * row + column] = source[start + row * stride + column] for up to 64 x 64 elements, by 8 x 32 threads.

    All loads are on their way before the first store waits for one. What lies past the edge is loaded from within it, so
    that no load needs a condition; nobody reads it.
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


# Threads that fold together.


@device
def fold_among(op, x, distance):
    """The fold over 2 * `distance` lanes, for each of them: with the lane `distance` away, then half as far, and so on."""
    for step in (16, 8, 4, 2, 1):
        if step <= distance:
            x = op(x, cuda.shfl_xor_sync(ALL_LANES, x, step))
    return x


@device
def fold_along_x(op, x, parts):
    """The fold over the threads along x, always in one order: of a warp, then, by way of `parts`, of all warps."""
    x = fold_among(op, x, min(cuda.blockDim.x, 32) >> 1)
    warps = cuda.blockDim.x >> 5  # a power of two
    if warps > 1:
        lane = cuda.threadIdx.x & 31
        if lane == 0:
            parts[cuda.threadIdx.x >> 5 & 31] = x
        cuda.syncthreads()
        x = fold_among(op, parts[lane & (warps - 1)], warps >> 1)  # each lane has the fold of a warp
    return x


@device
def fold_along_y(op, x, parts):
    """The fold over the threads of a column, which lie along y, in their order; `parts` has a place for each thread."""
    parts[cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x] = x
    cuda.syncthreads()
    x = parts[cuda.threadIdx.x]
    for y in range(1, cuda.blockDim.y):
        x = op(x, parts[y * cuda.blockDim.x + cuda.threadIdx.x])
    return x

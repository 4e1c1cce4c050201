"""Intrinsics of the library's CUDA kernels, each with two implementations: one in Python, one for Numba.

A kernel is a Python function that calls the names defined here. The interpreter calls it unchanged; the compiler replaces
each name by a Numba object (`compiler.rebind_for_numba`). So the GPU and the interpreter, which draws pictures and runs
tests without a GPU, execute the same source. This file contains the Python implementations, `base_llvm` the code that Numba
compiles. Functions marked with `device` are plain Python in both cases.
"""

import builtins
import ctypes
import math
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ....simt import Array, word
from ....simt import cuda as cuda
from ....simt.arithmetic import RealNumber

ALL_LANES = 0xFFFFFFFF
PITCH = 65  # elements from row to row of a 64 x 64 tile: consecutive rows start in different banks

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
BinaryFunction = Callable[[RealNumber, RealNumber], RealNumber]


class Intrinsic(Generic[Result]):
    """A name used in kernels that Numba CUDA does not define.

    Parameters
    ----------
    python_semantics
        The implementation for the interpreter: a Python function. If it accesses memory or lanes, `simt.word` marks it as an
        instruction: its accesses are attributed to the line of the kernel that calls it.
    build
        Returns the object that Numba compiles instead: an intrinsic, a jitted function or a type. It is called once, and
        only if something is compiled.
    """

    def __init__(self, python_semantics: Callable[..., Result], build: Callable[[], object]) -> None:
        self.python_semantics, self.build = python_semantics, build
        self.__name__, self.__doc__ = python_semantics.__name__, python_semantics.__doc__

    def __call__(self, *operands: object) -> Result:
        """Run the Python implementation, in the interpreter."""
        return self.python_semantics(*operands)

    @cached_property
    def compiled(self) -> object:
        """Return the object that Numba compiles instead of this one."""
        return self.build()


def device(function: Function) -> Function:
    """Mark a Python function that kernels call. It is compiled into each of its callers."""
    function.is_device = True  # type: ignore[attr-defined]  # the mark: an attribute that functions do not declare
    return function


def intrinsic(name: str, *operands: object) -> Callable[[Callable[..., Result]], Intrinsic[Result]]:
    """Return a decorator that turns a Python implementation into an Intrinsic.

    `name` is "module.name", in a module of this folder: a Numba intrinsic, which emits the instructions, or the function
    that returns it for `operands`.
    """

    def build() -> object:
        module, attribute = name.split(".")
        value = getattr(import_module(f"{__package__}.{module}"), attribute)
        return value(*operands) if operands else value

    return lambda python_semantics: Intrinsic(python_semantics, build)


def _numba_type_getter(name: str) -> Callable[[], object]:
    def build() -> object:
        from numba.core import types

        return getattr(types, name)

    return build


f32, f64 = Intrinsic(np.float32, _numba_type_getter("float32")), Intrinsic(np.float64, _numba_type_getter("float64"))
i8, i16 = Intrinsic(np.int8, _numba_type_getter("int8")), Intrinsic(np.int16, _numba_type_getter("int16"))
i32, i64 = Intrinsic(np.int32, _numba_type_getter("int32")), Intrinsic(np.int64, _numba_type_getter("int64"))
u8, u32 = Intrinsic(np.uint8, _numba_type_getter("uint8")), Intrinsic(np.uint32, _numba_type_getter("uint32"))
u64 = Intrinsic(np.uint64, _numba_type_getter("uint64"))


# Memory: vectors of four elements.


def vector_alignment(nbytes: int, count: int = 4) -> int:
    """Return the alignment of `count` elements, in bytes: at most 16, since one instruction moves at most 16 bytes."""
    return builtins.min(16, count * nbytes)


@intrinsic("base_llvm.load4")
@word
def load4(source: Array, i: int) -> tuple[RealNumber, ...]:
    """Load source[i] to source[i + 3] at once. The address must be a multiple of 16 bytes."""
    return source.load(i, 4)


@intrinsic("base_llvm.store4")
@word
def store4(target: Array, i: int, numbers: tuple[RealNumber, ...]) -> None:
    """Store four numbers to target[i] ... target[i + 3] at once. The address must be a multiple of 16 bytes."""
    target.store(i, numbers)


@intrinsic("base_llvm.no_unroll")
def no_unroll() -> None:
    """Keep the compiler from unrolling the loop around this call: rarely executed code is not worth its compile time."""


@intrinsic("base_llvm.atomic_add")
@word
def atomic_add(target: Array, i: int, value: RealNumber) -> None:
    """Add value to target[i] atomically: no other thread accesses it between the read and the write."""
    cuda.atomic.add(target, i, value)


@intrinsic("base_llvm.fetch_add")
@word
def fetch_add(target: Array, i: int, value: int) -> RealNumber:
    """Add value to target[i], an int32, atomically, and return the number before."""
    return cuda.atomic.add(target, i, value)


@intrinsic("base_llvm.atomic_store")
@word
def atomic_store(target: Array, i: int, value: int) -> None:
    """Store an int32 to target[i] atomically."""
    cuda.atomic.exch(target, i, value)


@intrinsic("base_llvm.load_acquire")
@word
def load_acquire(source: Array, i: int) -> RealNumber:
    """Load source[i], an int32, atomically: then all that its writer stored before a fence and this number is visible."""
    return cuda.atomic.add(source, i, 0)


@intrinsic("base_llvm.atomic_max")
@word
def atomic_max(target: Array, i: int, value: RealNumber) -> None:
    """Replace the integer target[i] by a larger value, atomically."""
    cuda.atomic.max(target, i, value)


@intrinsic("base_llvm.store_at")
def store_at(address: int, value: int, condition: bool) -> None:
    """Store an int64 at an address in memory of the host, if a condition holds."""
    if condition:
        ctypes.c_int64.from_address(int(address)).value = int(value)


@intrinsic("base_llvm.atomic_or")
@word
def atomic_or(target: Array, i: int, bits: int) -> np.int32:
    """Set bits of the int32 target[i] atomically, and return the old ones."""
    return cast(np.int32, cuda.atomic.or_(target, i, bits))


# Numbers.


@intrinsic("base_llvm.byte_of")
def byte_of(x: np.signedinteger, place: int) -> np.uint32:
    """Return a byte of an integer; byte 0 has the lowest bits."""
    return np.uint32((int(x) >> 8 * int(place)) & 255)


@intrinsic("base_llvm.cast_like")
def cast_like(x: RealNumber, number: float) -> RealNumber:
    """Convert a number to the type of x. A Python literal would turn float32 arithmetic into float64."""
    return type(x)(number)


@intrinsic("base_llvm.floor")
def floor(x: np.float64) -> np.float64:
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
    """Return a if the condition is true, else b."""
    return a if condition else b


@device
def mod(a, b):
    """Return a % b of floats, with the sign of b. Modulo 0 is NaN."""
    zero = cast_like(a, 0)
    rest = math.fmod(a, b)
    if rest == zero:
        return math.copysign(zero, b)
    if (rest < zero) != (b < zero):
        rest += b
    return rest


@device
def floordiv(a, b):
    """Return a // b of floats, rounded down from the exact remainder, as NumPy does."""
    zero, one = cast_like(a, 0), cast_like(a, 1)
    ratio = a / b
    if b == zero:
        return ratio
    rest = math.fmod(a, b)
    quotient = (a - rest) / b
    if rest != zero and (rest < zero) != (b < zero):
        quotient -= one
    if quotient == zero:
        return math.copysign(zero, ratio)
    rounded = floor(quotient)
    if quotient - rounded > cast_like(a, 0.5):
        rounded += one
    return rounded


# Transposing a matrix in 64 x 64 tiles whose rows start PITCH elements apart.


@intrinsic("base_llvm.store4_scalar")
@word
def put4(tile: Array, i: int, numbers: tuple[RealNumber, ...]) -> None:
    """Store four numbers to tile[i] ... tile[i + 3], one by one. Unlike for `store4`, the address need not be aligned."""
    for k in range(4):
        tile[i + k] = numbers[k]


@intrinsic("base_llvm.load4_strided", PITCH)
@word
def below4(tile: Array, i: int) -> tuple[RealNumber, ...]:
    """Load four neighbors of a column: tile[i] and the elements one, two and three rows below it."""
    return tuple([tile[i + PITCH * k] for k in range(4)])


@device
def copy_tile(tile, source, start, stride, height, width, is_wide):
    """Copy up to 64 x 64 elements by 8 x 32 threads: tile[65 * row + column] = source[start + row * stride + column].

    If `is_wide`, each row of the source is aligned for loads of four elements. All loads are issued before the first store
    waits for one of them. Past the edge, the last elements inside are loaded again, so no load needs a condition. These
    copies are never read.
    """
    last_row, last_group = height - 1, width - 4
    if is_wide and width > 0:
        row, column = cuda.threadIdx.y, 4 * cuda.threadIdx.x
        upper, lower = start + min(row, last_row) * stride, start + min(row + 32, last_row) * stride
        left, right = min(column, last_group), min(column + 32, last_group)
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
            a, b = source[first + min(row, last_row) * stride], source[first + min(row + 4, last_row) * stride]
            c, d = source[first + min(row + 8, last_row) * stride], source[first + min(row + 12, last_row) * stride]
            p = 65 * row + column
            tile[p], tile[p + 4 * 65], tile[p + 8 * 65], tile[p + 12 * 65] = a, b, c, d


# Reductions over threads.


@device
def exchange_one(x, step):
    """Return the value of the lane at a distance."""
    return cuda.shfl_xor_sync(ALL_LANES, x, step)


@device
def put_one(parts, place, x):
    """Store a value for other threads."""
    parts[place] = x


@device
def get_one(parts, place):
    """Load a value of another thread."""
    return parts[place]


@device
def fold_lanes(op, exchange, x, distance):
    """Reduce a value over 2 * `distance` lanes; each lane gets the result.

    A lane combines its value with the value of the lane at `distance`, then at half this distance, and so on. A value may be
    a tuple of states: `exchange` returns that of another lane.
    """
    for step in (16, 8, 4, 2, 1):
        if step <= distance:
            x = op(x, exchange(x, step))
    return x


@device
def fold_states_along_x(op, exchange, put, get, x, parts, first):
    """Reduce a value over the threads along x, in a fixed order: within each warp, then over all warps.

    The warps exchange their results through the 32 elements of `parts` that start at `first`: one for each warp. A value may
    be a tuple of states, and `parts` a tuple of arrays: `put` and `get` store and load all states.
    """
    x = fold_lanes(op, exchange, x, min(cuda.blockDim.x, 32) >> 1)
    warps = cuda.blockDim.x >> 5  # a power of two
    if warps > 1:
        lane = cuda.threadIdx.x & 31
        first += cuda.threadIdx.y * warps
        if lane == 0:
            put(parts, first + (cuda.threadIdx.x >> 5 & 31), x)
        cuda.syncthreads()
        x = fold_lanes(op, exchange, get(parts, first + (lane & (warps - 1))), warps >> 1)  # each lane loads a warp's result
    return x


@device
def fold_along_x(op, x, parts, first=0):
    """Reduce a value of one state over the threads along x."""
    return fold_states_along_x(op, exchange_one, put_one, get_one, x, parts, first)


@device
def fold_states_along_y(op, put, get, x, parts, first):
    """Reduce a value over the threads of a column, in a fixed order: halves of long columns, then eight values in a row.

    They exchange their values through `parts`: one element for each thread of the block, starting at `first`. A value may be
    a tuple of states, as for `fold_states_along_x`.
    """
    step, place = cuda.blockDim.x, first + cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    put(parts, place, x)
    cuda.syncthreads()
    count = cuda.blockDim.y  # a power of two
    while count > 8:
        count >>= 1
        if cuda.threadIdx.y < count:
            put(parts, place, op(get(parts, place), get(parts, place + count * step)))
        cuda.syncthreads()
    place = first + cuda.threadIdx.x
    x = get(parts, place)
    for y in range(1, count):
        x = op(x, get(parts, place + y * step))
    return x


@device
def fold_along_y(op, x, parts, first=0):
    """Reduce a value of one state over the threads of a column."""
    return fold_states_along_y(op, put_one, get_one, x, parts, first)

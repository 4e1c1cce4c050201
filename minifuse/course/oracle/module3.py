"""Reference answers of module 3 in NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..strided import Array, Strided
from . import answers

THREADS, TILE = 64, 8  # of a block, as in the student's kernels.py
THREAD_M, THREAD_N = 2, 4  # rows and columns of a thread, as in the student's register_tiles.py
BLOCK_X, BLOCK_Y = 4, 16  # threads of a block there
TILE_M, TILE_N, TILE_K = BLOCK_Y * THREAD_M, BLOCK_X * THREAD_N, 8


def assign(out: Strided, values: Array) -> None:
    """Assign values to out, unless it is empty."""
    out.array()[...] = values if out.array().size else 0


def apply(fn: Callable[..., float], *operands: Array) -> Array:
    """Apply a function of numbers to arrays with broadcasting."""
    with np.errstate(all="ignore"):
        made = np.frompyfunc(fn, len(operands), 1)(*operands)
    return np.asarray(made, np.float64)


def reduce(fn: Callable[..., float], a: Strided, dim: int, start: float) -> Array:
    """Reduce one dim, in order."""
    ufunc: Any = np.frompyfunc(fn, 2, 1)
    with np.errstate(all="ignore"):
        made = ufunc.reduce(a.array().astype(object), axis=dim, keepdims=True, initial=start)
    return np.asarray(made, np.float64)


@answers
def parallel_map(fn: Callable[[float], float], out: Strided, a: Strided) -> None:
    """Apply fn to each element."""
    assign(out, apply(fn, a.array()))


@answers
def parallel_zip(fn: Callable[[float, float], float], out: Strided, a: Strided, b: Strided) -> None:
    """Apply fn to pairs of elements with broadcasting."""
    assign(out, apply(fn, a.array(), b.array()))


@answers
def parallel_reduce(fn: Callable[[float, float], float], out: Strided, a: Strided, dim: int, start: float) -> None:
    """Reduce one dim with fn."""
    assign(out, reduce(fn, a, dim, start))


@answers
def parallel_matmul(out: Strided, a: Strided, b: Strided) -> None:
    """Write the matrix product."""
    with np.errstate(all="ignore"):
        assign(out, np.matmul(a.array(), b.array()))


@answers
def cuda_map(fn: Callable[[float], float]) -> Callable[[Strided, Strided], None]:
    """Return a function that applies fn to each element."""
    return lambda out, a: assign(out, apply(fn, a.array()))


@answers
def cuda_zip(fn: Callable[[float, float], float]) -> Callable[[Strided, Strided, Strided], None]:
    """Return a function that applies fn to pairs of elements."""
    return lambda out, a, b: assign(out, apply(fn, a.array(), b.array()))


@answers
def cuda_block_sum(out: Array, a: Array) -> None:
    """Sum chunks of the length of a block; the last one may be shorter."""
    with np.errstate(all="ignore"):
        out[:] = np.add.reduceat(a, np.arange(0, len(a), THREADS))


@answers
def cuda_reduce(fn: Callable[[float, float], float]) -> Callable[[Strided, Strided, int, float], None]:
    """Return a function that reduces one dim with fn."""
    return lambda out, a, dim, start: assign(out, reduce(fn, a, dim, start))


@answers
def cuda_one_block_matmul(out: Array, a: Array, b: Array) -> None:
    """Write a @ b."""
    with np.errstate(all="ignore"):
        out[...] = a @ b


@answers
def cuda_matmul(out: Strided, a: Strided, b: Strided) -> None:
    """Write the matrix product."""
    with np.errstate(all="ignore"):
        assign(out, np.matmul(a.array(), b.array()))


@answers
def cuda_thread_tile_matmul(out: Array, a: Array, b: Array) -> None:
    """Write a @ b."""
    with np.errstate(all="ignore"):
        out[...] = a @ b


@answers
def cuda_block_tile_matmul(out: Strided, a: Strided, b: Strided) -> None:
    """Write the matrix product."""
    with np.errstate(all="ignore"):
        assign(out, np.matmul(a.array(), b.array()))


@answers
def fast_chain(out: Array, a: Array, b: Array) -> None:
    """Apply one ufunc after the other."""
    out[...] = np.sqrt(a * a + b * b) * 0.5 + a


@answers
def fast_column_sums(out: Array, a: Array) -> None:
    """Sum the columns."""
    out[...] = a.sum(axis=0)


@answers
def fast_matmul(out: Array, a: Array, b: Array) -> None:
    """Write a @ b, computed by BLAS."""
    out[...] = a @ b

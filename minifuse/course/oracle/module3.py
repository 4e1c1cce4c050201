"""Module 3, judged by NumPy: what the loops, the kernels and the fast functions give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..strided import Array, Strided
from . import answers

THREADS, TILE = 64, 8  # of a block, as in the student's kernels.py


def assigned(out: Strided, values: Array) -> None:
    """Write what NumPy gives."""
    out.array()[...] = values if out.array().size else 0


def applied(fn: Callable[..., float], *operands: Array) -> Array:
    """A function of numbers on arrays that are broadcast."""
    made = np.frompyfunc(fn, len(operands), 1)(*operands)
    return np.asarray(made, np.float64)


def reduced(fn: Callable[..., float], a: Strided, dim: int, start: float) -> Array:
    """Reduce one dim, in order."""
    ufunc: Any = np.frompyfunc(fn, 2, 1)
    return np.asarray(ufunc.reduce(a.array().astype(object), axis=dim, keepdims=True, initial=start), np.float64)


@answers
def parallel_map(fn: Callable[[float], float], out: Strided, a: Strided) -> None:
    """A ufunc of one operand."""
    assigned(out, applied(fn, a.array()))


@answers
def parallel_zip(fn: Callable[[float, float], float], out: Strided, a: Strided, b: Strided) -> None:
    """A ufunc of two, broadcast."""
    assigned(out, applied(fn, a.array(), b.array()))


@answers
def parallel_reduce(fn: Callable[[float, float], float], out: Strided, a: Strided, dim: int, start: float) -> None:
    """Reduce by a ufunc."""
    assigned(out, reduced(fn, a, dim, start))


@answers
def parallel_matmul(out: Strided, a: Strided, b: Strided) -> None:
    """NumPy's product."""
    assigned(out, np.matmul(a.array(), b.array()))


@answers
def cuda_map(fn: Callable[[float], float]) -> Callable[[Strided, Strided], None]:
    """Write with a ufunc."""
    return lambda out, a: assigned(out, applied(fn, a.array()))


@answers
def cuda_zip(fn: Callable[[float, float], float]) -> Callable[[Strided, Strided, Strided], None]:
    """Write with a ufunc."""
    return lambda out, a, b: assigned(out, applied(fn, a.array(), b.array()))


@answers
def cuda_block_sum(out: Array, a: Array) -> None:
    """Sums of pieces as long as a block, of which the last may be shorter."""
    out[:] = np.add.reduceat(a, np.arange(0, len(a), THREADS))


@answers
def cuda_reduce(fn: Callable[[float, float], float]) -> Callable[[Strided, Strided, int, float], None]:
    """Write with a ufunc."""
    return lambda out, a, dim, start: assigned(out, reduced(fn, a, dim, start))


@answers
def cuda_one_block_matmul(out: Array, a: Array, b: Array) -> None:
    """NumPy's product."""
    out[...] = a @ b


@answers
def cuda_matmul(out: Strided, a: Strided, b: Strided) -> None:
    """NumPy's product."""
    assigned(out, np.matmul(a.array(), b.array()))


@answers
def fast_chain(out: Array, a: Array, b: Array) -> None:
    """One ufunc after the other."""
    out[...] = np.sqrt(a * a + b * b) * 0.5 + a


@answers
def fast_column_sums(out: Array, a: Array) -> None:
    """NumPy's sum."""
    out[...] = a.sum(axis=0)


@answers
def fast_matmul(out: Array, a: Array, b: Array) -> None:
    """NumPy's product, of a library of BLAS."""
    out[...] = a @ b

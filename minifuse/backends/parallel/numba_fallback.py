"""Run Python functions of numbers that cannot be traced, since they branch on values or call methods of numbers.

Numba compiles these functions unchanged. They run in plain loops over flat copies, and are not cached on disk. A loop
processes a part of the elements at a time; between parts Python handles signals. Numba assumes that int64 arithmetic does
not overflow: it may compile x + 1 > x to true. Numba is imported inside functions, since few programs need it.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from ..base import Operand, ScalarFunction

ELEMENTS_PER_CALL = 1 << 16  # processed by one call of a loop; between calls Python may handle signals


class CompiledLoops(NamedTuple):
    """Compiled loops that call a compiled scalar function."""

    map: Callable[[ScalarFunction, np.ndarray, np.ndarray], None]
    zip: Callable[[ScalarFunction, np.ndarray, np.ndarray, np.ndarray], None]
    reduce: Callable[[ScalarFunction, np.ndarray, np.ndarray], None]


@cache
def loops() -> CompiledLoops:
    """Return the three loops. Numba compiles them for the types of each call."""
    from numba import njit

    @njit(error_model="numpy")
    def map_(op: ScalarFunction, a: np.ndarray, out: np.ndarray) -> None:
        for i in range(out.size):
            out[i] = op(a[i])

    @njit(error_model="numpy")
    def zip_(op: ScalarFunction, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        for i in range(out.size):
            out[i] = op(a[i], b[i])

    @njit(error_model="numpy")
    def reduce_(op: ScalarFunction, rows: np.ndarray, out: np.ndarray) -> None:
        """Reduce row i, starting with out[i]."""
        for i in range(out.size):
            for j in range(rows.shape[1]):
                out[i] = op(out[i], rows[i, j])

    return CompiledLoops(map_, zip_, reduce_)


@lru_cache(256)
def compile_function(op: ScalarFunction) -> ScalarFunction:
    """Return a version of a function that Numba compiles when it is called."""
    from numba import njit

    return njit(op, error_model="numpy")


def run_elementwise(op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
    """Compute out[i] = op(x[i], ...) for one or two operands."""
    flat = np.empty(out.layout.size, out.data.dtype)
    run = loops().map if len(xs) == 1 else loops().zip
    arrays = [*[x.array().reshape(-1) for x in xs], flat]
    for start in range(0, flat.size, ELEMENTS_PER_CALL):
        run(compile_function(op), *[array[start : start + ELEMENTS_PER_CALL] for array in arrays])
    out.array()[...] = flat.reshape(out.layout.shape)


def reduce(op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int], identity: float | None) -> None:
    """Reduce along dims, starting with the identity, or with the first element if there is none."""
    array = np.moveaxis(a.array(), tuple(dims), range(-len(dims), 0))
    rows = array.reshape(out.layout.size, prod(a.layout.shape[d] for d in dims))
    if identity is None:
        flat, rows = rows[:, 0].astype(out.data.dtype), np.ascontiguousarray(rows[:, 1:])
    else:
        flat, rows = np.full(out.layout.size, identity, out.data.dtype), np.ascontiguousarray(rows)
    rows_per_call = max(ELEMENTS_PER_CALL // max(rows.shape[1], 1), 1)
    for top in range(0, flat.size, rows_per_call):
        for left in range(0, rows.shape[1], ELEMENTS_PER_CALL):
            block = rows[top : top + rows_per_call, left : left + ELEMENTS_PER_CALL]
            loops().reduce(compile_function(op), block, flat[top : top + rows_per_call])
    out.array()[...] = flat.reshape(out.layout.shape)

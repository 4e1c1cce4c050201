"""Python functions of numbers that no expression can hold, since they branch on values or call what only numbers have.

They are compiled by Numba as they are, in plain loops over flat copies, and not kept on disk. A loop runs over a piece of
the elements at a time; in between Python handles signals. Their arithmetic is Numba's:
an int64 that overflows need not wrap around where it is compared at once. Numba is imported here late: few programs need it.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base import Operand, ScalarFunction

ELEMENTS_PER_CALL = 1 << 16  # elements that a loop runs over before Python may handle a signal


class CompiledLoops(NamedTuple):
    """Compiled loops that call a compiled function."""

    map: Any
    zip: Any
    fold: Any


@cache
def loops() -> CompiledLoops:
    """The three loops, compiled for the types that they meet."""
    from numba import njit

    @njit(error_model="numpy")
    def map_(op: Any, a: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = op(a[i])

    @njit(error_model="numpy")
    def zip_(op: Any, a: Any, b: Any, out: Any) -> None:
        for i in range(out.size):
            out[i] = op(a[i], b[i])

    @njit(error_model="numpy")
    def fold(op: Any, rows: Any, out: Any) -> None:
        """out[i] starts the fold of row i."""
        for i in range(out.size):
            for j in range(rows.shape[1]):
                out[i] = op(out[i], rows[i, j])

    return CompiledLoops(map_, zip_, fold)


@lru_cache(256)
def compile_function(op: ScalarFunction) -> Any:
    """A function that Numba compiles when it is called."""
    from numba import njit

    return njit(op, error_model="numpy")


def elementwise(op: ScalarFunction, xs: Sequence[Operand], out: Operand) -> None:
    """out[i] = op(x[i], ...) for one or two operands."""
    flat = np.empty(out.layout.size, out.data.dtype)
    run = loops().map if len(xs) == 1 else loops().zip
    arrays = [*[x.array().reshape(-1) for x in xs], flat]
    for start in range(0, flat.size, ELEMENTS_PER_CALL):
        run(compile_function(op), *[array[start : start + ELEMENTS_PER_CALL] for array in arrays])
    out.array()[...] = flat.reshape(out.layout.shape)


def reduce(op: ScalarFunction, a: Operand, out: Operand, dims: Sequence[int], identity: Any) -> None:
    """Fold along dims, from the identity, or from the first element where there is none."""
    array: npt.NDArray[Any] = np.moveaxis(a.array(), tuple(dims), range(-len(dims), 0))
    rows = array.reshape(out.layout.size, prod(a.layout.shape[d] for d in dims))
    if identity is None:
        flat, rows = rows[:, 0].astype(out.data.dtype), np.ascontiguousarray(rows[:, 1:])
    else:
        flat, rows = np.full(out.layout.size, identity, out.data.dtype), np.ascontiguousarray(rows)
    side = max(ELEMENTS_PER_CALL // max(rows.shape[1], 1), 1)  # rows of a piece
    for top in range(0, flat.size, side):
        for left in range(0, rows.shape[1], ELEMENTS_PER_CALL):
            loops().fold(
                compile_function(op), rows[top : top + side, left : left + ELEMENTS_PER_CALL], flat[top : top + side]
            )
    out.array()[...] = flat.reshape(out.layout.shape)

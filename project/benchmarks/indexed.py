"""An engine as courses write it: one Numba loop over positions, with an index per element, unraveled and broadcast.

Shapes and strides are arrays that a kernel reads at run time, so one compiled kernel works for any layout. This makes it
short, but costs time per element: a division and a remainder per dim for the index, a product and an addition per dim and
operand. The elementwise function is compiled into the loop. The loops use one thread, because starting threads would take
longer than computing a matrix of a few thousand elements.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .row import Array

Kernel = Any  # a compiled function


class Strided(NamedTuple):
    """Elements in a flat array, and their layout."""

    storage: Array
    shape: Array
    strides: Array


@register_jitable
def to_index(position: int, shape: Array, index: Array) -> None:
    """Return the index of the element at a position in row-major order."""
    for d in range(len(shape) - 1, -1, -1):
        index[d] = position % shape[d]
        position = position // shape[d]


@register_jitable
def to_position(index: Array, strides: Array) -> int:
    """Return the position of an index."""
    position = 0
    for d in range(len(strides)):
        position += index[d] * strides[d]
    return position


@register_jitable
def broadcast_index(index: Array, shape: Array, narrowed: Array) -> None:
    """Return the index in an operand: 0 along a dim of size 1."""
    for d in range(len(shape)):
        narrowed[d] = index[d] if shape[d] > 1 else 0


@lru_cache
def map_kernel(function: Callable[..., Any]) -> Kernel:
    """Compute out[i] = function(a[i])."""
    scalar = register_jitable(function)

    @njit
    def kernel(out, out_shape, out_strides, a, a_shape, a_strides):  # type: ignore[no-untyped-def]
        for position in range(len(out)):
            index = np.empty(len(out_shape), np.int64)
            narrowed = np.empty(len(a_shape), np.int64)
            to_index(position, out_shape, index)
            broadcast_index(index, a_shape, narrowed)
            out[to_position(index, out_strides)] = scalar(a[to_position(narrowed, a_strides)])

    return kernel


@lru_cache
def zip_kernel(function: Callable[..., Any]) -> Kernel:
    """Compute out[i] = function(a[i], b[i]), with broadcasting."""
    scalar = register_jitable(function)

    @njit
    def kernel(out, out_shape, out_strides, a, a_shape, a_strides, b, b_shape, b_strides):  # type: ignore[no-untyped-def]
        for position in range(len(out)):
            index = np.empty(len(out_shape), np.int64)
            narrowed = np.empty(len(a_shape), np.int64)
            to_index(position, out_shape, index)
            broadcast_index(index, a_shape, narrowed)
            x = a[to_position(narrowed, a_strides)]
            broadcast_index(index, b_shape, narrowed)
            y = b[to_position(narrowed, b_strides)]
            out[to_position(index, out_strides)] = scalar(x, y)

    return kernel


@lru_cache
def reduce_kernel(function: Callable[..., Any]) -> Kernel:
    """Compute out[i], the reduction of a along one dim."""
    scalar = register_jitable(function)

    @njit
    def kernel(out, out_shape, out_strides, a, a_shape, a_strides, dim):  # type: ignore[no-untyped-def]
        for position in range(len(out)):
            index = np.empty(len(out_shape), np.int64)
            to_index(position, out_shape, index)
            place = to_position(index, out_strides)
            result = a[to_position(index, a_strides)]
            for k in range(1, a_shape[dim]):
                index[dim] = k
                result = scalar(result, a[to_position(index, a_strides)])
            out[place] = result

    return kernel


@njit
def matmul_kernel(out, out_shape, out_strides, a, a_shape, a_strides, b, b_shape, b_strides):  # type: ignore[no-untyped-def]
    """Compute out[i, j], the sum over k of a[i, k] * b[k, j]."""
    for position in range(len(out)):
        index = np.empty(len(out_shape), np.int64)
        a_index = np.empty(len(a_shape), np.int64)
        b_index = np.empty(len(b_shape), np.int64)
        to_index(position, out_shape, index)
        a_index[0], b_index[1] = index[0], index[1]
        total = np.float32(0)
        for k in range(a_shape[1]):
            a_index[1] = b_index[0] = k
            total += a[to_position(a_index, a_strides)] * b[to_position(b_index, b_strides)]
        out[to_position(index, out_strides)] = total


class Indexed:
    """The engine in Numba, with an index per element."""

    def matrix(self, array: Array) -> Strided:
        """Return the elements in row-major order, as float32."""
        return strided(np.ascontiguousarray(array, np.float32).reshape(-1), array.shape)

    def array(self, a: Strided) -> Array:
        """Return a copy in row-major order."""
        nbytes = tuple(int(s) * a.storage.itemsize for s in a.strides)
        return np.lib.stride_tricks.as_strided(a.storage, tuple(a.shape), nbytes).copy()

    def transpose(self, a: Strided) -> Strided:
        """Return a transposed view."""
        return Strided(a.storage, a.shape[::-1].copy(), a.strides[::-1].copy())

    def map(self, function: Callable[..., Any], a: Strided) -> Strided:
        """Apply the function to each element."""
        out = empty(a.shape)
        map_kernel(function)(*out, *a)
        return out

    def zip(self, function: Callable[..., Any], a: Strided, b: Strided) -> Strided:
        """Apply the function to pairs; dims of size 1 broadcast."""
        out = empty(np.maximum(a.shape, b.shape))
        zip_kernel(function)(*out, *a, *b)
        return out

    def reduce(self, function: Callable[..., Any], a: Strided, dim: int) -> Strided:
        """Reduce one dim to size 1."""
        shape = a.shape.copy()
        shape[dim] = 1
        out = empty(shape)
        reduce_kernel(function)(*out, *a, dim)
        return out

    def matmul(self, a: Strided, b: Strided) -> Strided:
        """Multiply matrices, by a loop over rows and columns."""
        out = empty((a.shape[0], b.shape[1]))
        matmul_kernel(*out, *a, *b)
        return out


def empty(shape: Any) -> Strided:
    """Return an uninitialized matrix."""
    return strided(np.empty(int(np.prod(shape)), np.float32), shape)


def strided(storage: Array, shape: Any) -> Strided:
    """Return a flat array as a row-major matrix."""
    rows, columns = shape
    return Strided(storage, np.array([rows, columns]), np.array([columns, 1]))

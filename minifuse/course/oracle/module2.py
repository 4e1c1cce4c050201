"""Module 2, judged by NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..strided import Strided
from . import answers

Shape = tuple[int, ...]


@answers
def row_major_strides(shape: Shape) -> Shape:
    """Strides of a fresh array of bytes."""
    return np.empty(shape, np.int8).strides if 0 not in shape else np.empty([max(n, 1) for n in shape], np.int8).strides


@answers
def position_of(index: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """An inner product."""
    return int(np.dot(np.asarray(index, int), np.asarray(strides, int)) + offset)


@answers
def index_of(ordinal: int, shape: Shape) -> Shape:
    """NumPy's own."""
    return tuple(int(i) for i in np.unravel_index(ordinal, shape)) if shape else ()


@answers
def permuted(x: Strided, dims: Sequence[int]) -> Strided:
    """NumPy's transpose, read back as strides."""
    array = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), x.shape, x.strides).transpose(dims)
    return Strided(x.storage, array.shape, array.strides, x.offset)


@answers
def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """NumPy's own; a ValueError where they do not fit."""
    return tuple(int(n) for n in np.broadcast_shapes(a, b))


@answers
def broadcast_index(index: Sequence[int], shape: Shape) -> Shape:
    """The index, cut to the dims of the smaller shape, and 0 where that has size 1."""
    tail = np.asarray(index, int)[len(index) - len(shape) :]
    return tuple(int(i) for i in np.where(np.asarray(shape, int) == 1, 0, tail))


@answers
def tensor_map(fn: Callable[[float], float], out: Strided, a: Strided) -> None:
    """out[i] = fn(a[i])."""
    out.array()[...] = np.vectorize(fn, otypes=[float])(a.array()) if out.array().size else 0


@answers
def tensor_zip(fn: Callable[[float, float], float], out: Strided, a: Strided, b: Strided) -> None:
    """out[i] = fn(a[i], b[i]), broadcast."""
    out.array()[...] = np.vectorize(fn, otypes=[float])(a.array(), b.array()) if out.array().size else 0


@answers
def tensor_reduce(fn: Callable[[float, float], float], out: Strided, a: Strided, dim: int, start: float) -> None:
    """A fold along one dim, which has size 1 in out."""
    ufunc: Any = np.frompyfunc(fn, 2, 1)
    out.array()[...] = ufunc.reduce(a.array().astype(object), axis=dim, keepdims=True, initial=start)

"""A GPU engine as courses write it: one thread per element, with an index per element, unraveled and broadcast.

Shapes and strides are arguments of a launch, so one compiled kernel works for any layout with this many dims. Each thread
needs a division and a remainder per dim for its index, then a product and an addition per dim and operand. A reduction has
one thread per result, which loops over the dim. Every operator is a kernel. Memory is reused, because allocation by the
driver takes longer than a launch.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numba import cuda, int64

THREADS = 256  # of a block
MAX_DIMS = 4
ONE = np.float32(1)

Scalar = Callable[..., Any]
Sizes = tuple[int, ...]
free: defaultdict[int, list[Any]] = defaultdict(list)  # unused flat arrays by size


@cuda.jit(device=True)
def to_index(position, shape, index):  # type: ignore[no-untyped-def]
    """Return the index of the element at a position in row-major order."""
    for k in range(len(shape)):
        d = len(shape) - 1 - k
        index[d] = position % shape[d]
        position = position // shape[d]


@cuda.jit(device=True)
def to_position(index, shape, strides):  # type: ignore[no-untyped-def]
    """Return the position of an index; dims of size 1 are ignored."""
    position = 0
    for d in range(len(shape)):
        if shape[d] > 1:
            position += index[d] * strides[d]
    return position


@lru_cache
def map_kernel(function: Scalar) -> Any:
    """Compute out[i] = function(a[i])."""
    scalar = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(out, shape, size, a, a_shape, a_strides):  # type: ignore[no-untyped-def]
        position = cuda.grid(1)
        if position < size:
            index = cuda.local.array(MAX_DIMS, int64)
            to_index(position, shape, index)
            out[position] = scalar(a[to_position(index, a_shape, a_strides)])

    return kernel


@lru_cache
def zip_kernel(function: Scalar) -> Any:
    """Compute out[i] = function(a[i], b[i]), with broadcasting."""
    scalar = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(out, shape, size, a, a_shape, a_strides, b, b_shape, b_strides):  # type: ignore[no-untyped-def]
        position = cuda.grid(1)
        if position < size:
            index = cuda.local.array(MAX_DIMS, int64)
            to_index(position, shape, index)
            x = a[to_position(index, a_shape, a_strides)]
            out[position] = scalar(x, b[to_position(index, b_shape, b_strides)])

    return kernel


@lru_cache
def reduce_kernel(function: Scalar) -> Any:
    """Compute out[i], the reduction of a along one dim, whose size in `shape` is 1."""
    scalar = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(out, shape, size, a, a_shape, a_strides, dim):  # type: ignore[no-untyped-def]
        position = cuda.grid(1)
        if position < size:
            index = cuda.local.array(MAX_DIMS, int64)
            to_index(position, shape, index)
            result = a[to_position(index, a_shape, a_strides)]
            for k in range(1, a_shape[dim]):
                index[dim] = k
                result = scalar(result, a[to_position(index, a_shape, a_strides)])
            out[position] = result

    return kernel


def launch(kernel: Any, size: int, *arguments: Any) -> None:
    """Launch a thread for each of `size` elements."""
    kernel[-(-size // THREADS), THREADS](*arguments)


def memory(size: int) -> Any:
    """Return a flat array of float32 on the device."""
    return free[size].pop() if free[size] else cuda.device_array(size, np.float32)


def add(x, y):  # type: ignore[no-untyped-def]
    """Return x + y."""
    return x + y


def sub(x, y):  # type: ignore[no-untyped-def]
    """Return x - y."""
    return x - y


def mul(x, y):  # type: ignore[no-untyped-def]
    """Return x * y."""
    return x * y


def larger(x, y):  # type: ignore[no-untyped-def]
    """Return the larger number."""
    return max(x, y)


def same(x):  # type: ignore[no-untyped-def]
    """Return x."""
    return x


def negative(x):  # type: ignore[no-untyped-def]
    """Return -x."""
    return -x


def exp(x):  # type: ignore[no-untyped-def]
    """Return e ** x."""
    return math.exp(x)


def log1p(x):  # type: ignore[no-untyped-def]
    """Return log(1 + x)."""
    return math.log1p(x)


def sigmoid(x):  # type: ignore[no-untyped-def]
    """Return 1 / (1 + exp(-x))."""
    return ONE / (ONE + math.exp(-x))


def relu(x):  # type: ignore[no-untyped-def]
    """Return the maximum of x and 0."""
    return max(x, np.float32(0))


@lru_cache
def times(number: float) -> Scalar:
    """Return a function that multiplies by a number."""
    factor = np.float32(number)

    def work(x):  # type: ignore[no-untyped-def]
        return x * factor

    return work


class Strided:
    """Elements in flat memory of the device, and the layout that says where they lie; in the words of other libraries."""

    def __init__(self, storage: Any, shape: Sizes, strides: Sizes, is_ours: bool = False) -> None:
        self.storage, self.shape, self.strides, self.is_ours = storage, shape, strides, is_ours

    def __del__(self) -> None:
        """Release memory that this object allocated."""
        if self.is_ours:
            free[self.storage.size].append(self.storage)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The interface of the memory; results are in row-major order."""
        return self.storage.__cuda_array_interface__ | {"shape": self.shape, "strides": None}

    def numpy(self) -> Any:
        """Return a copy on the host."""
        return np.asarray(self.storage.copy_to_host()).reshape(self.shape)

    @property
    def T(self) -> "Strided":  # noqa: N802  # the word of all libraries
        """A transposed view, which does not keep its base alive."""
        return Strided(self.storage, self.shape[::-1], self.strides[::-1])

    def padded(self, rank: int) -> tuple[Sizes, Sizes]:
        """Return shape and strides with dims of size 1 in front."""
        return (1,) * (rank - len(self.shape)) + self.shape, (0,) * (rank - len(self.shape)) + self.strides

    def map(self, function: Scalar) -> "Strided":
        """Apply the function to each element."""
        out = empty(self.shape)
        size = prod(self.shape)
        launch(map_kernel(function), size, out.storage, self.shape, size, self.storage, self.shape, self.strides)
        return out

    def zip(self, function: Scalar, other: "Strided") -> "Strided":
        """Apply the function to pairs."""
        rank = max(len(self.shape), len(other.shape))
        (a_shape, a_strides), (b_shape, b_strides) = self.padded(rank), other.padded(rank)
        shape = tuple(map(max, a_shape, b_shape))
        out, size = empty(shape), prod(shape)
        operands = (self.storage, a_shape, a_strides, other.storage, b_shape, b_strides)
        launch(zip_kernel(function), size, out.storage, shape, size, *operands)
        return out

    def reduce(self, function: Scalar, dim: int | None) -> "Strided":
        """Reduce one dim, or several, the last one first."""
        if dim is None:
            found = self
            for d in reversed(range(len(self.shape))):
                found = found.reduce(function, d)
            return found
        shape = (*self.shape[:dim], 1, *self.shape[dim + 1 :])
        size = prod(shape)
        out = empty((*self.shape[:dim], *self.shape[dim + 1 :]))
        launch(reduce_kernel(function), size, out.storage, shape, size, self.storage, self.shape, self.strides, dim)
        return out

    def __add__(self, other: "Strided") -> "Strided":
        """Return the sum."""
        return self.zip(add, other)

    def __sub__(self, other: "Strided") -> "Strided":
        """Return the difference."""
        return self.zip(sub, other)

    def __mul__(self, other: Any) -> "Strided":
        """Return the product with an array or a number."""
        return self.zip(mul, other) if isinstance(other, Strided) else self.map(times(other))

    def __neg__(self) -> "Strided":
        """Return the negative."""
        return self.map(negative)

    def exp(self) -> "Strided":
        """Return e ** x."""
        return self.map(exp)

    def log1p(self) -> "Strided":
        """Return log(1 + x)."""
        return self.map(log1p)

    def sigmoid(self) -> "Strided":
        """Return 1 / (1 + exp(-x))."""
        return self.map(sigmoid)

    def relu(self) -> "Strided":
        """Return the maximum of x and 0."""
        return self.map(relu)

    def contiguous(self) -> "Strided":
        """Return a copy in row-major order."""
        return self.map(same)

    def sum(self, dim: int | None = None) -> "Strided":
        """Return the sum along a dim, or of all elements."""
        return self.reduce(add, dim)

    def max(self, dim: int | None = None) -> "Strided":
        """Return the maximum along a dim, or of all elements."""
        return self.reduce(larger, dim)


def empty(shape: Sizes) -> Strided:
    """Return memory for a result."""
    return Strided(memory(prod(shape)), shape, strides_of(shape), is_ours=True)


def strides_of(shape: Sizes) -> Sizes:
    """Return the row-major strides, in elements."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def asarray(x: Any) -> Strided:
    """Return an array of the device in row-major order, without a copy."""
    found = cuda.as_cuda_array(x, sync=False)
    return Strided(found.reshape(found.size), tuple(found.shape), strides_of(tuple(found.shape)))

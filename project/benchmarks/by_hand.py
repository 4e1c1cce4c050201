"""A network trained without autodiff: each derivative is written out, with four functions of matrices.

The four are map, zip, reduce and matmul, which an *engine* implements. Three engines are compared with minifuse: NumPy,
whose float64 results are the reference; `Loops` in this file, plain Python over lists, element by element; and `indexed`, in
Numba. All matrices have two dims, and a dim of size 1 broadcasts.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .row import Array

Matrix = Any
Scalar = Callable[..., Any]


def add(a: Any, b: Any) -> Any:
    """Return a + b."""
    return a + b


def sub(a: Any, b: Any) -> Any:
    """Return a - b."""
    return a - b


def mul(a: Any, b: Any) -> Any:
    """Return a * b."""
    return a * b


def div(a: Any, b: Any) -> Any:
    """Return a / b."""
    return a / b


def larger(a: Any, b: Any) -> Any:
    """Return the larger number."""
    return a if a > b else b


def exp(x: Any) -> Any:
    """Return e ** x."""
    return math.exp(x)


def relu(x: Any) -> Any:
    """Return the maximum of x and 0."""
    return x if x > 0 else x * 0


def relu_backward(x: Any, g: Any) -> Any:
    """Return the gradient of x, given the gradient g of relu(x)."""
    return g if x > 0 else g * 0


class Engine(Protocol):
    """Four functions of matrices, and the conversions from and to arrays."""

    def matrix(self, array: Array) -> Matrix:
        """Return an array of two dims as a matrix of this engine."""

    def array(self, a: Matrix) -> Array:
        """Return a matrix of this engine as an array."""

    def transpose(self, a: Matrix) -> Matrix:
        """Transpose a matrix."""

    def map(self, function: Scalar, a: Matrix) -> Matrix:
        """Apply the function to each element."""

    def zip(self, function: Scalar, a: Matrix, b: Matrix) -> Matrix:
        """Apply the function to pairs; dims of size 1 broadcast."""

    def reduce(self, function: Scalar, a: Matrix, dim: int) -> Matrix:
        """Reduce one dim to size 1."""

    def matmul(self, a: Matrix, b: Matrix) -> Matrix:
        """Multiply matrices, (M, K) @ (K, N) -> (M, N)."""


class Network:
    """A perceptron with one hidden layer, learning by gradient descent with momentum from softmax and cross-entropy.

    Parameters
    ----------
    engine
        What computes.
    weights
        Of the two layers: (hidden, inputs), (hidden,), (classes, hidden), (classes,), as PyTorch keeps them.
    """

    def __init__(self, engine: Engine, weights: Sequence[Array], rate: float, momentum: float) -> None:
        self.engine, dtype = engine, weights[0].dtype
        self.rate, self.momentum = [engine.matrix(np.full((1, 1), x, dtype)) for x in (rate, momentum)]
        self.weights = [engine.matrix(w.reshape(-1, w.shape[-1])) for w in weights]
        self.speeds = [engine.matrix(np.zeros_like(w).reshape(-1, w.shape[-1])) for w in weights]

    def epoch(self, batches: Iterable[tuple[Matrix, Matrix, Matrix]]) -> None:
        """Do one step for each batch of (inputs, one-hot rows, 1 / number of rows)."""
        for batch in batches:
            self.descend(self.gradients(*batch))

    def gradients(self, x: Matrix, wanted: Matrix, share: Matrix) -> list[Matrix]:
        """Return the derivatives of the mean cross-entropy by each of the weights."""
        e = self.engine
        w1, b1, w2, b2 = self.weights
        z = e.zip(add, e.matmul(x, e.transpose(w1)), b1)  # (rows, hidden)
        h = e.map(relu, z)
        y = e.zip(add, e.matmul(h, e.transpose(w2)), b2)  # (rows, classes)
        powers = e.map(exp, e.zip(sub, y, e.reduce(larger, y, 1)))
        p = e.zip(div, powers, e.reduce(add, powers, 1))
        gy = e.zip(mul, e.zip(sub, p, wanted), share)
        gz = e.zip(relu_backward, z, e.matmul(gy, w2))
        return [e.matmul(e.transpose(gz), x), e.reduce(add, gz, 0), e.matmul(e.transpose(gy), h), e.reduce(add, gy, 0)]

    def descend(self, gradients: Sequence[Matrix]) -> None:
        """Update the weights by gradient descent."""
        e = self.engine
        for k, g in enumerate(gradients):
            self.speeds[k] = e.zip(add, e.zip(mul, self.speeds[k], self.momentum), g)
            self.weights[k] = e.zip(sub, self.weights[k], e.zip(mul, self.speeds[k], self.rate))

    def batch(self, x: Array, wanted: Array) -> tuple[Matrix, Matrix, Matrix]:
        """Return a batch as matrices of the engine."""
        share = np.full((1, 1), 1 / len(x), x.dtype)
        return self.engine.matrix(x), self.engine.matrix(wanted), self.engine.matrix(share)


# What NumPy does for whole arrays; the other functions work on them as they are.
WHOLE: dict[Scalar, Scalar] = {
    exp: np.exp,
    relu: lambda x: np.maximum(x, 0),
    relu_backward: lambda x, g: np.where(x > 0, g, 0),
}
FOLDS: dict[Scalar, Scalar] = {add: np.sum, larger: np.max}


class Arrays:
    """NumPy: whole arrays at once."""

    def matrix(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def array(self, a: Array) -> Array:
        """Return the array itself."""
        return a

    def transpose(self, a: Array) -> Array:
        """Transpose a matrix."""
        return a.T

    def map(self, function: Scalar, a: Array) -> Any:
        """Apply a ufunc."""
        return WHOLE[function](a)

    def zip(self, function: Scalar, a: Array, b: Array) -> Any:
        """Apply a ufunc."""
        return WHOLE.get(function, function)(a, b)

    def reduce(self, function: Scalar, a: Array, dim: int) -> Any:
        """Reduce one dim to size 1."""
        return FOLDS[function](a, axis=dim, keepdims=True)

    def matmul(self, a: Array, b: Array) -> Array:
        """Multiply by BLAS."""
        return a @ b


Rows = list[list[float]]


class Loops:
    """Plain Python: lists of lists of floats, an element at a time."""

    def matrix(self, array: Array) -> Rows:
        """Return lists of Python floats, which have the precision of float64."""
        rows: Rows = array.tolist()
        return rows

    def array(self, a: Rows) -> Array:
        """Return the floats of the lists, rounded to float32."""
        return np.array(a, np.float32)

    def transpose(self, a: Rows) -> Rows:
        """Transpose a matrix."""
        return [list(column) for column in zip(*a, strict=True)]

    def map(self, function: Scalar, a: Rows) -> Rows:
        """Apply the function to each element."""
        return [[function(x) for x in row] for row in a]

    def zip(self, function: Scalar, a: Rows, b: Rows) -> Rows:
        """Apply the function to pairs; a dim of size 1 is repeated."""
        count, width = max(len(a), len(b)), max(len(a[0]), len(b[0]))
        pairs = zip(widen(a, count, width), widen(b, count, width), strict=True)
        return [[function(x, y) for x, y in zip(row, other, strict=True)] for row, other in pairs]

    def reduce(self, function: Scalar, a: Rows, dim: int) -> Rows:
        """Reduce one dim to size 1."""
        if dim == 0:
            return self.transpose(self.reduce(function, self.transpose(a), 1))
        folded = []
        for row in a:
            result = row[0]
            for x in row[1:]:
                result = function(result, x)
            folded.append([result])
        return folded

    def matmul(self, a: Rows, b: Rows) -> Rows:
        """Multiply matrices by dot products of rows and columns."""
        columns = self.transpose(b)
        return [[dot(row, column) for column in columns] for row in a]


def dot(row: list[float], column: list[float]) -> float:
    """Return the sum of the products of pairs."""
    total = 0.0
    for x, y in zip(row, column, strict=True):
        total += x * y
    return total


def widen(a: Rows, count: int, width: int) -> Rows:
    """Return the rows, with dims of size 1 repeated."""
    rows = [row * width for row in a] if len(a[0]) == 1 else a
    return rows * count if len(a) == 1 else rows

"""Reference answers of module 2 in NumPy."""

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from random import Random
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from ...core.indexing import Shape
from ..engine import Engine
from ..strided import Array, Strided
from ..values import Values
from ..variables import Context, Tensor
from . import answers
from .module1 import descend
from .ufuncs import on_arrays, reduction


@answers
def row_major_strides(shape: Shape) -> Shape:
    """Return the cumulative products of the sizes, from the last one; NumPy would take longer for so few."""
    sizes = [1, *[max(n, 1) for n in shape[:0:-1]]]
    return tuple([*accumulate(sizes, operator.mul)][::-1][: len(shape)])


@answers
def position_of(index: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """Return the inner product of index and strides, plus the offset."""
    if len(index) != len(strides):
        raise ValueError(f"the index {tuple(index)} has {len(index)} dims, and the strides {tuple(strides)} {len(strides)}")
    return int(np.dot(np.asarray(index, int), np.asarray(strides, int)) + offset)


@answers
def index_of(ordinal: int, shape: Shape) -> Shape:
    """Return np.unravel_index."""
    if shape and not 0 <= ordinal < (size := prod(shape)):
        raise ValueError(f"the shape {tuple(shape)} has {size} elements, numbered from 0, and none of number {ordinal}")
    return tuple(int(i) for i in np.unravel_index(ordinal, shape)) if shape else ()


@answers
def permuted(x: Strided, dims: Sequence[int]) -> Strided:
    """Transpose an array with these strides, and return its shape and strides."""
    rank = len(x.shape)
    if sorted(d + rank * (d < 0) for d in dims) != list(range(rank)):
        raise ValueError(f"the dims {tuple(dims)} are not a permutation of the {rank} dims of the tensor")
    array = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), x.shape, x.strides).transpose(dims)
    return Strided(x.storage, array.shape, array.strides, x.offset)


@answers
def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """Return the sizes of a where they are not 1, else those of b; raise ValueError if the shapes are incompatible."""
    rank = max(len(a), len(b))
    one, two = [np.array([*(1,) * (rank - len(shape)), *shape], int) for shape in (a, b)]
    if np.any((one != two) & (one != 1) & (two != 1)):
        raise ValueError(f"shape mismatch: {tuple(a)} and {tuple(b)} cannot be broadcast to a single shape")
    return tuple(np.where(one == 1, two, one).tolist())


@answers
def broadcast_index(index: Sequence[int], shape: Shape) -> Shape:
    """Return the last dims of the index, with 0 where the size is 1."""
    if len(index) < len(shape):
        raise ValueError(f"the index {tuple(index)} has fewer dims than the shape {tuple(shape)}")
    tail = np.asarray(index, int)[len(index) - len(shape) :]
    return tuple(int(i) for i in np.where(np.asarray(shape, int) == 1, 0, tail))


@answers
def tensor_map(fn: Callable[[float], float], out: Strided, a: Strided) -> None:
    """Compute out[i] = fn(a[i])."""
    write(out, on_arrays(fn), a)


@answers
def tensor_zip(fn: Callable[[float, float], float], out: Strided, a: Strided, b: Strided) -> None:
    """Compute out[i] = fn(a[i], b[i]) with broadcasting."""
    write(out, on_arrays(fn), a, b)


def write(out: Strided, fn: Callable[..., Array], *operands: Strided) -> None:
    """Assign the result of a function of arrays to out, unless out is empty."""
    if (array := out.array()).size:
        with np.errstate(all="ignore"):
            array[...] = fn(*[x.array() for x in operands])


@answers
def tensor_reduce(fn: Callable[[float, float], float], out: Strided, a: Strided, dim: int, start: float) -> None:
    """Reduce one dim, which has size 1 in out."""
    ufunc, dtype = reduction(fn)
    with np.errstate(all="ignore"):
        out.array()[...] = ufunc.reduce(a.array().astype(dtype), axis=dim, keepdims=True, initial=start)


# Task 2.4, in a table


def sum_to_shape(array: Array, shape: Shape) -> Array:
    """Sum an array over broadcast dims to a shape; return it unchanged if it has this shape."""
    if array.shape == tuple(shape):
        return array
    wide = (1,) * (array.ndim - len(shape)) + tuple(shape)
    dims = tuple(np.flatnonzero(np.not_equal(array.shape, wide)).tolist())
    return np.asarray(array.sum(dims, keepdims=True).reshape(shape))


@answers
def unbroadcast(gradient: Values, shape: Shape) -> Values:
    """Sum over broadcast dims."""
    return gradient.engine.values(sum_to_shape(gradient.array(), shape))


def register_function(name: str, forward: Callable[..., Values], slopes: Callable[..., Sequence[Array]]) -> None:
    """Register a function of tensors, given by its forward and by the gradients of its inputs in NumPy."""

    def run(context: Context, *xs: Values, **options: object) -> Values:
        context.save(xs, options)
        return forward(*xs, **options)

    def backward(context: Context, d: Values) -> tuple[Values, ...]:
        xs, options = context.saved
        with np.errstate(all="ignore"):
            gradients = slopes(d.array(), *[x.array() for x in xs], **options)
        fit, values = d.engine.slot("unbroadcast"), d.engine.values
        return tuple(fit(values(g), x.shape) for g, x in zip(gradients, xs, strict=True))

    answers(
        type(
            name,
            (),
            {"__doc__": f"{name[6:]} of tensors.", "forward": staticmethod(run), "backward": staticmethod(backward)},
        )
    )


def transpose(x: Array) -> Array:
    """Transpose the last two dims."""
    return np.swapaxes(x, -1, -2)


register_function("TensorAdd", lambda a, b: a.zip("add", b), lambda d, a, b: (d, d))
register_function("TensorMul", lambda a, b: a.zip("mul", b), lambda d, a, b: (d * b, a * d))
register_function("TensorNeg", lambda a: a.map("neg"), lambda d, a: (-d,))
register_function("TensorInv", lambda a: a.map("inv"), lambda d, a: (-d / np.square(a),))
register_function("TensorLog", lambda a: a.map("log"), lambda d, a: (d / a,))
register_function("TensorExp", lambda a: a.map("exp"), lambda d, a: (d * np.exp(a),))
register_function(
    "TensorSigmoid", lambda a: a.map("sigmoid"), lambda d, a: (d * np.exp(-np.abs(a)) / (1 + np.exp(-np.abs(a))) ** 2,)
)
register_function("TensorReLU", lambda a: a.map("relu"), lambda d, a: (np.where(a > 0, d, 0.0),))
register_function("TensorSum", lambda a, dim: a.reduce("add", dim, 0.0), lambda d, a, dim: (np.broadcast_to(d, a.shape),))
register_function(
    "TensorPermute", lambda a, dims: a.permute(*dims), lambda d, a, dims: (np.moveaxis(d, range(d.ndim), dims),)
)
register_function("TensorReshape", lambda a, shape: a.reshape(shape), lambda d, a, shape: (d.reshape(a.shape),))
register_function("TensorMatMul", lambda a, b: a.matmul(b), lambda d, a, b: (d @ transpose(b), transpose(a) @ d))


# Task 2.5


@answers
class TensorLinear:
    """A matrix product, and a bias for each column."""

    def __init__(self, engine: Engine, inputs: int, outputs: int, random: Random) -> None:
        drawn = np.random.default_rng(random.getrandbits(32)).uniform(-1, 1, (inputs + 1, outputs))
        self.weights, self.biases = engine.tensor(drawn[:-1]), engine.tensor(drawn[-1])

    def __call__(self, xs: Tensor) -> Tensor:
        """Return the outputs, one row for each row."""
        return xs @ self.weights + self.biases

    def parameters(self) -> list[Tensor]:
        """Return weights and biases."""
        return [self.weights, self.biases]


@answers
class TensorNetwork:
    """Two layers."""

    def __init__(self, engine: Engine, inputs: int, hidden: int, random: Random) -> None:
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs: Tensor) -> Tensor:
        """Return probabilities."""
        first, last = self.layers
        return last(first(xs).relu()).sigmoid()

    def parameters(self) -> list[Tensor]:
        """Return the parameters of both layers."""
        return [p for layer in self.layers for p in layer.parameters()]


def loss_of(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of -log of the probability of the right label."""
    return -(labels * outputs + (1 - labels) * (1 - outputs)).log().mean()


@answers
def tensor_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of -log of the probability of the right label."""
    return loss_of(outputs, labels)


@answers
def tensor_step(parameters: Sequence[Tensor], rate: float) -> None:
    """Move parameters against their gradients."""
    descend(parameters, rate)


@answers
def train_tensor_network(
    engine: Engine, points: Sequence[Sequence[float]], labels: Sequence[int], steps: int, seed: int
) -> TensorNetwork:
    """Train by gradient descent on all points."""
    network = TensorNetwork(engine, len(points[0]), 32, Random(seed))
    xs, ys = engine.constant(points), engine.constant(np.reshape(labels, (-1, 1)))
    for _ in range(steps):
        loss_of(network(xs), ys).backward()
        descend(network.parameters(), 1.0)
    return network


# Task 2.6


def numpy_index(index: object) -> tuple[Any, ...]:
    """Return an index with which NumPy returns a view, also for an element; raise IndexError for advanced indexing."""
    parts = index if isinstance(index, tuple) else (index,)
    basic = (int, np.integer, slice, EllipsisType, NoneType)
    if any(isinstance(part, bool) or not isinstance(part, basic) for part in parts):
        raise IndexError(f"no basic index: {index!r}")
    return parts if any(part is Ellipsis for part in parts) else (*parts, ...)


@answers
def sliced(x: Strided, index: object) -> Strided:
    """Index an array of bytes with these strides, and return the layout of the view."""
    base = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), x.shape, x.strides)
    view = base[numpy_index(index)]
    first, last = [array.__array_interface__["data"][0] for array in (base, view)]
    distance = (last - first + 2**63) % 2**64 - 2**63  # addresses below 0 are those at the end of 64 bits
    return Strided(x.storage, view.shape, view.strides, x.offset + distance)


@answers
def assign_slice(x: Strided, index: object, source: Strided | float) -> None:
    """Assign to the view of an array."""
    if (view := x.array()[numpy_index(index)]).size:
        view[...] = source.array() if isinstance(source, Strided) else source


def reshape_view(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Reshape an array without a copy. `np.reshape` can refuse to copy since NumPy 2.1.

    Raises
    ------
    ValueError
        Strides cannot describe the result.
    """
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        return np.reshape(array, shape, copy=False)
    view = array.view()
    try:
        view.shape = shape
    except AttributeError as error:
        raise ValueError(str(error)) from error
    return view


@answers
def view_strides(shape: Shape, strides: Shape, new_shape: Shape) -> Shape | None:
    """Reshape an array with these strides without a copy, if NumPy can."""
    array = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, strides)
    try:
        return reshape_view(array, new_shape).strides
    except ValueError:
        return None


@answers
def overlap(a: Strided, b: Strided) -> bool:
    """Return whether views of the positions have one in common."""
    cells = np.arange(len(a.storage), dtype=np.float64)
    mine, others = [x._replace(storage=cells).array() for x in (a, b)]
    return a.storage is b.storage and bool(np.intersect1d(mine, others).size)


def put_back(d: Array, a: Array, index: object) -> tuple[Array]:
    """Return zeros with a gradient at an index."""
    out = np.zeros(a.shape)
    out[numpy_index(index)] = d
    return (out,)


register_function("TensorSlice", lambda a, index: a.engine.values(a.engine.slot("sliced")(a.data, index)), put_back)

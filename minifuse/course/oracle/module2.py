"""Module 2, judged by NumPy."""

from collections.abc import Callable, Sequence
from random import Random

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
    write(out, on_arrays(fn), a)


@answers
def tensor_zip(fn: Callable[[float, float], float], out: Strided, a: Strided, b: Strided) -> None:
    """out[i] = fn(a[i], b[i]), broadcast."""
    write(out, on_arrays(fn), a, b)


def write(out: Strided, fn: Callable[..., Array], *operands: Strided) -> None:
    """Into the elements of out, if there are any, what a function gives for whole arrays."""
    if (array := out.array()).size:
        with np.errstate(all="ignore"):
            array[...] = fn(*[x.array() for x in operands])


@answers
def tensor_reduce(fn: Callable[[float, float], float], out: Strided, a: Strided, dim: int, start: float) -> None:
    """Reduce one dim, which has size 1 in out."""
    ufunc, dtype = reduction(fn)
    out.array()[...] = ufunc.reduce(a.array().astype(dtype), axis=dim, keepdims=True, initial=start)


# Task 2.4, in a table


def summed(array: Array, shape: Shape) -> Array:
    """An array summed to a shape that had been broadcast to its own."""
    wide = (1,) * (array.ndim - len(shape)) + tuple(shape)
    dims = tuple(np.flatnonzero(np.not_equal(array.shape, wide)).tolist())
    return np.asarray(array.sum(dims, keepdims=True).reshape(shape))


@answers
def unbroadcast(gradient: Values, shape: Shape) -> Values:
    """NumPy's sum over several dims at once."""
    return gradient.engine.values(summed(gradient.array(), shape))


def entered(name: str, forward: Callable[..., Values], slopes: Callable[..., Sequence[Array]]) -> None:
    """Enter a function of tensors by its values, and by what its inputs receive, of arrays and the function's options."""

    def run(context: Context, *xs: Values, **options: object) -> Values:
        context.save(xs, options)
        return forward(*xs, **options)

    def backward(context: Context, d: Values) -> tuple[Values, ...]:
        xs, options = context.saved
        with np.errstate(all="ignore"):
            found = slopes(d.array(), *[x.array() for x in xs], **options)
        fit, values = d.engine.slot("unbroadcast"), d.engine.values
        return tuple(fit(values(g), x.shape) for g, x in zip(found, xs, strict=True))

    answers(
        type(
            name,
            (),
            {"__doc__": f"{name[6:]} of tensors.", "forward": staticmethod(run), "backward": staticmethod(backward)},
        )
    )


def turned(x: Array) -> Array:
    """Matrices transposed."""
    return np.swapaxes(x, -1, -2)


entered("TensorAdd", lambda a, b: a.zip("add", b), lambda d, a, b: (d, d))
entered("TensorMul", lambda a, b: a.zip("mul", b), lambda d, a, b: (d * b, a * d))
entered("TensorNeg", lambda a: a.map("neg"), lambda d, a: (-d,))
entered("TensorInv", lambda a: a.map("inv"), lambda d, a: (-d / np.square(a),))
entered("TensorLog", lambda a: a.map("log"), lambda d, a: (d / a,))
entered("TensorExp", lambda a: a.map("exp"), lambda d, a: (d * np.exp(a),))
entered("TensorSigmoid", lambda a: a.map("sigmoid"), lambda d, a: (d * (1 - np.tanh(a / 2) ** 2) / 4,))
entered("TensorReLU", lambda a: a.map("relu"), lambda d, a: (d * np.heaviside(a, 0.0),))
entered("TensorSum", lambda a, dim: a.reduce("add", dim, 0.0), lambda d, a, dim: (np.broadcast_to(d, a.shape),))
entered("TensorPermute", lambda a, dims: a.permute(*dims), lambda d, a, dims: (np.moveaxis(d, range(d.ndim), dims),))
entered("TensorReshape", lambda a, shape: a.reshape(shape), lambda d, a, shape: (d.reshape(a.shape),))
entered("TensorMatMul", lambda a, b: a.matmul(b), lambda d, a, b: (d @ turned(b), turned(a) @ d))


# Task 2.5


@answers
class TensorLinear:
    """A product, and a bias for each column."""

    def __init__(self, engine: Engine, inputs: int, outputs: int, random: Random) -> None:
        drawn = np.random.default_rng(random.getrandbits(32)).uniform(-1, 1, (inputs + 1, outputs))
        self.weights, self.biases = engine.tensor(drawn[:-1]), engine.tensor(drawn[-1])

    def __call__(self, xs: Tensor) -> Tensor:
        """Outputs, a row for each row."""
        return xs @ self.weights + self.biases

    def parameters(self) -> list[Tensor]:
        """Weights and biases."""
        return [self.weights, self.biases]


@answers
class TensorNetwork:
    """Two layers."""

    def __init__(self, engine: Engine, inputs: int, hidden: int, random: Random) -> None:
        self.layers = [TensorLinear(engine, inputs, hidden, random), TensorLinear(engine, hidden, 1, random)]

    def __call__(self, xs: Tensor) -> Tensor:
        """Probabilities."""
        first, last = self.layers
        return last(first(xs).relu()).sigmoid()

    def parameters(self) -> list[Tensor]:
        """Of all layers."""
        return [p for layer in self.layers for p in layer.parameters()]


def loss_of(outputs: Tensor, labels: Tensor) -> Tensor:
    """The mean of -log of the probability of what is so."""
    return -(labels * outputs + (1 - labels) * (1 - outputs)).log().mean()


@answers
def tensor_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Of all rows at once."""
    return loss_of(outputs, labels)


@answers
def tensor_step(parameters: Sequence[Tensor], rate: float) -> None:
    """Against the derivatives."""
    descend(parameters, rate)


@answers
def train_tensor_network(
    engine: Engine, points: Sequence[Sequence[float]], labels: Sequence[int], steps: int, seed: int
) -> TensorNetwork:
    """Descent on all points."""
    network = TensorNetwork(engine, len(points[0]), 32, Random(seed))
    xs, ys = engine.constant(points), engine.constant(np.reshape(labels, (-1, 1)))
    for _ in range(steps):
        loss_of(network(xs), ys).backward()
        descend(network.parameters(), 1.0)
    return network

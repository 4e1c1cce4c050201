"""Module 4, judged by NumPy: windows that slide over padded arrays, and sums of products of them."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...core.indexing import Shape
from ..engine import Engine
from ..networks import conv2d as convolved
from ..networks import dropout, log_softmax
from ..networks import max_pool as pooled
from ..strided import Array, Strided
from ..variables import Tensor
from . import answers
from .module1 import descend
from .module2 import entered
from .module3 import assigned

ElementT = TypeVar("ElementT", bound=np.generic)


def windows(x: npt.NDArray[ElementT], window: Shape, stride: Shape) -> npt.NDArray[ElementT]:
    """Of (batch, channels, ...): the windows over its last dims, which are behind all others then."""
    dims = tuple(range(2, x.ndim))
    steps = tuple(slice(None, None, s) for s in stride)
    return np.lib.stride_tricks.sliding_window_view(x, window, dims)[(slice(None), slice(None), *steps)]


def padded(x: Array, padding: Shape) -> Array:
    """With zeros around each image."""
    return np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])


def gathered(parts: Array, shape: Shape, window: Shape, stride: Shape) -> Array:
    """Scatter-add the parts of each window to its elements: the adjoint of `windows`."""
    places = windows(np.arange(np.prod(shape)).reshape(shape), window, stride)
    return np.asarray(np.bincount(places.ravel(), np.ravel(parts), int(np.prod(shape))), np.float64).reshape(shape)


def convolution(x: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """Each window times each kernel, summed over channels and places."""
    inner = tuple(range(1, weight.ndim))
    found = windows(padded(x, padding), weight.shape[2:], stride)
    return np.moveaxis(np.tensordot(found, weight, ((1, *range(-len(stride), 0)), inner)), -1, 1)


def convolution_input_gradient(shape: Shape, d: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """Each kernel times the gradient of where it was laid."""
    wide = (*shape[:2], *[n + 2 * p for n, p in zip(shape[2:], padding, strict=True)])
    parts = np.moveaxis(np.tensordot(d, weight, (1, 0)), len(stride) + 1, 1)
    cut = tuple(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True))
    return gathered(parts, wide, weight.shape[2:], stride)[:, :, *cut]


def convolution_weight_gradient(shape: Shape, x: Array, d: Array, stride: Shape, padding: Shape) -> Array:
    """Each window times the gradient of what it gave."""
    dims = (0, *range(2, d.ndim))
    return np.tensordot(d, windows(padded(x, padding), shape[2:], stride), (dims, dims))


def pair(n: int | Shape) -> Shape:
    """Of a convolution along one dim: a tuple, as those along two have."""
    return (n,) if isinstance(n, int) else tuple(n)


@answers
def conv_size(size: int, kernel: int, stride: int, padding: int) -> int:
    """How many places a kernel has: as many as NumPy finds windows."""
    return int(windows(np.empty((1, 1, size + 2 * padding)), (kernel,), (stride,)).shape[2])


@answers
def conv1d(out: Strided, x: Strided, weight: Strided, stride: int, padding: int) -> None:
    """Windows times kernels."""
    assigned(out, convolution(x.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv1d_input_gradient(out: Strided, d: Strided, weight: Strided, stride: int, padding: int) -> None:
    """Kernels, laid back."""
    assigned(out, convolution_input_gradient(out.shape, d.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv1d_weight_gradient(out: Strided, x: Strided, d: Strided, stride: int, padding: int) -> None:
    """Windows times gradients."""
    assigned(out, convolution_weight_gradient(out.shape, x.array(), d.array(), pair(stride), pair(padding)))


@answers
def conv2d(out: Strided, x: Strided, weight: Strided, stride: Shape, padding: Shape) -> None:
    """Windows times kernels."""
    assigned(out, convolution(x.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv2d_input_gradient(out: Strided, d: Strided, weight: Strided, stride: Shape, padding: Shape) -> None:
    """Kernels, laid back."""
    assigned(out, convolution_input_gradient(out.shape, d.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv2d_weight_gradient(out: Strided, x: Strided, d: Strided, stride: Shape, padding: Shape) -> None:
    """Windows times gradients."""
    assigned(out, convolution_weight_gradient(out.shape, x.array(), d.array(), pair(stride), pair(padding)))


# Task 4.3


@answers
def average_pool(out: Strided, x: Strided, window: Shape, stride: Shape) -> None:
    """The mean of each window."""
    assigned(out, windows(x.array(), window, stride).mean((-2, -1)))


@answers
def average_pool_gradient(out: Strided, d: Strided, window: Shape, stride: Shape) -> None:
    """An equal part for each element of a window."""
    parts = np.broadcast_to(d.array()[..., None, None] / np.prod(window), (*d.shape, *window))
    assigned(out, gathered(parts, out.shape, window, stride))


@answers
def max_pool(out: Strided, x: Strided, window: Shape, stride: Shape) -> None:
    """The largest of each window."""
    assigned(out, windows(x.array(), window, stride).max((-2, -1)))


@answers
def max_pool_gradient(out: Strided, x: Strided, d: Strided, window: Shape, stride: Shape) -> None:
    """To the largest of each window; equal ones share it."""
    found = windows(x.array(), window, stride)
    largest = np.equal(found, found.max((-2, -1), keepdims=True))
    parts = d.array()[..., None, None] * largest / largest.sum((-2, -1), keepdims=True)
    assigned(out, gathered(parts, out.shape, window, stride))


# Task 4.4


def likely(x: Array, dim: int) -> Array:
    """Softmax, of numbers of any size."""
    return np.asarray(np.exp(x - np.logaddexp.reduce(x, axis=dim, keepdims=True)))


def shares(x: Array, dim: int) -> Array:
    """1 at the largest element along a dim; equal ones share it."""
    largest = np.equal(x, x.max(dim, keepdims=True))
    return np.asarray(largest / largest.sum(dim, keepdims=True))


def keep_mask(shape: Shape, rate: float, seed: int) -> Array:
    """The mask of dropout: one number of `Random` for each element."""
    draw = Random(seed).random
    numbers = np.fromiter(iter(draw, None), float, int(np.prod(shape)))
    return np.where(numbers < rate, 0.0, 1 / (1 - rate)).reshape(shape)


def masked(x: Array, rate: float, seed: int, is_training: bool) -> Array:
    """Some elements left out."""
    return x * keep_mask(x.shape, rate, seed) if is_training else x


entered(
    "TensorMax",
    lambda a, dim: a.engine.values(a.array().max(dim, keepdims=True)),
    lambda d, a, dim: (d * shares(a, dim),),
)
entered(
    "TensorSoftmax",
    lambda a, dim: a.engine.values(likely(a.array(), dim)),
    lambda d, a, dim: (likely(a, dim) * (d - (d * likely(a, dim)).sum(dim, keepdims=True)),),
)
entered(
    "TensorLogSoftmax",
    lambda a, dim: a.engine.values(a.array() - np.logaddexp.reduce(a.array(), axis=dim, keepdims=True)),
    lambda d, a, dim: (d - likely(a, dim) * d.sum(dim, keepdims=True),),
)
entered(
    "TensorDropout",
    lambda a, **how: a.engine.values(masked(a.array(), **how)),
    lambda d, a, **how: (masked(d, **how),),
)


@answers
def dropout_mask(count: int, rate: float, seed: int) -> list[float]:
    """As a list."""
    return [float(x) for x in keep_mask((count,), rate, seed)]


# Task 4.5


@answers
class DigitNetwork:
    """Two convolutions."""

    def __init__(self, engine: Engine, random: Random) -> None:
        drawn = partial(np.random.default_rng(random.getrandbits(32)).uniform, -1, 1)
        self.kernels, self.scores = engine.tensor(drawn((6, 1, 3, 3)) / 3), engine.tensor(drawn((10, 6, 3, 3)) / 54**0.5)
        self.biases = engine.tensor(np.zeros(10))

    def __call__(self, images: Tensor, seed: int | None = None) -> Tensor:
        """Log-probabilities."""
        seen = pooled(convolved(images, self.kernels), (2, 2)).relu()
        some = dropout(seen, 0.1, seed or 0, seed is not None)
        return log_softmax(convolved(some, self.scores).reshape(images.shape[0], 10) + self.biases, 1)

    def parameters(self) -> list[Tensor]:
        """All three."""
        return [self.kernels, self.scores, self.biases]


@answers
def digit_loss(likely: Tensor, labels: Sequence[int]) -> Tensor:
    """The labels' columns of a unit matrix pick what is so."""
    return -(likely * np.eye(likely.shape[1])[list(labels)]).sum() * (1 / len(labels))


@answers
def count_right(likely: Tensor, labels: Sequence[int]) -> int:
    """Where the largest is the label's."""
    return int(np.equal(np.argmax(likely.tolist(), axis=1), labels).sum())


@answers
def train_digits(engine: Engine, images: Sequence[Array], labels: Sequence[int], steps: int, seed: int) -> DigitNetwork:
    """Descent on some images at a time, in smaller and smaller steps."""
    random = Random(seed)
    network, stack = DigitNetwork(engine, random), np.asarray(images)
    for step in range(steps):
        some = random.sample(range(len(stack)), 16)
        digit_loss(network(engine.constant(stack[some]), step), [labels[k] for k in some]).backward()
        descend(network.parameters(), 0.9 * (1 - step / steps))
    return network

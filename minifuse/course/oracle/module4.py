"""Reference answers of module 4 in NumPy: sliding windows of padded arrays, and tensor products with them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ...core.indexing import Shape
from ..engine import Engine
from ..networks import conv2d as apply_convolution
from ..networks import dropout, log_softmax
from ..networks import max_pool as pooled
from ..strided import Array, Strided
from ..variables import Tensor
from . import answers
from .module1 import descend
from .module2 import register_function
from .module3 import assign

ElementT = TypeVar("ElementT", bound=np.generic)


def windows(x: npt.NDArray[ElementT], window: Shape, stride: Shape) -> npt.NDArray[ElementT]:
    """Return the windows over the last dims of (batch, channels, ...), with the dims of the window last."""
    dims = tuple(range(2, x.ndim))
    steps = tuple(slice(None, None, s) for s in stride)
    return np.lib.stride_tricks.sliding_window_view(x, window, dims)[(slice(None), slice(None), *steps)]


def pad(x: Array, padding: Shape) -> Array:
    """Pad the last dims of (batch, channels, ...) with zeros."""
    return np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])


def scatter_add(parts: Array, shape: Shape, window: Shape, stride: Shape) -> Array:
    """Scatter-add the parts of each window to its elements: the adjoint of `windows`."""
    places = windows(np.arange(np.prod(shape)).reshape(shape), window, stride)
    return np.asarray(np.bincount(places.ravel(), np.ravel(parts), int(np.prod(shape))), np.float64).reshape(shape)


def convolution(x: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """Multiply each window by each kernel, and sum over channels and positions in the window."""
    inner = tuple(range(1, weight.ndim))
    x_windows = windows(pad(x, padding), weight.shape[2:], stride)
    return np.moveaxis(np.tensordot(x_windows, weight, ((1, *range(-len(stride), 0)), inner)), -1, 1)


def convolution_input_gradient(shape: Shape, d: Array, weight: Array, stride: Shape, padding: Shape) -> Array:
    """Multiply each kernel by the gradient of each place, and scatter-add to the elements of its window."""
    wide = (*shape[:2], *[n + 2 * p for n, p in zip(shape[2:], padding, strict=True)])
    parts = np.moveaxis(np.tensordot(d, weight, (1, 0)), len(stride) + 1, 1)
    cut = tuple(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True))
    return scatter_add(parts, wide, weight.shape[2:], stride)[:, :, *cut]


def convolution_weight_gradient(shape: Shape, x: Array, d: Array, stride: Shape, padding: Shape) -> Array:
    """Multiply each window by the gradient of its place, and sum over places and images."""
    dims = (0, *range(2, d.ndim))
    return np.tensordot(d, windows(pad(x, padding), shape[2:], stride), (dims, dims))


def pair(n: int | Shape) -> Shape:
    """Return a setting as a tuple, also for one dim."""
    return (n,) if isinstance(n, int) else tuple(n)


@answers
def conv_size(size: int, kernel: int, stride: int, padding: int) -> int:
    """Return the number of first indices of a window."""
    return len(range(-padding, size + padding - kernel + 1, stride))


@answers
def conv1d(out: Strided, x: Strided, weight: Strided, stride: int, padding: int) -> None:
    """Write the convolution."""
    assign(out, convolution(x.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv1d_input_gradient(out: Strided, d: Strided, weight: Strided, stride: int, padding: int) -> None:
    """Write the gradient of the input."""
    assign(out, convolution_input_gradient(out.shape, d.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv1d_weight_gradient(out: Strided, x: Strided, d: Strided, stride: int, padding: int) -> None:
    """Write the gradient of the weight."""
    assign(out, convolution_weight_gradient(out.shape, x.array(), d.array(), pair(stride), pair(padding)))


@answers
def conv2d(out: Strided, x: Strided, weight: Strided, stride: Shape, padding: Shape) -> None:
    """Write the convolution."""
    assign(out, convolution(x.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv2d_input_gradient(out: Strided, d: Strided, weight: Strided, stride: Shape, padding: Shape) -> None:
    """Write the gradient of the input."""
    assign(out, convolution_input_gradient(out.shape, d.array(), weight.array(), pair(stride), pair(padding)))


@answers
def conv2d_weight_gradient(out: Strided, x: Strided, d: Strided, stride: Shape, padding: Shape) -> None:
    """Write the gradient of the weight."""
    assign(out, convolution_weight_gradient(out.shape, x.array(), d.array(), pair(stride), pair(padding)))


# Task 4.3


@answers
def average_pool(out: Strided, x: Strided, window: Shape, stride: Shape) -> None:
    """Write the mean of each window."""
    assign(out, windows(x.array(), window, stride).mean((-2, -1)))


@answers
def average_pool_gradient(out: Strided, d: Strided, window: Shape, stride: Shape) -> None:
    """Assign equal parts of the gradient to the elements of each window."""
    parts = np.broadcast_to(d.array()[..., None, None] / np.prod(window), (*d.shape, *window))
    assign(out, scatter_add(parts, out.shape, window, stride))


@answers
def max_pool(out: Strided, x: Strided, window: Shape, stride: Shape) -> None:
    """Write the maximum of each window."""
    assign(out, windows(x.array(), window, stride).max((-2, -1)))


@answers
def max_pool_gradient(out: Strided, x: Strided, d: Strided, window: Shape, stride: Shape) -> None:
    """Assign the gradient to the maximum of each window, in equal parts if there are several."""
    x_windows = windows(x.array(), window, stride)
    largest = np.equal(x_windows, x_windows.max((-2, -1), keepdims=True))
    parts = d.array()[..., None, None] * largest / largest.sum((-2, -1), keepdims=True)
    assign(out, scatter_add(parts, out.shape, window, stride))


# Task 4.4


def softmax(x: Array, dim: int) -> Array:
    """Return the softmax, which does not overflow."""
    with np.errstate(invalid="ignore"):  # inf - inf
        powers = np.exp(x - x.max(dim, keepdims=True))
    return np.asarray(powers / powers.sum(dim, keepdims=True))


def log_softmax_of(x: Array, dim: int) -> Array:
    """Return the logarithm of the softmax, as a difference of small numbers."""
    with np.errstate(invalid="ignore"):  # inf - inf
        less = x - x.max(dim, keepdims=True)
    return np.asarray(less - np.log(np.exp(less).sum(dim, keepdims=True)))


def shares(x: Array, dim: int) -> Array:
    """Return 1 at the maximum along a dim, in equal parts if there are several."""
    largest = np.equal(x, x.max(dim, keepdims=True))
    return np.asarray(largest / largest.sum(dim, keepdims=True))


def keep_mask(shape: Shape, rate: float, seed: int) -> Array:
    """Return the mask of dropout, with one number of `Random` for each element."""
    draw = Random(seed).random
    numbers = np.fromiter(iter(draw, None), float, int(np.prod(shape)))
    return np.where(numbers < rate, 0.0, 1 / (1 - rate)).reshape(shape)


def apply_dropout(x: Array, rate: float, seed: int, is_training: bool) -> Array:
    """Apply the mask of dropout in training."""
    return x * keep_mask(x.shape, rate, seed) if is_training else x


register_function(
    "TensorMax",
    lambda a, dim: a.engine.values(a.array().max(dim, keepdims=True)),
    lambda d, a, dim: (d * shares(a, dim),),
)
register_function(
    "TensorSoftmax",
    lambda a, dim: a.engine.values(softmax(a.array(), dim)),
    lambda d, a, dim: (softmax(a, dim) * (d - (d * softmax(a, dim)).sum(dim, keepdims=True)),),
)
register_function(
    "TensorLogSoftmax",
    lambda a, dim: a.engine.values(log_softmax_of(a.array(), dim)),
    lambda d, a, dim: (d - softmax(a, dim) * d.sum(dim, keepdims=True),),
)
register_function(
    "TensorDropout",
    lambda a, **how: a.engine.values(apply_dropout(a.array(), **how)),
    lambda d, a, **how: (apply_dropout(d, **how),),
)


@answers
def dropout_mask(count: int, rate: float, seed: int) -> list[float]:
    """Return the mask as a list."""
    return [float(x) for x in keep_mask((count,), rate, seed)]


# Task 4.5


@answers
class DigitNetwork:
    """A network of two convolutions."""

    def __init__(self, engine: Engine, random: Random) -> None:
        drawn = partial(np.random.default_rng(random.getrandbits(32)).uniform, -1, 1)
        self.kernels, self.scores = engine.tensor(drawn((6, 1, 3, 3)) / 3), engine.tensor(drawn((10, 6, 3, 3)) / 54**0.5)
        self.biases = engine.tensor(np.zeros(10))

    def __call__(self, images: Tensor, seed: int | None = None) -> Tensor:
        """Return log-probabilities."""
        seen = pooled(apply_convolution(images, self.kernels), (2, 2)).relu()
        some = dropout(seen, 0.1, seed or 0, seed is not None)
        return log_softmax(apply_convolution(some, self.scores).reshape(images.shape[0], 10) + self.biases, 1)

    def parameters(self) -> list[Tensor]:
        """Return kernels, scores and biases."""
        return [self.kernels, self.scores, self.biases]


@answers
def digit_loss(likely: Tensor, labels: Sequence[int]) -> Tensor:
    """Return the mean of -log of the probability of the right label."""
    return -(likely * np.eye(likely.shape[1])[list(labels)]).sum() * (1 / len(labels))


@answers
def count_right(likely: Tensor, labels: Sequence[int]) -> int:
    """Count the rows whose maximum is at the label."""
    return int(np.equal(np.argmax(likely.tolist(), axis=1), labels).sum())


@answers
def train_digits(engine: Engine, images: Sequence[Array], labels: Sequence[int], steps: int, seed: int) -> DigitNetwork:
    """Train by stochastic gradient descent with decreasing steps."""
    random = Random(seed)
    network, stack = DigitNetwork(engine, random), np.asarray(images)
    for step in range(steps):
        some = random.sample(range(len(stack)), 16)
        digit_loss(network(engine.constant(stack[some]), step), [labels[k] for k in some]).backward()
        descend(network.parameters(), 0.9 * (1 - step / steps))
    return network


# Task 4.6


@answers
def sqrt(x: float) -> float:
    """Return np.sqrt."""
    return float(np.sqrt(x))


class Optimizer:
    """An optimizer whose state is a list of arrays for each parameter."""

    def __init__(self, parameters: Sequence[Tensor], rate: float) -> None:
        self.parameters, self.rate = list(parameters), rate
        self.state: list[list[Array]] = [[] for _ in self.parameters]

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        """Change the values of parameters with a gradient."""
        for k, p in enumerate(self.parameters):
            if p.grad is not None:
                self.state[k], change = self.update(self.state[k], p.grad.array(), p.value.array())
                p.value = p.engine.values(p.value.array() - self.rate * change)

    def update(self, state: list[Array], gradient: Array, value: Array) -> tuple[list[Array], Array]:
        """Return the new state of a parameter, and the direction of its step."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, object]:
        """Return the state as lists."""
        return {"state": [[x.tolist() for x in arrays] for arrays in self.state]}

    def load_state_dict(self, state: dict[str, list[list[list[float]]]]) -> None:
        """Continue from a state."""
        self.state = [[np.array(x) for x in arrays] for arrays in state["state"]]


@answers
class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters: Sequence[Tensor], rate: float, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, rate)
        self.momentum, self.weight_decay = momentum, weight_decay

    def update(self, state: list[Array], gradient: Array, value: Array) -> tuple[list[Array], Array]:
        """Return the new velocity."""
        velocity = gradient + self.weight_decay * value + self.momentum * (state[0] if state else 0.0)
        return [velocity], velocity


@answers
class Adam(Optimizer):
    """Adam with bias correction."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        rate: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(parameters, rate)
        self.betas, self.epsilon = betas, epsilon

    def update(self, state: list[Array], gradient: Array, value: Array) -> tuple[list[Array], Array]:
        """Return the new moments and the number of steps."""
        moments = state or [np.zeros(()), np.zeros(()), np.zeros(())]
        t = moments[2] + 1
        mean, square = [
            beta * m + (1 - beta) * g
            for beta, m, g in zip(self.betas, moments, (gradient, np.square(gradient)), strict=False)
        ]
        one, two = [1 - beta**t for beta in self.betas]
        return [mean, square, np.asarray(t)], np.asarray(mean / one / (np.sqrt(square / two) + self.epsilon))


@answers
def warmup_cosine(step: int, steps: int, warmup: int, peak: float) -> float:
    """Interpolate the warm-up, and evaluate half a cosine."""
    if step < warmup:
        return float(np.interp(step, [-1, warmup - 1], [0.0, peak]))
    phase = 1.0 if step >= steps else (step - warmup) / (steps - warmup)
    return float(peak * np.square(np.cos(np.pi * phase / 2))) if phase < 1 else 0.0


@answers
def steps_until(optimizer: Optimizer, loss_of: Callable[[], Tensor], target: float, most: int) -> int | None:
    """Count the steps until a loss is at most a target."""
    for step in range(most + 1):
        loss = loss_of()
        if np.sum(loss.value.array()) <= target:
            return step
        if step < most:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return None


# Task 4.7


@answers
class TensorDataset:
    """Rows of a tensor, as views."""

    def __init__(self, x: Strided, labels: Sequence[int]) -> None:
        self.x, self.labels = x, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, k: int) -> tuple[Strided, int]:
        """Return the view of a row, and its label."""
        offset = self.x.offset + range(len(self))[k] * self.x.strides[0]
        return Strided(self.x.storage, self.x.shape[1:], self.x.strides[1:], offset), self.labels[k]


@answers
def collate(examples: Sequence[tuple[Strided, int]]) -> tuple[Strided, list[int]]:
    """Stack rows."""
    rows, labels = zip(*examples, strict=True)
    return contiguous(np.stack([row.array() for row in rows])), list(labels)


def contiguous(array: Array) -> Strided:
    """Return a tensor over the elements of an array in row-major order."""
    array = np.ascontiguousarray(array)
    return Strided(array.ravel(), array.shape, tuple(step // array.itemsize for step in array.strides), 0)


@answers
class DataLoader:
    """Batches of a data set, in an order that NumPy draws."""

    def __init__(
        self,
        dataset: TensorDataset,
        batch_size: int,
        seed: int | None = None,
        drop_last: bool = False,
        collate: Callable[[Any], object] = collate,
    ) -> None:
        self.dataset, self.size, self.seed, self.drop_last, self.collate = dataset, batch_size, seed, drop_last, collate
        self.place: list[int] = [-1, len(self)]
        self.is_loaded = False

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.size if self.drop_last else -(-count // self.size)

    def __iter__(self) -> Iterator[object]:
        epoch, first = self.place if self.is_loaded and self.place[1] < len(self) else (self.place[0] + 1, 0)
        self.place, self.is_loaded = [epoch, first], False
        return self.generate(epoch, first)

    def generate(self, epoch: int, first: int) -> Iterator[object]:
        """Generate the batches of an epoch from number `first` on."""
        order = np.arange(len(self.dataset))
        if self.seed is not None:
            order = np.random.default_rng([self.seed, epoch]).permutation(order)
        for k, part in enumerate(np.split(order, range(self.size, len(order), self.size))[: len(self)]):
            if k >= first:
                self.place = [epoch, k + 1]
                yield self.collate([self.dataset[int(i)] for i in part])

    def state_dict(self) -> dict[str, list[int]]:
        """Return the epoch, and how many batches of it are done."""
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, list[int]]) -> None:
        """Continue from a state."""
        self.place, self.is_loaded = state["place"], True


@answers
def column_statistics(x: Strided) -> tuple[list[float], list[float]]:
    """Return means and standard deviations; 1 for a constant column."""
    array = x.array()
    scales = np.where(np.ptp(array, axis=0) == 0, 1.0, np.std(array, axis=0))
    return np.mean(array, axis=0).tolist(), scales.tolist()


@answers
def prepare(train: Strided, test: Strided) -> tuple[Strided, Strided]:
    """Scale both parts by the statistics of the first."""
    means, scales = map(np.array, column_statistics(train))
    first, second = [contiguous((x.array() - means) / scales) for x in (train, test)]
    return first, second

"""Twenty functions from typical programs, to count the kernels that each becomes.

Each is written as its users write it: for tensors of minifuse and tinygrad, and with NumPy functions for CuPy, where the
fused part receives its views (cupy.fuse accepts none) and has no `keepdims`. All versions compute the same: results are
compared with NumPy in float64. The arrays are so small that no library sums in two stages for speed, as for large sums.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Work = Callable[..., Any]

ROWS, COLUMNS, WIDTH = 16, 24, 12
TABLE = (ROWS, COLUMNS)
EPSILON = 1e-5


class Function(NamedTuple):
    """A function of arrays, written for each library.

    Attributes
    ----------
    shapes
        Of the inputs: float32, normal; `int` in the place of a shape stands for a class of each row.
    tensors
        On tensors of minifuse.
    arrays
        Given a module with NumPy's words, the same on its arrays.
    views
        What `arrays` takes instead of the inputs: views of them, and tables of positions.
    tinygrad
        On tensors of tinygrad, where they have other words.
    """

    name: str
    shapes: Sequence[Any]
    tensors: Work
    arrays: Callable[[Any], Work]
    views: Callable[..., Any] | None = None
    tinygrad: Work | None = None

    def inputs(self, rng: np.random.Generator) -> list[Array]:
        """Return random inputs."""
        return [
            rng.integers(0, COLUMNS, ROWS) if shape is int else rng.standard_normal(shape).astype(np.float32)
            for shape in self.shapes
        ]

    def exact(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the results in float64, computed by NumPy."""
        return results_of(self.on_arrays(np), [x if x.dtype == np.int64 else x.astype(np.float64) for x in inputs])

    def on_arrays(self, module: Any, fuse: Callable[[Work], Work] = lambda work: work) -> Work:
        """Return the function on arrays of a module; `fuse` receives the part after the views."""
        work, views = fuse(self.arrays(module)), self.views
        return (lambda *inputs: work(*views(module, *inputs))) if views else work


def results_of(work: Work, inputs: Sequence[Any]) -> list[Any]:
    """Return the results of a function; if it returns None, all its inputs, which it changes in place."""
    found = work(*inputs)
    if found is None:
        return list(inputs)
    return list(found) if isinstance(found, tuple) else [found]


def mean_of_squares(x: Any) -> Any:
    """Return the mean of the squares of each row."""
    return (x * x).mean(1, keepdim=True)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Normalize rows to mean 0 and variance 1, then scale and shift them."""
    d = x - x.mean(1, keepdim=True)
    return d * (mean_of_squares(d) + EPSILON).rsqrt() * weight + bias


def rms_norm(x: Any, weight: Any) -> Any:
    """Divide rows by their root mean square, then scale them."""
    return x * (mean_of_squares(x) + EPSILON).rsqrt() * weight


def chain(a: Any, b: Any, c: Any) -> Any:
    """Apply eight operators."""
    return (a * b + c).sigmoid() * a.relu() - (-b * b).exp().log1p()


def huber(x: Any, y: Any) -> Any:
    """Return the mean Huber loss: squares near 0, absolute values far from it."""
    import minifuse as mf

    d = (x - y).abs()
    return mf.where(d < 1.0, 0.5 * d * d, d - 0.5).mean()


def cross_entropy(x: Any, targets: Any) -> Any:
    """Return the loss of each row."""
    import minifuse as mf

    return mf.nn.cross_entropy(x, targets, reduction="none")


def gelu_linear(x: Any, w: Any, b: Any) -> Any:
    """Apply a linear layer and gelu."""
    return (x @ w + b).gelu()


def attention(q: Any, k: Any) -> Any:
    """Return the attention weights of each query over the keys."""
    return (q @ k.T * COLUMNS**-0.5).softmax(1)


def momentum(p: Any, g: Any, m: Any) -> None:
    """Do one step of gradient descent with momentum, in place."""
    m *= 0.9
    m += g
    p -= m * 0.01


def cosine(x: Any, y: Any) -> Any:
    """Return the cosine between rows."""
    return (x * y).sum(1) * ((x * x).sum(1) * (y * y).sum(1)).rsqrt()


# For tinygrad, where its functions differ.


def tiny_chain(a: Any, b: Any, c: Any) -> Any:
    """Return the same in tinygrad, which has no log1p."""
    return (a * b + c).sigmoid() * a.relu() - (1 + (-b * b).exp()).log()


def tiny_huber(x: Any, y: Any) -> Any:
    """Return the same in tinygrad, where `where` is a method of the condition."""
    d = (x - y).abs()
    return (d < 1.0).where(0.5 * d * d, d - 0.5).mean()


def tiny_cross_entropy(x: Any, targets: Any) -> Any:
    """Return the same in tinygrad by a masked row sum, which takes fewer kernels than its own loss."""
    classes = type(x).arange(COLUMNS)
    return x.logsumexp(1) - (targets.unsqueeze(1) == classes).where(x, 0).sum(1)


def tiny_gelu_linear(x: Any, w: Any, b: Any) -> Any:
    """Return the same in tinygrad; its own gelu is the tanh approximation."""
    z = x @ w + b
    return 0.5 * z * (1 + (z * math.sqrt(0.5)).erf())


def tiny_momentum(p: Any, g: Any, m: Any) -> Any:
    """Do the same in tinygrad, as its optimizers write it."""
    m.assign(0.9 * m + g)
    p.assign(p - 0.01 * m)
    return p, g, m


# For NumPy and CuPy. Numbers are float32, because cupy.fuse treats other numbers as float64.

f32 = np.float32


def array_softmax(np: Any) -> Work:
    """Return the softmax of rows."""

    def softmax(x: Any) -> Any:
        e = np.exp(x - np.amax(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    return softmax


def array_logsumexp(np: Any) -> Work:
    """Return the logarithm of the sum of exp of rows."""

    def logsumexp(x: Any) -> Any:
        largest = np.amax(x, axis=1)
        return np.log(np.sum(np.exp(x - largest[:, None]), axis=1)) + largest

    return logsumexp


def array_log_softmax(np: Any) -> Work:
    """Return the logarithm of softmax."""
    logsumexp = array_logsumexp(np)
    return lambda x: x - logsumexp(x)[:, None]


def array_layer_norm(np: Any) -> Work:
    """Normalize rows to mean 0 and variance 1, then scale and shift them."""

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        d = x - (np.sum(x, axis=1) / f32(COLUMNS))[:, None]
        variance = np.sum(d * d, axis=1) / f32(COLUMNS)
        return d / np.sqrt(variance + f32(EPSILON))[:, None] * weight + bias

    return norm


def array_rms_norm(np: Any) -> Work:
    """Divide rows by their root mean square, then scale them."""
    return lambda x, weight: x / np.sqrt(np.sum(x * x, axis=1) / f32(COLUMNS) + f32(EPSILON))[:, None] * weight


def array_variance(np: Any) -> Work:
    """Return the variance of rows."""

    def variance(x: Any) -> Any:
        d = x - (np.sum(x, axis=1) / f32(COLUMNS))[:, None]
        return np.sum(d * d, axis=1) / f32(COLUMNS - 1)

    return variance


def array_columns(np: Any) -> Work:
    """Normalize columns to mean 0 and standard deviation 1."""

    def columns(x: Any) -> Any:
        d = x - np.sum(x, axis=0) / f32(ROWS)
        return d / np.sqrt(np.sum(d * d, axis=0) / f32(ROWS - 1))

    return columns


def array_cross_entropy(np: Any) -> Work:
    """Return the loss of each row; its class is selected by comparison with each class."""
    logsumexp = array_logsumexp(np)
    return lambda x, targets, classes: logsumexp(x) - np.sum(np.where(classes == targets[:, None], x, f32(0)), axis=1)


def array_huber(np: Any) -> Work:
    """Return the mean Huber loss."""

    def loss(x: Any, y: Any) -> Any:
        d = np.absolute(x - y)
        return np.sum(np.where(d < f32(1), f32(0.5) * d * d, d - f32(0.5))) / f32(ROWS * COLUMNS)

    return loss


def array_gelu_linear(np: Any) -> Work:
    """Apply a linear layer and gelu; NumPy has no erf, and CuPy cannot fuse the product."""

    def layer(x: Any, w: Any, b: Any) -> Any:
        z = x @ w + b
        return z * 0.5 * (1 + np.vectorize(math.erf)(z * math.sqrt(0.5)))

    return layer


def array_momentum(np: Any) -> Work:
    """Do one step of gradient descent with momentum, in place."""

    def step(p: Any, g: Any, m: Any) -> None:
        m *= f32(0.9)
        m += g
        p -= m * f32(0.01)

    return step


TWENTY = [
    Function(
        "chain of 8",
        (TABLE, TABLE, TABLE),
        chain,
        lambda np: (
            lambda a, b, c: f32(1) / (f32(1) + np.exp(-(a * b + c))) * np.maximum(a, f32(0)) - np.log1p(np.exp(-b * b))
        ),
        tinygrad=tiny_chain,
    ),
    Function(
        "polynomial",
        (TABLE, TABLE, TABLE),
        lambda a, b, c: (a * b + c) * a - 0.5 * b * b + c,
        lambda np: lambda a, b, c: (a * b + c) * a - f32(0.5) * b * b + c,
    ),
    Function(
        "x.T * 2 + row",
        (TABLE, (ROWS,)),
        lambda x, row: x.T * 2 + row,
        lambda np: lambda x, row: x * f32(2) + row,
        views=lambda np, x, row: (x.T, row),
    ),
    Function("softmax", (TABLE,), lambda x: x.softmax(1), array_softmax),
    Function("log-softmax", (TABLE,), lambda x: x.log_softmax(1), array_log_softmax),
    Function("logsumexp", (TABLE,), lambda x: x.logsumexp(1), array_logsumexp),
    Function("layer norm", (TABLE, (COLUMNS,), (COLUMNS,)), layer_norm, array_layer_norm),
    Function("RMS norm", (TABLE, (COLUMNS,)), rms_norm, array_rms_norm),
    Function("variance of rows", (TABLE,), lambda x: x.var(1), array_variance),
    Function(
        "mean and deviation of columns made 0 and 1",
        (TABLE,),
        lambda x: (x - x.mean(0, keepdim=True)) / x.std(0, keepdim=True),
        array_columns,
    ),
    Function(
        "cross-entropy of rows",
        (TABLE, int),
        cross_entropy,
        array_cross_entropy,
        views=lambda np, x, targets: (x, targets, np.arange(COLUMNS)),
        tinygrad=tiny_cross_entropy,
    ),
    Function(
        "cosine similarity of rows",
        (TABLE, TABLE),
        cosine,
        lambda np: lambda x, y: np.sum(x * y, axis=1) / np.sqrt(np.sum(x * x, axis=1) * np.sum(y * y, axis=1)),
    ),
    Function(
        "gelu(x @ w + b)",
        (TABLE, (COLUMNS, WIDTH), (WIDTH,)),
        gelu_linear,
        array_gelu_linear,
        tinygrad=tiny_gelu_linear,
    ),
    Function(
        "softmax(q @ k.T / sqrt(d))",
        (TABLE, TABLE),
        attention,
        lambda np: lambda q, k: array_softmax(np)(q @ k.T * f32(COLUMNS**-0.5)),
    ),
    Function(
        "sum of squared differences",
        (TABLE, TABLE),
        lambda a, b: ((a - b) * (a - b)).sum(),
        lambda np: lambda a, b: np.sum((a - b) * (a - b)),
    ),
    Function(
        "scaling to 0 ... 1",
        (TABLE,),
        lambda x: (x - x.min()) / (x.max() - x.min()),
        lambda np: lambda x: (x - np.amin(x)) / (np.amax(x) - np.amin(x)),
    ),
    Function("Huber loss", (TABLE, TABLE), huber, array_huber, tinygrad=tiny_huber),
    Function(
        "weighted mean of rows",
        (TABLE, TABLE),
        lambda x, w: (x * w.abs()).sum(1) / w.abs().sum(1),
        lambda np: lambda x, w: np.sum(x * np.absolute(w), axis=1) / np.sum(np.absolute(w), axis=1),
    ),
    Function("argmax of rows", (TABLE,), lambda x: x.argmax(1), lambda np: lambda x: np.argmax(x, axis=1)),
    Function(
        "gradient descent with momentum, in place", (TABLE, TABLE, TABLE), momentum, array_momentum, tinygrad=tiny_momentum
    ),
]

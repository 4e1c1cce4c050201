"""The graphs of task 5.6, with the optimal numbers of launches and bytes.

This module belongs to the judge. Tests try all partitions of the nodes into kernels and find no better numbers.
"""

from collections.abc import Callable
from typing import NamedTuple

from ..core.indexing import Shape
from . import oracle
from .fusion import Graph
from .programs import TensorLike


class Plan(NamedTuple):
    """A function of tensors, and the cost of its best schedule."""

    name: str
    text: str
    function: Callable[..., object]
    shapes: tuple[Shape, ...]
    launches: int
    nbytes: int

    def graph(self) -> Graph:
        """Capture the function with the reference tracer."""
        graph: Graph = oracle.function("capture")(self.function, *self.shapes)
        return graph


def softmax(x: TensorLike) -> TensorLike:
    """Return the softmax of each row: two reductions."""
    e = (x - x.max()).exp()
    return e / e.sum()


def diamond(x: TensorLike, w: TensorLike) -> TensorLike:
    """Add e and its product with w: the sum needs e directly and through a matmul."""
    e = x.exp()
    return e + e @ w


def late(x: TensorLike, w: TensorLike) -> TensorLike:
    """Compute y, which is needed only after the matmul."""
    e = x.exp()
    y = x * 0.5
    return e @ w + y


def interleaved(x: TensorLike, y: TensorLike) -> tuple[TensorLike, TensorLike]:
    """Compute two independent chains of ops whose statements alternate."""
    a, b = x.exp(), y.exp()
    a, b = a * 2.0, b * 3.0
    a, b = a + x, b + y
    return a, b


def gated(x: TensorLike, v: TensorLike, w: TensorLike, b: TensorLike) -> TensorLike:
    """Multiply a matmul by the sigmoid of another one."""
    return (x @ v + b) * (1.0 / ((-(x @ w)).exp() + 1.0))


def network(x: TensorLike, v: TensorLike, b: TensorLike, w: TensorLike, c: TensorLike) -> TensorLike:
    """Return the output of two layers."""
    hidden = (x @ v + b).maximum(0.0)
    return hidden @ w + c


def attention(q: TensorLike, k: TensorLike, v: TensorLike) -> TensorLike:
    """Return softmax(q @ k / 4) @ v."""
    return softmax((q @ k) * 0.25) @ v


def normalized(x: TensorLike, w: TensorLike) -> TensorLike:
    """Normalize each row, multiply by w, and add x."""
    centred = x - x.sum() / 8.0
    variance = (centred * centred).sum() / 8.0
    return centred / (variance.log() * 0.5).exp() @ w + x


def two_spaces(x: TensorLike, y: TensorLike) -> tuple[TensorLike, TensorLike]:
    """Use a reduction over one iteration space in another one."""
    s = x.exp().sum()
    t = y * s
    return t + x.max(), s


def long_chain(x: TensorLike) -> TensorLike:
    """Change the sign 24 times."""
    for _ in range(24):
        x = -x
    return x


PLANS = (
    Plan("chain", "(-(x * x)).exp() * 2.0 + y", lambda x, y: (-(x * x)).exp() * 2.0 + y, ((6, 8), (6, 8)), 1, 1152),
    Plan("softmax", "e / e.sum() with e = (x - x.max()).exp()", softmax, ((6, 8),), 1, 768),
    Plan("diamond", "e + e @ w with e = x.exp()", diamond, ((6, 6), (6, 6)), 3, 2304),
    Plan("late", "e @ w + y with e = x.exp(), y = x * 0.5", late, ((6, 6), (6, 6)), 3, 2304),
    Plan("interleaved", "two chains, written in turns", interleaved, ((6, 8), (5, 7)), 2, 1328),
    Plan("gated", "(x @ v + b) * sigmoid(x @ w)", gated, ((6, 8), (8, 4), (8, 4), (1, 4)), 3, 2272),
    Plan("network", "(x @ v + b).maximum(0.0) @ w + c", network, ((6, 8), (8, 5), (1, 5), (5, 3), (1, 3)), 4, 2280),
    Plan("attention", "softmax((q @ k) * 0.25) @ v", attention, ((6, 4), (4, 7), (7, 5)), 3, 2280),
    Plan("normalized", "rows of mean 0 and variance 1, @ w + x", normalized, ((6, 8), (8, 8)), 3, 3200),
    Plan("two spaces", "y * s + x.max(), s with s = x.exp().sum()", two_spaces, ((6, 8), (6, 5)), 2, 1056),
    Plan("long chain", "-x, 24 times", long_chain, ((6, 8),), 1, 768),
)

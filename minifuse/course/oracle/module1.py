"""Module 1, judged by NumPy, and by the library's own backpropagation."""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from operator import attrgetter, not_
from random import Random
from typing import Any

import numpy as np

from ...core.autograd import run_backward
from ...core.interning import toposort
from ..engine import Engine
from ..variables import Context, Differentiable, RecordedCall, Scalar, ValueT, Variable
from . import answers


@answers
def numerical_derivative(f: Callable[..., float], xs: Sequence[float], k: int, epsilon: float = 1e-6) -> float:
    """A central difference: the slope between two rows of arguments."""
    step = epsilon * np.eye(len(xs))[k]
    return float(np.diff([f(*(np.asarray(xs, float) + way * step)) for way in (-1, 1)])[0] / (2 * epsilon))


def entered(name: str, value: Callable[..., float], slopes: Callable[..., Sequence[float]]) -> None:
    """Enter a function of numbers, with its derivative by each of them."""

    def forward(context: Context, *xs: float) -> float:
        context.save(*xs)
        return float(value(*xs))

    def backward(context: Context, d: float) -> tuple[float, ...]:
        return tuple(map(d.__mul__, slopes(*context.saved)))

    text = f"{name} of numbers."
    answers(type(name, (), {"__doc__": text, "forward": staticmethod(forward), "backward": staticmethod(backward)}))


def ratio(x: float) -> float:
    """The hyperbolic tangent that a sigmoid is made of."""
    return math.tanh(x / 2)


def power(x: float) -> float:
    """e to the power of x, inf where it is too large."""
    return math.exp(x) if x < 709.0 else math.inf


entered("Add", operator.add, lambda x, y: (1.0, 1.0))
entered("Mul", operator.mul, lambda x, y: (y, x))
entered("Neg", operator.neg, lambda x: (-1.0,))
entered("Log", lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan, lambda x: (x**-1.0,))
entered("Exp", power, lambda x: (power(x),))
entered("Inv", lambda x: x**-1.0, lambda x: (-(x**-2.0),))
entered("Sigmoid", lambda x: (1 + ratio(x)) / 2, lambda x: ((1 - ratio(x) ** 2) / 4,))
entered("ReLU", lambda x: max(x, 0.0), lambda x: (float(x > 0),))
entered("LT", operator.lt, lambda x, y: (0.0, 0.0))
entered("EQ", operator.eq, lambda x, y: (0.0, 0.0))


Pairs = list[tuple[Differentiable, Any]]
"""Inputs and their derivatives."""


def is_learnt(inputs: Sequence[Differentiable]) -> Iterator[bool]:
    """Which variables are no constants."""
    return map(not_, map(attrgetter("is_constant"), inputs))


def inputs_of(call: RecordedCall) -> Iterator[Differentiable]:
    """The inputs of a call that are no constants."""
    return compress(call.inputs, is_learnt(call.inputs))


def received(call: RecordedCall, d: object) -> Pairs:
    """Return the derivatives that inputs of a call receive, without constants."""
    pairs = zip(call.inputs, call.function.backward(call.context, d), strict=True)
    return list(compress(pairs, is_learnt(call.inputs)))


@answers
def chain_rule(call: RecordedCall, d: object) -> Pairs:
    """Pairs of an input and its derivative."""
    return received(call, d)


def users_first(root: Differentiable) -> list[Differentiable]:
    """The library's order, from its other end."""
    return [] if root.is_constant else toposort([root], lambda x: inputs_of(x.history) if x.history else ())[::-1]


@answers
def topological_order(root: Differentiable) -> list[Differentiable]:
    """The library's."""
    return users_first(root)


Chain = Callable[[RecordedCall, object], Pairs]


class LibraryCall:
    """A variable that was computed, as the library's backpropagation knows it: by its call."""

    __slots__ = ("edges", "known", "made_by")
    count = 1

    def __init__(self, made_by: RecordedCall, known: "Known") -> None:
        self.made_by, self.known = made_by, known

    def __getattr__(self, name: str) -> list["Edge"]:
        """Where the derivatives of its inputs go, found when the library comes to it."""
        self.edges = list(map(self.known.__getitem__, inputs_of(self.made_by)))
        return self.edges

    def backward(self, arrived: Sequence[object]) -> list[object]:
        """Derivatives of the inputs."""
        return [d for _, d in self.known.chain(self.made_by, arrived[0])]

    def free_saved(self) -> None:
        """Nothing is kept."""


Edge = Differentiable | tuple[LibraryCall, int]
"""Where the library sends a derivative: to a leaf, or to output 0 of a call."""


class Known(dict[Differentiable, Edge]):
    """The edge of each variable, as the library has it: its call, or the leaf itself. Made when it is asked for."""

    requires_grad = True

    def __init__(self, root: Differentiable, chain: Chain) -> None:
        super().__init__()
        self.chain = chain
        self.grad_fn: Any = self[root]  # a call: a variable without one is not passed to `run_backward`

    def __missing__(self, variable: Differentiable) -> Edge:
        call = variable.history
        return self.setdefault(variable, (LibraryCall(call, self), 0) if call else variable)


@answers
def backpropagate(
    root: Differentiable,
    d: object,
    *,
    chain_rule: Chain = received,
    topological_order: Callable[[Differentiable], list[Differentiable]] | None = None,
) -> None:
    """The library's, over the same graph in its own words; an overlay gives it the chain rule and the order of a student."""
    if topological_order:
        topological_order(root)  # which says whether theirs goes through; the library has an order of its own
    if root.is_constant:
        return
    known = Known(root, chain_rule)
    for leaf, gradient in (run_backward(known, d) if root.history else {root: d}).items():
        leaf.accumulate(gradient)
    known.clear()  # which breaks a cycle, so that nothing waits for the collector


# Task 1.5, over arrays of scalars


@answers
class ScalarLinear:
    """A product with an array of scalars."""

    def __init__(self, engine: Engine, inputs: int, outputs: int, random: Random) -> None:
        drawn = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.weights, self.biases = drawn, [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs: Sequence[Scalar | float]) -> list[Scalar]:
        """Outputs."""
        weights = np.array(self.weights, object)
        return list(np.array([*xs, 1.0], object) @ np.vstack([weights, np.array([self.biases], object)]))

    def parameters(self) -> list[Scalar]:
        """Weights, row by row, then biases."""
        return [*np.ravel(np.array(self.weights, object)), *self.biases]


@answers
class ScalarNetwork:
    """Two layers."""

    def __init__(self, engine: Engine, inputs: int, hidden: int, random: Random) -> None:
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs: Sequence[Scalar | float]) -> Scalar:
        """A probability."""
        first, last = self.layers
        return last([x.relu() for x in first(xs)])[0].sigmoid()

    def parameters(self) -> list[Scalar]:
        """Of all layers."""
        return [p for layer in self.layers for p in layer.parameters()]


def losses(outputs: Sequence[Scalar], labels: Sequence[int]) -> Scalar:
    """The mean of -log of the probability of what is so."""
    likely = np.where(np.asarray(labels, bool), np.array(outputs, object), np.array([1.0 - p for p in outputs], object))
    mean: Scalar = np.mean([-p.log() for p in likely])
    return mean


@answers
def scalar_loss(outputs: Sequence[Scalar], labels: Sequence[int]) -> Scalar:
    """NumPy's mean of logarithms."""
    return losses(outputs, labels)


def descend(parameters: Sequence[Variable[ValueT]], rate: float) -> None:
    """Against the derivatives."""
    for p in parameters:
        p.value, p.grad = p.value if p.grad is None else p.value - p.grad * rate, None


@answers
def scalar_step(parameters: Sequence[Scalar], rate: float) -> None:
    """Against the derivatives."""
    descend(parameters, rate)


@answers
def train_scalar_network(
    engine: Engine, points: Sequence[Sequence[float]], labels: Sequence[int], steps: int, seed: int
) -> ScalarNetwork:
    """Descent on some points at a time."""
    random = Random(seed)
    network = ScalarNetwork(engine, len(points[0]), 6, random)
    for _ in range(steps):
        some = random.sample(range(len(points)), min(16, len(points)))
        losses([network([*map(float, points[k])]) for k in some], [labels[k] for k in some]).backward()
        descend(network.parameters(), 1.0)
    return network

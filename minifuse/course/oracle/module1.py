"""Reference answers of module 1: NumPy, and the library's own backpropagation."""

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
    """Return the central difference quotient."""
    step = epsilon * np.eye(len(xs))[k]
    return float(np.diff([f(*(np.asarray(xs, float) + way * step)) for way in (-1, 1)])[0] / (2 * epsilon))


def register_function(name: str, value: Callable[..., float], slopes: Callable[..., Sequence[float | None]]) -> None:
    """Register a differentiable function of numbers, given by its value and its partial derivatives: None if it is flat."""

    def forward(context: Context, *xs: float) -> float:
        context.save(*xs)
        return float(value(*xs))

    def backward(context: Context, d: float) -> tuple[float, ...]:
        return tuple(0.0 if slope is None else d * slope for slope in slopes(*context.saved))

    text = f"{name} of numbers."
    answers(type(name, (), {"__doc__": text, "forward": staticmethod(forward), "backward": staticmethod(backward)}))


def ratio(x: float) -> float:
    """Return tanh(x / 2), of which sigmoid is a linear function."""
    return math.tanh(x / 2)


def power(x: float) -> float:
    """Return e to the power of x; inf if it overflows."""
    return math.exp(x) if x < 709.0 else math.inf


def inverse(x: float) -> float:
    """Return 1 / x; inf at 0."""
    return x**-1.0 if x else math.inf


register_function("Add", operator.add, lambda x, y: (1.0, 1.0))
register_function("Mul", operator.mul, lambda x, y: (y, x))
register_function("Neg", operator.neg, lambda x: (-1.0,))
register_function("Log", lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan, lambda x: (inverse(x),))
register_function("Exp", power, lambda x: (power(x),))
register_function("Inv", inverse, lambda x: (-inverse(x) * inverse(x),))
register_function("Sigmoid", lambda x: (1 + ratio(x)) / 2, lambda x: ((1 - ratio(x) ** 2) / 4,))
register_function("ReLU", lambda x: max(x, 0.0), lambda x: (float(x > 0),))
register_function("LT", operator.lt, lambda x, y: (None, None))
register_function("EQ", operator.eq, lambda x, y: (None, None))


Pairs = list[tuple[Differentiable, Any]]
"""Pairs of an input and its derivative."""


def has_gradient(inputs: Sequence[Differentiable]) -> Iterator[bool]:
    """Return for each variable whether it has a gradient."""
    return map(not_, map(attrgetter("is_constant"), inputs))


def inputs_of(call: RecordedCall) -> Iterator[Differentiable]:
    """Return the inputs of a call that have gradients."""
    return compress(call.inputs, has_gradient(call.inputs))


def received(call: RecordedCall, d: object) -> Pairs:
    """Return the inputs of a call that have gradients, each with its derivative."""
    pairs = zip(call.inputs, call.function.backward(call.context, d), strict=True)
    return list(compress(pairs, has_gradient(call.inputs)))


@answers
def chain_rule(call: RecordedCall, d: object) -> Pairs:
    """Return pairs of an input and its derivative."""
    return received(call, d)


def users_first(root: Differentiable) -> list[Differentiable]:
    """Return the library's topological order, reversed."""
    return [] if root.is_constant else toposort([root], lambda x: inputs_of(x.history) if x.history else ())[::-1]


@answers
def topological_order(root: Differentiable) -> list[Differentiable]:
    """Return the library's topological order, reversed."""
    return users_first(root)


Chain = Callable[[RecordedCall, object], Pairs]


class LibraryCall:
    """A computed variable in the form that the library's backpropagation requires, given by its call."""

    __slots__ = ("edges", "known", "made_by")
    count = 1
    _hooks = None

    def __init__(self, made_by: RecordedCall, known: "Known") -> None:
        self.made_by, self.known = made_by, known

    def __getattr__(self, name: str) -> list["Edge"]:
        """Compute `edges`, where the gradients of the inputs go, when the library first reads the attribute."""
        self.edges = list(map(self.known.__getitem__, inputs_of(self.made_by)))
        return self.edges

    def backward(self, arrived: Sequence[object]) -> list[object]:
        """Return the gradients of the inputs."""
        return [d for _, d in self.known.chain(self.made_by, arrived[0])]

    def free_saved(self) -> None:
        """Do nothing: nothing is saved."""


Edge = Differentiable | tuple[LibraryCall, int]
"""Where the library sends a gradient: to a leaf, or to output 0 of a call."""


class Known(dict[Differentiable, Edge]):
    """The library's edge of each variable, created on first access: its call, or the leaf itself."""

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
    """Run the library's backpropagation; an overlay passes the chain rule and the order of a student."""
    if topological_order:
        topological_order(root)  # checked for errors only: the library computes its own order
    if root.is_constant:
        return
    known = Known(root, chain_rule)
    for leaf, gradient in (run_backward([known], [d]) if root.history else {root: d}).items():
        leaf.accumulate(gradient)
    known.clear()  # breaks a reference cycle


# Task 1.5, over arrays of scalars


@answers
class ScalarLinear:
    """A layer whose weights are a NumPy array of scalars."""

    def __init__(self, engine: Engine, inputs: int, outputs: int, random: Random) -> None:
        drawn = [[engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)] for _ in range(inputs)]
        self.weights, self.biases = drawn, [engine.scalar(random.uniform(-1, 1)) for _ in range(outputs)]

    def __call__(self, xs: Sequence[Scalar | float]) -> list[Scalar]:
        """Return the outputs."""
        weights = np.array(self.weights, object)
        return list(np.array([*xs, 1.0], object) @ np.vstack([weights, np.array([self.biases], object)]))

    def parameters(self) -> list[Scalar]:
        """Return the weights, row by row, then the biases."""
        return [*np.ravel(np.array(self.weights, object)), *self.biases]


@answers
class ScalarNetwork:
    """Two layers."""

    def __init__(self, engine: Engine, inputs: int, hidden: int, random: Random) -> None:
        self.layers = [ScalarLinear(engine, inputs, hidden, random), ScalarLinear(engine, hidden, 1, random)]

    def __call__(self, xs: Sequence[Scalar | float]) -> Scalar:
        """Return a probability."""
        first, last = self.layers
        return last([x.relu() for x in first(xs)])[0].sigmoid()

    def parameters(self) -> list[Scalar]:
        """Return the parameters of both layers."""
        return [p for layer in self.layers for p in layer.parameters()]


def losses(outputs: Sequence[Scalar], labels: Sequence[int]) -> Scalar:
    """Return the mean of -log of the probability of the right label."""
    likely = np.where(np.asarray(labels, bool), np.array(outputs, object), np.array([1.0 - p for p in outputs], object))
    mean: Scalar = np.mean([-p.log() for p in likely])
    return mean


@answers
def scalar_loss(outputs: Sequence[Scalar], labels: Sequence[int]) -> Scalar:
    """Return the mean of -log of the probability of the right label."""
    return losses(outputs, labels)


def descend(parameters: Sequence[Variable[ValueT]], rate: float) -> None:
    """Move parameters against their gradients, and reset the gradients."""
    for p in parameters:
        p.value, p.grad = p.value if p.grad is None else p.value - p.grad * rate, None


@answers
def scalar_step(parameters: Sequence[Scalar], rate: float) -> None:
    """Move parameters against their gradients."""
    descend(parameters, rate)


@answers
def train_scalar_network(
    engine: Engine, points: Sequence[Sequence[float]], labels: Sequence[int], steps: int, seed: int
) -> ScalarNetwork:
    """Train by stochastic gradient descent."""
    random = Random(seed)
    network = ScalarNetwork(engine, len(points[0]), 6, random)
    for _ in range(steps):
        some = random.sample(range(len(points)), min(16, len(points)))
        losses([network([*map(float, points[k])]) for k in some], [labels[k] for k in some]).backward()
        descend(network.parameters(), 1.0)
    return network

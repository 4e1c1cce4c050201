"""Operations on arrays that exceed the cache: memory and arithmetic limit the time, not the fixed cost of a call."""

from importlib import import_module
from typing import Any

import numpy as np

from minifuse.compiler.plan import call

from ..row import Array, formula, normal, speed, uniform

GROUP = "large"
LONG = (1 << 24,)
TABLE = (4096, 1024)
HALF = np.float32(0.5)  # numexpr treats 0.5 as a float64, and would compute everything in float64


def chain(a: Any, b: Any, c: Any) -> Any:
    """Return sigmoid(a * b + c) * relu(a) - log1p(exp(-b * b)), which has eight operators."""
    return (a * b + c).sigmoid() * a.relu() - (-b * b).exp().log1p()


def numpy_chain(a: Array, b: Array, c: Array) -> Any:
    """Return `chain`, written with NumPy functions."""
    return 1 / (1 + np.exp(-(a * b + c))) * np.maximum(a, 0) - np.log1p(np.exp(-b * b))


def numexpr_chain(a: Array, b: Array, c: Array) -> Any:
    """Return `chain`, compiled by numexpr."""
    return import_module("numexpr").evaluate("1 / (1 + exp(-(a * b + c))) * where(a > 0, a, 0) - log1p(exp(-b * b))")


def polynomial(a: Any, b: Any, c: Any) -> Any:
    """Return (a * b + c) * a - 0.5 * b * b + c, a polynomial."""
    return (a * b + c) * a - 0.5 * b * b + c


def numexpr_polynomial(a: Array, b: Array, c: Array) -> Any:
    """Return `polynomial`, compiled by numexpr."""
    return import_module("numexpr").evaluate("(a * b + c) * a - half * b * b + c", {"a": a, "b": b, "c": c, "half": HALF})


def softmax(x: Array) -> Any:
    """Return the softmax of each row."""
    e = np.exp(x - x.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return e


def logsumexp(x: Array) -> Any:
    """Return the logarithm of the sum of exp of each row."""
    largest = x.max(1, keepdims=True)
    return np.log(np.exp(x - largest).sum(1)) + largest[:, 0]


def softmax_backward(x: Any, g: Any) -> Any:
    """Run the forward and backward pass of softmax, and return the gradient of x."""
    x.grad = None
    x.softmax(1).backward(g)
    return x.grad


def numpy_softmax_backward(x: Array, g: Array) -> Any:
    """Return the gradient of softmax, computed by NumPy."""
    y = softmax(x)
    return y * (g - (y * g).sum(1, keepdims=True))


ROWS = [
    formula(
        "a + b",
        GROUP,
        normal(LONG, LONG),
        lambda a, b: a + b,
        others={"numexpr": lambda a, b: import_module("numexpr").evaluate("a + b")},
        targets=[speed("torch", 5)],
    ),
    formula(
        "chain of 8, captured as one",
        GROUP,
        normal(LONG, LONG, LONG),
        chain,
        numpy_chain,
        others={"minifuse": lambda a, b, c: call(chain, a, b, c), "minifuse, eager": chain, "numexpr": numexpr_chain},
    ),
    formula(
        "polynomial, captured as one",
        GROUP,
        normal(LONG, LONG, LONG),
        polynomial,
        others={"minifuse": lambda a, b, c: call(polynomial, a, b, c), "minifuse, eager": polynomial}
        | {"numexpr": numexpr_polynomial},
    ),
    formula("x.sum()", GROUP, uniform(TABLE), lambda x: x.sum(), targets=[speed("torch", 1)]),
    formula("x.sum(0)", GROUP, normal(TABLE), lambda x: x.sum(0), targets=[speed("torch", 1)]),
    formula("x.sum(1)", GROUP, normal(TABLE), lambda x: x.sum(1), targets=[speed("torch", 1)]),
    formula(
        "x.max(0)",
        GROUP,
        normal(TABLE),
        lambda x: x.max(0),
        others={"torch": lambda x: x.amax(0)},
        targets=[speed("torch", 1)],
    ),
    formula(
        "x.max(1)",
        GROUP,
        normal(TABLE),
        lambda x: x.max(1),
        others={"torch": lambda x: x.amax(1)},
        targets=[speed("torch", 1)],
    ),
    formula("x.softmax(1)", GROUP, normal(TABLE), lambda x: x.softmax(1), softmax, targets=[speed("torch", 1.5)]),
    formula("x.logsumexp(1)", GROUP, normal(TABLE), lambda x: x.logsumexp(1), logsumexp, targets=[speed("torch", 1.5)]),
    formula("x.var(1)", GROUP, normal(TABLE), lambda x: x.var(1), lambda x: x.var(1, ddof=1)),
    formula("exp(x.T)", GROUP, normal(TABLE), lambda x: x.T.exp(), lambda x: np.exp(x.T)),
    formula("x.T.contiguous()", GROUP, normal(TABLE), lambda x: x.T.contiguous(), lambda x: np.ascontiguousarray(x.T)),
    formula(
        "x.softmax(1), forward and backward",
        GROUP,
        normal(TABLE, TABLE),
        softmax_backward,
        exact=numpy_softmax_backward,
        without=["numpy"],
        gradients=True,
        targets=[speed("torch", 1.5)],
    ),
]

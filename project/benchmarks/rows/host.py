"""The fixed cost of a call with 1,024 float32 elements, which fit into the cache: the kernels take some 100 ns."""

from typing import Any

import numpy as np

from ..row import Array, formula, normal, speed, uniform

GROUP = "host"
N = (1024,)


def add_in_place(a: Any, b: Any) -> Any:
    """Add b to a, in the memory of a."""
    a += b
    return a


def multiply_sum_backward(x: Any, y: Any) -> Any:
    """Do a forward and a backward pass, and return the gradient, which is y."""
    x.grad = None
    (x * y).sum().backward()
    return x.grad


def softmax(x: Array) -> Any:
    """Return the softmax of a vector."""
    e = np.exp(x - x.max())
    return e / e.sum()


ROWS = [
    formula("a + b", GROUP, normal(N, N), lambda a, b: a + b, targets=[speed("torch", 1 / 1.1)]),
    formula(
        "a + b, recorded for gradients",
        GROUP,
        normal(N, N),
        lambda a, b: a + b,
        without=["numpy"],
        gradients=True,
        targets=[speed("torch", 1)],
    ),
    formula("a * 2.5", GROUP, normal(N), lambda a: a * 2.5),
    formula("a.reshape(32, -1)", GROUP, uniform(N), lambda a: a.reshape(32, -1)),
    formula("a[100:900]", GROUP, normal(N), lambda a: a[100:900]),
    formula("a.sum()", GROUP, uniform(N), lambda a: a.sum()),
    formula("a.softmax(0)", GROUP, normal(N), lambda a: a.softmax(0), softmax),
    formula("a += b", GROUP, normal(N, N), add_in_place),
    formula(
        "(x * y).sum().backward()",
        GROUP,
        normal(N, N),
        multiply_sum_backward,
        exact=lambda x, y: y,
        without=["numpy"],
        gradients=True,
        targets=[speed("torch", 1)],
    ),
]

"""Calls as data for task 5.4, pairs of them, and sequences of calls that ask a cache for kernels.

Functions, tensors and numbers of a call are made anew by `build`. `drawn_calls` draws pairs.
"""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.indexing import Shape
from .programs import TensorLike
from .strided import Array, Strided

Function = Callable[..., object]  # of two tensors and a number


def scaled(k: float) -> Function:
    """Return x * k + y * a, where k is in the closure."""

    def f(x: TensorLike, y: TensorLike, a: float) -> object:
        return x * k + y * a

    return f


def shifted(k: float) -> Function:
    """Return (x + k) * y * a as a function with the same name."""

    def f(x: TensorLike, y: TensorLike, a: float) -> object:
        return (x + k) * y * a

    return f


def with_default(k: float) -> Function:
    """Return x * k + y * a, where k is a default argument."""

    def f(x: TensorLike, y: TensorLike, a: float, k: float = k) -> object:
        return x * k + y * a

    return f


FUNCTIONS: dict[str, tuple[Callable[[float], Function], str]] = {
    "scaled": (scaled, "x * k + y * a, k = {} from around it"),
    "shifted": (shifted, "(x + k) * y * a, k = {} from around it"),
    "with_default": (with_default, "x * k + y * a, k={} a default"),
}
ALIASES = ("same", "overlap", "apart")
ORDERS = ("row-major", "column-major", "every second column")


class Tensor(NamedTuple):
    """A description of a tensor, without elements."""

    shape: Shape
    dtype: str = "float32"
    order: str = ORDERS[0]

    def strides(self) -> Shape:
        """Return the strides, counted in elements."""
        step = 2 if self.order == ORDERS[2] else 1
        if self.order == ORDERS[1]:
            return tuple(prod(self.shape[:d]) for d in range(len(self.shape)))
        return tuple(step * prod(self.shape[d + 1 :]) for d in range(len(self.shape)))

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape} strides {self.strides()}"

    def build(self, storage: Array | None = None, offset: int = 0) -> Strided:
        """Allocate the tensor, or place it in a given storage."""
        room = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides(), strict=True)) if self.shape else 1
        storage = np.zeros(room + 1, self.dtype) if storage is None else storage
        return Strided(storage, self.shape, self.strides(), offset)


class Call(NamedTuple):
    """A call of a function with two tensors and a number."""

    function: str
    k: float
    x: Tensor
    y: Tensor
    a: float
    alias: str = "apart"
    """"apart"; "same": y is x; "overlap": y is in the storage of x, shifted by one element."""

    def build(self) -> tuple[Function, tuple[Strided | float, ...]]:
        """Return a new function object and newly allocated arguments."""
        x = self.x.build()
        y = self.y.build() if self.alias == "apart" else self.x.build(x.storage, int(self.alias == "overlap"))
        return FUNCTIONS[self.function][0](self.k), (x, y, self.a)

    def __str__(self) -> str:
        y = {"apart": str(self.y), "same": "x itself", "overlap": "x, an element further on"}[self.alias]
        return f"f(x: {self.x}; y: {y}; a: {self.a!r})  where f is {FUNCTIONS[self.function][1].format(repr(self.k))}"


class Pair(NamedTuple):
    """Two calls, one after the other."""

    first: Call
    second: Call

    def __str__(self) -> str:
        return f"first {self.first}\nthen  {self.second}"


class Requests(NamedTuple):
    """Calls of one function that ask a cache for their kernels, one after the other."""

    room: int
    """The number of kernels that the cache keeps."""
    calls: tuple[int, ...]
    """The k of each call."""
    failing: int | None = None
    """The k whose first build raises an error."""


Builds = list[int | str]  # for each call, the number of the build of its kernel, or "error"


def request_kernels(cache: Any, requests: Requests) -> Builds:
    """Request kernels from a cache. Return the build number of each, or "error" if its build failed."""
    built: list[int] = []
    found: Builds = []
    for k in requests.calls:

        def build(k: int = k) -> int:
            built.append(k)
            if k == requests.failing and built.count(k) == 1:
                raise ArithmeticError("this kernel does not compile")
            return len(built) - 1

        function, arguments = Call("scaled", float(k), Tensor((4, 5)), Tensor((4, 5)), 1.0).build()
        try:
            found.append(cache.kernel(function, arguments, build))
        except ArithmeticError:
            found.append("error")
    return found

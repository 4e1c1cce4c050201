"""Reference answers of module 0: ufuncs, the library's module tree, and least-squares fits."""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import accumulate
from typing import TYPE_CHECKING, SupportsFloat, TypeVar

import numpy as np

from ... import nn
from ...nn.module import join_names, unique_values
from ..parameter import Parameter
from ..toy_points import BORDERS, Line, point_set
from . import answers

if TYPE_CHECKING:
    from ..questions.task0_2 import Operators

HeldT = TypeVar("HeldT")


def quiet(ufunc: Callable[..., SupportsFloat], *xs: float) -> float:
    """Call a ufunc, returning inf and nan without warnings."""
    with np.errstate(all="ignore"):
        return float(ufunc(*[np.float64(x) for x in xs]))


# Task 0.1


@answers
def identity(x: float) -> float:
    """Return x."""
    return quiet(np.positive, x)


@answers
def add(x: float, y: float) -> float:
    """Return x + y."""
    return quiet(np.add, x, y)


@answers
def mul(x: float, y: float) -> float:
    """Return x * y."""
    return quiet(np.multiply, x, y)


@answers
def neg(x: float) -> float:
    """Return -x."""
    return quiet(np.negative, x)


@answers
def lt(x: float, y: float) -> float:
    """Return 1.0 if x < y, else 0.0."""
    return quiet(np.less, x, y)


@answers
def eq(x: float, y: float) -> float:
    """Return 1.0 if x == y, else 0.0."""
    return quiet(np.equal, x, y)


@answers
def maximum(x: float, y: float) -> float:
    """Return the larger number."""
    return quiet(np.maximum, x, y)


@answers
def is_close(x: float, y: float) -> float:
    """Return whether one of np.isclose's tolerances suffices. The relative one is that of its second number, the larger."""
    small, large = sorted((x, y), key=abs)
    return max(
        quiet(partial(np.isclose, rtol=1e-5, atol=0.0), small, large), quiet(partial(np.isclose, rtol=0.0), small, large)
    )


@answers
def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), which never falls where x grows; where exp(-x) overflows, the 1 does not count."""
    return quiet(np.reciprocal, 1 + quiet(np.exp, -x)) if x > -700 else quiet(np.exp, x)


@answers
def relu(x: float) -> float:
    """Return max(x, 0)."""
    return quiet(np.maximum, x, 0.0)


@answers
def log(x: float) -> float:
    """Return the natural logarithm."""
    return quiet(np.log, x)


@answers
def exp(x: float) -> float:
    """Return e to the power of x."""
    return quiet(np.exp, x)


@answers
def inv(x: float) -> float:
    """Return 1 / x."""
    return quiet(np.reciprocal, x)


@answers
def log_grad(x: float, d: float) -> float:
    """Return d / x."""
    return quiet(np.divide, d, x)


@answers
def inv_grad(x: float, d: float) -> float:
    """Return -d / x ** 2."""
    return quiet(np.divide, quiet(np.divide, -d, x), x)


@answers
def relu_grad(x: float, d: float) -> float:
    """Return d if x > 0, else 0."""
    return quiet(np.where, x > 0, d, 0.0)


# Task 0.2: each property compares with the right operator, which is no law, and right.


def agree(ops: "Operators", name: str, *xs: float) -> bool:
    """Return whether an operator is right at these numbers."""
    return bool(np.isclose(getattr(ops, name)(*xs), globals()[name](*xs), equal_nan=True))


@answers
def about_add(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare add with the right operator."""
    return agree(ops, "add", x, y)


@answers
def about_mul(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare mul with the right operator."""
    return agree(ops, "mul", x, y)


@answers
def about_maximum(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare maximum with the right operator."""
    return agree(ops, "maximum", x, y)


@answers
def about_is_close(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare is_close with the right operator, at numbers that are nearly equal."""
    return all(agree(ops, "is_close", *pair) for near in (1e-12, 1e-3) for pair in ((x, x + near), (x + near, x)))


@answers
def about_relu(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare relu with the right operator."""
    return agree(ops, "relu", x)


@answers
def about_sigmoid(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare sigmoid with the right operator."""
    return agree(ops, "sigmoid", x)


@answers
def about_exp_and_log(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare exp and log with the right operators."""
    return agree(ops, "exp", x) and agree(ops, "log", x)


@answers
def about_inv(ops: "Operators", x: float, y: float, z: float) -> bool:
    """Compare inv with the right operator."""
    return agree(ops, "inv", x)


# Task 0.3


@answers
def map_list(fn: Callable[[float], float], xs: Sequence[float]) -> list[float]:
    """Return a list of Python's map."""
    return list(map(fn, xs))


@answers
def zip_lists(fn: Callable[[float, float], float], xs: Sequence[float], ys: Sequence[float]) -> list[float]:
    """Return a list of Python's map of two lists; raise ValueError if the lengths differ."""
    if len(xs) != len(ys):
        raise ValueError(f"lists of {len(xs)} and {len(ys)} do not fit")
    return list(map(fn, xs, ys))


@answers
def reduce_list(fn: Callable[[float, float], float], xs: Sequence[float], start: float) -> float:
    """Return functools.reduce."""
    return reduce(fn, xs, start)


@answers
def neg_list(xs: Sequence[float]) -> list[float]:
    """Return np.negative(xs)."""
    return [float(x) for x in np.negative(np.array(xs, float))]


@answers
def add_lists(xs: Sequence[float], ys: Sequence[float]) -> list[float]:
    """Return np.add(xs, ys); raise ValueError if the lengths differ, which NumPy does not where one length is 1."""
    sums = np.add(np.array(xs, float), np.array(ys, float))
    return [float(x) for x, _, _ in zip(sums, xs, ys, strict=True)]


@answers
def sum_list(xs: Sequence[float]) -> float:
    """Return the last of the sums from the left."""
    return list(accumulate(xs, initial=0.0))[-1]


@answers
def prod_list(xs: Sequence[float]) -> float:
    """Return the last of the products from the left."""
    return list(accumulate(xs, operator.mul, initial=1.0))[-1]


# Task 0.4


def found_in(name: str, value: object, kind: type[HeldT]) -> list[tuple[str, HeldT]]:
    """Return (name, value) if a value is of a type, or else those of its elements that are, if it is a list."""
    if isinstance(value, kind):
        return [(name, value)]
    elements = enumerate(value) if isinstance(value, list) else ()
    return [(f"{name}.{k}", x) for k, x in elements if isinstance(x, kind)]


@answers
class Module(nn.Module):
    """The library's module, with the course's parameters, and without a look into tuples, dicts and lists of lists."""

    def held(self, kind: type[HeldT]) -> list[tuple[str, HeldT]]:
        """Return (name, value) of the direct attributes of a type."""
        return [pair for name, value in vars(self).items() for pair in found_in(name, value, kind)]

    def named_modules(self, *_: object, **__: object) -> Iterator[tuple[str, nn.Module]]:
        """Yield (name, module) of this module and of all below, from a stack."""
        stack, seen = [("", self)], set[int]()
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            stack += [(join_names(path, name), child) for name, child in reversed(module.held(Module))]

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:  # type: ignore[override]  # of the course
        """Yield (name, parameter) of all parameters, each once."""
        return unique_values(
            (join_names(path, name), p) for path, module in self.named_modules() for name, p in module.held(Parameter)
        )


# Task 0.5


def fitted(name: str, hidden: Sequence[Line] = ()) -> list[float]:
    """Fit weights and a bias to the distances from the border by least squares, over the points or the hidden values."""
    points = point_set(name)
    places = np.column_stack([[p[:2] for p in points], np.ones(len(points))])
    if hidden:
        places = np.column_stack([np.maximum(places @ np.array(hidden).T, 0), np.ones(len(points))])
    weights, *_ = np.linalg.lstsq(places, [BORDERS[name](p.x, p.y) for p in points], rcond=None)
    return [float(w) for w in weights]


def network(name: str) -> tuple[list[Line], list[float]]:
    """Return random hidden lines, enough for the fit to be right at every point."""
    hidden: list[Line] = [(a, b, c) for a, b, c in np.random.default_rng(0).normal(size=(80, 3)).tolist()]
    return hidden, fitted(name, hidden)


@answers
def line_for_simple() -> list[float]:
    """Return a fitted line."""
    return fitted("simple")


@answers
def line_for_diagonal() -> list[float]:
    """Return a fitted line."""
    return fitted("diagonal")


@answers
def network_for_split() -> tuple[list[Line], list[float]]:
    """Return a fitted network."""
    return network("split")


@answers
def network_for_xor() -> tuple[list[Line], list[float]]:
    """Return a fitted network."""
    return network("xor")

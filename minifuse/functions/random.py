"""Random numbers of other distributions, and fill arrays with them. `mf.manual_seed` sets the generator of all."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dtypes import DType, NumpyArray, as_dtype, float32, int64
from ..core.errors import DTypeError, ShapeError
from ..core.indexing import Shape, ShapeLike, shape_of
from ..ir.array_methods import Array
from ..tensors.creation import backend_of
from ..tensors.random import draw, generator
from ..tensors.tensor import Tensor
from .table import function, values_of

DTypeLike = DType | str | type | None
Draw = Callable[[Shape], NumpyArray]


def draw_like(x: Array, values: Draw, dtype: DTypeLike = None) -> Tensor:
    """Return random numbers with the shape of x, and its dtype and backend."""
    target = as_dtype(dtype or x.dtype)
    return draw(lambda: np.asarray(values(x.shape)).astype(target.numpy), x.shape, target, x.backend, False)


@function(method=False)
def rand_like(x: Array, dtype: DTypeLike = None, **options: Any) -> Tensor:
    """Return random numbers from the uniform distribution on [0, 1), with the shape of x."""
    return draw_like(x, lambda shape: generator().random(shape, dtype=as_dtype(dtype or x.dtype).numpy.type), dtype)


@function(method=False)
def randn_like(x: Array, dtype: DTypeLike = None, **options: Any) -> Tensor:
    """Return random numbers from the standard normal distribution, with the shape of x."""
    return draw_like(x, lambda shape: generator().standard_normal(shape), dtype)


@function(method=False)
def randint(
    low: int,
    high: Any = None,
    size: ShapeLike | None = None,
    dtype: DTypeLike = None,
    backend: str | None = None,
    device: object = None,
) -> Tensor:
    """Return random integers from low up to high, which is excluded. With two arguments, low is 0.

    Examples
    --------
    >>> import minifuse as mf
    >>> bool((mf.randint(2, 5, (10,)) < 5).all())
    True
    """
    if size is None:
        low, high, size = (0, low, high) if isinstance(high, tuple | list) else (low, high, ())
    if high is None:
        low, high = 0, low
    if low >= high:
        raise ShapeError(f"randint: got the range {low} to {high}, expected low < high")
    target, shape = as_dtype(dtype or int64), shape_of(size)
    values = lambda: generator().integers(low, high, shape).astype(target.numpy)  # noqa: E731
    return draw(values, shape, target, backend_of(backend, device), False)


@function(method=False)
def randint_like(x: Array, low: int, high: int | None = None, dtype: DTypeLike = None, **options: Any) -> Tensor:
    """Return random integers from low up to high, which is excluded, with the shape of x."""
    low, high = (0, low) if high is None else (low, high)
    return draw_like(x, lambda shape: generator().integers(low, high, shape), dtype)


@function(method=False)
def randperm(n: int, dtype: DTypeLike = None, backend: str | None = None, device: object = None) -> Tensor:
    """Return the integers from 0 to n - 1 in random order."""
    target = as_dtype(dtype or int64)
    values = lambda: generator().permutation(n).astype(target.numpy)  # noqa: E731
    return draw(values, (n,), target, backend_of(backend, device), False)


@function(method=False)
def normal(mean: Any = 0.0, std: Any = 1.0, size: ShapeLike | None = None, dtype: DTypeLike = None, **options: Any) -> Any:
    """Return random numbers from normal distributions, given as numbers with a size, or as arrays."""
    example = next((x for x in (mean, std) if isinstance(x, Array)), None)
    if example is None:
        if size is None:
            raise ShapeError("normal: got numbers and no size; write mf.normal(mean, std, (2, 3))")
        target, shape = as_dtype(dtype or float32), shape_of(size)
        values = lambda: generator().normal(mean, std, shape).astype(target.numpy)  # noqa: E731
        return draw(values, shape, target, backend_of(options.pop("backend", None), options.pop("device", None)), False)
    center, scale = mean + std * 0, std + mean * 0
    return center + scale * randn_like(center)


@function()
def bernoulli(x: Array, p: float | None = None) -> Array:
    """Return 1 with the probability that is the element of x, or p, else 0."""
    return (rand_like(x) < (x if p is None else p)).to(x.dtype)


@function()
def poisson(x: Array) -> Tensor:
    """Return random numbers from Poisson distributions, whose rates are the elements of x."""
    rates = values_of("poisson", x, "call it outside, and pass the result")
    return draw_like(x, lambda shape: generator().poisson(rates))


@function()
def multinomial(x: Array, num_samples: int, replacement: bool = False) -> Tensor:
    """Return indices drawn with the weights in each row. Without replacement, each is drawn at most once.

    Raises
    ------
    ShapeError
        There are more samples than positive weights, or x has no or more than 2 dims.
    """
    weights = np.asarray(values_of("multinomial", x, "call it outside, and pass the result"), np.float64)
    if weights.ndim not in (1, 2):
        raise ShapeError(f"multinomial: got shape {x.shape}, expected 1 or 2 dims")
    if (weights < 0).any() or not np.isfinite(weights).all() or (weights.sum(-1) <= 0).any():
        raise DTypeError("multinomial: weights must be finite and 0 or more, with a positive one in each row")
    if not replacement and ((weights > 0).sum(-1) < num_samples).any():
        raise ShapeError(f"multinomial: {num_samples} samples exceed the number of positive weights; pass replacement=True")
    rows = np.atleast_2d(weights)
    drawn = [generator().choice(len(row), num_samples, replacement, row / row.sum()) for row in rows]
    return x.asarray_like(np.stack(drawn).astype(np.int64).reshape(*weights.shape[:-1], num_samples))


# Fill in place.


def fill(name: str, values: Callable[..., Any], text: str) -> None:
    """Add a method that stores random numbers in the array itself."""

    def body(x: Array, *parameters: Any, **named: Any) -> Array:
        named = {{"from": "low", "to": "high"}.get(key, key) if name == "uniform_" else key: n for key, n in named.items()}
        x.copy_(draw_like(x.detach(), lambda shape: values(shape, *parameters, **named)))
        return x

    body.__name__, body.__doc__ = name, f"Store random numbers from {text} in the array, and return it."
    function(name)(body)


def integers(shape: Shape, start: int = 0, to: int | None = None) -> Any:
    """Return integers from start up to an end, which is excluded; with one argument, from 0."""
    low, high = (0, start) if to is None and start else (start, to if to is not None else 2**24)
    return generator().integers(low, high, shape)


DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], str]] = {  # method -> values, name of the distribution
    "normal_": (lambda shape, mean=0, std=1: generator().normal(mean, std, shape), "a normal distribution"),
    "uniform_": (lambda shape, low=0, high=1: generator().uniform(low, high, shape), "the uniform one on [low, high)"),
    "exponential_": (lambda shape, lambd=1: generator().exponential(1 / lambd, shape), "an exponential distribution"),
    "geometric_": (lambda shape, p: generator().geometric(p, shape), "a geometric distribution"),
    "log_normal_": (lambda shape, mean=1, std=2: generator().lognormal(mean, std, shape), "a log-normal distribution"),
    "cauchy_": (lambda shape, median=0, sigma=1: median + sigma * generator().standard_cauchy(shape), "a Cauchy one"),
    "bernoulli_": (lambda shape, p=0.5: generator().random(shape) < np.asarray(p), "0 and 1"),
    "random_": (integers, "the integers from `start` up to `to`"),
}

for _name, (_values, _text) in DISTRIBUTIONS.items():
    fill(_name, _values, _text)

"""Reductions beyond those of `Array`: extremes, counts, norms, sums without NaN, moments, integrals."""

from typing import Any, NamedTuple

from ..core.errors import ShapeError
from ..core.indexing import Dims, normalize_dim
from ..core.operators import isnan, where
from ..ir.array_methods import Array
from ..ir.numpy_api.reductions import _norm as norm_along
from .table import function


class Aminmax(NamedTuple):
    """The smallest and the largest elements."""

    min: Array
    max: Array


class Extremum(NamedTuple):
    """The extreme elements along a dim, and their indices."""

    values: Array
    indices: Array


def extremum(name: str, text: str) -> None:
    """Add mf.max or mf.min."""

    def body(x: Array, *arguments: Any, **named: Any) -> Any:
        dim = arguments[0] if arguments else named.get("dim", named.get("y"))
        if dim is None or isinstance(dim, Array):
            return getattr(x, name)(dim)
        keepdim = arguments[1] if len(arguments) > 1 else named.get("keepdim", False)
        return Extremum(getattr(x, f"a{name}")(dim, keepdim), getattr(x, f"arg{name}")(dim, keepdim))

    body.__name__, body.__doc__ = name, text
    function(name, method=False)(body)


extremum(
    "max", "Return the largest element; with a dim, the largest ones and their indices; with another array, mf.maximum."
)
extremum("min", "Return the smallest element; with a dim, the smallest ones and their indices; with an array, mf.minimum.")


@function()
def amax(x: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Return the largest elements along dims; NaN if one is NaN. Ties share the gradient equally."""
    return x.max(dim, keepdim)


@function()
def amin(x: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Return the smallest elements along dims; NaN if one is NaN. Ties share the gradient equally."""
    return x.min(dim, keepdim)


@function()
def aminmax(x: Array, *, dim: int | None = None, keepdim: bool = False) -> Aminmax:
    """Return the smallest and the largest elements along a dim."""
    return Aminmax(amin(x, dim, keepdim), amax(x, dim, keepdim))


@function(operands=1)
def count_nonzero(x: Array, dim: Dims = None) -> Array:
    """Count the nonzero elements along dims."""
    return x.ne(0).sum(dim)


@function()
def nansum(x: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Sum along dims, with 0 in place of NaN."""
    return sum_without_nan(x if dtype is None else x.to(dtype), dim, keepdim)


@function("_nansum", operands=1, method=False)
def sum_without_nan(x: Array, dim: Dims, keepdim: bool) -> Array:
    """Sum along dims, with 0 in place of NaN."""
    return where(isnan(x), 0, x).sum(dim, keepdim)


@function()
def nanmean(x: Array, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Average the elements along dims that are not NaN."""
    return mean_without_nan(x if dtype is None else x.to(dtype), dim, keepdim)


@function("_nanmean", operands=1, method=False)
def mean_without_nan(x: Array, dim: Dims, keepdim: bool) -> Array:
    """Average the elements along dims that are not NaN."""
    return where(isnan(x), 0, x).sum(dim, keepdim) / x.eq(x).to(x.dtype).sum(dim, keepdim)


def with_mean(name: str, method: str) -> None:
    """Add a function that returns a moment, and the mean."""

    def body(
        x: Array, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False
    ) -> tuple[Array, Array]:
        if isinstance(dim, bool):  # PyTorch's second signature: std_mean(x, unbiased)
            dim, unbiased = None, dim
        divisor = correction if correction is not None else 1 if unbiased is None else int(unbiased)
        return getattr(x, method)(dim, correction=divisor, keepdim=keepdim), x.mean(dim, keepdim)

    body.__name__, body.__doc__ = name, f"Return `x.{method}(dim)` and `x.mean(dim)`. The divisor is count - correction."
    function(name, method=False)(body)


with_mean("std_mean", "std")
with_mean("var_mean", "var")


@function("_norm", operands=1, method=False)
def norm_of(x: Array, p: float, dims: tuple[int, ...], keepdim: bool) -> Array:
    """Return the p-norm along dims."""
    return norm_along(x, p, dims, keepdim)


@function(operands=1)
def renorm(x: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Scale the slices along a dim whose p-norm is larger than `maxnorm` down to it."""
    others = tuple(d for d in range(x.ndim) if d != normalize_dim(dim, x.ndim))
    size = norm_along(x, p, others, True)
    return where(size > maxnorm, x * (maxnorm / (size + 1e-7)), x)


@function(operands=1)
def cov(x: Array, correction: int = 1) -> Array:
    """Return the covariances of variables, a row each, from their observations, a column each."""
    if x.ndim > 2:
        raise ShapeError(f"cov: got shape {x.shape}, expected at most 2 dims")
    rows = x.reshape(1, x.size) if x.ndim < 2 else x
    deviation = rows - rows.mean(1, keepdim=True)
    y = deviation @ deviation.mT / max(rows.shape[1] - correction, 0)
    return y.reshape(()) if x.ndim < 2 else y


@function(operands=1)
def corrcoef(x: Array) -> Array:
    """Return the correlations of variables, a row each, from their observations, a column each."""
    y = cov(x)
    if y.ndim == 0:
        return y / y
    scale = y.diagonal().sqrt()
    return (y / scale.unsqueeze(1) / scale).clip(-1, 1)


def trapezoids(y: Array, x: Any, dx: float, dim: int) -> Array:
    """Return the areas of the trapezoids between neighbors along a dim."""
    n = y.shape[dim]
    heights = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    if x is None:
        return heights * dx
    if x.ndim > 1:
        return heights * x.diff(dim=dim - y.ndim)
    return heights * x.diff().reshape(*(n - 1 if d == dim else 1 for d in range(y.ndim)))


@function("trapezoid", "trapz", method=False)
def trapezoid(y: Array, x: Array | None = None, dx: float = 1.0, dim: int = -1) -> Array:
    """Integrate along a dim by the trapezoidal rule, at points x, or at points with distance dx."""
    d = normalize_dim(dim, y.ndim)
    return trapezoids(y, x, dx, d).sum(d)

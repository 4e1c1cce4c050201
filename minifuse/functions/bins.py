"""Functions that put elements in bins: searchsorted, bucketize, bincount, histograms."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import int64
from ..core.errors import DTypeError, IndexingError, ShapeError
from ..core.operators import add
from ..ir.along_dim import gather_along
from ..ir.array_functions import BoundFunction, Full
from ..ir.array_methods import Array
from ..ir.gather import Scatter
from ..ir.numpy_api.table import call_once
from ..ir.numpy_op import by_numpy
from ..ir.search import places
from .indexing import as_value
from .table import function, values_of

BINCOUNT_REMEDY = "use mf.zeros(n).scatter_add(0, x, weights) with a fixed size n"


class Histogram(NamedTuple):
    """Counts, or sums of weights, in bins, and the edges of the bins."""

    hist: Any
    bin_edges: Any


@function()
def searchsorted(
    x: Array, values: Any, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Any:
    """Return where values would be inserted in sorted rows, to keep them sorted: before equal elements, or after them."""
    is_right = side == "right" if side is not None else bool(right)
    rows = x if sorter is None else gather_along(x, sorter, x.ndim - 1)
    if rows.ndim > 1 and getattr(values, "shape", ())[:-1] != rows.shape[:-1]:
        raise ShapeError(f"searchsorted: the dims before the last differ: {rows.shape} and {values.shape}")
    return call_once(places, rows, as_value(values), parameters=(is_right, bool(out_int32)))


@function(method=False)
def bucketize(x: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    """Return the bin between sorted boundaries of each element; with right, a boundary belongs to the next bin."""
    return searchsorted(as_value(boundaries), x, out_int32=out_int32, right=right)


@function()
def bincount(x: Array, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each integer occurs, or sum its weights. The size of the result depends on values."""
    if not x.dtype.is_integer or x.ndim != 1:
        raise DTypeError(f"bincount: got {x.dtype} of shape {x.shape}, expected integers in 1 dim")
    bounds = [values_of("bincount", z, BINCOUNT_REMEDY) for z in ((x.min(), x.max()) if x.size else ())]
    if bounds and bounds[0] < 0:
        raise IndexingError(f"bincount: got {bounds[0]}, expected integers from 0 on")
    size = max(int(bounds[1]) + 1 if bounds else 0, minlength)
    operands = (x,) if weights is None else (weights, x)
    return x.apply(BoundFunction(counted, (size,)), *operands)


def counted(*arguments: Any) -> Any:
    """Sum weights, or ones, by integer."""
    *weights, x, size = arguments
    ones = x.apply(Full(x.shape, int64), 1)
    return Scatter(add, 0, size)(weights[0] if weights else ones, x)


@function()
def histc(x: Array, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002
    """Count elements in equal bins between min and max, or between the extrema if both are 0; others are dropped."""
    return call_once(binned, x, parameters=(int(bins), (float(min), float(max)), False))


@function()
def histogram(x: Array, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:  # noqa: A002
    """Count elements, or sum their weights, in bins: of equal size, or between given edges. Return also the edges."""
    result = histogramdd(x.reshape(x.size, 1), [bins], range, None if weight is None else weight.reshape(-1), density)
    return Histogram(result.hist, result.bin_edges[0])


@function(method=False)
def histogramdd(x: Array, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:  # noqa: A002
    """Count rows, or sum their weights, in a grid of bins, one axis for each column. Return also the edges of each."""
    columns = x.shape[-1]
    rows = x.reshape(-1, columns)
    counts = bins if isinstance(bins, Sequence) else [bins] * columns
    limits = [None] * columns if range is None else [tuple(range[2 * d : 2 * d + 2]) for d in np.arange(columns)]
    edges = [
        b if isinstance(b, Array) else call_once(edges_of, rows, parameters=(d, int(b), limit))
        for d, (b, limit) in enumerate(zip(counts, limits, strict=True))
    ]
    operands = [rows, *edges] + ([] if weight is None else [weight.reshape(-1)])
    return Histogram(rows.apply(BoundFunction(grid, (columns, bool(density))), *operands), tuple(edges))


def binned(x: Any, bins: int, limits: tuple[float, float] | None, density: bool) -> Any:
    """Return the counts of equal bins."""
    return by_numpy(count_bins, x, shape=(bins,), dtype=x.dtype, parameters=(bins, limits, density))


def count_bins(x: np.ndarray, bins: int, limits: tuple[float, float], density: bool) -> np.ndarray:
    """Count elements between two limits; if both are equal, between the extrema."""
    low, high = limits if limits[0] != limits[1] else (x.min(initial=np.inf), x.max(initial=-np.inf)) if x.size else (0, 1)
    return np.histogram(x[(x >= low) & (x <= high)], bins, (low, high if high > low else low + 1), density=density)[0]


def edges_of(rows: Any, column: int, bins: int, limits: tuple[float, float] | None) -> Any:
    """Return the edges of equal bins of a column."""
    return by_numpy(equal_edges, rows, shape=(bins + 1,), dtype=rows.dtype, parameters=(column, bins, limits))


def equal_edges(rows: np.ndarray, column: int, bins: int, limits: tuple[float, float] | None) -> np.ndarray:
    """Return equally spaced edges."""
    return np.histogram_bin_edges(rows[:, column].astype(np.float64), bins, limits)


def grid(*arguments: Any) -> Any:
    """Return the counts of a grid of bins."""
    *arrays, columns, density = arguments
    shape = tuple(z.size - 1 for z in arrays[1 : columns + 1])
    return by_numpy(count_grid, *arrays, shape=shape, dtype=arrays[0].dtype, parameters=(columns, density))


def count_grid(rows: np.ndarray, *arguments: Any) -> np.ndarray:
    """Count rows in a grid of bins."""
    *arrays, columns, density = arguments
    weights = arrays[columns] if len(arrays) > columns else None
    return np.histogramdd(rows, arrays[:columns], weights=weights, density=density)[0]

"""Rows of the library of functions: joins, indices, masks, scans and sorts of large arrays, on the CPU and on a GPU.

A function is written once for tensors of minifuse and torch, and once for arrays of NumPy and CuPy. The results are compared
with those of NumPy in float64. On a GPU, each row contains a copy of as many bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import minifuse as mf

from ..gpu import on_device
from ..held_out.program import BenchDraw
from ..row import US, Bench, Contest, Player, Row, Target, Work, every, speed, to_float64

FUSED = f"{US}, fused"
COPIED = (speed("copy", 0.75),)
SORTED = (speed("cupy", 0.5),)
LEVEL = (speed("torch", 1),)
SQUARE, HALF, QUARTER = (
    ((8192, 8192), (2048, 2048), (5, 6)),
    ((4096, 4096), (2048, 1024), (5, 6)),
    ((2048, 8192), (512, 2048), (3, 7)),
)
LONG, HALF_LONG = ((1 << 26,), (1 << 24,), (37,)), ((1 << 24,), (1 << 20,), (37,))


@dataclass(frozen=True)
class Function:
    """An entry of the suite `library`.

    Attributes
    ----------
    tensors, arrays
        The function of a module and the inputs: `mf` or `torch`; `numpy` or `cupy`.
    inputs
        Makes the inputs, given a `Draw` and a size.
    sizes
        The sizes on a GPU, on two cores, and in tests.
    targets
        The targets on a GPU. On the CPU, each peer is to take at least as long.
    dtype
        The element type of the result.
    is_fused
        Whether the function is also called as a fused one.
    without
        Peers that do not have the function.
    """

    name: str
    tensors: Work
    arrays: Work
    inputs: Callable[..., Sequence[Any]]
    sizes: tuple[tuple[int, ...], ...]
    targets: tuple[Target, ...] = LEVEL
    dtype: str = "float32"
    is_fused: bool = True
    without: tuple[str, ...] = ()
    tolerance: float = 1e-4


def normal(draw: Any, *size: int) -> list[Any]:
    """Draw one array of standard normal floats."""
    return [draw.normal(*size)]


def two(draw: Any, *size: int) -> list[Any]:
    """Draw two arrays of standard normal floats."""
    return [draw.normal(*size), draw.normal(*size)]


def near_one(draw: Any, *size: int) -> list[Any]:
    """Draw factors whose products stay near 1."""
    return [draw.uniform(0.999, 1.001, *size)]


def some_rows(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and the indices of half as many rows."""
    return [draw.normal(n, d), draw.integers(n, n // 2)]


def some_points(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and the rows and the columns of a quarter as many elements."""
    return [draw.normal(n, d), draw.integers(n, n * d // 4), draw.integers(d, n * d // 4)]


def columns(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and a column for each of its elements."""
    return [draw.normal(n, d), draw.integers(d, n, d)]


def rows_and_values(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and an index and the values of half as many rows."""
    return [*some_rows(draw, n, d), draw.normal(n // 2, d)]


def columns_and_values(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and a column and a value for each of its elements."""
    return [*columns(draw, n, d), draw.normal(n, d)]


def masked(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix, and a mask with half of its elements."""
    return [draw.normal(n, d), draw.constant(np.random.default_rng(1).random((n, d)) < 0.5)]


def changed(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix of its own memory, distinct rows, and their values."""
    rng = np.random.default_rng(2)
    x = draw.constant(rng.standard_normal((n, d)))
    return [x, draw.constant(rng.permutation(n)[: n // 2]), draw.normal(n // 2, d)]


def changed_points(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix of its own memory, the rows and the columns of distinct elements, and their values."""
    rng = np.random.default_rng(3)
    places = rng.permutation(n * d)[: n * d // 4]
    indices = [draw.constant(places // d), draw.constant(places % d)]
    return [draw.constant(rng.standard_normal((n, d))), *indices, draw.normal(len(places))]


def changed_mask(draw: Any, n: int, d: int) -> list[Any]:
    """Draw a matrix of its own memory, and a mask with half of its elements."""
    rng = np.random.default_rng(4)
    return [draw.constant(rng.standard_normal((n, d))), draw.constant(rng.random((n, d)) < 0.5)]


def store(m: Any, x: Any, *operands: Any) -> Any:
    """Store values in the elements of some indices."""
    *indices, values = operands
    x[tuple(indices)] = values
    return x


def store_zeros(m: Any, x: Any, mask: Any) -> Any:
    """Store zeros under a mask."""
    x[mask] = 0
    return x


def add_rows(np: Any, x: Any, index: Any, values: Any) -> Any:
    """Add rows by index."""
    y = x.copy()
    np.add.at(y, index, values)
    return y


def add_columns(np: Any, x: Any, index: Any, values: Any) -> Any:
    """Add each value to the element of its row and a column."""
    y = x.copy()
    np.add.at(y, (np.arange(len(x))[:, None], index), values)
    return y


def largest(np: Any, x: Any) -> Any:
    """Return the 16 largest elements of each row, in order; all elements of a short row."""
    k = min(16, x.shape[1])
    return np.sort(np.partition(x, -k, 1)[:, -k:], 1)[:, ::-1]


SCANS = (
    *(
        Function(
            f"cumsum along dim {dim}",
            lambda m, x, dim=dim: m.cumsum(x, dim),
            lambda np, x, dim=dim: np.cumsum(x, dim),
            normal,
            SQUARE,
            COPIED,
        )
        for dim in (0, 1)
    ),
    Function("cumsum of a vector", lambda m, x: m.cumsum(x, 0), lambda np, x: np.cumsum(x), near_one, LONG, COPIED),
    Function("cumprod along dim 1", lambda m, x: m.cumprod(x, 1), lambda np, x: np.cumprod(x, 1), near_one, SQUARE, COPIED),
    Function(
        "cummax along dim 1",
        lambda m, x: m.cummax(x, 1)[0],
        lambda np, x: np.maximum.accumulate(x, 1),
        normal,
        SQUARE,
        without=("cupy",),
    ),
    Function(
        "logcumsumexp along dim 1",
        lambda m, x: m.logcumsumexp(x, 1),
        lambda np, x: np.logaddexp.accumulate(x, 1),
        normal,
        SQUARE,
        COPIED,
        without=("numpy", "cupy"),
    ),
    Function("diff along dim 1", lambda m, x: m.diff(x), lambda np, x: np.diff(x), normal, SQUARE),
)
ORDER = (
    Function(
        "sort of a vector", lambda m, x: m.msort(x), lambda np, x: np.sort(x), normal, HALF_LONG, SORTED, is_fused=False
    ),
    Function(
        "sort of a vector, with indices",
        lambda m, x: m.sort(x)[0],
        lambda np, x: np.sort(x),
        normal,
        HALF_LONG,
        SORTED,
        is_fused=False,
    ),
    Function(
        "argsort of a vector",
        lambda m, x: m.argsort(x, stable=True),
        lambda np, x: np.argsort(x, kind="stable"),
        normal,
        HALF_LONG,
        SORTED,
        "int64",
        is_fused=False,
    ),
    Function(
        "sort of rows", lambda m, x: m.sort(x, 1)[0], lambda np, x: np.sort(x, 1), normal, QUARTER, SORTED, is_fused=False
    ),
    Function("topk of rows", lambda m, x: m.topk(x, min(16, x.shape[1]), 1)[0], largest, normal, QUARTER, is_fused=False),
    Function(
        "median of rows", lambda m, x: m.quantile(x, 0.5, 1), lambda np, x: np.median(x, 1), normal, QUARTER, is_fused=False
    ),
    Function(
        "unique of integers",
        lambda m, k: m.unique(k),
        lambda np, k: np.unique(k),
        lambda draw, n: [draw.integers(1000, n)],
        HALF_LONG,
        dtype="int64",
        is_fused=False,
    ),
    Function(
        "bincount",
        lambda m, k: m.bincount(k, minlength=1000),
        lambda np, k: np.bincount(k, minlength=1000),
        lambda draw, n: [draw.integers(1000, n)],
        HALF_LONG,
        dtype="int64",
        is_fused=False,
    ),
    Function(
        "searchsorted",
        lambda m, edges, x: m.searchsorted(edges, x),
        lambda np, edges, x: np.searchsorted(edges, x),
        lambda draw, n: [draw.constant(np.linspace(-3, 3, 1024)), draw.normal(n)],
        HALF_LONG,
        dtype="int64",
        is_fused=False,
    ),
)
INDEXING = (
    Function("x[i] of rows", lambda m, x, i: x[i], lambda np, x, i: x[i], some_rows, HALF),
    Function("x[i, j]", lambda m, x, i, j: x[i, j], lambda np, x, i, j: x[i, j], some_points, HALF),
    Function(
        "index_select along dim 1",
        lambda m, x, j: m.index_select(x, 1, j),
        lambda np, x, j: np.take(x, j, 1),
        lambda draw, n, d: [draw.normal(n, d), draw.integers(d, d // 2)],
        HALF,
    ),
    Function(
        "gather along dim 1",
        lambda m, x, j: m.gather(x, 1, j),
        lambda np, x, j: np.take_along_axis(x, j, 1),
        columns,
        HALF,
    ),
    Function(
        "take_along_dim along dim 0",
        lambda m, x, i: m.take_along_dim(x, i, 0),
        lambda np, x, i: np.take_along_axis(x, i, 0),
        lambda draw, n, d: [draw.normal(n, d), draw.integers(n, n, d)],
        HALF,
    ),
    Function("x[i] = rows", store, store, changed, HALF),
    Function("x[i, j] = values", store, store, changed_points, HALF),
    Function("index_add of rows", lambda m, x, i, y: m.index_add(x, 0, i, y), add_rows, rows_and_values, HALF),
    Function(
        "scatter_add along dim 1",
        lambda m, x, j, y: m.scatter_add(x, 1, j, y),
        add_columns,
        columns_and_values,
        HALF,
    ),
    Function("x[mask]", lambda m, x, mask: x[mask], lambda np, x, mask: x[mask], masked, HALF, is_fused=False),
    Function("x[mask] = 0", store_zeros, store_zeros, changed_mask, HALF),
    Function(
        "masked_fill",
        lambda m, x, mask: x.masked_fill(mask, 0.0),
        lambda np, x, mask: np.where(mask, x.dtype.type(0), x),
        masked,
        HALF,
    ),
    Function(
        "nonzero",
        lambda m, x, mask: m.nonzero(mask),
        lambda np, x, mask: np.argwhere(mask),
        masked,
        HALF,
        dtype="int64",
        is_fused=False,
    ),
)
JOINING = (
    *(
        Function(
            f"cat along dim {dim}",
            lambda m, a, b, dim=dim: m.cat([a, b], dim),
            lambda np, a, b, dim=dim: np.concatenate([a, b], dim),
            two,
            HALF,
        )
        for dim in (0, 1)
    ),
    Function("stack along dim 2", lambda m, a, b: m.stack([a, b], 2), lambda np, a, b: np.stack([a, b], 2), two, HALF),
    Function("roll along dim 1", lambda m, x: m.roll(x, 3, 1), lambda np, x: np.roll(x, 3, 1), normal, HALF),
    Function(
        "pad", lambda m, x: m.nn.functional.pad(x, (1, 2, 3, 4)), lambda np, x: np.pad(x, ((3, 4), (1, 2))), normal, HALF
    ),
    Function("tril", lambda m, x: m.tril(x), lambda np, x: np.tril(x), normal, HALF),
    Function("tile", lambda m, x: m.tile(x, (2, 2)), lambda np, x: np.tile(x, (2, 2)), normal, QUARTER),
    Function(
        "repeat_interleave along dim 1",
        lambda m, x: m.repeat_interleave(x, 2, 1),
        lambda np, x: np.repeat(x, 2, 1),
        normal,
        QUARTER,
    ),
)
GROUPS = {"scans": SCANS, "order": ORDER, "indexing": INDEXING, "joining": JOINING}


def row_of(function: Function, group: str, is_on_gpu: bool) -> Row:
    """Make a row that times the function."""

    def setup(bench: Bench) -> Contest:
        gpu, cpu, tiny = function.sizes
        inputs = list(function.inputs(BenchDraw(bench), *(tiny if bench.is_quick else gpu if is_on_gpu else cpu)))
        exact = np.asarray(function.arrays(np, *[to_float64(on_host(x)).copy() for x in inputs]))
        works: dict[str, Work] = {US: partial(function.tensors, mf)}
        if function.is_fused:
            works[FUSED] = mf.fuse(works[US])
        for who in [who for who in bench.peers if who not in function.without]:
            works[who] = partial(function.tensors if who == "torch" else function.arrays, bench.module(who))
        lend = bench.lend if is_on_gpu else partial(bench.hand, gradients=False)
        players: dict[str, Player] = {who: partial(work, *lend(who, inputs)) for who, work in works.items()}
        nbytes = sum(x.size * x.dtype.itemsize for x in inputs) + exact.size * np.dtype(function.dtype).itemsize
        return Contest(players, bench.read(exact), function.dtype, function.tolerance, nbytes=nbytes)

    prefix = "gpu-" * is_on_gpu
    row = Row(function.name, f"{prefix}library-{group}", setup, function.targets if is_on_gpu else (every(1),))
    return on_device(row, beside_copy=True) if is_on_gpu else row


def on_host(x: Any) -> Any:
    """Return an array of NumPy, or a copy of a tensor of a GPU as one."""
    return x if isinstance(x, np.ndarray) else x.numpy()


ROWS, GPU_ROWS = (
    [row_of(function, group, is_on_gpu) for group, functions in GROUPS.items() for function in functions]
    for is_on_gpu in (False, True)
)

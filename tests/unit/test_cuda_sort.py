"""Sort, scatter by sorting, positions of true elements, last writers: the cuda kernels against NumPy."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda import index_update
from minifuse.backends.cuda.backend import get_device
from minifuse.backends.cuda.sort.kernels import SortTile
from minifuse.backends.cuda.sort.launches import CudaSortLauncher, SortProblem
from minifuse.compiler import rules
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import BY_NAME
from minifuse.core.layout import row_major
from minifuse.core.operators import add, maximum, minimum, mul
from minifuse.ir.array_functions import BoundFunction
from minifuse.ir.gather import Scatter
from minifuse.ir.indexing import IndexUpdate, scatter
from minifuse.ir.sort import INDICES, VALUES, Sort, order_of

DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
OUTPUTS = ((VALUES, INDICES), (INDICES,), (VALUES,))
SMALL_TILE, TILE = SortTile(2, 1, 1), SortTile(2, 2, 1)  # longer rows than a tile are cut into chunks


def sample(shape, dtype):
    """Few distinct elements, of which some floats are special."""
    x = np.random.default_rng([*shape]).integers(-9, 9, shape)
    if dtype in ("int32", "int64"):
        x = x << 20
    x = np.abs(x) if dtype in ("uint8", "bool") else x
    x = x.astype(dtype)
    if dtype.startswith("float"):
        x = x / x.dtype.type(3)
        x.flat[[3, 5, 9, 11, 12, 20]] = np.nan, -0.0, 0.0, -np.nan, np.inf, -np.inf
    return x


def sort_on_device(x, dim, descending, names, tile):
    operands = [mf.zeros(*x.shape, dtype=mf.int64 if name == INDICES else x.dtype.name, backend="cuda") for name in names]
    operands.append(mf.tensor(x, backend="cuda"))
    layouts = [row_major(x.shape)] * len(operands)
    problem = SortProblem(Sort(dim, descending, names), layouts, BY_NAME[x.dtype.name], 2, tile)
    CudaSortLauncher(get_device(0), problem, layouts)(*[y.address for y in operands])
    return problem, [y.numpy() for y in operands[:-1]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim", "tile"), [((3, 50), 1, None), ((4, 11, 3), 1, TILE), ((300,), 0, SMALL_TILE)])
def test_sort_is_stable_with_nan_last_as_in_numpy(dtype, shape, dim, tile):
    x = sample(shape, dtype)
    descending, names = len(shape) == 3, OUTPUTS[0]
    problem, outputs = sort_on_device(x, dim, descending, names, tile)
    order = order_of(x, dim, descending)
    values = np.take_along_axis(x, order, dim)
    assert problem.has_short_rows == (tile is not SMALL_TILE)
    np.testing.assert_array_equal(outputs[1], order)
    np.testing.assert_array_equal(outputs[0], values)
    if dtype.startswith("float"):
        np.testing.assert_array_equal(np.signbit(outputs[0])[~np.isnan(values)], np.signbit(values)[~np.isnan(values)])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 17, 100, 300])
def test_short_rows_are_sorted_by_a_network_of_lanes(n):
    x = np.random.default_rng(n).integers(-9, 9, (5, n)).astype(np.int32)
    problem, (values, indices) = sort_on_device(x, 1, True, OUTPUTS[0], None)
    assert n <= problem.network.size <= max(2 * n - 1, 2)
    np.testing.assert_array_equal(indices, order_of(x, 1, True))
    np.testing.assert_array_equal(values, -np.sort(-x, 1))


@pytest.mark.parametrize(("names", "tile"), [(OUTPUTS[1], None), (OUTPUTS[2], None), (OUTPUTS[1], SMALL_TILE)])
def test_a_sort_stores_only_the_outputs_that_are_kept(names, tile):
    x = sample((2, 130), "int16")
    _, (output,) = sort_on_device(x, 1, False, names, tile)
    order = order_of(x, 1, False)
    np.testing.assert_array_equal(output, order if names == (INDICES,) else np.take_along_axis(x, order, 1))


def test_a_long_row_takes_three_launches_for_each_digit():
    layouts = [row_major((1 << 20,))] * 2
    plans = [
        SortProblem(Sort(0, False, (VALUES,)), layouts, BY_NAME[name], 132).plan() for name in ("int8", "float32", "int64")
    ]
    assert [len(plan.launches) for plan in plans] == [3, 12, 24]
    assert plans[0].workspace < plans[1].workspace < plans[2].workspace


def test_functions_of_order_run_on_the_device_with_gradients():
    x = sample((3, 40), "float32")
    x[np.isnan(x) | np.isinf(x)] = 7
    results = []
    for backend in ("cuda", "python"):
        t = mf.tensor(x, backend=backend, requires_grad=True)
        weights = mf.tensor(np.arange(120, dtype=np.float32).reshape(3, 40), backend=backend)
        y = mf.sort(t, 1, descending=True).values * weights + mf.msort(t)
        y.sum().backward()
        found = y, t.grad, t.argsort(0), mf.topk(t, 5).indices, mf.median(t, 1).values, mf.quantile(t, 0.3, 1)
        results.append([z.detach().numpy() for z in found])
    for ours, expected in zip(*results, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


UFUNCS = {add: np.add, mul: np.multiply, maximum: np.maximum, minimum: np.minimum}


SLICES = [((), 40, 9, ()), ((), 200, 3, ()), ((2,), 30, 7, (40,)), ((2,), 90, 4, (3,)), ((), 100, 1, (70,)), ((), 1, 5, ())]


@pytest.mark.parametrize("operator", UFUNCS)
@pytest.mark.parametrize(("before", "count", "size", "after"), SLICES)
@pytest.mark.parametrize("is_update", [False, True])
def test_a_scatter_by_sort_combines_slices_in_order(monkeypatch, operator, before, count, size, after, is_update):
    monkeypatch.setattr(rules, "MIN_COMPARISONS", 0)
    rng = np.random.default_rng(count)
    x, index = rng.integers(1, 3, (*before, count, *after)).astype(np.float32), rng.integers(-1, size + 1, count)
    expected = np.full((*before, size, *after), 5 if is_update else operator.identity_for(mf.float32), np.float32)
    start = mf.tensor(expected, backend="cuda")
    rows, values = np.moveaxis(expected, len(before), 0), np.moveaxis(x, len(before), 0)
    is_kept = (index >= 0) & (index < size)
    UFUNCS[operator].at(rows, index[is_kept], values[is_kept])
    op = IndexUpdate(operator, len(before)) if is_update else Scatter(operator, len(before), size)
    run = mf.fuse(lambda *xs: op(*xs)[0] if is_update else op(*xs[::-1]))
    operands = mf.tensor(index, backend="cuda"), mf.tensor(x, backend="cuda")
    np.testing.assert_array_equal(run(*[start] * is_update, *operands).numpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("before", "size", "after"), [((), 9, ()), ((), 5000, ()), ((2,), 9, (3,))])
def test_integers_are_added_by_atomics(monkeypatch, before, size, after, dtype):
    monkeypatch.setattr(rules, "MIN_COMPARISONS", 0)
    rng = np.random.default_rng(3)
    x, index = rng.integers(-9, 9, (*before, 600, *after)).astype(dtype), rng.integers(-1, size + 1, 600)
    expected = np.zeros((*before, size, *after), dtype)
    is_kept = (index >= 0) & (index < size)
    np.add.at(np.moveaxis(expected, len(before), 0), index[is_kept], np.moveaxis(x, len(before), 0)[is_kept])
    y = Scatter(add, len(before), size)(mf.tensor(x, backend="cuda"), mf.tensor(index, backend="cuda"))
    np.testing.assert_array_equal(y.numpy(), expected)
    counts = mf.bincount(mf.tensor(np.abs(index), backend="cuda"), minlength=size)
    np.testing.assert_array_equal(counts.numpy(), np.bincount(np.abs(index), minlength=size))


def test_an_update_by_sort_in_place_does_not_copy_the_array(monkeypatch):
    monkeypatch.setattr(rules, "MIN_COMPARISONS", 0)
    x, index, values = mf.ones(9, 4, backend="cuda"), mf.tensor([5, 5, 2, 5], backend="cuda"), mf.ones(4, 4, backend="cuda")
    new, in_place = (Plan(BoundFunction(at_rows, ()), [x, index, values], t, (0, 1, 2)) for t in ((), (0,)))
    launches = [plan.backend.compile(plan.steps[-1]).cost().launches for plan in (new, in_place)]
    assert launches == [2, 1]
    x.index_add_(0, index, values)
    assert x[:, 0].tolist() == [1, 1, 2, 1, 1, 4, 1, 1, 1]


def at_rows(x, index, values):
    """Add rows at an index."""
    return scatter(x, 0, index, values, add)


@pytest.mark.parametrize("shape", [(7,), (40, 30), (3, 1111), (0,), (5, 0)])
def test_masks_select_on_the_device(shape):
    rng = np.random.default_rng(1)
    mask, x = rng.random(shape) > 0.6, rng.random(shape).astype(np.float32)
    m, t = mf.tensor(mask, backend="cuda"), mf.tensor(x, backend="cuda")
    np.testing.assert_array_equal(t[m].numpy(), x[mask])
    np.testing.assert_array_equal(mf.nonzero(m).numpy(), np.argwhere(mask))
    for found, expected in zip(mf.nonzero(m, as_tuple=True), np.nonzero(mask), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool"])
@pytest.mark.parametrize(
    ("shape", "dim", "index_dtype"), [((20, 3), 0, "int32"), ((5, 20), 1, "int64"), ((2, 20, 70), 1, "int64")]
)
@pytest.mark.parametrize("min_marked", [1, index_update.MIN_MARKED])
def test_of_equal_indices_the_last_one_is_stored(monkeypatch, shape, dim, dtype, index_dtype, min_marked):
    monkeypatch.setattr(index_update, "MIN_MARKED", min_marked)
    rng = np.random.default_rng(2)
    x, values = ((rng.standard_normal(s) * 9).astype(dtype) for s in (shape, (*shape[:dim], 12, *shape[dim + 1 :])))
    index = rng.integers(0, 20, 12).astype(index_dtype)
    t, i, v = (mf.tensor(a, backend="cuda") for a in (x.copy(), index, values))
    y = t.index_copy(dim, i, v)
    np.testing.assert_array_equal(t.numpy(), x)
    x[(slice(None),) * dim + (index,)] = values
    np.testing.assert_array_equal(y.numpy(), x)
    t.index_copy_(dim, i, v)
    np.testing.assert_array_equal(t.numpy(), x)


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_functions_made_of_sorts_equal_those_of_numpy(backend):
    for x in (np.nan_to_num(sample((3, 40), "float32")), sample((40,), "int16"), np.zeros(1)):
        t = mf.tensor(x, backend=backend)
        found = mf.unique(t, return_inverse=True, return_counts=True)
        expected = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs.reshape(ours.shape))
        np.testing.assert_array_equal(np.sort(t).numpy(), np.sort(x))
        np.testing.assert_array_equal(mf.bincount(t.reshape(-1).nan_to_num().to(mf.int64).clamp(0, 9)).sum().item(), x.size)
    t = mf.tensor([3.0, 1.0, 2.0], backend=backend, requires_grad=True)
    (np.sort(t) * mf.tensor([1.0, 2.0, 3.0], backend=backend)).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [3, 1, 2])


@pytest.mark.parametrize("x", [[-(2**40), 9, 2**40, 9], [2**63 - 1, -(2**63), 5, 5], [7], [1.5, np.nan, 0.0, -0.0, np.nan]])
def test_unique_returns_only_what_is_asked_for(x):
    x = np.array(x)
    t = mf.tensor(x, backend="cuda")
    np.testing.assert_array_equal(mf.unique(t).numpy(), np.unique(x, equal_nan=False))
    for found, expected in zip(
        mf.unique(t, return_inverse=True), np.unique(x, return_inverse=True, equal_nan=False), strict=True
    ):
        np.testing.assert_array_equal(found.numpy(), expected)

"""ir.along_dim: gathers and scatters with an index for each element, of slices, in rows, and of the flattened array."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler import rules
from minifuse.compiler.rules import lower_gather
from minifuse.core.operators import add, maximum
from minifuse.ir.along_dim import MAX_COMPARED, UpdateAlong
from minifuse.ir.array_functions import Full
from minifuse.testing.graphs import run_pass, trace

SHAPE = (4, 6, 3)
INDICES = {  # the shape that is drawn, a view of it with a size along each dim, and the dim
    "of slices": ((70,), lambda i: i[None, :, None].expand(4, -1, 3), 1),
    "of rows": ((4, 70), lambda i: i[:, :, None].expand(-1, -1, 3), 1),
    "of columns": ((70, 3), lambda i: i[None].expand(4, -1, -1), 1),
    "of each element": ((4, 70, 3), lambda i: i, 1),
    "one in each row": ((4, 6, 1), lambda i: i, 2),
    "a few in each row": ((4, 6, 5), lambda i: i, 2),
    "of part of the array": ((3, 70, 2), lambda i: i, 1),
}
UFUNCS = {"sum": np.add, "amax": np.maximum, "prod": np.multiply, None: None}


def draw(case):
    rng = np.random.default_rng(5)
    drawn, view, dim = INDICES[case]
    index = rng.integers(-SHAPE[dim], SHAPE[dim], drawn)
    shape = view(mf.tensor(index)).shape
    return index, view, dim, rng.integers(1, 3, shape).astype(np.float64)


def expected(x, index, values, dim, ufunc):
    x = x.copy()
    places = [*np.indices(index.shape)]
    places[dim] = index
    if ufunc is None:
        x[tuple(places)] = values
    else:
        ufunc.at(x, tuple(places), values)
    return x


@pytest.mark.parametrize("case", INDICES)
@pytest.mark.parametrize(("backend", "reduce"), [("python", None), ("cuda", None), ("python", "prod"), ("cuda", "sum")])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_scatters_equal_those_of_numpy(backend, reduce, case, start):
    index, view, dim, values = draw(case)

    @mf.fuse
    def scatter(index, values):
        x = mf.zeros(*SHAPE, dtype=mf.float64, device=index.device) + start
        x = mf.zeros_like(x) if start == 0 else x
        return x.scatter(dim, view(index), values) if reduce is None else x.scatter_reduce(dim, view(index), values, reduce)

    found = scatter(mf.tensor(index, backend=backend), mf.tensor(values, backend=backend)).numpy()
    whole = view(mf.tensor(index)).numpy()
    np.testing.assert_array_equal(found, expected(np.full(SHAPE, start), whole, values, dim, UFUNCS[reduce]))


@pytest.mark.parametrize("case", INDICES)
def test_gradients_of_gathers_and_scatters(case):
    index, view, dim, values = draw(case)
    i, weights = mf.tensor(index), mf.tensor(values)
    x, v = (mf.tensor(np.random.default_rng(1).standard_normal(s), requires_grad=True) for s in (SHAPE, weights.shape))
    mf.testing.gradcheck(lambda x: mf.gather(x, dim, view(i)) ** 2 * weights, x)
    mf.testing.gradcheck(lambda x, v: mf.scatter_add(x, dim, view(i), v) ** 2, x, v, second=case == "one in each row")


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_indices_out_of_range_are_dropped(backend):
    index = mf.tensor([[3, -4, 1], [0, -1, 7]], backend=backend)
    for operator in (None, add, maximum):
        update = mf.fuse(lambda x, i, v, op=operator: UpdateAlong(op, 1)(x, i, v)[0])
        found = update(mf.ones(2, 3, backend=backend), index, mf.ones(2, 3, backend=backend) * 5)
        value = 6 if operator is add else 5
        assert found.tolist() == [[1, value, 1], [value, 1, value]]


def test_a_batch_of_scatters_is_one_along_another_dim():
    rng = np.random.default_rng(2)
    index, values = rng.integers(0, 6, (3, 4, 70)), rng.standard_normal((3, 4, 70))
    add_rows = lambda i, v: mf.zeros(4, 6, dtype=mf.float64).scatter_add(1, i, v)  # noqa: E731
    for i, dims in ((index, 0), (index[0], (None, 0))):
        found = mf.vmap(add_rows, dims)(mf.tensor(i), mf.tensor(values)).numpy()
        whole = np.broadcast_to(i, index.shape)
        np.testing.assert_allclose(found, expected(np.zeros((3, 4, 6)), whole, values, 2, np.add))


def ops_on_gpu(function, *shapes):
    """Return the names of the functions of a graph after its scatters are lowered for a target that sorts."""
    graph = trace(function, *shapes, dtypes=(mf.float32,) * (len(shapes) - 1) + (mf.int64,))
    nodes = run_pass(lower_gather, graph, sorts_scatters=True)[1].nodes
    return [repr(node.function) for node in nodes]


def test_scatters_of_slices_and_of_numbers_share_one_sort(monkeypatch):
    monkeypatch.setattr(rules, "MIN_COMPARISONS", 0)

    def sums(values, numbers, index):
        totals = values.apply(Full((9,), mf.float32), 0).scatter_add(0, index, numbers)
        rows = totals.reshape(9, 1).expand(9, 2).index_add(0, index, values)
        return rows.scatter_add(0, index[:, None].expand(-1, 2), values)

    ops = ops_on_gpu(sums, (50, 2), (50,), (50,))
    assert ops.count("sort_indices") == 1
    assert (ops.count("scatter_sorted"), ops.count("update_sorted")) == (1, 2)


@pytest.mark.parametrize(("count", "sorts"), [(1, 0), (MAX_COMPARED, 0), (MAX_COMPARED + 1, 1)])
def test_few_indices_in_a_row_are_compared_many_are_sorted(count, sorts):
    add_in_rows = lambda v, i: v.apply(Full((5, 9), mf.float32), 0).scatter_add(1, i, v)  # noqa: E731
    ops = ops_on_gpu(add_in_rows, (5, count), (5, count))
    assert ops.count("sort_indices") == sorts
    assert ("reduce add over dims (2,)" in ops) == (1 < count <= MAX_COMPARED)
    assert not any("full" in op for op in ops), "zeros are added"


def test_an_eager_call_reads_an_expanded_index_once():
    x, index, values = mf.zeros(5, 4), mf.tensor([3, 1, 3]), mf.ones(3, 4)
    expanded = index[:, None].expand(-1, 4)
    with mf.profile() as profile:
        found = x.scatter_add(0, expanded, values), x.gather(0, expanded)
    forms = [event.work.form for event in profile.events]
    assert "index_add of (5, 4), (3,), (3, 4)" in forms
    assert found[0].sum(1).tolist() == [0, 4, 0, 8, 0]
    assert found[1].shape == (3, 4)

"""Selection by rank: the kernels of the cuda backend, and NumPy on hosts, against a stable sort."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.backend import get_device
from minifuse.backends.cuda.sort.select_launches import CudaSelectionLauncher, SelectionProblem
from minifuse.core.dtypes import BY_NAME
from minifuse.core.layout import row_major
from minifuse.ir import selection
from minifuse.ir.selection import INDICES, VALUES, Selection
from minifuse.ir.sort import order_of

from .test_cuda_sort import DTYPES, sample

NAMES = VALUES, INDICES


def select_on_device(x, op, ranks=None, length=1 << 13):
    count = op.count if ranks is None else ranks.shape[op.dim]
    shape = (*x.shape[: op.dim], count, *x.shape[op.dim + 1 :])
    outputs = [mf.zeros(*shape, dtype=x.dtype.name, backend="cuda"), mf.zeros(*shape, dtype=mf.int64, backend="cuda")]
    inputs = [mf.tensor(z, backend="cuda") for z in (x, ranks) if z is not None]
    layouts = [row_major(z.shape) for z in (*outputs, *inputs)]
    problem = SelectionProblem(op, layouts, BY_NAME[x.dtype.name], length)
    CudaSelectionLauncher(get_device(0), problem, layouts)(*[z.address for z in (*outputs, *inputs)])
    return len(problem.plan.launches), [z.numpy() for z in outputs]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_first_elements_are_those_of_a_stable_sort(dtype, descending):
    x, dim, count = sample((3, 40), dtype), 1, 5
    order = order_of(x, dim, descending).take(range(count), dim)
    _, (values, indices) = select_on_device(x, Selection(dim, descending, NAMES, count))
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, dim))


@pytest.mark.parametrize(("size", "expected"), [(65, 2), (300, 3)])
def test_a_long_row_is_selected_by_chunks(size, expected):
    x = sample((2, size), "float32")
    launches, (_, indices) = select_on_device(x, Selection(1, True, NAMES, 20), length=64)
    assert launches == expected
    np.testing.assert_array_equal(indices, order_of(x, 1, True)[:, :20])


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_elements_at_ranks_are_those_of_a_sort(dtype):
    x, ranks = sample((2, 70), dtype), np.array([[0, 30, 69], [7, 7, 68]])
    order = np.take_along_axis(order_of(x, 1, False), ranks, 1)
    _, (values, indices) = select_on_device(x, Selection(1, False, NAMES), ranks)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("shape", [(4, 90), (2, 3, 1001)])
def test_a_host_selects_the_first_elements_of_a_stable_sort(dtype, descending, shape):
    few, many = np.random.default_rng(3).integers(0, 3, shape), np.random.default_rng(3).permutation(np.prod(shape))
    for x in (sample(shape, dtype), few.astype(dtype), many.reshape(shape).astype(dtype)):
        found = Selection(1, descending, (INDICES,), 2).run(x)
        np.testing.assert_array_equal(found, order_of(x, 1, descending)[:, :2])


@pytest.mark.parametrize("descending", [False, True])
def test_a_host_sorts_only_elements_that_are_not_behind_a_bound(descending, monkeypatch):
    x, widths = np.random.default_rng(3).permutation(4000).reshape(2, 2000).astype(np.float32), []
    x[0, 7] = np.nan
    monkeypatch.setattr(selection, "order_of", lambda x, *rest: widths.append(x.shape[-1]) or order_of(x, *rest))
    Selection(1, descending, (INDICES,), 5).run(x)
    assert len(widths) == 1
    assert 5 <= widths[0] < 50


def test_short_rows_many_elements_and_ranks_of_long_rows_are_sorted():
    def refusal(count, n, selected):
        layouts = [row_major((selected,)), row_major((n,)), row_major((selected,))][: 2 + (count is None)]
        return SelectionProblem(Selection(0, False, (INDICES,), count), layouts, BY_NAME["float32"]).refusal

    assert refusal(None, 1 << 13, 2) is None
    assert refusal(256, 1 << 24, 256) is None
    assert "512 elements are sorted" in refusal(4, 512, 4)
    assert "8192 elements" in refusal(None, 1 << 14, 2)
    assert "256 first" in refusal(500, 1 << 13, 500)


@pytest.mark.parametrize("backend", ["python", "cuda"])
def test_gradients_of_selected_elements_are_scattered(backend):
    x = mf.tensor([[1.0, 5.0, 3.0, 5.0], [2.0, 0.0, 1.0, 4.0]], backend=backend, requires_grad=True)
    (mf.topk(x, 2).values.sum() + mf.quantile(x, 0.5, 1).sum() + mf.median(x, 1).values.sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 1.5, 1.5, 1], [1.5, 0, 1.5, 1]])


def test_selections_of_a_batch_are_those_of_each_slice():
    x = mf.tensor(sample((3, 20), "float32").reshape(3, 4, 5), backend="python").nan_to_num()
    y, i = mf.vmap(lambda row: mf.topk(row, 2, 1))(x)
    np.testing.assert_array_equal(y.numpy(), mf.topk(x, 2, 2).values.numpy())
    np.testing.assert_array_equal(i.numpy(), mf.topk(x, 2, 2).indices.numpy())
    np.testing.assert_array_equal(mf.vmap(lambda row: mf.median(row, 1).values)(x).numpy(), mf.median(x, 2).values.numpy())

"""compiler.views_of_reductions.slice_before_reduction: a reduction computes only the elements that are read."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.graph import Graph
from minifuse.compiler.views_of_reductions import slice_before_reduction
from minifuse.core.dtypes import float32
from minifuse.core.operators import add
from minifuse.ir.array_functions import Reduce
from minifuse.ir.graph import Argument, Node

X = Node(Argument(0), (), (5, 9, 1, 6), float32)


def sizes_of_reduced(*outputs):
    """Return how many elements each reduction reads, after the pass."""
    graph = slice_before_reduction(Graph(outputs), PythonBackend())
    return [x.inputs[0].size for x in graph.nodes if isinstance(x.function, Reduce)]


def total(dims, x=X):
    return Reduce(add, dims)(x * 2)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (total((0,))[:, 2:5], 5 * 3 * 6),
        (total((0,)).reshape(9, 6)[1:9:2, 1:], 5 * 4 * 5),
        (total((0, 3)).reshape(1, 9, 1)[:, :4], 5 * 4 * 6),
        (total((1,))[1:2, :, :, 3:], 9 * 3),
        (total((1,)).permute(3, 0, 1, 2)[2:4], 5 * 9 * 2),
        (total((0,)).expand(2, 9, 1, 6)[:, 2:5], 5 * 9 * 6),
    ],
)
def test_only_elements_of_the_slice_are_reduced(value, size):
    assert sizes_of_reduced(value) == [size]


def test_a_reduction_that_is_read_elsewhere_is_not_sliced():
    whole = total((0,))
    assert sizes_of_reduced(whole[:, 2:5], whole) == [X.size]
    assert sizes_of_reduced(whole[:, 2:5] + whole[:, 3:6]) == [X.size]


def test_a_value_that_is_read_elsewhere_is_not_sliced():
    doubled = X * 2
    assert sizes_of_reduced(Reduce(add, (0,))(doubled)[:, 2:5], doubled) == [X.size]


def test_a_reshape_that_merges_dims_is_not_sliced():
    assert sizes_of_reduced(total((0,)).reshape(54)[3:9]) == [X.size]


def test_an_empty_slice_is_not_changed():
    assert sizes_of_reduced(total((0,))[:, 3:3]) == [X.size]


@pytest.mark.parametrize("operator", ["sum", "max", "argmax", "prod"])
def test_results_are_those_of_the_whole_reduction(operator):
    x = np.random.default_rng(3).standard_normal((5, 9, 6))
    reduce = lambda x: getattr(x * 2, operator)(0)[2:7, 1::2] * 3  # noqa: E731
    found = mf.fuse(reduce)(mf.tensor(x)).numpy()
    np.testing.assert_allclose(found, getattr(x * 2, operator)(0)[2:7, 1::2] * 3, 1e-12)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("rows", [7, 40000])
def test_a_slice_that_the_call_returns_has_the_strides_of_the_whole(dim, rows):
    x = mf.ones(rows, 9, 6) if dim == 0 else mf.ones(9, rows, 6)
    reduce = lambda x: (x * 2).sum(dim)[:, 1:4]  # noqa: E731
    assert mf.fuse(reduce)(x).strides == reduce(x).strides == (6, 1)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 3), (3,)])
def test_memory_is_read_in_the_order_of_the_whole(dims):
    (sliced,) = slice_before_reduction(Graph((total(dims)[:2, :4, :, :4],)), PythonBackend()).nodes[-1:]
    while not isinstance(sliced.function, Reduce):
        (sliced,) = sliced.inputs
    assert (sliced.function.dims[-1] == sliced.inputs[0].ndim - 1) == (3 in dims)

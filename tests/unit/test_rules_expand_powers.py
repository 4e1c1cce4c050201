"""compiler.rules.expand_powers: powers with small constant exponents are products."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler.graph import Graph
from minifuse.compiler.rules import expand_powers
from minifuse.core.dtypes import float32
from minifuse.core.operators import pow  # noqa: A004
from minifuse.ir.graph import Argument, Node, Number

X = Node(Argument(0), (), (4,), float32)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 1e-20, 3e12, -3e12, 1.5, -2.25, 1.0, -1.0]


def powers(*outputs):
    """Return the powers that are left in a graph."""
    return [x for x in expand_powers(Graph(outputs), PythonBackend()).nodes if x.function is pow]


@pytest.mark.parametrize("exponent", [3, 4, 3.0, 4.0])
def test_a_small_constant_exponent_is_a_product(exponent):
    assert not powers(X**exponent)


@pytest.mark.parametrize("exponent", [5, -2, 0, 1, 1.5, float("nan"), float("inf"), X, Node(Number(1), (), (), int)])
def test_other_exponents_are_powers(exponent):
    assert len(powers(X**exponent)) == 1


def test_a_graph_without_powers_is_unchanged():
    graph = Graph((X * 3,))
    assert expand_powers(graph, PythonBackend()) is graph


def test_a_long_chain_of_differences_is_an_exponent_like_any_other():
    exponent = Node(Number(1), (), (), int)
    for _ in range(5_000):
        exponent = exponent - 1
    assert len(powers(X**exponent)) == 1


@pytest.mark.sampled(3, each="dtype")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("exponent", [3, 4])
@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_products_have_the_values_of_numpy(exponent, dtype, backend):
    array = np.array(SPECIAL, dtype) if dtype.startswith("float") else np.array([0, 1, -1, 7, -8, 46_341, -70_000], dtype)
    with np.errstate(all="ignore"):
        expected = array**exponent
    found = mf.fuse(lambda x: x**exponent)(mf.tensor(array, backend=backend)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-15)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected.astype(float))].all()


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_gradients_of_powers_contain_no_powers(backend):
    array = np.array([*SPECIAL[3:5], *SPECIAL[-4:]])
    fused = mf.fuse(lambda x: mf.grad(lambda x: mf.grad(lambda x: (x**4).sum())(x).sum())(x))
    np.testing.assert_allclose(fused(mf.tensor(array, backend=backend)).numpy(), 12 * array**2, rtol=1e-14)
    assert "pow" not in fused.source(mf.tensor(array, backend=backend))

"""compiler.narrow_integers: positions have 32 bits if all values fit, and the results do not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.python import PythonBackend
from minifuse.compiler.graph import Graph
from minifuse.compiler.narrow_integers import LIMIT, bounds_of, narrow_integers
from minifuse.core.dtypes import float32, int32, int64
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import maximum, minimum
from minifuse.ir.array_functions import Iota
from minifuse.ir.graph import Argument, Node, literal
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest

INTEGERS = {
    "i + 3": lambda i: i + 3,
    "3 - i": lambda i: 3 - i,
    "i * -5": lambda i: i * -5,
    "-i": lambda i: -i,
    "i // 4": lambda i: i // 4,
    "i % 3": lambda i: i % 3,
    "(i - 5) // 3": lambda i: (i - 5) // 3,
    "minimum(i, 4)": lambda i: minimum(i, 4),
    "maximum(i - 3, 0)": lambda i: maximum(i - 3, 0),
    "where(i < 4, i, -2)": lambda i: mf.where(i < 4, i, -2),
}


@pytest.fixture
def narrowing(monkeypatch):
    """Let the backend `python` narrow integers."""
    monkeypatch.setattr(PythonBackend, "narrows_integers", True)
    with mf.use_backend("python"):
        yield


def positions(size):
    return Node(Iota(size), (), (size,), int64)


def narrowed(*outputs):
    target = PythonBackend()
    target.narrows_integers = True
    return narrow_integers(Graph(outputs), target)


def dtypes(graph):
    return [x.dtype for x in graph.nodes if not x.is_number]


@pytest.mark.parametrize("name", INTEGERS)
def test_results_are_those_of_64_bits(name, narrowing):
    halve = lambda x: INTEGERS[name](mf.arange(9)).to(mf.float64) * x  # noqa: E731
    x = mf.full((9,), 0.5, dtype="float64")
    np.testing.assert_array_equal(mf.fuse(halve)(x).numpy(), halve(x).numpy())


@pytest.mark.parametrize("name", INTEGERS)
@given(size=st.integers(1, 40))
def test_bounds_contain_all_values(name, size):
    node, bounds = INTEGERS[name](positions(size)), {}
    for x in Graph((node,)).nodes:
        if (found := bounds_of(x, bounds)) is not None:
            bounds[x] = found
    low, high = bounds[node]
    values = INTEGERS[name](mf.arange(size, backend="python")).numpy()
    assert low <= values.min()
    assert values.max() <= high
    assert "%" in name or "where" in name or (low, high) == (values.min(), values.max())


def test_values_that_do_not_fit_keep_64_bits():
    largest = positions(2**16) * 2**15  # below 2**31
    assert dtypes(narrowed(largest.to(float32))) == [int32, int32, float32]
    assert dtypes(narrowed((largest + LIMIT).to(float32))) == [int64, int64, int64, float32]
    assert dtypes(narrowed((positions(4) < LIMIT).to(float32)))[0] is int64
    assert dtypes(narrowed((positions(4) < LIMIT - 1).to(float32)))[0] is int32


def test_results_keep_their_dtype():
    i = positions(5)
    assert narrowed(i).roots == (i,)
    assert narrowed(i * 2).roots[0].dtype is int64


def test_values_that_depend_on_an_argument_keep_64_bits():
    x = Node(Argument(0), (), (5,), int64)
    assert set(dtypes(narrowed((positions(5) + x).to(float32)))) == {int64, float32}
    assert int32 not in dtypes(narrowed((positions(5) == x).to(float32)))


def test_no_value_is_widened_again():
    i = positions(5)
    twice, x = i * 2, Node(Argument(0), (), (5,), int64)
    assert dtypes(narrowed(twice.to(float32), twice + x)).count(int32) == 0
    assert dtypes(narrowed((i < 3).to(float32), twice)).count(int32) == 0


def test_a_divisor_that_may_be_zero_has_no_bounds():
    i = positions(5)
    assert bounds_of(i // i, {i: (0, 4)}) is None
    assert bounds_of(i % (i - 9), {i: (0, 4), i - 9: (-9, -5)}) is None
    assert bounds_of(i // literal(2, int64), {i: (0, 4), literal(2, int64): (2, 2)}) == (0, 2)


@pytest.mark.parametrize(("stride", "bits"), [(1, 32), (2**20, 32), (2**29, 64), (-(2**29), 64)])
def test_a_kernel_has_64_bit_indices_only_if_a_position_needs_them(stride, bits):
    kernel = Kernel((Load(0, float32),), ())
    nest = LoopNest((5, 7), (), [row_major((5, 7)), Layout((5, 7), (stride, 1), 0)])
    found = {kind for name, kind in generate_kernel(kernel, nest).parameters if name.startswith("n") or "_" in name}
    assert found == {f"i{bits}"}

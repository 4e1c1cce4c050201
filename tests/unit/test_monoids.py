"""ir.monoid and ir.monoids: reductions with several states, on every backend, by one sweep and by their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import minifuse as mf
from minifuse.backends.registry import backends, get_backend
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import BY_NAME, float32, float64, int32, int64
from minifuse.core.errors import GradientError
from minifuse.core.layout import row_major
from minifuse.core.operators import add, gt, maximum, minimum, where
from minifuse.ir.array_functions import Reduce
from minifuse.ir.kernel_ir import Kernel, Load, ReduceExpr, distinct_reductions, reduce_expr
from minifuse.ir.monoid import Monoid
from minifuse.ir.monoids import FIRST_EXTREME, index_dtype
from minifuse.ir.reference import run_step
from minifuse.ir.steps import Step
from tests.examples import share
from tests.nested_steps import NUMBERS, nested_step

every_backend = pytest.mark.parametrize("name", backends())
VALUES = st.sampled_from([-np.inf, -2.5, -1.0, 0.0, 1.0, 3.5, np.inf, np.nan])
INDICES = st.integers(0, 4)
SHAPES = [(1, 1), (5, 7), (3, 131), (131, 3), (2, 65), (1, 1031), (17, 300), (2, 3, 67), (67, 2, 3)]
ELEMENTS = {
    "f": st.floats(-8, 8, width=16) | st.just(np.nan) | st.just(-np.inf),
    "i": st.integers(-4, 4),
    "b": st.booleans(),
}


def combine_peaks(a, b):
    (x, total), (y, other) = a, b
    tie = where((x >= y) & (y >= x), total + other, where(gt(x, y), total, other))
    return maximum(x, y), tie


PEAKS = Monoid(("peak", "peak_sum"), (-np.inf, 0.0), combine_peaks)


# The entries


@given(st.tuples(VALUES, INDICES), st.tuples(VALUES, INDICES), st.tuples(VALUES, INDICES))
def test_the_first_extreme_is_a_commutative_monoid(a, b, c):
    for monoid in FIRST_EXTREME.values():
        combine, one = (
            monoid.combine,
            tuple(state.identity_for(kind) for state, kind in zip(monoid.states, (float64, int64), strict=True)),
        )
        np.testing.assert_equal(combine(a, b), combine(b, a))
        np.testing.assert_equal(combine(combine(a, b), c), combine(a, combine(b, c)))
        np.testing.assert_equal(combine(one, a), a)


def test_a_combination_is_traced_once_for_each_list_of_dtypes():
    monoid = FIRST_EXTREME[maximum]
    assert monoid.expressions((float32, int32)) is monoid.expressions([float32, int32])
    assert [e.dtype for e in monoid.expressions((float64, int64))] == [float64, int64]


def test_an_index_has_32_bits_if_that_is_enough():
    assert index_dtype(2**31 - 1) is int32
    assert index_dtype(2**31) is int64


# Expressions


def test_all_states_of_a_reduction_are_found():
    x, i = Load(0, float32), Load(1, int32)
    top, place = (reduce_expr(state, (x, i)) for state in FIRST_EXTREME[maximum].states)
    assert (top.dtype, place.dtype) == (float32, int32)
    assert top.states == place.states == (top, place)
    assert (top.identity, place.identity) == (-np.inf, 2**31 - 1)
    total = reduce_expr(add, x)
    assert total.states == (total,)
    assert distinct_reductions([place, total, top]) == [place, total]
    assert Kernel((), (place,)).has_states
    assert not Kernel((), (total,)).has_states


# Steps, compared with the reference


def peaks_step(shape, dims, dtype, has_points):
    """A step with all states of a monoid, a sum of one state, and if `has_points` values of each point."""
    x, y = Load(0, dtype), Load(1, dtype)
    peak, total = (reduce_expr(state, (x, y)) for state in PEAKS.states)
    rows = (peak, total * 2.0, reduce_expr(add, x))
    points = (x - peak, y * total) if has_points else ()
    row_shape = tuple(1 if d in dims else n for d, n in enumerate(shape))
    outputs = [row_major(shape)] * len(points) + [row_major(row_shape).expand(*shape)] * len(rows)
    slots = [(2 + k, layout) for k, layout in enumerate(outputs)]
    return Step(Kernel(points, rows), shape, dims, slots, [(0, row_major(shape)), (1, row_major(shape))])


def memory_of(step, seed):
    random = np.random.default_rng(seed)
    operands = [random.integers(-5, 5, layout.size) for _, layout in step.inputs]
    found = dict(enumerate(x.astype(step.kernel.outputs[0].dtype.numpy) for x in operands))
    outputs = [
        (slot, layout.span()[1], e.dtype.numpy) for (slot, layout), e in zip(step.outputs, step.kernel.outputs, strict=True)
    ]
    return found | {slot: np.full(n, -9, dtype) for slot, n, dtype in outputs}


def run(step, memory, backend):
    addresses = [memory[slot].ctypes.data for slot, _ in (*step.outputs, *step.inputs)]
    backend.compile(step).load()(*addresses)
    return memory


@pytest.mark.sampled(6)
@every_backend
@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 67), (67, 5), (3, 130), (2, 3, 31)])
def test_a_new_monoid_agrees_with_the_reference(name, shape, dtype, has_points):
    for dims in [(0,), (len(shape) - 1,), tuple(range(len(shape)))]:
        step = peaks_step(shape, dims, BY_NAME[dtype], has_points)
        expected, got = memory_of(step, 1), memory_of(step, 1)
        run_step(step, expected)
        run(step, got, get_backend(name))
        for slot in expected:
            np.testing.assert_allclose(got[slot], expected[slot], rtol=1e-6)


@every_backend
def test_states_of_no_elements_are_identities(name):
    step = peaks_step((3, 0), (1,), float32, False)
    memory = memory_of(step, 1) | {slot: np.full(3, -9, "f4") for slot in (2, 3, 4)}
    got = run(step, memory, get_backend(name))
    assert [got[slot].tolist() for slot in (2, 3, 4)] == [[-np.inf] * 3, [0.0] * 3, [0.0] * 3]


@every_backend
@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(20))
def test_nested_reductions_with_states_agree_with_the_reference(name, seed):
    program = nested_step(1000 + seed, has_states=True, sizes=(0, 1, 2, 3, 7) if seed % 2 else (1, 2, 3, 5))
    if get_backend(name).supports(program.step):
        pytest.skip(f"{name} has no such nested reductions")
    expected = {slot: np.copy(a) for slot, a in program.memory.items()}
    run_step(program.step, expected, NUMBERS)
    got = program.run(get_backend(name))
    for slot in expected:
        np.testing.assert_allclose(got[slot], expected[slot], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["parallel", "cuda"])
def test_two_runs_give_the_same_bits(name):
    step = peaks_step((7, 4099), (1,), float32, True)
    memory = [memory_of(step, 3) for _ in range(2)]
    for slot in (0, 1):
        memory[0][slot][:] = memory[1][slot][:] = np.random.default_rng(slot).random(7 * 4099).round(2)
    first, second = (run(step, x, get_backend(name)) for x in memory)
    assert all(first[slot].tobytes() == second[slot].tobytes() for slot in first)


# Positions


@pytest.fixture(params=[False, True], ids=["one sweep", "definition"])
def either_way(request, monkeypatch):
    """Run a test with the monoid, and with its definition."""
    for name in backends():
        monkeypatch.setattr(get_backend(name), "keeps_rows", lambda step: request.param)
    return request.param


def position(x, method, dim, backend):
    tensor = mf.tensor(x, backend=backend)
    plan = Plan(lambda t: getattr(t, method)(dim), (tensor,))
    return plan, plan.run(tensor).numpy()


@every_backend
@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_positions_equal_numpy(either_way, name, shape, dtype):
    random = np.random.default_rng(0)
    x = random.integers(-3, 3, shape).astype(dtype)
    for method in ("argmax", "argmin"):
        for dim in (None, 0, -1):
            plan, got = position(x, method, dim, name)
            np.testing.assert_array_equal(got, getattr(x, method)(dim))
            found = [e for step in plan.steps for e in step.kernel.find_all(ReduceExpr)]
            assert any(len(e.inputs) > 1 for e in found) == (not either_way)


@every_backend
@share(0.3)
@given(data=st.data())
def test_any_array_gives_the_position_that_numpy_gives(name, data):
    kind = data.draw(st.sampled_from("fib"))
    shape = data.draw(st.sampled_from([(1,), (3, 7), (2, 3, 5), (70,)]))
    x = data.draw(arrays.arrays({"f": "f4", "i": "i8", "b": "?"}[kind], shape, elements=ELEMENTS[kind]))
    for method in ("argmax", "argmin"):
        for dim in (None, *range(x.ndim)):
            _, got = position(x, method, dim, name)
            np.testing.assert_array_equal(got, getattr(x, method)(dim))


@every_backend
def test_rows_of_minus_infinity_and_nan(either_way, name):
    x = np.full((4, 300), -np.inf, "f4")
    x[1, 7:9], x[2, 299], x[3, 5], x[3, 3] = np.nan, 0, np.inf, np.nan
    assert position(x, "argmax", 1, name)[1].tolist() == [0, 7, 299, 3]
    assert position(x, "argmin", 1, name)[1].tolist() == [0, 7, 0, 3]


def test_long_rows_and_columns_are_split():
    random = np.random.default_rng(0)
    for shape, dim in (((300_007,), 0), ((3, 100_003), 1), ((100_003, 3), 0), ((5003, 67), 0), ((70_001, 11), None)):
        x = random.integers(0, 1000, shape).astype("f4")
        _, got = position(x, "argmax", dim, "parallel")
        np.testing.assert_array_equal(got, x.argmax(dim))


def test_the_value_and_its_index_share_one_sweep():
    def largest(x):
        return x.max(0), x.argmax(0)

    plan = Plan(largest, (mf.zeros(70_001, 5),))
    assert "argmax" in str([str(e.operator) for step in plan.steps for e in step.kernel.find_all(ReduceExpr)])
    x = np.random.default_rng(0).random((70_001, 5)).astype("f4")
    top, place = mf.fuse(largest)(mf.tensor(x))
    np.testing.assert_array_equal(top.numpy(), x.max(0))
    np.testing.assert_array_equal(place.numpy(), x.argmax(0))


def test_a_position_has_no_gradient():
    x = mf.tensor(np.random.default_rng(0).random((70_001, 3)), requires_grad=True)
    (x[x.argmax(0)[0].item()] * 2).sum().backward()
    assert x.grad.numpy().sum() == 6


@pytest.mark.parametrize("wrap", [lambda f: f, mf.fuse])
def test_a_reduction_without_reduce_vjp_refuses_its_gradient(wrap):
    larger = Monoid(("larger",), (-np.inf,), maximum).states[0]
    x = mf.tensor([1.0, 2.0], backend="python", requires_grad=True)
    f = wrap(lambda x: x.apply(Reduce(larger, (0,)), x).sum() + x.sum())
    with pytest.raises(GradientError, match="the reduction larger has no gradient; write one as reduce_vjp="):
        f(x).backward()
    with mf.no_grad():
        assert f(x).item() == 5
    assert f(x.detach()).item() == 5


def test_an_operator_of_the_table_reduces_the_minimum_too():
    assert FIRST_EXTREME[minimum].states[1].name == "argmin"

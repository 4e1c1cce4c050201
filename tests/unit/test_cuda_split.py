"""backends.cuda.split: reductions with few rows in several launches, against NumPy."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen import gpu_schedule
from minifuse.backends.cuda import split
from minifuse.backends.cuda.split import SplitLauncher
from minifuse.compiler.plan import Plan
from minifuse.core.operators import add
from minifuse.ir.gather import Gather, Scatter

from ..cuda.simulated import simulated

BACKEND = simulated()
FUNCTIONS = {
    "sum": lambda x: x.sum(1),
    "max": lambda x: x.max(1),
    "sum of all": lambda x: x.sum(),
    "var": lambda x: x.var(1),
    "softmax": lambda x: x.softmax(1),
    "several": lambda x: (x.sum(1) / (x * x).sum(1), x - x.max(1, True)),
    "columns": lambda x: x.T.sum(0),
    "argmax": lambda x: x.argmax(1),
    "argmin of all": lambda x: x.argmin(),
    "argmax of columns": lambda x: x.T.argmax(0),
    "argmax and sum": lambda x: (x.argmax(1), x.sum(1), x - x.max(1, True)),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Short rows are split: the interpreter takes long for long ones."""
    monkeypatch.setattr(gpu_schedule, "MIN_POINTS_TO_SPLIT", 256)
    monkeypatch.setattr(gpu_schedule, "MIN_STEPS_PER_CHUNK", 1)
    monkeypatch.setattr(gpu_schedule, "MAX_ROW_BYTES", 4)


def bound(function, *tensors):
    (step,) = Plan(function, tensors).steps
    return BACKEND.compile(step).load()


def check(function, a, **tolerance):
    x = mf.tensor(a, backend=BACKEND)
    launcher = bound(function, x)
    assert isinstance(launcher, SplitLauncher)
    exact = function(mf.tensor(a.astype("f8") if a.dtype == "f4" else a))
    found = Plan(function, (x,)).run(x)
    pairs = zip(found, exact, strict=True) if isinstance(found, tuple) else [(found, exact)]
    for y, right in pairs:
        np.testing.assert_allclose(y.numpy(), right.numpy(), **tolerance)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(1, 5003), (2, 2503), (3, 4099)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions_of_few_rows_equal_numpy(name, shape):
    a = np.random.default_rng(1).uniform(0.5, 2, shape).astype("f4")
    check(FUNCTIONS[name], a, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_other_types(dtype):
    a = np.random.default_rng(2).integers(-99, 99, (2, 5003)).astype(dtype)
    check(lambda x: x.sum(1), a, rtol=1e-12)
    check(lambda x: x.max(1), a, rtol=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [0, 1, 5002, None])
def test_bools(place):
    a = np.zeros((2, 5003), bool)
    if place is not None:
        a[1, place] = True
    check(lambda x: x.any(1), a)
    check(lambda x: x.all(1), ~a)


def test_nan_and_infinity():
    a = np.random.default_rng(3).uniform(0.5, 2, (4, 5003)).astype("f4")
    a[0, 4999], a[1, ::7], a[2] = np.nan, -np.inf, -np.inf
    with np.errstate(all="ignore"):
        check(lambda x: x.max(1), a)
        check(lambda x: x.sum(1), a, rtol=1e-5)


def test_segment_sums_are_not_split():
    g, index = mf.ones(700, 70, backend=BACKEND), mf.zeros(700, dtype="int64", backend=BACKEND)

    def summed(g, index):
        return g.apply(Scatter(add, 0, 69), g, index)

    assert not isinstance(bound(summed, g, index), SplitLauncher)


def test_a_split_kernel_loads_at_indices():
    """The sums of a gathered and a shifted array have operands without a place in the loops."""
    random = np.random.default_rng(8)
    table, x = (random.integers(-9, 9, shape).astype("f4") for shape in ((6, 3), (9000, 3)))
    index = random.integers(0, 6, 9000)
    tensors = [mf.tensor(a, backend=BACKEND) for a in (table, index, x)]

    def function(table, index, x):
        return (table.apply(Gather(0), table, index) * x * 2.0).sum(0)

    assert isinstance(bound(function, *tensors), SplitLauncher)
    np.testing.assert_array_equal(mf.fuse(function)(*tensors).numpy(), (table[index] * x * 2).sum(0))


@pytest.mark.parametrize("name", ["sum", "argmax"])
def test_no_launch_has_a_hazard(name):
    a = np.random.default_rng(4).uniform(0.5, 2, (2, 5003)).astype("f4")
    x = mf.tensor(a, backend=BACKEND)
    (step,) = Plan(FUNCTIONS[name], (x,)).steps
    launcher = BACKEND.compile(step).load()
    out = np.zeros(2, "f4" if name == "sum" else "i8")
    positions = [0] * (len(step.inputs) - 1)  # of the index along a row
    plans = launcher.plans(out.ctypes.data, x.address, *positions)
    assert len(plans) == 2
    for plan in plans:
        assert simt.trace(plan, limit=None).hazards() == []
    np.testing.assert_allclose(out, getattr(a.astype("f8"), name)(1), rtol=1e-5)


def test_a_new_size_needs_no_new_text():
    texts = set()
    for n in (50_021, 50_023):
        (step,) = Plan(lambda x: x.sum(1), (mf.zeros(2, n, backend=BACKEND),)).steps
        kernel = step.kernel
        plan = split.SplitPlan(step, kernel, 132)
        texts.add(tuple(part.generate().text for part in plan.parts))
    assert len(texts) == 1


def test_texts_of_a_split_sum(golden):
    (step,) = Plan(lambda x: x.sum(1), (mf.zeros(2, 50_021, backend=BACKEND),)).steps
    plan = split.SplitPlan(step, step.kernel, 132)
    golden("\n".join(part.generate().text for part in plan.parts))


@pytest.mark.parametrize("shape", [(3, 40, 257), (5, 37, 1031), (33, 7, 130)])
def test_reductions_of_several_axes_equal_numpy(shape):
    random = np.random.default_rng(3)
    x, y = random.uniform(0.5, 2, shape), random.uniform(0.5, 2, (shape[1], 1))
    a, b = [mf.tensor(array.astype("f4"), backend=BACKEND) for array in (x, y)]
    launcher = bound(lambda a, b: (a * b).sum(), a, b)
    assert isinstance(launcher, SplitLauncher)
    np.testing.assert_allclose(mf.fuse(lambda a, b: (a * b).sum())(a, b).numpy(), (x * y).sum(), rtol=1e-5)


def test_two_axes_are_split_if_one_has_too_few_steps():
    a, b = mf.zeros(32, 96, 9797, backend=BACKEND), mf.zeros(96, 1, backend=BACKEND)
    (step,) = Plan(lambda a, b: (a * b).sum(), (a, b)).steps
    found = split.SplitPlan(step, step.kernel, 132).parts[0].split
    assert len(found.parts) == 2
    for axis, chunks, length in found.parts:
        assert (chunks - 1) * length < step.loop_nest().sizes[axis] <= chunks * length


def test_statistics_have_fewer_axes_than_the_points_that_need_them():
    def group_norm(x, weight):
        groups = x.reshape(2, 2, 2 * 89 * 101)
        centered = groups - groups.mean(2, keepdim=True)
        scaled = centered / (centered * centered).mean(2, keepdim=True).sqrt()
        return scaled.reshape(2, 4, 89, 101) * weight

    random = np.random.default_rng(6)
    arrays = random.standard_normal((2, 4, 89, 101)), random.standard_normal((4, 1, 1))
    inputs = [mf.tensor(x.astype("f4"), backend=BACKEND) for x in arrays]
    assert isinstance(bound(group_norm, *inputs), SplitLauncher)
    expected = group_norm(*map(mf.tensor, arrays)).numpy()
    np.testing.assert_allclose(mf.fuse(group_norm)(*inputs).numpy(), expected, rtol=2e-4, atol=2e-5)


def test_texts_of_a_split_of_two_axes(golden):
    a, b = mf.zeros(32, 96, 9797, backend=BACKEND), mf.zeros(96, 1, backend=BACKEND)
    (step,) = Plan(lambda a, b: (a * b).sum(), (a, b)).steps
    plan = split.SplitPlan(step, step.kernel, 132)
    golden("\n".join(part.generate().text for part in plan.parts))

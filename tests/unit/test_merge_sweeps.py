"""compiler.reduction_rules.merge_sweeps: softmax statistics and variances in one sweep, on the backends that want it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen import gpu_schedule
from minifuse.backends.cuda.split import SplitLauncher
from minifuse.backends.registry import backends, get_backend
from minifuse.compiler.plan import Plan
from minifuse.core.operators import exp
from minifuse.ir.kernel_ir import ReduceExpr
from minifuse.ir.monoids import ONLINE_EXP_SUM

from ..cuda.simulated import simulated
from .test_cuda_rows_in_shared import expected, operands, reads

BACKEND = simulated()
every_backend = pytest.mark.parametrize("name", backends())
NUMBERS = st.sampled_from([-np.inf, -2.5, 0.0, 1.0, 3.5, np.inf, np.nan])


def softmax(x):
    return x.softmax(1)


def logsumexp(x):
    return x.logsumexp(1)


def entropy(x):
    """The negative entropy, which needs the row again after both statistics."""
    p = x.log_softmax(1)
    return (p.exp() * p).sum(1)


def statistics(x):
    """Both states are outputs, and dims are dropped before they are used."""
    top = x.max(1)
    return top, (x - top.unsqueeze(1)).exp().sum(1)


def normalized(x):
    """The distances from a mean, of which there is a maximum."""
    d = x - x.mean(1, True)
    return d.logsumexp(1) + (d * d).mean(1)


def column_statistics(x):
    return x.logsumexp(0), x.std(0, keepdim=True), x.mean(0)


def all_statistics(x):
    return x.logsumexp(), x.var(correction=0), x.std()


def layer_norm(x):
    return (x - x.mean(1, True)) / (x.var(1, 0, True) + 1e-5).sqrt()


FUNCTIONS = [softmax, logsumexp, entropy, statistics, normalized, column_statistics, all_statistics, layer_norm]


@pytest.fixture
def no_row_is_kept(monkeypatch):
    """Every backend merges sweeps, as if no row fitted in registers."""
    for backend in (BACKEND, *map(get_backend, backends())):
        monkeypatch.setattr(backend, "merges_sweeps", True)
        monkeypatch.setattr(backend, "keeps_rows", lambda step: False)


@pytest.fixture
def long_rows(monkeypatch):
    """Registers hold one element for each thread, and rows of some hundred elements are split over the grid."""
    monkeypatch.setattr(gpu_schedule, "MIN_POINTS_TO_SPLIT", 256)
    monkeypatch.setattr(gpu_schedule, "MIN_STEPS_PER_CHUNK", 1)
    monkeypatch.setattr(gpu_schedule, "MAX_ROW_BYTES", 1)


def run(function, x, backend):
    """Return the results in float64, and the names of all states that the plan reduces."""
    tensor = mf.tensor(x, backend=backend)
    plan = Plan(function, (tensor,))
    with np.errstate(all="ignore"):
        found = plan.run(tensor)
    names = {e.operator.name for step in plan.steps for e in step.kernel.find_all(ReduceExpr)}
    return [y.numpy() for y in (found if isinstance(found, tuple) else (found,))], names


def exact(function, x):
    """Return the results of the definition in float64, by two sweeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(get_backend("python"), "merges_sweeps", False)
        found = function(mf.tensor(x.astype("f8"), backend="python"))
    return [y.numpy() for y in (found if isinstance(found, tuple) else (found,))]


# The entry


def test_the_target_is_asked_once_for_all_rows_of_one_shape(no_row_is_kept, monkeypatch):
    asked = []
    monkeypatch.setattr(BACKEND, "keeps_rows", lambda step: asked.append(step.shape))
    Plan(lambda x: (logsumexp(x), logsumexp(x * 2), x.var(1), logsumexp(x[:, 1:])), [mf.zeros(3, 40, backend=BACKEND)])
    assert sorted(asked) == [(3, 39), (3, 40)]


@given(*[st.tuples(NUMBERS, st.sampled_from([1.0, 2.0]))] * 3)
def test_online_sums_are_a_commutative_monoid(a, b, c):
    combine = ONLINE_EXP_SUM[exp].combine
    with np.errstate(all="ignore"):
        np.testing.assert_equal(combine(a, b), combine(b, a))
        np.testing.assert_allclose(combine(combine(a, b), c), combine(a, combine(b, c)), rtol=1e-12)
        identity = tuple(state.identity for state in ONLINE_EXP_SUM[exp].states)
        if not np.isnan(a[0]):
            np.testing.assert_equal(combine(identity, a), a)


# Equal results


@pytest.mark.sampled(8, each="function")
@every_backend
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_sweep_agrees_with_the_definition(no_row_is_kept, name, function, dtype):
    for shape in [(1, 1), (5, 67), (67, 5), (3, 131)]:
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype) * 3
        x[0] += np.arange(shape[1]) / 20  # the largest elements are the last ones
        found, names = run(function, x, name)
        for y, right in zip(found, exact(function, x), strict=True):
            np.testing.assert_allclose(y, right, rtol=3e-5 if dtype == "float32" else 1e-12, atol=1e-5)
        if function in (softmax, logsumexp, statistics):
            assert names == {"online_max", "online_exp_sum"}


@pytest.mark.sampled(5, each="function")
@pytest.mark.parametrize("shape", [(1, 1031), (3, 523), (2, 1028), (131, 61), (700, 13)])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_split_rows_and_columns_agree_with_the_definition(long_rows, function, shape):
    x = np.random.default_rng(1).standard_normal(shape).astype("f4")
    for y, right in zip(run(function, x, BACKEND)[0], exact(function, x), strict=True):
        np.testing.assert_allclose(y, right, rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("function", [softmax, logsumexp])
def test_few_long_rows_are_reduced_by_two_launches(long_rows, function):
    x = mf.tensor(np.random.default_rng(1).standard_normal((2, 1031)).astype("f4"), backend=BACKEND)
    (step,) = Plan(function, (x,)).steps
    launcher = BACKEND.compile(step).load()
    assert isinstance(launcher, SplitLauncher)
    assert len(launcher.launchers) == 2 + (function is softmax)  # a launch of its own computes the points


@every_backend
def test_infinity_and_nan_as_in_two_sweeps(no_row_is_kept, name):
    x = operands("x", (8, 70))[0]
    x[1, 7], x[2, 69], x[3, 30], x[4, ::3] = np.nan, np.inf, -np.inf, -np.inf
    x[5], x[6, 1:] = -np.inf, -np.inf
    x[7, 3], x[7, 65] = np.inf, -np.inf
    for function in (softmax, logsumexp, statistics, layer_norm):
        with np.errstate(all="ignore"):
            right = exact(function, x)
        for y, z in zip(run(function, x, name)[0], right, strict=True):
            np.testing.assert_allclose(y, z, rtol=2e-5, atol=2e-5)


@every_backend
def test_rows_without_elements(no_row_is_kept, name):
    assert run(lambda x: x.var(1, 0), np.zeros((2, 0), "f4"), name)[0][0].shape == (2,)
    assert run(softmax, np.zeros((0, 5), "f4"), name)[0][0].shape == (0, 5)


def test_integers_are_converted_before_they_are_reduced(no_row_is_kept):
    x = np.random.default_rng(0).integers(-9, 9, (3, 70))
    for function in (softmax, lambda x: x.var(1)):
        found, _ = run(function, x, BACKEND)
        np.testing.assert_allclose(found[0], exact(function, x)[0], rtol=1e-6)


def test_fast_exponentials_are_online_sums_too(no_row_is_kept):
    x = operands("x", (3, 257))[0]
    tensor = mf.tensor(x, backend=BACKEND)
    with mf.use_fast_math():
        (step,) = Plan(softmax, (tensor,)).steps
        text = BACKEND.compile(step).load().text.text
        found = Plan(softmax, (tensor,)).run(tensor).numpy()
    assert "combine(" in text
    assert "fast_exp(" in text
    assert " exp(" not in text
    np.testing.assert_allclose(found, expected(softmax, [x]), rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("function", [softmax, logsumexp, lambda x: x.var(1), lambda x: x.std(0), layer_norm])
def test_gradients_agree_with_those_of_two_sweeps(no_row_is_kept, function, monkeypatch):
    x, g = operands("xx", (5, 67))
    gradients = []
    for merges in (True, False):
        monkeypatch.setattr(BACKEND, "merges_sweeps", merges)
        tensor = mf.tensor(x, backend=BACKEND, requires_grad=True)
        y = mf.fuse(function)(tensor)
        (y * mf.tensor(g, backend=BACKEND)[tuple(slice(n) for n in y.shape)] if y.ndim > 1 else y).sum().backward()
        gradients.append(tensor.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-5)


# The errors of variances


@pytest.mark.parametrize("case", ["normal", "outlier first", "large mean", "larger mean", "constant"])
def test_errors_of_a_variance_are_at_most_twice_those_of_two_sweeps(no_row_is_kept, case, monkeypatch):
    n, errors = 4099, {}
    x = np.random.default_rng(5).standard_normal((n, 6))
    x += {"large mean": 1e4, "larger mean": 1e6}.get(case, 0)
    x = np.full_like(x, 1 / 3) if case == "constant" else x
    x[0] = 1e6 if case == "outlier first" else x[0]
    x = x.astype("f4")
    right = x.astype("f8").var(0)
    for merges in (True, False):
        monkeypatch.setattr(BACKEND, "merges_sweeps", merges)
        (found,), _ = run(lambda x: x.var(0, 0), x, BACKEND)
        assert (found >= 0).all()
        errors[merges] = np.abs(found - right).max()
    rounding = 8 * np.finfo(np.float64).eps * np.square(x, dtype="f8").mean()  # of sums of squares in float64
    assert errors[True] <= 2 * errors[False] + 1e-7 * right.max() + rounding + 1e-16


# Where sweeps are merged


def states_of(function, *shape):
    """Return the operators that a plan for the GPU reduces with, for an array without memory of its own."""
    x = mf.zeros(1, backend=BACKEND).expand(*shape)
    return {e.operator.name for step in Plan(function, (x,)).steps for e in step.kernel.find_all(ReduceExpr)}


def test_rows_that_fit_in_registers_have_two_sweeps():
    one, two = {"online_max", "online_exp_sum"}, {"maximum", "add"}
    for shape, names in {(4096, 1000): two, (4096, 16_384): two, (4096, 20_001): one, (4096, 50_257): one}.items():
        assert states_of(softmax, *shape) == names, shape
    for shape, names in {(4096, 50_257): two, (30_000, 777): one, (100_000, 5000): one}.items():
        assert states_of(lambda x: x.softmax(0), *shape) == names, shape
    assert states_of(softmax, 3, 1_000_000) == one


def test_a_backend_that_does_not_ask_for_it_has_two_sweeps():
    for name in ("python", "parallel"):
        x = mf.zeros(1, backend=name).expand(3, 100_003)
        found = [e for step in Plan(softmax, (x,)).steps for e in step.kernel.find_all(ReduceExpr)]
        assert all(e.operator.name in ("maximum", "add") for e in found)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x - x.max(1, True)).sum(1),
        lambda x: (x - x.min(1, True)).exp().sum(1),
        lambda x: ((x * 2) - x.max(1, True)).exp().sum(1),
        lambda x: (x - x.max(1, True)).exp().max(1),
        lambda x: (x - x.max(0, True)).exp().sum(1),
        lambda x: ((x - x.sum(1, True) / 3) ** 2).sum(1),
        lambda x: ((x - x.mean(0, True)) ** 2).sum(1),
        lambda x: ((x - x.mean(1, True)) * x).sum(1),
    ],
)
def test_other_reductions_are_left_alone(no_row_is_kept, function):
    x = operands("x", (40, 40))[0]
    found, names = run(function, x, BACKEND)
    assert names <= {"add", "maximum", "minimum"}
    tensor = mf.tensor(x, backend=BACKEND)
    sums = [e for step in Plan(function, (tensor,)).steps for e in step.kernel.find_all(ReduceExpr)]
    assert all(e.dtype.name == "float32" for e in sums)
    np.testing.assert_allclose(found[0], exact(function, x)[0], rtol=2e-5, atol=2e-5)


def test_one_sweep_reads_a_row_once_for_both_reductions(no_row_is_kept, monkeypatch):
    monkeypatch.setattr(gpu_schedule, "MAX_ROW_BYTES", 1)
    monkeypatch.setattr(gpu_schedule, "MIN_POINTS_TO_SPLIT", 1 << 30)
    for function, length in ((softmax, 2053), (logsumexp, 2053), (softmax, 4100), (logsumexp, 4100)):
        x = mf.tensor(operands("x", (2, length))[0], backend=BACKEND)
        (step,) = Plan(function, (x,)).steps
        out = np.full((2, length), np.nan, "f4")
        launch = BACKEND.compile(step).load().plans(out.ctypes.data, x.address, *map(float, step.numbers))[0]
        trace = simt.trace(launch, limit=None)
        assert trace.hazards() == []
        assert set(reads(trace, "in0").tolist()) == {2 if function is softmax else 1}


# Selected elements


def cross_entropy(x, target):
    return mf.nn.cross_entropy(x, target, reduction="none")


@pytest.mark.parametrize("target", [[0, 299, 7, 64, 128, 255], [-1, 300, 7, 64, -100, 1 << 40]])
def test_a_selected_element_is_reduced_in_the_same_sweep(no_row_is_kept, target, monkeypatch):
    x, target = operands("x", (6, 300))[0], np.array(target)
    x[2, 5] = x[3, 64] = np.inf
    monkeypatch.setattr(get_backend("python"), "merges_sweeps", False)
    found = {}
    for backend in (BACKEND, "python"):
        tensors = [mf.tensor(a, backend=backend) for a in (x, target)]
        with np.errstate(all="ignore"):
            found[backend] = mf.fuse(cross_entropy)(*tensors).numpy()
    np.testing.assert_allclose(found[BACKEND], found["python"], rtol=1e-5, atol=1e-5)


def test_cross_entropy_of_long_rows_has_one_sweep():
    x = mf.zeros(600, 50_257, backend=BACKEND)
    (step,) = Plan(cross_entropy, (x, mf.zeros(600, dtype="int64", backend=BACKEND))).steps
    reductions = step.kernel.find_all(ReduceExpr)
    assert len(reductions) == 3
    assert not any(any(isinstance(x, ReduceExpr) for x in e.inputs) for e in reductions)
    assert BACKEND.compile(step).load().text.text.count("for i1 in range(") == 1


def test_a_maximum_with_a_gradient_is_compared_bit_by_bit(no_row_is_kept):
    """It is computed before all else, so it is left alone."""
    x = operands("x", (5, 67))[0]
    tensor = mf.tensor(x, backend=BACKEND, requires_grad=True)
    mf.fuse(lambda x: (x - x.max(1, True)).exp().sum())(tensor).backward()
    e = np.exp(x - x.max(1, keepdims=True))
    right = e - np.where(e == 1, e.sum(1, keepdims=True), 0)
    np.testing.assert_allclose(tensor.grad.numpy(), right, rtol=1e-5, atol=1e-5)

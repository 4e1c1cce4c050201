"""Scans with a prologue and an epilogue: what one kernel computes, and that each backend computes it right."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.compiler.plan import Plan
from minifuse.core.operators import add
from minifuse.ir.gather import Gather
from minifuse.ir.kernel_ir import OpaqueOutput
from minifuse.ir.scan import recurrence, scan
from minifuse.ir.step_kernels import ScanKernel
from minifuse.testing import gradcheck

POINTWISE = "prologue and epilogue"

# Name -> the function of a, b of one shape and c with the size of the last dim; the kernels; what the scan's kernel fuses.
FUNCTIONS = {
    "prologue": (lambda a, b, c: mf.cumsum(a * b + c, 1), 1, "prologue"),
    "epilogue": (lambda a, b, c: mf.cumsum(a, 0) * 0.5 - b, 1, "epilogue"),
    "both": (lambda a, b, c: mf.cumsum(a * c, 1) / (abs(a) + 1), 1, POINTWISE),
    "index and view": (lambda a, b, c: mf.cumsum(a.T.contiguous() * mf.arange(a.shape[0]), 1) + b.T, 1, POINTWISE),
    "scan and reader": (lambda a, b, c: (y := mf.cumsum(a, 1), y * b), 1, "epilogue"),
    "bools": (lambda a, b, c: mf.cumsum((a > 0).to(mf.int64), 1) > 2, 1, POINTWISE),
    "two states": (lambda a, b, c: recurrence(abs(a) * 0.5, b - c, 0) * a, 1, POINTWISE),
    "one of two outputs": (lambda a, b, c: mf.cummax(a + b, 1).indices + 1, 1, POINTWISE),
    "flipped": (lambda a, b, c: mf.flip(mf.cumsum(mf.flip(a * b, (1,)), 1), (1,)) / c, 1, POINTWISE),
    "a difference of scans": (lambda a, b, c: mf.cumsum(a, 1) - mf.cumprod(b * 0.5, 1) * c, 1, POINTWISE),
    "three scans": (lambda a, b, c: (mf.cumsum(a, 1) + mf.cummin(b, 1)[0]) * mf.cumsum(a * b, 1), 1, POINTWISE),
    "rows around a scan": (lambda a, b, c: (mf.cumsum(a.softmax(1), 1) * b).sum(1).sqrt(), 2, "prologue and rows"),
    "scan and rows": (lambda a, b, c: (y := mf.cumsum(a, 1), (y * b).sum(1), y.sum(1) * 2), 1, "rows"),
    "a row value after rows": (lambda a, b, c: (y := mf.cumsum(a * a, 1)) / y.sum(1, keepdim=True), 2, "prologue and rows"),
    "rows of a difference": (lambda a, b, c: (mf.cumsum(a, 1) - mf.cumsum(b, 1)).abs().sum(1), 1, "rows"),
    "variance of rows": (lambda a, b, c: mf.cumsum(a, 1).var(1), 1, "rows"),
    "rows of columns": (lambda a, b, c: mf.cumsum(a * b, 0).sum(0), 2, "prologue"),
    "other rows": (lambda a, b, c: mf.cumsum(a * b, 1).sum(0), 2, "prologue"),
    "scans one after the other": (lambda a, b, c: mf.cumsum(mf.cumsum(a * b, 1) + 1, 0) * 2, 2, POINTWISE),
    "a gather before": (lambda a, b, c: mf.cumsum(Gather(1)(a, mf.arange(a.shape[1]).flip(0)), 1) + 1, 2, "epilogue"),
}
on_each = pytest.mark.parametrize("name", FUNCTIONS)


def arrays(shape, seed=0):
    """Arrays a, b of a shape, and c with the size of its last dim."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=size).astype(np.float32) for size in (shape, shape, shape[1:])]


def agree(function, shape, seed=0):
    """Compare a fused function with the same function of one step at a time."""
    tensors = [mf.tensor(x) for x in arrays(shape, seed)]
    expected, got = function(*tensors), mf.fuse(function)(*tensors)
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    for x, y in pairs:
        assert x.dtype is y.dtype
        np.testing.assert_allclose(y.numpy(), x.numpy(), 2e-5, 2e-5)


@on_each
def test_elementwise_inputs_and_readers_share_the_kernel_of_a_scan(name):
    function, kernels, fused = FUNCTIONS[name]
    with mf.use_backend("cuda"):
        plan = Plan(function, [mf.tensor(x) for x in arrays((4, 6))])
        scans = [step for step in plan.steps if isinstance(step.kernel, ScanKernel)]
        described = [step.kernel.describe(step.shape, (), []) for step in scans]
    assert len(plan.steps) == kernels
    assert described[-1].partition(" with ")[2] == fused
    with mf.use_backend("python"):
        for shape in ((3, 5), (1, 4), (0, 3), (2, 0)):
            agree(function, shape)


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
@pytest.mark.parametrize("name", ["index and view", "bools", "two states", "flipped", "three scans", "scan and rows"])
def test_compiled_kernels_compute_prologue_and_epilogue(name, backend):
    with mf.use_backend(backend):
        agree(FUNCTIONS[name][0], (5, 36))
        agree(FUNCTIONS[name][0], (35, 18), seed=1)


def random_elementwise(rng, values, count):
    """Apply some operators to random values, of which the first one is read."""
    values = list(values)
    x = values[0]
    for _ in range(count):
        other = values[rng.integers(len(values))]
        x = (x + other, x * 0.5 - other, mf.maximum(x, other), abs(x) + 0.25)[rng.integers(4)]
        values.append(x)
    return x


@pytest.mark.parametrize("backend", ["python", "cuda"])
@pytest.mark.parametrize("seed", range(6))
def test_random_prologues_and_epilogues(seed, backend):
    def function(a, b, c):
        rng = np.random.default_rng(seed)
        dim = int(rng.integers(2))
        views = [a, b.flip(int(rng.integers(2))), c.expand(*a.shape), a[:1].expand(*a.shape), b[:, ::2][:, :1] + 0 * a]
        chosen = [views[k] for k in rng.permutation(5)[:3]]
        x = random_elementwise(rng, chosen, int(rng.integers(1, 4)))
        (y,) = scan(add, [x], dim, bool(rng.integers(2)))
        return random_elementwise(rng, [y, *views[:3]], int(rng.integers(1, 4)))

    with mf.use_backend(backend):
        agree(function, (4, 7), seed)


def test_costly_ops_stay_out_of_the_serial_loop_of_a_cpu():
    reason = "a CPU computes a scan one element after the other, and this takes too many ops for that"
    for function, count in (
        (lambda a, b, c: mf.cumsum(a.exp(), 1), 2),
        (lambda a, b, c: mf.cumsum(a, 1).tanh(), 2),
        (lambda a, b, c: mf.cumsum(a * c.exp(), 1) * c.exp(), 2),  # the exponentials of c are stored, and all else is fused
        (lambda a, b, c: mf.cumsum(a.exp(), 0).tanh(), 1),
    ):
        for backend, kernels in (("cuda", 1), ("parallel", count)):
            with mf.use_backend(backend):
                plan = Plan(function, [mf.tensor(x) for x in arrays((4, 6))])
                assert len(plan.steps) == kernels
        assert {x.reason for x in plan.refusals} == ({reason} if count > 1 else set())


def test_a_kernel_stores_what_combines_scans_rather_than_each():
    with mf.use_backend("parallel"):
        a, b = [mf.tensor(x) for x in arrays((4, 6))[:2]]
        plan = Plan(lambda a, b: (mf.cumsum(a, 1) - mf.cumsum(b, 1)).square().sum(1), [a, b])
    assert [len(step.outputs) for step in plan.steps] == [1, 1]
    with mf.use_backend("cuda"):  # so does the forward pass of a gradient, which needs the difference
        a, b = [mf.tensor(x, requires_grad=True) for x in arrays((4, 6))[:2]]
        plan = Plan(lambda a, b: (mf.cumsum(a, 1) - mf.cumsum(b, 1)).square().sum(1), [a, b])
    assert [len(step.outputs) for step in plan.steps] == [2]


def test_gradients_of_fused_scans():
    functions = [FUNCTIONS[name][0] for name in ("both", "flipped", "a difference of scans", "two states")]
    functions.append(lambda a, b, c: mf.logcumsumexp(a * b, 1) * c)
    with mf.use_backend("python"):
        inputs = [mf.tensor(x.astype(np.float64), requires_grad=True) for x in arrays((3, 4))]
        for function in functions:
            gradcheck(mf.fuse(function), *inputs)


def test_the_text_of_a_step_shows_prologue_and_epilogue():
    with mf.use_backend("python"):
        a, b = [mf.tensor(x) for x in arrays((4, 6))[:2]]
        text = str(mf.fuse(lambda a, b: mf.cumsum(a * b, 1) + 1).explain(a, b))
    assert "launch0: scan_add(a * b) + 1" in text
    assert "scan_add of (4, 6) along dim 1 with prologue and epilogue" in text


def test_a_difference_of_scans_is_one_scan_of_two_states():
    with mf.use_backend("python"):
        a, b = [mf.tensor(x) for x in arrays((4, 6))[:2]]
        (step,) = Plan(lambda a, b: mf.cumsum(a, 1) - mf.cumsum(b, 1), [a, b]).steps
    assert [e.name for e in step.kernel.find_all(OpaqueOutput)] == ["scan_add", "scan_add_1"]
    with mf.use_backend("python"):  # but not if one is computed from the other, or nothing reads both
        for function in (
            lambda a, b: mf.cumsum(mf.cumsum(a, 1), 1) - mf.cumsum(a, 1),
            lambda a, b: (mf.cumsum(a, 1) + 1, mf.cumsum(b, 1) + 1),
        ):
            assert len(Plan(function, [a, b]).steps) == 2

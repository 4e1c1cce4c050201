"""backends.cuda.codegen.online_softmax: long rows whose maximum and sum of exponentials take one pass, and gathers."""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.codegen import select
from minifuse.backends.cuda.codegen.online_exp_sum import sums_of_exponentials
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.geometry import RowPartition
from minifuse.compiler.plan import Plan
from minifuse.core.layout import row_major
from minifuse.ir.kernel_ir import LoopNest

from ..cuda.simulated import simulated
from .test_cuda_rows_in_shared import expected, operands, reads, templates_only

BACKEND = simulated()
LENGTHS = [2, 31, 64, 257, 515, 1028]


def softmax(x):
    return x.softmax(1)


def weighted(x, y):
    """Two sums beside each other, one of products, and a maximum that is scaled."""
    e = (x * 0.5 - (x * 0.5).max(1, True)).exp()
    return (e * y).sum(1) / e.sum(1) + y.sum(1)


def entropy(x):
    """What needs the row again after both folds."""
    p = x.log_softmax(1)
    return -(p.exp() * p).sum(1)


def normalized(x):
    """Exponentials of what is a fold away itself."""
    d = x - x.mean(1, True)
    return d.logsumexp(1) + (d * d).mean(1)


CASES = {
    softmax: "x",
    lambda x: x.logsumexp(1): "x",
    lambda x: x.log_softmax(1): "x",
    weighted: "xx",
    entropy: "x",
    normalized: "x",
}


@pytest.fixture(autouse=True)
def short_rows_are_long(monkeypatch):
    """All rows are too long for registers and for shared memory, and 64 threads share one."""
    templates_only(monkeypatch)
    chunks = {True: RowPartition(64, 2, 4), False: RowPartition(64, 8, 1)}
    monkeypatch.setattr(select, "partition_long_row", lambda count, last, is_wide, *_: chunks[is_wide])


def step_of(function, *arrays):
    (step,) = Plan(function, [mf.tensor(a, backend=BACKEND) for a in arrays]).steps
    return step


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("function", CASES)
def test_rows_of_any_length(function, length):
    arrays = operands(CASES[function], (3, length))
    arrays[0][1] += np.arange(length) / 50  # the largest ones come last, or first
    arrays[0][2] -= np.arange(length) / 50
    assert "moved_sum" in BACKEND.compile(step_of(function, *arrays)).load().text.text
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]
    for _ in range(2):
        out = Plan(function, tensors).run(*tensors).numpy()
        np.testing.assert_allclose(out, expected(function, arrays), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("function", CASES)
def test_fast_exponentials_are_online_sums_too(function):
    arrays = operands(CASES[function], (3, 257))
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]
    with mf.use_fast_math():
        text = BACKEND.compile(step_of(function, *arrays)).load().text.text
        out = Plan(function, tensors).run(*tensors).numpy()
    assert "moved_sum(" in text
    assert "fast_exp(" in text
    np.testing.assert_allclose(out, expected(function, arrays), rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize(("function", "times"), [(softmax, 2), (lambda x: x.logsumexp(1), 1)])
@pytest.mark.parametrize("length", [515, 1028])
def test_one_pass_reads_a_row_for_both_reductions(function, times, length):
    x = operands("x", (2, length))[0]
    step = step_of(function, x)
    bound = BACKEND.compile(step).load()
    out = np.full((2, length), np.nan, "f4")
    trace = simt.trace(bound.plan(out.ctypes.data, x.ctypes.data, *map(float, step.numbers)), limit=None)
    assert trace.hazards() == []
    assert set(reads(trace, "in0").tolist()) == {times}
    assert bound.text.row_partition == (RowPartition(64, 2, 4) if length % 4 == 0 else RowPartition(64, 8, 1))


def test_infinity_and_nan_as_in_two_passes():
    a = operands("x", (8, 700))[0]
    a[1, 7], a[2, 699], a[3, 300], a[4, ::3] = np.nan, np.inf, -np.inf, -np.inf
    a[5], a[6, 1:] = -np.inf, -np.inf
    a[7, 3], a[7, 650] = np.inf, -np.inf
    for function in (softmax, lambda x: x.logsumexp(1), lambda x: x.log_softmax(1)):
        x = mf.tensor(a, backend=BACKEND)
        with np.errstate(all="ignore"):
            out = Plan(function, (x,)).run(x).numpy()
            np.testing.assert_allclose(out, expected(function, [a]), rtol=2e-5, atol=2e-5)


def test_addresses_that_are_no_multiples_of_16_bytes():
    a = operands("x", (4, 1032))[0]
    x = mf.tensor(a, backend=BACKEND)[1:, 1:1029]
    np.testing.assert_allclose(Plan(softmax, (x,)).run(x).numpy(), expected(softmax, [a[1:, 1:1029]]), rtol=2e-5)


def test_float64_and_operands_shared_by_all_rows():
    x, bias = operands("xw", (5, 300), "float64")
    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, bias)]

    def function(x, bias):
        return (x + bias).softmax(1)

    np.testing.assert_allclose(Plan(function, tensors).run(*tensors).numpy(), expected(function, [x, bias]), rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x - x.max(1, True)).sum(1),
        lambda x: (x - x.min(1, True)).exp().sum(1),
        lambda x: (x - x.max(1, True) * 2 + x.sum(1, True)).exp().sum(1),
        lambda x: ((x * 2) - x.max(1, True)).exp().sum(1),
        lambda x: ((x - x.max(1, True)).exp() * x.sum(1, True)).sum(1),
        lambda x: (x - x.max(1, True)).exp().max(1),
    ],
)
def test_other_reductions_are_not_paired(function):
    assert sums_of_exponentials(step_of(function, operands("x", (3, 40))[0]).kernel) == {}


def test_short_rows_wait_instead(monkeypatch):
    """Where a sweep more is needed, so do those that fit in shared memory, in groups of four or beside others."""
    monkeypatch.undo()
    x = mf.zeros(1, backend=BACKEND)
    for length, once, twice in (
        (8192, False, False),
        (20_000, True, False),
        (20_001, True, False),
        (50_257, True, True),
        (50_260, True, False),
        (60_000, True, True),
    ):
        for function, is_online in ((lambda x: x.logsumexp(1), once), (softmax, twice), (entropy, twice)):
            (step,) = Plan(function, (x.expand(2000, length),)).steps
            layout = row_major((2000, length))
            nest = LoopNest(step.shape, step.dims, [row_major(step.outputs[0][1].shape), layout])
            assert ("moved_sum" in generate_kernel(step.kernel, nest).text) == is_online, (length, function)


# Picked elements


def cross_entropy(x, target):
    return mf.nn.cross_entropy(x, target, reduction="none")


@pytest.mark.parametrize("rows", ["shared memory", "online"])
def test_a_gathered_element_is_loaded_by_its_index(rows, monkeypatch):
    if rows != "online":
        monkeypatch.undo()
    if rows == "shared memory":
        templates_only(monkeypatch)
    x, target = operands("x", (6, 300))[0], np.array([0, 299, 7, 64, 128, 255])
    step = step_of(cross_entropy, x, target)
    text = BACKEND.compile(step).load().text.text
    assert "if 0 <= i1 < n1:" in text
    assert "where((t0 ==" not in text
    d = x - x.max(1, keepdims=True)
    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, target)]
    found = Plan(cross_entropy, tensors).run(*tensors).numpy()
    np.testing.assert_allclose(found, np.log(np.exp(d).sum(1)) - d[np.arange(6), target], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_an_index_out_of_bounds_gathers_nothing(dtype):
    x = np.random.default_rng(1).integers(1, 99, (5, 40)).astype(dtype)
    key = np.array([-1, 0, 39, 40, 1 << 40])

    def picked(x, key):
        return mf.where(key.view(-1, 1) == mf.arange(40, backend=BACKEND), x * 2, 0).sum(1)

    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, key)]
    out = mf.fuse(picked)(*tensors).numpy()
    assert out.tolist() == [0, 2 * x[1, 0], 2 * x[2, 39], 0, 0]


def test_a_key_that_varies_along_the_row_is_compared():
    x = operands("x", (3, 40))[0]
    key = np.random.default_rng(2).integers(0, 40, (3, 40))

    def summed(x, key):
        return mf.where(key == mf.arange(40, backend=BACKEND), x, 0).sum(1)

    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, key)]
    out = mf.fuse(summed)(*tensors).numpy()
    np.testing.assert_allclose(out, np.where(key == np.arange(40), x, 0).sum(1), rtol=1e-6)


def test_an_overwritten_row_is_gathered_before():
    a, key = operands("x", (5, 40))[0], np.array([3, 0, 39, 7, 8])
    x, k = (mf.tensor(array, backend=BACKEND) for array in (a, key))

    @mf.fuse
    def picked_and_doubled(x, key):
        found = mf.where(key.view(-1, 1) == mf.arange(40, backend=BACKEND), x, 0).sum(1)
        x *= 2
        return found

    np.testing.assert_array_equal(picked_and_doubled(x, k).numpy(), a[np.arange(5), key])
    np.testing.assert_array_equal(x.numpy(), 2 * a)

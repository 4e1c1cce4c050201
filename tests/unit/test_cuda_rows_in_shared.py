"""backends.cuda.codegen.rows_in_shared: rows are loaded once, and each thread reads the shared memory that it wrote.

Rows of these sizes fit in registers; tests of shared memory switch that off.
"""

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda import executables
from minifuse.backends.cuda.codegen import select
from minifuse.backends.cuda.geometry import EXCLUSIVE_ROW_BYTES, cached_row_pitch, row_geometry
from minifuse.compiler.plan import Plan
from minifuse.simt.occupancy import occupancy

from ..cuda.simulated import simulated

BACKEND = simulated()
SHAPES = [(3, 1001), (2, 1000), (9, 128), (70, 5), (40, 8), (9, 33), (1, 2052), (5, 2)]


def softmax(x):
    return x.softmax(1)


def softmax_backward(y, g):
    return y * (g - (y * g).sum(1, True))


def layer_norm(x, w, b):
    d = x - x.mean(1, True)
    return d / mf.sqrt((d * d).mean(1, True) + 1e-5) * w + b


CASES = {softmax: "x", softmax_backward: "xx", layer_norm: "xww", lambda x: x.log_softmax(1): "x"}


def templates_only(patch):
    """Select no schedules and no split: rows of any length have the templates of rows that no registers can hold."""
    patch.setattr(select, "schedule_by_closed_form", lambda *operands, **options: None)
    patch.setattr(executables, "plan_split", lambda *operands: None)


@pytest.fixture(params=["registers", "shared memory"])
def waiting(request, monkeypatch):
    """Where rows wait."""
    if request.param == "shared memory":
        templates_only(monkeypatch)
    return request.param


def expected(function, arrays):
    """The same in float64 by the backend of Python loops over NumPy."""
    return function(*[mf.tensor(a.astype(np.float64)) for a in arrays]).numpy()


def operands(letters, shape, dtype="float32", seed=0):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape if letter == "x" else shape[1:]).astype(dtype) for letter in letters]


def trace_of(function, arrays, **changes):
    """The trace of the only kernel of a function, the operands' arrays in it, and what it has stored."""
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]
    plan = Plan(function, tensors)
    (step,) = plan.steps
    bound = BACKEND.compile(step).load()
    out = np.full(step.shape, np.nan, arrays[0].dtype)
    numbers = [float(n) for n in step.numbers]
    launch = bound.plans(out.ctypes.data, *[t.address for t in tensors], *numbers)[0]
    return simt.trace(launch._replace(**changes), limit=None), out


def reads(trace, name):
    """How often each element of an operand is read."""
    (array,) = [k for k, a in enumerate(trace.arrays) if a.name == name]
    chosen = (trace.events.array == array) & (trace.events.kind == 0)
    info, found = trace.arrays[array], []
    for address, nbytes in zip(trace.events.address[chosen], trace.events.nbytes[chosen], strict=True):
        found += range((address - info.base) // info.itemsize, (address - info.base + nbytes) // info.itemsize)
    return np.bincount(found)


@pytest.mark.sampled(4, each="function")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", CASES)
def test_memory_is_read_once(function, shape, waiting):
    arrays = operands(CASES[function], shape)
    trace, out = trace_of(function, arrays)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, expected(function, arrays), rtol=2e-5, atol=2e-5)
    for k, a in enumerate(arrays):
        if a.shape == shape:
            counts = reads(trace, f"in{k}").reshape(shape)
            past_the_end = waiting == "registers"  # threads of rows past the last one read that one again
            assert set(counts[: -1 if past_the_end else None].ravel().tolist()) <= {1}
            assert counts.min() == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_hardly_a_bank_is_asked_twice_at_once(shape, waiting):
    requests = trace_of(softmax_backward, operands("xx", shape))[0].requests()
    assert requests.wavefronts.sum() <= 1.05 * requests.ideal_wavefronts.sum()


@pytest.mark.parametrize("function", CASES)
def test_the_order_of_threads_does_not_matter(function, waiting):
    arrays = operands(CASES[function], (3, 300))
    _, out = trace_of(function, arrays)
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]
    for _ in range(2):
        np.testing.assert_array_equal(out, Plan(function, tensors).run(*tensors).numpy())


def test_a_row_that_does_not_fit_is_read_where_it_is(monkeypatch):
    """Each pass reads it; the exponentials wait where the result will stand."""
    arrays = operands("x", (2, 1030))
    templates_only(monkeypatch)
    monkeypatch.setattr(BACKEND.device, "max_shared_bytes", 8 * 1024)
    trace, out = trace_of(softmax, arrays)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, expected(softmax, arrays), rtol=2e-5)
    assert set(reads(trace, "in0").tolist()) == {2}
    assert set(reads(trace, "out0").tolist()) == {1}


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "bool"])
def test_other_types_wait_too(dtype, waiting):
    a = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 9, (3, 70)).astype(dtype)

    def largest(x):
        return x == x.max(1, True) if dtype != "bool" else x == x.any(1, True)

    tensor = mf.tensor(a, backend=BACKEND)
    (step,) = Plan(largest, (tensor,)).steps
    launch = BACKEND.compile(step).load().plans(np.zeros(a.shape, bool).ctypes.data, tensor.address)[0]
    counts = reads(simt.trace(launch), "in0").reshape(a.shape)
    assert set(counts[: -1 if waiting == "registers" else None].ravel().tolist()) == {1}
    assert (largest(tensor).numpy() == largest(mf.tensor(a)).numpy()).all()


def test_cached_rows_of_several_dtypes_do_not_overlap(waiting):
    x, g = operands("x", (20, 37))[0], operands("x", (20, 37), "float64", 2)[0]

    def function(x, g):
        both = x.to("float64") * g
        return both - both.sum(1, True)

    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, g)]
    both = x.astype("f8") * g
    np.testing.assert_allclose(Plan(function, tensors).run(*tensors).numpy(), both - both.sum(1, keepdims=True), atol=1e-12)


def test_addresses_that_are_no_multiples_of_16_bytes(waiting):
    a = operands("x", (4, 1001))[0]
    x = mf.tensor(a, backend=BACKEND)[1:, 1:1001]
    d = a[1:, 1:1001].astype("f8")
    e = np.exp(d - d.max(1, keepdims=True))
    np.testing.assert_allclose(Plan(softmax, (x,)).run(x).numpy(), e / e.sum(1, keepdims=True), rtol=2e-5)


# How much waits


@pytest.mark.parametrize("nbytes", [4, 8, 16, 48])
@pytest.mark.parametrize("last", [64, 256, 1000, 4096, 8192, 65536 // 4])
def test_rows_that_wait_leave_room_for_many_threads(last, nbytes):
    """Of a multiprocessor of 228 KB: 1,024 threads are at work on rows of float32, 512 on long ones of two operands."""
    _, block = row_geometry(100_000, last, True, nbytes)
    held = cached_row_pitch(nbytes, last, block[1], 227 * 1024)
    assert held == (last if last * nbytes < 219 * 1024 else 0)
    found = occupancy(block[0] * block[1], shared=held * nbytes * block[1])
    assert found.blocks * block[0] * block[1] >= (1024 if nbytes * last <= 32 * 1024 else 512)
    assert block[1] == 1 or held * nbytes * block[1] <= EXCLUSIVE_ROW_BYTES


def test_many_short_rows_of_many_operands():
    """What takes the whole shared memory of a multiprocessor is one long row, never short ones that share a block."""
    arrays = operands("xxxxww", (260, 256))
    tensors = [mf.tensor(a, backend=BACKEND) for a in arrays]

    def function(x, y, u, v, w, b):
        return layer_norm(x + y + u + v.exp() + x * y, w, b)

    with pytest.MonkeyPatch.context() as patch:
        templates_only(patch)
        out = Plan(function, tensors).run(*tensors).numpy()
    np.testing.assert_allclose(out, expected(function, arrays), rtol=1e-4, atol=1e-4)


def test_rows_begin_at_multiples_of_four_or_do_not_wait():
    assert cached_row_pitch(4, 1001, 8, 227 * 1024) == 1004
    assert cached_row_pitch(4, 60_000, 1, 227 * 1024) == 0
    assert cached_row_pitch(4, 16_000, 1, 64 * 1024) == 0


# Picked elements


def cross_entropy(x, target):
    return mf.nn.cross_entropy(x, target, reduction="none")


def test_a_gathered_element_is_loaded_by_its_index(monkeypatch):
    templates_only(monkeypatch)
    x, target = operands("x", (6, 300))[0], np.array([0, 299, 7, 64, 128, 255])
    tensors = [mf.tensor(a, backend=BACKEND) for a in (x, target)]
    (step,) = Plan(cross_entropy, tensors).steps
    text = BACKEND.compile(step).load().text.text
    assert "if 0 <= i1 < n1:" in text
    assert "where((t0 ==" not in text
    d = x - x.max(1, keepdims=True)
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

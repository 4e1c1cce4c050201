"""backends.cuda.multi_tensor: one launch over several arrays gives the bits of separate launches, in the interpreter."""

import ctypes

import numpy as np
import pytest

import minifuse as mf
from minifuse import simt
from minifuse.backends.cuda.backend import CudaBackend
from minifuse.backends.cuda.multi_tensor import MAX_CACHED_TABLES, CudaMultiTensorLauncher
from minifuse.compiler.plan import Plan, plans, runs
from minifuse.core.dtypes import float32
from minifuse.core.errors import DTypeError, OutOfBoundsError
from minifuse.core.layout import row_major
from minifuse.inspect.dry_run import launches_of
from minifuse.ir.kernel_ir import Kernel, KernelParameter, Load
from minifuse.ir.step_kernels import BatchedKernel
from tests.steps import batch, set_batching

from ..cuda.simulated import simulated

BACKEND = simulated()
SIZES = 129, 0, 1, 1025, 3, 31, 2048, 32


def tensors(sizes, dtype="float32", backend=BACKEND, first=0):
    """A tensor of each size, which begins so many elements behind a multiple of 16 bytes."""
    rng = np.random.default_rng(len(sizes))
    flat = [rng.uniform(-9, 9, n + first).astype(dtype) for n in sizes]
    return [mf.tensor(x, backend=backend)[first:] for x in flat]


def scaled(xs, a, b):
    return [x * a + b for x in xs]


def change(xs, ys, a):
    for x, y in zip(xs, ys, strict=True):
        x += y * a
        y *= x


def memory(buffer):
    return np.ctypeslib.as_array((ctypes.c_uint8 * buffer.nbytes).from_address(buffer.address)).tobytes()


def bits(xs):
    return [x.numpy().tobytes() for x in xs]


COMPILE = CudaBackend.compile  # that accepts batches


def launches(function, *inputs):
    """How many launches a call makes, of steps that have points."""
    return sum(all(step.shape) for step in mf.fuse(function).plan(*inputs).steps)


def both_ways(monkeypatch, run):
    """What `run()` gives with tables, and without."""
    found = []
    for has_batches in (True, False):
        set_batching(monkeypatch, CudaBackend, has_batches)
        plans.clear()
        runs.clear()
        found.append(run())
    monkeypatch.undo()
    return found


def bound_step(function, *inputs, targets=()):
    """The only step of a plan, bound, and the tensors of its slots."""
    plan = Plan(function, inputs, targets)
    (step,) = plan.steps
    assert isinstance(step.kernel, BatchedKernel)
    return plan, step, BACKEND.compile(step).load()


@pytest.mark.sampled(2, each="dtype")
@pytest.mark.parametrize("first", [0, 1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_the_same_bits_as_a_launch_for_each(monkeypatch, dtype, first):
    """Where arrays begin decides of each whether it is taken four at a time."""
    xs = tensors(SIZES, dtype, first=first)
    numbers = (3, -1) if dtype.startswith("i") else (0.3, -1.7)
    together, apart = both_ways(monkeypatch, lambda: bits(mf.fuse(scaled)(xs, *numbers)))
    assert together == apart
    assert launches(scaled, xs, *numbers) == 1


def test_arrays_that_begin_anywhere_beside_such_that_do_not(monkeypatch):
    xs = [*tensors((64, 129), first=0), *tensors((65, 130), first=1), *tensors((66,), first=3)]
    together, apart = both_ways(monkeypatch, lambda: bits(mf.fuse(scaled)(xs, 0.5, 2.5)))
    assert together == apart
    *_, bound = bound_step(lambda *xs: tuple(scaled(xs, 0.5, 2.5)), *xs)
    outs = [mf.zeros(x.size, backend=BACKEND) for x in sorted(xs, key=lambda x: -x.size)]
    pairs = zip(outs, sorted(xs, key=lambda x: -x.size), strict=True)
    trace = simt.trace(bound.plans(*[x.address for pair in pairs for x in pair], 0.5, 2.5)[0])
    names = [info.name for info in trace.arrays]
    widths = {names[k]: set(trace.events.nbytes[trace.events.array == k]) for k in range(len(names))}
    assert [max(widths[f"in0[{k}]"]) for k in range(5)] == [4, 16, 4, 4, 16]  # 130, 129, 66, 65, 64


def test_bools(monkeypatch):
    xs = [x > 0 for x in tensors(SIZES)]
    together, apart = both_ways(monkeypatch, lambda: bits(mf.fuse(lambda xs: [~x for x in xs])(xs)))
    assert together == apart


def test_large_arrays(monkeypatch):
    xs = tensors((70_001, 3, 4099))
    together, apart = both_ways(monkeypatch, lambda: bits(mf.fuse(scaled)(xs, 0.1, 0.2)))
    assert together == apart


def test_changes_in_place_with_numbers_that_change(monkeypatch):
    def run():
        xs, ys = tensors(SIZES), tensors(SIZES[::-1])[::-1]
        fused = mf.fuse(change)
        for k in range(4):
            fused(xs, ys, 0.5 / (k + 1))
        assert fused.stats().captures == 1
        return bits([*xs, *ys])

    together, apart = both_ways(monkeypatch, run)
    assert together == apart


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_a_step_of_an_optimizer_is_one_launch(monkeypatch, kind):
    def run():
        params = [x.requires_grad_() for x in tensors((33, 1, 129, 70), backend="cuda")]
        optimizer = getattr(mf.optim, kind)(params, lr=0.1, weight_decay=0.01)
        for step in range(3):
            for p in params:
                p.grad = p.detach() * 0.5 + step
            before = set(plans)
            optimizer.step()
            made = [plan for key, plan in plans.items() if key not in before and plan.graph.stores]
            assert [len(plan.steps) for plan in made] in ([], [1 if CudaBackend.compile is COMPILE else 4])
        return bits([p.detach() for p in params])

    together, apart = both_ways(monkeypatch, run)
    assert together == apart


def test_many_arrays(monkeypatch):
    """There is no size that a table must fit in."""
    xs = tensors([1 + k % 5 for k in range(600)])
    together, apart = both_ways(monkeypatch, lambda: bits(mf.fuse(scaled)(xs, 2.0, 1.0)))
    assert together == apart
    assert launches(scaled, xs, 2.0, 1.0) == 1


def test_scalars_alone():
    xs = [mf.tensor(float(k), backend=BACKEND) for k in range(4)]
    assert [y.item() for y in mf.fuse(scaled)(xs, 2.0, 1.0)] == [1, 3, 5, 7]


@pytest.mark.parametrize("seed", [0, 1])
def test_no_hazard(seed):
    xs = tensors((1025, 3, 129, 130), first=1)
    plan, step, bound = bound_step(lambda *xs: tuple(scaled(xs, 0.5, 2.5)), *xs)
    expected = plan.run(*xs)
    outs = [mf.zeros(x.size, backend=BACKEND) for x in xs]
    slots = [*xs, *outs]
    trace = simt.trace(
        bound.plans(*[slots[slot].address + offset for slot, offset in step.address_offsets()], 0.5, 2.5)[0], seed=seed
    )
    assert trace.is_complete
    assert trace.hazards() == []
    assert bits(outs) == bits(expected)
    assert set(trace.outputs) == {f"out0[{k}]" for k in range(4)}


def bound_doubling(sizes):
    """A launch that doubles arrays, and its values."""
    xs = tensors(sizes)
    kernel = Kernel((Load(0, float32) * KernelParameter(0, float32),), ())
    layouts = [([row_major((n,))], [row_major((n,))]) for n in sizes]
    outs = [mf.zeros(n, backend=BACKEND) for n in sizes]
    bound = BACKEND.compile(batch(kernel, sizes, layouts)).load()
    assert isinstance(bound, CudaMultiTensorLauncher)
    return bound, xs, outs, tuple(x.address for pair in zip(outs, xs, strict=True) for x in pair)


@pytest.mark.parametrize("place", [0, 1])
def test_the_interpreter_finds_a_size_that_is_wrong(place):
    """Of all elements, and of those that are taken four at a time."""
    bound, _, _, addresses = bound_doubling((40, 9))
    bound.array_sizes[1, place] = 16
    with pytest.raises(OutOfBoundsError, match=r"in0\[1\]"):
        bound(*addresses, 2.0)


def test_the_interpreter_finds_two_arrays_in_one_place():
    bound, _, _, addresses = bound_doubling((40, 40))
    same = (*addresses[:2], addresses[0], addresses[3])
    trace = simt.trace(bound.plans(*same, 2.0)[0])
    assert any("race" in str(hazard) or type(hazard).__name__.startswith("Race") for hazard in trace.hazards())


def test_each_block_has_one_array():
    bound, *_ = bound_doubling((5000, 2, 1025, 1024, 33))
    arrays = np.frombuffer(memory(bound.arrays), np.int32)[: bound.geometry.grid[0]]
    per_block = bound.geometry.block[0] * bound.text.each
    assert np.bincount(arrays).tolist() == [-(-n // per_block) for n in (5000, 2, 1025, 1024, 33)]
    assert np.all(np.diff(arrays) >= 0)


# The table


def test_a_table_stays_where_addresses_stay():
    bound, xs, outs, addresses = bound_doubling((5, 70))
    bound(*addresses, 2.0)
    table = bound.table_of(addresses)
    bound(*addresses, 3.0)
    assert bound.table_of(addresses) is table
    for x, out in zip(xs, outs, strict=True):
        np.testing.assert_array_equal(out.numpy(), x.numpy() * np.float32(3))


def test_tables_of_other_addresses_are_others_and_none_is_changed():
    """A graph that is replayed reads its table whenever it is."""
    bound, xs, _, addresses = bound_doubling((5, 70))
    ready = bound.ready_launches(*addresses, 2.0)[0]
    first = bound.table_of(addresses)
    assert ready.owner is first
    before = memory(first)
    for _ in range(MAX_CACHED_TABLES):
        outs = [mf.zeros(n, backend=BACKEND) for n in (5, 70)]
        bound(*[x.address for pair in zip(outs, xs, strict=True) for x in pair], 2.0)
        for x, out in zip(xs, outs, strict=True):
            np.testing.assert_array_equal(out.numpy(), x.numpy() * 2)
    kept = outs  # so that the next ones lie elsewhere
    assert len(bound.tables) <= MAX_CACHED_TABLES
    assert memory(first) == before
    assert kept


def test_at_most_so_many_tables_are_cached():
    bound, _, _, addresses = bound_doubling((5, 70))
    asked = [tuple(a + 64 * k for a in addresses) for k in range(MAX_CACHED_TABLES + 3)]
    for other in asked:
        bound.table_of(other)
    assert list(bound.tables) == asked[3:]
    bound.table_of(asked[3])
    bound.table_of(asked[0])
    assert list(bound.tables) == [*asked[5:], asked[3], asked[0]]


def test_a_launch_runs_its_launch_plan():
    bound, xs, outs, addresses = bound_doubling((5, 70))
    plan = bound.plans(*addresses, 2.5)[0]
    assert (plan.grid, plan.block) == (bound.geometry.grid, bound.geometry.block)
    assert not any(out.numpy().any() for out in outs)
    simt.run(plan)
    for x, out in zip(xs, outs, strict=True):
        np.testing.assert_array_equal(out.numpy(), x.numpy() * np.float32(2.5))


def test_the_interpreter_has_no_fast_call():
    bound, *_ = bound_doubling((5, 70))
    assert bound.fast_entry() is bound


def test_a_number_that_does_not_fit_is_refused():
    xs = tensors((5, 70), "int32")
    with pytest.raises(DTypeError, match="does not fit int32"):
        mf.fuse(scaled)(xs, 2**31, 0)


# What is said of it


def test_launches_bytes_source_and_profile():
    xs = tensors((40, 30, 40))
    fused = mf.fuse(lambda xs: [x.sin() * 0.5 for x in xs])
    page = str(fused.explain(xs))
    assert "1 kernel instead of 6, 880 B moved" in page
    assert "pointwise over 2 x (40,) and (30,); 1 launch" in page
    source = fused.source(xs)
    (step,) = fused.plan(xs).steps
    bound = BACKEND.compile(step).load()
    assert bound.text.text in source
    assert "def kernel(arrays, table" in source
    with mf.profile() as p:
        fused(xs)
    assert [event.work.nbytes for event in p.events] == [880]


def test_the_launches_of_a_call_are_those_that_run():
    (plan,) = launches_of(lambda x, y: (x * 3, y * 3), *tensors((5, 70)))
    outputs = simt.trace(plan).outputs
    assert sorted(outputs) == ["out0[0]", "out0[1]"]
    for name, x in zip(("out0[1]", "out0[0]"), tensors((5, 70)), strict=True):
        np.testing.assert_array_equal(outputs[name], x.numpy() * 3)


def test_the_text_is_one_for_any_number_of_arrays_and_sizes():
    texts = {bound_doubling(sizes)[0].text.text for sizes in ((5, 70), (1000, 2, 3), (4096, 4096))}
    assert len(texts) == 1

"""backends.cuda.codegen.loop_nest: random kernels with random schedules, against NumPy in float64, without hazards."""

from collections.abc import Callable
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import minifuse as mf
from minifuse import simt
from minifuse.backends.codegen import gpu_schedule
from minifuse.backends.codegen.gpu_facts import Facts
from minifuse.backends.codegen.gpu_schedule import choose_schedule
from minifuse.backends.codegen.nest import KernelNest
from minifuse.backends.codegen.schedule import LoopSchedule, Tile
from minifuse.backends.cuda import launcher
from minifuse.backends.cuda.codegen import select
from minifuse.backends.cuda.codegen.select import generate_kernel
from minifuse.backends.cuda.launcher import CudaKernelLauncher, kernel_geometry
from minifuse.compiler.plan import Plan
from minifuse.core.dtypes import float32
from minifuse.core.layout import Layout, row_major
from minifuse.core.operators import add, maximum
from minifuse.ir.kernel_ir import Kernel, Load, LoopNest, reduce_expr
from minifuse.ir.monoids import FIRST_EXTREME
from minifuse.ir.steps import Step
from project.benchmarks.fusion_corpus import TWENTY
from tests.examples import share

from ..cuda.simulated import simulated

BACKEND = simulated()


class Form(NamedTuple):
    """Values of each point and of each row, of two operands and of reductions.

    `first(x, y)` is the smallest y of the largest x: a state of a monoid with two.
    """

    points: Callable[..., tuple]
    rows: Callable[..., tuple]


NOTHING = lambda x, y, total, top, first: ()  # noqa: E731
POINTWISE = [
    Form(lambda x, y, total, top, first: (x * y + x,), NOTHING),
    Form(lambda x, y, total, top, first: (x - y, y * y), NOTHING),
]
REDUCED = [
    Form(NOTHING, lambda x, y, total, top, first: (total(x * y),)),
    Form(NOTHING, lambda x, y, total, top, first: (total(x), top(y - x))),
    Form(lambda x, y, total, top, first: (x * y - total(x),), NOTHING),
    Form(NOTHING, lambda x, y, total, top, first: (first(x, y),)),
    Form(lambda x, y, total, top, first: (x - first(x - y, x),), lambda x, y, total, top, first: (first(y, x), total(x))),
    Form(lambda x, y, total, top, first: (x - top(x + y),), lambda x, y, total, top, first: (total(x - top(x + y)),)),
]


class Case(NamedTuple):
    """A kernel over a shape, the layouts of its two inputs, and a schedule."""

    form: Form
    kernel: Kernel
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    inputs: list[Layout]
    schedule: LoopSchedule


def layouts_of_outputs(case_kernel, shape, dims):
    rows = tuple(1 if d in dims else n for d, n in enumerate(shape))
    whole = row_major(shape)
    count = len(case_kernel.pointwise_outputs)
    return [whole] * count + [row_major(rows).expand(*shape)] * len(case_kernel.row_outputs)


def nest_of(kernel, shape, dims, inputs):
    return LoopNest(shape, dims, [*layouts_of_outputs(kernel, shape, dims), *inputs])


@st.composite
def layouts(draw, shape):
    """A layout with its dims in any order in memory, some of them repeated or in steps."""
    order = draw(st.sampled_from(list(permutations(range(len(shape))))))
    strides, step = [0] * len(shape), draw(st.sampled_from([1, 1, 2]))
    for d in order:
        if draw(st.sampled_from([True, True, True, False])):
            strides[d] = step
            step *= shape[d] + draw(st.sampled_from([0, 0, 1]))
    return Layout(shape, tuple(strides), 0)


@st.composite
def cases(draw):
    count = draw(st.integers(1, 3))
    shape = tuple(draw(st.sampled_from([1, 2, 3, 5, 8, 12, 33])) for _ in range(count))
    reduced = draw(st.integers(0, min(count, 2)))
    dims = tuple(sorted(draw(st.permutations(range(count)))[:reduced]))
    form = draw(st.sampled_from(REDUCED if dims else POINTWISE))
    kernel = expressions(form)
    inputs = [draw(layouts(shape)) for _ in range(2)]
    nest = nest_of(kernel, shape, dims, inputs)
    return Case(form, kernel, shape, dims, inputs, draw(schedules(KernelNest(kernel, nest))))


def expressions(form):
    operands = Load(0, float32), Load(1, float32)
    first = FIRST_EXTREME[maximum].states[1]
    reductions = [*[lambda e, op=op: reduce_expr(op, e) for op in (add, maximum)], lambda x, y: reduce_expr(first, (x, y))]
    return Kernel(form.points(*operands, *reductions), form.rows(*operands, *reductions))


@st.composite
def schedules(draw, nest):
    """A legal schedule, which need not be a good one."""
    tiles, order, room = [], [], 128
    facts = Facts(nest)
    axes = range(len(nest.sizes))
    wide = [a for a in axes if nest.sizes[a] >= 4 and facts.can_vectorize(a)]
    wide = draw(st.sampled_from([*wide, None]))
    tail = None
    for a in axes:
        n, vector = nest.sizes[a], 1
        if n == 1 or (a in nest.reduced and n <= 5 and draw(st.booleans())):
            tiles.append(Tile(registers=n, is_constant=True))
            continue
        threads = draw(st.sampled_from([x for x in (1, 2, 8, 32) if x <= room])) if len(order) < 2 else 1
        registers = draw(st.integers(1, 3))
        serial = a in nest.reduced and draw(st.booleans())
        if a == wide and (a not in nest.reduced or serial or n % 4 == 0):
            vector = 4
        if a in nest.reduced and not serial:
            registers = -(-n // (threads * vector))
        if vector > 1 and n % 4:
            tail = a
        room //= threads
        order += [a] * (threads > 1)
        tiles.append(Tile(threads, registers, vector, serial))
    free = [a for a in axes if a not in nest.reduced and not tiles[a].is_constant]
    column = draw(st.sampled_from([None, *free]))
    order = draw(st.permutations(order))
    schedule = LoopSchedule(tuple(tiles), tuple(order), column, tail)
    return schedule._replace(vectors=facts.vector_operands(schedule))


def first_of(x, y, **reduced):
    """The smallest y of the largest x."""
    x, y = np.broadcast_arrays(x, y)
    return np.where(x == x.max(**reduced), y, np.inf).min(**reduced)


def run(case, schedule, start=0):
    """The outputs of a kernel by a schedule, and of NumPy in float64."""
    random = np.random.default_rng(7)
    flats = [np.concatenate([np.zeros(start), random.integers(-9, 9, x.span()[1])]).astype("f4") for x in case.inputs]
    outputs = layouts_of_outputs(case.kernel, case.shape, case.dims)
    found = [np.full(layout.span()[1], np.nan, "f4") for layout in outputs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "choose_schedule", lambda *facts: schedule)
        patch.setattr(select, "has_template", lambda *facts: False)
        patch.setattr(select, "is_read_again", lambda *facts: False)
        step = Step.of_layouts(case.kernel, case.shape, case.dims, outputs, list(case.inputs))
        bound_kernel = CudaKernelLauncher(BACKEND.device, step)
        addresses = [x.ctypes.data for x in found] + [x.ctypes.data + 4 * start for x in flats]
        trace = simt.trace(bound_kernel.plans(*addresses)[0], limit=None)
    assert trace.hazards() == []
    views = [
        as_strided(x[start:], layout.shape, [4 * s for s in layout.strides]).astype("f8")
        for x, layout in zip(flats, case.inputs, strict=True)
    ]
    reduced = {"axis": case.dims, "keepdims": True}
    reductions = [*[lambda e, f=f: f(e, **reduced) for f in (np.sum, np.max)], lambda x, y: first_of(x, y, **reduced)]
    for x, layout, right in zip(
        found, outputs, [*case.form.points(*views, *reductions), *case.form.rows(*views, *reductions)], strict=True
    ):
        y = as_strided(x, layout.shape, [4 * s for s in layout.strides])
        np.testing.assert_array_equal(y, np.broadcast_to(right, layout.shape))


@settings(share(3), phases=[Phase.explicit, Phase.generate])
@given(cases())
def test_any_legal_schedule_computes_the_same(case):
    run(case, case.schedule)


@settings(share(0.8), phases=[Phase.explicit, Phase.generate])
@given(cases())
def test_the_chosen_schedule_computes_the_same(case):
    nest = KernelNest(case.kernel, nest_of(case.kernel, case.shape, case.dims, case.inputs))
    run(case, choose_schedule(nest))


def bound(function, *tensors):
    (step,) = Plan(function, tensors).steps
    return step, BACKEND.compile(step).load()


@pytest.mark.parametrize("first", [1, 2, 4])
def test_unaligned_addresses_fall_back_to_single_elements(first):
    a = np.random.default_rng(1).standard_normal(1000).astype("f4")
    x = mf.tensor(a, backend=BACKEND)[first : first + 900]
    _, launcher = bound(lambda x: x * 2, x)
    assert launcher.text.wide == ("out0", "in0")
    assert (launcher.launcher_for((0, x.address)) is launcher) == (first == 4)
    assert launcher.launcher_for((0, 4)).text.wide == ()
    np.testing.assert_array_equal((x * 2).numpy(), a[first : first + 900] * 2)


def test_unaligned_rows_that_fit_as_vectors_only_have_a_template(monkeypatch):
    monkeypatch.setattr(gpu_schedule, "MAX_LONG_ROW_THREADS", 512)

    def function(x, y, z):
        return x * x.sum(1, True) + y * z

    random = np.random.default_rng(2)
    arrays = [random.uniform(0, 1, (2, 16384)).astype("f4") for _ in range(3)]
    buffers = [mf.tensor(np.concatenate([[0], a.ravel()]).astype("f4"), backend=BACKEND) for a in arrays]
    tensors = [x[1:].reshape(2, 16384) for x in buffers]
    _, launcher = bound(function, *tensors)
    out = np.empty(4 * 16384, "f4")
    values = (out.ctypes.data, *[x.address for x in tensors])
    assert launcher.text.schedule is not None
    assert len(launcher.text.wide) == 4
    fallback = launcher.launcher_for(values)
    assert fallback.text.schedule is None
    assert fallback.arguments(values)[-1] == 0, "no element moves in a vector"
    x, y, z = [a.astype("f8") for a in arrays]
    expected = x * x.sum(1, keepdims=True) + y * z
    np.testing.assert_allclose(mf.fuse(function)(*tensors).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(32, 512), (33, 640), (67, 136), (50, 41)])
def test_columns_equal_numpy(shape):
    a = np.random.default_rng(3).uniform(0.5, 2, shape).astype("f4")
    x = mf.tensor(a, backend=BACKEND)
    for function in (lambda x: x.sum(0), lambda x: x.max(0), lambda x: (x * x).sum(0) / x.sum(0), lambda x: x - x.mean(0)):
        exact = function(mf.tensor(a.astype("f8"))).numpy()
        np.testing.assert_allclose(function(x).numpy(), exact, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_columns_of_other_types(dtype):
    a = (np.random.default_rng(3).uniform(0.5, 2, (40, 512)) * 9).astype(dtype)
    np.testing.assert_allclose(mf.tensor(a, backend=BACKEND).sum(0).numpy(), a.sum(0), rtol=1e-12)


def test_no_thread_past_the_end_stores_the_last_vector_of_columns_again():
    a = np.random.default_rng(4).random((40, 516), np.float32)
    x, out = mf.tensor(a, backend=BACKEND), np.full(516, np.nan, "f4")
    _, launcher = bound(lambda x: x.sum(0), x)
    assert launcher.text.wide
    assert launcher.geometry.grid[0] * launcher.text.schedule.tiles[0].length > 516
    trace = simt.trace(launcher.plans(out.ctypes.data, x.address)[0], limit=None)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, a.sum(0, dtype="f8"), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 3), (40, 101), (3, 1025), (5, 2051), (2, 3, 33)])
def test_rows_that_are_not_aligned_are_computed_once(shape):
    random = np.random.default_rng(1)
    x, row = random.normal(size=shape).astype("f4"), random.normal(size=shape[-1:]).astype("f4")
    tensors = mf.tensor(x, backend=BACKEND), mf.tensor(row, backend=BACKEND)
    out = np.full(shape, np.nan, "f4")
    _, launcher = bound(lambda x, row: mf.exp(x) + row, *tensors)
    trace = simt.trace(launcher.plans(out.ctypes.data, *[t.address for t in tensors])[0], limit=None)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, np.exp(x.astype("f8")) + row, rtol=1e-5, atol=1e-6)
    stores = trace.events.address[trace.events.kind == 1]
    assert len(np.unique(stores)) == len(stores)


@pytest.mark.parametrize(("m", "n", "k"), [(33, 65, 17), (64, 32, 40), (130, 70, 16)])
def test_contractions_in_chunks_of_shared_memory(m, n, k):
    random = np.random.default_rng(5)
    a, b = random.standard_normal((m, k)).astype("f4"), random.standard_normal((n, k)).astype("f4")
    x, y = mf.tensor(a, backend=BACKEND), mf.tensor(b, backend=BACKEND)
    _, launcher = bound(lambda x, y: abs(x.unsqueeze(1) - y).sum(2), x, y)
    assert launcher.text.schedule.staged
    out = np.full((m, n), np.nan, "f4")
    trace = simt.trace(launcher.plans(out.ctypes.data, x.address, y.address)[0], limit=None)
    assert trace.hazards() == []
    np.testing.assert_allclose(out, abs(a[:, None].astype("f8") - b).sum(2), rtol=1e-5)


def text(function, *shapes):
    (step,) = Plan(function, [mf.zeros(*shape, backend=BACKEND) for shape in shapes]).steps
    outputs, inputs = step.layouts()
    return generate_kernel(step.kernel, LoopNest(step.shape, step.dims, [*outputs, *inputs])).text


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda x: mf.tanh(x) + 1, [(4096, 1024), (8000, 2048)]),
        (lambda x: x.sum(1), [(2000, 1001), (2001, 1003)]),
        (lambda x: x.softmax(1), [(2048, 1001), (2048, 1003)]),
        (lambda x: x.sum(0), [(300, 2001), (310, 2003)]),
    ],
)
def test_a_new_size_in_the_same_schedule_needs_no_new_text(function, sizes):
    assert len({text(function, shape) for shape in sizes}) == 1


GOLDEN = {
    "chain": (lambda x, y: mf.exp(x) * 2 + y, [(64, 80), (80,)]),
    "softmax in registers": (lambda x: x.softmax(1), [(2048, 1024)]),
    "columns": (lambda x: x.sum(0), [(300, 2001)]),
    "pairwise distance": (lambda x, y: ((x.unsqueeze(1) - y) ** 2).sum(2), [(64, 40), (96, 40)]),
    "layer norm": (lambda x: (x - x.mean(1, True)) / mf.sqrt(x.var(1, False, True) + 1e-5), [(2048, 256)]),
    "max pool": (lambda x: x.unfold(1, 2, 2).max(2), [(64, 96)]),
    "softmax of long rows": (lambda x: x.softmax(1), [(600, 20_001)]),
    "variance of long rows": (lambda x: x.var(1), [(600, 20_004)]),
    "softmax of transposed rows": (lambda x: x.T.softmax(1), [(60, 4000)]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_texts_of(name, golden):
    function, shapes = GOLDEN[name]
    golden(text(function, *shapes))


def test_kernels_without_effects_or_gathers_have_schedules(monkeypatch):
    """The corpus has no form of the templates but tiles and long rows."""
    found = []

    def noted(text, *launch):
        found.append(text)
        return kernel_geometry(text, *launch)

    monkeypatch.setattr(launcher, "kernel_geometry", noted)
    for function in [x for x in TWENTY if "in place" not in x.name]:
        inputs = [mf.from_numpy(x.copy(), backend=BACKEND) for x in function.inputs(np.random.default_rng(11))]
        for step in Plan(function.tensors, inputs).steps:
            BACKEND.compile(step).load()
    assert found
    assert {text.form for text in found} <= {"nest", "tiles", "rows"}
    assert all(text.held for text in found if text.form == "rows")


def distances(x, y):
    return mf.exp(-((x[:, None] - y[None]) ** 2).sum(2))


@pytest.mark.parametrize("function", [distances, lambda x, y: (x[:, None] * y[None]).sum((0, 2)), lambda x, y: x @ y.T])
def test_schedules_of_large_arrays_are_right_for_small_ones(function, monkeypatch):
    """A thread has many results where the GPU is full. At the end of rows it has others, so accumulators differ in size."""
    monkeypatch.setattr(gpu_schedule, "BUSY_THREADS", 1)
    monkeypatch.setattr(gpu_schedule, "PROCESSORS", 1)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((67, 3)), rng.standard_normal((59, 3))
    got = mf.fuse(function)(*[mf.tensor(a.astype("float32"), backend=BACKEND) for a in (x, y)])
    expected = mf.fuse(function)(mf.tensor(x, backend="python"), mf.tensor(y, backend="python"))
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=2e-5, atol=1e-6)

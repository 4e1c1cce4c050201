"""compiler.batch_launches: which launches become one, their results, and what explain and profile print."""

from random import Random

import numpy as np
import pytest

import minifuse as mf
from minifuse import float32
from minifuse.backends.parallel import multi_tensor as tables
from minifuse.backends.parallel.backend import ParallelBackend
from minifuse.backends.parallel.driver import CpuKernelLauncher
from minifuse.backends.registry import get_backend
from minifuse.compiler import batch_launches
from minifuse.compiler.batch_launches import batch_steps
from minifuse.compiler.memory_traffic import step_traffic
from minifuse.compiler.plan import plans, runs
from minifuse.core.layout import Layout
from minifuse.ir.kernel_ir import Kernel, Load
from minifuse.ir.steps import Step
from tests.steps import set_batching

SIZES = 1, 31, 32, 33, 1023, 1025
LARGE = 65537, 7, 131_073


def arrays(shapes, dtype="float32", backend="parallel"):
    return [mf.tensor(np.sin(np.arange(np.prod(s)) + k).reshape(s), dtype, backend) for k, s in enumerate(shapes)]


def steps_of(function, *inputs):
    return mf.fuse(function).plan(*inputs).steps


def kinds(function, *inputs):
    """Return the number of launches in each step."""
    return [len(step.parts()) for step in steps_of(function, *inputs)]


def halves(xs):
    return [x.sin() * 0.5 for x in xs]


@pytest.mark.parametrize("sizes", [SIZES, LARGE, SIZES[::-1], LARGE[::-1]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_array_gets_its_own_values(sizes, dtype):
    xs = arrays([(n,) for n in sizes], dtype)
    assert kinds(halves, xs) == [len(sizes)]
    for x, y in zip(xs, mf.fuse(halves)(xs), strict=True):
        np.testing.assert_allclose(y.numpy(), np.sin(x.numpy().astype("f8")) / 2, rtol=2e-6)


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 64])
def test_any_split_among_threads(monkeypatch, chunks):
    monkeypatch.setattr(tables, "count_chunks", lambda count, work: min(count, chunks))
    xs = arrays([(n,) for n in (3, 1, 41, 2, 1, 17)])
    before = [x.numpy() + 1.5 for x in xs]
    found = mf.fuse(lambda xs: [x + 1.5 for x in xs])(xs)
    for x, y in zip(before, found, strict=True):
        np.testing.assert_array_equal(y.numpy(), x)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_an_optimizer_step_is_one_launch(monkeypatch, kind):
    """The results are those of one launch per parameter.

    The last bits may differ: which of two products becomes part of a fused multiply-add is LLVM's choice, and it differs
    between the vector loop and the scalar one (on Intel's CPUs with AVX-512, a parameter of shape () shows it).
    """
    shapes = [(n,) for n in SIZES] + [(3, 5), (), (300, 301)]
    found = []
    for has_batches in (True, False):
        set_batching(monkeypatch, ParallelBackend, has_batches)
        plans.clear()
        runs.clear()
        params = [x.requires_grad_() for x in arrays(shapes)]
        optimizer = getattr(mf.optim, kind)(params, lr=0.1, weight_decay=0.01)
        for _ in range(3):
            for k, p in enumerate(params):
                p.grad = p.detach() * (k + 1)
            before = set(plans)
            optimizer.step()
            made = [plan for key, plan in plans.items() if key not in before and plan.graph.stores]
            assert [len(plan.steps) for plan in made] in ([], [1 if has_batches else len(shapes)])
        found.append([p.detach().numpy() for p in params])
    for x, y in zip(*found, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6)


def test_a_backend_without_multi_tensor_launches_in_sequence():
    xs = arrays([(3,), (4,)], backend="python")
    assert kinds(halves, xs) == [1, 1]
    assert [y.shape for y in mf.fuse(halves)(xs)] == [(3,), (4,)]


# Which launches are batched


def test_dense_arrays_of_any_shape_and_order_are_one_axis():
    x, y, z = arrays([(3, 4), (2, 3, 5), (6, 7)])
    assert kinds(halves, [x, y.permute(2, 0, 1), z.T]) == [3]


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x, y: (x * 2, y * 2), [2]),
        (lambda x, y: (x * 3, y * 3), [2]),
        (lambda x, y: (x * 3, y * 5), [1, 1]),  # other numbers
        (lambda x, y: (x * 2, y + 2), [1, 1]),  # another kernel
        (lambda x, y: (x[::2] * 2, y[::2] * 2), [1, 1]),  # strides
        (lambda x, y: (x[:, None] * x, y[:, None] * y), [1, 1]),  # two axes
        (lambda x, y: (x.sum(), y.sum()), [1, 1]),  # rows
        (lambda x, y: (x * 2, y.to("float64") * 2), [1, 1]),  # another element type
    ],
)
def test_only_equal_kernels_are_batched(function, wanted):
    assert kinds(function, *arrays([(6,), (8,)])) == wanted


DOUBLE = Kernel((Load(0, float32) + Load(0, float32),), ())


def doubling(target, source, start=0, n=5):
    """Return a step that doubles elements of a slot, from an offset on."""
    return Step(DOUBLE, (n,), (), [(target, Layout((n,), (1,), start))], [(source, Layout((n,), (1,), start))])


@pytest.mark.parametrize(
    ("steps", "order"),
    [
        ([doubling(2, 0), doubling(3, 1)], [0, 0]),
        ([doubling(2, 0), doubling(3, 0)], [0, 0]),  # both may read one array
        ([doubling(2, 0), doubling(3, 2)], [0, 1]),  # one reads an array that the other stores
        ([doubling(2, 0), doubling(0, 1)], [0, 1]),  # one overwrites an array that the other reads
        ([doubling(2, 0), doubling(2, 1)], [0, 1]),  # both store in the same elements
        ([doubling(2, 0), doubling(2, 1, start=5)], [0, 0]),  # both store in one array, in disjoint parts
        ([doubling(2, 0), doubling(2, 1, start=4)], [0, 1]),
        ([doubling(2, 0), doubling(3, 2), doubling(4, 1)], [0, 1, 1]),  # it joins the last step that it may run with
        ([doubling(2, 0), doubling(3, 2), doubling(4, 3), doubling(5, 1)], [0, 1, 2, 2]),
        ([doubling(2, 0), doubling(3, 1), doubling(4, 3), doubling(5, 2)], [0, 0, 1, 1]),
        ([doubling(2, 0), doubling(3, 2, n=0), doubling(4, 1)], [0, 1, 0]),  # the step between stores nothing
    ],
)
def test_dependent_steps_stay_in_order(steps, order):
    found = batch_steps(steps, get_backend("parallel"))
    assert len(found) == 1 + max(order)
    for k, step in enumerate(found):
        parts = [x for x, place in zip(steps, order, strict=True) if place == k]
        own = step.parts()
        assert own[0] is parts[0] if len(parts) == 1 else (len(own) == len(parts) and all(x in parts for x in own))


def test_a_reader_runs_after_its_writer():
    def chain(x, y):
        a = (x * 2).sum(0, keepdim=True)  # a reduction between them keeps the kernels separate
        return x * 2, a * 2, y * 2

    x, y = arrays([(5,), (7,)])
    found = mf.fuse(chain)(x, y)
    a = (x.numpy() * 2).sum(keepdims=True)
    for z, wanted in zip(found, (x.numpy() * 2, a * 2, y.numpy() * 2), strict=True):
        np.testing.assert_allclose(z.numpy(), wanted, rtol=1e-6)


def test_changes_in_place_stay_in_order():
    def swap(x, y):
        old = x.clone()
        x += 1
        y += 1
        x += y[:3]
        y += 1
        return old

    inputs = [arrays([(3,), (5,)]) for _ in range(2)]
    fused = mf.fuse(swap)
    results = [swap(*inputs[0]), fused(*inputs[1])]
    for a, b in zip([*inputs[0], results[0]], [*inputs[1], results[1]], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_two_halves_of_one_array_count_as_two_arrays():
    def both(x):
        x[:3] += 1
        x[3:] += 1

    (x,) = arrays([(8,)])
    wanted = x.numpy() + 1
    mf.fuse(both)(x)
    np.testing.assert_array_equal(x.numpy(), wanted)


def test_empty_launches_are_not_batched():
    xs = arrays([(0,), (3,), (0, 4), (5,)])
    assert [y.tolist() for y in mf.fuse(lambda xs: [x + 1 for x in xs])(xs)][::2] == [[], []]


def test_large_new_arrays_are_not_batched_but_in_place_changes_are(monkeypatch):
    monkeypatch.setattr(batch_launches, "MAX_BATCHED_POINTS", 40)
    xs = arrays([(40,), (41,), (5,)])
    assert kinds(halves, xs) == [2, 1]

    def change(xs):
        for x in xs:
            x *= 3

    assert kinds(change, xs) == [3]


def test_gradients_of_batched_launches():
    xs = [x.requires_grad_() for x in arrays([(33,), (4, 5)])]
    sum(y.sum() for y in mf.fuse(halves)(xs)).backward()
    for x in xs:
        np.testing.assert_allclose(x.grad.numpy(), np.cos(x.detach().numpy()) / 2, rtol=1e-5)


def test_an_integer_that_overflows_is_an_error():
    xs = [x.to("int32") for x in arrays([(3,), (4,)])]
    add = mf.fuse(lambda xs, n: [x + n for x in xs])
    assert [y.tolist() for y in add(xs, 2)] == [(x.numpy() + 2).tolist() for x in xs]
    with pytest.raises((mf.DTypeError, OverflowError)):
        add(xs, 2**40)


# Reports


def test_traffic_launches_and_formula():
    xs = arrays([(40,), (5, 6), (40,)])
    fused = mf.fuse(halves)
    plan = fused.plan(xs)
    (step,) = plan.steps
    moved, alone = step_traffic(step, plan.backend), [step_traffic(part, plan.backend) for part in step.parts()]
    assert moved.launches == 1
    assert moved.nbytes == sum(x.nbytes for x in alone) == 8 * 110
    assert [len(moved.reads), len(moved.writes)] == [3, 3]
    page = str(fused.explain(xs))
    assert "1 kernel instead of 6, 880 B moved" in page
    assert "launch0: 0.5 * sin(xs_0); and 2 more like it" in page or "sin(xs_0) * 0.5; and 2 more like it" in page
    assert "pointwise over 2 x (40,) and (5, 6); 1 launch" in page
    source = fused.source(xs)
    assert source.count("def kernel") == 1
    assert source.count("launch0(") == 1
    assert "then the same of m" in source
    assert fused.stats().kernels == 1


def test_a_profile_lists_one_launch():
    xs = arrays([(40,), (5, 6)])
    fused = mf.fuse(halves)
    fused(xs)
    with mf.profile() as p:
        found = fused(xs)
    assert len(p.events) == 1
    assert p.events[0].work.nbytes == 8 * 70
    np.testing.assert_allclose(found[1].numpy(), np.sin(xs[1].numpy()) / 2, rtol=1e-6)


def test_the_fusion_log_names_the_launch():
    xs = arrays([(40,), (5, 6)])
    made = [step for step in mf.fuse(halves).explain(xs).steps if step.kind == "made"]
    assert [step.launch for step in made] == [0, 0]


def test_a_batched_launch_on_one_thread_is_one_c_call():
    """The table is passed before the addresses."""
    xs = arrays([(3,), (4,)])
    launch = get_backend("parallel").compile(mf.fuse(halves).plan(xs).steps[0]).load()
    assert isinstance(launch, CpuKernelLauncher)
    assert launch.header
    assert launch.fast_entry() is not launch
    for x, y in zip(xs, mf.fuse(halves)(xs), strict=True):
        np.testing.assert_allclose(y.numpy(), np.sin(x.numpy()) / 2, rtol=1e-6)


def program(random):
    """Return a random function of arrays: new arrays and in-place changes that depend on each other."""
    kinds = ["new", "new", "scale", "part", "total", "clone", "mean"]
    steps = [(random.choice(kinds), random.randrange(10), random.randrange(10)) for _ in range(random.randint(3, 12))]

    def function(*xs):
        values = list(xs)
        for kind, j, k in steps:
            a, b = values[j % len(values)], values[k % len(values)]
            if kind == "new":
                values.append(a * 3)
            elif kind == "scale":
                a *= 0.5
            elif kind == "part":
                a[:2] += 1
            elif kind == "total":
                values.append(a + b.sum())
            elif kind == "clone":
                values.append(a.clone())
            else:
                a += b.mean()
        return tuple(values)

    return function


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
def test_random_programs_agree_with_unbatched_ones(backend):
    found = 0
    for seed in range(16):
        function = program(Random(seed))
        shapes = [(size,) for size in np.random.default_rng(seed).integers(1, 9, 4)]
        xs, ys = arrays(shapes), arrays(shapes, backend=backend)
        wanted, fused = function(*xs), mf.fuse(function)
        for x, y in zip([*xs, *wanted], [*ys, *fused(*ys)], strict=True):
            np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=1e-4, atol=1e-5, err_msg=str(seed))
        found += sum(len(step.parts()) > 1 for step in fused.plan(*ys).steps)
    assert found > 5

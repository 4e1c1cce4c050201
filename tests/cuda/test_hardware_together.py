"""One launch over a table of arrays on a GPU: bit by bit what a launch for each array gives, whatever changes."""

import threading

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.backend import CudaBackend
from minifuse.backends.cuda.multi_tensor import MAX_CACHED_TABLES, CudaMultiTensorLauncher
from minifuse.compiler.plan import plans, runs
from tests.steps import set_batching

from .conftest import bits

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SIZES = 129, 0, 1, 3, 31, 70_001, 1024, 2049, 300_000


def tensors(sizes, dtype="float32", first=0, seed=0):
    """A tensor of each size, which begins so many elements behind a multiple of 16 bytes."""
    rng = np.random.default_rng(seed)
    return [mf.tensor(rng.uniform(-9, 9, n + first).astype(dtype))[first:] for n in sizes]


def scaled(xs, a, b):
    return [x * a + b for x in xs]


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


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_the_same_bits_as_a_launch_for_each(monkeypatch, dtype, first):
    xs, numbers = tensors(SIZES, dtype, first), (3, -1) if dtype.startswith("i") else (0.3, -1.7)
    together, apart = both_ways(monkeypatch, lambda: [bits(y) for y in mf.fuse(scaled)(xs, *numbers)])
    assert together == apart
    for x, y in zip(xs, together, strict=True):
        wanted = x.numpy().astype("f8") * numbers[0] + numbers[1]
        np.testing.assert_allclose(np.frombuffer(y, x.numpy().dtype), wanted, rtol=1e-5, atol=1e-5)


def test_arrays_that_begin_anywhere(monkeypatch):
    xs = [*tensors(SIZES), *tensors(SIZES, first=1), *tensors(SIZES, first=3), *[x > 0 for x in tensors(SIZES)]]

    def halves(xs):
        return [(~x if x.dtype.name == "bool" else x / 2) for x in xs]

    together, apart = both_ways(monkeypatch, lambda: [bits(y) for y in mf.fuse(halves)(xs)])
    assert together == apart


def test_many_arrays(monkeypatch):
    xs = tensors([1 + 37 * k % 1500 for k in range(2500)])
    together, apart = both_ways(monkeypatch, lambda: [bits(y) for y in mf.fuse(scaled)(xs, 2.0, 1.0)])
    assert together == apart


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_steps_of_an_optimizer(monkeypatch, kind):
    """Settings that change, gradients that lie elsewhere in each step, parameters without one now and then."""

    def run():
        params = [x.requires_grad_() for x in tensors([n for n in SIZES if n])]
        options = {"momentum": 0.9} if kind == "SGD" else {}
        optimizer = getattr(mf.optim, kind)(params, lr=0.1, weight_decay=0.01, **options)
        kept = []
        for step in range(12):
            for k, p in enumerate(params):
                p.grad = p.detach() * 0.5 + step if (step + k) % 5 or step < 4 else None
                kept.append(p.grad if step % 3 else None)
            optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
            optimizer.step()
        return [bits(p.detach()) for p in params]

    together, apart = both_ways(monkeypatch, run)
    assert together == apart


def test_a_step_that_is_replayed(monkeypatch):
    """Forward, backward, clipping and update as one call, which becomes a graph; its inputs take turns."""

    def run():
        mf.manual_seed(0)
        model = mf.nn.Sequential(mf.nn.Linear(33, 65), mf.nn.ReLU(), mf.nn.Linear(65, 65), mf.nn.ReLU(), mf.nn.Linear(65, 3))
        model.to("cuda")
        optimizer = mf.optim.Adam(model.parameters(), lr=1e-2)
        batches = [(x.reshape(8, 33), y) for x, y in zip(tensors([264] * 3, seed=1), tensors([24] * 3, seed=2), strict=True)]

        @mf.fuse
        def step(x, y):
            optimizer.zero_grad()
            loss = ((model(x).reshape(24) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        losses = [step(*batches[k % 3]) for k in range(30)]
        return [bits(loss) for loss in losses] + [bits(p.detach()) for p in model.parameters()]

    together, apart = both_ways(monkeypatch, run)
    assert together == apart


def launch_over(gpu, sizes):
    """A bound launch that doubles arrays, the shortest way to it, and the memory that it reads."""
    xs = tensors(sizes)
    (step,) = mf.fuse(lambda xs: [x * 2.5 for x in xs]).plan(xs).steps
    bound = gpu.compile(step).load()
    assert isinstance(bound, CudaMultiTensorLauncher)
    return bound, bound.fast_entry(), xs


def values(outs, xs):
    return *[x.address for pair in zip(outs, xs, strict=True) for x in pair], 2.5


def test_other_addresses_in_each_call_without_a_wait(gpu):
    """Tables follow each other in the stream: each launch reads its own."""
    sizes = 70_001, 4096, 129, 1
    _, launch, xs = launch_over(gpu, sizes)
    outs = [[mf.full(n, np.nan) for n in sizes] for _ in range(4 * MAX_CACHED_TABLES)]
    for turn in outs:
        launch(*values(turn, xs))
    for turn in outs:
        for x, out in zip(xs, turn, strict=True):
            assert bits(out) == bits(x * 2.5)


def test_a_graph_keeps_its_table(gpu):
    """Also after the launch itself has forgotten it."""
    sizes = 70_001, 4096, 129
    bound, launch, xs = launch_over(gpu, sizes)
    other, _, _ = launch_over(gpu, sizes)
    outs, more = ([mf.zeros(n) for n in sizes] for _ in range(2))
    count = 2 * len(sizes) + 1
    sequence = gpu.join([bound, other], [count, count], {})
    for _ in range(3):
        sequence(*values(outs, xs), *values(more, xs))
    assert len(sequence.replays) == 1
    for _ in range(2 * MAX_CACHED_TABLES):
        launch(*values([mf.zeros(n) for n in sizes], xs))
    for x in xs:
        x += 1
    sequence(*values(outs, xs), *values(more, xs))
    assert len(sequence.replays) == 1
    for found in (outs, more):
        for x, out in zip(xs, found, strict=True):
            assert bits(out) == bits(x * 2.5)


def test_threads(gpu):
    sizes = 4096, 129, 1
    _, launch, xs = launch_over(gpu, sizes)
    found, errors = [[mf.full(n, np.nan) for n in sizes] for _ in range(40)], []

    def work(part):
        try:
            for turn in part:
                launch(*values(turn, xs))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(found[k::4],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for turn in found:
        for x, out in zip(xs, turn, strict=True):
            assert bits(out) == bits(x * 2.5)


def test_a_value_of_another_type_is_an_error(gpu):
    _, launch, xs = launch_over(gpu, (4096, 129))
    outs = [mf.zeros(4096), mf.zeros(129)]
    with pytest.raises((TypeError, ValueError)):
        launch(*values(outs, xs)[:-1], "one")

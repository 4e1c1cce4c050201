"""inspect.profile: every launch once, with the bytes of its plan; a profile changes nothing but times."""

import json
import threading
from contextlib import nullcontext

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.registry import get_backend
from minifuse.core.errors import FuseError
from minifuse.inspect.report import InspectionReport
from minifuse.inspect.roofline import MachineLimits, machine_limits
from minifuse.inspect.timeline import LaunchEvent, LaunchWork, group_launches, make_row, profile_table

X = np.random.default_rng(3).standard_normal((40, 33)).astype(np.float32)


def kernels(profile):
    return {row.work.formula: row.count for row in profile.rows}


def test_each_call_of_the_eager_engine_is_seen():
    x = mf.tensor(X)
    with mf.profile() as p:
        for _ in range(3):
            y = mf.exp(x) * x
        y.sum(1)
    assert kernels(p) == {"exp(x0)": 3, "x0 * x1": 3, "sum(x0)": 1}
    assert [call.function for call in p.calls] == ["exp", "mul"] * 3 + ["reduce_dims"]
    by = {row.work.formula: row.work for row in p.rows}
    assert by["x0 * x1"].nbytes == 3 * X.nbytes
    assert by["sum(x0)"].nbytes == X.nbytes + 40 * 4
    assert by["sum(x0)"].form == "rows of (40, 33) along dim 1"


def test_fused_functions_are_seen_under_their_names_and_with_the_users():
    @mf.fuse
    def scaled_softmax(x, k):
        return (x * k).softmax(1)

    x = mf.tensor(X)
    expected = scaled_softmax(x, 2.5).numpy()
    with mf.profile() as p:
        found = scaled_softmax(x, 2.5)
    np.testing.assert_array_equal(found.numpy(), expected)
    (row,) = p.rows
    assert (row.work.function, row.count) == ("scaled_softmax", 1)
    assert "x * k" in row.work.formula
    assert row.work.nbytes == scaled_softmax.explain(x, 2.5).forward.nbytes


def test_gradients_and_optimizers_are_seen_and_are_the_same():
    def trained(measure):
        mf.manual_seed(1)
        model = mf.nn.Linear(33, 7)
        optimizer = mf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        x = mf.tensor(X)
        with measure:
            for _ in range(2):
                optimizer.zero_grad()
                loss = (model(x) ** 2).mean()
                loss.backward()
                optimizer.step()
        return [p.numpy().copy() for p in model.parameters()]

    profile = mf.profile()
    for found, expected in zip(trained(profile), trained(nullcontext()), strict=True):
        np.testing.assert_array_equal(found, expected)
    functions = [row.work.function for row in profile.rows]
    assert any(name.startswith("gradient of") for name in functions)
    assert any("x0 -" in row.work.formula for row in profile.rows), "the update of the optimizer, in place"


def test_a_fused_training_step_is_seen():
    w = mf.tensor(np.ones((33, 7), np.float32), requires_grad=True)
    optimizer = mf.optim.SGD([w], lr=0.1)

    @mf.fuse
    def step(x):
        optimizer.zero_grad()
        loss = ((x @ w) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    x = mf.tensor(X)
    first = step(x).item()
    with mf.profile() as p:
        second = step(x).item()
    assert second < first, "w was changed, in the block too"
    assert {row.work.function for row in p.rows} == {"step"}
    assert len(p.events) == len(step.plan(x).steps)


def test_changes_in_place_and_kernels_with_raw_arguments_are_seen():
    @mf.elementwise(raw=("bins",))
    def histogram(value, bins):
        mf.atomic_add(bins, value, 1)

    x, bins = mf.tensor(X), mf.zeros(3, dtype=mf.int64)
    with mf.profile() as p:
        x += 1
        histogram(mf.tensor([0, 2, 2]), bins)
        histogram(mf.tensor([0, 2, 2]), bins)
    np.testing.assert_array_equal(x.numpy(), X + 1)
    assert bins.tolist() == [2, 0, 4]
    assert kernels(p) == {"x0 + x1": 1, "histogram": 2} or kernels(p) == {"x0 + 1": 1, "histogram": 2}
    raw = next(row for row in p.rows if row.work.formula == "histogram")
    assert raw.work.nbytes is raw.gbytes_per_s is raw.roofline is None


def test_nothing_is_compiled_twice_and_nothing_stays():
    x = mf.tensor(X)
    function = mf.fuse(lambda x: mf.exp(x * 1.71) - x)
    function(x)
    mf.tanh(x * 3.25)
    before = mf.cache.stats()
    with mf.profile() as p:
        function(x)
        mf.tanh(x * 3.25)
    after = mf.cache.stats()  # of this process: others write into the same folder
    assert (after.in_memory, after.compiled, after.loaded) == (before.in_memory, before.compiled, before.loaded)
    assert len(p.events) == 3
    count = len(p.events)
    function(x)
    assert len(p.events) == count, "after its block a profile sees nothing"
    assert not p.timed_programs
    assert not p.timelines


def test_functions_traced_under_a_profile_run_without_it():
    function = mf.fuse(lambda x: x * 2 + 1)
    x = mf.tensor(X)
    with mf.profile():
        function(x)
    captures = function.stats().calls
    function(x)
    assert function.stats().calls == captures


def test_only_this_thread_is_measured():
    x = mf.tensor(X)
    with mf.profile() as p:
        thread = threading.Thread(target=lambda: mf.exp(x))
        thread.start()
        thread.join()
        mf.sin(x)
    assert kernels(p) == {"sin(x0)": 1}


def test_profiles_may_be_nested():
    x = mf.tensor(X)
    with mf.profile() as outer:
        mf.sin(x)
        with mf.profile() as inner:
            mf.exp(x)
            mf.exp(x)
        mf.cos(x)
    assert kernels(inner) == {"exp(x0)": 2}
    assert kernels(outer) == {"sin(x0)": 1, "exp(x0)": 2, "cos(x0)": 1}
    assert len(outer.calls) == 4
    starts = [event.start_us for event in outer.events]
    assert starts == sorted(starts)


def test_recording_is_as_it_was():
    x = mf.tensor(X, requires_grad=True)
    with mf.profile(), mf.no_grad():
        assert not (x * 2).requires_grad
    with mf.no_grad(), mf.profile():
        assert not (x * 2).requires_grad
    with mf.profile():
        y = (x * 2).sum()
    assert y.requires_grad
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full_like(X, 2))


def add_in(profile, x, y):
    with profile:
        mf.exp(x)
        x + y


def test_an_error_ends_the_block_and_the_profile_with_it():
    x = mf.tensor(X)
    p = mf.profile()
    with pytest.raises(mf.ShapeError):
        add_in(p, mf.exp(x), mf.ones(7))
    assert kernels(p) == {"exp(x0)": 1}
    mf.sin(x)
    assert kernels(p) == {"exp(x0)": 1}


def test_a_profile_belongs_around_a_capture():
    @mf.fuse
    def wrong(x):
        with mf.profile():
            return x + 1

    with pytest.raises(FuseError, match="write the block around the call"):
        wrong(mf.tensor(X))
    profile = mf.profile()
    with profile, pytest.raises(FuseError, match="was already used"):
        profile.__enter__()


def test_times_add_up():
    x = mf.tensor(X)
    with mf.profile() as p:
        for _ in range(5):
            mf.exp(x).softmax(1)
    assert all(event.duration_us >= 0 and event.start_us >= 0 for event in p.events)
    assert p.kernels_us == pytest.approx(sum(row.total_us for row in p.rows))
    assert sum(row.share for row in p.rows) == pytest.approx(1)
    ends = [event.start_us + event.duration_us for event in p.events]
    assert all(end <= later.start_us for end, later in zip(ends, p.events[1:], strict=False)), "one after the other"
    assert ends[-1] <= p.wall_us
    assert 0 <= p.kernels_us + p.host_us + p.planning_us <= p.wall_us


def test_a_row_sums_its_launches():
    backend = get_backend("python")
    work = LaunchWork("f", "x @ y", "product", backend, 6000, 4_000_000, "float32")
    events = [LaunchEvent(work, 0.0, 2.0), LaunchEvent(work, 5.0, 4.0)]
    (row,) = group_launches(events)
    assert (row.count, row.total_us, row.share) == (2, 6.0, 1.0)
    assert row.gbytes_per_s == pytest.approx(6000 / 3 / 1e3)
    assert row.gflops == pytest.approx(4_000_000 / 3 / 1e3)
    assert row.roofline is None, "of a backend whose limits are not those of hardware"


def test_the_roofline_is_the_slower_of_memory_and_arithmetic(monkeypatch):
    parallel = get_backend("parallel")
    limits = MachineLimits(10.0, {"float32": 100.0}, parallel)  # 10,000 bytes and 100,000 operations a microsecond
    monkeypatch.setattr("minifuse.inspect.timeline.machine_limits", lambda backend: limits)
    pointwise = LaunchWork("f", "x + y", "pointwise", parallel, 20_000, 0, "float32")
    assert make_row(pointwise, 2, 8.0, 8.0).roofline == pytest.approx(2 / 4)
    product = LaunchWork("f", "x @ y", "product", parallel, 20_000, 300_000, "float32")
    assert make_row(product, 1, 4.0, 8.0).roofline == pytest.approx(3 / 4)
    integers = LaunchWork("f", "x @ y", "product", parallel, 20_000, 300_000, "int64")
    assert make_row(integers, 1, 4.0, 8.0).roofline == pytest.approx(2 / 4)


def test_limits_are_measured_once(monkeypatch):
    monkeypatch.setattr("minifuse.inspect.roofline.COPY_ELEMENTS", 1 << 12)
    monkeypatch.setattr("minifuse.inspect.roofline.MATMUL_SIZE", 32)
    machine_limits.cache_clear()
    try:
        limits = machine_limits(get_backend("parallel"))
        assert limits.gbytes_per_s > 0
        assert limits.peak("float64") > 0
        assert limits.peak("int64") is None
        assert machine_limits(get_backend("parallel")) is limits
        assert set(limits.gflops) == {"float64"}
    finally:
        machine_limits.cache_clear()


@pytest.fixture
def small(monkeypatch):
    """Limits without measuring for long."""
    limits = MachineLimits(10.0, {"float32": 100.0}, None)
    monkeypatch.setattr("minifuse.inspect.timeline.machine_limits", lambda backend: limits)


def test_it_is_text_and_data(small):
    x, w = mf.tensor(X), mf.ones(33, 20)
    with mf.profile() as p:
        for _ in range(12):
            x @ w
        (x * 2).sum()
    lines = str(p).splitlines()
    assert lines[0].split() == ["kernel", "count", "total", "us", "share", "GB/s", "GFLOP/s", "roofline"]
    assert all(len(line) <= 110 for line in lines)
    assert "14 launches of 3 kernels" in str(p)
    facts = json.loads(json.dumps(p.as_dict()))
    assert sum(row["count"] for row in facts["rows"]) == len(facts["events"]) == 14
    product = next(row for row in facts["rows"] if row["flops"])
    assert (product["flops"], product["backend"]) == (2 * 40 * 33 * 20, "parallel")
    assert facts["limits"] == {"parallel": {"gbytes_per_s": 10.0, "gflops": {"float32": 100.0}}}
    assert str(InspectionReport("", {"": [profile_table([])]})) == "kernel  count  total us  share  GB/s  GFLOP/s  roofline"


def test_the_chrome_trace_has_every_launch_and_call(tmp_path):
    x = mf.tensor(X)
    with mf.profile() as p:
        mf.exp(x)
        mf.sin(x)
    path = tmp_path / "trace.json"
    p.chrome_trace(path)
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in spans} == {"call", "kernel"}
    for call, kernel in zip(spans[:2], spans[2:], strict=True):
        assert call["ts"] <= kernel["ts"] <= kernel["ts"] + kernel["dur"] <= call["ts"] + call["dur"] + 1e-6
    assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"host", "kernels on parallel"}
    with pytest.raises(FileNotFoundError):
        p.chrome_trace(tmp_path / "nowhere" / "trace.json")


def test_simulated_launches_are_recorded_and_marked():
    x = mf.tensor(X, backend="cuda")
    if not x.meta.backend.device.is_simulated:
        pytest.skip("there is a GPU")
    with mf.profile() as p:
        (x * 2).sum(1)
    assert len(p.events) == 2
    assert "say nothing about hardware" in str(p)
    assert all(row.roofline is None for row in p.rows)


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_an_empty_block_is_an_empty_profile(backend):
    with mf.profile() as p:
        mf.tensor(X, backend=backend)
    assert not p.events
    assert "0 launches of 0 kernels" in str(p)

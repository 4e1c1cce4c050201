"""The rows of a GPU: run and checked in the interpreter, timed by a fake clock; and one run on a GPU."""

import json
import subprocess
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda.device import driver
from minifuse.backends.cuda.matmul.ladder import LADDER
from project.benchmarks import gpu, peers, report, timer
from project.benchmarks.row import US, Contest, Row, every, speed, within
from project.benchmarks.rows import compiling, gpu_matmul, rows_of
from project.benchmarks.run import choose, measure, run, take_times
from tests.benchmarks.test_benchmarks import FakeClock, check_fields
from tests.sources import ROOT

ROWS, GPU_ROWS = rows_of(), rows_of(True)
ABSENCE = gpu.absence()
GROUPS = {"gpu-host", "gpu-memory", "gpu-sums", "gpu-softmax", "gpu-matmul", "gpu-ladder", "gpu-compile", "gpu-tensor-cores"}
SLOW = {"strips", "squares", "vector_loads"}  # rungs that take the interpreter seconds per tile
needs_no_gpu = pytest.mark.skipif(not driver.query_driver().reason, reason="with a GPU, rows do not run in the interpreter")


class FakeEvents:
    """A device clock that advances a millisecond per record, and logs its calls."""

    def __init__(self, device=None):
        self.calls, self.now = [], 0.0

    def record(self):
        self.calls.append("record")
        self.now += 1e-3
        return self.now

    def seconds(self, start, end):
        return end - start

    def flush(self):
        self.calls.append("flush")

    def synchronize(self):
        self.calls.append("synchronize")


class RawKernel:
    """A CuPy kernel, computed with NumPy for as many elements as there are threads."""

    def __init__(self, code, name):
        assert f"void {name}(" in code

    def __call__(self, grid, block, arguments):
        out, a, b, n = arguments
        count = min(n, grid[0] * block[0])
        np.add(a[:count], b[:count], out=out[:count])


CUPY = SimpleNamespace(asarray=np.asarray, empty_like=partial(np.full_like, fill_value=np.nan), RawKernel=RawKernel)


def peers_here():
    """Return NumPy in place of CuPy, and torch on the CPU if it is installed."""
    try:
        return {"torch": import_module("torch"), "cupy": CUPY}
    except ImportError:
        return {"cupy": CUPY}


@pytest.fixture(scope="module")
def found():
    """Run all rows but the slow ones in the interpreter, on tiny arrays, and return the JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("project.benchmarks.row.QUICK_SIZE", 8)
        patch.setattr(gpu, "Events", FakeEvents)
        patch.setenv("MINIFUSE_CUDA", "simulated")
        rows = [row for row in GPU_ROWS if row.name.partition(",")[0] not in SLOW]
        return json.loads(json.dumps(run(rows, peers_here(), {}, 3, is_quick=True, is_on_gpu=True)))


# The rows.


@needs_no_gpu
def test_all_rows_run_with_correct_results(found):
    assert {row["group"] for row in found["rows"]} == GROUPS
    assert not [row for row in found["rows"] if {"wrong", "broken"} & row.keys()]


@needs_no_gpu
def test_json_has_all_fields(found):
    check_gpu_fields(found)
    assert str(ROOT) not in json.dumps(found)
    assert found["device"]["multiprocessors"] > 0
    for row in found["rows"]:
        if row["group"] != "gpu-compile":
            assert set(row["errors"]) == set(row["times"]) - {"copy"}, row["name"]


def check_gpu_fields(found):
    check_fields({key: value for key, value in found.items() if key != "device"}, is_on_gpu=True)
    assert {"name", "compute_capability", "multiprocessors", "driver", "flushed_mib"} <= set(found["device"])
    for row in found["rows"]:
        group = row["group"].replace("fusion-", "")
        rates = dict.fromkeys(("gpu-matmul", "gpu-ladder", "gpu-tensor-cores"), "gflop_per_s")
        rate = (rates | dict.fromkeys(("gpu-host", "gpu-compile", "gpu-training"))).get(group, "gb_per_s")
        assert {"gflop_per_s", "gb_per_s"} & set(row) == ({rate} if rate else set()), row["name"]


@needs_no_gpu
@pytest.mark.parametrize(
    ("peer", "groups"),
    [
        ("torch", GROUPS - {"gpu-compile"}),
        ("cupy", {"gpu-host", "gpu-memory", "gpu-sums", "gpu-softmax"}),
        ("copy", {"gpu-memory"}),
    ],
)
def test_peers_take_part_in_the_groups_they_support(found, peer, groups):
    if peer != "cupy":
        pytest.importorskip("torch")
    assert {row["group"] for row in found["rows"] if peer in row.get("times", ())} == groups


@needs_no_gpu
def test_bandwidth_counts_inputs_and_result(found):
    rows = {row["name"]: row for row in found["rows"] if row["group"] == "gpu-memory"}
    size = 8 * 4  # of eight float32
    for name, arrays in (("a + b", 3), ("exp(a)", 2), ("chain of 8, captured as one", 4), ("x + row", 17)):
        row = rows[name]
        assert row["gb_per_s"][US] * row["times"][US]["median"] * 1e9 == pytest.approx(arrays * size), name


KINDS = tuple(f"gpu-{kind}" for kind in peers.KINDS)


def test_names_are_unique_and_groups_begin_with_gpu():
    assert max(Counter((row.group, row.name) for row in GPU_ROWS).values()) == 1
    titled = {group for group in report.TITLES if group.startswith("gpu")}
    assert {row.group for row in GPU_ROWS} == GROUPS == titled - {group for group in titled if group.startswith(KINDS)}
    assert not any(row.group.startswith("gpu") for row in ROWS)


def test_rows_are_selected_by_group_or_name():
    assert {row.group for row in choose(GPU_ROWS, ["gpu-matmul"])} == {"gpu-matmul"}
    assert len(choose(GPU_ROWS, ["gpu"])) == len(GPU_ROWS)


def test_the_ladder_has_every_rung():
    names = [row.name for row in GPU_ROWS if row.group == "gpu-ladder"]
    assert names == ["naive, 1024 x 1024 x 1024", *[f"{name}, 2048 x 2048 x 2048" for name in LADDER]]


@needs_no_gpu
def test_wrong_ladder_kernels_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("project.benchmarks.row.QUICK_SIZE", 5)
    right = LADDER["coalesced"]
    for rung, is_wrong in ((right, False), (right._replace(tile=(8, 2)), False), (right._replace(block=(2, 2)), True)):
        result = measure(gpu_matmul.rung_row(rung, 2048), bench_of(tmp_path, FakeEvents()))
        assert ("wrong" in result) == is_wrong


def test_torch_uses_no_tf32_in_matmuls_and_convolutions(monkeypatch):
    precisions, cudnn = [], SimpleNamespace(allow_tf32=True)
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True),
        set_float32_matmul_precision=precisions.append,
        backends=SimpleNamespace(cudnn=cudnn),
    )
    monkeypatch.setattr(gpu, "import_module", lambda name: torch)
    assert gpu.load(["torch"]) == ({"torch": torch}, {})
    assert precisions == ["highest"]
    assert cudnn.allow_tf32 is False


# The clock.


def bench_of(tmp_path, events, **modules):
    """Return the `GpuBench` of rows, with a fake clock."""
    bench = gpu.GpuBench(modules, np.random.default_rng(0), tmp_path, is_quick=True)
    bench.__dict__["clock"] = events
    return bench


def test_cache_is_flushed_per_call_and_device_waited_for_per_round():
    events, seen = FakeEvents(), []
    players = {who: lambda who=who: (seen.append(who), events.calls.append(who)) for who in "ab"}
    times = timer.take_turns_on(events, players, is_quick=True)
    assert "".join(seen) == "aab" + "aba", "the first call of a round, after the wait, is not timed"
    once = [["flush", "record", who, "record"] for who in "abba"]
    assert events.calls == ["a", *once[0], *once[1], "synchronize", "a", *once[2], *once[3], "synchronize"]
    assert times.rounds == {"a": pytest.approx([1e-3] * 2), "b": pytest.approx([1e-3] * 2)}


def test_device_is_warmed_up_before_timing(monkeypatch):
    clock, events, seen = FakeClock(), FakeEvents(), []
    monkeypatch.setattr(timer, "time", clock)

    def player():
        seen.append(events.calls[-1:] == ["record"])
        clock.pass_by(timer.BUDGET_S / 10)

    times = timer.take_turns_on(events, {US: player})
    assert seen.index(True) * timer.BUDGET_S / 10 >= timer.WARM_S
    assert timer.MIN_ROUNDS <= len(times.rounds[US]) == seen.count(True) <= timer.MAX_ROUNDS


def test_host_rows_start_with_an_idle_device(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(gpu.GpuBench, "settle", lambda self: calls.append("settle"))
    players = {who: partial(calls.append, who) for who in "ab"}
    take_times(Contest(players), bench_of(tmp_path, FakeEvents()))
    rounds = calls[2:]  # without the first call of each
    assert rounds == [*["settle", "a", "a", "settle", "b", "b"], *["settle", "b", "b", "settle", "a", "a"]]


def test_events_are_recorded_in_the_stream_of_the_device():
    calls = []

    class Status(int):
        name = "CUDA_SUCCESS"

    def word(name, *results):
        return lambda *arguments: (calls.append((name, *arguments)), (Status(0), *results))[1]

    bindings = SimpleNamespace(
        cuEventCreate=word("create", "event"),
        cuEventRecord=word("record"),
        cuEventElapsedTime=word("elapsed", 1.5),
        cuEventDestroy=word("destroy"),
    )
    device = SimpleNamespace(
        bindings=bindings,
        stream=SimpleNamespace(handle=7),
        allocate=lambda nbytes: SimpleNamespace(address=nbytes),
        fill=lambda *arguments: calls.append(("fill", *arguments)),
        synchronize=lambda: calls.append(("synchronize",)),
    )
    events = gpu.Events(device)
    assert events.record() == "event"
    assert events.seconds("start", "end") == pytest.approx(1.5e-3)
    events.flush()
    events.synchronize()
    assert calls == [
        ("create", 0),
        ("record", "event", 7),
        ("elapsed", "start", "end"),
        ("destroy", "start"),
        ("destroy", "end"),
        ("fill", gpu.FLUSHED, gpu.FLUSHED, 0),
        ("synchronize",),
    ]


# GpuBench


@needs_no_gpu
def test_players_share_inputs_and_have_separate_gradients(tmp_path):
    bench = bench_of(tmp_path, FakeEvents())
    a, b = bench.normal(0, (4, 5), "float32"), bench.normal(0, (20,), "float32")
    assert a.address == b.address
    assert a.reshape(20).numpy().tolist() == b.numpy().tolist()
    assert bench.normal(1, (20,), "float32").numpy().tolist() != b.numpy().tolist()
    with_gradient, other = bench.hand(US, [a, b], gradients=True)
    assert with_gradient.requires_grad
    assert with_gradient.address != a.address
    assert other is b
    assert not a.requires_grad


@needs_no_gpu
def test_uniform_numbers_are_within_their_limits(tmp_path):
    x = bench_of(tmp_path, FakeEvents()).uniform(0, (200,), -2.0, 3.0, "float32").numpy()
    assert x.dtype == np.float32
    assert -2 <= x.min() < -1.5 < 2.5 < x.max() < 3


@needs_no_gpu
def test_exact_result_is_float64(tmp_path):
    bench = bench_of(tmp_path, FakeEvents())
    x = bench.normal(0, (7,), "float32")
    exact = bench.exact(lambda x: x.sum(), [x])
    assert exact.dtype == np.float64
    assert exact == x.numpy().astype(np.float64).sum()


@needs_no_gpu
def test_copy_moves_as_many_bytes_as_the_row(tmp_path):
    torch = pytest.importorskip("torch")
    copied = bench_of(tmp_path, FakeEvents(), torch=torch).copier(3 * 4 * 40)["copy"]()
    assert 2 * copied.nbytes == 3 * 4 * 40
    assert bench_of(tmp_path, FakeEvents()).copier(480) == {}


def contest(**players):
    """Return a row with these players."""
    made = {US: lambda: mf.tensor([1.0, 2.0]), **players}
    return gpu.on_device(Row("r", "g", lambda bench: Contest(made, np.array([1.0, 2.0]), nbytes=16), (speed("torch", 1),)))


def test_failing_peer_is_left_out_with_a_reason(tmp_path, capsys):
    def breaks():
        raise RuntimeError("no compiler\nand more")

    result = measure(contest(torch=breaks), bench_of(tmp_path, FakeEvents()))
    assert result["broken"] == {"torch": "RuntimeError: no compiler"}
    assert set(result["times"]) == {US}
    assert result["targets"][0]["met"] is None
    assert "no compiler" in capsys.readouterr().err


def test_failing_row_is_reported_and_the_run_continues(tmp_path, capsys):
    def breaks():
        raise RuntimeError("illegal address")

    result = measure(contest(**{US: breaks}), bench_of(tmp_path, FakeEvents()))
    assert result["wrong"] == {US: "RuntimeError: illegal address"}
    row = Row("r", "g", lambda bench: breaks())
    assert measure(row, bench_of(tmp_path, FakeEvents()))["wrong"] == {"the row": "RuntimeError: illegal address"}
    assert "illegal address" in capsys.readouterr().err


def test_second_process_compiles_nothing(tmp_path, monkeypatch):
    folders = []

    def run_child_process(module, folder, *words):
        assert (module, words) == ("first_kernels", ("cuda",))
        folders.append(folder)
        count = 0 if folder in folders[:-1] else 7  # kernels not in the disk cache
        counts = {"kernels compiled": count, "kernels from disk": 7 - count}
        return {"first call": [0.1 * (k + 1) for k in range(6)], "new size": [1e-3] * 6, "counts": counts}

    monkeypatch.setattr(compiling, "run_module", run_child_process)
    rows = [row for row in GPU_ROWS if row.group == "gpu-compile"]
    bench = bench_of(tmp_path, FakeEvents())
    cold, warm, other = [measure(row, bench) for row in rows]
    assert len(folders) == 2
    assert cold["counts"]["kernels compiled"] == 7
    assert warm["counts"] == other["counts"] == {"kernels compiled": 0, "kernels from disk": 7}
    assert [target["met"] for target in warm["targets"]] == [False, True]
    assert cold["times"][US]["median"] == pytest.approx(0.1)  # a quick run measures the first kernel only
    assert other["times"][US]["median"] == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("target", "value", "is_met"),
    [
        (every(0.9), 0.95, True),
        (every(0.96), 0.95, False),
        (within(5, "us"), 6e-6, False),
        (within(150, "ms"), 6e-6, True),
    ],
)
def test_targets_are_met_or_missed(target, value, is_met):
    ratios = {"torch": {"median": 0.95}, "cupy": {"median": 1.3}}
    judged = target.judge({"ratios": ratios, "times": {US: {"median": 6e-6}}})
    assert judged["value"] == value
    assert judged["met"] is is_met
    assert every(1).judge({"ratios": {}})["met"] is None


@pytest.mark.gpu
@pytest.mark.skipif(bool(ABSENCE), reason=ABSENCE)
def test_quick_run_on_a_gpu_has_all_fields(tmp_path):
    path = tmp_path / "quick.json"
    words = [sys.executable, "-m", "project.benchmarks", "gpu", "--quick", "--seed", "3", "--json", str(path)]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    check_gpu_fields(found)
    counts = {row["name"]: row["counts"] for row in found["rows"] if row["group"] == "gpu-compile"}
    assert counts["first call of a function, nothing on disk"]["kernels compiled"] > 0
    assert counts["first call of a function, a second process"]["kernels compiled"] == 0

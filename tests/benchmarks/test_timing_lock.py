"""`--timing-lock FILE`: processes prepare their rows at the same time, and time them one process after the other."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import minifuse as mf
from project.benchmarks import __main__ as command
from project.benchmarks import fused, peers
from project.benchmarks.row import US, Bench, Contest, Row
from project.benchmarks.rows import held_out, rows_of
from project.benchmarks.run import prepare, run, time_row
from project.benchmarks.timing_lock import TimingLock
from tests.benchmarks.test_partial_runs import NAMES, one_round, row_named
from tests.sources import ROOT

pytest.importorskip("fcntl", reason="the locks are those of POSIX")

HOLDER = """
import sys
from pathlib import Path
from project.benchmarks.timing_lock import TimingLock
with getattr(TimingLock(Path(sys.argv[1])), sys.argv[2])():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path):
    return TimingLock(tmp_path / "lock")


@pytest.fixture
def holder(lock):
    """Return a function that starts a process which holds the lock in a mode, until its input is closed."""
    started = []

    def start(mode):
        words = [sys.executable, "-c", HOLDER, str(lock.path), mode]
        process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def is_free(lock, is_alone):
    """Return True if the lock can be held now in a mode."""
    import fcntl

    with lock.path.open("r+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize(("mode", "shared_is_free"), [("shared", True), ("alone", False)])
def test_a_process_excludes_others_that_time_or_are_timed_beside(mode, shared_is_free, lock, holder):
    process = holder(mode)
    assert process.stdout.readline() == "held\n"
    assert (is_free(lock, is_alone=False), is_free(lock, is_alone=True)) == (shared_is_free, False)
    process.communicate()
    assert is_free(lock, is_alone=True)


def test_a_killed_process_leaves_the_lock_free(lock, holder):
    process = holder("alone")
    assert process.stdout.readline() == "held\n"
    process.kill()
    process.wait()
    with lock.alone():
        assert not is_free(lock, is_alone=False)


def test_a_process_waits_until_the_lock_is_free(lock, holder):
    with lock.shared():
        process = holder("alone")
        time.sleep(0.5)
        assert process.poll() is None
        assert is_free(lock, is_alone=False), "the other process does not hold it yet"
    assert process.stdout.readline() == "held\n"


def test_the_lock_is_released_after_an_error(lock):
    with pytest.raises(RuntimeError), lock.alone():
        raise RuntimeError
    assert is_free(lock, is_alone=True)


def test_a_lock_without_a_file_excludes_no_one():
    lock = TimingLock()
    assert not lock
    with lock.alone(), lock.shared():
        pass


def test_a_file_that_cannot_be_opened_is_reported(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "prepare", lambda: None)
    assert command.main(["--timing-lock", str(tmp_path / "none" / "lock")]) == 2
    assert "name a file of a POSIX system's local disk" in capsys.readouterr().err


# Runs


def logging_row(name, log, lock):
    """Return a row that logs its calls, each with the modes in which another process could hold the lock."""

    def play():
        log.append((name, is_free(lock, is_alone=False), is_free(lock, is_alone=True)))
        return np.ones(1, np.float32)

    return Row(name, "a group", lambda bench: Contest({US: play}, np.ones(1)))


def test_all_rows_are_prepared_with_the_lock_shared_and_timed_alone(lock, monkeypatch):
    log = []

    def take_times(contest, bench):
        contest.players[US]()
        return one_round(contest, bench)

    monkeypatch.setattr("project.benchmarks.run.take_times", take_times)
    made = [logging_row(name, log, lock) for name in "ab"]
    found = run(made, {}, {}, 1, is_quick=True, lock=lock)
    assert log == [("a", True, False), ("b", True, False), ("a", False, False), ("b", False, False)]
    assert [row["name"] for row in found["rows"]] == ["a", "b"]
    log.clear()
    run(made, {}, {}, 1, is_quick=True)
    assert [name for name, *_ in log] == ["a", "a", "b", "b"]


def test_a_row_that_fails_is_reported_and_others_are_timed(lock, monkeypatch, capsys):
    def breaks():
        raise RuntimeError("illegal address")

    monkeypatch.setattr("project.benchmarks.run.take_times", one_round)
    made = [row_named("a"), Row("b", "a group", lambda bench: breaks()), row_named("c", value=2.0), row_named("d")]
    found = run(made, {}, {}, 1, is_quick=True, lock=lock)["rows"]
    assert [row["name"] for row in found] == ["a", "b", "c", "d"]
    assert found[1]["wrong"] == {"the row": "RuntimeError: illegal address"}
    assert "differs from NumPy" in found[2]["wrong"][US]
    assert [("times" in row) for row in found] == [True, False, False, True]
    assert "illegal address" in capsys.readouterr().err


PART = """
import sys
from project.benchmarks import __main__ as command, rows, peers
from tests.benchmarks.test_partial_runs import NAMES, row_named
peers.prepare = lambda: None
rows.rows_of = lambda *_: [row_named(name) for name in NAMES]
sys.exit(command.main([*sys.argv[1:], "--quick", "--against", "numpy"]))
"""


def test_parts_of_processes_at_the_same_time_are_merged_into_one_file(tmp_path):
    path, lock = tmp_path / "out.json", tmp_path / "lock"
    words = [sys.executable, "-c", PART, f"--json={path}", f"--timing-lock={lock}"]
    environment = {"MINIFUSE_THREADS": "1", "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    parts = [subprocess.Popen([*words, f"--part={k}/3"], cwd=ROOT, env=environment, **pipes) for k in (1, 2, 3)]
    for part in parts:
        output, _ = part.communicate(timeout=120)
        assert part.returncode == 0, output
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == NAMES


def prepared_rows(names, modules, tmp_path, is_quick=True):
    """Return the bench and the prepared rows of programs of the held-out suite."""
    bench = Bench(modules, np.random.default_rng(0), tmp_path, is_quick=is_quick, is_ahead=True)
    return bench, [prepare(row, bench) for row in rows_of(False, "held-out") if row.name in names]


def test_timing_prepared_rows_compiles_nothing(tmp_path):
    bench, prepared = prepared_rows(["mish", "RMS norm", "radix-2 stage of an FFT"], {}, tmp_path)
    before = mf.cache.stats()
    results = [time_row(row, bench) for row in prepared]
    after = mf.cache.stats()  # other processes may write to the folder, and plans of other tests may be freed
    assert (after.compiled, after.loaded) == (before.compiled, before.loaded)
    assert len(results) >= 5
    assert all("times" in result for result in results)


def test_torch_keeps_what_it_compiled_for_rows_that_are_timed_later(tmp_path):
    torch = pytest.importorskip("torch")
    counters = torch._dynamo.utils.counters["stats"]
    names = [program.name for program in held_out.PROGRAMS[:12] if program.gradients]
    bench, prepared = prepared_rows(names, {"torch.compile": torch}, tmp_path)
    graphs = counters["unique_graphs"]
    assert graphs >= len(prepared) == 2 * len(names) > 16, (
        "rows share two functions, and torch compiles 8 of each by default"
    )
    results = [time_row(row, bench) for row in prepared]
    assert counters["unique_graphs"] == graphs
    assert all("torch.compile" in result["times"] for result in results)


def test_the_limit_on_compiled_code_is_raised_instead_of_a_reset(tmp_path):
    config = SimpleNamespace(recompile_limit=8)
    torch = SimpleNamespace(_dynamo=SimpleNamespace(config=config), compile=lambda work, **_: work)
    bench = Bench({"torch.compile": torch}, np.random.default_rng(0), tmp_path, is_ahead=True)
    assert fused.torch_compiled(abs, bench) is abs
    assert config.recompile_limit == fused.MAX_COMPILED

"""The suite of the library of functions: results of its rows, on the CPU and in the interpreter of kernels."""

from collections import Counter

import numpy as np
import pytest

import minifuse as mf
from project.benchmarks import gpu, report, timer
from project.benchmarks.row import US, Bench
from project.benchmarks.rows import library, rows_of
from project.benchmarks.run import measure
from project.benchmarks.suites import suite_of
from tests.benchmarks.test_gpu_benchmarks import FakeEvents, needs_no_gpu

CPU_ROWS = rows_of(False, "library")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", CPU_ROWS, ids=lambda row: row.name)
def test_results_of_all_players_are_those_of_numpy(row, tmp_path):
    bench = Bench({"numpy": np}, np.random.default_rng(0), tmp_path, is_quick=True)
    result = measure(row, bench)
    assert "wrong" not in result
    assert "broken" not in result
    function = next(f for functions in library.GROUPS.values() for f in functions if f.name == row.name)
    players = {US, *[library.FUSED] * function.is_fused, *[who for who in bench.peers if who not in function.without]}
    assert set(result["times"]) == set(result["errors"]) == players


@needs_no_gpu
@pytest.mark.parametrize("name", ["cumsum along dim 1", "x[i, j] = values", "x[mask]"])
def test_rows_of_a_gpu_are_checked_in_the_interpreter(name, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "Events", FakeEvents)
    monkeypatch.setattr(timer, "MIN_ROUNDS", 1)
    bench = gpu.GpuBench({}, np.random.default_rng(0), tmp_path, is_quick=True)
    (row,) = [row for row in rows_of(True, "library") if row.name == name]
    result = measure(row, bench)
    assert "wrong" not in result
    assert result["gb_per_s"][US] > 0
    assert [target["met"] for target in result["targets"]] == [None], "no peer takes part"


def test_a_wrong_function_is_found(tmp_path, monkeypatch):
    bench = Bench({}, np.random.default_rng(0), tmp_path, is_quick=True)
    monkeypatch.setattr(mf, "tril", lambda x: x, raising=False)
    (row,) = [row for row in CPU_ROWS if row.name == "tril"]
    assert US in measure(row, bench)["wrong"]


@pytest.mark.parametrize("is_on_gpu", [False, True])
def test_each_group_has_a_title_and_each_row_a_target(is_on_gpu):
    rows = rows_of(is_on_gpu, "library")
    assert set(Counter(row.name for row in rows).values()) == {1}
    assert {row.group for row in rows} <= set(report.TITLES)
    assert all(row.targets for row in rows)
    assert suite_of(f"{'gpu-' * is_on_gpu}library").rows == rows

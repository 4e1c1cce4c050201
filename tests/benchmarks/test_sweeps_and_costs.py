"""Sweeps and costs: results are correct on tiny arrays, and measurements of child processes are collected."""

import json

import numpy as np
import pytest

from minifuse.backends.cuda.device import driver
from project.benchmarks import fused, gpu, peers, thread_times, timer
from project.benchmarks.row import US, Bench
from project.benchmarks.rows import compiling, costs, rows_of, sweeps, threads
from project.benchmarks.rows.start import run_python
from project.benchmarks.run import measure
from tests.benchmarks.test_fusion_benchmarks import CUPY

needs_no_gpu = pytest.mark.skipif(not driver.query_driver().reason, reason="with a GPU, rows do not run in the interpreter")


def bench(tmp_path, **modules):
    return Bench(modules, np.random.default_rng(0), tmp_path, is_quick=True)


@pytest.mark.parametrize("of", sweeps.OPERATIONS, ids=lambda of: of.curve)
def test_operation_is_right_at_a_small_size_and_in_part_at_a_large_one(of, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "COMPARED", 20)  # every 13th of 256
    modules = {"numpy": np}
    for exponent in (8, 10):
        result = measure(sweeps.size_row(of, exponent, "sweeps"), bench(tmp_path, **modules))
        assert "wrong" not in result, result
        assert {US, "numpy"} <= set(result["times"])
        assert (result["curve"], result["size"]) == (of.curve, 1 << exponent)


def test_wrong_last_element_is_found_in_a_partial_comparison(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeps, "COMPARED", 20)  # every 13th of 256
    of = sweeps.OPERATIONS[0]

    def last_is_wrong(a, b):
        c = a + b
        c[-1] += 1
        return c

    works = {US: lambda a, b: a + b, "numpy": last_is_wrong}
    result = measure(sweeps.size_row(of._replace(works=lambda bench, width: works), 10, "sweeps"), bench(tmp_path, numpy=np))
    assert list(result["wrong"]) == ["numpy"]


def test_slow_players_skip_large_sizes(tmp_path):
    of = sweeps.OPERATIONS[0]._replace(until={"numpy": 8})
    for exponent, players in ((8, {US, "numpy"}), (10, {US})):
        assert set(sweeps.size_row(of, exponent, "sweeps").setup(bench(tmp_path, numpy=np)).players) == players


@needs_no_gpu
@pytest.mark.parametrize("of", sweeps.OPERATIONS, ids=lambda of: of.curve)
def test_gpu_sweeps_include_the_host_and_unsynchronized_calls(of, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CUDA", "simulated")
    monkeypatch.setattr("project.benchmarks.row.QUICK_SIZE", 5)
    modules = {"cupy": CUPY, "cupy.fuse": CUPY, "numpy": np}
    place = gpu.GpuBench(modules, np.random.default_rng(0), tmp_path, is_quick=True)
    result = measure(sweeps.size_row(of, 8, "gpu-sweeps"), place)
    assert "wrong" not in result, result
    assert {US, sweeps.ON_HOST, sweeps.ISSUED, "cupy", "numpy"} <= set(result["times"])


def test_sweeps_have_the_expected_sizes():
    for is_on_gpu, curves in ((False, 4), (True, 5)):
        rows = [row for row in rows_of(is_on_gpu, "sweeps") if row.group.endswith("sweeps")]
        sizes = {row.curve: [other.size for other in rows if other.curve == row.curve] for row in rows}
        whole = [1 << k for k in range(8, 29, 2)]
        assert sum(found == whole for found in sizes.values()) == curves
        assert all(found == whole[: len(found)] and len(found) >= 8 for found in sizes.values())


def test_rows_share_random_numbers(tmp_path):
    place = bench(tmp_path)
    x = place.drawn(0, (4, 5))
    assert np.shares_memory(x, place.drawn(0, (7,)))
    assert place.drawn(1, (20,)).tolist() != x.reshape(-1).tolist()
    assert (place.drawn(0, (50,), is_positive=True) >= 0).all()
    assert np.shares_memory(place.lend(US, [x])[0].numpy(), x)


def test_thread_times_measures_all_operations(monkeypatch, capsys):
    monkeypatch.setattr(thread_times, "EXPONENTS", (8,))
    monkeypatch.setattr(timer, "BLOCK_S", 1e-5)
    thread_times.main()
    text = capsys.readouterr().out
    assert all(f'"{of.curve}": {{"8": ' in text for of in sweeps.OPERATIONS)


def test_thread_counts_are_compared_in_child_processes(tmp_path, monkeypatch):
    asked = []

    def told(*words, **environment):
        asked.append(environment)
        seconds = 3.0 if environment else 2.0
        return str({of.curve: {str(k): seconds for k in thread_times.EXPONENTS} for of in sweeps.OPERATIONS}).replace(
            "'", '"'
        )

    monkeypatch.setattr(threads, "run_python", told)
    place = bench(tmp_path)
    for row in threads.ROWS[:2]:
        result = measure(row, place)
        assert {who: x["median"] for who, x in result["times"].items()} == {US: 2.0, threads.ONE_THREAD: 3.0}
    assert asked == [{}, {"MINIFUSE_THREADS": "1"}]


# Costs.


@pytest.mark.parametrize("kind", costs.KINDS)
def test_capture_cost_rows_run(kind, tmp_path):
    result = measure(next(row for row in costs.LENGTH_ROWS if row.name == f"{kind}, 100 operators"), bench(tmp_path))
    assert set(result["times"]) == {US, costs.TENTH}
    assert result["counts"]["kernels"] >= 1
    assert [target["met"] for target in result["targets"]] != [None]


def test_rank_cost_rows_run(tmp_path):
    assert [int(np.prod(costs.dims_of(rank))) for rank in costs.RANKS] == [costs.POINTS] * 8
    for row in costs.RANK_ROWS[::3]:
        result = measure(row, bench(tmp_path, numpy=np))
        assert "wrong" not in result, result
        assert set(result["times"]) == {US, "numpy"}


def test_fused_function_uses_less_memory():
    script = "from project.benchmarks import memory_of_process as m; m.EXPONENTS = (12, 16); m.main({!r})"
    fused_kib, eager_kib = (json.loads(run_python("-c", script.format(how)))["16"][1] for how in ("fused", "eager"))
    array = 4 << 16 >> 10
    assert array <= fused_kib < eager_kib


def test_memory_rows_report_measurements_of_child_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(
        costs, "run_python", lambda *words: f'{{"10": [{1 + (words[-1] == "eager")}, {words[-1].count("e") * 100}]}}'
    )
    result = measure(costs.MEMORY_ROWS[0], bench(tmp_path))
    assert result["counts"] == {"KiB": 100, "KiB unfused": 200, "KiB of an array": 4}
    assert result["ratios"][fused.EAGER]["median"] == 2


def test_networks_are_compiled_once_for_all_processes(tmp_path, monkeypatch):
    folders = []

    def told(module, folder, *words):
        folders.append(folder)
        is_new = folder not in folders[:-1]
        folder.mkdir(exist_ok=True)
        counts = {"kernels compiled": 9 * is_new, "kernels from disk": 9 * (not is_new), "MiB at most": 100}
        return {"seconds": 4.0 if is_new else 0.1, "counts": counts}

    monkeypatch.setattr(compiling, "run_module", told)
    rows = [row for row in compiling.ROWS if row.name.startswith("mlp")]
    cold, warm = [measure(row, bench(tmp_path)) for row in rows]
    assert cold["counts"]["kernels compiled"] == 9
    assert warm["counts"] == {"kernels compiled": 0, "kernels from disk": 9, "MiB at most": 100}
    assert warm["targets"][0]["met"]
    assert warm["times"][US]["median"] < cold["times"][US]["median"]


def test_compile_rows_cover_all_recipes():
    names = {row.name.partition(":")[0] for row in compiling.ROWS if "batch" in row.name}
    assert names == {"demo", "mlp", "lenet", "sentences", "gpt"}


def test_clocked_players_stop_at_the_time_limit(monkeypatch):
    monkeypatch.setattr(timer, "CLOCKED_S", -1.0)
    assert timer.read_clocks({US: lambda: 2.0}).rounds == {US: [2.0]}
    monkeypatch.setattr(timer, "CLOCKED_S", 1e9)
    assert timer.read_clocks({US: lambda: 2.0}).rounds == {US: [2.0] * timer.MIN_ROUNDS}


def test_kinds_of_suites_have_peers():
    assert set(peers.KINDS) == {"fusion", "networks", "sweeps", "costs", "held-out", "loop-nests", "library"}

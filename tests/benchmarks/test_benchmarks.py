"""The benchmarks run, check results before timing, and report all fields. Speed is never tested."""

import doctest
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from project import measure_app
from project.benchmarks import __main__ as command
from project.benchmarks import all_reduce, gpu, kernel_counts, page, peers, report, rows, terminal, timer
from project.benchmarks.row import US, Bench, Contest, Row, count, delay, formula, normal, speed
from project.benchmarks.rows import SUITES, rows_of
from project.benchmarks.run import choose, measure, run, summarize
from project.benchmarks.suites import suite_of
from project.screens import PAGES
from tests.sources import ROOT

ROWS = rows_of()
MODULES = [path.relative_to(ROOT) for path in sorted((ROOT / "project" / "benchmarks").rglob("*.py"))]
RESULTS = sorted(command.RESULTS.glob("cpu-*.json"))
GPU_RESULTS = sorted(command.RESULTS.glob("gpu-*.json"))
HEAD = {"format", "date", "quick", "seed", "machine", "versions", "threads", "environment", "load", "missing", "rows"}
MACHINE = {"processor", "microarchitecture", "cores", "memory_gib", "vector_features", "system"}
MEASURED = {"group", "name", "load", "errors", "rounds", "calls", "times", "ratios", "counts", "targets"}
ORIGIN = {"device", "versions", "date"}  # of rows that --part has merged
SPREAD = {"median", "q1", "q3"}
WITHOUT_JAX = [name for name in peers.KNOWN if name != "jax"]  # JAX takes part in the fusion rows only


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Run all rows with --quick in a child process, and return the process and its JSON."""
    path = tmp_path_factory.mktemp("benchmarks") / "quick.json"
    words = [sys.executable, "-m", "project.benchmarks", "--quick", "--seed", "3", "--json", str(path)]
    words += ["--against", ",".join(WITHOUT_JAX)]
    process = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process, json.loads(path.read_text(encoding="utf-8"))


def test_all_rows_run_with_correct_results(quick):
    _, found = quick
    assert [(row["group"], row["name"]) for row in found["rows"]] == [(row.group, row.name) for row in ROWS]
    assert not [row for row in found["rows"] if "wrong" in row]


def test_json_has_all_fields(quick):
    check_fields(quick[1])
    assert quick[1]["quick"] is True
    assert quick[1]["seed"] == 3
    assert set(quick[1]["environment"].values()) == {"passive"}


def test_json_contains_no_path_of_this_machine(quick):
    text = json.dumps(quick[1])
    assert str(ROOT) not in text
    assert sys.prefix not in text


def check_fields(found, is_on_gpu=False, is_fusion=False):
    assert set(found) - {"roofs"} == HEAD
    assert set(found["machine"]) == MACHINE
    assert {"python", "minifuse", "numpy", "numba", "blas of numpy"} <= set(found["versions"])
    assert is_on_gpu or {"minifuse", "blas of numpy"} <= set(found["threads"])
    for row in found["rows"]:
        more = {
            "gflop_per_s",
            "work",
            "curve",
            "size",
            *ORIGIN,
            *(["gb_per_s"] if is_on_gpu else []),
            *(["broken"] if is_on_gpu or is_fusion else []),
        }
        assert set(row) - more == MEASURED
        assert next(iter(row["times"])) == US
        assert set(row["ratios"]) == set(row["times"]) - {US}
        for spread in [*row["times"].values(), *row["ratios"].values()]:
            assert set(spread) == SPREAD
            assert 0 < spread["q1"] <= spread["median"] <= spread["q3"]
        for target in row["targets"]:
            assert set(target) == {"words", "bound", "value", "met"}


def test_installed_peers_take_part_and_others_have_a_reason(quick):
    _, found = quick
    present = {who for row in found["rows"] for who in row.get("times", {})}
    for name in WITHOUT_JAX:
        assert (name in present) != (name in found["missing"]), name


def test_every_timed_result_was_checked(quick):
    for row in quick[1]["rows"]:
        if row["group"] != "start":
            assert set(row["errors"]) == set(row["times"]), row["name"]


def test_a_second_process_and_a_new_size_compile_nothing(quick):
    counts = {row["name"]: row["counts"] for row in quick[1]["rows"] if row["group"] == "start"}
    cold = counts["first step, nothing on disk"]["kernels compiled"]
    assert cold > 0
    assert counts["first step, a second process"] == {"kernels compiled": 0, "kernels from disk": cold}
    assert counts["first step with a new batch size"]["kernels compiled"] == 0


def test_report_names_every_row_and_the_machine(quick):
    process, found = quick
    text = " ".join(process.stdout.split())
    assert found["machine"]["microarchitecture"] in text
    assert "quick run" in text
    for row in found["rows"]:
        assert f"{row['group']:10} {row['name']}" in process.stderr


# Checks before timing


def contest(theirs, exact=(1.0, 2.0)):
    """Return a row whose peer returns `theirs`."""
    players = {US: lambda: np.array([1, 2], np.float32), "numpy": lambda: theirs}
    return Row("a row", "a group", lambda bench: Contest(players, np.array(exact)), (speed("numpy", 1),))


def bench(tmp_path, **modules):
    return Bench(modules, np.random.default_rng(0), tmp_path, is_quick=True)


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (np.array([1, 2.001], np.float32), "differs from NumPy in float64 by 2.8e-04"),
        (np.array([1, np.nan], np.float32), "not finite"),
        (np.array([1.0, 2.0]), "float64 of shape (2,), expected float32 of shape (2,)"),
        (np.array([[1, 2]], np.float32), "shape (1, 2)"),
    ],
)
def test_wrong_results_are_reported_and_not_timed(tmp_path, theirs, message):
    result = measure(contest(theirs), bench(tmp_path))
    assert list(result["wrong"]) == ["numpy"]
    assert message in result["wrong"]["numpy"]
    assert "times" not in result
    assert "wrong: numpy" in report.format_ours(result)


def test_correct_results_are_timed(tmp_path):
    result = measure(contest(np.array([1, 2.00001], np.float32)), bench(tmp_path))
    assert set(result["times"]) == {US, "numpy"}
    assert result["errors"][US] == 0 < result["errors"]["numpy"]


def test_formulas_are_checked_for_every_player(tmp_path):
    row = formula("r", "g", normal((5,)), lambda a: a * 2, others={"numexpr": lambda a: a * 3}, exact=lambda a: a * 2)
    result = measure(row, bench(tmp_path, numpy=np, numexpr=np))
    assert set(result["errors"]) == {US, "numpy", "numexpr"}
    assert list(result["wrong"]) == ["numexpr"]


def test_players_have_separate_inputs(tmp_path):
    def twice(a):
        a += a
        return a

    result = measure(formula("r", "g", normal((5,)), twice), bench(tmp_path, numpy=np))
    assert "wrong" not in result


def test_wrong_results_end_the_run_with_exit_status_1(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peers, "prepare", lambda: None)
    monkeypatch.setenv("MINIFUSE_THREADS", "1")
    path = tmp_path / "out.json"
    for theirs, status in (([1, 2], 0), ([1, 3], 1)):
        row = contest(np.array(theirs, np.float32))
        monkeypatch.setattr(rows, "rows_of", lambda *suite, row=row: [row])
        assert command.main(["--quick", "--json", str(path), "--against", "numpy"]) == status
        assert ("wrong" in json.loads(path.read_text())["rows"][0]) == bool(status)
        assert ("wrong: numpy" in capsys.readouterr().out) == bool(status)


def test_interrupted_run_saves_the_measured_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "prepare", lambda: None)
    monkeypatch.setenv("MINIFUSE_THREADS", "1")

    def stop(bench):
        raise KeyboardInterrupt

    measured = contest(np.array([1, 2], np.float32))
    monkeypatch.setattr(rows, "rows_of", lambda *suite: [measured, replace(measured, setup=stop)])
    path = tmp_path / "out.json"
    assert command.main(["--quick", "--json", str(path), "--against", "numpy"]) == 130
    (row,) = json.loads(path.read_text())["rows"]
    assert US in row["times"]
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_missing_peer_is_left_out_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_THREADS", "1")
    monkeypatch.setitem(sys.modules, "numexpr", None)
    found, missing = peers.load(["numpy", "numexpr"])
    assert list(found) == ["numpy"]
    assert "numexpr" in missing["numexpr"]
    row = formula(
        "r", "g", normal((5,)), lambda a: a * 2, others={"numexpr": lambda a: a * 2}, targets=[speed("numexpr", 1)]
    )
    result = run([row], found, missing, seed=0, is_quick=True)
    assert result["missing"] == missing
    assert set(result["rows"][0]["times"]) == {US, "numpy"}
    assert result["rows"][0]["targets"][0]["met"] is None
    assert "not measured" in report.targets(result["rows"][0])


# Timer, targets and command line


def test_players_take_turns():
    seen = []
    players = {who: partial(seen.append, who) for who in "abc"}
    times = timer.take_turns(players, is_quick=True)
    assert Counter(seen) == {
        "a": 5,
        "b": 5,
        "c": 5,
    }  # an estimate, and twice an untimed and a timed call
    assert "".join(seen) == "abc" + "aabbcc" + "ccbbaa"
    assert {who: len(seconds) for who, seconds in times.rounds.items()} == {"a": 2, "b": 2, "c": 2}


def test_number_of_calls_per_block_follows_the_time_of_a_call(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(timer, "time", clock)
    players = {"slow": partial(clock.pass_by, timer.BUDGET_S), "fast": partial(clock.pass_by, 1e-5)}
    times = timer.take_turns(players)
    assert times.calls["slow"] == 1
    assert times.calls["fast"] >= timer.BLOCK_S / 1e-5
    assert len(times.rounds["slow"]) == timer.MIN_ROUNDS
    assert times.rounds["fast"] == pytest.approx([1e-5] * timer.MIN_ROUNDS)
    short = timer.take_turns({"short": partial(clock.pass_by, 1e-3)})
    assert len(short.rounds["short"]) == timer.MAX_ROUNDS


def test_pauses_are_not_timed(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(timer, "time", clock)
    times = timer.take_turns({"a": partial(clock.pass_by, 0.01), "b": partial(clock.pass_by, 0.02)}, rests=True)
    assert clock.slept == pytest.approx(timer.REST_S * sum(map(len, times.rounds.values())))
    assert times.rounds["a"] == pytest.approx([0.01] * len(times.rounds["a"]))


def test_ratio_divides_peer_time_by_ours_in_the_same_round():
    times = timer.Times({US: [1.0, 2.0, 4.0], "torch": [5.0, 6.0, 2.0]}, {US: 1, "torch": 1})
    found = summarize(times)
    assert found["ratios"] == {"torch": {"median": 3.0, "q1": 1.75, "q3": 4.0}}
    assert found["times"]["torch"]["median"] == 5.0
    assert found["rounds"] == 3


class FakeClock:
    """A clock that only `pass_by` and `sleep` advance."""

    def __init__(self):
        self.now = self.slept = 0.0

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds

    def perf_counter(self):
        return self.now

    def pass_by(self, seconds):
        self.now += seconds


def result(**rest):
    times = {US: {"median": 2.0}, "numba": {"median": 1.9}}
    return {"ratios": {"torch": {"median": 0.95}}, "times": times, "counts": {"kernels": 3}, **rest}


@pytest.mark.parametrize(
    ("target", "value", "is_met"),
    [
        (speed("torch", 0.95), 0.95, True),
        (speed("torch", 0.96), 0.95, False),
        (speed("numexpr", 1), None, None),
        (delay("numba", 0.11), 0.1, True),
        (delay("numba", 0.09), 0.1, False),
        (delay("torch", 1), None, None),
        (count("kernels", 3), 3, True),
        (count("kernels", 2), 3, False),
    ],
)
def test_targets_are_met_or_missed(target, value, is_met):
    judged = target.judge(result())
    assert judged["value"] == (None if value is None else pytest.approx(value))
    assert judged["met"] is is_met


def test_names_are_unique():
    for suite in SUITES:
        assert max(Counter((row.group, row.name) for row in rows_of(*suite)).values()) == 1


def test_rows_are_selected_by_substrings():
    assert {row.group for row in choose(ROWS, ["matmul"])} == {"matmul"}
    assert len(choose(ROWS, [])) == len(ROWS)
    with pytest.raises(ValueError, match=r"no row has 'no such row'.*the groups are host"):
        choose(ROWS, ["host", "no such row"])


def test_words_after_a_suite_name_select_its_rows():
    suite = suite_of("costs")
    assert {row.name for row in suite.chosen(["costs", "another size"])} == {"first call with another size"}
    assert len(suite.chosen(["costs"])) == len(suite.rows)
    with pytest.raises(ValueError, match="no row has 'no such row'"):
        suite.chosen(["costs", "no such row"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no such row"], "no row has 'no such row' in its name or group; the groups are host, large, "),
        (["--against", "nobody"], "--against nobody: expected some of numpy, torch"),
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
    ],
)
def test_invalid_command_lines_are_errors(words, message, monkeypatch, capsys):
    monkeypatch.setattr(peers, "prepare", lambda: None)
    monkeypatch.setenv("MINIFUSE_THREADS", "1")
    assert command.main([*words, *["--against=numpy"] * (not words[0].startswith("--against")), "--quick"]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert output.err.startswith("python -m project.benchmarks: ")
    assert not output.out


def test_report_works_without_rich(quick, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "160")
    terminal.show(quick[1])
    text = capsys.readouterr().out
    for row in quick[1]["rows"]:
        assert re.search(rf"^{re.escape(row['name'])}  +\S", text, re.MULTILINE)


# The page.


def test_pages_and_pictures_contain_the_saved_results():
    assert RESULTS
    made = page.generate(command.RESULTS)
    assert page.stale_files(made, page.GUIDE) == [], "run: python -m project.benchmarks --page"
    for name, text in made.items():
        assert (page.GUIDE / name).read_text(encoding="utf-8") == text, f"{name}: run: python -m project.benchmarks --page"


def test_changed_result_changes_its_page(tmp_path):
    found = json.loads(RESULTS[0].read_text(encoding="utf-8"))
    found["rows"][0]["times"][US]["median"] *= 2
    (tmp_path / RESULTS[0].name).write_text(json.dumps(found))
    name = f"{page.FOLDER}/{RESULTS[0].stem}.md"
    assert page.generate(tmp_path)[name] != (page.GUIDE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [page.FIRST, page.GOALS, f"{page.FOLDER}/measuring.md"])
def test_page_text_contains_no_measured_number(name):
    head, begin, rest = (page.GUIDE / name).read_text(encoding="utf-8").partition(page.BEGIN)
    prose = head + rest.partition(page.END)[2] + page.HOW_FAST + page.HOW_SLOW + page.PROGRAMS + page.CONTENTS
    assert bool(begin) == (name != f"{page.FOLDER}/measuring.md")
    assert not re.findall(r"\d+(?:[.,]\d+)?\s*(?:x|times|%|us|ms|ns|s|GFLOP|GB)\b", prose)


@pytest.mark.parametrize("text", ["", page.END + page.BEGIN, page.BEGIN, page.BEGIN + page.END + page.BEGIN])
def test_page_without_markers_is_an_error(text):
    with pytest.raises(ValueError, match="these two comments once each"):
        page.update_text(text, "new")


def test_page_keeps_the_text_around_the_comments():
    text = page.update_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", "new")
    assert text == f"before\n{page.BEGIN}\n\nnew\n{page.END}\nafter\n"


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in RESULTS + GPU_RESULTS])
def test_saved_results_are_complete_runs(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    device = found.pop("device", None)
    kind = next((kind for kind in peers.KINDS if path.stem.endswith(f"-{kind}")), "")
    check_fields(found, device is not None, bool(kind))
    assert not found["quick"]
    assert found["seed"] is not None
    place = f"gpu-{gpu.slug(device['name'])}" if device else f"cpu-{found['machine']['microarchitecture']}"
    assert path.stem == place + f"-{kind}" * bool(kind)
    groups = {row.group for row in rows_of(device is not None, kind)}
    assert groups & {row["group"] for row in found["rows"]}  # groups may have been added or removed since the file was saved


APP_RESULTS = sorted(command.RESULTS.glob("app-*.json"))


DEVICES_RESULTS = command.RESULTS / "devices"
ALL_REDUCE_RESULTS = sorted(DEVICES_RESULTS.glob("all-reduce-*.json"))


def test_results_folder_contains_only_known_kinds_of_files():
    known = {*RESULTS, *GPU_RESULTS, *APP_RESULTS, DEVICES_RESULTS, kernel_counts.KEPT}
    assert set(command.RESULTS.iterdir()) == known


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in ALL_REDUCE_RESULTS])
def test_saved_times_of_all_reduce_have_all_sizes(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    times = found["median and least us"]
    assert {"shared in place", "mpi in place", "MPI_Allreduce in place", "MPI_Allreduce apart"} <= times.keys()
    assert all(list(map(int, sizes)) == all_reduce.SIZES for sizes in times.values())
    assert all_reduce.format_table(times).count("\n") == len(all_reduce.SIZES)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in APP_RESULTS])
def test_saved_results_of_the_app_cover_all_pages(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert set(found) == HEAD - {"seed"}
    groups = {row["group"] for row in found["rows"]}
    assert groups == {f"{what}, {state}" for what, state in measure_app.BOUNDS}
    for group in groups:
        names = {row["name"].partition(":")[0].partition(",")[0] for row in found["rows"] if row["group"] == group}
        what = group.rpartition(",")[0]
        pages = {page.title.partition(",")[0] for page in PAGES if what == measure_app.FIRST or page.path}
        if what == measure_app.TOGETHER:
            assert len(names) == measure_app.VISITORS
        if what != measure_app.LONG:
            assert names <= pages
        if what in (measure_app.FIRST, measure_app.CONTROL):
            assert names == pages


@pytest.mark.parametrize("name", [".".join(path.with_suffix("").parts) for path in MODULES])
def test_doctests_of_a_module_pass(name, capsys):
    failed, _ = doctest.testmod(import_module(name))
    assert not failed, capsys.readouterr().out

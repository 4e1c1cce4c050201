"""`--part k/n`: the parts of a suite are disjoint and complete, and their results are merged by row."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from project.benchmarks import __main__ as command
from project.benchmarks import partial_runs, peers, rows
from project.benchmarks.row import US, Contest, Row
from project.benchmarks.suites import Suite

NAMES = ["a", "b", "c", "d", "e"]


def row_named(name, value=1.0):
    return Row(name, "a group", lambda bench: Contest({US: lambda: np.array([value], np.float32)}, np.array([1.0])))


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Run the command over five rows; `rows` may be replaced, and the results of complete runs are kept in a folder."""
    monkeypatch.setattr(peers, "prepare", lambda: None)
    monkeypatch.setenv("MINIFUSE_THREADS", "1")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "kept")
    suite = SimpleNamespace(rows=[row_named(name) for name in NAMES], folder=tmp_path)
    monkeypatch.setattr(rows, "rows_of", lambda *_: suite.rows)
    suite.run = lambda *words: command.main([*words, "--against", "numpy"])
    return suite


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_parts_are_disjoint_and_complete(n):
    selected = [partial_runs.Part(k, n).select(NAMES) for k in range(1, n + 1)]
    assert sorted(name for part in selected for name in part) == NAMES
    assert max(map(len, selected)) - min(map(len, selected)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2/3", "-1/2", "/", "1/0"])
def test_a_part_that_does_not_exist_is_refused(text, bench, capsys):
    assert bench.run(f"--part={text}", "--quick") == 2
    assert f"argument --part: {text!r}: expected k/n with 1 <= k <= n, as in --part 2/5" in capsys.readouterr().err


def test_parts_are_merged_into_one_file_in_the_order_of_the_suite(bench):
    path = bench.folder / "out.json"
    for part in ("2/2", "1/2"):
        assert bench.run("--part", part, "--quick", "--json", str(path)) == 0
    found = json.loads(path.read_text())["rows"]
    assert [row["name"] for row in found] == NAMES
    assert all({"device", "versions", "date"} <= row.keys() for row in found)


def test_rows_of_other_parts_stay_as_they_are(bench):
    path = bench.folder / "out.json"
    assert bench.run("--quick", "--json", str(path)) == 0
    whole = json.loads(path.read_text())
    whole["date"], whole["versions"]["numpy"] = "2020-01-01T00:00:00+00:00", "1.0"
    path.write_text(json.dumps(whole))
    bench.rows = [row_named(name, value=1.000001) for name in NAMES]
    assert bench.run("--part", "2/3", "--quick", "--json", str(path)) == 0
    merged = json.loads(path.read_text())
    assert [row["name"] for row in merged["rows"]] == NAMES
    for row, old in zip(merged["rows"], whole["rows"], strict=True):
        is_new = row["name"] in ("b", "e")
        assert (row["errors"][US] > 0) == is_new
        assert (row["date"] == whole["date"]) != is_new
        assert (row["versions"]["numpy"] == "1.0") != is_new
        assert is_new or row["times"] == old["times"]
    assert merged["date"] != whole["date"]


def test_a_row_that_is_no_longer_in_the_suite_stays_behind_the_others(bench):
    path = bench.folder / "out.json"
    assert bench.run("--quick", "--json", str(path)) == 0
    bench.rows = [row_named(name) for name in "edc"]
    assert bench.run("--part", "1/1", "--quick", "--json", str(path)) == 0
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["e", "d", "c", "a", "b"]


@pytest.mark.parametrize("text", ['{"rows": [{"na', "", "[1, 2]", '{"rows": []}'])
def test_a_torn_file_is_reported_before_anything_is_measured(text, bench, capsys):
    path = bench.folder / "out.json"
    path.write_text(text)
    bench.rows = [Row("a", "a group", lambda bench: pytest.fail("a row was set up"))]
    assert bench.run("--part", "1/2", "--quick", "--json", str(path)) == 2
    told = capsys.readouterr().err
    assert f"--part 1/2: {path} " in told
    assert "write to another file" in told
    assert path.read_text() == text


def test_a_quick_run_is_not_merged_into_another(bench, capsys):
    path = bench.folder / "out.json"
    assert bench.run("--quick", "--json", str(path)) == 0
    text = path.read_text()
    assert bench.run("--part", "1/5", "--json", str(path)) == 2
    assert "contains a run with --quick, and a run without --quick cannot be merged into it" in capsys.readouterr().err
    assert path.read_text() == text


def test_a_part_is_merged_into_the_kept_file(bench, monkeypatch):
    monkeypatch.setattr(Suite, "peers", ("numpy",))
    monkeypatch.setattr("project.benchmarks.run.take_times", one_round)
    for part, names in (("1/5", ["a"]), ("3/5", ["a", "c"])):
        assert bench.run("--part", part) == 0
        (path,) = command.RESULTS.iterdir()
        assert [row["name"] for row in json.loads(path.read_text())["rows"]] == names
    assert bench.run("--part", "2/5", "--no-keep") == 0
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["a", "c"]


def one_round(contest, bench):
    """Return one round of times without measuring."""
    from project.benchmarks.timer import Times

    return Times({who: [1.0] for who in contest.players}, dict.fromkeys(contest.players, 1))

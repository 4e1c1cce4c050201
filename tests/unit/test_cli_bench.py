"""`minifuse bench`: project/benchmarks runs in a child process, and errors in the request are reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from minifuse.cli import bench, files
from minifuse.cli.bench import BenchRequest
from minifuse.cli.commands import app
from project.benchmarks.__main__ import parser
from tests.sources import ROOT


def invoke(*words):
    return CliRunner().invoke(app, ["bench", *words], env={"COLUMNS": "80"})


def command(tmp_path, *words, **environment):
    """As a person calls it, from a folder of theirs."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    line = [sys.executable, "-m", "minifuse", "bench", *words]
    env = {**os.environ, "PYTHONPATH": path, "COLUMNS": "80", **environment}
    return subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_arguments_reach_the_runner_unchanged(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(bench, "run", lambda request, json: asked.append(request.arguments(json)) or 0)
    words = ["matmul", "a + b", "--against", "torch,jax", "--quick", "--seed", "5", "--out", "x.json", "--picture", "x.svg"]
    assert invoke(*words).exit_code == 0
    assert invoke("--list", "--json").exit_code == 0
    first, second = [parser().parse_args(line) for line in asked]
    assert first.rows == ["matmul", "a + b"]
    assert (first.against, first.quick, first.seed, first.json, first.picture) == (
        "torch,jax",
        True,
        5,
        "x.json",
        Path("x.svg"),
    )
    assert (second.list, second.json, second.rows) == (True, "-", [])
    assert not first.keep
    assert not second.keep, "what a user measures is no kept result"


def test_a_run_shows_tables_that_fit_and_keeps_nothing(tmp_path):
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "project" / "benchmarks" / "results").iterdir()}
    done = command(tmp_path, "a.sum()", "--quick", "--against", "numpy")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("a.sum()") and line.endswith("x") for line in lines)
    assert "the rows work, not how fast" in " ".join(done.stdout.split())
    assert "targets met" not in done.stdout
    after = {path: path.stat().st_mtime_ns for path in (ROOT / "project" / "benchmarks" / "results").iterdir()}
    assert after == before
    assert not list(tmp_path.iterdir())


def test_json_is_the_only_output_and_threads_are_set_before_imports(tmp_path):
    """From a folder with a `project` of the user's."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "__init__.py").write_text("raise RuntimeError('not this one')")
    path = os.pathsep.join(filter(None, [str(ROOT), str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    words = ["a.sum()", "--quick", "--against", "numpy", "--json"]
    done = command(tmp_path, *words, MINIFUSE_THREADS="1", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["rows"]] == ["a.sum()"]
    assert found["threads"]["minifuse"] == 1
    assert found["threads"]["blas of numpy"] in (1, "1 asked for")


def test_results_are_written_to_the_given_path(tmp_path):
    words = ["a.sum()", "--quick", "--against", "numpy", "--out", "out.json", "--picture", "out.svg"]
    done = command(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["rows"][0]["name"] == "a.sum()"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert "no picture: none of these rows is of a curve" in done.stderr


def test_mistakes_are_reported_in_one_line(tmp_path):
    done = command(tmp_path, "host", "--against", "tinygrad")
    assert done.returncode == 2
    assert done.stderr == "minifuse bench: --against tinygrad: expected some of numpy, torch, numexpr, jax, indexed, loops\n"
    assert not done.stdout


def test_json_and_a_file_are_one_too_many():
    told = invoke("--json", "--out", "x.json")
    assert told.exit_code == 2
    assert "got --json and --out, expected one" in told.stderr


def test_a_missing_benchmarks_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "VISUALIZER_FOLDERS", (tmp_path,))
    told = invoke("host")
    assert told.exit_code == 2
    assert str(tmp_path) in told.stderr.replace("\n", "")


def test_a_missing_peer_is_reported_with_its_install_command(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "numexpr.py").write_text("raise ImportError('not here', name='numexpr')")
    path = os.pathsep.join(filter(None, [str(tmp_path / "hidden"), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = command(tmp_path, "a.sum()", "--quick", "--against", "numpy,numexpr", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert 'without numexpr: numexpr cannot be imported (ImportError); pip install "minifuse[bench]"' in " ".join(
        done.stdout.split()
    )


def test_a_request_without_names_runs_everything():
    assert BenchRequest(()).arguments(json=False) == ["--no-keep", "--"]

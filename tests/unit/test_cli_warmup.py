"""`minifuse warmup`: which kernels it compiles, that a second run compiles none, and its output without a cache folder."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.cli import warmup
from minifuse.cli.commands import app
from minifuse.runtime import kernel_cache

FILE = """
import minifuse as mf

def score(x, w):
    print("called")
    return ((x @ w).relu() + 1.5).sum(1)

EXAMPLE = mf.ones(8, 4), mf.ones(4, 3)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path / "kernels"))
    (tmp_path / "model.py").write_text(FILE)
    return tmp_path / "model.py"


def run(*words, **environment):
    """In a process of its own, where nothing is in memory."""
    command = [sys.executable, "-m", "minifuse", "warmup", *map(str, words)]
    paths = {"PYTHONPATH": str(Path(mf.__file__).parents[1])}
    return subprocess.run(command, env=os.environ | paths | environment, capture_output=True, text=True, check=False)


def told(*words):
    found = run(*words, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_function_is_compiled_once(file, tmp_path):
    first = told(f"{file}:score", "--grad", "--jobs", "1")
    assert first["subjects"] == ["model.py:score"]
    assert first["compiled"] == first["kernels"] > 1
    assert first["nbytes"] == sum(path.stat().st_size for path in (tmp_path / "kernels").iterdir())
    again = run(f"{file}:score", "--grad")
    assert " ".join(again.stdout.split()).startswith(f"all {first['kernels']} kernels exist already; ")
    assert "called" in again.stderr
    larger = told(f"{file}:score", "--shape", "80x40,40x30", "--grad")
    assert larger["compiled"] <= 1  # of a matrix product of another kind; for a new size nothing is compiled


def test_a_recipe_is_all_there_afterwards(file):
    first = told("mlp", "--jobs", 2)
    assert first["compiled"] == first["kernels"] > 8
    assert first["processes"] == 2
    script = """
from minifuse.recipes import recipe_named
from minifuse.training import Trainer
import minifuse as mf
trainer = Trainer(recipe_named("mlp"), recipe_named("mlp").settings.changed({"epochs": 1}))
for told in trainer.advance(3):
    pass
trainer.measure()
print(mf.cache.stats().compiled)
"""
    paths = {"PYTHONPATH": str(Path(mf.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | paths, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["0"]


def test_a_cache_that_cannot_be_written_is_an_error(file, tmp_path, monkeypatch):
    words = ["warmup", f"{file}:score", "--jobs", "1"]
    (tmp_path / "full").write_text("")
    for name, value, answer in (
        ("MINIFUSE_CACHE", str(tmp_path / "full"), "cannot write to"),
        ("MINIFUSE_CACHE_LIMIT_MB", "0", "MINIFUSE_CACHE_LIMIT_MB is 0"),
        ("MINIFUSE_CACHE_LIMIT_MB", "much", "expected a number of megabytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            found = CliRunner().invoke(app, words)
        assert found.exit_code == 1, name
        assert answer in found.stderr


def test_a_disk_that_is_full_in_the_end(file, monkeypatch):
    replace = kernel_cache.replace_file

    def full(path, data):
        if len(data) > 200:  # what is tried first is shorter
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(path, data)

    monkeypatch.setattr(kernel_cache, "replace_file", full)
    file.write_text("def score(x):\n    return (x * x - x / (x + 12) + x.tanh() ** 3 - x.erf()).max(0) - 0.123\n")
    found = CliRunner().invoke(app, ["warmup", f"{file}:score", "--jobs", "1", "--shape", "7x5"])
    assert found.exit_code == 1
    assert "1 of " in found.stderr
    assert "could not be stored in" in found.stderr


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["lennet"], "unknown subject 'lennet'; expected one of demo, mlp, lenet, sentences, gpt, or FILE.py:function"),
        (["nowhere.py:f"], "nowhere.py is not a file"),
        (["mlp", "--backend", "python"], "the python backend compiles nothing"),
        (["mlp", "--backend", "none"], "none"),
    ],
)
def test_a_request_without_sense(file, words, answer):
    found = CliRunner().invoke(app, ["warmup", *words])
    assert found.exit_code == 2
    assert answer in found.stderr


def test_ctrl_c_keeps_the_finished_kernels(file, monkeypatch):
    def stopped(*inputs):
        raise KeyboardInterrupt

    monkeypatch.setattr(warmup, "run_function", stopped)
    found = CliRunner().invoke(app, ["warmup", f"{file}:score", "--jobs", "1"])
    assert found.exit_code == 130
    assert "kernels compiled so far are stored" in found.stderr

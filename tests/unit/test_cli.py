"""The command line: facts as JSON, tables that fit a terminal, clean ends."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import minifuse as mf
from minifuse.cli import doctor, equivalence
from minifuse.cli.commands import app


def invoke(*arguments, **environment):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80", **environment})


def test_the_demo_learns_and_compares():
    result = invoke("demo", "--epochs", "8", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["accuracy"] > 0.95
    assert facts["losses"][-1] < facts["losses"][0] / 3
    rows = {row["backend"]: row for row in facts["backends"]}
    assert {"python", "parallel"} <= set(rows)
    assert all(0 < row["gradients"] < 1e-4 for row in rows.values())
    assert max(row["times_as_fast"] for row in rows.values()) == rows["parallel"]["times_as_fast"]


def test_the_demo_fits_a_terminal():
    result = invoke("demo", "--epochs", "1")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "of held-out digits read right" in result.stdout
    assert "The backends agree" in result.stdout


def test_an_unknown_backend_is_one_line():
    run = subprocess.run(
        [sys.executable, "-m", "minifuse", "demo", "--backend", "cude"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.strip() == "minifuse: backend 'cude' does not exist; there are python, parallel"


def test_doctor_finds_this_machine():
    result = invoke("doctor", "--json")
    findings = {finding["topic"]: finding for finding in json.loads(result.stdout)}
    assert result.exit_code == 0
    assert findings["numpy"]["found"] == np.__version__
    assert findings["a kernel"]["ok"]


def test_doctor_names_the_line_that_helps(tmp_path):
    file = tmp_path / "file"
    file.write_text("a file where the folder should be")
    result = invoke("doctor", MINIFUSE_CACHE=str(file))
    assert result.exit_code == 1
    assert "set MINIFUSE_CACHE to a folder that can be written" in " ".join(result.stdout.split())


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(doctor.EXTRAS, "no-such-package", "cli")
    finding = next(f for f in doctor.examine() if f.topic == "no-such-package")
    assert (finding.ok, finding.advice) == (False, 'pip install "minifuse[cli]"')


@pytest.fixture
def few(monkeypatch):
    """A small part of the equivalence table."""
    monkeypatch.setattr(equivalence, "cases", lambda: iter([("add", mf.operators.TABLE["add"], 2, "float"), WRONG[0]]))


WRONG = [("relu", mf.relu, 1, "float")]


def test_equivalence_shows_what_agrees(few, tmp_path):
    page = tmp_path / "page.html"
    result = invoke("equivalence", "--html", str(page))
    assert result.exit_code == 0, result.output
    assert "all agree" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert page.read_text().count("<td>") == 2 * len(equivalence.LAYOUTS) * len(mf.backends())


def test_equivalence_shows_what_does_not(few, monkeypatch):
    from minifuse.backends.registry import backend_named

    backend = backend_named("parallel")

    def off_by_one(x):
        return mf.relu(x) + (1 if x.backend == backend.name else 0)

    monkeypatch.setitem(globals(), "WRONG", [("relu", off_by_one, 1, "float")])
    result = invoke("equivalence", "--backends", "parallel,python")
    assert result.exit_code == 1
    assert "wrong: plain, permuted" in " ".join(result.stdout.split())
    cells = json.loads(invoke("equivalence", "--json").stdout)
    assert {cell["backend"] for cell in cells if cell["failure"]} == {"parallel"}


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT from outside on Windows")
def test_ctrl_c_stops_cleanly():
    command = [sys.executable, "-m", "minifuse", "demo", "--epochs", "100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "handwritten digits" in process.stdout.readline()
    time.sleep(3)  # the training is under way
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors

"""`minifuse train mlp`: in a terminal of 80 columns, killed and resumed, and what it says where it cannot go on."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from minifuse.cli import recipes
from minifuse.cli.commands import app
from minifuse.core.errors import TrainingError
from minifuse.recipes import MODULES, recipe_named
from minifuse.training.run_folder import CHECKPOINT, CONFIG, CURVES, LOCK, LOG, RunFolder
from tests.sources import ROOT
from tests.training.small import held_out, losses

SHORT = ["--epochs", "3", "--set", "hidden=8", "--batch", "128"]


def invoke(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)], env={"COLUMNS": "80", "NO_COLOR": "1"})


def test_a_recipe_trains_in_a_folder_of_its_own(tmp_path):
    result = invoke("mlp", *SHORT, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "run").iterdir()} == {CONFIG, LOG, CHECKPOINT, CURVES}
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "step     36 of 36" in result.stdout
    assert "held out: loss" in result.stdout


def test_facts_as_json_and_nothing_else(tmp_path):
    result = invoke("mlp", *SHORT, "--out", tmp_path / "run", "--json")
    told = json.loads(result.stdout)
    assert told["is_done"]
    assert told["steps"] == 36
    assert 0.5 < told["held_out"]["accuracy"] <= 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_resuming_a_killed_run_gives_the_losses_of_an_unbroken_run(tmp_path):
    words = [sys.executable, "-m", "minifuse", "train"]
    settings = ["mlp", "--epochs", "40", "--set", "hidden=8", "--batch", "128"]
    assert invoke(*settings, "--out", tmp_path / "whole", "--json").exit_code == 0
    whole = RunFolder(tmp_path / "whole")
    broken = RunFolder(tmp_path / "broken")
    first = subprocess.Popen([*words, *settings, "--out", broken.path], cwd=ROOT, stdout=subprocess.PIPE)
    end = time.monotonic() + 60
    while len(losses(broken.lines())) < 60 and first.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL, "it was done before it could be killed"
    result = invoke("--resume", broken.path, "--json")
    assert result.exit_code == 0, result.output
    assert losses(broken.lines()) == losses(whole.lines())
    assert held_out(broken.lines()) == held_out(whole.lines())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_second_command_in_a_folder_is_refused_with_the_process_id(tmp_path):
    words = [sys.executable, "-m", "minifuse", "train", "mlp", "--epochs", "2000", "--out", tmp_path / "run"]
    folder, end = RunFolder(tmp_path / "run"), time.monotonic() + 60
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as first:
        try:
            while not losses(folder.lines()) and first.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            refused = [invoke("mlp", *SHORT, "--out", folder.path), invoke("--resume", folder.path)]
            assert first.poll() is None
        finally:
            first.send_signal(signal.SIGKILL)
    for result in refused:
        assert result.exit_code == 2
        assert f"run is in use by process {first.pid} (since 2" in result.stderr
    assert (folder.path / LOCK).exists()
    folder.lock()  # that of a killed process is taken over
    steps = [line["step"] for line in folder.lines() if "loss" in line]
    assert steps == list(range(1, len(steps) + 1))


def test_unnamed_runs_of_the_same_second_get_folders_of_their_own(tmp_path, monkeypatch):
    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 2, 3, 4, 5)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recipes, "datetime", Stopped)
    assert [recipes.create_run_folder("mlp").name for _ in range(3)] == [
        f"mlp-20260102-030405{end}" for end in ("", "-2", "-3")
    ]


def test_a_file_named_runs_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs").write_text("mine")
    with pytest.raises(TrainingError, match=r"cannot be created: Not a directory; choose another folder with --out"):
        recipes.create_run_folder("mlp")


def test_an_unknown_recipe_is_an_error_with_its_file(tmp_path):
    RunFolder.create(tmp_path / "run", "mpl", {}).close()
    result = invoke("--resume", tmp_path / "run")
    assert result.exit_code == 2
    assert "config.json: unknown recipe 'mpl'; expected one of mlp" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_ctrl_c_ends_between_steps_and_prints_how_to_resume(tmp_path):
    words = [sys.executable, "-m", "minifuse", "train", "mlp", "--epochs", "500", "--out", tmp_path / "run"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    folder, end = RunFolder(tmp_path / "run"), time.monotonic() + 60
    while not losses(folder.lines()) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"--resume {tmp_path / 'run'}" in said.replace("\n", "")
    assert folder.load("parallel")["step"] == max(losses(folder.lines()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mpl"], "'mpl': expected a recipe (mlp, lenet, sentences, gpt) or a data set ("),
        (["mlp", "--hidden", "3"], "--hidden does not apply to mlp; use --set NAME=VALUE"),
        (["circle", "--set", "hidden=3"], "--set does not apply to circle; it is for recipes: mlp, lenet, sentences, gpt"),
        (["mlp", "--set", "hiden=3"], "unknown option 'hiden'; did you mean hidden?"),
        (["mlp", "--set", "hidden"], "expected NAME=VALUE"),
        (["mlp", "--rate", "0"], "rate is 0.0; expected a number above 0"),
        (["mlp", "--backend", "gpu"], "gpu"),
        (["mlp", "--batch", "2000", "--set", "hidden=-1"], "option hidden is '-1'"),
        (
            ["mlp", "--set", f"hidden={10**30}"],
            "mlp cannot be built: Maximum allowed dimension exceeded; choose other settings",
        ),
        (["mlp", "--set", f"hidden={10**14}"], "mlp cannot be built: Unable to allocate"),
        (["sentences", "--set", "dropout=2"], "sentences cannot be built: Dropout: got p=2.0, expected a probability"),
        (["--resume", "nowhere"], "contains no run"),
        (["--resume", "nowhere", "--epochs", "3"], "the settings of the run, got --epochs"),
    ],
)
def test_an_invalid_request_names_a_valid_one(words, said):
    result = invoke(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_run_of_another_recipe_is_not_gone_on_with(tmp_path):
    invoke("mlp", *SHORT, "--epochs", "1", "--out", tmp_path / "run", "--json")
    result = invoke("lenet", "--resume", tmp_path / "run")
    assert (result.exit_code, "is a run of mlp, not of lenet" in result.stderr) == (2, True)


@pytest.mark.parametrize("name", MODULES)
def test_each_recipe_has_its_options(name):
    recipe = recipe_named(name)
    assert recipe.name == name
    assert 20 < len(recipe.about) <= 60
    assert recipe.settings.changed({}).as_dict() == recipe.settings.as_dict()

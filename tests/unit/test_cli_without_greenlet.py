"""Commands of the extras cli and train work without greenlet, which only the interpreter of CUDA kernels needs."""

import json
import os
import subprocess
import sys

import pytest

from minifuse.cli.extras import EXTRAS
from tests.sources import ROOT

pytest.importorskip("typer", reason="needs minifuse[cli]")

NEEDS_GPU = "there is no CUDA device here"
COMMANDS = {  # command -> arguments that are right, and arguments with a name that does not exist
    "bench": (["--list"], ["nowhere"]),
    "equivalence": (["--backends", "python"], ["--backends", "nowhere"]),
    "explain": (["mine.py:double", "--shape", "3x4"], ["mine.py:nowhere"]),
    "grad": (["mine.py:double", "--shape", "3x4"], ["mine.py:nowhere", "--shape", "3x4"]),
    "launch": (["-n", "1", "mine.py"], ["nowhere.py"]),
    "layout": (["--views", ".T"], ["--views", ".nowhere"]),
    "merge": (["saved", "merged.safetensors"], ["nowhere", "merged.safetensors"]),
    "race": (["a + b"], ["nowhere"]),
    "train": (["xor", "--epochs", "1"], ["nowhere"]),
    "tune": (["mine.py:double", "--shape", "3x4"], ["mine.py:nowhere"]),
    "warmup": (["mine.py:double", "--shape", "3x4"], ["nowhere"]),
}
HIDE = "import sys; sys.modules['greenlet'] = None"
RUN = """
import json, os, sys
import minifuse as mf
from minifuse.cli import main

mf.save_sharded({"x": mf.ones(3)}, "saved")
results = []
for sys.argv in json.loads(sys.argv[1]):
    with open("out", "w+") as out:
        os.dup2(out.fileno(), 1)  # children print there, too
        os.dup2(out.fileno(), 2)
        try:
            main()
        except SystemExit as ended:
            status = ended.code
        sys.stdout.flush()
        out.seek(0)
        results.append([status, out.read()])
with open("results", "w") as file:
    json.dump(results, file)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Run all commands in one process that cannot import greenlet, nor can its children: (status, output) by their words."""
    folder = tmp_path_factory.mktemp("without_greenlet")
    (folder / "sitecustomize.py").write_text(HIDE)
    (folder / "mine.py").write_text("def double(x):\n    return x + x\n")
    lines = [("minifuse", command, *words) for command, both in COMMANDS.items() for words in both]
    path = os.pathsep.join([str(folder), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path, "MINIFUSE_CUDA": "simulated"}
    subprocess.run([sys.executable, "-c", RUN, json.dumps(lines)], cwd=folder, env=environment, check=True)
    return dict(zip(lines, json.loads((folder / "results").read_text()), strict=True))


def test_every_command_without_the_extra_simt_is_listed_here():
    assert COMMANDS.keys() == {command for command, extras in EXTRAS.items() if extras in ("cli", "train")}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_cli_and_train_run_without_greenlet(results, command):
    status, out = results["minifuse", command, *COMMANDS[command][0]]
    assert (status, NEEDS_GPU in out) == ((2, True) if command == "tune" else (0, False)), out


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"tune"}))
def test_a_name_that_does_not_exist_is_the_error_without_greenlet(results, command):
    status, out = results["minifuse", command, *COMMANDS[command][1]]
    assert status
    assert "nowhere" in f"{status}{out}"
    assert "greenlet" not in f"{status}{out}"


def test_the_recipes_of_training_import_without_greenlet():
    code = f"{HIDE}; from minifuse.cli import recipes"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

"""`minifuse train NAME --ranks 2`: the losses of one process, also after a rank was killed and started again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minifuse.distributed as dist
from minifuse.core.errors import TrainingError
from minifuse.recipes import recipe_named
from minifuse.training import Trainer

TIMEOUT = 120  # seconds
SMALL = ("--epochs", "1", "--set", "hidden=8")


def train(folder, *options):
    """Start a run of the recipe mlp, and return the process."""
    command = [sys.executable, "-m", "minifuse", "train", "mlp", *SMALL, "--out", str(folder), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def losses(folder):
    """The losses of a run by step, each step once."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def ranks_of(launcher):
    """The process ids of the ranks that a launcher has started."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(pid) for pid in children]


def test_two_processes_have_the_losses_of_one(tmp_path):
    runs = [train(tmp_path / "one"), train(tmp_path / "two", "--ranks", "2")]
    texts = [run.communicate(timeout=TIMEOUT)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(texts)
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(abs(one[k] - two[k]) <= 1e-6 * abs(one[k]) for k in one)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5])
def test_a_killed_rank_starts_again_with_the_same_losses(tmp_path, delay):
    """The rank is killed at some moment after the first step was logged."""
    options = "--epochs", "30", "--ranks", "2"
    unbroken = train(tmp_path / "unbroken", *options)
    assert unbroken.communicate(timeout=TIMEOUT)[0]
    broken = train(tmp_path / "broken", *options, "--restarts", "1")
    limit = time.monotonic() + TIMEOUT
    log = tmp_path / "broken" / "log.jsonl"
    while not (log.exists() and log.stat().st_size) and time.monotonic() < limit:
        time.sleep(0.01)
    time.sleep(delay)
    os.kill(ranks_of(broken.pid)[1], signal.SIGKILL)
    text = broken.communicate(timeout=TIMEOUT)[0]
    assert broken.returncode == 0, text
    assert "restart 1 of 1" in text
    assert losses(tmp_path / "broken") == losses(tmp_path / "unbroken")


def test_a_batch_must_have_a_part_for_each_rank():
    recipe = recipe_named("mlp")
    with pytest.raises(TrainingError, match="has not a part for each of 8 ranks; use fewer ranks or another batch size"):
        dist.simulate(8, lambda: Trainer(recipe, recipe.settings.changed({"batch": 4})))

"""`minifuse train NAME --ranks 2`: the losses of one process, also after a stop or a kill, on any number of ranks."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import minifuse.distributed as dist
from minifuse.cli.recipes import is_true_on_any_rank
from minifuse.core.errors import TrainingError
from minifuse.recipes import recipe_named
from minifuse.training import Trainer

TIMEOUT = 120  # seconds
SMALL = ("--epochs", "1", "--set", "hidden=8")
MANY_STEPS = ("--epochs", "3", "--batch", "8", "--rate", "0.005")  # so few rounding errors grow in 540 steps


def start(*words):
    """Start `minifuse train`, and return the process."""
    command = [sys.executable, "-m", "minifuse", "train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def train(folder, *options):
    """Start a run of the recipe mlp, and return the process."""
    return start("mlp", *SMALL, "--out", folder, *options)


def wait_for_steps(folder):
    """Wait until a run has logged a step."""
    log, limit = folder / "log.jsonl", time.monotonic() + TIMEOUT
    while not (log.exists() and log.stat().st_size) and time.monotonic() < limit:
        time.sleep(0.002)


def losses(folder):
    """The losses of a run by step, each step once."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def ranks_of(launcher):
    """The process ids of the ranks that a launcher has started."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return [int(pid) for pid in children]


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    assert all(abs(found[k] - loss) <= 1e-6 * abs(loss) for k, loss in expected.items())


def test_two_ranks_have_the_losses_of_one(tmp_path):
    options = {"one": (), "two": ("--ranks", "2"), "simulated": ("--ranks", "2", "--engine", "simulated")}
    runs = [train(tmp_path / name, *words) for name, words in options.items()]
    texts = [run.communicate(timeout=TIMEOUT)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], "\n".join(texts)
    assert_close(losses(tmp_path / "two"), losses(tmp_path / "one"))
    assert losses(tmp_path / "simulated") == losses(tmp_path / "two")


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A run on 2 ranks that was interrupted by Ctrl-C, and what it printed."""
    folder = tmp_path_factory.mktemp("runs") / "interrupted"
    run = train(folder, *MANY_STEPS, "--ranks", "2")
    wait_for_steps(folder)
    run.send_signal(signal.SIGINT)
    text = run.communicate(timeout=TIMEOUT)[0]
    assert run.returncode == 130, text
    return folder, text


@pytest.fixture(scope="module")
def expected_losses(tmp_path_factory):
    """The losses of the same run on one rank, without an interruption."""
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    run = train(folder, *MANY_STEPS)
    text = run.communicate(timeout=TIMEOUT)[0]
    assert run.returncode == 0, text
    return losses(folder)


def test_ctrl_c_stops_all_ranks_after_a_step_and_says_how_to_continue(interrupted):
    folder, text = interrupted
    found = re.search(r"stopped after step (\d+); to continue: minifuse train --resume (\S+) --ranks 2\n", text)
    assert found, text
    assert found[2] == str(folder)
    assert int(found[1]) == max(losses(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint.safetensors",
        "config.json",
        "curves.png",
        "log.jsonl",
    ]


def test_all_ranks_stop_if_one_was_interrupted():
    assert dist.simulate(3, lambda: is_true_on_any_rank(dist.rank() == 1)) == [True] * 3
    assert dist.simulate(3, lambda: is_true_on_any_rank(False)) == [False] * 3
    assert [is_true_on_any_rank(flag) for flag in (False, True)] == [False, True]


@pytest.mark.parametrize("ranks", [1, 3])
def test_another_number_of_ranks_continues_with_the_losses_of_one(interrupted, expected_losses, tmp_path, ranks):
    folder = shutil.copytree(interrupted[0], tmp_path / "run")
    done = losses(folder)
    assert 0 < len(done) < len(expected_losses)
    run = start("--resume", folder, "--ranks", ranks)
    text = run.communicate(timeout=TIMEOUT)[0]
    assert run.returncode == 0, text
    found = losses(folder)
    assert done.items() <= found.items()
    assert_close(found, expected_losses)


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5])
def test_a_killed_rank_starts_again_with_the_same_losses(tmp_path, delay):
    """The rank is killed at some moment after the first step was logged."""
    options = "--epochs", "30", "--ranks", "2"
    unbroken = train(tmp_path / "unbroken", *options)
    assert unbroken.communicate(timeout=TIMEOUT)[0]
    broken = train(tmp_path / "broken", *options, "--restarts", "1")
    wait_for_steps(tmp_path / "broken")
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

"""Every operator with every pair of element types on every backend, in processes of their own that end with 0."""

import os
import random
import subprocess
import sys

import pytest

from minifuse.core.operators import TABLE

from .pairs import BACKENDS, pairs

SAMPLES = 2  # pairs of each backend in every run of pytest
ALLOWED_SECONDS = 600  # of one process, which needs some twenty; more is a hang


def run(backend, *chosen):
    """Run pairs in a process of their own."""
    if backend == "ptx":
        pytest.importorskip("numba_cuda", reason='numba-cuda is not installed: pip install "minifuse[cuda13]"')
    command = [sys.executable, "-W", "error", "-m", "tests.thorough.pairs", backend, *chosen]
    environment = os.environ | {"MINIFUSE_CUDA": "simulated"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=ALLOWED_SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}"
    return int(done.stdout)


def test_a_float_to_an_integer_power_compiles_in_one_process():
    of_both = ["pow:float64,int32", "pow:float64,bool", "pow:float32,int32"]
    assert run("parallel", *of_both) == len(of_both)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sample_of_operators_and_pairs_runs(backend):
    choose = random.Random(BACKENDS.index(backend))
    names = choose.sample([*TABLE], SAMPLES)
    assert run(backend, *[f"{name}:{choose.choice(pairs(TABLE[name]))}" for name in names]) == SAMPLES


@pytest.mark.thorough
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_pair_of_an_operator_runs(backend, name, monkeypatch, tmp_path):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))  # all is compiled
    assert run(backend, name) == len(pairs(TABLE[name]))

"""Weights have the same bits on ranks that are processes, on simulated ranks, and of a loop over the parts of a batch."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import minifuse.distributed as dist

from . import same_bits

ENGINES = ["shared", pytest.param("mpi", marks=pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing"))]
LONG = [pytest.param(name, n, 60, marks=pytest.mark.thorough) for name in same_bits.DATA for n in (2, 4)]


@pytest.mark.parametrize(("name", "size", "steps"), [("mlp", 2, 10), *LONG])
def test_simulated_ranks_have_the_bits_of_a_loop_over_parts(name, size, steps):
    ranks = dist.simulate(size, lambda: same_bits.train(name, steps))
    assert all(result == ranks[0] for result in ranks)
    assert ranks[0][1] == same_bits.train(name, steps, parts=size)[1]
    np.testing.assert_allclose(ranks[0][0], same_bits.train(name, steps)[0], rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", same_bits.DATA)
def test_processes_have_the_bits_of_simulated_ranks(name, size, engine):
    script = Path(same_bits.__file__)
    command = [sys.executable, "-m", "minifuse", "launch", "-n", str(size), "--engine", engine, str(script), name, "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = re.findall(r"result .*", done.stdout)
    losses, digest = dist.simulate(size, lambda: same_bits.train(name, 60))[0]
    assert results == [f"result {losses} {digest}"] * size

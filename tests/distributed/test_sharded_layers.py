"""Sharded models have the same bits on ranks that are processes, whatever the engine, and on simulated ranks."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import minifuse.distributed as dist
from tests.engines.launching import command, run

from . import sharded_layers

ENGINES = ["shared", pytest.param("mpi", marks=pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is missing"))]


@pytest.fixture(scope="module")
def simulated():
    return dist.simulate(2, sharded_layers.run_all)


@pytest.mark.parametrize("engine", ENGINES)
def test_processes_have_the_bits_of_simulated_ranks(tmp_path, simulated, engine):
    done = run(tmp_path, command(Path(sharded_layers.__file__), engine=engine))
    assert done.code == 0, done.err
    results = dict(re.findall(r"^(?:\[(\d)\] )?result (.*)$", done.out, re.MULTILINE))
    found = [json.loads(results[rank]) for rank in ("", "1")]
    for name in sharded_layers.PROGRAMS:
        assert [of_rank[name] for of_rank in found] == [of_rank[name] for of_rank in simulated], name

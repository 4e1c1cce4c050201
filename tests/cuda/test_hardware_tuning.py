"""Schedules that are found by timing on a GPU: results are those of NumPy, and another process times nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.cuda import tuning
from minifuse.backends.cuda.tuned_schedules import TunedSchedules

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]

SCRIPT = """
import json
import numpy as np
import minifuse as mf
from minifuse.backends.cuda import tuning

calls, time_launches = [], tuning.time_launches
tuning.time_launches = lambda *arguments: calls.append(1) or time_launches(*arguments)
x = mf.tensor(np.random.default_rng(0).random((3000, 777), np.float32), backend="cuda")
f = mf.fuse(lambda x: (x - x.mean(1, keepdim=True)).softmax(1), tune=True)
results = [f(x).numpy() for _ in range(2)]
assert results[0].tobytes() == results[1].tobytes()
schedules = [kernel.schedule for kernel in f.explain(x).forward.kernels]
print(json.dumps({"timed": len(calls), "bytes": results[0].tobytes().hex()[:4000], "schedules": schedules}))
"""

FUNCTIONS = {
    "points": (lambda x: mf.exp(x) * 2, lambda a: np.exp(a) * 2),
    "row sums": (lambda x: x.sum(1), lambda a: a.sum(1)),
    "row softmax": (lambda x: x.softmax(1), lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    "row ranges": (lambda x: x.max(1) - x.min(1), lambda a: a.max(1) - a.min(1)),
}


def run(folder):
    """Run the script in a process of its own."""
    search_path = os.pathsep.join([str(Path(mf.__file__).parents[1]), *filter(None, sys.path)])
    paths = {"PYTHONPATH": search_path, "MINIFUSE_CACHE": str(folder)}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | paths, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_second_process_times_nothing_and_computes_the_same_bits(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert first["timed"] > 1
    assert second["timed"] == 0
    assert (second["bytes"], second["schedules"]) == (first["bytes"], first["schedules"])
    assert all("timing" in x or "timed" in x for x in first["schedules"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_timed_schedule_computes_the_same(name, gpu, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIFUSE_CACHE", str(tmp_path))
    schedules = TunedSchedules("a GPU without schedules", gpu.device.capability, gpu.device.multiprocessors)
    monkeypatch.setattr(gpu.device, "schedules", schedules)
    monkeypatch.setattr(gpu.device, "find_schedule", schedules.find)
    function, reference = FUNCTIONS[name]
    a = np.random.default_rng(0).random((3000, 780), np.float32)
    candidates, load = [], tuning.load_candidate
    monkeypatch.setattr(tuning, "load_candidate", lambda *x: candidates.append(load(*x)) or candidates[-1])
    f, x = mf.fuse(function, tune=True), mf.tensor(a)
    np.testing.assert_allclose(f(x).numpy(), reference(a), rtol=2e-5, atol=1e-6)
    assert len(candidates) > 2
    out = mf.empty_like(f(x))
    for candidate in filter(None, candidates):  # each of them computes the whole result
        candidate(out.address, x.address)
        np.testing.assert_allclose(out.numpy(), reference(a), rtol=2e-5, atol=1e-6)
        out[...] = 0

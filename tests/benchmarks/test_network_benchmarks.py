"""The network rows run, and their losses agree, also with torch if it is installed. Speed is never tested."""

import numpy as np
import pytest

from project.benchmarks.gpu import GpuBench
from project.benchmarks.row import US, Bench
from project.benchmarks.rows import networks

try:
    import torch
except ImportError:
    torch = None


@pytest.mark.parametrize("case", networks.CASES, ids=[case.recipe.name for case in networks.CASES])
def test_losses_of_all_players_agree(case, tmp_path):
    modules = {} if torch is None else {"torch": torch}
    bench = Bench(modules, np.random.default_rng(0), tmp_path, is_quick=True)
    contest = networks.contest_setup(case)(bench)
    results = {who: play() for who, play in contest.players.items()}
    found = {who: bench.read(result) for who, result in results.items()}
    assert all(np.array_equal(GpuBench.read(bench, result), found[who]) for who, result in results.items())
    assert set(found) == {US, networks.EAGER, *modules}
    for who, losses in found.items():
        assert np.allclose(losses, found[US], rtol=networks.TOLERANCE), who
        assert contest.exact is None or np.allclose(losses, contest.exact, rtol=networks.TOLERANCE), who


def test_gpu_rows_train_the_models_of_the_cpu():
    assert [case.recipe for case in networks.GPU_CASES] == [case.recipe for case in networks.CASES]
    assert "4 layers, 256 wide, context 256, batch 64" in networks.GPU_ROWS[-1].name

"""The rows of whole networks run, and their losses are checked where torch is there; how fast is not asked."""

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
def test_each_player_has_the_losses_of_the_others(case, tmp_path):
    modules = {} if torch is None else {"torch": torch}
    bench = Bench(modules, np.random.default_rng(0), tmp_path, is_quick=True)
    contest = networks.contest(case)(bench)
    results = {who: play() for who, play in contest.players.items()}
    found = {who: bench.read(result) for who, result in results.items()}
    assert all(np.array_equal(GpuBench.read(bench, result), found[who]) for who, result in results.items())
    assert set(found) == {US, networks.EAGER, *modules}
    for who, losses in found.items():
        assert np.allclose(losses, found[US], rtol=networks.TOLERANCE), who
        assert contest.exact is None or np.allclose(losses, contest.exact, rtol=networks.TOLERANCE), who


def test_rows_of_a_gpu_are_the_models_of_the_cpu():
    assert [case.recipe for case in networks.GPU_CASES] == [case.recipe for case in networks.CASES]
    assert "4 layers, 256 wide, context 256, batch 64" in networks.GPU_ROWS[-1].name

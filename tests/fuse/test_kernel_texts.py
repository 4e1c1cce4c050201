"""The twenty functions of the comparison: their kernels on a CPU and on a GPU, word for word, as a reader sees them."""

import numpy as np
import pytest

import minifuse as mf
from project.benchmarks.fusion_corpus import TWENTY


@pytest.mark.parametrize("backend", ["parallel", "cuda"])
@pytest.mark.parametrize("function", [pytest.param(function, id=function.name) for function in TWENTY])
def test_kernels_of(function, backend, golden):
    inputs = function.inputs(np.random.default_rng(11))
    golden(mf.fuse(function.tensors).source(*[mf.from_numpy(x.copy(), backend=backend) for x in inputs]))

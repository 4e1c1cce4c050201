"""From the same weights and batches, the losses of the recipes' models follow PyTorch's for a hundred steps.

Here on the CPU, and, with models of a few units, in plain Python; `test_like_pytorch_in_lanes` has twenty of CUDA
kernels in the interpreter, `tests/cuda/test_hardware_training` those on a GPU.
"""

import pytest

from .like import FEW_UNITS, LIKE, expect_like_pytorch


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", LIKE)
def test_a_hundred_steps_on_the_cpu(name, fuse):
    expect_like_pytorch(LIKE[name], fuse=fuse)


@pytest.mark.parametrize("name", FEW_UNITS)
def test_a_hundred_steps_in_plain_python(name):
    expect_like_pytorch(FEW_UNITS[name], backend="python")

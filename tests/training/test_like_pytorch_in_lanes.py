"""The losses of models of a few units follow PyTorch's for a hundred steps of CUDA kernels in the interpreter.

A file of its own, so that another process can run it.
"""

import pytest

from .like import FEW_UNITS, expect_like_pytorch


@pytest.mark.parametrize("name", FEW_UNITS)
def test_a_hundred_steps(name):
    expect_like_pytorch(FEW_UNITS[name], backend="cuda")

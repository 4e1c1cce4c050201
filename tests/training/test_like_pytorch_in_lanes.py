"""The losses of models of a few units follow PyTorch's in the interpreter of CUDA kernels: the first twenty steps.

A step takes it a tenth of a second. All hundred of the table run in plain Python, on the CPU and on a GPU.
A file of its own, so that another process can run it.
"""

import pytest

from .like import FEW_UNITS, expect_like_pytorch


@pytest.mark.parametrize("name", FEW_UNITS)
def test_twenty_steps(name):
    expect_like_pytorch(FEW_UNITS[name], 20, backend="cuda")

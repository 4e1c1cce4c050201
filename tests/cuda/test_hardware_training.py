"""On a GPU the losses of the recipes' models follow PyTorch's for a hundred steps, from the same weights and batches."""

import pytest

from ..training.like import LIKE, expect_like_pytorch

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", LIKE)
def test_a_hundred_steps(name, fuse):
    expect_like_pytorch(LIKE[name], backend="cuda", fuse=fuse)

"""On a GPU the losses of the recipes' models follow PyTorch's for a hundred steps, from the same weights and batches."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.recipes.gpt import GPT
from minifuse.recipes.gpt import RECIPE as SONNETS
from minifuse.training.trainer import make_step

from ..training.like import LIKE, expect_like_pytorch

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("on_gpu")]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", LIKE)
def test_a_hundred_steps(name, fuse):
    expect_like_pytorch(LIKE[name], backend="cuda", fuse=fuse)


def test_a_wide_model_learns_the_same_fused_and_unfused():
    """2,048 positions of 256 features: rows that share blocks, products in parts of K, residual sums in layer norms."""
    random = np.random.default_rng(0)
    x, y = (mf.tensor(random.integers(0, 59, (8, 256)), backend="cuda") for _ in range(2))
    state, losses = None, {}
    for is_fused in (False, True):
        model = GPT(59, 256, 1, 4, 256, 0.0)
        state = state or {name: np.array(p.numpy()) for name, p in model.state_dict().items()}
        model.load_state_dict(state)
        model.to(backend="cuda")
        step = make_step(SONNETS, model, mf.optim.AdamW(list(model.parameters()), lr=1e-3))
        step = mf.fuse(step) if is_fused else step
        losses[is_fused] = [float(step(x, y).item()) for _ in range(4)]
    assert losses[False][-1] < losses[False][0]
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)

"""From the same weights and batches, the losses of the recipes' models follow PyTorch's, step by step, on each backend."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.data import digits
from minifuse.recipes.gpt import GPT
from minifuse.recipes.gpt import RECIPE as SONNETS
from minifuse.recipes.lenet import RECIPE as LENET
from minifuse.recipes.mlp import RECIPE as DIGITS
from minifuse.training import Data, Settings, Trainer
from tests.nn.recorded import load

STEPS, WARMUP = 100, 5
RECORDED = load("training")
# float32 in another order of sums: the difference grows as training goes on
TOLERANCE = {"mlp": 2e-4, "lenet": 1e-3, "gpt": 2e-4}


class Like:
    """A recipe whose data and first weights are those of the table."""

    def __init__(self, recipe, name, sizes, batch, rate):
        self.recipe, self.name, self.batch = recipe, name, batch
        self.settings = Settings(epochs=1, batch=batch, rate=rate, options=sizes)

    def __getattr__(self, name):
        return getattr(self.recipe, name)

    def data(self, settings):
        if self.name == "gpt":
            tensors = [RECORDED[f"gpt.{name}"].reshape(-1, 6) for name in ("inputs", "targets")]
        else:
            x, y = (tensor.numpy()[: STEPS * self.batch] for tensor in digits(self.recipe.images))
            tensors = [x[:, None] if self.recipe.images else x, y]
        found = [mf.tensor(x, backend=settings.backend) for x in tensors]
        return Data(mf.data.Loader(*found, batch_size=self.batch, shuffle=False), ())

    def model(self, settings, data):
        model = GPT(10, 6, 1, 2, 8) if self.name == "gpt" else self.recipe.model(settings, data)
        start = f"{self.name}.weights."
        state = {name.removeprefix(start): x for name, x in RECORDED.items() if name.startswith(start)}
        model.load_state_dict(state)
        return model


LIKE = {
    "mlp": Like(DIGITS, "mlp", {"hidden": 12}, 16, 0.05),
    "lenet": Like(LENET, "lenet", {"channels": 4, "hidden": 16}, 12, 0.2),
    "gpt": Like(SONNETS, "gpt", {}, 2, 1e-2),
}


def losses(name, steps=STEPS, **asked):
    trainer = Trainer(LIKE[name], LIKE[name].settings.changed(asked))
    assert trainer.steps == STEPS
    return [one["loss"] for told in trainer.advance(steps) for one in told]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", LIKE)
def test_a_hundred_steps_on_the_cpu(name, fuse):
    expected = RECORDED[f"{name}.losses"]
    assert np.mean(expected[-10:]) < 0.8 * np.mean(expected[:3])
    np.testing.assert_allclose(losses(name, fuse=fuse), expected, rtol=TOLERANCE[name])


@pytest.mark.parametrize("name", LIKE)
def test_steps_in_plain_python(name):
    steps = 20 if name == "mlp" else 3
    np.testing.assert_allclose(
        losses(name, steps, backend="python"), RECORDED[f"{name}.losses"][:steps], rtol=TOLERANCE[name]
    )


@pytest.mark.parametrize("name", LIKE)
def test_steps_of_cuda_kernels_in_the_interpreter(name):
    np.testing.assert_allclose(losses(name, 2, backend="cuda"), RECORDED[f"{name}.losses"][:2], rtol=TOLERANCE[name])

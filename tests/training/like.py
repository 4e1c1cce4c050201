"""Recipes whose data and first weights are those of a table of PyTorch's, and what training must give then."""

import numpy as np

import minifuse as mf
from minifuse.data import digits
from minifuse.recipes.gpt import GPT
from minifuse.recipes.gpt import RECIPE as SONNETS
from minifuse.recipes.lenet import RECIPE as LENET
from minifuse.recipes.mlp import RECIPE as DIGITS
from minifuse.training import Data, Settings, Trainer
from tests.nn.recorded import load

from . import small_models

STEPS = 100
# float32 in another order of sums: the difference grows as training goes on
TOLERANCE = {"mlp": 2e-4, "lenet": 1e-3, "gpt": 2e-4}


class Like:
    """A recipe whose data, model and first weights are those of a table."""

    def __init__(self, recipe, name, batch, rate, table="training", model=None, **sizes):
        self.recipe, self.name, self.batch, self.build, self.recorded = recipe, name, batch, model, load(table)
        self.settings = Settings(epochs=1, batch=batch, rate=rate, options=sizes)

    def __getattr__(self, name):
        return getattr(self.recipe, name)

    def data(self, settings):
        found = [mf.tensor(x, backend=settings.backend) for x in self.examples()]
        return Data(mf.data.Loader(*found, batch_size=self.batch, shuffle=False), ())

    def examples(self):
        """Inputs and targets of all steps, one after the other."""
        if f"{self.name}.inputs" in self.recorded:
            tensors = [self.recorded[f"{self.name}.{name}"] for name in ("inputs", "targets")]
            return [x.reshape(STEPS * self.batch, *x.shape[2:]) for x in tensors]
        x, y = (tensor.numpy()[: STEPS * self.batch] for tensor in digits(self.recipe.images))
        return [x[:, None] if self.recipe.images else x, y]

    def model(self, settings, data):
        model = self.build() if self.build else self.recipe.model(settings, data)
        start = f"{self.name}.weights."
        state = {name.removeprefix(start): x for name, x in self.recorded.items() if name.startswith(start)}
        model.load_state_dict(state)
        return model


LIKE = {
    "mlp": Like(DIGITS, "mlp", 16, 0.05, hidden=12),
    "lenet": Like(LENET, "lenet", 12, 0.2, channels=4, hidden=16),
    "gpt": Like(SONNETS, "gpt", 2, 1e-2, model=lambda: GPT(10, 6, 1, 2, 8)),
}
FEW_UNITS = {
    "mlp": Like(DIGITS, "mlp", 4, 0.05, "training_small", small_models.mlp),
    "lenet": Like(LENET, "lenet", 2, 0.02, "training_small", small_models.lenet),
    "gpt": Like(SONNETS, "gpt", 1, 3e-3, "training_small", small_models.gpt),
}


def expect_like_pytorch(like, steps=STEPS, **asked):
    """Train, and hold each loss of the first steps against the table."""
    trainer = Trainer(like, like.settings.changed(asked))
    assert trainer.steps == STEPS
    found, expected = [one["loss"] for told in trainer.advance(steps) for one in told], like.recorded[f"{like.name}.losses"]
    assert np.mean(expected[-10:]) < 0.8 * np.mean(expected[:3])
    np.testing.assert_allclose(found, expected[:steps], rtol=TOLERANCE[like.name])

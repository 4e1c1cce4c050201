"""A recipe that takes a second, and can be told to go wrong."""

import numpy as np

import minifuse as mf
from minifuse.training import Data, Recipe, Settings


class Small(Recipe):
    """A line through points, in three layers: fewer steps than anything else, dropout and a schedule included."""

    name, about = "small", "a line through points"
    settings = Settings(epochs=3, batch=4, rate=0.05, options={"width": 5, "dropout": 0.25})
    max_norm = 1.0
    target = "loss"

    def data(self, settings):
        x = np.random.default_rng(settings.seed).standard_normal((23, 2)).astype(np.float32)
        x, y = (mf.tensor(array, backend=settings.backend) for array in (x, x @ np.float32([[1.0], [-2.0]])))
        return Data(mf.data.Loader(x, y, batch_size=settings.batch, seed=settings.seed), (x[:5], y[:5]))

    def model(self, settings, data):
        hidden = mf.nn.Sequential(mf.nn.Linear(2, settings["width"]), mf.nn.Tanh(), mf.nn.Dropout(settings["dropout"]))
        return mf.nn.Sequential(hidden, mf.nn.Linear(settings["width"], 1))

    def optimizer(self, settings, model, steps):
        optimizer = mf.optim.Adam(model.parameters(), lr=settings.rate)
        return optimizer, mf.optim.CosineSchedule(optimizer, steps, warmup=3)

    def loss(self, model, *batch):
        x, y = batch
        return mf.nn.mse_loss(model(x), y)

    def measure(self, model, data):
        with mf.no_grad():
            return {"loss": float(self.loss(model, *data.held_out).item())}


RECIPE = Small()


def losses(lines):
    """The losses of a log, by step."""
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def held_out(lines):
    """The numbers of what is held out, by step."""
    return {line["step"]: line["held_out"] for line in lines if "held_out" in line}

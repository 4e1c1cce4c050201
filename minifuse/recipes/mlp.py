"""A network of two layers that reads handwritten digits."""

from typing import Any

from ..nn import Linear, Module, ReLU, Sequential
from ..optim import SGD, Optimizer
from ..training import Data, Settings
from .digits import Digits


class MLP(Digits):
    """64 pixels, hidden values, 10 digits."""

    name, about = "mlp", "two layers read handwritten digits"
    settings = Settings(epochs=40, batch=64, rate=0.2, options={"hidden": 128})

    def model(self, settings: Settings, data: Data) -> Module:
        """Pixels in, logits out."""
        return Sequential(Linear(64, settings["hidden"]), ReLU(), Linear(settings["hidden"], 10))

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Any]:
        """Momentum, and weights drawn to 0 a little; the rate stays."""
        return SGD(model.parameters(), lr=settings.rate, momentum=0.9, weight_decay=1e-3), None


RECIPE = MLP()

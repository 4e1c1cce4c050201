"""A two-layer network that classifies handwritten digits."""

from ..nn import Linear, Module, ReLU, Sequential
from ..optim import SGD, Optimizer, Schedule
from ..training import Data, Settings
from .digits import Digits


def make_network(hidden: int) -> Module:
    """Create a network with 64 inputs, one hidden layer and 10 outputs."""
    return Sequential(Linear(64, hidden), ReLU(), Linear(hidden, 10))


class MLP(Digits):
    """A network with 64 inputs, one hidden layer and 10 outputs."""

    name, about = "mlp", "a two-layer network classifies handwritten digits"
    settings = Settings(epochs=40, batch=64, rate=0.2, options={"hidden": 128})

    def model(self, settings: Settings, data: Data) -> Module:
        """Create the network: (N, 64) -> (N, 10)."""
        return make_network(settings["hidden"])

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Schedule | None]:
        """Create SGD with momentum and weight decay, at a constant rate."""
        return SGD(model.parameters(), lr=settings.rate, momentum=0.9, weight_decay=1e-3), None


RECIPE = MLP()

"""A small convolutional network, similar to LeNet, that classifies handwritten digits.

References
----------
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-Based Learning Applied to Document Recognition, 1998
"""

from ..nn import Conv2d, Flatten, Linear, MaxPool2d, Module, ReLU, Sequential
from ..optim import SGD, CosineSchedule, Optimizer, Schedule
from ..training import Data, Settings
from .digits import Digits


class LeNet(Digits):
    """Two convolutions with pooling, then two linear layers."""

    name, about = "lenet", "a convolutional network classifies handwritten digits"
    settings = Settings(epochs=20, batch=32, rate=0.05, options={"channels": 8, "hidden": 64})
    images = True

    def model(self, settings: Settings, data: Data) -> Module:
        """Create the network: (N, 1, 8, 8) -> (N, 10)."""
        channels, hidden = settings["channels"], settings["hidden"]
        return Sequential(
            Conv2d(1, channels, 3, padding=1),  # (N, channels, 8, 8)
            ReLU(),
            MaxPool2d(2),  # (N, channels, 4, 4)
            Conv2d(channels, 2 * channels, 3, padding=1),
            ReLU(),
            MaxPool2d(2),  # (N, 2 * channels, 2, 2)
            Flatten(),
            Linear(8 * channels, hidden),
            ReLU(),
            Linear(hidden, 10),
        )

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Schedule | None]:
        """Create SGD with momentum, and a cosine schedule that lowers the rate to 0."""
        optimizer = SGD(model.parameters(), lr=settings.rate, momentum=0.9, weight_decay=1e-3)
        return optimizer, CosineSchedule(optimizer, steps, warmup=steps // 20)


RECIPE = LeNet()

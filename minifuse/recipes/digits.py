"""Base of the recipes that classify digits: data, loss and metrics."""

from ..data import Loader, digits, split
from ..nn import Module
from ..tensors.tensor import Tensor
from ..training import Data, Recipe, Settings
from ..training.classification import classification_loss, measure_classifier


class Digits(Recipe):
    """A recipe that classifies handwritten digits: four fifths for training, one fifth held out."""

    images = False
    """If True, the shape of an example is (1, 8, 8) instead of (64,)."""

    def data(self, settings: Settings) -> Data:
        """Load the digits in shuffled batches."""
        x, y = digits(self.images, settings.backend)
        if self.images:
            x = x.unsqueeze(1)  # (N, 8, 8) -> (N, 1, 8, 8)
        train, held_out = split(x, y, fraction=0.8, seed=settings.seed, stratify=y)
        return Data(Loader(*train, batch_size=settings.batch, seed=settings.seed), held_out)

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """Compute the cross-entropy."""
        return classification_loss(model, *batch)

    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """Compute the loss and the accuracy."""
        return measure_classifier(model, *data.held_out)

"""Base of the recipes that classify digits: data, loss and metrics."""

from ..core.dispatch import no_grad
from ..core.dtypes import float32
from ..data import Loader, digits, split
from ..nn import Module, cross_entropy
from ..tensors.tensor import Tensor
from ..training import Data, Recipe, Settings


class Digits(Recipe):
    """A recipe that classifies scikit-learn's digits: four fifths for training, one fifth held out."""

    images = False
    """If True, keep rows and columns of a digit, as (1, 8, 8)."""

    def data(self, settings: Settings) -> Data:
        """Load the digits in shuffled batches."""
        x, y = digits(self.images, settings.backend)
        if self.images:
            x = x.unsqueeze(1)  # (N, 8, 8) -> (N, 1, 8, 8)
        train, held_out = split(x, y, fraction=0.8, seed=settings.seed, stratify=y)
        return Data(Loader(*train, batch_size=settings.batch, seed=settings.seed), held_out)

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """Compute the cross-entropy."""
        x, y = batch
        found: Tensor = cross_entropy(model(x), y)
        return found

    @no_grad()
    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """Compute the loss and the accuracy."""
        x, y = data.held_out
        logits = model(x)
        right = (logits.argmax(1) == y).to(float32).mean()
        return {"loss": float(cross_entropy(logits, y).item()), "accuracy": float(right.item())}

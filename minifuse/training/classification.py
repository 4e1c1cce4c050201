"""The loss and the metrics of classifiers: models that return a logit for each class."""

from ..core.dispatch import no_grad
from ..core.dtypes import float32
from ..nn import Module, cross_entropy
from ..tensors.tensor import Tensor


def classification_loss(model: Module, x: Tensor, y: Tensor) -> Tensor:
    """Compute the cross-entropy of a batch: the mean over its examples."""
    loss: Tensor = cross_entropy(model(x), y)
    return loss


def measure_classifier(model: Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Compute the loss and the accuracy on held-out examples."""
    with no_grad():
        logits = model(x)
        return {"loss": float(cross_entropy(logits, y).item()), "accuracy": accuracy(logits, y)}


def accuracy(logits: Tensor, y: Tensor) -> float:
    """Return the fraction of examples whose largest logit is that of the right class."""
    return float((logits.argmax(1) == y).to(float32).mean().item())

"""A network that classifies sentences: the mean of their word embeddings, and two layers."""

from ..core.dispatch import no_grad
from ..core.dtypes import float32
from ..data import Loader, Words, sentences, split
from ..nn import Dropout, Embedding, Linear, Module, ReLU, Sequential, cross_entropy
from ..optim import AdamW, CosineSchedule, Optimizer, Schedule
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from ..training import Data, Recipe, Settings
from ..training.classification import measure_classifier

PADDING = 0  # the code that fills short sentences


class BagOfWords(Module):
    """The mean of the word embeddings of a sentence, then two linear layers.

    Parameters
    ----------
    vocabulary_size : int
        Size of the vocabulary.
    width : int
        Size of an embedding.
    class_count : int
        Number of classes.
    dropout : float
        Dropout probability of the mean.
    """

    def __init__(self, vocabulary_size: int, width: int, class_count: int, dropout: float) -> None:
        self.rows = Embedding(vocabulary_size, width, padding_idx=PADDING)
        self.layers = Sequential(Dropout(dropout), Linear(width, width), ReLU(), Linear(width, class_count))

    def forward(self, index: Tensor) -> Tensor:
        """Map (N, T) int64 to (N, classes)."""
        is_word = (index != PADDING).to(float32).unsqueeze(2)  # (N, T, 1)
        mean = (self.rows(index) * is_word).sum(1) / (is_word.sum(1) + 1e-6)  # (N, width)
        logits: Tensor = self.layers(mean)
        return logits


class Sentences(Recipe):
    """Classify short sentences about the weather, cooking, music or travel."""

    name, about = "sentences", "a bag of words classifies sentences"
    settings = Settings(epochs=40, batch=32, rate=0.03, options={"width": 32, "dropout": 0.5})

    def data(self, settings: Settings) -> Data:
        """Load the sentences in shuffled batches; words that only occur in held-out sentences are encoded as unknown."""
        texts, y, names = sentences("parallel")
        indices = tensor(list(range(len(texts))), backend="parallel")
        (train_indices, train_y), (test_indices, test_y) = split(indices, y, fraction=0.8, seed=settings.seed, stratify=y)
        words = Words([texts[k] for k in train_indices.tolist()])
        longest_length = words.encode(texts).shape[1]
        parts = ([texts[k] for k in part.tolist()] for part in (train_indices, test_indices))
        train, test = (words.encode(part, longest_length, "parallel") for part in parts)
        loader = Loader(train, train_y, batch_size=settings.batch, seed=settings.seed, backend=settings.backend)
        return Data(loader, (test.to(settings.backend), test_y.to(settings.backend)), (words, names))

    def model(self, settings: Settings, data: Data) -> Module:
        """Create the network."""
        words, names = data.about
        return BagOfWords(len(words), settings["width"], len(names), settings["dropout"])

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Schedule | None]:
        """Create AdamW, and a cosine schedule that lowers the rate to 0."""
        optimizer = AdamW(model.parameters(), lr=settings.rate, weight_decay=0.05)
        return optimizer, CosineSchedule(optimizer, steps, warmup=steps // 20)

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """Compute the cross-entropy with label smoothing, since some sentences are about two subjects."""
        index, y = batch
        loss: Tensor = cross_entropy(model(index), y, label_smoothing=0.05)
        return loss

    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """Compute the loss and the accuracy."""
        return measure_classifier(model, *data.held_out)

    def says(self, model: Module, data: Data, seed: int) -> str:
        """Classify a new sentence."""
        words, names = data.about
        text = "The band played on while snow fell on the roof of the station."
        backend = next(model.parameters()).backend
        with no_grad():
            probabilities = model(words.encode([text], backend=backend)).softmax(1).tolist()[0]
        ranking = ", ".join(f"{name} {p:.0%}" for p, name in sorted(zip(probabilities, names, strict=True), reverse=True))
        return f"{text!r}: {ranking}"


RECIPE = Sentences()

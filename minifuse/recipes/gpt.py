"""A small GPT: a transformer that predicts the next character of a text, and generates text.

Each block adds its output to its input, so gradients reach all blocks [1]_, [2]_. Layer norms are applied to the inputs of
attention and of the feed-forward network.

References
----------
.. [1] A. Vaswani and others, Attention Is All You Need, 2017, arXiv:1706.03762
.. [2] A. Radford and others, Language Models are Unsupervised Multitask Learners, 2019
"""

from collections.abc import Sequence

import numpy as np

from ..core.dispatch import no_grad
from ..data import Loader, Text, sonnets
from ..nn import (
    GELU,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    ModuleList,
    MultiheadAttention,
    Sequential,
    cross_entropy,
)
from ..optim import AdamW, CosineSchedule, Optimizer, Schedule
from ..tensors.creation import tensor
from ..tensors.tensor import Tensor
from ..training import Data, Recipe, Settings

SAMPLE_LENGTH = 400  # characters
TEMPERATURE = 0.8  # less than 1 makes likely characters more likely


class Block(Module):
    """A transformer block: attention, then a feed-forward network; both are added to their input."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        self.norm1, self.norm2 = LayerNorm(width), LayerNorm(width)
        self.attention = MultiheadAttention(width, heads)
        self.mlp = Sequential(Linear(width, 4 * width), GELU(), Linear(4 * width, width), Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, T, width) to the same shape."""
        x = x + self.attention(self.norm1(x), is_causal=True)
        y: Tensor = x + self.mlp(self.norm2(x))
        return y


class GPT(Module):
    """A transformer that returns logits of the next character for each position.

    Parameters
    ----------
    vocabulary : int
        Number of characters.
    context : int
        Largest number of characters in an input.
    layers, heads, width : int
        Number of blocks, number of heads of each block, and size of the vector of a character.
    dropout : float
        Dropout probability of the feed-forward networks.
    """

    def __init__(self, vocabulary: int, context: int, layers: int, heads: int, width: int, dropout: float = 0.0) -> None:
        self.context = context
        self.tokens, self.places = Embedding(vocabulary, width), Embedding(context, width)
        self.blocks = ModuleList([Block(width, heads, dropout) for _ in range(layers)])
        self.norm, self.head = LayerNorm(width), Linear(width, vocabulary, bias=False)

    def forward(self, index: Tensor) -> Tensor:
        """Map (N, T) int64 to (N, T, vocabulary)."""
        x = self.tokens(index) + self.places.weight[: index.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


@no_grad()
def generate(model: GPT, start: Sequence[int], count: int, seed: int = 0, temperature: float = TEMPERATURE) -> list[int]:
    """Continue a text: sample one character after another from the model's probabilities.

    Parameters
    ----------
    model : GPT
    start : list of int
        Codes of the text to continue, at least one.
    count : int
        Number of characters to generate.
    seed : int
        Seed of the sampling.
    temperature : float
        Less than 1 makes likely characters more likely, more than 1 less likely.
    """
    rng, text = np.random.default_rng(seed), list(start)
    backend = model.head.weight.backend
    for _ in range(count):
        window = text[-model.context :]
        # padded to one shape, so that one plan is reused; attention is causal, so padding does not change the logits
        padded_window = window + [0] * (model.context - len(window))
        logits = (
            model(tensor([padded_window], dtype="int64", backend=backend)).numpy()[0, len(window) - 1].astype(np.float64)
        )
        weights = np.exp((logits - logits.max()) / temperature)
        text.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    return text[len(start) :]


class Sonnets(Recipe):
    """Generate text like Shakespeare's sonnets, character by character."""

    name, about = "gpt", "a transformer generates sonnets, character by character"
    settings = Settings(
        epochs=1,
        batch=32,
        rate=3e-3,
        options={"context": 64, "layers": 2, "heads": 4, "width": 64, "dropout": 0.0},
    )
    max_norm = 1.0
    target = "loss"

    def data(self, settings: Settings) -> Data:
        """Load all windows of the text in shuffled batches, and hold out the last tenth of the text."""
        text = Text(sonnets(), settings["context"], backend="parallel")  # windows are views; batches are copies
        loader = Loader(
            *text.train, batch_size=settings.batch, seed=settings.seed, drop_last=True, backend=settings.backend, prefetch=1
        )
        return Data(loader, tuple(x.contiguous().to(settings.backend) for x in text.test), text)

    def model(self, settings: Settings, data: Data) -> Module:
        """Create a GPT with the sizes in the settings."""
        sizes = (settings[name] for name in ("context", "layers", "heads", "width", "dropout"))
        return GPT(len(data.about.characters), *sizes)

    def optimizer(self, settings: Settings, model: Module, steps: int) -> tuple[Optimizer, Schedule | None]:
        """Create AdamW with weight decay for matrices only, and a cosine schedule."""
        parameters = list(model.parameters())
        groups = [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = AdamW(groups, lr=settings.rate, betas=(0.9, 0.99))
        return optimizer, CosineSchedule(optimizer, steps, warmup=steps // 20)

    def loss(self, model: Module, *batch: Tensor) -> Tensor:
        """Compute the cross-entropy of the next character at all positions."""
        index, targets = batch
        logits = model(index)
        loss: Tensor = cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        return loss

    @no_grad()
    def measure(self, model: Module, data: Data) -> dict[str, float]:
        """Compute the loss on held-out text."""
        index, targets = data.held_out
        size = data.loader.batch_size
        parts = [slice(k, k + size) for k in range(0, len(index), size)]
        sums = [float(self.loss(model, index[part], targets[part]).item()) * len(index[part]) for part in parts]
        return {"loss": sum(sums) / len(index)}

    def says(self, model: Module, data: Data, seed: int) -> str:
        """Generate text that starts on a new line."""
        assert isinstance(model, GPT)
        characters = data.about.characters
        start = characters.encode("\n", backend="parallel").tolist()
        return str(characters.decode(generate(model, start, SAMPLE_LENGTH, seed))).strip("\n")


RECIPE = Sonnets()

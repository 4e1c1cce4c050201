"""Models of a few units, for backends that take milliseconds for an element: those of `record_training_small`."""

from typing import Any

from minifuse import nn


def mlp() -> nn.Module:
    """(N, 5) -> (N, 3)."""
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def lenet() -> nn.Module:
    """(N, 1, 4, 4) -> (N, 3)."""
    return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3))


class Reader(nn.Module):
    """A GPT of one layer, without its small network: (N, T) int64 -> (N, T, characters)."""

    def __init__(self, characters: int, context: int, heads: int, width: int) -> None:
        self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads)
        self.head = nn.Linear(width, characters, bias=False)

    def forward(self, index: Any) -> Any:
        x = self.tokens(index) + self.places.weight[: index.shape[1]]
        return self.head(x + self.attention(self.norm(x), is_causal=True))


def gpt() -> nn.Module:
    """Of four characters, three at once."""
    return Reader(4, 3, 2, 4)

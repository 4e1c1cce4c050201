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
    """Attention as it is, between an embedding and a product: (N, T) int64 -> (N, T, characters)."""

    def __init__(self, characters: int, context: int, width: int) -> None:
        self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, index: Any) -> Any:
        x = self.norm(self.tokens(index) + self.places.weight[: index.shape[1]])
        return self.head(x + nn.scaled_dot_product_attention(x, x, x, is_causal=True))


def gpt() -> nn.Module:
    """Of four characters, three at once; as wide as an attention kernel needs it."""
    return Reader(4, 3, 16)

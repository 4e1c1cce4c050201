"""A hundred steps of models of a few units in PyTorch, for backends that take milliseconds for an element."""

import numpy as np
import torch
from torch import nn

from .record_training import STEPS, cosine, trained

CLASSES, AROUND = 3, 20  # batches, which come round again


class Reader(nn.Module):
    """As `tests.training.small_models.Reader`."""

    def __init__(self, characters, context, width):
        super().__init__()
        self.tokens, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, index):
        x = self.norm(self.tokens(index) + self.places.weight[: index.shape[1]])
        y = nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        return self.head(x + y).flatten(0, 1)


def round_again(x):
    """Batches of all steps."""
    return np.concatenate([x] * (STEPS // AROUND))


def record():
    """Named arrays of each model."""
    found, rng = {}, np.random.default_rng(0)

    def keep(name, model, inputs, targets, optimizer, schedule=None, max_norm=None):
        inputs, targets = round_again(inputs), round_again(targets)
        known, losses = trained(model, inputs, targets, optimizer, schedule, max_norm)
        found.update({f"{name}.weights.{key}": x for key, x in known.items()})
        found.update({f"{name}.losses": losses, f"{name}.inputs": inputs, f"{name}.targets": targets})

    x = rng.integers(-4, 5, (AROUND, 4, 5)).astype(np.float32) / 4
    y = (x[..., :CLASSES]).argmax(-1)  # which of the first few is largest
    mlp = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, CLASSES))
    keep("mlp", mlp, x, y, torch.optim.SGD(mlp.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3))

    y = rng.integers(0, CLASSES, (AROUND, 2))
    bright = np.array([[[1, 1], [0, 0]], [[0, 0], [1, 1]], [[1, 0], [1, 0]]])[y].repeat(2, -1).repeat(2, -2)
    x = (bright[:, :, None] + rng.integers(-4, 5, (AROUND, 2, 1, 4, 4)) / 4).astype(np.float32)  # halves of 4 x 4 pixels
    lenet = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, CLASSES))
    sgd = torch.optim.SGD(lenet.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
    keep("lenet", lenet, x, y, sgd, torch.optim.lr_scheduler.LambdaLR(sgd, cosine))

    text = (rng.integers(0, 4, (AROUND, 1, 1)) + np.arange(4)) % 4  # it counts, so that there is something to learn
    reader = Reader(4, 3, 16)
    groups = [
        {"params": [p for p in reader.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in reader.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(adamw, cosine)
    inputs, targets = np.ascontiguousarray(text[:, :, :-1]), np.ascontiguousarray(text[:, :, 1:])
    keep("gpt", reader, inputs, targets, adamw, schedule, 1.0)
    return found

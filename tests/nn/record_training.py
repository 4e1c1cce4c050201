"""A hundred steps of each model of the recipes, small, in PyTorch: first weights, batches, losses."""

from itertools import islice

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

STEPS, WARMUP = 100, 5


class Block(nn.Module):
    """As `minifuse.recipes.gpt.Block`."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norm1(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = x + self.attention(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """As `minifuse.recipes.gpt.GPT`."""

    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, index):
        x = self.tokens(index) + self.places.weight[: index.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def digits(batch, shape):
    """(inputs, targets) of all steps: digits in their order."""
    pixels, labels = load_digits(return_X_y=True)
    x = (pixels / 16).astype(np.float32)[: STEPS * batch].reshape(STEPS, batch, *shape)
    return x, labels[: STEPS * batch].astype(np.int64).reshape(STEPS, batch)


def cosine(step):
    """The share of the full rate at a step, as `mf.optim.CosineSchedule` has it."""
    warm = min(1.0, (step + 1) / (WARMUP + 1))
    far = max(step - WARMUP, 0) / (STEPS - WARMUP)
    return warm if step < WARMUP else 0.5 * (1 + np.cos(np.pi * far))


def trained(model, inputs, targets, optimizer, schedule=None, max_norm=None):
    """First weights and losses."""
    known = {name: x.detach().numpy().copy() for name, x in model.state_dict().items()}
    losses = []
    for x, y in islice(zip(torch.from_numpy(inputs), torch.from_numpy(targets), strict=True), STEPS):
        loss = nn.functional.cross_entropy(model(x), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    return known, np.array(losses)


def record():
    """Named arrays of each model."""
    found = {}

    def keep(name, known, losses, **more):
        found.update({f"{name}.weights.{key}": x for key, x in known.items()})
        found.update({f"{name}.losses": losses, **{f"{name}.{key}": x for key, x in more.items()}})

    mlp = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
    sgd = torch.optim.SGD(mlp.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    keep("mlp", *trained(mlp, *digits(16, (64,)), sgd))

    lenet = nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 10)),
    )
    sgd = torch.optim.SGD(lenet.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(sgd, cosine)
    keep("lenet", *trained(lenet, *digits(12, (1, 8, 8)), sgd, schedule))

    gpt, rng = GPT(10, 6, 1, 2, 8), np.random.default_rng(0)
    text = (rng.integers(0, 10, (STEPS, 2, 1)) + np.arange(7)) % 10  # it counts, so that there is something to learn
    groups = [
        {"params": [p for p in gpt.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in gpt.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(adamw, cosine)
    inputs, targets = np.ascontiguousarray(text[:, :, :-1]), np.ascontiguousarray(text[:, :, 1:])
    keep("gpt", *trained(gpt, inputs, targets, adamw, schedule, 1.0), inputs=inputs, targets=targets)
    return found

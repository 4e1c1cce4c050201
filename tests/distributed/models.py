"""Models and training loops that the tests of sharded models share."""

from functools import cache

import numpy as np

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.recipes.gpt import GPT

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 6)).astype("float32"), RNG.integers(0, 4, 8)
TEXT, TARGETS = RNG.integers(0, 11, (4, 8)), RNG.integers(0, 11, (4, 8))


def mlp():
    """Return a small network for X and Y."""
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))


def gpt(dropout=0.0, layers=1):
    """Return a small GPT for TEXT and TARGETS."""
    return GPT(11, 8, layers, 4, 16, dropout)


DATA = {mlp: (X, Y), gpt: (TEXT, TARGETS)}


def loss_of(model, x, y):
    """Return the mean cross-entropy."""
    logits = model(x)
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def train(
    make, prepare=lambda model: model, steps=20, fused=True, kind="AdamW", clip=0.5, accumulate=1, axis="data", **options
):
    """Return the losses, and the whole weights by name.

    `prepare` shards the model; ranks along `axis` get different parts of each batch.
    """
    dist.seed(5)
    model = prepare(make(**options))
    dist.seed(7, axis)
    optimizer = getattr(optim, kind)(model.parameters(), lr=0.01 if kind == "AdamW" else 0.1)
    group = dist.group(axis)
    x, y = (np.split(a, group.size)[group.rank] for a in DATA[make])
    parts = [[mf.tensor(part) for part in np.split(a, accumulate)] for a in (x, y)]

    def step(*parts):
        optimizer.zero_grad()
        total = 0.0
        for x, y in zip(parts[:accumulate], parts[accumulate:], strict=True):
            loss = loss_of(model, x, y) / accumulate
            loss.backward()
            total = total + loss.detach()
        dist.average_gradients(model)
        norm = optim.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return dist.all_reduce(total, "mean"), norm

    run = mf.fuse(step) if fused else step
    losses = [tuple(float(z) for z in run(*parts[0], *parts[1])) for _ in range(steps)]
    return losses, {name: dist.full_tensor(p).numpy().reshape(-1) for name, p in model.named_parameters()}


@cache
def train_alone(make, **options):
    """Return what `train` returns on one rank."""
    return train(make, **options)


def assert_equals_one_rank(results, expected, rtol=1e-6):
    """Compare losses and norms with those of one rank, and the weights of all ranks with each other."""
    for losses, weights in results:
        np.testing.assert_allclose(losses, expected, rtol=rtol)
        assert all((weights[name] == w).all() for name, w in results[0][1].items())

"""Models and training loops that the tests of sharded models share."""

from functools import cache
from itertools import pairwise

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


class PartOfGPT(nn.Module):
    """A part of a GPT: some blocks, with the embeddings if it is the first and the head if it is the last.

    `start` is the position in the sequence at which its inputs begin.
    """

    def __init__(self, model, blocks=slice(None), is_first=True, is_last=True, start=0):
        self.blocks, self.start = nn.ModuleList(list(model.blocks)[blocks]), start
        self.tokens, self.places = (model.tokens, model.places) if is_first else (None, None)
        self.norm, self.head = (model.norm, model.head) if is_last else (None, None)

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x) + self.places.weight[self.start : self.start + x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.norm(x))


STYLES = {
    mlp: {"0": "column", "2": "row", "4": "column, gathered"},
    gpt: {"blocks.*.mlp.0": "column", "blocks.*.mlp.2": "row", "blocks.*.attention": "heads"},
}


def tensor_parallel(make):
    """Return a function that divides the layers of a model along the axis `model`."""
    return lambda model: dist.parallelize(model, STYLES[make], dist.group("model"))


def with_ring_attention(model):
    """Return a GPT whose inputs are the positions of this rank."""
    group = dist.group("sequence")
    model = dist.parallelize(model, {"blocks.*.attention": "ring"}, group)
    return PartOfGPT(model, start=group.rank * model.context // group.size)


DATA = {mlp: (X, Y), gpt: (TEXT, TARGETS)}


def cross_entropy(logits, targets):
    """Return the mean over all positions."""
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def loss_of(model, x, y):
    """Return the mean cross-entropy of a model."""
    return cross_entropy(model(x), y)


def own_part(a, *axes):
    """Return the part of an array for this rank: dim k is divided along axis k of the mesh."""
    for dim, name in enumerate(axes):
        group = dist.group(name)
        a = np.split(a, group.size, dim)[group.rank]
    return a


def train(
    make,
    prepare=lambda model: model,
    steps=20,
    fused=True,
    kind="AdamW",
    clip=0.5,
    accumulate=1,
    axes=("data",),
    shard_state=False,
    **options,
):
    """Return the losses and norms, and the whole weights by name.

    `prepare` shards the model, `shard_state` the optimizer; dim k of each batch is divided along axis k of `axes`.
    """
    dist.seed(5)
    model = prepare(make(**options))
    dist.seed(7, *axes)
    optimizer = getattr(optim, kind)(model.parameters(), lr=0.01 if kind == "AdamW" else 0.1)
    optimizer = dist.shard_optimizer(optimizer) if shard_state else optimizer
    parts = [[mf.tensor(part) for part in np.split(own_part(a, *axes), accumulate)] for a in DATA[make]]

    def step(*parts):
        optimizer.zero_grad()
        total = 0.0
        for x, y in zip(parts[:accumulate], parts[accumulate:], strict=True):
            loss = loss_of(model, x, y) / accumulate
            loss.backward()
            total = total + loss.detach()
        if isinstance(optimizer, dist.ShardedOptimizer):
            norm = optimizer.clip_grad_norm_(clip)
        else:
            dist.average_gradients(model)
            norm = optim.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return dist.all_reduce(total, "mean"), norm

    run = mf.fuse(step) if fused else step
    losses = [tuple(float(z) for z in run(*parts[0], *parts[1])) for _ in range(steps)]
    return losses, {name: dist.full_tensor(p).numpy().reshape(-1) for name, p in model.named_parameters()}


def stages_of_mlp(count):
    """Return the stages of a network."""
    layers = list(mlp())
    cuts = [0, 2, 5] if count == 2 else [0, 1, 3, 5]
    return [nn.Sequential(*layers[start:stop]) for start, stop in pairwise(cuts)]


def stages_of_gpt(count):
    """Return the stages of a GPT of two blocks."""
    model = gpt(layers=2)
    cuts = [slice(k * 2 // count, (k + 1) * 2 // count) for k in range(count)]
    return [PartOfGPT(model, blocks, k == 0, k == count - 1) for k, blocks in enumerate(cuts)]


def train_pipeline(make, count, schedule="1f1b", steps=20, fused=True, kind="AdamW"):
    """Return the losses and norms of a pipeline along the axis `stage`, and the weights of the own stage."""
    dist.seed(5)
    group, data = dist.group("stage"), dist.group("data")
    x, y = (mf.tensor(own_part(a, "data")) for a in DATA[mlp if make is stages_of_mlp else gpt])
    pipeline = dist.Pipeline(make(count), len(x) if group.size > 1 else 1, cross_entropy, schedule, group, fused)
    optimizer = getattr(optim, kind)(pipeline.stage.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        mean = dist.all_reduce(pipeline.step(x, y), "mean", data)
        dist.average_gradients(pipeline.stage, data)
        losses.append((float(mean), float(pipeline.clip_grad_norm_(0.5))))
        optimizer.step()
    return losses, [p.numpy().copy() for p in pipeline.stage.parameters()]


@cache
def train_alone(make, **options):
    """Return what `train` returns on one rank."""
    return train(make, **options)


def assert_equals_one_rank(results, expected, rtol=1e-6):
    """Compare losses and norms with those of one rank, and the weights of all ranks with each other."""
    for losses, weights in results:
        np.testing.assert_allclose(losses, expected, rtol=rtol)
        assert all((weights[name] == w).all() for name, w in results[0][1].items())

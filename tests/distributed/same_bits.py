"""Train a model by data parallel steps, and print its losses and a digest of its weights: of all ranks, or of a loop.

    minifuse launch -n 2 tests/distributed/same_bits.py gpt 60

A loop over the parts of each batch on one rank adds the gradients in the order of ranks, so it has the bits of any number of
ranks.
"""

import sys
from hashlib import sha256

import numpy as np

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.recipes.gpt import GPT

RNG = np.random.default_rng(0)
LETTERS, BATCH = 11, 8
DATA = {
    "mlp": (RNG.standard_normal((BATCH, 6)).astype("float32"), RNG.integers(0, LETTERS, BATCH)),
    "lenet": (RNG.standard_normal((BATCH, 1, 12, 12)).astype("float32"), RNG.integers(0, LETTERS, BATCH)),
    "gpt": (RNG.integers(0, LETTERS, (BATCH, 16)), RNG.integers(0, LETTERS, (BATCH, 16))),
}


def make_model(name):
    if name == "gpt":
        return GPT(LETTERS, 16, layers=2, heads=2, width=16)
    if name == "lenet":
        layers = [nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(36, LETTERS))
    return nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, LETTERS))


def train(name, steps, parts=0):
    """Return the losses and a digest of the weights; of a loop over `parts` on one rank, if there are any."""
    mf.manual_seed(0)
    model = make_model(name)
    params = [*model.parameters()]
    optimizer = optim.AdamW(params, lr=1e-3)
    n = parts or dist.size()
    batches = [[mf.tensor(part) for part in np.split(a, n)] for a in DATA[name]]

    @mf.fuse
    def gradients(x, y):
        loss = nn.cross_entropy(model(x).reshape(-1, LETTERS), y.reshape(-1))
        return loss, *mf.autograd.grad(loss, params)

    @mf.fuse
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(x).reshape(-1, LETTERS), y.reshape(-1))
        loss.backward()
        dist.average_gradients(model)
        optimizer.step()
        return dist.all_reduce(loss.detach(), "mean")

    losses = []
    for _ in range(steps):
        if not parts:
            losses.append(step(*[batch[dist.rank()] for batch in batches]).item())
            continue
        found = [[g.numpy() for g in gradients(*part)] for part in zip(*batches, strict=True)]
        total = found[0]
        for other in found[1:]:
            total = [a + b for a, b in zip(total, other, strict=True)]
        loss, *means = [a / np.float32(n) for a in total]
        for p, mean in zip(params, means, strict=True):
            p.grad = mf.tensor(mean)
        optimizer.step()
        losses.append(float(loss))
    digest = sha256(b"".join(p.numpy().tobytes() for p in params)).hexdigest()[:16]
    return losses, digest


if __name__ == "__main__":
    dist.init()
    print("result", *train(sys.argv[1], int(sys.argv[2])))

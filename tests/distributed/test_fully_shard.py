"""Fully sharded models on simulated ranks: losses of one rank, and the bytes that a rank holds."""

import sys
import weakref

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim

from .models import X, Y, assert_equals_one_rank, gpt, loss_of, mlp, own_part, tensor_parallel, train, train_alone

fully_shard = sys.modules["minifuse.distributed.fully_shard"]  # the name in the package is that of the function

CASES = [  # make, ranks, keep, options
    (mlp, 2, True, {"steps": 60}),
    (mlp, 4, False, {"kind": "SGD", "fused": False, "accumulate": 2}),
    (gpt, 4, False, {"steps": 3, "fused": False}),
    (gpt, 2, True, {}),
]


@pytest.mark.parametrize(("make", "ranks", "keep", "options"), CASES)
def test_losses_are_those_of_one_rank(make, ranks, keep, options):
    expected, _ = train_alone(make, **options)
    results = dist.simulate(ranks, lambda: train(make, lambda model: dist.fully_shard(model, keep=keep), **options))
    assert_equals_one_rank(results, expected)


def test_tensor_parallel_layers_are_sharded_further():
    expected, weights = train_alone(mlp, fused=False)

    def prepare(model):
        return dist.fully_shard(tensor_parallel(mlp)(model), dist.group("data"))

    results = dist.simulate(4, lambda: train(mlp, prepare, fused=False), {"data": 2, "model": 2})
    assert_equals_one_rank(results, expected)
    for name, w in results[0][1].items():
        np.testing.assert_allclose(w, weights[name], rtol=1e-4, atol=1e-6)


def nbytes(tensors):
    return sum(x.size * x.dtype.itemsize for x in tensors)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_holds_its_share_and_one_layer(ranks, monkeypatch):
    """Count the bytes of parameters, gradients and states after a step, and of the gathered weights at each gather."""
    layers, n = 6, 32
    whole, largest = 4 * layers * (n * n + n), 4 * (n * n + n)  # bytes of the parameters, and of a layer

    gathered = [weakref.WeakSet() for _ in range(ranks)]
    peaks = [0] * ranks
    original = fully_shard.gather_part

    def counted(x, placement):
        y = original(x, placement)
        gathered[dist.rank()].add(y)
        peaks[dist.rank()] = max(peaks[dist.rank()], nbytes(gathered[dist.rank()]))
        return y

    def program():
        dist.seed(0)
        model = dist.fully_shard(nn.Sequential(*[nn.Linear(n, n) for _ in range(layers)]))
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, mf.ones(2, n), mf.tensor([1, 2])).backward()
            dist.average_gradients(model)
            optimizer.step()
        params = list(model.parameters())
        states = [x for state in optimizer.state.values() for x in state.values() if isinstance(x, mf.Tensor)]
        return nbytes([*params, *[p.grad for p in params], *states])

    monkeypatch.setattr(fully_shard, "gather_part", counted)
    held = dist.simulate(ranks, program)
    assert max(held) <= 4 * whole / ranks * 1.01
    assert 0 < max(peaks) <= largest


def test_a_shared_parameter_has_one_shard():
    def program():
        dist.seed(0)
        first, second = nn.Linear(3, 3), nn.Linear(3, 3)
        second.weight = first.weight
        model = dist.fully_shard(nn.Sequential(first, second, nn.ParameterList([nn.Parameter(mf.ones(4))])))
        return [(name, p.shape) for name, p in model.named_parameters()]

    names = [("0.weight", (5,)), ("0.bias", (2,)), ("1.bias", (2,)), ("2.0", (4,))]
    assert dist.simulate(2, program)[0] == names


def test_one_rank_changes_nothing():
    layer = nn.Linear(3, 2)
    assert dist.fully_shard(layer) is layer
    assert type(layer) is nn.Linear


def test_another_number_of_ranks_continues_a_run(tmp_path):
    """Train 3 steps on 2 ranks, save, load on 4 ranks, and train 3 more: the losses of 6 steps."""

    def start():
        dist.seed(0)
        model = dist.fully_shard(mlp())
        return model, optim.AdamW(model.parameters(), lr=0.01)

    def run(model, optimizer, steps):
        x, y = (mf.tensor(own_part(a, "data")) for a in (X, Y))
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            dist.average_gradients(model)
            optimizer.step()
            losses.append(float(dist.all_reduce(loss.detach(), "mean")))
        return losses

    def first():
        model, optimizer = start()
        losses = run(model, optimizer, 3)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        mf.save_sharded(state, tmp_path, rank=dist.rank(), size=dist.size())
        return losses

    def second():
        model, optimizer = start()
        state = mf.load_sharded(tmp_path, dist.shards_of(model, optimizer))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return run(model, optimizer, 3)

    losses = dist.simulate(2, first)[0] + dist.simulate(4, second)[0]
    np.testing.assert_allclose(losses, run(*start(), 6), rtol=1e-6)

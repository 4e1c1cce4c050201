"""Parameters that are divided twice: tensor parallel layers whose parts are divided again along data."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import optim
from minifuse.core.errors import DistributedError

from .models import DATA, assert_equals_one_rank, gpt, loss_of, mlp, tensor_parallel, train, train_alone

MESH = {"data": 2, "model": 2}


def parallel_shards(make):
    return lambda model: dist.fully_shard(tensor_parallel(make)(model), group=dist.group("data"))


@pytest.mark.parametrize(("make", "fused"), [(mlp, False), (gpt, True)])
def test_losses_and_norms_are_those_of_one_rank(make, fused):
    expected, _ = train_alone(make, steps=5)
    results = dist.simulate(4, lambda: train(make, parallel_shards(make), steps=5, fused=fused), MESH)
    assert_equals_one_rank(results, expected)


def divide_layers(model):
    return tensor_parallel(mlp)(model), optim.AdamW


def divide_twice(model):
    return parallel_shards(mlp)(model), optim.AdamW


def divide_layers_and_state(model):
    return tensor_parallel(mlp)(model), lambda *args, **kw: dist.shard_optimizer(optim.AdamW(*args, **kw))


def run(prepare, folder, loads=True, steps=3):
    """Train some steps, after loading a checkpoint, and save one; return losses and norms."""
    dist.seed(5)
    model, make = prepare(mlp())
    optimizer = make(model.parameters(), lr=0.01)
    if loads:
        state = mf.load_sharded(folder, dist.shards_of(model, optimizer))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    group = dist.group("data")
    x, y = (mf.tensor(np.split(a, group.size)[group.rank]) for a in DATA[mlp])
    results = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        if isinstance(optimizer, optim.Optimizer):
            dist.average_gradients(model)
            norm = optim.clip_grad_norm_(model.parameters(), 0.5)
        else:
            norm = optimizer.clip_grad_norm_(0.5)
        optimizer.step()
        results.append((dist.all_reduce(loss.detach(), "mean").item(), norm.item()))
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    mf.save_sharded(state, folder, rank=dist.rank(), size=dist.size(), version=str(loads))
    return results


@pytest.mark.parametrize("first", [divide_layers_and_state, divide_twice])
@pytest.mark.parametrize(
    ("second", "sizes"), [(divide_twice, {"data": 4, "model": 2}), (divide_layers, {"data": 1, "model": 4})]
)
def test_another_mesh_continues_a_run(first, second, sizes, tmp_path):
    results = dist.simulate(4, lambda: run(first, tmp_path, loads=False), MESH)[0]
    results += dist.simulate(sizes["data"] * sizes["model"], lambda: run(second, tmp_path), sizes)[0]
    np.testing.assert_allclose(results, train_alone(mlp, steps=6)[0], rtol=2e-6)


def test_a_second_division_along_the_same_ranks_is_refused():
    with pytest.raises(DistributedError, match="divided along model already, got a division along model"):
        dist.simulate(2, lambda: dist.fully_shard(tensor_parallel(mlp)(mlp()), group=dist.group("model")), {"model": 2})


def test_a_state_that_is_divided_already_is_refused():
    def program():
        model = dist.fully_shard(mlp())
        dist.shard_optimizer(optim.AdamW(model.parameters()))

    with pytest.raises(DistributedError, match="a parameter is divided along data already"):
        dist.simulate(2, program)

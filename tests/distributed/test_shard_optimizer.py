"""ZeRO-1: the steps of the optimizer that is not divided, with a part of its state on each rank."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.core.errors import DistributedError, GradientError

RNG = np.random.default_rng(1)
X, Y = RNG.standard_normal((12, 5)).astype("float32"), RNG.standard_normal((12, 3)).astype("float32")

RULES = {
    "AdamW": lambda params: optim.AdamW(params, lr=0.02),
    "SGD": lambda params: optim.SGD(params, lr=0.05, momentum=0.9),
    "groups": lambda params: optim.AdamW([{"params": params[:1], "lr": 0.1}, {"params": params[1:], "weight_decay": 0.0}]),
}


def train(rule, is_sharded, fused, max_norm=None, steps=5):
    """Return the losses, the weights, and the number of elements of the optimizer's state."""
    mf.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    optimizer = RULES[rule]([*model.parameters()])
    if is_sharded:
        optimizer = dist.shard_optimizer(optimizer)
    x, y = (mf.tensor(np.array_split(a, dist.size())[dist.rank()]) for a in (X, Y))

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        if not is_sharded:
            dist.average_gradients(model)
        if max_norm is not None:
            clip = optimizer.clip_grad_norm_ if is_sharded and dist.size() > 1 else None
            clip(max_norm) if clip else optim.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        return dist.all_reduce(loss.detach(), "mean")

    run = mf.fuse(step) if fused else step
    losses = [float(run(x, y)) for _ in range(steps)]
    states = [x for values in optimizer.state.values() for x in values.values() if isinstance(x, mf.Tensor)]
    return losses, [p.numpy().copy() for p in model.parameters()], sum(x.size for x in states)


@pytest.mark.parametrize(("rule", "fused", "max_norm"), [("AdamW", True, 0.1), ("SGD", False, None), ("groups", True, None)])
def test_steps_are_those_of_the_whole_optimizer(rule, fused, max_norm):
    (expected, _, whole), ranks = (
        train(rule, False, fused, max_norm),
        dist.simulate(4, lambda: train(rule, True, fused, max_norm)),
    )
    for losses, weights, size in ranks:
        np.testing.assert_allclose(losses, expected, rtol=2e-6)
        assert all((a == b).all() for a, b in zip(weights, ranks[0][1], strict=True))
        assert size <= whole / 4 * 1.1 + 4  # of these few elements, some ranks have one more in each group
    assert sum(size for _, _, size in ranks) == whole


def test_another_number_of_ranks_continues_a_run(tmp_path):
    """Save and load after each 2 steps, on 2, 3 and 1 ranks; the states are those of the optimizer that is not divided."""

    def start():
        mf.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
        return model, dist.shard_optimizer(optim.AdamW(model.parameters(), lr=0.02))

    def run(loads=True):
        model, optimizer = start()
        if loads:
            state = mf.load_sharded(tmp_path, dist.shards_of(model, optimizer))
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        x, y = (mf.tensor(np.array_split(a, dist.size())[dist.rank()]) for a in (X, Y))
        losses = []
        for _ in range(2):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(dist.all_reduce(loss.detach(), "mean").item())
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        mf.save_sharded(state, tmp_path, rank=dist.rank(), size=dist.size(), version=dist.size())
        return losses

    losses = dist.simulate(2, lambda: run(loads=False))[0] + dist.simulate(3, run)[0] + run()
    model, optimizer = start()
    expected = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = ((model(mf.tensor(X)) - mf.tensor(Y)) ** 2).mean()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    np.testing.assert_allclose(losses, expected, rtol=2e-6)
    saved = mf.load_sharded(tmp_path)["optimizer"]["state"]
    for k, values in optimizer.state_dict()["state"].items():
        assert saved[k]["step"] == values["step"] == 6
        np.testing.assert_allclose(saved[k]["exp_avg"].numpy(), values["exp_avg"].numpy(), rtol=1e-4, atol=1e-7)


def test_one_rank_keeps_its_optimizer():
    optimizer = optim.SGD([mf.ones(1, requires_grad=True)])
    assert dist.shard_optimizer(optimizer) is optimizer


def with_a_state():
    w = mf.ones(2, requires_grad=True)
    optimizer = optim.Adam([w])
    w.sum().backward()
    optimizer.step()
    dist.shard_optimizer(optimizer)


ERRORS = {
    "state": (with_a_state, DistributedError, "Adam has a state already; call it before the first step"),
    "rule": (
        lambda: dist.shard_optimizer(optim.Muon([mf.ones(2, 2, requires_grad=True)])),
        DistributedError,
        "Muon reads whole parameters",
    ),
    "gradient": (
        lambda: dist.shard_optimizer(optim.SGD([mf.ones(2, requires_grad=True)])).step(),
        GradientError,
        r"a parameter of shape \(2,\) has no gradient; call backward first",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_do(case):
    program, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        dist.simulate(2, program)

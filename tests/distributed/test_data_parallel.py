"""Data parallel training on simulated ranks: the losses of one rank with the whole batch, and equal weights on all."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.core.errors import DistributedError, MismatchError

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((24, 6)).astype("float32"), RNG.integers(0, 4, 24)


def train(fused, bucket_mb=None, steps=6):
    """Return the losses and the weights."""
    mf.manual_seed(3 + dist.rank())
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    dist.share(model)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    x, y = (mf.tensor(np.split(a, dist.size())[dist.rank()]) for a in (X, Y))

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        dist.average_gradients(model, bucket_mb=bucket_mb)
        optimizer.step()
        return dist.all_reduce(loss.detach(), "mean")

    run = mf.fuse(step) if fused else step
    return [float(run(x, y)) for _ in range(steps)], [p.numpy().copy() for p in model.parameters()]


@pytest.mark.parametrize(("size", "fused", "bucket_mb"), [(2, True, None), (4, True, 1e-4), (3, False, None)])
def test_losses_are_those_of_one_rank(size, fused, bucket_mb):
    (expected, _), ranks = train(fused), dist.simulate(size, lambda: train(fused, bucket_mb))
    for losses, weights in ranks:
        np.testing.assert_allclose(losses, expected, rtol=1e-6)
        assert all((a == b).all() for a, b in zip(weights, ranks[0][1], strict=True))


def test_a_parameter_without_gradient_on_one_rank_is_an_error():
    def program():
        a, b = mf.ones(2, requires_grad=True), mf.ones(3, requires_grad=True)
        (a.sum() + (b.sum() if dist.rank() else 0)).backward()
        dist.average_gradients([a, b])

    with pytest.raises(MismatchError, match=r"float32 \(2,\) at(.|\n)*float32 \(2,\), float32 \(3,\) at"):
        dist.simulate(2, program)


def test_share_copies_dicts_and_sequences_in_place():
    def program():
        x = mf.full((2,), dist.rank())
        dist.share({"x": x}, source=1)
        y = mf.full((2,), dist.rank())
        dist.share([y])
        return x.tolist(), y.tolist()

    assert dist.simulate(2, program) == [([1, 1], [0, 0])] * 2


def test_a_bucket_of_no_size_is_an_error():
    with pytest.raises(DistributedError, match="got bucket_mb=0, expected a number above 0"):
        dist.average_gradients([], bucket_mb=0)

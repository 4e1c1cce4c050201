"""Ring attention on simulated ranks: attention of the whole sequence, its gradients, and a GPT with divided sequences."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn
from minifuse.core.errors import DistributedError, ShapeError

from .models import assert_equals_one_rank, gpt, train, train_alone, with_ring_attention

RNG = np.random.default_rng(3)
Q, K, V = RNG.standard_normal((3, 2, 3, 12, 4)) * 3


def part(x):
    return mf.tensor(np.split(x, dist.size(), -2)[dist.rank()], backend="python")


@pytest.mark.parametrize(("ranks", "is_causal", "fused"), [(2, False, True), (3, True, False), (4, True, True)])
def test_values_and_gradients_are_those_of_the_whole_sequence(ranks, is_causal, fused):
    def loss(q, k, v):
        return (dist.ring_attention(q, k, v, is_causal=is_causal) ** 2).sum()

    def program():
        inputs = [part(x) for x in (Q, K, V)]
        grads = mf.grad(loss, argnums=(0, 1, 2))
        slopes = (mf.fuse(grads) if fused else grads)(*inputs)
        return [x.numpy() for x in (dist.ring_attention(*inputs, is_causal=is_causal), *slopes)]

    expected, found = program(), dist.simulate(ranks, program)
    for k, want in enumerate(expected):
        np.testing.assert_allclose(np.concatenate([x[k] for x in found], -2), want, rtol=1e-9, atol=1e-12)


def test_losses_of_a_gpt_are_those_of_one_rank():
    expected, _ = train_alone(gpt)
    results = dist.simulate(
        4, lambda: train(gpt, with_ring_attention, axes=("data", "sequence")), {"data": 2, "sequence": 2}
    )
    assert_equals_one_rank(results, expected)


ERRORS = {
    "positions": (lambda: dist.ring_attention(mf.ones(3, 2), mf.ones(2, 2), mf.ones(2, 2)), ShapeError, "got shapes"),
    "options": (
        lambda: dist.RingAttention(nn.MultiheadAttention(8, 2, dropout=0.1)),
        DistributedError,
        "got options of attention",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_was_expected(case):
    function, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        dist.simulate(2, function)

"""Pipelines on simulated ranks: losses and weights of one rank, idle time, and errors."""

from itertools import pairwise

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.core.errors import DistributedError, ShapeError
from minifuse.engines.cost import Link
from minifuse.engines.simulated import Simulation

from .models import DATA, PartOfGPT, X, Y, gpt, mlp, own_part


def stages_of_mlp(count):
    layers = list(mlp())
    cuts = [0, 2, 5] if count == 2 else [0, 1, 3, 5]
    return [nn.Sequential(*layers[start:stop]) for start, stop in pairwise(cuts)]


def stages_of_gpt(count):
    model = gpt(layers=2)
    cuts = [slice(k * 2 // count, (k + 1) * 2 // count) for k in range(count)]
    return [PartOfGPT(model, blocks, k == 0, k == count - 1) for k, blocks in enumerate(cuts)]


def loss(y, targets):
    return nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), targets.reshape(-1))


def train(make, count, schedule="1f1b", steps=20, fused=True, kind="AdamW"):
    dist.seed(5)
    group = dist.group("stage")
    data = dist.group("data")
    x, y = (mf.tensor(own_part(a, "data")) for a in DATA[mlp if make is stages_of_mlp else gpt])
    pipeline = dist.Pipeline(make(count), len(x) if group.size > 1 else 1, loss, schedule, group, fused)
    optimizer = getattr(optim, kind)(pipeline.stage.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        mean = dist.all_reduce(pipeline.step(x, y), "mean", data)
        dist.average_gradients(pipeline.stage, data)
        losses.append((float(mean), float(pipeline.clip_grad_norm_(0.5))))
        optimizer.step()
    return losses, [p.numpy().copy() for p in pipeline.stage.parameters()]


CASES = [  # stages, their number, ranks along data, options
    (stages_of_mlp, 2, 1, {"schedule": "gpipe", "steps": 60}),
    (stages_of_mlp, 3, 1, {"fused": False, "kind": "SGD"}),
    (stages_of_gpt, 2, 2, {}),
]


@pytest.mark.parametrize(("make", "count", "data", "options"), CASES)
def test_losses_are_those_of_one_rank(make, count, data, options):
    expected, _ = train(make, count, **options)
    results = dist.simulate(count * data, lambda: train(make, count, **options), {"data": data, "stage": count})
    for rank, (losses, weights) in enumerate(results):
        np.testing.assert_allclose(losses, expected, rtol=1e-6)
        assert all((a == b).all() for a, b in zip(weights, results[rank % count][1], strict=True))


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8)])
def test_the_idle_share_is_that_of_the_bubble(schedule, stages, micro_batches):
    def program():
        dist.seed(0)
        layers = [nn.Linear(6, 6) for _ in range(stages)]
        pipeline = dist.Pipeline(layers, micro_batches, nn.functional.mse_loss, schedule, None, False, (1e-3, 2e-3))
        pipeline.step(mf.ones(micro_batches, 6), mf.ones(micro_batches, 6))

    simulation = Simulation(stages, link=Link(5e-6, 1e-10))
    simulation.run(program)
    bubble = (stages - 1) / (micro_batches + stages - 1)
    assert abs(simulation.timeline.idle_share() - bubble) < 0.02


def test_new_shapes_are_sent_to_the_next_stage():
    def program():
        dist.seed(0)
        pipeline = dist.Pipeline([nn.Linear(6, 5), nn.Linear(5, 4)], 2, nn.functional.cross_entropy)
        return [float(pipeline.step(mf.tensor(X[:n]), mf.tensor(Y[:n]))) for n in (8, 4, 8)]

    for losses in dist.simulate(2, program):
        np.testing.assert_allclose(losses, program(), rtol=1e-6)


def pipeline(**options):
    return dist.Pipeline(**{"stages": [nn.Tanh(), nn.Tanh()], "micro_batches": 2, "loss": loss} | options)


ERRORS = {
    "schedule": (
        lambda: pipeline(schedule="2f2b"),
        DistributedError,
        "got schedule '2f2b', expected one of 'gpipe'",
    ),
    "stages": (lambda: pipeline(stages=[nn.Tanh()] * 3), DistributedError, "got 3 stages for 2 ranks"),
    "batch": (lambda: pipeline().step(mf.ones(3, 2), mf.ones(3)), ShapeError, "got a batch of 3, expected a multiple of 2"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_was_expected(case):
    function, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        dist.simulate(2, function)

"""Pipelines on simulated ranks: losses and weights of one rank, idle time, and errors."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn
from minifuse.core.errors import DistributedError, ShapeError
from minifuse.engines.cost import Link
from minifuse.engines.simulated import Simulation

from .models import X, Y, cross_entropy, stages_of_gpt, stages_of_mlp, train_pipeline

CASES = [  # stages, their number, ranks along data, options
    (stages_of_mlp, 2, 1, {"schedule": "gpipe", "steps": 60}),
    (stages_of_mlp, 3, 1, {"fused": False, "kind": "SGD"}),
    (stages_of_gpt, 2, 2, {}),
]


@pytest.mark.parametrize(("make", "count", "data", "options"), CASES)
def test_losses_are_those_of_one_rank(make, count, data, options):
    expected, _ = train_pipeline(make, count, **options)
    results = dist.simulate(count * data, lambda: train_pipeline(make, count, **options), {"data": data, "stage": count})
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
    return dist.Pipeline(**{"stages": [nn.Tanh(), nn.Tanh()], "micro_batches": 2, "loss": cross_entropy} | options)


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

"""engines.schedules: the order of passes, results through a pipeline, idle time and memory of gpipe and 1f1b."""

import numpy as np
import pytest

from minifuse.engines.cost import Link, play
from minifuse.engines.schedules import SCHEDULES, kept_activations, one_forward_one_backward, run_stage

EACH = pytest.mark.parametrize("schedule", sorted(SCHEDULES))


def pipeline(schedule, stages, micro_batches, link, forward=lambda k, x: x, backward=lambda k, x: x, seconds=(1e-3, 2e-3)):
    """Play a whole step; arrays are of 256 float32 unless the functions return others."""
    first = np.zeros(256, np.float32)
    chosen = [
        (lambda k, x: forward(k, first if x is None else x), lambda k, x: backward(k, first if x is None else x))
        for _ in range(stages)
    ]
    orders = [SCHEDULES[schedule](stage, stages, micro_batches) for stage in range(stages)]
    return play([run_stage(k, stages, orders[k], *chosen[k], seconds) for k in range(stages)], link)


@EACH
@pytest.mark.parametrize("stages", range(1, 9))
def test_the_idle_share_is_that_of_the_bubble(schedule, stages):
    for micro_batches in (1, 2, 3, stages, 8, 32):
        bubble = (stages - 1) / (micro_batches + stages - 1)
        assert pipeline(schedule, stages, micro_batches, Link(0, 0)).idle_share() == pytest.approx(bubble)
        assert abs(pipeline(schedule, stages, micro_batches, Link(5e-6, 1e-10)).idle_share() - bubble) < 0.02


@EACH
@pytest.mark.parametrize("stages", range(1, 9))
def test_each_pass_runs_once_and_forward_comes_first(schedule, stages):
    for micro_batches in (1, 3, 8, 13):
        for stage in range(stages):
            order = SCHEDULES[schedule](stage, stages, micro_batches)
            assert sorted(order) == sorted((way, k) for way in (True, False) for k in range(micro_batches))
            assert all(order.index((True, k)) < order.index((False, k)) for k in range(micro_batches))
            kept = micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)
            assert kept_activations(order) == kept


def test_one_forward_one_backward_in_the_middle():
    order = one_forward_one_backward(1, 3, 4)
    assert " ".join(f"{'BF'[way]}{k}" for way, k in order) == "F0 F1 B0 F2 B1 F3 B2 B3"


@EACH
def test_values_pass_through_all_stages(schedule):
    seen = {}

    def forward(k, x):
        return x + k + 1

    def backward(k, gradient):
        seen.setdefault(k, []).append(gradient[0])
        return gradient * 2 + k

    pipeline(schedule, 3, 2, Link(), forward, backward)
    assert seen == {0: [0, 0, 0], 1: [0, 1, 3]}

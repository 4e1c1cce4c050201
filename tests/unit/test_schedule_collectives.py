"""Buckets of gradients and their order, in plans of training steps."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn, optim
from minifuse.compiler import pipeline
from minifuse.compiler.graph import NEEDS
from minifuse.compiler.schedule_collectives import is_collective, op_of
from minifuse.ir.step_kernels import MatmulKernel


@pytest.fixture
def plans(monkeypatch):
    """The steps of each plan with several collectives, as `schedule_collectives` orders them."""
    found = []

    def recorded(graph, target):
        after = pipeline.schedule_collectives(graph, target)
        if sum(map(is_collective, after.steps)) > 1:
            found.append(after.steps)
        return after

    NEEDS[recorded] = NEEDS[pipeline.schedule_collectives]
    passes = [recorded if run is pipeline.schedule_collectives else run for run in pipeline.PASSES]
    monkeypatch.setattr(pipeline, "PASSES", tuple(passes))
    yield found
    del NEEDS[recorded]


def train(depth, bucket_mb, rows):
    """Take two fused steps of a deep network."""
    mf.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(depth)]
    model = nn.Sequential(*layers, nn.Linear(16, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @mf.fuse
    def step(x):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        dist.average_gradients(model, bucket_mb=bucket_mb)
        optimizer.step()

    for _ in range(2):
        step(mf.ones(rows, 16))
    return [p.numpy() for p in model.parameters()]


def test_buckets_are_summed_between_the_products_of_the_backward_pass(plans):
    weights = dist.simulate(2, lambda: train(6, 1e-3, 8))
    steps = plans[0]
    ops = [op_of(step) for step in steps if is_collective(step)]
    assert [op.position for op in ops] == [*range(1, len(ops) + 1)]
    assert len(ops) >= 6
    assert sum(op.count for op in ops) == 14
    products = [k for k, step in enumerate(steps) if isinstance(step.kernel, MatmulKernel)]
    left = [sum(product > k for product in products) for k, step in enumerate(steps) if is_collective(step)]
    assert left == sorted(left, reverse=True)
    assert left[0] >= len(products) // 2  # the backward pass has two products a layer, the forward pass one
    assert sum(n == 0 for n in left) <= 2
    assert all((a == b).all() for a, b in zip(*weights, strict=True))


def test_weights_do_not_depend_on_buckets():
    one, many = (dist.simulate(3, lambda size=size: train(3, size, 4))[0] for size in (None, 1e-3))
    assert all((a == b).all() for a, b in zip(one, many, strict=True))


def test_the_order_is_the_same_on_ranks_with_other_sizes(plans):
    """One rank has so many rows that its compiler splits sums, and so has other kernels."""
    dist.simulate(2, lambda: train(3, 1e-3, 3 if dist.rank() else 70_000))
    orders = [[str(step.kernel.describe(step.shape, (), [])) for step in steps if is_collective(step)] for steps in plans]
    assert len({len(steps) for steps in plans}) > 1
    assert all(order == orders[0] for order in orders)


def test_what_only_a_collective_needs_comes_before_all_else(plans):
    def program():
        @mf.fuse
        def f(x, y):
            return y @ y @ y, dist.all_reduce(x.exp().sum(0)), dist.all_reduce(y @ y @ x @ x @ x)

        return [out.numpy() for out in f(mf.ones(4, 4) * 0.1, mf.ones(4, 4) * 0.1)]

    first, second = dist.simulate(2, program)
    np.testing.assert_allclose(first[1], np.full(4, 8 * np.exp(0.1)), rtol=1e-6)
    kinds = [is_collective(step) for step in plans[0]]
    assert kinds.index(True) == 1  # the sum of exp(x), then its collective
    assert all((a == b).all() for a, b in zip(first, second, strict=True))

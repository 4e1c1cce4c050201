"""Tensor parallel layers on simulated ranks: losses, norms and weights of one rank, and second derivatives."""

import copy

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse import nn
from minifuse.core.errors import DistributedError, ShapeError
from minifuse.engines.simulated import Simulation

from .models import assert_equals_one_rank, gpt, mlp, tensor_parallel, train, train_alone

CASES = [  # make, data, model, options
    (mlp, 1, 2, {"steps": 60}),
    (mlp, 1, 4, {"kind": "SGD", "fused": False}),
    (mlp, 2, 2, {"accumulate": 2}),
    (gpt, 1, 2, {"dropout": 0.2, "layers": 2, "steps": 3, "fused": False}),
    (gpt, 2, 2, {}),
]


@pytest.mark.parametrize(("make", "data", "model", "options"), CASES)
def test_losses_are_those_of_one_rank(make, data, model, options):
    expected, weights = train_alone(make, **options)
    results = dist.simulate(
        data * model, lambda: train(make, tensor_parallel(make), **options), {"data": data, "model": model}
    )
    assert_equals_one_rank(results, expected)
    if make is mlp:
        for name, w in results[0][1].items():
            np.testing.assert_allclose(w, weights[name], rtol=1e-4, atol=1e-6)


def test_a_copy_of_a_model_keeps_its_placements():
    def program():
        dist.seed(0)
        layer = copy.deepcopy(dist.RowParallelLinear(4, 2))
        return layer.weight.placement.shape, layer.bias.placement

    assert dist.simulate(2, program) == [((2, 4), None)] * 2


@pytest.mark.parametrize("fused", [False, True])
def test_second_derivatives_are_those_of_one_rank(fused):
    x = np.random.default_rng(2).standard_normal((3, 6)).astype("float32")

    def second():
        dist.seed(1)
        model = tensor_parallel(mlp)(mlp())
        slope = mf.grad(lambda x: (model(x) ** 2).sum())
        curvature = mf.grad(lambda x: (slope(x) ** 2).sum())
        return (mf.fuse(curvature) if fused else curvature)(mf.tensor(x)).numpy()

    expected = second()
    for found in dist.simulate(2, second, {"model": 2}):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_share_copies_each_shard_along_the_other_axes():
    def program():
        mf.manual_seed(dist.group("data").rank)
        model = tensor_parallel(mlp)(mlp())
        dist.share(model, source=2)
        return [dist.full_tensor(p).numpy() for p in model.parameters()]

    ranks = dist.simulate(4, program, {"data": 2, "model": 2})
    mf.manual_seed(1)
    expected = [p.numpy() for p in mlp().parameters()]
    assert all((a == b).all() for values in ranks for a, b in zip(values, expected, strict=True))


def test_a_checkpoint_of_shards_has_the_whole_weights(tmp_path):
    def program():
        dist.seed(0)
        model = tensor_parallel(mlp)(mlp())
        return mf.save_sharded(model.state_dict(), tmp_path, rank=dist.rank(), size=dist.size())

    assert dist.simulate(4, program, {"data": 2, "model": 2}) == [False, False, False, True]
    dist.seed(0)
    whole = mf.load_sharded(tmp_path)
    assert all((whole[name] == x).all() for name, x in mlp().state_dict().items())


def test_a_pair_of_layers_sends_one_activation_in_each_direction():
    def program():
        dist.seed(0)
        model = dist.parallelize(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)), {"0": "column", "2": "row"})
        mf.grad(lambda x: (model(x) ** 2).sum())(mf.ones(2, 6))

    simulation = Simulation(2)
    simulation.run(program)
    assert [x.op for x in simulation.trace] == ["all_reduce"] * 2


ERRORS = {
    "style": (
        lambda: dist.parallelize(mlp(), {"0": "rows"}),
        DistributedError,
        "got style 'rows', expected one of 'column'",
    ),
    "name": (lambda: dist.parallelize(mlp(), {"9": "row"}), DistributedError, "no Linear has a name like '9'"),
    "columns": (lambda: dist.ColumnParallelLinear(4, 3), ShapeError, "out_features is 3, expected a multiple of 2 ranks"),
    "rows": (lambda: dist.RowParallelLinear(3, 4), ShapeError, "in_features is 3, expected a multiple of 2 ranks"),
    "heads": (lambda: dist.HeadParallelAttention(nn.MultiheadAttention(9, 3)), ShapeError, "num_heads is 3"),
    "options": (
        lambda: dist.HeadParallelAttention(nn.MultiheadAttention(8, 2, dropout=0.1)),
        DistributedError,
        "got options of attention",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_was_expected(case):
    function, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        dist.simulate(2, function)

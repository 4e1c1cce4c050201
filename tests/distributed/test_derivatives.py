"""First and second derivatives of all collectives on simulated ranks, by finite differences in float64."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist

ROWS, COLUMNS = 12, 5  # rows for 1 to 4 ranks, and columns that 2, 3 and 4 do not divide
STEP = 1e-4


def growing_sizes(total=ROWS):
    """Return a size for each rank: 0, 1, 2, ..., and what is left of the total."""
    first = [*range(dist.size() - 1)]
    return [*first, total - sum(first)]


FUNCTIONS = {
    "all_reduce": dist.all_reduce,
    "all_reduce, mean": lambda x: dist.all_reduce(x, "mean"),
    "all_reduce of a view": lambda x: dist.all_reduce(x.T[1:]),
    "all_gather": dist.all_gather,
    "all_gather along dim 1": lambda x: dist.all_gather(x, 1),
    "all_gather of uneven parts": lambda x: dist.all_gather(x[: growing_sizes()[dist.rank()]], sizes=growing_sizes()),
    "reduce_scatter": dist.reduce_scatter,
    "reduce_scatter, mean": lambda x: dist.reduce_scatter(x, op="mean"),
    "reduce_scatter of uneven columns": lambda x: dist.reduce_scatter(x, 1),
    "reduce_scatter of uneven parts": lambda x: dist.reduce_scatter(x, sizes=growing_sizes()),
    "broadcast": lambda x: dist.broadcast(x, -1),
    "reduce": lambda x: dist.reduce(x, dist.size() // 2),
    "all_to_all": dist.all_to_all,
    "all_to_all along two dims": lambda x: dist.all_to_all(x, 0, 1),
    "shift": lambda x: dist.shift(x, 2),
    "shift backwards": lambda x: dist.shift(x, -1),
}


@pytest.mark.parametrize("backend", ["python", "parallel"])
@pytest.mark.parametrize("fused", [False, True], ids=["eager", "fused"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_sum_over_ranks(name, size, fused, backend):
    """Compare with central differences of the losses of all ranks, and of their gradients, in one direction of all inputs.

    The loss of a rank is a sum of cubes with other factors for each element and rank. So the gradient of another element or
    rank, a factor n and a lost derivative of the second order all show.
    """
    x, direction = np.random.default_rng(0).standard_normal((2, size, ROWS, COLUMNS))

    def loss(x):
        y = FUNCTIONS[name](x)
        factors = mf.linspace(1, 2, y.size, dtype="float64", backend=backend).reshape(*y.shape) * (dist.rank() + 1)
        return (y**3 * factors).sum()

    gradient = mf.grad(loss)
    product = mf.grad(lambda x, d: (gradient(x) * d).sum())  # of the second derivatives and the direction

    def at(points, function, *others):
        function = mf.fuse(function) if fused else function
        inputs = [[mf.tensor(a[rank], backend=backend) for a in (points, *others)] for rank in range(size)]
        return np.stack(dist.simulate(size, lambda: function(*inputs[dist.rank()]).numpy()))

    def slope_of(function):
        shift = STEP * direction
        return (at(x + shift, function) - at(x - shift, function)) / (2 * STEP)

    np.testing.assert_allclose((at(x, gradient) * direction).sum(), slope_of(loss).sum(), rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(at(x, product, direction), slope_of(gradient), rtol=1e-7, atol=1e-7)

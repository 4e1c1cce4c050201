"""Collectives of tensors on simulated ranks: values, backends, and errors that name the ranks."""

import numpy as np
import pytest

import minifuse as mf
import minifuse.distributed as dist
from minifuse.core.errors import DistributedError, GradientError, MismatchError, ShapeError

BACKENDS = ("python", "parallel", "cuda")


def inputs(size, shape=(3, 4)):
    return [np.arange(np.prod(shape)).reshape(shape).astype("float32") * (rank + 1) - rank for rank in range(size)]


CASES = {  # name -> the function of a tensor, and what rank r gets of all inputs
    "sum": (lambda x: dist.all_reduce(x), lambda xs, r: sum(xs)),
    "mean": (lambda x: dist.all_reduce(x, "mean"), lambda xs, r: sum(xs) / len(xs)),
    "max": (lambda x: dist.all_reduce(x, "max"), lambda xs, r: np.max(xs, 0)),
    "min": (lambda x: dist.all_reduce(x, "min"), lambda xs, r: np.min(xs, 0)),
    "of a view": (lambda x: dist.all_reduce(x.T[1:]), lambda xs, r: sum(xs).T[1:]),
    "gather": (lambda x: dist.all_gather(x), lambda xs, r: np.concatenate(xs)),
    "gather, dim 1": (lambda x: dist.all_gather(x, 1), lambda xs, r: np.concatenate(xs, 1)),
    "scatter": (lambda x: dist.reduce_scatter(x, 1), lambda xs, r: np.array_split(sum(xs), len(xs), 1)[r]),
    "scatter the mean": (
        lambda x: dist.reduce_scatter(x, op="mean"),
        lambda xs, r: np.array_split(sum(xs) / len(xs), len(xs))[r],
    ),
    "broadcast": (lambda x: dist.broadcast(x, -1), lambda xs, r: xs[-1]),
    "reduce": (lambda x: dist.reduce(x, 1), lambda xs, r: sum(xs) * (r == 1)),
    "exchange": (
        lambda x: dist.all_to_all(x.expand(dist.size(), 3, 4), 0, 2),
        lambda xs, r: np.concatenate([x[None] for x in xs], 2),
    ),
    "shift": (lambda x: dist.shift(x, 2), lambda xs, r: xs[(r - 2) % len(xs)]),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_values(case, backend):
    function, expected = CASES[case]
    xs = inputs(3)
    fused = mf.fuse(lambda x: function(x * 2) + 1)

    def program():
        x = mf.tensor(xs[dist.rank()], backend=backend)
        return function(x).numpy(), fused(x).numpy()

    for rank, (eager, of_fused) in enumerate(dist.simulate(3, program)):
        want = expected(xs, rank)
        np.testing.assert_allclose(eager, want, rtol=1e-6)
        np.testing.assert_allclose(of_fused, expected([x * 2 for x in xs], rank) + 1, rtol=1e-6)


def test_parts_may_be_uneven():
    def program():
        x = mf.arange(2 * dist.rank()).reshape(-1, 2)
        return dist.all_gather(x, sizes=(0, 1, 2)).tolist()

    assert dist.simulate(3, program) == [[[0, 1], [0, 1], [2, 3]]] * 3


def test_groups_are_the_ranks_along_axes():
    def program():
        x = mf.tensor([dist.rank()])
        return [dist.all_reduce(x, group=dist.group(*names)).item() for names in (("data",), ("model",), ("data", "model"))]

    assert dist.simulate(4, program, axes={"data": 2, "model": 2}) == [[2, 1, 6], [4, 1, 6], [2, 5, 6], [4, 5, 6]]


def test_one_rank_gets_its_input():
    x = mf.ones(3)
    functions = (
        dist.all_reduce,
        dist.all_gather,
        dist.reduce_scatter,
        dist.broadcast,
        dist.reduce,
        dist.all_to_all,
        dist.shift,
    )
    assert all(function(x) is x for function in functions)
    assert dist.same(x)
    assert dist.simulate(1, lambda: (dist.rank(), dist.size())) == [(0, 1)]


def test_a_fused_function_is_traced_for_each_rank_and_size():
    scaled = mf.fuse(lambda x: x * (10 * dist.size() + dist.rank()))

    def program():
        return scaled(mf.ones(1)).item()

    assert [dist.simulate(n, program) for n in (2, 3, 2)] == [[20, 21], [30, 31, 32], [20, 21]]
    assert program() == 10


@pytest.mark.parametrize("algorithm", ["direct", "ring", "tree"])
def test_sums_are_equal_on_all_ranks(algorithm):
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((5, 100)).astype("float32")
    sums = dist.simulate(5, lambda: dist.all_reduce(mf.tensor(xs[dist.rank()])).numpy(), algorithm=algorithm)
    assert all((x == sums[0]).all() for x in sums)
    if algorithm == "direct":
        assert (sums[0] == (((xs[0] + xs[1]) + xs[2]) + xs[3]) + xs[4]).all()


MISMATCHES = {  # name -> the program, and what the message says
    "shapes": (lambda r: dist.all_reduce(mf.ones(3 + (r == 2))), r"rank 2 waits in all_reduce\(add\) of float32 \(4,\)"),
    "dtypes": (lambda r: dist.all_reduce(mf.ones(3).to(mf.float64 if r else mf.float32)), r"float32 \(3,\)(.|\n)*float64"),
    "ops": (lambda r: (dist.shift if r else dist.all_reduce)(mf.ones(3)), r"rank 0 waits in all_reduce(.|\n)*in shift\(1\)"),
    "operators": (lambda r: dist.all_reduce(mf.ones(3), "max" if r else "min"), r"all_reduce\(minimum\)(.|\n)*\(maximum\)"),
    "one rank ends": (lambda r: r == 1 or dist.all_reduce(mf.ones(3)), "rank 1 has ended"),
    "one more": (lambda r: [dist.all_reduce(mf.ones(3)) for _ in range(2 + (r == 0))], "rank 2 has ended"),
    "groups": (lambda r: dist.all_reduce(mf.ones(3), group=dist.group("data" if r else "model")), "no rank can go on"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISMATCHES)
def test_mismatches_name_each_rank_and_its_line(case):
    program, message = MISMATCHES[case]
    with pytest.raises(MismatchError, match=message) as caught:
        dist.simulate(4, lambda: program(dist.rank()), axes={"data": 2, "model": 2})
    assert "test_functions.py" in str(caught.value)


def test_the_first_error_of_a_rank_stops_all():
    def program():
        if dist.rank() == 1:
            raise KeyError("planted")
        return dist.all_reduce(mf.ones(1))

    with pytest.raises(KeyError, match="planted"):
        dist.simulate(3, program)


ERRORS = {
    "op": (lambda: dist.all_reduce(mf.ones(1), "product"), DistributedError, "got op='product', expected one of 'sum'"),
    "rank": (lambda: dist.broadcast(mf.ones(1), 2), DistributedError, "got rank 2, expected one from 0 to 1"),
    "axis": (lambda: dist.group("depth"), DistributedError, "axis 'depth': the mesh has the axes data"),
    "sizes": (lambda: dist.all_gather(mf.ones(1), sizes=(2, 2)), ShapeError, r"got sizes \(2, 2\) and 1 rows"),
    "parts": (lambda: dist.reduce_scatter(mf.ones(4), sizes=(1, 2)), ShapeError, "expected 2 sizes with the sum 4"),
    "multiple": (lambda: dist.all_to_all(mf.ones(3)), ShapeError, "expected a multiple of 2 ranks"),
    "dim": (lambda: dist.all_gather(mf.ones(3), 1), ShapeError, "got dim 1 of an array of 1 dims"),
    "number": (lambda: dist.all_reduce(3.0), TypeError, "got float, expected a tensor"),
    "max": (lambda: mf.grad(lambda x: dist.all_reduce(x, "max").sum())(mf.ones(1)), GradientError, "maximum over ranks"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_was_expected(case):
    function, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        dist.simulate(2, function)


def test_the_mesh_must_have_as_many_ranks_as_the_program():
    with pytest.raises(DistributedError, match=r"Mesh\(data=2, model=2\) has 4 ranks, but the program has 3"):
        dist.simulate(3, lambda: None, axes={"data": 2, "model": 2})


def test_each_rank_has_its_own_random_numbers():
    first, second = (
        dist.simulate(2, lambda: (dist.barrier(), mf.rand(2).tolist())[1]),
        dist.simulate(2, lambda: mf.rand(2).tolist()),
    )
    assert first == second
    assert first[0] != first[1]

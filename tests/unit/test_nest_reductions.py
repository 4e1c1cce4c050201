"""compiler.nest_reductions: a reduction inside the kernels of others, if recomputing it costs less than storing it."""

import numpy as np
import pytest

import minifuse as mf
from minifuse.backends.python import PythonBackend
from minifuse.compiler import fusibility
from minifuse.core.operators import add
from minifuse.ir.array_functions import View
from minifuse.ir.nested_reduce import LIFTABLE_VIEWS, NestedReduce, lift_view
from minifuse.testing import assert_close

REDUCTIONS = ("sum", "max", "min")


@pytest.fixture
def always(monkeypatch):
    """Nest every reduction that can be nested, whatever it costs."""
    monkeypatch.setattr(fusibility, "MIN_NESTED_ROWS", 1)
    monkeypatch.setattr(fusibility, "MAX_OPS_PER_BYTE", 1 << 60)


def steps_of(function, *inputs):
    return mf.fuse(function).plan(*inputs).steps


def nested_count(function, *inputs):
    return sum(step.kernel.is_nested for step in steps_of(function, *inputs))


def reasons(function, *inputs):
    return {refusal.reason for refusal in mf.fuse(function).explain(*inputs).refusals}


def gravity(p):
    d = p[None] - p[:, None]
    r = (d * d).sum(2, keepdim=True) + 0.01
    return (d / (r * r.sqrt())).sum(1)


# The rule of cost


def test_forces_are_one_kernel_with_two_sums():
    (step,) = steps_of(gravity, mf.ones(70, 3))
    assert (step.shape, step.dims) == ((70, 70, 3, 3), (1, 3))
    assert step.kernel.reductions(step.dims) == [(3,), (1,)]
    assert len(step.inputs) == 4


def test_a_long_row_is_not_recomputed():
    def f(x, y):
        return mf.exp(-((x[:, None] - y) ** 2).sum(2)).sum(1)

    assert nested_count(f, mf.ones(70, 32), mf.ones(80, 32)) == 1
    assert nested_count(f, mf.ones(70, 33), mf.ones(80, 33)) == 0
    assert any("rows of 33 elements are too long" in x for x in reasons(f, mf.ones(70, 33), mf.ones(80, 33)))


def test_a_kernel_of_few_rows_computes_no_nested_reductions():
    def f(x):
        return (x * x).sum(1).sqrt().sum()

    assert nested_count(f, mf.ones(1000, 3)) == 0
    assert any("a kernel of 1 row would leave threads idle" in x for x in reasons(f, mf.ones(1000, 3)))


def test_a_reduction_is_not_recomputed_for_many_rows():
    def f(x, y):
        return (y / x.sum(1)).sum(1)

    assert nested_count(f, mf.ones(80, 8), mf.ones(70, 80)) == 0
    (reason,) = reasons(f, mf.ones(80, 8), mf.ones(70, 80))
    assert reason.endswith("; to compute it 70 times would load more than to store it and load it")


def test_expensive_functions_are_not_repeated():
    def f(x, y):
        return ((x[:, None] - y).sin() ** 2).sum(2).logsumexp(1)

    (reason,) = reasons(f, mf.ones(70, 8), mf.ones(1100, 8))
    assert reason.endswith("; to compute it 2 times takes 26,488,000 more ops, and to store and load it takes 924,000 B")


def test_a_reduction_is_shared_along_a_short_last_row_axis_only():
    assert nested_count(gravity, mf.ones(70, 16)) == 1
    assert nested_count(gravity, mf.ones(70, 17)) == 0


def test_gradients_of_distances_are_two_kernels():
    def energy(x, y):
        return mf.exp(-((x[:, None] - y) ** 2).sum(2)).sum()

    steps = steps_of(mf.grad(energy, argnums=(0, 1)), mf.ones(70, 3), mf.ones(80, 3))
    assert [step.kernel.is_nested for step in steps] == [True, True]


def test_a_short_row_is_kept_for_all_passes():
    def f(x, y):
        return ((x[:, None] - y).sin() ** 2).sum(2).logsumexp(1)

    assert nested_count(f, mf.ones(70, 8), mf.ones(1024, 8)) == 1


def test_a_reduction_that_is_stored_in_any_case_is_not_recomputed():
    def f(x, y):
        r = ((x[:, None] - y) ** 2).sum(2)
        return r, mf.exp(-r).sum(1)

    assert nested_count(f, mf.ones(70, 3), mf.ones(80, 3)) == 0


@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_a_softmax_of_distances_is_one_kernel(backend):
    def f(x, y):
        return (-((x[:, None] - y) ** 2).sum(2)).softmax(1)

    x, y = (np.random.default_rng(n).normal(size=(n, 3)) for n in (65, 33))
    xs = [mf.tensor(a, backend=backend) for a in (x, y)]
    (step,) = steps_of(f, *xs)
    assert step.kernel.is_nested
    assert step.stored_shape(0) == (65, 33, 1)
    e = np.exp(-((x[:, None] - y) ** 2).sum(2))
    assert_close(mf.fuse(f)(*xs), e / e.sum(1, keepdims=True), "composed", n=200)


def test_an_output_that_another_kernel_stores_prevents_nesting():
    def f(x, y):
        d = ((x[:, None] - y) ** 2).sum(2)
        return d.sqrt(), mf.exp(-d).sum(1)

    assert nested_count(f, mf.ones(70, 3), mf.ones(80, 3)) == 0


def test_a_target_that_has_no_nested_reductions_says_so(monkeypatch):
    monkeypatch.setattr(PythonBackend, "supports", lambda self, step: "no loops inside loops")
    x = mf.ones(70, 3, backend="python")
    assert nested_count(gravity, x) == 0
    assert any(reason.endswith("; no loops inside loops") for reason in reasons(gravity, x))


def test_columns_that_are_computed_are_not_split():
    assert len(steps_of(gravity, mf.ones(2503, 3))) == 1


def test_a_softmax_has_no_nested_reductions():
    assert nested_count(lambda x: x.softmax(1), mf.ones(70, 8)) == 0
    assert not reasons(lambda x: x.softmax(1), mf.ones(70, 8))


def test_a_nested_softmax_shares_its_axis():
    def f(x, y):
        d = abs(x[:, None] - y)
        return (d * d.softmax(2)).sum(2).exp().sum(1)

    (step,) = steps_of(f, mf.ones(70, 3), mf.ones(80, 3))
    assert (step.shape, step.dims) == ((70, 80, 3), (1, 2))
    x, y = (np.random.default_rng(0).normal(size=(n, 3)) for n in (70, 80))
    d = abs(x[:, None] - y)
    e = np.exp(d)
    expected = np.exp((d * e / e.sum(2, keepdims=True)).sum(2)).sum(1)
    assert_close(mf.fuse(f)(mf.tensor(x), mf.tensor(y)), expected, "composed", n=200)


# Views


@pytest.mark.parametrize("method", sorted(LIFTABLE_VIEWS))
def test_a_view_of_a_nested_reduction_is_a_view_of_its_input(method):
    parameters = {
        "expand": (7, 4, 6),
        "permute": (1, 0),
        "reshape": (2, 2, 6),
        "slice": ((3, -1, 2), (1, 2, 3)),
        "unflatten": (1, 3),
    }[method]
    view, x = View(method, parameters), np.random.default_rng(0).normal(size=(4, 6, 3))
    lifted = lift_view(view, 2, (3,))
    np.testing.assert_allclose(lifted(mf.tensor(x)).numpy().sum(-1), view(mf.tensor(x.sum(-1))).numpy())


def test_the_shape_of_a_nested_reduction_has_no_reduced_dims():
    assert NestedReduce(add, 2).infer(mf.ones(4, 5, 6))[0] == (4,)


# Random programs


class RandomProgram:
    """Reductions along axes of one space, one after the other, with broadcast pointwise functions between them."""

    def __init__(self, seed):
        self.seed, random = seed, np.random.default_rng(seed)
        self.sizes = [int(n) for n in random.permutation([2, 3, 4, 5])[: random.integers(3, 5)]]

    def arrays(self):
        """Return the inputs, each of which varies along some axes."""
        random = np.random.default_rng(self.seed)
        shapes = [[n if random.random() < 0.7 else 1 for n in self.sizes] for _ in range(6)]
        return [random.uniform(0.5, 1.5, shape) for shape in shapes]

    def __call__(self, *xs):
        """Run with tensors or with arrays of NumPy."""
        random = np.random.default_rng(self.seed)
        is_numpy = isinstance(xs[0], np.ndarray)

        def leaf():
            return xs[random.integers(len(xs))]

        def reduce(x, dims):
            name = REDUCTIONS[random.integers(3)]
            if is_numpy:
                return getattr(x, name)(axis=dims, keepdims=True)
            if name == "sum":
                return x.sum(dims, keepdim=True)
            for d in dims:
                x = getattr(x, name)(d, keepdim=True)
            return x

        value = leaf() - leaf() * 0.5
        for _ in range(random.integers(2, 5)):
            count = 1 + (random.random() < 0.2)
            dims = tuple(int(d) for d in sorted(random.permutation(len(self.sizes))[:count]))
            reduced = reduce(value, dims)
            value = value / (1 + reduced * reduced) if random.random() < 0.25 else reduced
            for _ in range(random.integers(1, 3)):
                value = value * leaf() if random.random() < 0.5 else leaf() - value
            if random.random() < 0.3:
                value = value[::-1]
            if random.random() < 0.3:
                order = [int(d) for d in random.permutation(len(self.sizes))]
                value = value + leaf()
                moved = value.transpose(order) if is_numpy else value.permute(*order)
                value = reduce(moved * 0.5, (order.index(dims[0]),))
                back = [int(d) for d in np.argsort(order)]
                value = value.transpose(back) if is_numpy else value.permute(*back)
        return value


SEEDS = range(40)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("seed", "backend"), [*[(k, "python") for k in SEEDS], *[(k, "parallel") for k in SEEDS[14:22]]])
def test_random_programs_agree_with_numpy(seed, backend, always):
    program = RandomProgram(seed)
    xs = [mf.tensor(a, backend=backend) for a in program.arrays()]
    assert_close(mf.fuse(program)(*xs), program(*program.arrays()), "composed", n=200)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS[:20])
def test_gradients_of_random_programs_agree_with_unfused_ones(seed, always):
    program = RandomProgram(seed)
    xs = [mf.tensor(a, backend="python") for a in program.arrays()]
    gradient = mf.grad(lambda *xs: program(*xs).sum(), argnums=tuple(range(len(xs))))
    for got, expected in zip(mf.fuse(gradient)(*xs), gradient(*xs), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)


def test_random_programs_have_nested_reductions_of_up_to_three_levels(always):
    found = set()
    for seed in SEEDS:
        program = RandomProgram(seed)
        for step in steps_of(program, *map(mf.tensor, program.arrays())):
            found.add(len(step.kernel.reductions(step.dims)))
    assert {2, 3} <= found

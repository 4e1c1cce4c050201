"""Random programs: fused == unfused == NumPy in float64, in all that can be seen of a call."""

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import minifuse as mf
from minifuse.core.pytree import tree_leaves
from minifuse.testing import assert_close

from ..examples import share
from .agreement import Nature, Subject, against_numpy, compare, identities, nature, sharing, weighted
from .growth import grow

LARGE = 66_000  # more than 16 bits count
BACKENDS = ["python", "parallel", "cuda"]


def programs(longest=30, **options):
    """Random programs, by a seed and their length."""
    return st.builds(lambda seed, count: grow(seed, count, **options), st.integers(0, 2**32 - 1), st.integers(1, longest))


def check(program, backend="python", gradients=0, seeds=(1, 2)):
    """Call fused and unfused, twice with new data: the second call finds what the first one made. The judge is NumPy."""
    note(repr(program))
    unfused, fused = Subject(program, "python", is_fused=False), Subject(program, backend, is_fused=True)
    for seed in seeds:
        expected = unfused.call(seed, gradients)
        about = nature(program, seed) if expected.error is None else Nature()
        assume(not about.is_on_edge and not (gradients and about.is_on_kink))
        found = fused.call(seed, gradients)
        compare(expected, found, about.is_exact and not gradients, host=backend != "cuda")
        if expected.error is None:
            against_numpy(found, about)


@share(4)
@given(programs())
def test_values(program):
    check(program)


@share(2)
@given(programs(longest=14, wants_grad=True, changes=False))
def test_gradients(program):
    check(program, gradients=1)


@share(1)
@given(programs(longest=14, wants_grad=True))
def test_gradients_beside_changes_in_place(program):
    """Mostly errors: they are the same, and nothing is half-written."""
    check(program, gradients=1)


@share(1)
@given(programs(longest=8, wants_grad=True, changes=False))
def test_second_derivatives(program):
    check(program, gradients=2)


@share(0.3)
@given(programs(longest=12))
def test_values_in_compiled_kernels(program):
    check(program, "parallel")


@share(0.12)
@given(programs(longest=8, wants_grad=True, changes=False))
def test_gradients_in_compiled_kernels(program):
    check(program, "parallel", gradients=1)


@share(0.16)
@given(programs(longest=8, max_dims=2))
def test_values_on_a_gpu(program):
    """Simulated where there is none."""
    check(program, "cuda")


@share(0.12)
@given(programs(longest=6, max_dims=2, wants_grad=True, changes=False))
def test_gradients_on_a_gpu(program):
    check(program, "cuda", gradients=1)


# Backward inside of what is fused.


def stepping(program, names):
    """A program as a step of training: its results go into a loss, whose gradients are left in its arguments."""
    function = program.function(names)
    count = len(program.arguments)

    def step(*inputs):
        results = [x for x in tree_leaves(function(*inputs)) if isinstance(x, mf.Tensor)]
        total = weighted(results)
        total.backward()
        return [total, [x.grad for x in inputs[:count]]]

    return step


def derivative(program, names):
    """The derivative of a program by its first argument."""
    function = program.function(names)

    def loss(*inputs):
        return weighted([x for x in tree_leaves(function(*inputs)) if isinstance(x, mf.Tensor)])

    return mf.grad(loss)


@pytest.mark.parametrize("way", [stepping, derivative], ids=["backward", "grad"])
@share(1)
@given(program=programs(longest=10, wants_grad=True, changes=False))
def test_differentiated_inside(way, program):
    subjects = []
    for is_fused in (False, True):
        subject = Subject(program, "python", is_fused)
        function = way(program, {k: subject.scope[k] for k in ("mf", "np", "fuse")})
        subject.scope = function_scope(function)
        subject.function = mf.fuse(function) if is_fused else function
        subjects.append(subject)
    for seed in (1, 2):
        unfused, fused = (subject.call(seed) for subject in subjects)
        if unfused.error is None:
            about = nature(program, seed)
            assume(not about.is_on_edge and not about.is_on_kink)
        compare(unfused, fused, is_exact=False, laid_out=False)


def function_scope(function):
    """The globals of the program inside."""
    inner = [c.cell_contents for c in function.__closure__]
    program = next((f for f in inner if getattr(f, "__name__", "") == "program"), None)
    return program.__globals__ if program else function_scope(next(f for f in inner if callable(f) and f.__closure__))


# What the generator does not reach, and what it has found.


@pytest.mark.parametrize("backend", ["parallel"])
@pytest.mark.parametrize("shape", [(LARGE,), (3, LARGE // 2), (LARGE // 3, 5)], ids=str)
def test_more_elements_than_sixteen_bits_count(shape, backend):
    a = np.random.default_rng(0).integers(-8, 9, shape) / 4

    def program(x, y):
        t = mf.where(x > y, x * 0.5, y) + x[..., ::-1]
        s = t.sum(-1, True)
        y[..., 1:] += t[..., :-1]
        return t - s, t.T, s, t.max(0)

    results = []
    for function in (program, mf.fuse(program)):
        x, y = mf.tensor(a, "float32", backend), mf.tensor(a[..., ::-1], "float32", backend)
        results.append([*function(x, y), y])
    for got, expected in zip(*reversed(results), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def both(function, *inputs, backend="python"):
    """What a function gives unfused and fused, each with copies of the inputs, and the inputs afterwards."""
    found = []
    for f in (function, mf.fuse(function)):
        xs = [mf.tensor(x, backend=backend) if isinstance(x, np.ndarray) else x for x in inputs]
        with mf.use_backend(backend):
            tree = f(*xs)
        found.append([*xs, *[x for x in tree_leaves(tree) if isinstance(x, mf.Tensor)]])
    return found


def agree(function, *inputs, backend="python"):
    """All that can be seen of a call is the same."""
    unfused, fused = both(function, *inputs, backend=backend)
    assert identities(fused) == identities(unfused)
    if backend != "cuda":
        assert sharing([x for x in fused if isinstance(x, mf.Tensor)]) == sharing(
            [x for x in unfused if isinstance(x, mf.Tensor)]
        )
    for x, y in zip(fused, unfused, strict=True):
        if isinstance(x, mf.Tensor):
            assert (x.dtype, x.shape, x.strides) == (y.dtype, y.shape, y.strides)
            assert_close(x, y.numpy(), "composed")


def many_functions(x):
    t = x
    for _ in range(12):
        t = t.clip(-4, 4) * 4 // 1 / 4
    return t, t * t


def read_before_and_after(x, part):
    before = x.exp()
    part *= 2
    return before + x


def product_before_and_sum_after(x):
    t = x @ x.T
    x.fill_(2.0)
    return t[0] - x[:, 0]


def read_backwards_after_a_change(x):
    x[::-1] *= 2
    return mf.minimum(x.flip(0), 1 - x)


def onto_itself(x):
    x[1:] = x[:-1]
    x[:, ::-1] = x
    return x.sum(0)


def part_of_itself(x):
    t = x - 1
    total = (t @ x.T).sum() + 1
    t[-1] = total
    return t, total


def two_kinds_of_layout(x):
    return mf.exp(x.T * 1), x * 2


def detached_views(x):
    t = x.clip(None, 0.5)
    return t, t.detach(), x.T.detach(), t[::-1].detach()


def constants_and_their_views(x):
    t = mf.tensor([0.5, -1.0, 2.0])
    return x + 1, t, t[:, None], t


def the_same_twice(x):
    t = x + 1
    return t, t, x, x


def numbers_in_a_product(x):
    t = mf.full((4,), 0.5)
    return (t * 2) @ t, (mf.ones(5) > 0) @ mf.ones(5), x @ mf.full((5,), 2.0)


def product_of_a_condition(x):
    t = x @ x.T
    t[None] += -2.0
    u = 1 / (t * t + 1)
    v = (u > u.permute(1, 0)).flip(0)
    return v, mf.relu(v @ (t + 1))


def copied_over(x):
    t = x + x
    t.copy_(x)
    return t


def filled_then_read_through_views(x):
    row, back = x[1], x[::-1, ::-1]
    back.fill_(-1)
    t = back / 2
    u = mf.where(x > 0, 1.5, t.sum())
    v = t * (row - t)
    w = mf.where(v > u, v, 1)
    w += row
    return mf.maximum(row, w)


def backwards_of_a_copy(x):
    t = x.T % 3
    back = t.flatten()[::-1]
    return t, back, back


def overwritten_by_one_element(x):
    t = x @ x.T
    t[...] = x[0, :1]
    return t


def a_bool_filled_with_three(x):
    t = x > x
    t |= t
    t[...] = 3
    return t, mf.relu(abs(t) @ (mf.ones_like(t.T * 5) + 1))


def a_reshape_of_what_was_filled(x):
    t = x.T.clip(-1, 1)
    t.fill_(0.5)
    return t.unsqueeze(0).sum(0)


def bools_folded_by_columns(x):
    m = x @ x.T > 0
    return m.logsumexp(0, True), m.any(0), m.max(0) == m


FOUND = [
    many_functions, product_before_and_sum_after, read_backwards_after_a_change, onto_itself, part_of_itself,
    two_kinds_of_layout, detached_views, constants_and_their_views, the_same_twice, numbers_in_a_product,
    product_of_a_condition, copied_over, filled_then_read_through_views,
    backwards_of_a_copy, overwritten_by_one_element, a_bool_filled_with_three,
    a_reshape_of_what_was_filled, bools_folded_by_columns,
]  # fmt: skip


@pytest.mark.sampled(2, each="function")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", FOUND, ids=lambda f: f.__name__)
def test_earlier_failures_stay_fixed(function, backend):
    agree(function, np.random.default_rng(0).uniform(-2, 2, (4, 5)).astype("float32"), backend=backend)


@pytest.mark.sampled(2, each="backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("part", [np.s_[1:], np.s_[:-1, ::-1], np.s_[::2, 1:], np.s_[...], np.s_[::-1]], ids=str)
def test_arguments_that_overlap(part, backend):
    a = np.random.default_rng(0).uniform(-1, 1, (4, 5))
    expected = np.exp(a)
    seen = a.copy()
    seen[part] *= 2
    for f in (read_before_and_after, mf.fuse(read_before_and_after)):
        x = mf.tensor(a, backend=backend)
        assert_close(f(x, x[part]), expected + seen, "composed")
        assert_close(x, seen, "exact")


@pytest.mark.parametrize("backend", BACKENDS)
def test_reversed_stores_are_read_back_reversed(backend):
    def program(mask, x):
        x[:-1, 1::2, :] = mask
        return mf.minimum(mask, x)

    found = []
    for f in (program, mf.fuse(program)):
        base = mf.tensor(18 - np.arange(36).reshape(3, 2, 6), "int64", backend)
        found.append((f(mf.tensor([True], backend=backend).expand(6), base[1:, :, ::-1]).tolist(), base.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("part", [np.s_[:], np.s_[1:], np.s_[::-1]], ids=str)
def test_a_leaf_is_changed_through_an_alias(part):
    """The gradient flows to the leaf, for the new values."""

    def program(leaf, other):
        other[...] = other * 2
        return leaf * leaf

    found = []
    for f in (program, mf.fuse(program)):
        base = mf.tensor([1.0, 2.0, 3.0])
        leaf = base.detach().requires_grad_()
        y = f(leaf, base[part])
        y.sum().backward()
        found.append((y.tolist(), leaf.grad.tolist(), base.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_value_stored_twice(backend):
    """As where all gradients are set to zero."""

    def program(x, y, z):
        x.zero_()
        y.zero_()
        z[::-1] += 1
        return z.copy_(x), z * 2

    found = []
    for f in (program, mf.fuse(program)):
        xs = [mf.full((4,), 5.0, backend=backend) for _ in range(3)]
        f(*xs)
        found.append([x.tolist() for x in xs])
    assert found == [[[0.0] * 4] * 3] * 2


@pytest.mark.parametrize("part", [np.s_[1:], np.s_[::-1], np.s_[:1]], ids=str)
def test_a_leaf_that_is_changed_in_part(part):
    """Its gradient is that of its new values; nothing flows to it a second time as to what lay there before."""

    def through_another(leaf, other):
        other[part] *= 3
        return leaf * leaf

    def through_a_view(leaf, other):
        inside = leaf.detach()
        inside[part] *= 3
        return inside + leaf * leaf

    for program in (through_another, through_a_view):
        found = []
        for f in (program, mf.fuse(program)):
            base = mf.tensor([1.0, 2.0, 3.0])
            leaf = base.detach().requires_grad_()
            f(leaf, base).sum().backward()
            found.append((leaf.grad.tolist(), base.tolist()))
        assert found[0] == found[1]


def test_a_second_derivative_beside_a_detached_result():
    def program(x):
        t = x * x
        return t @ x, t.detach()

    found = []
    for f in (program, mf.fuse(program)):
        x = mf.tensor([1.0, -2.0], requires_grad=True)
        f(x)[0].backward(create_graph=True)
        first, x.grad = x.grad, None
        (first * first).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1] == [36.0, -288.0]


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("backend", ["python", "parallel"])
def test_a_second_derivative_through_an_extreme(name, backend):
    """The extreme is compared with elements that are computed again, whose last bits another kernel may round otherwise."""
    found = []
    for fuse in (lambda f: f, mf.fuse):
        f = fuse(lambda x, y: getattr(y / (x * x + 0.7), name)(-1, True))
        x = mf.tensor([0.4108850619643629], "float64", backend, requires_grad=True)
        y = mf.tensor([0.03546487410077015], "float64", backend, requires_grad=True)
        f(x, y).sum().backward(create_graph=True)
        first, x.grad, y.grad = x.grad, None, None
        first.sum().backward()
        found.append([x.grad.item(), y.grad.item()])
    np.testing.assert_allclose(found[1], found[0])
    np.testing.assert_allclose(found[0], [-0.020929359507, -1.088639771212])


def needed_before(leaf, x):
    t = x * 2
    x += 1
    return mf.minimum(leaf, t)


def needed_after(leaf, x):
    x[1:] *= 2
    return leaf * mf.exp(x)


def needed_before_and_after(leaf, x):
    t = (leaf * mf.exp(x)).sum()
    x[None, 1:] += 2
    return t * mf.sin(leaf * x.T.T)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [needed_before, needed_after, needed_before_and_after], ids=lambda f: f.__name__)
def test_gradients_when_a_saved_tensor_is_changed(program, backend):
    """The backward pass cannot compute it again from its arguments, so it is kept; for a second derivative it is not."""
    found = []
    for f in (program, mf.fuse(program)):
        leaf = mf.tensor([0.5, -1.0, 2.0], requires_grad=True, backend=backend)
        x = mf.tensor(np.linspace(-1, 1, 12).reshape(4, 3), "float32", backend)
        y = f(leaf, x)
        y.sum().backward(retain_graph=True)
        found += [leaf.grad.numpy(), x.numpy()]
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)
    np.testing.assert_array_equal(found[3], found[1])
    with pytest.raises(mf.GradientError, match="modifies a tensor in place that its gradient needs"):
        y.sum().backward(create_graph=True)


@pytest.mark.parametrize("part", [np.s_[1:], np.s_[:], np.s_[::-1]], ids=str)
def test_gradients_when_a_saved_tensor_is_changed_by_an_alias(part):
    """Arguments that overlap: after the change the new values are taken; the old ones are refused, as they are unfused."""

    def after(leaf, x, other):
        other += 1
        return leaf * x

    def before(leaf, x, other):
        y = leaf * x
        other += 1
        return y

    x = mf.tensor([0.5, -0.5, 2.0])
    leaf = mf.ones(3, requires_grad=True)
    mf.fuse(after)(leaf, x, x[part]).sum().backward()
    assert leaf.grad.tolist() == x.tolist() != [0.5, -0.5, 2.0]
    for f in (before, mf.fuse(before)):
        y = f(leaf, x, x[part])
        with pytest.raises(mf.GradientError, match="modified in place after it was used"):
            y.sum().backward()


def test_memory_beside_a_changed_slice_is_untouched():
    """The halves of one buffer; and memory of the function's own, of which the old values are kept."""

    def beside(leaf, x, other):
        y = leaf * x
        other += 1
        return y

    def inside(leaf, x, other):
        t = mf.exp(other)
        y = leaf * t
        t += t
        return y

    both = mf.tensor([0.5, -0.5, 2.0, 0.0, 0.25, 0.5])
    for f, expected in ((beside, both[:3].numpy()), (inside, np.exp(both[3:].numpy() + 1))):
        leaf = mf.ones(3, requires_grad=True)
        mf.fuse(f)(leaf, both[:3], both[3:]).sum().backward()
        np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-6)


def test_a_result_written_to_changes_no_other_call():
    """Results of two calls, and constants made inside, are fresh memory in each call."""

    @mf.fuse
    def f(x):
        c = mf.zeros(3)
        return x * 2, c, mf.tensor([1.0, 2.0, 3.0]), x.detach().clone()

    x = mf.ones(3)
    first = f(x)
    for y in first:
        y.fill_(7.0)
    assert [y.tolist() for y in f(x)] == [[2, 2, 2], [0, 0, 0], [1, 2, 3], [1, 1, 1]]


def test_where_nothing_flows_no_gradient_is_wanted():
    x = mf.tensor([1.0, 2.5], requires_grad=True)
    for f in (lambda x: (x // 1 / 4, x > 1, x * 2), lambda x: (x.detach() * 2, x, x[1:])):
        assert [y.requires_grad for y in mf.fuse(f)(x)] == [y.requires_grad for y in f(x)]

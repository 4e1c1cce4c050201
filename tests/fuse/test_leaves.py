"""Tensors that become leaves inside a fused function, against the same function unfused."""

import copy

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.pytree import tree_leaves

BACKENDS = ["python", "parallel"]


def detached(x, y):
    d = x.detach()
    d.requires_grad_()
    (d * y).sum().backward()
    return d.grad


def detached_by_attribute(x, y):
    d = x.detach()
    d.requires_grad = True
    (d * d * y).sum().backward()
    return d.grad * 2


def detached_in_one_line(x, y):
    d = x.detach().requires_grad_()
    mf.exp(d * y).sum().backward()
    return d.grad


def the_leaf_itself(x, y):
    d = x.detach().requires_grad_()
    (d * y).sum().backward()
    return d


def a_leaf_without_a_gradient(x, y):
    return x.detach().requires_grad_(), x.clone().requires_grad_(), y


def a_leaf_twice(x, y):
    d = x.clone().requires_grad_()
    (d * y).sum().backward()
    return d, d, d.grad


def a_leaf_and_its_gradient_as_input(x, y):
    d = x.detach().requires_grad_()
    d.grad = y
    return d


def what_comes_of_a_leaf(x, y):
    d = x.detach().requires_grad_()
    return (d * y).sum()


def what_comes_of_a_leaf_and_an_argument(x, y):
    d = x.detach().requires_grad_()
    return (d * y + x).sum()


def a_view_of_a_leaf(x, y):
    d = x.detach().requires_grad_()
    return d[1:]


def used_up(x, y):
    d = x.detach().requires_grad_()
    loss = (d * y).sum()
    loss.backward()
    return d, loss


def retained(x, y):
    d = x.detach().requires_grad_()
    loss = (d * y).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return d.grad, loss


def detached_and_whole(x, y):
    """The leaf does not belong to memory that `x` shares."""
    d = x.detach().requires_grad_()
    (d * x * y).sum().backward()
    return d, x * 2


def two_leaves_of_one_tensor(x, y):
    a, b = x.detach().requires_grad_(), x.detach().requires_grad_()
    (a * b * b * y).sum().backward()
    return a, b


def a_view_made_before(x, y):
    d = x.detach()
    v = d[1:]
    d.requires_grad_()
    (v * d[1:] * y[1:]).sum().backward()
    return d, v.requires_grad, d[1:].requires_grad


def views_made_after(x, y):
    d = x.detach().requires_grad_()
    (d[1:] * d[:-1]).sum().backward()
    (d.reshape(2, 2).T.reshape(4) * y).sum().backward()
    return d


def a_view_of_an_argument(x, y):
    with mf.no_grad():
        v = x[1:]
    v.requires_grad_()
    (v * v * x[1:] * y[1:]).sum().backward()
    return v, v.is_leaf


def a_reshape_that_copies(x, y):
    v = x.detach().reshape(2, 2).T.reshape(4).requires_grad_()
    (v * v * y).sum().backward()
    return v


def an_expanded_view(x, y):
    v = x.detach().expand(3, 4).requires_grad_()
    (v * y).sum().backward()
    return v.grad


def a_view_under_no_grad(x, y):
    d = x.detach().requires_grad_()
    with mf.no_grad():
        v = d[1:]
    (d[1:] * v * y[1:]).sum().backward()
    return d, v.requires_grad


def a_clone(x, y):
    c = x.detach().clone().requires_grad_()
    (c * c * y).sum().backward()
    return c, c.is_leaf


def of_a_computed_tensor(x, y):
    z = x * 2
    d = z.detach().requires_grad_()
    (d * d * y).sum().backward()
    (z * d.grad).sum().backward()
    return d, z


def a_new_tensor(x, y):
    w = mf.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    (w * x.detach() * y).sum().backward()
    return w


def a_copy_of_a_leaf(x, y):
    d = x.detach().requires_grad_()
    e = copy.copy(d)
    (d * e * e * y).sum().backward()
    return d, e


def switched_off(x, y):
    d = x.detach().requires_grad_()
    z = d * y
    d.requires_grad_(False)
    w = d * 2
    z.sum().backward()
    return d, w, d.requires_grad


def switched_on_again(x, y):
    d = x.detach().requires_grad_()
    (d * y).sum().backward()
    d.requires_grad_(False)
    between = d * 2
    d.requires_grad_()
    (d * between).sum().backward()
    return d, between


def not_switched_on(x, y):
    d = x.detach()
    d.requires_grad_(False)
    return d * y, d


def changed_under_no_grad(x, y):
    d = x.detach().clone().requires_grad_()
    with mf.no_grad():
        d *= 3
        d[1:] += 1
        d[0] = 7
    (d * d * y).sum().backward()
    return d


def changed_between(x, y):
    d = x.detach().clone().requires_grad_()
    (d * y).sum().backward()
    with mf.no_grad():
        d -= 0.5 * d.grad
    d.grad = None
    (d * d * y).sum().backward()
    return d


def an_argument_that_a_leaf_shares(x, y):
    """A change through the leaf is one of the argument's memory."""
    d = y.detach().requires_grad_()
    with mf.no_grad():
        d += 1
    (d * d).sum().backward()
    return d, y * 2


def changed_without_leave(x, y):
    d = x.detach().clone().requires_grad_()
    d += 1
    return d


def gradient_of_a_gradient(x, y):
    d = x.detach().requires_grad_()
    (d * d * d * y).sum().backward(create_graph=True)
    g = d.grad
    d.grad = None
    (g * g).sum().backward()
    return d, g.detach()


def gradient_with_a_graph(x, y):
    d = x.detach().requires_grad_()
    (d * d * d * y).sum().backward(create_graph=True)
    return d.grad


def made_under_no_grad(x, y):
    with mf.no_grad():
        d = (x * 2).requires_grad_()
        off = d * y
    (d * d * y).sum().backward()
    return d, off


def grad_by_a_leaf(x, y):
    d = x.detach().requires_grad_()
    slope = mf.grad(lambda d: (d * d * d * y).sum())(d)
    (slope * slope).sum().backward()
    return d


def leaf_inside_grad(x, y):
    def inner(z):
        d = z.detach().requires_grad_()
        (d * d).sum().backward()
        return (d.grad * z * y).sum()

    return mf.grad(inner)(x.detach())


def a_computed_one_switched_off(x, y):
    z = x.detach().requires_grad_() * y
    z.requires_grad_(False)
    return z


def a_view_of_a_leaf_switched_off(x, y):
    d = x.detach().requires_grad_()
    d[1:].requires_grad_(False)
    return d


def as_it_was(x, y):
    x.requires_grad_(x.requires_grad)
    y.requires_grad = False
    return x * y


def integers(x, y):
    return x.detach().to("int64").requires_grad_()


def backward_of_a_leaf(x, y):
    d = x.detach()[0].requires_grad_()
    d.backward()
    e = (x * y).sum().detach().requires_grad_()
    e.backward()
    e.backward()
    return d, e


def backward_of_a_whole_tensor(x, y):
    d = x.detach().requires_grad_()
    (d.expand(3, 4) * y).backward(mf.ones(3, 4, dtype="float64"))
    return d


def an_argument_changed_after(x, y):
    d = y.detach().requires_grad_()
    before = d * x.detach()
    y *= 2
    (d * d * x.detach()).sum().backward()
    return d, before.detach()


def three_times(x, y):
    d = x.detach().requires_grad_()
    z = (d * d * d * d * y).sum()
    for _ in range(3):
        d.grad = None
        z.backward(create_graph=True)
        z = d.grad.sum()
    return d.grad.detach()


def learned(x, y):
    d = x.detach().clone().requires_grad_()
    optimizer = mf.optim.SGD([d], lr=0.125)
    for _ in range(3):
        optimizer.zero_grad()
        (d * d * y).sum().backward()
        optimizer.step()
    return d


def copied_into_a_new_tensor(x, y):
    d = x.detach().requires_grad_()
    z = mf.zeros(4, dtype="float64")
    with mf.no_grad():
        z.copy_(d)
    return z, d


def copied_into_an_argument(x, y):
    d = x.detach().requires_grad_()
    with mf.no_grad():
        y[1:] = d[1:] * 2
    (d * y).sum().backward()
    return d.grad


def every_other_argument(x, y):
    """Gradients of arguments and of leaves, in one `backward`."""
    d = y.detach().requires_grad_()
    loss = (d * d * x).sum()
    loss.backward()
    return loss, d.grad


def a_leaf_of_a_leaf(x, y):
    a = x.detach().requires_grad_()
    b = a.detach().requires_grad_()
    (a * b * b * y).sum().backward()
    return a, b


def a_leaf_of_a_view_of_a_leaf(x, y):
    a = x.detach().requires_grad_()
    b = a[1:].detach()[:2].requires_grad_()
    with mf.no_grad():
        b *= 2
    (a[1:3] * b * b[:1] * y[1:3]).sum().backward()
    return a, b


def gradients_add_up(x, y):
    d = x.detach().requires_grad_()
    for k in range(3):
        (d * y * k).sum().backward()
    return d, d.grad


def beside_spent_ones(x, y):
    """What `backward` went through from a leaf on is not what the leaf was made of."""
    z = x * y
    d = z.detach().requires_grad_()
    (d * d).sum().backward()
    return z, d.grad


PROGRAMS = [
    detached, detached_by_attribute, detached_in_one_line, the_leaf_itself, a_leaf_without_a_gradient, a_leaf_twice,
    a_leaf_and_its_gradient_as_input, what_comes_of_a_leaf, what_comes_of_a_leaf_and_an_argument, a_view_of_a_leaf, used_up,
    retained, detached_and_whole, two_leaves_of_one_tensor, a_view_made_before, views_made_after, a_view_of_an_argument,
    a_reshape_that_copies, an_expanded_view, a_view_under_no_grad, a_clone, of_a_computed_tensor, a_new_tensor,
    a_copy_of_a_leaf, switched_off, switched_on_again, not_switched_on, changed_under_no_grad, changed_between,
    an_argument_that_a_leaf_shares, changed_without_leave, gradient_of_a_gradient, gradient_with_a_graph, made_under_no_grad,
    grad_by_a_leaf, leaf_inside_grad, a_computed_one_switched_off, a_view_of_a_leaf_switched_off, as_it_was, integers,
    copied_into_a_new_tensor, copied_into_an_argument, every_other_argument, a_leaf_of_a_leaf, a_leaf_of_a_view_of_a_leaf,
    gradients_add_up, beside_spent_ones, backward_of_a_leaf, backward_of_a_whole_tensor, an_argument_changed_after,
    three_times, learned,
]  # fmt: skip


def tensors(backend, k, requires_grad):
    x = mf.tensor(np.array([0.5, -1.0, 2.0, 1.5]) + k, dtype="float64", backend=backend)
    y = mf.tensor(np.array([2.0, 3.0, -0.5, 1.0]) - k, dtype="float64", backend=backend)
    return x.requires_grad_(requires_grad), y


def seen(x):
    """All of a tensor that its user sees, gradients of gradients too."""
    if not isinstance(x, mf.Tensor):
        return x
    return x.tolist(), x.requires_grad, x.is_leaf, None if x.grad is None else seen(x.grad)


def outcome(function, backend, k, requires_grad):
    """What a call does, and then a `backward` of each of its results."""
    x, y = tensors(backend, k, requires_grad)
    found = []
    with mf.use_backend(backend):
        try:
            results = tree_leaves(function(x, y))
            found += [seen(z) for z in (*results, x, y)]
            found.append([a is b for a in results for b in results])
            arrays = [z.detach().numpy() for z in (*results, x, y) if isinstance(z, mf.Tensor)]
            found.append([np.shares_memory(a, b) for a in arrays for b in arrays])
        except mf.MinifuseError as error:
            return type(error), seen(x), seen(y)
        for z in results:
            if isinstance(z, mf.Tensor) and z.requires_grad and not z.is_leaf:
                try:
                    z.backward(mf.ones(*z.shape, dtype=z.dtype))
                except mf.GradientError as error:
                    found.append(str(error).partition(";")[0])
                found.append(seen(x))
    return found


@pytest.mark.sampled(4, each="program")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_leaves_made_inside_are_as_unfused(program, requires_grad, backend):
    fused = mf.fuse(program)
    for k in range(3):
        assert outcome(fused, backend, k, requires_grad) == outcome(program, backend, k, requires_grad), k


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_leaves_of_tensors_from_outside_are_as_unfused(requires_grad, backend):
    def run(is_fused):
        w, y = tensors(backend, 1, requires_grad)
        array = np.array([1.0, 2.0, 3.0, 4.0])

        def function(x):
            d, v = w.detach().requires_grad_(), w.detach()[1:].requires_grad_()
            e = mf.from_numpy(array, requires_grad=True)
            ((d * x * e).sum() + (v * v * w.detach()[1:]).sum()).backward()
            return d, v, e.grad

        fused = mf.fuse(function) if is_fused else function
        with mf.use_backend(backend):
            return [seen(z) for _ in range(2) for z in (*fused(y), w, y)]

    assert run(True) == run(False)


@pytest.mark.parametrize("backend", BACKENDS)
def test_leaves_of_arguments_that_overlap_are_as_unfused(backend):
    def function(x, y):
        d = x.detach().requires_grad_()
        before = d * 2
        y *= 3
        with mf.no_grad():
            d += 1
        (d * d * y).sum().backward()
        before.sum().backward()
        return d

    def run(function):
        base = mf.tensor([1.0, 2.0, 3.0, 4.0], backend=backend)
        return [seen(z) for _ in range(2) for z in (function(base[:3], base[1:]), base)]

    assert run(mf.fuse(function)) == run(function)


# Tensors of the caller stay as they are.


def of_an_argument(x, w, model, flag):
    x.requires_grad_(flag)


def by_attribute(x, w, model, flag):
    x.requires_grad = flag


def of_a_tensor_from_outside(x, w, model, flag):
    w.requires_grad_(flag)


def of_a_module(x, w, model, flag):
    model.requires_grad_(flag)


SETTINGS = [of_an_argument, by_attribute, of_a_tensor_from_outside, of_a_module]


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda f: f.__name__)
def test_tensors_of_the_caller_are_not_set_inside(setting, flag):
    x, w, model = mf.ones(3), mf.ones(3), mf.nn.Linear(3, 3)
    for z in (x, w, model):
        z.requires_grad_(not flag)

    @mf.fuse
    def f(x):
        setting(x, w, model, flag)
        return (model(x) * w).sum()

    advice = r"x\.clone\(\)\.requires_grad_\(\)" if flag else r"x\.detach\(\)"
    told = rf"test_leaves\.py:\d+: requires_grad: got {flag} for .* while tracing f, .* before the call, or write {advice}"
    for _ in range(2):
        with pytest.raises(mf.FuseError, match=told):
            f(x)
        assert [z.requires_grad for z in (x, w, *model.parameters())] == [not flag] * 4
    for z in (x, w, model):
        z.requires_grad_(flag)
    assert f(x).requires_grad is flag


def test_a_leaf_and_its_results_are_separate_outputs():
    @mf.fuse
    def f(x):
        d = x.detach().requires_grad_()
        return d, (d * d).sum()

    with pytest.raises(mf.FuseError, match=r"call backward inside, return y\.detach\(\)"):
        f(mf.ones(3))


@pytest.mark.parametrize("backend", ["python", "parallel", "cuda"])
def test_kernels_compute_an_identity_matrix(backend):
    x = mf.tensor(np.arange(12.0).reshape(3, 4), backend=backend)
    f = mf.fuse(lambda x: x + 2 * mf.eye(3, 4, dtype=mf.float64))
    np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 2 * np.eye(3, 4))
    assert f.explain(x).forward.nbytes == 2 * 8 * x.size

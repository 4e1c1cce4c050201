"""The names of `mf.autograd`: gradients of several tensors, hooks, recording modes, functions of your own, Jacobians."""

import gc
import weakref

import pytest

import minifuse as mf
from minifuse.core.errors import DTypeError, FuseError, GradientError

grad, Function, functional = mf.autograd.grad, mf.autograd.Function, mf.autograd.functional


@pytest.fixture(autouse=True)
def on_the_python_backend():
    with mf.use_backend("python"):
        yield


def leaf(*numbers, dtype="float64"):
    return mf.tensor(list(numbers), dtype=dtype, requires_grad=True)


# grad and backward


def test_grad_of_several_tensors_with_respect_to_several():
    x, w = leaf(1, 2), leaf(3, 4)
    y = x * w
    found = grad([y, y.sum()], [x, w, y], [mf.tensor([1.0, 2.0], dtype="float64"), None])
    assert [g.tolist() for g in found] == [[6, 12], [2, 6], [2, 3]]
    assert (x.grad, w.grad) == (None, None)


def test_grad_visits_only_what_leads_to_its_inputs():
    x, w = leaf(1, 2), leaf(3, 4)
    y, z = x * x, w * w
    total = (y + z).sum()
    assert grad(total, x)[0].tolist() == [2, 4]
    assert grad(z.sum(), w)[0].tolist() == [6, 8]  # not freed
    with pytest.raises(GradientError, match="freed its saved values"):
        grad(y.sum(), x)


def test_an_input_that_is_not_used():
    x, w = leaf(1), leaf(2)
    with pytest.raises(GradientError, match="no output depends on input 1; pass allow_unused=True"):
        grad((x * 2).sum(), [x, w])
    assert grad((x * 2).sum(), [x, w], allow_unused=True)[1] is None
    assert grad((x * 2).sum(), [x, w], materialize_grads=True)[1].tolist() == [0]
    with pytest.raises(GradientError, match="input 0 does not require a gradient"):
        grad(x.sum(), mf.ones(1))
    with pytest.raises(GradientError, match="does not depend on anything"):
        grad(mf.ones(1).sum(), x)


def test_grad_of_a_gradient():
    x = leaf(1, 2)
    (g,) = grad((x**3).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [6, 12]


def test_backward_of_several_tensors_into_some_leaves():
    x, w = leaf(1, 2), leaf(3, 4)
    mf.autograd.backward([(x * w).sum(), x * 2], [None, mf.ones(2, dtype="float64")], inputs=[x])
    assert (x.grad.tolist(), w.grad) == ([5, 6], None)
    with pytest.raises(GradientError, match="is no leaf"):
        (x * w).sum().backward(inputs=[x * w])
    with pytest.raises(GradientError, match="got 1 gradients for 2 tensors"):
        mf.autograd.backward([x.sum(), w.sum()], [None])


@mf.fuse
def gradients_inside(x, w):
    v = x.detach().requires_grad_()
    (g,) = grad((v**3).sum(), v, create_graph=True)
    (h,) = grad((g * w).sum(), v, retain_graph=True)
    (gw,) = grad((g * w).sum(), w)
    return g, h, gw


def test_grad_inside_a_fused_function():
    g, h, gw = gradients_inside(leaf(1, 2), leaf(1, 10))
    assert [x.tolist() for x in (g, h, gw)] == [[3, 12], [6, 120], [3, 12]]
    assert (g.requires_grad, h.requires_grad, gw.requires_grad) == (True, False, False)
    with pytest.raises(FuseError, match="expected a leaf as input"):
        mf.fuse(lambda x: grad((y := x * 2).sum(), y))(leaf(1))


# Hooks


def test_hooks_replace_gradients_in_the_order_of_their_registration():
    x, seen = leaf(1, 2), []
    y = x * x
    loss = y.sum()
    y.retain_grad()
    handle = y.register_hook(lambda g: 10 * g)
    y.register_hook(lambda g: seen.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    with x.register_hook(lambda g: g + 1):
        loss.backward(retain_graph=True)
    assert seen == [[10, 10], [21, 41]]
    assert (y.grad.tolist(), y.retains_grad, x.retains_grad) == ([10, 10], True, False)
    handle.remove()
    x.grad = None
    loss.backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2, 4], [11, 11])  # as in PyTorch, a retained gradient accumulates


def test_a_hook_of_a_leaf_runs_in_a_fused_backward():
    w = leaf(1, 2)
    step = mf.fuse(lambda x: (w * x).sum().backward())
    x = mf.tensor([3.0, 4.0], dtype="float64")
    step(x)
    with w.register_hook(lambda g: 2 * g):
        step(x)
    assert w.grad.tolist() == [9, 12]
    step(x)
    assert w.grad.tolist() == [12, 16]


def test_hooks_do_not_keep_a_graph_alive():
    x = leaf(1)
    y = x * 2
    y.retain_grad()
    found = weakref.ref(y)
    del y
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("name", ["register_hook", "register_post_accumulate_grad_hook", "retain_grad"])
def test_hooks_need_a_tensor_with_a_gradient(name):
    arguments = [] if name == "retain_grad" else [print]
    with pytest.raises(GradientError, match=r"requires_grad_|expected a leaf"):
        getattr(mf.ones(2), name)(*arguments)
    if arguments:
        with pytest.raises(FuseError, match="hooks cannot be registered inside"):
            mf.fuse(lambda x: getattr(x.clone().requires_grad_(), name)(print))(mf.ones(2))


# Recording modes


def test_recording_modes():
    found = []

    def look():
        found.append(mf.is_grad_enabled())

    with mf.no_grad():
        mf.enable_grad()(look)()
        mf.enable_grad(look)()
        with mf.inference_mode(False), mf.set_grad_enabled(True):
            look()
        look()
    mf.set_grad_enabled(False)
    look()
    mf.set_grad_enabled(True)
    mf.no_grad(look)()
    mf.inference_mode()(look)()
    mf.set_grad_enabled(False)(look)()
    look()
    assert found == [True, True, True, False, False, False, False, False, True]


def test_data_and_detach_in_place():
    x = leaf(1, 2)
    y = x * 2
    assert (x.data.requires_grad, x.data.buffer is x.buffer, x.grad_dtype) == (False, True, mf.float64)
    x.data = mf.tensor([[5.0]], dtype="float64")
    assert (x.tolist(), x.requires_grad) == ([[5]], True)
    with pytest.raises(DTypeError, match="expected a tensor of float64 on python"):
        x.data = mf.ones(2)
    assert y.detach_() is y
    assert (y.is_leaf, y.requires_grad) == (True, False)


# Functions


class Scaled(Function):
    """x ** 3 times a number, of which only backward knows the derivative, doubled; and x + 1, with gradient 7."""

    @staticmethod
    def forward(ctx, x, scale):
        y = x * x * x * scale
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return y, x + 1

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return 6 * y / x * g + 7 * h, None


class Sign(Function):
    """A function with setup_context, and an output without a gradient."""

    @staticmethod
    def forward(x):
        return x.abs(), x > 0

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1])
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, g, nothing):
        (mask,) = ctx.saved_tensors
        assert nothing is None or not nothing.dtype.is_float
        return mf.where(mask, g, -5 * g)


@pytest.mark.parametrize("run", [lambda f: f, mf.fuse], ids=["eager", "fused"])
def test_a_function_has_its_own_gradient(run):
    x = leaf(1, 2)
    y, z = run(lambda x: Scaled.apply(x, 2.0))(x)
    (y.sum() + z.sum()).backward()
    assert x.grad.tolist() == [12 + 7, 48 + 7]
    a, mask = run(lambda x: Sign.apply(x))(leaf(-1, 2))
    assert (a.requires_grad, mask.requires_grad, mask.tolist()) == (True, False, [False, True])
    x = leaf(-1, 2)
    run(lambda x: Sign.apply(x)[0])(x).sum().backward()
    assert x.grad.tolist() == [-5, 1]


def test_a_function_can_be_differentiated_twice():
    x = leaf(1, 2)
    (g,) = grad(Scaled.apply(x, 1.0)[0].sum(), x, create_graph=True)
    assert g.tolist() == [6, 24]
    assert grad(g.sum(), x)[0].tolist() == [6 * 6 - 6, 12 * 6 - 12]  # of 6 y / x, where y has the doubled gradient


def test_a_function_without_gradients_is_not_recorded():
    y, _ = Scaled.apply(mf.ones(2), 1.0)
    assert not y.requires_grad
    with mf.no_grad():
        assert not Scaled.apply(leaf(1), 1.0)[0].requires_grad


def changed(name, **methods):
    return type(name, (Function,), {key: staticmethod(value) for key, value in methods.items()})


@pytest.mark.parametrize(
    ("backward", "words"),
    [
        (lambda ctx, g: (g, g), "got 2 gradients, expected 1"),
        (lambda ctx, g: g.sum(), r"gradient 0 has shape \(\), expected \(2,\)"),
        (mf.autograd.function.once_differentiable(lambda ctx, g: g), "marked with once_differentiable"),
    ],
)
def test_a_wrong_backward_is_an_error(backward, words):
    x = leaf(1, 2)
    y = changed("Wrong", forward=lambda ctx, x: x * 2, backward=backward).apply(x)
    with pytest.raises(GradientError, match=words):
        y.sum().backward(create_graph=True)


def test_a_function_checks_what_it_saved():
    x = leaf(1, 2)
    y = Scaled.apply(x, 1.0)[0].sum()
    with mf.no_grad():
        x += 1
    with pytest.raises(GradientError, match="modified in place"):
        y.backward()
    y = Scaled.apply(x, 1.0)[0].sum()
    y.backward()
    with pytest.raises(GradientError, match="freed its saved values"):
        y.backward()
    dirty = changed("Dirty", forward=lambda ctx, x: ctx.mark_dirty(x), backward=lambda ctx, g: g)
    with pytest.raises(GradientError, match="return a new tensor instead"):
        dirty.apply(x)


def test_a_function_that_reads_values_is_refused_inside_a_fused_one():
    reads = changed("Reads", forward=lambda ctx, x: x * x.sum().item(), backward=lambda ctx, g: g)
    assert reads.apply(leaf(1, 2)).tolist() == [3, 6]
    with pytest.raises(FuseError, match="compute with Python's operators"):
        mf.fuse(lambda x: reads.apply(x))(leaf(1, 2))


# Jacobians and checks

X, V = [1.0, 2.0], [3.0, -1.0]
PRODUCTS = {  # name -> (function, its result at X and V); PyTorch's
    "vjp": (lambda x, v: functional.vjp(lambda x: x**3, x, v), ([1, 8], [9, -12])),
    "jvp": (lambda x, v: functional.jvp(lambda x: (x**3).sum(), x, v), (9, -3)),
    "vhp": (lambda x, v: functional.vhp(lambda x: (x**3).sum(), x, v), (9, [18, -12])),
    "hvp": (lambda x, v: functional.hvp(lambda x: (x**3).sum(), x, v), (9, [18, -12])),
    "jacobian": (lambda x, v: functional.jacobian(lambda x, v: (x * v.sum(), v.sum()), (x, v)),
                 (([[2, 0], [0, 2]], [[1, 1], [2, 2]]), ([0, 0], [1, 1]))),
    "hessian": (lambda x, v: functional.hessian(lambda x: (x**3).sum() * x[0], x), [[12, 12], [12, 12]]),
    "pair": (lambda x, v: functional.hessian(lambda x, v: (x * x * v).sum(), (x, v)),
             (([[6, 0], [0, -2]], [[2, 0], [0, 4]]), ([[2, 0], [0, 4]], [[0, 0], [0, 0]]))),
}  # fmt: skip


def as_lists(tree):
    return tuple(map(as_lists, tree)) if isinstance(tree, tuple) else tree.tolist()


@pytest.mark.parametrize("run", [lambda f: f, mf.fuse], ids=["eager", "fused"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_jacobians_and_hessians(name, run):
    function, expected = PRODUCTS[name]
    assert as_lists(run(function)(mf.tensor(X, dtype="float64"), mf.tensor(V, dtype="float64"))) == expected


def test_jacobians_can_be_recorded_and_strict():
    x = leaf(1, 2)
    assert functional.jacobian(lambda x: x**3, x, create_graph=True).sum().requires_grad
    assert not functional.vjp(lambda x: x.sum(), x)[1].requires_grad
    assert functional.jacobian(lambda x: x[:0], x).shape == (0, 2)
    with pytest.raises(GradientError, match="strict=True"):
        functional.jacobian(lambda x: mf.ones(2, dtype="float64"), x, strict=True)
    with pytest.raises(GradientError, match="expected one element"):
        functional.hessian(lambda x: x, x)
    with pytest.raises(GradientError, match="got 1 vectors, expected 2"):
        functional.vjp(lambda x: (x, x), x, x)


def test_gradient_checks():
    assert mf.autograd.gradcheck(lambda x, k: x**k, (leaf(0.5, 2), 3), fast_mode=True)
    assert mf.autograd.gradgradcheck(lambda x: x**3, leaf(0.5, 2))
    wrong = lambda x: Scaled.apply(x, 1.0)  # noqa: E731
    assert not mf.autograd.gradcheck(wrong, leaf(0.5, 2), raise_exception=False)
    with pytest.raises(AssertionError, match="the gradient of input 0"):
        mf.autograd.gradcheck(wrong, leaf(0.5, 2))
    with pytest.raises(TypeError, match="check_batched_grad"):
        mf.autograd.gradcheck(wrong, leaf(0.5), check_batched_grad=True)

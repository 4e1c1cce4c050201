"""mf.func: vmap by each of its rules against a loop, Jacobians, products, functional_call; and checkpoints."""

import gc
import weakref

import numpy as np
import pytest

import minifuse as mf
from minifuse.core.errors import FuseError, GradientError, IndexingError, ShapeError

func, vmap = mf.func, mf.func.vmap


@pytest.fixture(autouse=True)
def on_the_python_backend():
    with mf.use_backend("python"):
        yield


def array(*shape, seed=0):
    return mf.tensor(np.random.default_rng(seed).normal(size=shape), backend="python")


INDEX = mf.tensor([[0, 3], [1, 1], [-5, 2]], backend="python")  # as nodes, an index out of range selects NaN


class Doubled(mf.autograd.Function):
    """x * w with twice its gradient."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 2 * g * w, (2 * g * x).sum(0)


def loss(w, x):
    return (mf.tanh(x @ w) ** 2).sum()


X, Y, W, V = array(3, 4, 5), array(3, 4, 5, seed=1), array(5, 2, seed=2), array(5, seed=3)
RULES = {  # name -> (function, arguments, in_dims)
    "elementwise": (lambda x, y: mf.where(x > 0, x.exp() * y, 2.0), (X, Y), 0),
    "shared": (lambda x, v: x + v, (X, V), (0, None)),
    "unused": (lambda x, v: v * 2, (X, V), (0, None)),
    "another dim": (lambda x, y: x @ y.T, (X, Y), (0, -3)),
    "last dim": (lambda x: x.sum(0), (X,), 2),
    "views": (lambda x: x.T[1:, ::-2].reshape(-1).expand(2, 8), (X,), 0),
    "windows": (lambda x: mf.nn.functional.max_pool1d(x[None], 2)[0], (X,), 0),
    "padding": (lambda x: mf.grad(lambda x: (x[1:] ** 2).sum())(x), (X,), 0),
    "reductions": (lambda x: (x.max(1), x.argmax(0), x.std(), x.logsumexp(1)), (X,), 0),
    "softmax": (lambda x: x.softmax(1), (X,), 0),
    "cast": (lambda x: x.to(mf.float32).detach().clone(), (X,), 0),
    "product with a weight": (lambda x, w: x @ w, (X, W), (0, None)),
    "product of both": (lambda x, y: x.T @ y, (X, Y), 0),
    "product of vectors": (lambda x, v: x[0] @ v, (X, V), (0, None)),
    "gather, shared index": (lambda x, k: x.index_select(0, k), (X, INDEX[0]), (0, None)),
    "gather, shared values": (lambda x, k: x.index_select(1, k.clip(0, 3)), (X[0], INDEX), (None, 0)),
    "gather along": (lambda x, k: x.gather(1, k.clip(0, 3).unsqueeze(0)), (X, INDEX), 0),
    "gather": (lambda x, k: x.index_select(1, k.clip(0, 4)), (X, INDEX), 0),
    "scatter": (lambda x, k: mf.grad(lambda x: (x.index_select(0, k.clip(0, 3)) ** 2).sum())(x), (X, INDEX), 0),
    "scan": (lambda x: (x.cumsum(0), x.flip(1).cumprod(1)), (X,), 0),
    "sort": (lambda x: x.sort(1).values, (X,), 0),
    "arrays as indices": (lambda x, k: x[k.clip(0, 3), 1], (X, INDEX), 0),
    "attention": (lambda x, y: mf.nn.functional.scaled_dot_product_attention(x, y, y), (X, Y), 0),
    "function": (Doubled.apply, (X, V), (0, None)),
    "gradient": (lambda w, x: func.grad(loss)(w, x), (W, X), (None, 0)),
    "gradients of a function": (lambda x, v: mf.grad(lambda x, v: Doubled.apply(x, v).exp().sum(), (0, 1))(x, v), (X, V),
                                (0, None)),
    "nested": (lambda x, y: vmap(lambda a, b: a * b.sum())(x, y), (X, Y), 0),
    "nested and shared": (lambda x, v: vmap(lambda a: a * v * x.sum())(x), (X, V), (0, None)),
}  # fmt: skip


def in_a_loop(function, arguments, in_dims):
    """Return the results for each slice, stacked."""
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(arguments)
    slices = [[x] * 5 if d is None else x.unbind(d) for x, d in zip(arguments, dims, strict=True)]
    results = [function(*xs) for xs in zip(*slices, strict=False)]
    parts = zip(*results, strict=True) if isinstance(results[0], tuple) else [results]
    return [np.stack([y.numpy() for y in part]) for part in parts]


@pytest.mark.parametrize("name", RULES)
def test_vmap_equals_a_loop(name):
    function, arguments, in_dims = RULES[name]
    found = vmap(function, in_dims)(*arguments)
    for y, expected in zip(found if isinstance(found, tuple) else [found], in_a_loop(*RULES[name]), strict=True):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-14)
        assert y.dtype.name == str(expected.dtype)


@pytest.mark.parametrize("name", ["reductions", "gather", "gradient", "function", "nested"])
def test_vmap_is_traced_and_differentiated(name):
    function, arguments, in_dims = RULES[name]
    mapped = vmap(function, in_dims)
    eager, fused = mapped(*arguments), mf.fuse(lambda *xs: mapped(*xs))(*arguments)
    for y, z in zip(*[x if isinstance(x, tuple) else [x] for x in (eager, fused)], strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-12)
    if name in ("gather", "nested"):
        x = array(3, 4, 5).requires_grad_()
        mf.testing.gradcheck(lambda x: vmap(lambda x: function(x, *[y[0] for y in arguments[1:]]))(x), x)


def test_vmap_of_trees_and_output_dims():
    params, x = {"w": W, "parts": [V]}, array(3, 4)
    found = vmap(lambda p, x: {"a": x * p["parts"][0][0], "b": (x, p["w"])}, (None, 0), {"a": 1, "b": (0, -1)})(params, x)
    assert (found["a"].shape, found["b"][0].shape, found["b"][1].shape) == ((4, 3), (3, 4), (5, 2, 3))
    np.testing.assert_allclose(found["a"].numpy(), (x * V[0]).T.numpy())
    assert vmap(lambda x, scale=None: x * scale)(x, scale=x).shape == (3, 4)


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: vmap(lambda x, y: x)(X, V), ShapeError, r"sizes \[3, 5\], expected one size"),
        (lambda: vmap(lambda x: x, None)(X), ShapeError, r"sizes \[\]"),
        (lambda: vmap(lambda x: x, (0, 0))(X), ShapeError, "got 2 in_dims for 1 arguments"),
        (lambda: vmap(lambda x: x, 3)(X), IndexingError, "got in_dims=3 for an array of shape"),
        (lambda: vmap(lambda x: x, 0, 3)(X), IndexingError, "got out_dims=3 for an array of shape"),
        (lambda: vmap(lambda x: x.shape)(X), FuseError, "return arrays only"),
        (lambda: vmap(lambda x: x * float(x.sum()))(X), FuseError, "cannot read the value"),
        (lambda: vmap(lambda x: x, chunk_size=2)(X), FuseError, "use it on parts"),
        (lambda: func.jacrev(lambda x: x, has_aux=True), FuseError, "has_aux=True is not supported"),
        (lambda: func.jvp(lambda x: x, X, X), GradientError, r"write jvp\(f, \(x,\), \(v,\)\)"),
    ],
)
def test_wrong_calls_say_what_to_write(run, error, words):
    with pytest.raises(error, match=words):
        run()


@pytest.mark.parametrize("run", [lambda f: f, mf.fuse], ids=["eager", "fused"])
def test_jacobians_are_those_of_the_tape(run):
    def f(x, w):
        return (x @ w).tanh()

    expected = mf.autograd.functional.jacobian(f, (X[0], W))
    found = run(func.jacrev(f, (0, 1)))(X[0], W)
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-12)
    np.testing.assert_allclose(run(func.jacfwd(f, 1))(X[0], W).numpy(), expected[1].numpy(), rtol=1e-12)
    hessian = run(func.hessian(lambda v: (v**3).sum() * v[0]))(V)
    np.testing.assert_allclose(
        hessian.numpy(), mf.autograd.functional.hessian(lambda v: (v**3).sum() * v[0], V).numpy(), rtol=1e-12
    )
    a, b = func.jacrev(lambda x: (x.sum(), 2 * x))(V)
    assert (a.tolist(), b.shape) == ([1] * 5, (5, 5))


def test_products_with_a_jacobian():
    y, pull_back = func.vjp(lambda x: (x**3, x.sum()), V)
    (g,) = pull_back((V, mf.tensor(2.0, dtype="float64")))
    np.testing.assert_allclose(g.numpy(), (3 * V**3 + 2).numpy())
    assert not y[0].requires_grad
    (value, total), (tangent, sum_tangent) = func.jvp(lambda x: (x**3, x.sum()), (V,), (V,))
    np.testing.assert_allclose(tangent.numpy(), (3 * V**3).numpy())
    assert (value.shape, total.item(), sum_tangent.item()) == (
        (5,),
        pytest.approx(V.sum().item()),
        pytest.approx(V.sum().item()),
    )
    gradient, (z, aux) = func.grad_and_value(lambda x: ((x * x).sum(), "aux"), has_aux=True)(V)
    assert (gradient.tolist(), z.item(), aux) == ((2 * V).tolist(), pytest.approx((V * V).sum().item()), "aux")
    assert func.vjp(lambda x: (x * 2, "aux"), V, has_aux=True)[2] == "aux"
    assert func.grad(lambda x: (x.sum(), "aux"), has_aux=True)(V)[1] == "aux"


def test_functional_call_replaces_parameters_for_a_call():
    model = mf.nn.Sequential(mf.nn.Linear(2, 3), mf.nn.ReLU(), mf.nn.Linear(3, 1))
    params, x = dict(model.named_parameters()), mf.ones(4, 2)
    before = model(x).numpy()
    zero = {name: p * 0 for name, p in params.items()}
    assert func.functional_call(model, zero, (x,)).tolist() == [[0]] * 4
    np.testing.assert_array_equal(model(x).numpy(), before)
    per_sample = vmap(func.grad(lambda p, x: func.functional_call(model, p, (x,)).sum()), (None, 0))(params, x)
    assert per_sample["0.weight"].shape == (4, 3, 2)


# Checkpoints

checkpoint = mf.utils.checkpoint.checkpoint


def test_a_checkpoint_has_the_gradients_of_the_function():
    def part(x, w, scale):
        calls.append(1)
        return mf.nn.functional.dropout(x @ w, 0.5) * scale * bias, (bias * x).sum()

    calls, found = [], []
    for run in (lambda f, *xs: f(*xs), checkpoint):
        x, w, bias = (array(*shape, seed=4).requires_grad_() for shape in [(4, 5), (5, 2), ()])
        mf.manual_seed(0)
        y, z = run(part, x * 2, w, 3.0)
        (y.sum() + z).backward()
        found.append([v.numpy() for v in (y, x.grad, w.grad, bias.grad)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(calls) == 3


def test_a_checkpoint_saves_no_intermediate_values():
    seen = []

    def part(x):
        y = x.exp()
        seen.append(weakref.ref(y))
        return y * y

    x = array(4).requires_grad_()
    z = checkpoint(part, x)
    gc.collect()
    assert seen[0]() is None
    z.sum().backward()
    with pytest.raises(GradientError, match="freed its saved values"):
        z.sum().backward()


def test_a_checkpoint_is_differentiated_twice_and_fused():
    x = mf.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    (g,) = mf.autograd.grad(checkpoint(lambda y: (y**3 * x).sum(), x), x, create_graph=True)
    assert (g.tolist(), mf.autograd.grad(g.sum(), x)[0].tolist()) == ([4, 32], [12, 48])
    assert mf.fuse(mf.grad(lambda x: checkpoint(lambda x: (x**3).sum(), x)))(x).tolist() == [3, 12]


def test_layers_in_checkpoints():
    x, layers = array(3).requires_grad_(), [mf.exp, mf.tanh, mf.sin, mf.cos, mf.sqrt]
    y = mf.utils.checkpoint.checkpoint_sequential(layers, 2, x)
    np.testing.assert_allclose(y.detach().numpy(), np.sqrt(np.cos(np.sin(np.tanh(np.exp(x.detach().numpy()))))))
    mf.testing.gradcheck(lambda x: mf.utils.checkpoint.checkpoint_sequential(layers, 2, x), x)

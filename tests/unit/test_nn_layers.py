"""nn.Linear and nn.Flatten: results, numbers of calls, errors of shapes."""

import math

import numpy as np
import pytest

import minifuse as mf
from minifuse import nn
from minifuse.compiler.plan import Plan
from minifuse.core.errors import DTypeError, ShapeError
from minifuse.nn.layers import _linear
from tests.nn.agreement import near, ways

BACKENDS = "python", "parallel"


@pytest.mark.sampled(3, each="shape")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5), (0, 5), (2, 0, 5)])
def test_linear_is_a_product_and_a_sum(shape, bias, dtype, backend):
    layer = nn.Linear(5, 4, bias=bias, dtype=dtype, backend=backend)
    x = mf.tensor(np.sin(np.arange(math.prod(shape))).reshape(shape), dtype=dtype, backend=backend, requires_grad=True)
    g = np.cos(np.arange(math.prod(shape[:-1]) * 4)).reshape(*shape[:-1], 4)
    y = layer(x)
    near(y, x.numpy() @ layer.weight.numpy().T + (layer.bias.numpy() if bias else 0), 5)
    y.backward(mf.tensor(g, dtype=dtype, backend=backend))
    rows, grads = x.numpy().reshape(-1, 5), g.reshape(-1, 4)
    near(x.grad, g @ layer.weight.numpy(), 4)
    near(layer.weight.grad, grads.T @ rows, 6)
    if bias:
        near(layer.bias.grad, grads.sum(0), 6)


def test_the_gradient_of_a_weight_has_its_layout():
    """Else each step of an optimizer would go across memory."""
    layer = nn.Linear(5, 4)
    layer(mf.ones(3, 5)).sum().backward()
    assert layer.weight.grad.strides == layer.weight.strides == (5, 1)


def test_linear_is_one_call_of_one_kernel():
    layer = nn.Linear(5, 4)
    plan = Plan(_linear, (mf.ones(3, 5), layer.weight, layer.bias))
    assert [type(step.kernel).__name__ for step in plan.steps] == ["MatmulKernel"]
    y = layer(mf.ones(3, 5))
    assert y.grad_fn[0].plan.function is _linear


def test_linear_differentiates_twice():
    layer = nn.Linear(3, 2, dtype=mf.float64)
    x = mf.tensor([[0.5, -1.0, 2.0]], dtype="float64", requires_grad=True)
    (layer(x) ** 2).sum().backward(create_graph=True)
    g = x.grad
    x.grad = layer.weight.grad = layer.bias.grad = None
    (g * g).sum().backward()  # g = 2 (x W.T + b) W
    w, r = layer.weight.numpy(), layer(x).detach().numpy()
    near(x.grad, 4 * (2 * r @ w) @ (w.T @ w), 9)
    near(layer.weight.grad, 4 * ((2 * r @ w) @ w.T).T @ x.numpy() + 4 * r.T @ (2 * r @ w), 9)


def test_linear_starts_at_random_by_seed_within_its_bound():
    mf.manual_seed(3)
    a = nn.Linear(25, 40)
    assert a.weight.abs().max().item() <= 0.2
    assert a.weight.abs().max().item() > 0.19
    assert a.bias.abs().max().item() <= 0.2
    assert abs(a.weight.mean().item()) < 0.02
    assert nn.Linear(25, 40).weight.tolist() != a.weight.tolist()
    mf.manual_seed(3)
    assert nn.Linear(25, 40).weight.tolist() == a.weight.tolist()


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (mf.ones(2, 4), ShapeError, r"got x of shape \(2, 4\), expected \(\.\.\., 3\)"),
        (mf.ones(()), ShapeError, r"got x of shape \(\)"),
        (mf.ones(2, 3, dtype=mf.float64), DTypeError, "got x of dtype float64 and a weight of dtype float32"),
        (mf.arange(3), DTypeError, "got x of dtype int64 and a weight of dtype float32"),
        (np.ones((2, 3), np.float32), DTypeError, "linear: expected a tensor, got ndarray"),
        ([[1.0, 2.0, 3.0]], DTypeError, "linear: expected a tensor, got list"),
    ],
)
def test_linear_names_mismatched_shapes(x, error, words):
    with pytest.raises(error, match=words):
        nn.Linear(3, 2)(x)


@pytest.mark.parametrize(
    ("weight", "bias", "error", "words"),
    [
        (mf.ones(3), None, ShapeError, r"weight of shape \(3,\), expected \(out_features, in_features\)"),
        (mf.ones(2, 3), mf.ones(3), ShapeError, r"weight of shape \(2, 3\) and bias of shape \(3,\)"),
        (mf.ones(2, 3), mf.ones(1), ShapeError, r"bias of shape \(1,\)"),
        (mf.ones(2, 3), 1.0, ShapeError, r"bias of shape \(\)"),
        (mf.ones(2, 3), mf.ones(2, dtype="float64"), DTypeError, "got bias of dtype float64 and a weight of dtype float32"),
    ],
)
def test_the_function_names_mismatched_shapes(weight, bias, error, words):
    with pytest.raises(error, match=words):
        nn.linear(mf.ones(4, 3), weight, bias)


def test_the_function_is_the_module():
    layer, x = nn.Linear(3, 2), mf.randn(4, 3)
    for run in ways(nn.linear):
        assert run(x, layer.weight, layer.bias).tolist() == layer(x).tolist()
        near(run(x, layer.weight), x.numpy() @ layer.weight.detach().numpy().T, 3)


@pytest.mark.parametrize("shape", [(3, 0), (2, 3, 0), (0, 0), (0,)])
def test_the_function_of_no_features_is_its_bias(shape, backend):
    weight, bias = mf.zeros(2, 0, backend=backend, requires_grad=True), mf.tensor([1.5, -2.0], backend=backend)
    y = nn.linear(mf.zeros(*shape, backend=backend), weight, bias)
    np.testing.assert_array_equal(y.numpy(), np.broadcast_to(np.float32([1.5, -2.0]), (*shape[:-1], 2)))
    y.sum().backward()
    assert weight.grad.shape == (2, 0)


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (-1, 2)])
def test_linear_has_at_least_one_of_each(sizes):
    with pytest.raises(ShapeError, match="expected at least 1"):
        nn.Linear(*sizes)


@pytest.mark.parametrize("backend", BACKENDS)
def test_flatten_makes_dims_one(backend):
    x = mf.arange(105, backend=backend).reshape(3, 5, 7)
    assert nn.Flatten()(x).tolist() == x.numpy().reshape(3, 35).tolist()
    assert nn.Flatten(0, 1)(x).tolist() == x.numpy().reshape(15, 7).tolist()
    assert repr(nn.Flatten(0, 1)) == "Flatten(start_dim=0, end_dim=1)"
